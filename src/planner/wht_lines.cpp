// How a problem becomes passes and tiles of wht.lines.
//   Pieces  every axis in its parts: batch, bits, factor. A pass transforms the next pieces from
//           the innermost outwards, as many as fit a tile of L2; bits may be divided between
//           passes.
//   Tiles   what the pass transforms, and of the rest what makes its lines long: the innermost
//           axes, up to wht_lines_run_bytes; then more of one batch axis until L1 is used.
#include "src/planner/wht_lines.h"

#include "lib/common/factor_matrices.h"
#include "src/core/checked.h"
#include "src/core/text.h"

#include <algorithm>
#include <cmath>

namespace plait::impl {

namespace {

using cpu::wht_lines_args;
using cpu::wht_lines_axis;
using cpu::wht_lines_kind;

struct piece {
    int64_t length, x, y, between, signs, diag; ///< strides
    wht_lines_kind kind = wht_lines_kind::batch;
    wht_factor factor = wht_factor::h1;
    bool done = false;    ///< a batch axis, or transformed by an earlier pass
    bool in_tile = false; ///< of this pass
    bool active = false;  ///< transformed by this pass
    int64_t taken = 1;    ///< length within the tile

    /// This axis as `count` of its elements, `by` apart.
    piece every(int64_t by, int64_t count) const {
        piece p = *this;
        p.length = count;
        for (int64_t piece::*stride :
             {&piece::x, &piece::y, &piece::between, &piece::signs, &piece::diag})
            p.*stride *= by;
        return p;
    }
    bool behind(const piece &inner) const {
        for (int64_t piece::*stride :
             {&piece::x, &piece::y, &piece::between, &piece::signs, &piece::diag})
            if (this->*stride != inner.*stride * inner.length) return false;
        return true;
    }
};

constexpr int64_t floor_power(int64_t n) {
    int64_t p = 1;
    while (p * 2 <= n) p *= 2;
    return p;
}

constexpr int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

bool is_power(int64_t n) { return floor_power(n) == n; }

/// The longest tile of an ordered axis, which is not divided.
constexpr int64_t most_ordered_bytes = int64_t{1} << 22;

/// SIGNS behind the transform may bring back a sum of 2^31, which Y could not hold.
bool behind(const wht_problem &p) { return p.overflow && p.signs && p.adjoint; }

/// Outermost first, as the axes of the problem.
std::vector<piece> pieces_of(const wht_problem &p, bool through_y) {
    std::vector<piece> all;
    int64_t dense = 1;
    for (int i = p.axes; i-- > 0;) {
        const wht_axis &a = p.axis[i];
        const int64_t between = through_y ? a.y_stride : dense;
        piece whole{a.length, a.x_stride, a.y_stride, between, a.signs_stride, a.diag_stride};
        whole.done = !a.transformed;
        dense *= a.length;
        if (!a.transformed) {
            all.push_back(whole);
            continue;
        }
        const int64_t m = wht_factor_order(a.factor), n = a.length / m;
        if (n > 1) {
            all.push_back(whole.every(1, n));
            all.back().kind = wht_lines_kind::bits;
        }
        if (m > 1) {
            all.push_back(whole.every(n, m));
            all.back().kind = wht_lines_kind::factor;
            all.back().factor = a.factor;
        }
    }
    std::reverse(all.begin(), all.end());
    return all;
}

class pass_maker {
public:
    /// `share`: bytes of the tensor for each thread.
    pass_maker(const wht_problem &problem, scalar type, int64_t share, bool through_y)
        : p(problem), arithmetic(type),
          parts(problem.x == scalar::c64 || problem.x == scalar::c128 ? 2 : 1),
          size(scalar_bytes(type)),
          room(std::clamp(share, cpu::wht_lines_l1_bytes, cpu::wht_lines_l2_bytes) / size),
          pieces(pieces_of(problem, through_y)) {}

    bool finished() const {
        return std::all_of(pieces.begin(), pieces.end(), [](const piece &i) { return i.done; });
    }

