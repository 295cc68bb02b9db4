// Walks of wht.lines through the memory of a tile, in the order of X or of Y. No vectors: compiled
// once.
#pragma once

#include "lib/cpu/wht/lines_args.h"

namespace plait::impl::cpu {

inline int log2_exact(int64_t n) {
    int b = 0;
    while (int64_t{1} << b < n) ++b;
    return b;
}

/// i with its lowest `bits` bits reversed; the others are 0.
inline int64_t reversed(int64_t i, int bits) {
    uint64_t v = static_cast<uint64_t>(i);
    v = (v >> 1 & 0x5555555555555555u) | (v & 0x5555555555555555u) << 1;
    v = (v >> 2 & 0x3333333333333333u) | (v & 0x3333333333333333u) << 2;
    v = (v >> 4 & 0x0f0f0f0f0f0f0f0fu) | (v & 0x0f0f0f0f0f0f0f0fu) << 4;
    v = __builtin_bswap64(v);
    return bits == 0 ? 0 : static_cast<int64_t>(v >> (64 - bits));
}

/// Natural row that stands at output row r of an ordered axis of 2^bits.
inline int64_t natural_row(wht_order order, int64_t r, int bits) {
    if (order == wht_order::natural) return r;
    return reversed(order == wht_order::sequency ? r ^ r >> 1 : r, bits);
}

/// DIAG times scale as the arithmetic takes it: `count` elements from `at` on. True if they are
/// complex; else `imaginary` is not written.
bool wht_lines_coefficients(scalar type, const void *base, int64_t at, int64_t stride,
                            int64_t count, double scale, bool conj, float *real, float *imaginary);
bool wht_lines_coefficients(scalar type, const void *base, int64_t at, int64_t stride,
                            int64_t count, double scale, bool conj, double *real,
                            double *imaginary);

/// Offsets: elements of X or Y, bits of SIGNS, elements of DIAG, real numbers of the tile.
struct wht_lines_place {
    int64_t memory = 0, signs = 0, diag = 0, tile = 0;
};

/// One axis of a walk. `bits`: of an axis whose results are ordered, else -1.
struct wht_lines_run {
    int64_t length;
    wht_lines_place step;
    int bits;
};

/// The axes of a tile as one tensor has them in memory, outermost first; those that lie packed
/// behind one another are one.
struct wht_lines_view {
    wht_lines_run run[wht_lines_max_tile + 2];
    int count = 0;
    wht_order order;

    const wht_lines_run &line() const { return run[count - 1]; }
    const wht_lines_run &rows() const { return run[count - 2]; }
    bool one_piece() const { return count == 2 && run[0].length == 1; }

    /// Of the load (of X) or the store (of Y) of a tile with these lengths.
    wht_lines_view(const wht_lines_args &a, const int64_t *lengths, bool load)
        : order(load ? wht_order::natural : a.order) {
        const bool signs = a.signs && a.signs_first == load;
        const bool diag = a.diag && a.diag_first == load;
        wht_lines_run sorted[wht_lines_max_tile];
        int n = 0;
        for (int i = 0; i < a.tile_axes; ++i) {
            const wht_lines_tile_axis &t = a.tile[i];
            if (lengths[i] == 1) continue;
            const bool ordered =
                order != wht_order::natural && t.kind == wht_lines_kind::bits && t.length > 2;
            const wht_lines_run r{lengths[i],
                                  {load ? t.x_stride : t.y_stride, signs ? t.signs_stride : 0,
                                   diag ? t.diag_stride : 0, t.pitch},
                                  ordered ? log2_exact(t.length) : -1};
            int at = n++; // insertion, largest stride first
            for (; at > 0 && sorted[at - 1].step.memory < r.step.memory; --at)
                sorted[at] = sorted[at - 1];
            sorted[at] = r;
        }
        for (int i = 0; i < n; ++i) {
            wht_lines_run r = sorted[i];
            if (count > 0 && behind(run[count - 1], r)) {
                r.length *= run[count - 1].length;
                run[count - 1] = r;
            } else {
                run[count++] = r;
            }
        }
        const wht_lines_run single{1, {1, 0, 0, a.parts}, -1};
        if (count == 0) run[count++] = single;
        if (count == 1) { // a block has rows
            run[1] = run[0];
            run[0] = single;
            count = 2;
        }
    }

private:
    static bool behind(const wht_lines_run &outer, const wht_lines_run &inner) {
        const wht_lines_place &o = outer.step, &i = inner.step;
        return outer.bits < 0 && inner.bits < 0 && o.memory == i.memory * inner.length &&
               o.signs == i.signs * inner.length && o.diag == i.diag * inner.length &&
               o.tile == i.tile * inner.length;
    }
};

/// Walks the axes above the rows and lines of a view, and the rows.
class wht_lines_cursor {
public:
    explicit wht_lines_cursor(const wht_lines_view &view) : v(view) {}

    bool valid() const { return !done; }
    const wht_lines_place &place() const { return p; }
    void next() {
        if (done) return;
        for (int a = v.count - 2; a >= 0; --a) {
            const wht_lines_run &r = v.run[a];
            if (++at[a] < r.length) return step(r, at[a] - 1, at[a]);
            step(r, at[a] - 1, 0);
            at[a] = 0;
        }
        done = true;
    }

private:
    const wht_lines_view &v;
    wht_lines_place p;
    int64_t at[wht_lines_max_tile + 2] = {};
    bool done = false;

    void step(const wht_lines_run &r, int64_t from, int64_t to) {
        p.memory += (to - from) * r.step.memory;
        p.signs += (to - from) * r.step.signs;
        p.diag += (to - from) * r.step.diag;
        if (r.bits >= 0)
            p.tile += (natural_row(v.order, to, r.bits) - natural_row(v.order, from, r.bits)) *
                      r.step.tile;
        else
            p.tile += (to - from) * r.step.tile;
    }
};

} // namespace plait::impl::cpu
