// What wht.cuda.composed does before the passes: clears, ROWS, the input side, big factors.
#include "src/core/text.h"
#include "src/planner/wht_composed.h"
#include "src/planner/wht_walks.h"

namespace plait::impl {

void wht_composer::add_resets() {
    if (p_.overflow) reset(role_operand(PLAIT_OVERFLOW, true), 4);
    if (p_.status) reset(role_operand(PLAIT_STATUS, true), 4);
    const int64_t groups = transforms() * p_.groups;
    if ((p_.amax != scalar::none || p_.scales) && groups > 0)
        reset(work(largest, true), groups * wht_largest_bytes(w_));
    if (p_.bins == 0) return;
    wht_way<1> way;
    for (int a = 0; a < p_.axes; ++a)
        if (!p_.axis[a].transformed)
            way.push_back({p_.axis[a].length, {p_.axis[a].histogram_stride}});
    way.push_back({p_.bins, {p_.bin_stride}});
    wht_clear_args args{};
    if (!make_walk<1>(way, wht_walk_tile, &args.walk)) refusal = "its axes do not merge";
    if (args.walk.tiles == 0) return;
    moves(add("wht.clear", "i64", step_args(args), {role_operand(PLAIT_HISTOGRAM, true)},
              args.walk.tiles),
          0, touched(PLAIT_HISTOGRAM));
}

void wht_composer::add_rows() {
    if (p_.rows_type == scalar::none) return;
    const int64_t n = elements() / transforms(), bytes = p_.rows * scalar_bytes(p_.rows_type);
    if (p_.status) {
        wht_rows_status_args args{};
        args.places = n;
        args.count = p_.rows;
        args.stride = p_.index_stride;
        args.type = p_.rows_type;
        moves(add("wht.rows_status", "i32", step_args(args),
                  {role_operand(PLAIT_ROWS, false), role_operand(PLAIT_STATUS, true)},
                  (p_.rows + wht_walk_threads - 1) / wht_walk_threads),
              bytes, 4);
    }
    if (!scatter_) return;
    wht_chains_args args{};
    args.places = n;
    args.count = p_.rows;
    args.stride = p_.index_stride;
    args.type = p_.rows_type;
    // A warp has 32 places or more, and there are no more warps than run at a time.
    const int64_t warps = std::min<int64_t>((n + 31) / 32, int64_t{device_.sms} * 32);
    args.warps = static_cast<int32_t>(warps);
    moves(add("wht.chains", "i64", step_args(args),
              {role_operand(PLAIT_ROWS, false), work(chains, true)},
              (warps * 32 + wht_walk_threads - 1) / wht_walk_threads),
          bytes, 8 * (n + p_.rows));
}

void wht_composer::add_front(bool second) {
    if (!second && !widens()) return;
    wht_source source{};
    source.x = second ? w_ : p_.x;
    source.w = w_;
    const bool diag_in = !p_.adjoint && p_.diag_in != scalar::none;
    plait_role diag = p_.adjoint ? PLAIT_DIAG : PLAIT_DIAG_IN;
    int64_t wht_axis::*diag_stride =
        p_.adjoint ? &wht_axis::diag_stride : &wht_axis::diag_in_stride;
    if (!second) {
        source.diag = p_.adjoint ? p_.diag : diag_in ? p_.diag_in : scalar::none;
        source.signs = p_.signs && !p_.adjoint;
        source.gathers = scatter_;
        source.x_step = p_.row_stride;
    } else if (p_.adjoint) {
        source.diag = p_.diag_mid;
        diag = PLAIT_DIAG_MID;
        diag_stride = &wht_axis::diag_mid_stride;
    }
    source.conj = p_.adjoint;

    bool from_x = !second;
    const bool in_y = !second && begins_in_y();
    const auto way_but = [&](const wht_index_axis *matrix) {
        wht_way<wht_widen_tensors> way;
        if (halves_ && !from_x) way.push_back({2, {elements(), elements(), 0, 0, 0}});
        for (const wht_index_axis &i : index_) {
            if (&i == matrix) continue;
            const wht_axis &a = i.axis;
            way.push_back({a.length,
                           {in_y ? a.y_stride : i.w_stride,
                            from_x ? source.gathers && a.transformed ? 0 : a.x_stride : i.w_stride,
                            source.signs ? a.signs_stride : 0,
                            source.diag != scalar::none ? a.*diag_stride : 0,
                            source.gathers && a.transformed ? 1 : 0}});
        }
        return way;
    };
    const auto operands = [&] {
        return std::vector<operand>{from_x ? role_operand(PLAIT_X, false) : work(numbers, false),
                                    in_y ? role_operand(PLAIT_Y, true) : work(numbers, true),
                                    role(PLAIT_SIGNS, source.signs),
                                    role(diag, source.diag != scalar::none),
                                    role(PLAIT_OVERFLOW, p_.overflow, true)};
    };
    const auto too_many = [&] { refusal = text("its ", p_.axes, " axes do not merge"); };
    const int64_t bytes = kept() * scalar_bytes(w_);
    const int64_t source_bytes = touched(PLAIT_X);
    if (scatter_ && !second) {
        // Places of a matrix's axis count as one with those of its bits.
        wht_widen_args args{};
        args.source = source;
        args.places = elements() / transforms();
        args.half = halves_ ? elements() : 0;
        wht_way<wht_widen_tensors> way = way_but(nullptr);
        for (size_t i = 0; i < way.size(); ++i)
            if (index_[i].matrix) {
                way[i].stride[wht_widen_x] = 0;
                way[i].stride[wht_widen_place] = args.places / way[i].length;
            }
        if (!make_walk<wht_widen_tensors>(way, wht_tile_for(elements(), device_), &args.walk))
            return too_many();
        std::vector<operand> all = operands();
        all.push_back(work(chains, false));
        moves(add("wht.widen", number_name(), step_args(args), std::move(all), args.walk.tiles),
              source_bytes + 8 * (args.places + p_.rows), bytes);
    } else if (!matrices() || halves_) {
        wht_widen_args args{};
        args.source = source;
        args.half = halves_ ? elements() : 0;
        if (!make_walk<wht_widen_tensors>(way_but(nullptr), wht_tile_for(elements(), device_),
                                          &args.walk))
            return too_many();
        std::vector<operand> all = operands();
        all.push_back(operand{});
        moves(add("wht.widen", number_name(), step_args(args), std::move(all), args.walk.tiles),
              source_bytes + (source.diag != scalar::none ? touched(diag) : 0), bytes);
    }
    if ((scatter_ || halves_) && !second) {
        from_x = false;
        source = wht_source{w_, w_, scalar::none, false, false, false, 0};
    }
    const wht_any_number number = wht_any_number_of(w_, w_, p_.overflow && !gather_ && !halves_);
    for (const wht_index_axis &i : index_) {
        if (!i.matrix) continue;
        wht_factor_args args{};
        args.source = source;
        args.order = static_cast<int32_t>(i.axis.length);
        const bool given = i.axis.factor == wht_factor::given;
        if (!given) args.rule = wht_factor_rule_of(i.axis.factor);
        std::copy(p_.given_stride, p_.given_stride + 2, args.matrix_stride);
        args.transposed = p_.adjoint;
        const int number_bytes = scalar_bytes(w_);
        for (args.bits = 5; args.bits > 0; --args.bits)
            if (wht_factor_signs_at(args, number_bytes) <= wht_factor_most_bytes) break;
        // The lines of a walk and what the system takes stand beside it.
        args.products = w_ == scalar::f32 && args.bits == 5;
        args.products =
            args.products && wht_factor_smem(args, number_bytes) + 12288 <= device_.smem_per_block;
        const wht_axis &a = i.axis;
        const int64_t strides[] = {i.w_stride, from_x ? a.x_stride : i.w_stride,
                                   source.signs ? a.signs_stride : 0,
                                   source.diag != scalar::none ? a.*diag_stride : 0, 0};
        std::copy(strides, strides + wht_widen_tensors, args.step);
        if (!make_walk<wht_widen_tensors>(way_but(&i), 1 << args.bits, &args.walk))
            return too_many();
        args.along = args.walk.length == 1 || args.step[wht_widen_x] < args.walk.step[wht_widen_x];
        std::vector<operand> all = operands();
        all.push_back(role(PLAIT_FACTOR, given));
        step &s = add("wht.factor", wht_any_number_name(number), step_args(args), std::move(all),
                      args.walk.tiles);
        s.smem_bytes = wht_factor_smem(args, number_bytes);
        // No more blocks than run together: each makes the table of the matrix.
        const int64_t together =
            std::clamp<int64_t>(device_.smem_per_sm / (s.smem_bytes + 12288), 1, 4);
        s.grid = std::min(s.grid, device_.sms * together);
        const int64_t parts = w_ == scalar::c64 || w_ == scalar::c128 ? 2 : 1;
        moves(s, from_x ? source_bytes : bytes, bytes, kept() * parts * (args.order - 1));
        from_x = false; // the next one takes what this one left
        source = wht_source{w_, w_, scalar::none, false, false, false, 0};
    }
}

} // namespace plait::impl