    /// "" and the next pass, or why there is none.
    verdict next(bool first, wht_lines_pass *out) {
        for (piece &i : pieces) {
            i.in_tile = i.active = false;
            i.taken = 1;
        }
        across = SIZE_MAX;
        take_innermost();
        const verdict why = activate();
        if (!why.empty()) return why;
        widen();
        for (piece &i : pieces) i.done = i.done || i.active;
        out->first = first;
        out->last = finished();
        if (!write(*out))
            return text("its ", p.axes, " axes do not merge; a pass takes ",
                        cpu::wht_lines_max_outer, " outside a tile and ", cpu::wht_lines_max_tile,
                        " within");
        return "";
    }

private:
    const wht_problem &p;
    const scalar arithmetic;
    const int64_t parts, size; ///< numbers of an element, bytes of a number
    const int64_t room;        ///< numbers of a tile
    std::vector<piece> pieces; ///< outermost first
    size_t across = 0;         ///< the piece that stands innermost in the tile, if there is one
    static constexpr int64_t vector = cpu::wht_lines_vector;

    int64_t run_elements() const { return cpu::wht_lines_run_bytes / (size * parts); }

    int64_t tile_numbers() const {
        int64_t n = parts;
        for (const piece &i : pieces) n *= i.taken;
        return n;
    }

    /// Cuts a piece of bits in two: the lower `length` stand at index + 1.
    void divide(size_t index, int64_t length) {
        const piece whole = pieces[index];
        pieces[index] = whole.every(length, whole.length / length);
        pieces.insert(pieces.begin() + static_cast<std::ptrdiff_t>(index) + 1,
                      whole.every(1, length));
    }

    /// The axes that make lines of contiguous memory long enough, whether transformed or not.
    void take_innermost() {
        int64_t run = 1;
        for (size_t i = pieces.size(); i-- > 0 && run < run_elements();) {
            if (pieces[i].y != run) return;
            const bool power = is_power(pieces[i].length);
            if (!power && (run > 1 || pieces[i].kind != wht_lines_kind::batch)) return;
            const int64_t most = run_elements() / run;
            if (pieces[i].length > most && pieces[i].kind == wht_lines_kind::bits) {
                if (!pieces[i].done) return; // a line by itself
                divide(i, most);
                ++i;
            }
            pieces[i].in_tile = true;
            pieces[i].taken = std::min(pieces[i].length, most);
            run *= pieces[i].length;
            if (!power) return;
        }
    }

    /// The pieces that this pass transforms.
    verdict activate() {
        int64_t left = 1; // by this pass and later ones
        for (const piece &i : pieces)
            if (!i.done && !i.in_tile) left *= i.length;
        // A tile of a later pass has short lines. This pass does what those leave, at least L1.
        const int64_t later = std::max<int64_t>(2, room / (run_elements() * parts));
        const int64_t numbers = tile_numbers();
        int64_t most = room;
        if (left > room / numbers) {
            int64_t rest = left;
            while (rest > room / numbers) rest = (rest + later - 1) / later;
            const int64_t enough = cpu::wht_lines_l1_bytes / size / numbers;
            most = std::min(room, numbers * std::max({rest, enough, int64_t{2}}));
        }
        bool any = false;
        for (size_t i = pieces.size(); i-- > 0;) {
            if (pieces[i].done) continue;
            bool divided = false;
            const int64_t now = tile_numbers();
            if (!pieces[i].in_tile && now * pieces[i].length > most) {
                if (pieces[i].kind == wht_lines_kind::bits && p.order == wht_order::natural) {
                    if (any && most / now < 2) break;
                    divide(i, floor_power(std::max<int64_t>(most / now, 2)));
                    ++i;
                    divided = true;
                } else if (any) {
                    break;
                } else if (now * pieces[i].length > most_ordered_bytes / size) {
                    return text(
                        "n=", pieces[i].length,
                        " in order=", p.order == wht_order::sequency ? "sequency" : "dyadic",
                        " is longer than a tile; needs at most ", most_ordered_bytes / size / now);
                }
            }
            pieces[i].in_tile = pieces[i].active = any = true;
            pieces[i].taken = pieces[i].length;
            if (divided) break;
        }
        return "";
    }

