// How rows of contiguous time, or channels, lie, and which of them conv1d.fwd_bct_tiled takes as
// one row.
#pragma once

#include "lib/cuda/conv1d/fwd_bct_flat_layout.h"
#include "src/core/text.h"
#include "src/planner/conv1d_cuda.h"

#include <initializer_list>

namespace plait::impl {

inline verdict conv1d_time_contiguous(const conv1d_problem &p) {
    const int64_t rows = p.batch * p.channels;
    if (rows > conv1d_bct_most_rows) return text(rows, " rows are over ", conv1d_bct_most_rows);
    if (p.length <= 1) return "";
    if (p.x.t != 1) return text("time of x has stride ", p.x.t, "; needs 1");
    if (p.y.t != 1) return text("time of y has stride ", p.y.t, "; needs 1");
    return "";
}

inline verdict conv1d_channels_contiguous(const conv1d_problem &p) {
    if (p.channels <= 1) return "";
    if (p.x.c != 1) return text("channels of x have stride ", p.x.c, "; needs 1");
    if (p.y.c != 1) return text("channels of y have stride ", p.y.c, "; needs 1");
    return "";
}

/// Base and all rows at multiples of 16 bytes.
inline bool conv1d_rows_aligned(const conv1d_problem &p, const conv1d_view &v) {
    const auto multiple = [&](int64_t elements) {
        return elements * scalar_bytes(v.type) % 16 == 0;
    };
    return v.align >= 16 && (p.batch <= 1 || multiple(v.b)) && (p.channels <= 1 || multiple(v.c));
}

/// Rows lie behind one another.
inline bool conv1d_rows_packed(const conv1d_problem &p, const conv1d_view &v) {
    return (p.channels <= 1 || v.c == p.length) && (p.batch <= 1 || v.b == p.channels * p.length);
}

/// Whether conv1d.fwd_bct_tiled reads first states itself, variants "state", of 16 bits: of rows
/// that are one sequence each, in the first vector of a row.
inline bool conv1d_takes_state(const conv1d_problem &p) {
    return conv1d_is_half(p.x.type) && p.state_in.used() && !p.pooled && !p.varlen &&
           !p.seq_idx.used() && p.width <= 4 && p.length >= conv1d_vector(p.x.type) &&
           conv1d_rows_aligned(p, p.x) && conv1d_rows_aligned(p, p.y);
}

/// Variants "flat": rows that do not all begin at vectors.
inline bool conv1d_takes_flat(const conv1d_problem &p) {
    const int v = conv1d_vector(p.x.type);
    const int64_t rows = p.batch * p.channels;
    if (p.width != conv1d_flat_taps || p.length < v || !conv1d_taps_packed(p)) return false;
    if (p.channels > 1 && (p.w.c != p.width || (p.bias.used() && p.bias.c != 1))) return false;
    for (const conv1d_view *t : {&p.x, &p.y})
        if (t->align < 16 || !conv1d_rows_packed(p, *t)) return false;
    if (rows > conv1d_bct_most_rows ||
        conv1d_ceil_div(rows, conv1d_flat_elements(p.x.type)) > conv1d_most_blocks / p.length)
        return false;
    return rows > 1 && p.length % v != 0;
}

} // namespace plait::impl
