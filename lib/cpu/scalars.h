// Elements of tensors in float64, one at a time.
#pragma once

#include "lib/common/half.h"
#include "lib/common/scalar.h"

#include <cstdint>

namespace plait::impl::cpu {

inline double load_f64(scalar type, const void *base, int64_t i) {
    switch (type) {
    case scalar::f64: return static_cast<const double *>(base)[i];
    case scalar::f32: return static_cast<const float *>(base)[i];
    case scalar::f16: return f16_to_f32(static_cast<const uint16_t *>(base)[i]);
    default: return bf16_to_f32(static_cast<const uint16_t *>(base)[i]);
    }
}

inline void store_f64(scalar type, void *base, int64_t i, double v) {
    switch (type) {
    case scalar::f64: static_cast<double *>(base)[i] = v; return;
    case scalar::f32: static_cast<float *>(base)[i] = static_cast<float>(v); return;
    case scalar::f16: static_cast<uint16_t *>(base)[i] = f64_to_f16(v); return;
    default: static_cast<uint16_t *>(base)[i] = f64_to_bf16(v); return;
    }
}

} // namespace plait::impl::cpu
