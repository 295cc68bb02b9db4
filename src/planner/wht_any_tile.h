// The tile of a pass of wht.any: which bits of the index it takes, for whole runs of memory on both
// sides and for the stages that come next.
#pragma once

#include "lib/cuda/wht/any_layout.h"
#include "src/planner/profile.h"

#include <utility>
#include <vector>

namespace plait::impl {

/// A part of the index of an axis: one bit, a factor, or what is left of a batch axis when its
/// factors of two are bits.
struct wht_any_atom {
    int axis;
    bool transformed;
    bool bit;
    bool factor;
    int low;             ///< of a bit: its place in the binary index of the axis
    int64_t length;      ///< 2 for a bit
    int64_t step;        ///< indices of the axis
    int64_t work_stride; ///< in the workspace, packed

    // of the pass that is being made
    int chunk_bits = 0; ///< > 0: this many bits of an odd length are in the tile
    bool taken = false; ///< in the tile
    bool done = false;  ///< transformed by an earlier pass
    bool now = false;   ///< transformed by this pass
};

/// Bits that number n things.
int wht_any_bits(int64_t n);

class wht_any_tile {
public:
    /// No tile has more than `cap` elements.
    wht_any_tile(const wht_problem &, const profile &, int64_t cap);

    /// Takes runs and the next stages that fit. True if there are some, and none is left where it
    /// is the last pass.
    bool gather(bool first, bool last);
    /// More of the index into small tiles, while that leaves enough of them.
    void fill_up();
    /// The stages of the tile are done.
    void finish();

    bool ordered(bool last) const { return last && p_.order != wht_order::natural; }
    int bits_of(int axis) const { return wht_any_bits(p_.axis[axis].length); }
    /// Distance of neighbours on a side; of an ordered axis that of the lowest row bit that it
    /// changes.
    int64_t stride(const wht_any_atom &, wht_any_side, bool first, bool last) const;

protected:
    const wht_problem &p_;
    const wht_any_number number_;
    const bool work_;                 ///< between passes elements are in the workspace, else in Y
    std::vector<wht_any_atom> atoms_; ///< innermost first: the order of stages
    std::vector<std::pair<int64_t, wht_any_atom *>> sorted_[2]; ///< by distance, at 0 last
    int64_t elements_ = 1;
    const wht_any_atom *factor_ = nullptr; ///< in the tile

private:
    void make_atoms();
    int64_t remaining() const;
    void sort_by_stride(wht_any_side, bool first, bool last);
    void clear();
    /// Takes the smallest distances of a side until `wanted` elements lie in a row.
    void take_run(wht_any_side, int64_t wanted);
    void take_chunk(wht_any_atom &, int bits);
    int64_t tiles() const;

    const profile &device_;
    const int64_t cap_;
    int64_t slots_ = 1;
    int chunks_ = 0;
};

} // namespace plait::impl
