// The shape that all kernels but wht.ref take.
#include "src/core/checked.h"
#include "src/core/status.h"
#include "src/core/tables.h"
#include "src/core/text.h"
#include "src/planner/wht_candidates.h"
#include "src/planner/wht_cuda_cost.h"

#include <algorithm>
#include <charconv>

namespace plait::impl {

namespace {

/// "bits=5" where a token has a mask of other than the lowest bits: its runs became axes that the
/// caller never wrote.
std::string_view scattered_bits(std::string_view token) {
    const size_t at = token.find(":bits=");
    if (at == token.npos) return {};
    const std::string_view field = token.substr(at + 1, token.find(':', at + 1) - at - 1);
    uint64_t mask = 0;
    std::from_chars(field.data() + 5, field.data() + field.size(), mask, 16);
    return (mask & (mask + 1)) == 0 ? std::string_view() : field;
}

} // namespace

verdict wht_ref_only(const problem &problem) {
    const wht_problem &p = problem.wht();
    for (const scalar narrow : {scalar::i8, scalar::i16, scalar::b1})
        if (p.x == narrow)
            return text("x is ", scalar_name(p.x),
                        "; needs f16, bf16, f32, f64, c64, c128, i32 or i64");
    if (p.y == scalar::e4m3) return "y is e4m3; needs f16, bf16, f32, f64, c64, c128, i32 or i64";
    if (p.diag_in != scalar::none) return "diag_in is in use";
    if (p.diag_mid != scalar::none) return "diag_mid is in use";
    if (p.rows_type != scalar::none) return "rows is in use";
    if (p.amax != scalar::none) return "amax is in use";
    if (p.bins > 0) return "histogram is in use";
    if (!p.stores) return "y is not in use";
    if (p.given_order > 0) return "factor is in use";
    if (p.overflow && p.x == scalar::i64 && p.signs && p.adjoint)
        return "overflow is in use with signs and adjoint, and x is i64: a sum of 2^63 may become "
               "a "
               "result that fits";
    for (int a = 0; a < p.axes; ++a)
        if (p.axis[a].transformed && p.axis[a].factor > wht_factor::h40)
            return text("n=", p.axis[a].length, " has the factor ",
                        find_factor(static_cast<plait_wht_factor>(p.axis[a].factor))->name,
                        "; needs h12p2 h12s h20w h28w h40 or none");
    return "";
}

verdict wht_as_rows(const problem &problem, wht_rows *out, bool fused) {
    if (problem.empty) return "the problem is empty: there is nothing to run";
    if (const verdict only = wht_ref_only(problem); !only.empty()) return only;
    const wht_problem &p = problem.wht();
    if (p.signs && !fused) return "signs is in use";
    if (p.diag != scalar::none && !fused) return "diag is in use";
    if (p.overflow) return "overflow is in use";
    if (p.order == wht_order::sequency && !fused) return "order=sequency; needs natural";
    if (p.order == wht_order::dyadic && !fused) return "order=dyadic; needs natural";

    const wht_axis *line = nullptr;  // the transformed axis
    const wht_axis *batch = nullptr; // the other
    int lines = 0, batches = 0;
    for (int a = 0; a < p.axes; ++a) {
        (p.axis[a].transformed ? line : batch) = &p.axis[a];
        (p.axis[a].transformed ? lines : batches) += 1;
        if (p.axis[a].factor != wht_factor::h1)
            return text("n=", p.axis[a].length, " has a factor matrix; needs a power of two");
    }
    if (const std::string_view bits = scattered_bits(problem.token); !bits.empty())
        return text(bits, " has a gap below its highest bit; needs the lowest bits");
    if (lines > 1) return text(lines, " transformed axes do not merge; needs one");
    if (line && line->x_stride != 1)
        return text("the transformed axis of x has stride ", line->x_stride, "; needs 1");
    if (line && line->y_stride != 1)
        return text("the transformed axis of y has stride ", line->y_stride, "; needs 1");
    if (batches > 1) return text(batches, " batch axes do not merge; needs one");

    wht_rows r{};
    r.x = p.x;
    r.y = p.y;
    r.n = line ? line->length : 1;
    while ((int64_t{1} << r.log_n) < r.n) ++r.log_n;
    r.rows = batch ? batch->length : 1;
    r.x_stride = batch ? batch->x_stride : r.n;
    r.y_stride = batch ? batch->y_stride : r.n;
    r.alias = p.alias;
    r.x_align = p.x_align;
    r.y_align = p.y_align;
    r.scale = p.scale;
    if (r.x_stride < r.n)
        return text("rows of x overlap: row stride ", r.x_stride, " is below n=", r.n);
    if (r.y_stride < r.n)
        return text("rows of y overlap: row stride ", r.y_stride, " is below n=", r.n);
    *out = r;
    return "";
}

wht_rows wht_as_reals(const wht_rows &rows) {
    if (rows.x != scalar::c64 && rows.x != scalar::c128) return rows;
    wht_rows r = rows;
    r.x = rows.x == scalar::c64 ? scalar::f32 : scalar::f64;
    r.y = rows.y == scalar::c64 ? scalar::f32 : scalar::f64;
    r.n *= 2;
    r.log_n += 1;
    r.x_stride *= 2;
    r.y_stride *= 2;
    r.parts = 1;
    return r;
}

bool wht_vector_side(int align, int64_t stride, int64_t rows, scalar s) {
    return align >= 16 && (rows == 1 || stride * scalar_bytes(s) % 16 == 0);
}

cost wht_rows_cost(const wht_rows &r, int rows_per_tile, double share, int64_t flops,
                   int transforms, const profile &device) {
    const auto tiles = static_cast<double>((r.rows - 1) / rows_per_tile + 1);
    const double busy = std::min(1.0, tiles / device.sms);
    const double rate = r.x == scalar::f64 ? device.f64_per_second : device.f32_per_second;
    cost sum;
    sum.memory_seconds =
        static_cast<double>(r.x_bytes() + r.y_bytes()) / (device.copy_bandwidth * share * busy);
    sum.compute_seconds = static_cast<double>(flops) / (rate * wht_cost::additions * busy);
    sum.launch_seconds = device.launch_seconds;
    sum.seconds = std::max(sum.memory_seconds, sum.compute_seconds) + device.launch_seconds +
                  transforms * wht_cost::block_latency_seconds;
    return sum;
}

verdict wht_shared_vector(const char *name, const wht_problem &p, int64_t wht_axis::*stride) {
    for (int a = 0; a < p.axes; ++a) {
        const int64_t s = p.axis[a].*stride;
        if (p.axis[a].transformed && s != 1)
            return text(name, " has stride ", s, " along the rows; needs 1");
        if (!p.axis[a].transformed && s != 0)
            return text(name, " has stride ", s, " from row to row; needs 0");
    }
    return "";
}

} // namespace plait::impl
