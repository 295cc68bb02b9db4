// Passes of the CUDA candidates of wht: which bits each pass transforms, what that costs, and the
// steps. One contiguous pass (wht.block) takes the low bits of the index, column passes the others.
#pragma once

#include "lib/cuda/wht/block_layout.h"
#include "src/planner/wht_candidates.h"

namespace plait::impl {

enum class wht_columns { none, shuffle, tiled };

constexpr int wht_most_columns = 4; // column passes of any candidate

struct wht_pass_kind {
    wht_columns kernel; ///< of the passes after the first
    int max_columns;    ///< column passes
    bool in_work;       ///< 16-bit results: the passes work on f32 in the workspace
};

/// log2 of the longest rows that wht.block takes for these types; negative where there is none.
constexpr int wht_longest_block(scalar x, scalar y, int parts) {
    int log_n = 30;
    while (log_n >= 0 && !wht_block_exists(x, y, log_n, parts)) --log_n;
    return log_n;
}

/// How many bits each pass transforms, and the estimate of it.
struct wht_split {
    int log_block = 0;
    int count = 0; ///< column passes; negative: there is no way
    int log_m[wht_most_columns] = {};
    cost estimate;
};

/// What passes leave for the next one.
struct wht_between {
    scalar type;
    bool work; ///< in the workspace, else in Y
};

wht_between wht_between_passes(const wht_rows &, const wht_pass_kind &);

inline bool wht_aligned16(int64_t elements, scalar s) {
    return elements * scalar_bytes(s) % 16 == 0;
}

class wht_passes {
public:
    wht_passes(const wht_rows &, const profile &, const wht_pass_kind &);

    /// The cheapest split of the fewest passes: a function of types, length and device alone.
    wht_split best() const;
    pipeline build(const wht_split &) const;

    /// "", or why 16-bit values between passes would lose more than their rounding.
    verdict early_scale_fits(const wht_split &) const;
    int64_t work_bytes() const;

private:
    /// Launches of the first pass. Rows with gaps whose parts are transformed one by one need
    /// several: wht.block knows one stride.
    struct first_pass {
        int64_t launches;
        int64_t rows; ///< of each launch
        int64_t x_stride, y_stride;
        int64_t x_step, y_step; ///< elements from launch to launch
    };

    first_pass first(int log_block) const;
    bool only(int log_block) const { return log_block == r_.log_n; }
    scalar block_y(int log_block) const { return only(log_block) ? r_.y : mid_.type; }
    bool block_vector(const first_pass &, int log_block) const;
    /// 16-bit rows that wht.mma16 takes faster than wht.block, however they are aligned.
    bool first_on_tensor_cores(int log_block) const;
    bool block_launch(int log_block, wht_launch *) const;
    bool columns_vector(bool last) const;
    bool columns_launch(int log_m, int log_inner, bool last, wht_launch *) const;
    bool launch_fits(const wht_launch &) const;
    double early_scale(const wht_split &) const;
    void extend(const wht_passes &of_row, wht_split &current, int index, int log_inner,
                wht_split &found) const;
    cost price(const wht_split &) const;
    void add_block(pipeline &, const wht_split &, const operand &to, double scale) const;
    void add_columns(pipeline &, int log_m, int log_inner, const operand &from, const operand &to,
                     double scale, bool last) const;

    const wht_rows &r_;
    const profile &device_;
    const wht_pass_kind &kind_;
    wht_between mid_;
    bool warm_; ///< column passes find their data in the L2 cache
    bool wide_; ///< additions in F64
};

} // namespace plait::impl
