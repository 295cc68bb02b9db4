// The normal form: what a Walsh-Hadamard descriptor means, without the ways to say it.
#include "lib/common/factor_matrices.h"
#include "src/core/checked.h"
#include "src/desc/wht.h"

#include <algorithm>

namespace plait::impl {

namespace {

// Kernels know the public enumerations by these numbers only.
constexpr bool same(plait_dtype a, scalar b) { return static_cast<int>(a) == static_cast<int>(b); }
static_assert(same(PLAIT_F64, scalar::f64) && same(PLAIT_F32, scalar::f32) &&
              same(PLAIT_F16, scalar::f16) && same(PLAIT_BF16, scalar::bf16) &&
              same(PLAIT_C128, scalar::c128) && same(PLAIT_C64, scalar::c64) &&
              same(PLAIT_I32, scalar::i32) && same(PLAIT_I64, scalar::i64) &&
              same(PLAIT_I8, scalar::i8) && same(PLAIT_I16, scalar::i16) &&
              same(PLAIT_E4M3, scalar::e4m3) && same(PLAIT_B1, scalar::b1));
constexpr bool same(plait_wht_order a, wht_order b) {
    return static_cast<int>(a) == static_cast<int>(b);
}
static_assert(same(PLAIT_NATURAL, wht_order::natural) &&
              same(PLAIT_SEQUENCY, wht_order::sequency) && same(PLAIT_DYADIC, wht_order::dyadic));
constexpr bool same(plait_wht_factor a, wht_factor b) {
    return static_cast<int>(a) == static_cast<int>(b);
}
static_assert(same(PLAIT_H1, wht_factor::h1) && same(PLAIT_H12_PALEY2, wht_factor::h12_paley2) &&
              same(PLAIT_H12_SLOANE, wht_factor::h12_sloane) &&
              same(PLAIT_H20_WILLIAMSON, wht_factor::h20_williamson) &&
              same(PLAIT_H28_WILLIAMSON, wht_factor::h28_williamson) &&
              same(PLAIT_H40, wht_factor::h40) && same(PLAIT_H4_REGULAR, wht_factor::h4_regular) &&
              same(PLAIT_H20_PALEY1, wht_factor::h20_paley1) &&
              same(PLAIT_H28_PALEY2, wht_factor::h28_paley2) &&
              same(PLAIT_H36_PALEY2, wht_factor::h36_paley2) &&
              same(PLAIT_H52_WILLIAMSON, wht_factor::h52_williamson) &&
              same(PLAIT_H60_PALEY1, wht_factor::h60_paley1) &&
              same(PLAIT_H108_PALEY1, wht_factor::h108_paley1) &&
              same(PLAIT_H116_WILLIAMSON, wht_factor::h116_williamson) &&
              same(PLAIT_H124_WILLIAMSON, wht_factor::h124_williamson) &&
              same(PLAIT_H140_PALEY1, wht_factor::h140_paley1) &&
              same(PLAIT_H156_WILLIAMSON, wht_factor::h156_williamson) &&
              same(PLAIT_H172_WILLIAMSON, wht_factor::h172_williamson));

/// Stepping once along the outer axis is the same as stepping inner.length times along the inner.
bool packed_behind(int64_t outer_stride, int64_t inner_stride, int64_t inner_length) {
    return try_mul(inner_stride, inner_length) == outer_stride;
}

bool mergeable(const wht_axis &outer, const wht_axis &inner, wht_order order) {
    if (outer.transformed != inner.transformed) return false;
    // H_a (x) H_b = H_ab in natural order only. The factor is outermost, so the outer axis may
    // have one: (H_m (x) H_a) (x) H_b = H_m (x) H_ab.
    if (inner.transformed && (order != wht_order::natural || inner.factor != wht_factor::h1))
        return false;
    return packed_behind(outer.x_stride, inner.x_stride, inner.length) &&
           packed_behind(outer.y_stride, inner.y_stride, inner.length) &&
           packed_behind(outer.signs_stride, inner.signs_stride, inner.length) &&
           packed_behind(outer.diag_stride, inner.diag_stride, inner.length) &&
           packed_behind(outer.diag_in_stride, inner.diag_in_stride, inner.length) &&
           packed_behind(outer.diag_mid_stride, inner.diag_mid_stride, inner.length) &&
           packed_behind(outer.amax_stride, inner.amax_stride, inner.length) &&
           packed_behind(outer.scales_stride, inner.scales_stride, inner.length) &&
           packed_behind(outer.histogram_stride, inner.histogram_stride, inner.length);
}

/// The index bits of one axis as runs inside and outside the mask, highest run first.
void split(const wht_axis &axis, uint64_t mask, std::vector<wht_axis> &out) {
    int high = 0;
    while ((axis.length >> high) > 1) ++high;
    while (high > 0) {
        const bool inside = mask >> (high - 1) & 1u;
        int low = high - 1;
        while (low > 0 && (mask >> (low - 1) & 1u) == inside) --low;
        wht_axis run = axis;
        run.length = int64_t{1} << (high - low);
        // No overflow: 2^low < length, and the last element of the axis is within 64 bits.
        for (int64_t wht_axis::*stride :
             {&wht_axis::x_stride, &wht_axis::y_stride, &wht_axis::signs_stride,
              &wht_axis::diag_stride, &wht_axis::diag_in_stride, &wht_axis::diag_mid_stride})
            run.*stride *= int64_t{1} << low;
        run.transformed = inside;
        out.push_back(run);
        high = low;
    }
}

void merge(std::vector<wht_axis> &axes, wht_order order) {
    std::vector<wht_axis> out;
    for (const wht_axis &axis : axes) {
        if (!out.empty() && mergeable(out.back(), axis, order)) {
            wht_axis merged = axis;
            merged.length *= out.back().length;
            merged.factor = out.back().factor;
            out.back() = merged;
        } else {
            out.push_back(axis);
        }
    }
    axes = std::move(out);
}

} // namespace

void wht_descriptor::add_options(wht_problem &p, const std::vector<tensor> &all) const {
    const std::vector<size_t> axes = transformed_axes();
    p.given_order = given_order();
    for (const tensor &t : all) {
        const int64_t along = axes.empty() || t.strides.size() <= axes.back()
                                  ? 0
                                  : t.strides[axes.back()]; // of the axis that groups and bins have
        switch (t.role) {
        case PLAIT_FACTOR: std::copy(t.strides.begin(), t.strides.end(), p.given_stride); break;
        case PLAIT_ROWS:
            p.rows_type = static_cast<scalar>(t.dtype);
            p.rows = *rows_;
            p.index_stride = t.strides[0];
            break;
        case PLAIT_DIAG_IN: p.diag_in = static_cast<scalar>(t.dtype); break;
        case PLAIT_DIAG_MID: p.diag_mid = static_cast<scalar>(t.dtype); break;
        case PLAIT_AMAX:
            p.amax = static_cast<scalar>(t.dtype);
            p.amax_group_stride = along;
            break;
        case PLAIT_SCALES:
            p.scales = true;
            p.scales_group_stride = along;
            break;
        case PLAIT_HISTOGRAM:
            p.bins = bins_->count;
            p.first_bin = bins_->first;
            p.bin_width = bins_->width;
            p.bin_stride = along;
            break;
        case PLAIT_STATUS: p.status = true; break;
        default: break;
        }
    }
    for (const tensor &t : all)
        if (rows_ && t.role == (adjoint_ ? PLAIT_X : PLAIT_Y)) p.row_stride = t.strides[axes[0]];
    p.group_length = 1;
    for (const size_t a : axes) p.group_length *= extents_of(PLAIT_Y)[a];
    if (group_) {
        p.groups = p.group_length / *group_;
        p.group_length = *group_;
    }
}

wht_problem wht_descriptor::problem() const {
    const std::vector<tensor> all = tensors();
    const auto find = [&](plait_role role) -> const tensor * {
        for (const tensor &t : all)
            if (t.role == role) return &t;
        return nullptr;
    };
    const tensor &x = *find(PLAIT_X);
    const tensor *y = find(PLAIT_Y), *signs = find(PLAIT_SIGNS), *diag = find(PLAIT_DIAG);

    wht_problem p{};
    p.x = static_cast<scalar>(x.dtype);
    p.y = static_cast<scalar>(dtype_of_role(PLAIT_Y));
    p.diag = diag ? static_cast<scalar>(diag->dtype) : scalar::none;
    p.signs = signs != nullptr;
    p.overflow = find(PLAIT_OVERFLOW) != nullptr;
    p.order = static_cast<wht_order>(order_);
    p.alias = y && y->alias == PLAIT_X;
    p.stores = y != nullptr;
    p.scale = scale_;
    // 0 stands for no promise; a promise of zeros is kept as the weaker promise of 1.
    p.bound = bound_ ? std::max<int64_t>(*bound_, 1) : 0;
    p.x_align = x.alignment;
    p.y_align = y ? y->alignment : x.alignment;
    add_options(p, all);

    // Transforms of nothing still have their AMAX, SCALES and HISTOGRAM.
    const bool per_transform = p.amax != scalar::none || p.scales || p.bins > 0;
    if (empty() && !per_transform) {
        p.axes = 1;
        p.axis[0] = wht_axis{};
        return p;
    }

    std::vector<wht_axis> axes;
    bool symmetric = true;
    for (size_t a = 0; a < extents_.size(); ++a) {
        const auto stride_of = [&](plait_role role) {
            const tensor *t = find(role);
            return t ? t->strides[a] : 0;
        };
        wht_axis axis{};
        axis.length = extents_[a];
        axis.x_stride = x.strides[a];
        axis.y_stride = stride_of(PLAIT_Y);
        axis.signs_stride = stride_of(PLAIT_SIGNS);
        axis.diag_stride = stride_of(PLAIT_DIAG);
        axis.diag_in_stride = stride_of(PLAIT_DIAG_IN);
        axis.diag_mid_stride = stride_of(PLAIT_DIAG_MID);
        axis.transformed = transformed(a);
        axis.factor = given_[a] > 0 ? wht_factor::given : static_cast<wht_factor>(factors_[a]);
        if (!axis.transformed) {
            axis.amax_stride = stride_of(PLAIT_AMAX);
            axis.scales_stride = stride_of(PLAIT_SCALES);
            axis.histogram_stride = stride_of(PLAIT_HISTOGRAM);
        }
        symmetric = symmetric && wht_factor_symmetric(axis.factor);
        if (axis.length == 1) continue;
        if (axis.transformed && bits_ && axis.length > 0)
            split(axis, *bits_, axes);
        else
            axes.push_back(axis);
    }
    // The order of the axes has no meaning beyond the addresses, and the strides of Y nest, so
    // they order the axes: a transposed view of rows is rows.
    const auto order_by = y ? &wht_axis::y_stride : &wht_axis::x_stride;
    std::stable_sort(axes.begin(), axes.end(), [&](const wht_axis &a, const wht_axis &b) {
        return a.*order_by > b.*order_by;
    });
    merge(axes, p.order);

    // A symmetric matrix without diagonals is its own adjoint.
    const bool sides = signs || diag || p.diag_in != scalar::none || p.diag_mid != scalar::none ||
                       p.rows_type != scalar::none;
    p.adjoint = adjoint_ && (!symmetric || sides);
    p.axes = static_cast<int>(axes.size());
    std::copy(axes.begin(), axes.end(), p.axis);
    return p;
}

} // namespace plait::impl
