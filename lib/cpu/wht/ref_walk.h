// Where wht.ref goes: over the axes of a problem, and over the part of one thread.
#pragma once

#include "lib/common/wht_problem.h"

#include <algorithm>
#include <cstdint>

namespace plait::impl::cpu {

/// Walks one kind of axes row-major and keeps the offsets of every operand.
struct walker {
    const wht_problem &p;
    bool transformed;
    int64_t x = 0, y = 0, signs = 0, diag = 0, diag_in = 0, diag_mid = 0;
    int64_t amax = 0, scales = 0, histogram = 0;
    int64_t at[wht_max_axes] = {};

    walker(const wht_problem &problem, bool kind, int64_t flat) : p(problem), transformed(kind) {
        for (int a = p.axes - 1; a >= 0; --a) {
            const wht_axis &ax = p.axis[a];
            if (ax.transformed != transformed) continue;
            at[a] = flat % ax.length;
            flat /= ax.length;
            move(ax, at[a]);
        }
    }

    void move(const wht_axis &ax, int64_t by) {
        x += by * ax.x_stride;
        y += by * ax.y_stride;
        signs += by * ax.signs_stride;
        diag += by * ax.diag_stride;
        diag_in += by * ax.diag_in_stride;
        diag_mid += by * ax.diag_mid_stride;
        amax += by * ax.amax_stride;
        scales += by * ax.scales_stride;
        histogram += by * ax.histogram_stride;
    }

    void next() {
        for (int a = p.axes - 1; a >= 0; --a) {
            const wht_axis &ax = p.axis[a];
            if (ax.transformed != transformed) continue;
            move(ax, 1);
            if (++at[a] < ax.length) return;
            move(ax, -ax.length);
            at[a] = 0;
        }
    }
};

/// Natural row that stands at output row r of an ordered axis of 2^bits.
inline int64_t natural_row(wht_order order, int64_t r, int bits) {
    if (order == wht_order::natural) return r;
    if (order == wht_order::sequency) r ^= r >> 1;
    int64_t reversed = 0;
    for (int b = 0; b < bits; ++b) reversed |= (r >> b & 1) << (bits - 1 - b);
    return reversed;
}

inline int log2_of(int64_t power) {
    int b = 0;
    while (int64_t{1} << b < power) ++b;
    return b;
}

/// Scratch index of the natural rows behind the output rows where `w` stands. Every ordered matrix
/// is symmetric, so the adjoint permutes its outputs in the same way.
inline int64_t natural_index(const walker &w) {
    const wht_problem &p = w.p;
    int64_t index = 0;
    for (int a = 0; a < p.axes; ++a) {
        const wht_axis &ax = p.axis[a];
        if (!ax.transformed) continue;
        index = index * ax.length + natural_row(p.order, w.at[a], log2_of(ax.length));
    }
    return index;
}

/// One thread's share of work that a team does together.
struct share {
    int tid, team;
    int64_t begin(int64_t count) const {
        return count / team * tid + std::min<int64_t>(count % team, tid);
    }
    int64_t end(int64_t count) const {
        return count / team * (tid + 1) + std::min<int64_t>(count % team, tid + 1);
    }
    void barrier() const {
        if (team > 1) {
#pragma omp barrier
        }
    }
};

} // namespace plait::impl::cpu
