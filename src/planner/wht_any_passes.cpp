#include "src/planner/wht_any_passes.h"

#include "lib/common/factor_matrices.h"
#include "src/core/text.h"
#include "src/planner/wht_any_tile.h"

#include <algorithm>

namespace plait::impl {

namespace {

constexpr int64_t most_elements = int64_t{1} << 46;
constexpr int64_t tile_bytes = 65536; // three blocks run on an SM of an H200

class planner_of_passes : private wht_any_tile {
public:
    using wht_any_tile::wht_any_tile;

    wht_any_plan make() {
        wht_any_plan plan;
        plan.number = number_;
        plan.elements = elements_;
        for (bool last = false; !last;) {
            const bool first = plan.passes.empty();
            last = gather(first, true);
            if (!last && !gather(first, false)) {
                plan.refusal = "its stages do not fit into tiles";
                return plan;
            }
            fill_up();
            wht_any_pass pass;
            pass.from_work = !first && work_;
            pass.to_work = !last && work_;
            if (!write(pass, first, last)) {
                plan.refusal = text("its axes leave more than ", wht_any_most_digits,
                                    " digits of the number of a tile");
                return plan;
            }
            plan.uses_work = plan.uses_work || pass.to_work;
            finish();
            plan.passes.push_back(pass);
        }
        return plan;
    }

private:
    wht_any_extra extra(wht_any_side side, bool first, bool last) const {
        if (side == wht_any_in ? !first : !last) return wht_any_extra::none;
        const bool signs_here = p_.adjoint == (side == wht_any_out);
        if (signs_here) return p_.signs ? wht_any_extra::signs : wht_any_extra::none;
        return p_.diag != scalar::none ? wht_any_extra::diag : wht_any_extra::none;
    }

    /// What `step` indices of an axis add.
    wht_any_stride axis_stride(const wht_any_atom &a, wht_any_side side, bool first,
                               bool last) const {
        const wht_axis &ax = p_.axis[a.axis];
        wht_any_stride s{};
        const bool work = work_ && (side == wht_any_in ? !first : !last);
        s.data = work ? a.work_stride
                      : a.step * (side == wht_any_in && first ? ax.x_stride : ax.y_stride);
        const wht_any_extra e = extra(side, first, last);
        if (e == wht_any_extra::signs) s.extra = a.step * ax.signs_stride;
        if (e == wht_any_extra::diag) s.extra = a.step * ax.diag_stride;
        return s;
    }

    bool write(wht_any_pass &pass, bool first, bool last) {
        wht_any_args &args = pass.args;
        args.type[wht_any_in] = first ? p_.x : work_ ? wht_any_number_type(number_) : p_.y;
        args.type[wht_any_out] = last || !work_ ? p_.y : wht_any_number_type(number_);
        args.diag_type = p_.diag;
        args.negate_diag = p_.adjoint;
        args.scale = last ? p_.scale : 1.0;
        args.order = ordered(last) ? p_.order : wht_order::natural;
        for (const wht_any_side side : {wht_any_in, wht_any_out})
            args.extra[side] = extra(side, first, last);
        write_axes(args, first, last);
        write_bits(args, first, last);
        write_stages(args);
        write_factor(args, first, last);
        for (const wht_any_side side : {wht_any_in, wht_any_out})
            pass.elements[side] = run_of(side);
        return write_digits(args, first, last);
    }

    void write_axes(wht_any_args &args, bool first, bool last) {
        order_axis_.assign(static_cast<size_t>(p_.axes), -1);
        if (!ordered(last)) return;
        for (const wht_any_atom &a : atoms_) {
            int &number = order_axis_[static_cast<size_t>(a.axis)];
            if (!a.transformed || number >= 0) continue; // the first is the axis's lowest bit
            number = args.axes++;
            args.axis[number] = {axis_stride(a, wht_any_out, first, last), bits_of(a.axis)};
        }
    }

