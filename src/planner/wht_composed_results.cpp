// What wht.cuda.composed does behind the passes: Y, AMAX, SCALES, HISTOGRAM.
#include "src/core/text.h"
#include "src/planner/wht_any_tile.h"
#include "src/planner/wht_composed.h"
#include "src/planner/wht_walks.h"

namespace plait::impl {

/// Time of a result that is counted, in additions of wht.factor: an H200 with 2^26 of them.
static constexpr int64_t histogram_additions = 28;

void wht_composer::add_finish() {
    wht_finish_args args{};
    args.w_type = w_;
    args.y_type = p_.y;
    const bool diag_in = p_.adjoint && p_.diag_in != scalar::none,
               signs = halves_ && p_.adjoint && p_.signs,
               sized = p_.amax != scalar::none || p_.scales;
    args.diag_type = diag_in ? p_.diag_in : scalar::none;
    args.rows_type = gather_ ? p_.rows_type : scalar::none;
    args.places = elements() / transforms();
    args.half = halves_ ? elements() : 0;
    args.signs = signs;
    args.bins = p_.bins;
    args.first_bin = p_.first_bin;
    args.bin_width = p_.bin_width;
    args.bin_stride = p_.bin_stride;
    args.bin_shift = (p_.bin_width & (p_.bin_width - 1)) == 0 ? wht_any_bits(p_.bin_width) : -1;

    // Strides of groups among themselves, from the innermost batch axis outwards.
    wht_way<wht_finish_tensors> way;
    int64_t group = p_.groups, packed = 1;
    bool placed = false; // the axis that ROWS replaces
    const auto results_axis = [&](wht_walk_axis<wht_finish_tensors> axis) {
        if (p_.groups == 1) return way.push_back(axis);
        wht_walk_axis<wht_finish_tensors> outer = axis;
        axis.length = p_.group_length;
        outer.length = p_.groups;
        for (int64_t &s : outer.stride) s *= p_.group_length;
        outer.stride[wht_finish_group] = 1;
        way.push_back(axis); // innermost first
        way.push_back(outer);
    };
    const auto gathered = [&] {
        results_axis({p_.rows, {0, p_.row_stride, 0, 0, 0, p_.index_stride}});
        placed = true;
    };
    const auto side = [&](const wht_axis &a) {
        return diag_in ? a.diag_in_stride : signs ? a.signs_stride : 0;
    };
    const bool one =
        std::any_of(p_.axis, p_.axis + p_.axes, [](const wht_axis &a) { return a.transformed; });
    if (gather_ && !one) gathered(); // transforms of one element
    for (int i = p_.axes; i-- > 0;) {
        const wht_axis &a = p_.axis[i];
        const int64_t w = in_y() ? a.y_stride : packed;
        packed *= a.length;
        if (!a.transformed) {
            way.push_back(
                {a.length, {w, a.y_stride, side(a), sized ? group : 0, a.histogram_stride, 0}});
            group *= a.length;
        } else if (gather_) {
            args.place_step = w;
            gathered();
        } else {
            results_axis({a.length, {w, a.y_stride, side(a), 0, 0, 0}});
        }
    }
    std::reverse(way.begin(), way.end());
    if (!make_walk<wht_finish_tensors>(way, wht_tile_for(results(), device_), &args.walk)) {
        refusal = text("its ", p_.axes, " axes do not merge");
        return;
    }
    const int64_t read = results() * scalar_bytes(w_) * (halves_ ? 2 : 1);
    const auto walk = [&](bool size, bool scaled, bool store) {
        args.stores = store;
        step &s =
            add("wht.finish", number_name(), step_args(args),
                {in_y() ? role_operand(PLAIT_Y, false) : work(numbers, false),
                 role(PLAIT_Y, store, true),
                 role(signs ? PLAIT_SIGNS : PLAIT_DIAG_IN, diag_in || signs),
                 role(PLAIT_OVERFLOW, p_.overflow, true), role(PLAIT_ROWS, gather_),
                 size ? work(largest, true) : operand{}, scaled ? work(dense, false) : operand{},
                 role(PLAIT_HISTOGRAM, p_.bins > 0, true)},
                args.walk.tiles);
        moves(s, read + (gather_ ? touched(PLAIT_ROWS) : 0),
              (size ? transforms() * p_.groups * wht_largest_bytes(w_) : 0) +
                  (store ? results() * scalar_bytes(p_.y) : 0) + touched(PLAIT_HISTOGRAM),
              p_.bins > 0 ? results() * histogram_additions : 0);
    };
    if (p_.scales) {
        walk(true, false, false);
        add_groups();
        walk(false, true, true);
    } else {
        walk(sized, false, p_.stores && (!in_y() || side_in_y()));
    }
}

void wht_composer::add_groups() {
    wht_way<wht_groups_tensors> way;
    for (int a = 0; a < p_.axes; ++a)
        if (!p_.axis[a].transformed)
            way.push_back({p_.axis[a].length, {p_.axis[a].amax_stride, p_.axis[a].scales_stride}});
    way.push_back({p_.groups, {p_.amax_group_stride, p_.scales_group_stride}});
    wht_groups_args args{};
    args.w_type = w_;
    args.amax_type = p_.amax;
    const int64_t groups = transforms() * p_.groups;
    if (!make_walk<wht_groups_tensors>(way, wht_tile_for(groups, device_), &args.walk))
        refusal = "its axes do not merge";
    if (args.walk.tiles == 0 || !refusal.empty()) return;
    const bool amax = p_.amax != scalar::none;
    moves(add("wht.groups", "any", step_args(args),
              {work(largest, false), role(PLAIT_AMAX, amax, true),
               role(PLAIT_SCALES, p_.scales, true), p_.scales ? work(dense, true) : operand{}},
              args.walk.tiles),
          groups * wht_largest_bytes(w_),
          groups * ((amax ? scalar_bytes(p_.amax) : 0) + (p_.scales ? 8 : 0)));
}

} // namespace plait::impl
