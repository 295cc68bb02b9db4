// Element types: sizes, names, and conversion to and from double and int64.
#pragma once

#include <cstddef>
#include <cstdint>
#include <plait/plait.h>

namespace plait::cases {

const char *dtype_name(plait_dtype dtype); ///< as in tokens: "f32"
bool is_integer(plait_dtype dtype);        ///< I8 I16 I32 I64; not B1
bool is_complex(plait_dtype dtype);
plait_dtype real_of(plait_dtype dtype); ///< the type of one part: C64 -> F32; else itself
int parts_of(plait_dtype dtype);        ///< 2 for complex, else 1
size_t bytes_of(plait_dtype dtype);     ///< of one element; 0 for B1
/// Bytes that `elements` consecutive elements take; B1 comes in whole 32-bit words.
size_t bytes_for(plait_dtype dtype, int64_t elements);

/// 2^-24 for F32: half the distance of 1 and the next larger number.
double unit_roundoff(plait_dtype dtype);
/// Half the distance of neighbouring values of `dtype` around `value`.
double half_ulp(plait_dtype dtype, double value);
/// The nearest value of `dtype`, ties to even, as a double. May be infinite.
double rounded(plait_dtype dtype, double value);

// `count` counts elements; a complex element is two doubles. Floating and complex types.
void to_double(plait_dtype dtype, const void *from, int64_t count, double *to);
void from_double(plait_dtype dtype, const double *from, int64_t count, void *to);
// I8 I16 I32 I64. Into narrower types than I64: modulo 2^bits.
void to_int64(plait_dtype dtype, const void *from, int64_t count, int64_t *to);
void from_int64(plait_dtype dtype, const int64_t *from, int64_t count, void *to);

} // namespace plait::cases
