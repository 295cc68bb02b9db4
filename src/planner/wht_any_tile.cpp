#include "src/planner/wht_any_tile.h"

#include "lib/common/factor_matrices.h"

#include <algorithm>

namespace plait::impl {

namespace {

constexpr int64_t run_wanted = 32;    // elements: a warp
constexpr int64_t run_at_least = 8;   // shorter ones would cost more than another pass
constexpr int64_t tile_wanted = 2048; // elements of a tile that need not be so small

} // namespace

int wht_any_bits(int64_t n) {
    int b = 0;
    while (int64_t{1} << b < n) ++b;
    return b;
}

wht_any_tile::wht_any_tile(const wht_problem &p, const profile &device, int64_t cap)
    : p_(p), number_(wht_any_number_of(p)),
      work_(p.order != wht_order::natural || wht_any_number_type(number_) != p.y), device_(device),
      cap_(cap) {
    make_atoms();
}

void wht_any_tile::finish() {
    for (wht_any_atom &a : atoms_) a.done = a.done || a.now;
}

void wht_any_tile::make_atoms() {
    int64_t packed = 1;
    for (int i = p_.axes - 1; i >= 0; --i) { // innermost first
        const wht_axis &ax = p_.axis[i];
        const int m = ax.transformed ? wht_factor_order(ax.factor) : 1;
        int64_t left = ax.length / m;
        int64_t step = 1;
        int low = 0;
        for (; left % 2 == 0; left /= 2, step *= 2)
            atoms_.push_back({i, ax.transformed, true, false, low++, 2, step, packed * step});
        if (left > 1) atoms_.push_back({i, false, false, false, low, left, step, packed * step});
        if (m > 1) atoms_.push_back({i, true, false, true, low, m, step, packed * step});
        packed *= ax.length;
    }
    elements_ = packed;
}

int64_t wht_any_tile::remaining() const {
    return std::count_if(atoms_.begin(), atoms_.end(),
                         [](const wht_any_atom &a) { return a.transformed && !a.done; });
}

int64_t wht_any_tile::stride(const wht_any_atom &a, wht_any_side side, bool first,
                             bool last) const {
    const wht_axis &ax = p_.axis[a.axis];
    if (side == wht_any_in) {
        if (first) return a.step * ax.x_stride;
        return work_ ? a.work_stride : a.step * ax.y_stride;
    }
    if (!last && work_) return a.work_stride;
    if (ordered(last) && a.transformed)
        return (int64_t{1} << (bits_of(a.axis) - 1 - a.low)) * ax.y_stride;
    return a.step * ax.y_stride;
}

void wht_any_tile::sort_by_stride(wht_any_side side, bool first, bool last) {
    std::vector<std::pair<int64_t, wht_any_atom *>> &out = sorted_[side];
    out.clear();
    for (wht_any_atom &a : atoms_) {
        const int64_t s = stride(a, side, first, last);
        out.emplace_back(s == 0 ? INT64_MAX : s, &a);
    }
    std::sort(out.begin(), out.end()); // equal ones: in the order of the atoms
}

void wht_any_tile::clear() {
    slots_ = 1;
    chunks_ = 0;
    factor_ = nullptr;
    for (wht_any_atom &a : atoms_) {
        a.taken = a.now = false;
        a.chunk_bits = 0;
    }
}

void wht_any_tile::take_run(wht_any_side side, int64_t wanted) {
    int64_t run = 1;
    for (const auto &[distance, a] : sorted_[side]) {
        (void)distance;
        if (run >= wanted) return;
        if (a->factor) continue; // in the tile only where it is applied
        if (a->bit) {
            run *= 2;
            if (!a->taken) slots_ *= 2;
            a->taken = true;
            continue;
        }
        if (a->taken) {
            run <<= a->chunk_bits;
            continue;
        }
        if (chunks_ == wht_any_most_chunks) return;
        const int bits = std::min(wht_any_bits(a->length), wht_any_bits((wanted + run - 1) / run));
        take_chunk(*a, bits);
        run <<= bits;
    }
}

void wht_any_tile::take_chunk(wht_any_atom &a, int bits) {
    a.taken = true;
    a.chunk_bits = bits;
    slots_ <<= bits;
    ++chunks_;
}

bool wht_any_tile::gather(bool first, bool last) {
    for (const wht_any_side side : {wht_any_in, wht_any_out}) sort_by_stride(side, first, last);
    for (int64_t wanted = run_wanted; wanted >= (last ? run_at_least : 1); wanted /= 2) {
        clear();
        take_run(wht_any_in, wanted);
        take_run(wht_any_out, wanted);
        if (slots_ > cap_) continue;
        int64_t left = remaining();
        const bool any = left > 0;
        for (wht_any_atom &a : atoms_) {
            if (!a.transformed || a.done) continue;
            if (a.factor ? factor_ != nullptr || slots_ * a.length > cap_
                         : !a.taken && slots_ * 2 > cap_)
                break;
            if (!a.taken) slots_ *= a.length;
            if (a.factor) factor_ = &a;
            a.taken = a.now = true;
            --left;
        }
        if (last ? left == 0 : any && left < remaining()) return true;
    }
    return false;
}

int64_t wht_any_tile::tiles() const {
    int64_t n = 1;
    for (const wht_any_atom &a : atoms_) {
        if (!a.taken) n *= a.length;
        if (a.chunk_bits > 0) n *= ((a.length - 1) >> a.chunk_bits) + 1;
    }
    return n;
}

void wht_any_tile::fill_up() {
    for (const auto &[distance, a] : sorted_[wht_any_out]) {
        (void)distance;
        if (a->factor || (a->taken && a->bit)) continue;
        const int64_t spare = std::min(tile_wanted / slots_, tiles() / (4 * device_.sms));
        if (spare < 2) return;
        if (a->bit) {
            a->taken = true;
            slots_ *= 2;
            continue;
        }
        // A run may have taken a few of an odd length already.
        const int more =
            std::min(wht_any_bits(a->length) - a->chunk_bits, wht_any_bits(spare + 1) - 1);
        if (a->taken) {
            a->chunk_bits += more;
            slots_ <<= more;
        } else if (chunks_ < wht_any_most_chunks) {
            take_chunk(*a, more);
        }
    }
}

} // namespace plait::impl