    /// More of the batch: longer lines, then more transforms, until L1 is used.
    void widen() {
        if (pieces.empty()) return;
        const int64_t most = cpu::wht_lines_l1_bytes / size;
        piece &inner = pieces.back();
        if (inner.in_tile && !inner.active && inner.taken < inner.length)
            inner.taken =
                std::max(inner.taken,
                         std::min(inner.length, floor_power(most * inner.taken / tile_numbers())));
        // A factor stands at a distance of whole vectors: if need be, beside other transforms.
        int64_t numbers = parts, least = 1;
        bool factor = false;
        for (const piece &i : pieces) {
            const bool this_one = i.active && i.kind == wht_lines_kind::factor;
            factor = factor || this_one;
            if (!this_one) numbers *= i.taken;
        }
        const bool aside = factor && numbers < vector;
        if (aside) least = vector / parts;
        for (size_t i = pieces.size(); i-- > 0;) {
            piece &more = pieces[i];
            if (more.in_tile) continue;
            more.in_tile = true;
            int64_t want = std::max({least, most / tile_numbers(), int64_t{1}});
            if (want < more.length) want = floor_power(want);
            more.taken = std::min(more.length, want);
            if (aside) across = i;
            return;
        }
    }

    bool write(wht_lines_pass &pass) {
        wht_lines_args &a = pass.args;
        a = wht_lines_args{};
        a.x_type = pass.first ? p.x : between_type();
        a.y_type = pass.last ? p.y : between_type();
        a.arithmetic = arithmetic;
        a.diag_type = p.diag;
        a.parts = static_cast<int32_t>(parts);
        a.order = p.order;
        a.adjoint = p.adjoint;
        a.signs_first = !p.adjoint;
        a.diag_first = p.adjoint;
        a.clear = pass.first;
        a.scale = pass.last ? p.scale : 1;
        return write_tile(pass) && write_outer(pass);
    }

    /// Whole numbers stay what they are in Y: what does not fit there is seen.
    scalar between_type() const {
        if (arithmetic == scalar::i32) return p.y;
        if (arithmetic == scalar::i64) return behind(p) ? arithmetic : p.y;
        if (arithmetic == scalar::f32) return parts == 2 ? scalar::c64 : scalar::f32;
        return parts == 2 ? scalar::c128 : scalar::f64;
    }

    wht_lines_axis axis_of(const wht_lines_pass &pass, const piece &i) const {
        return {i.length, pass.first ? i.x : i.between, pass.last ? i.y : i.between, i.signs,
                i.diag};
    }

    /// From the innermost outwards: in the order of memory where that keeps distances of factors,
    /// and behind other lengths than powers of two, whole vectors.
    bool write_tile(wht_lines_pass &pass) {
        wht_lines_args &a = pass.args;
        int64_t pitch = parts;
        pass.additions = 0;
        bool fits = true;
        const auto add = [&](size_t index) {
            const piece &i = pieces[index];
            if (a.tile_axes == cpu::wht_lines_max_tile) return false;
            const wht_lines_axis at = axis_of(pass, i);
            const wht_lines_kind kind = i.active ? i.kind : wht_lines_kind::batch;
            a.tile[a.tile_axes++] = {i.taken,        at.x_stride, at.y_stride, at.signs_stride,
                                     at.diag_stride, pitch,       kind,        i.factor};
            if (i.taken < i.length) {
                const int64_t whole = (i.length - 1) / i.taken * i.taken;
                a.cut[a.cuts++] = {static_cast<int32_t>(index), a.tile_axes - 1, i.length - whole};
            }
            if (i.active)
                pass.additions += i.kind == wht_lines_kind::bits
                                      ? std::log2(static_cast<double>(i.taken))
                                      : static_cast<double>(i.taken) / 4 + 5;
            pitch *= i.taken;
            if (!is_power(pitch))
                pitch = pitch < vector ? 2 * floor_power(pitch) : round_up(pitch, vector);
            return true;
        };
        // Beside a factor and almost nothing else, vectors of transforms: what widen() took.
        std::vector<size_t> postponed;
        if (across < pieces.size()) fits = fits && add(across);
        // What would stand at a distance of no whole vectors waits until the others are placed.
        for (size_t i = pieces.size(); i-- > 0;) {
            if (!pieces[i].in_tile || i == across) continue;
            const bool factor = pieces[i].active && pieces[i].kind == wht_lines_kind::factor;
            const bool small = is_power(pieces[i].taken) && !factor;
            if (small || pitch % vector == 0 || (a.tile_axes == 0 && !factor))
                fits = fits && add(i);
            else
                postponed.push_back(i);
        }
        for (const bool factors : {false, true}) {
            for (const size_t i : postponed)
                if (factors == (pieces[i].active && pieces[i].kind == wht_lines_kind::factor))
                    fits = fits && add(i);
            pitch = round_up(pitch, vector);
        }
        a.tile_size = pitch;
        return fits;
    }

