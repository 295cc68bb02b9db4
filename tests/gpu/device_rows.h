// Rows with a known spectrum, made and checked on the device: no size is too long for the host.
#pragma once

#include "tests/support/runner.h"

#include <cstdint>

namespace plait::test {

/// Each row is a sum of weighted impulses: x[j] = sum of w_i [j == p_i], so that
/// y[k] = sum of w_i (-1)^popcount(k & p_i): exact in every floating type.
struct impulse_rows {
    static constexpr int most = 4;
    int64_t at[most] = {0, 0, 0, 0};
    double weight[most] = {1, -2, 4, 0}; ///< 0: no impulse
    bool hashed = true;    ///< positions differ from row to row; `at` is then not used
    uint64_t seed = 1;     ///< of the positions
    int64_t only_row = -1; ///< all other rows are zero
};

struct device_matrix {
    plait_dtype type;
    void *data;
    int64_t rows, n, pitch; ///< n is a power of two; pitch in elements
};

enum class image { impulses, spectrum };

/// Writes the elements, not the gaps.
void device_fill(const device_matrix &m, const impulse_rows &what, image which, double scale,
                 plait_stream stream);

struct device_count {
    int64_t wrong = 0;
    int64_t first = -1; ///< row * n + element, the lowest
};
/// Elements that differ by more than `tolerance` (or are NaN). Waits.
device_count device_check(const device_matrix &m, const impulse_rows &what, image which,
                          double scale, double tolerance, plait_stream stream);

/// Keeps the stream busy for about this long, so that what is queued behind it cannot have run.
void device_delay(double seconds, plait_stream stream);
/// Keeps all multiprocessors but `free` of them to itself for about this long: their shared memory
/// is taken.
void device_occupy(int free, double seconds, plait_stream stream);
/// A kernel that stops the process's use of the device: everything after it fails.
void device_trap(plait_stream stream);

} // namespace plait::test