    void write_bits(wht_any_args &args, bool first, bool last) {
        slot_.assign(atoms_.size(), -1);
        for (const auto &[distance, a] : sorted_[wht_any_in]) {
            (void)distance;
            if (!a->taken || a->factor) continue;
            slot_[index_of(a)] = args.bits;
            if (a->chunk_bits > 0)
                args.chunk[args.chunks++] = {a->length, static_cast<int16_t>(args.bits),
                                             static_cast<int16_t>(a->chunk_bits)};
            for (int b = 0; b < (a->bit ? 1 : a->chunk_bits); ++b) {
                wht_any_bit &bit = args.bit[args.bits++];
                for (const wht_any_side side : {wht_any_in, wht_any_out}) {
                    bit.stride[side] = axis_stride(*a, side, first, last);
                    bit.stride[side].data <<= b;
                    bit.stride[side].extra <<= b;
                }
                bit.axis = a->transformed ? order_axis_[static_cast<size_t>(a->axis)] : -1;
                if (bit.axis >= 0)
                    bit.row = wht_any_row(p_.order, int64_t{1} << a->low, bits_of(a->axis));
            }
        }
        for (const wht_any_side side : {wht_any_in, wht_any_out}) {
            int at = 0;
            for (const auto &[distance, a] : sorted_[side]) {
                (void)distance;
                const int slot = slot_[index_of(a)];
                for (int b = 0; slot >= 0 && b < (a->bit ? 1 : a->chunk_bits); ++b)
                    args.side[side][at++] = static_cast<uint8_t>(slot + b);
            }
        }
    }

    size_t index_of(const wht_any_atom *a) const { return static_cast<size_t>(a - atoms_.data()); }

    void write_stages(wht_any_args &args) {
        args.before = -1;
        for (const wht_any_atom &a : atoms_) {
            if (!a.now) continue;
            if (a.factor)
                args.before = args.stages;
            else
                args.stage[args.stages++] = static_cast<uint8_t>(slot_[index_of(&a)]);
        }
        if (args.before < 0) args.before = args.stages;
        std::copy(args.stage, args.stage + args.stages, args.sorted);
        const auto sort_rounds = [&](int begin, int end) {
            for (; begin < end; begin += wht_any_round)
                std::sort(args.sorted + begin, args.sorted + std::min(begin + wht_any_round, end));
        };
        sort_rounds(0, args.before);
        sort_rounds(args.before, args.stages);
    }

    void write_factor(wht_any_args &args, bool first, bool last) {
        args.factor = 1;
        if (!factor_) return;
        const wht_factor_table t = make_wht_factor_table(p_.axis[factor_->axis].factor);
        args.factor = t.order;
        for (int k = 0; k < t.order; ++k)
            for (int j = 0; j < t.order; ++j)
                if ((p_.adjoint ? t.sign[j * t.order + k] : t.sign[k * t.order + j]) < 0)
                    args.minus[k] |= uint64_t{1} << j;
        for (const wht_any_side side : {wht_any_in, wht_any_out}) {
            args.factor_stride[side] = axis_stride(*factor_, side, first, last);
            const int64_t own = stride(*factor_, side, first, last);
            args.factor_first[side] = own > 0;
            for (const wht_any_atom &a : atoms_)
                if (a.taken && !a.factor && stride(a, side, first, last) != 0 &&
                    stride(a, side, first, last) < own)
                    args.factor_first[side] = false;
        }
    }

    /// Elements of a tile that lie in a row: what the accesses of a warp cost.
    int64_t run_of(wht_any_side side) const {
        int64_t run = 1;
        for (const auto &[distance, a] : sorted_[side]) {
            if (!a->taken || distance != run) break;
            run *= a->chunk_bits > 0 ? std::min(a->length, int64_t{1} << a->chunk_bits) : a->length;
        }
        return run;
    }