    /// The axes along which tiles stand; those that lie packed behind one another are one.
    bool write_outer(wht_lines_pass &pass) {
        wht_lines_args &a = pass.args;
        std::vector<piece> outer;
        bool divided = true; // the last of them has pieces of different lengths, or is none
        cpu::wht_lines_cut cuts[2];
        int kept = 0;
        for (size_t i = 0; i < pieces.size(); ++i) {
            const piece &here = pieces[i];
            if (here.in_tile && here.taken == here.length) continue;
            const piece now =
                here.in_tile ? here.every(here.taken, (here.length - 1) / here.taken + 1) : here;
            const bool uneven = here.in_tile && here.length % here.taken != 0;
            if (!divided && !uneven && outer.back().behind(now)) {
                const int64_t length = outer.back().length;
                outer.back() = now;
                outer.back().length *= length;
            } else {
                outer.push_back(now);
            }
            divided = uneven;
            if (uneven)
                for (int c = 0; c < a.cuts; ++c)
                    if (a.cut[c].outer == static_cast<int32_t>(i))
                        cuts[kept++] = {static_cast<int32_t>(outer.size()) - 1, a.cut[c].tile,
                                        a.cut[c].last};
        }
        a.cuts = kept;
        std::copy(cuts, cuts + kept, a.cut);
        if (outer.size() > static_cast<size_t>(cpu::wht_lines_max_outer)) return false;
        for (const piece &i : outer) a.outer[a.outer_axes++] = axis_of(pass, i);
        return true;
    }
};

} // namespace

verdict wht_as_lines(const problem &problem, int threads, wht_lines_plan *out) {
    if (problem.empty) return "the problem is empty: there is nothing to run";
    const wht_problem &p = problem.wht();
    wht_lines_plan &plan = *out;
    plan.arithmetic = cpu::wht_lines_arithmetic(p.x, p.y, p.overflow);
    if (plan.arithmetic == scalar::none)
        return text("x is ", scalar_name(p.x), " and y ", scalar_name(p.y),
                    "; there is no kernel for this pair");
    for (int i = 0; i < p.axes; ++i) {
        const int m = wht_factor_order(p.axis[i].factor);
        if (m < 1 || (m > 1 && (m % 4 != 0 || p.axis[i].factor > wht_factor::h40)))
            return text("axis ", i, " has a factor matrix that the kernel does not know");
        plan.elements = try_mul(plan.elements, p.axis[i].length).value_or(most_bytes);
        if (plan.elements >= most_bytes) return "it has more elements than any process reaches";
    }
    const bool complex = p.x == scalar::c64 || p.x == scalar::c128;
    const int64_t number_bytes = scalar_bytes(plan.arithmetic) * (complex ? 2 : 1);
    const int64_t bytes = plan.elements * number_bytes;
    plan.team = cpu::wht_lines_team(bytes, threads);
    const bool integer = plan.arithmetic == scalar::i32 || plan.arithmetic == scalar::i64;
    const bool through_y = (integer && !behind(p)) || number_bytes == scalar_bytes(p.y);
    pass_maker make(p, plan.arithmetic, bytes / plan.team, through_y);
    do {
        wht_lines_pass pass;
        const verdict why = make.next(plan.passes.empty(), &pass);
        if (!why.empty()) return why;
        plan.scratch_bytes =
            std::max(plan.scratch_bytes,
                     cpu::wht_lines_scratch_bytes(pass.args.tile_size, plan.arithmetic, plan.team));
        plan.passes.push_back(pass);
    } while (!make.finished());
    if (plan.passes.size() > 1 && !through_y) plan.between_bytes = bytes;
    return "";
}

} // namespace plait::impl
