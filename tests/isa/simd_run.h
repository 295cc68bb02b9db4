// One call of wht.simd on rows with gaps and guards, and the same problem for wht.ref.
#pragma once

#include "lib/common/wht_problem.h"
#include "lib/cpu/kernel_table.h"
#include "lib/cpu/wht/ref_args.h"
#include "lib/cpu/wht/simd_args.h"
#include "tests/isa/typed.h"

#include <string>
#include <vector>

namespace isa_test {

namespace cpu = plait::impl::cpu;

struct rows_call {
    scalar x = scalar::f32, y = scalar::f32;
    int64_t rows = 1, n = 1, x_stride = 1, y_stride = 1;
    double scale = 1;
    bool in_place = false;
    int64_t x_shift = 0, y_shift = 0; ///< elements off a cache line
    int threads = 1;

    int64_t x_extent() const { return (rows - 1) * x_stride + n; }
    int64_t y_extent() const { return (rows - 1) * y_stride + n; }
    std::string text() const;
};

/// 64-byte aligned scratch, filled with a pattern that is NaN in every float type.
struct scratch_space {
    explicit scratch_space(int64_t bytes) : data(static_cast<size_t>(bytes) + 64, 0xff) {}
    void *at() {
        return reinterpret_cast<void *>((reinterpret_cast<uintptr_t>(data.data()) + 63) / 64 * 64);
    }
    std::vector<uint8_t> data;
};

/// Runs wht.simd; `y` is not used in place.
void run_simd(const rows_call &c, buffer &x, buffer &y);

/// The same rows through wht.ref with the output type `y_type`, packed.
std::vector<uint8_t> run_ref(const rows_call &c, const buffer &x, scalar y_type);

} // namespace isa_test