    /// What is not in the tile; neighbouring bits of an axis are one digit.
    bool write_digits(wht_any_args &args, bool first, bool last) {
        std::vector<wht_any_digit> digits;
        int chunk = 0;
        const wht_any_atom *before =
            nullptr; // the atom inside, when it is a part of the last digit
        for (const wht_any_atom &a : atoms_) {
            if (a.taken && a.chunk_bits == 0) {
                before = nullptr;
                continue;
            }
            if (before && before->axis == a.axis && a.chunk_bits == 0 && !a.factor) {
                digits.back().length *= a.length;
                before = &a;
                continue;
            }
            wht_any_digit d{};
            d.length = a.length;
            d.axis =
                static_cast<int16_t>(a.transformed ? order_axis_[static_cast<size_t>(a.axis)] : -1);
            d.low = static_cast<int16_t>(a.low);
            d.chunk = -1;
            for (const wht_any_side side : {wht_any_in, wht_any_out})
                d.stride[side] = axis_stride(a, side, first, last);
            if (a.chunk_bits > 0) {
                while (args.chunk[chunk].low != slot_[index_of(&a)])
                    chunk = (chunk + 1) % wht_any_most_chunks;
                d.chunk = static_cast<int16_t>(chunk);
                d.length = ((a.length - 1) >> a.chunk_bits) + 1;
                for (wht_any_stride &s : d.stride) {
                    s.data <<= a.chunk_bits;
                    s.extra <<= a.chunk_bits;
                }
            }
            digits.push_back(d);
            before = a.bit ? &a : nullptr;
        }
        if (digits.size() > wht_any_most_digits) return false;
        std::stable_sort(digits.begin(), digits.end(),
                         [](const wht_any_digit &a, const wht_any_digit &b) {
                             return a.stride[wht_any_in].data < b.stride[wht_any_in].data;
                         });
        args.tiles = 1;
        for (wht_any_digit &d : digits) {
            d.below = args.tiles;
            args.tiles *= d.length;
            args.digit[args.digits++] = d;
        }
        return true;
    }

    std::vector<int> order_axis_, slot_;
};

} // namespace

int wht_any_plan::smem_bytes(const wht_any_pass &p) const {
    return wht_any_memory_of(p.args, scalar_bytes(wht_any_number_type(number))).bytes;
}

wht_any_plan plan_wht_any(const wht_problem &p, const profile &device) {
    wht_any_plan best;
    best.number = wht_any_number_of(p);
    for (int a = 0; a < p.axes; ++a)
        if (p.axis[a].length == 0) return best; // only OVERFLOW is left to clear: no passes
    int64_t elements = 1;
    for (int a = 0; a < p.axes; ++a) {
        if (elements > most_elements / p.axis[a].length) {
            best.refusal = text("it has more than ", most_elements, " elements");
            return best;
        }
        elements *= p.axis[a].length;
        const int order = wht_factor_order(p.axis[a].factor);
        if (p.axis[a].transformed && (order < 1 || order > wht_any_most_factor)) {
            best.refusal = text("n=", p.axis[a].length, " has a factor matrix of order ", order,
                                "; needs one up to ", wht_any_most_factor);
            return best;
        }
    }
    // The fewest passes; of those the smallest tiles, so that the passes share the stages.
    const wht_any_number number = wht_any_number_of(p);
    const int bytes = scalar_bytes(wht_any_number_type(number));
    const auto plan_with = [&](int log_cap) {
        wht_any_plan plan = planner_of_passes(p, device, int64_t{1} << log_cap).make();
        for (const wht_any_pass &pass : plan.passes)
            if (plan.smem_bytes(pass) + int{sizeof(wht_any_place)} > device.smem_per_block)
                plan.refusal = text("a tile takes more than the ", device.smem_per_block,
                                    " bytes of shared memory of a block");
        return plan;
    };
    int log_cap = 11;
    best = plan_with(log_cap);
    if (best.refusal.empty() && best.passes.size() == 1) return best;
    const int top = wht_any_bits(tile_bytes / bytes);
    const wht_any_plan roomy = plan_with(top);
    if (!roomy.refusal.empty()) return best;
    while (!best.refusal.empty() || best.passes.size() > roomy.passes.size())
        best = ++log_cap < top ? plan_with(log_cap) : roomy;
    return best;
}

} // namespace plait::impl
