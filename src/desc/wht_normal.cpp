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
              same(PLAIT_B1, scalar::b1));
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
              same(PLAIT_H40, wht_factor::h40));

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
           packed_behind(outer.diag_stride, inner.diag_stride, inner.length);
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
        for (int64_t wht_axis::*stride : {&wht_axis::x_stride, &wht_axis::y_stride,
                                          &wht_axis::signs_stride, &wht_axis::diag_stride})
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

wht_problem wht_descriptor::problem() const {
    const std::vector<tensor> all = tensors();
    const auto find = [&](plait_role role) -> const tensor * {
        for (const tensor &t : all)
            if (t.role == role) return &t;
        return nullptr;
    };
    const tensor &x = *find(PLAIT_X), &y = *find(PLAIT_Y);
    const tensor *signs = find(PLAIT_SIGNS), *diag = find(PLAIT_DIAG);

    wht_problem p{};
    p.x = static_cast<scalar>(x.dtype);
    p.y = static_cast<scalar>(y.dtype);
    p.diag = diag ? static_cast<scalar>(diag->dtype) : scalar::none;
    p.signs = signs != nullptr;
    p.overflow = find(PLAIT_OVERFLOW) != nullptr;
    p.order = static_cast<wht_order>(order_);
    p.alias = y.alias == PLAIT_X;
    p.scale = scale_;
    // 0 stands for no promise; a promise of zeros is kept as the weaker promise of 1.
    p.bound = bound_ ? std::max<int64_t>(*bound_, 1) : 0;
    p.x_align = x.alignment;
    p.y_align = y.alignment;

    if (empty()) {
        p.axes = 1;
        p.axis[0] = wht_axis{};
        return p;
    }

    std::vector<wht_axis> axes;
    bool symmetric = true;
    for (size_t a = 0; a < extents_.size(); ++a) {
        wht_axis axis{};
        axis.length = extents_[a];
        axis.x_stride = x.strides[a];
        axis.y_stride = y.strides[a];
        axis.signs_stride = signs ? signs->strides[a] : 0;
        axis.diag_stride = diag ? diag->strides[a] : 0;
        axis.transformed = transformed(a);
        axis.factor = static_cast<wht_factor>(factors_[a]);
        symmetric = symmetric && wht_factor_symmetric(axis.factor);
        if (axis.length == 1) continue;
        if (axis.transformed && bits_)
            split(axis, *bits_, axes);
        else
            axes.push_back(axis);
    }
    // The order of the axes has no meaning beyond the addresses, and the strides of Y nest, so
    // they order the axes: a transposed view of rows is rows.
    std::stable_sort(axes.begin(), axes.end(),
                     [](const wht_axis &a, const wht_axis &b) { return a.y_stride > b.y_stride; });
    merge(axes, p.order);

    // A symmetric matrix without diagonals is its own adjoint.
    p.adjoint = adjoint_ && (!symmetric || signs || diag);
    p.axes = static_cast<int>(axes.size());
    std::copy(axes.begin(), axes.end(), p.axis);
    return p;
}

} // namespace plait::impl
