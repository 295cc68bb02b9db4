// wht.cuda.fused: rows that fit one block, with SIGNS or a real DIAG that all rows share, in any
// order, in one pass of wht.fused.
#include "lib/cuda/wht/fused_layout.h"
#include "src/core/text.h"
#include "src/planner/wht_candidates.h"
#include "src/planner/wht_cuda_cost.h"

#include <algorithm>

namespace plait::impl {

namespace {

struct fused_rows {
    wht_rows rows{};
    bool ordered = false;
    wht_any_extra extra[2] = {wht_any_extra::none, wht_any_extra::none};
};

verdict read(const problem &problem, fused_rows *out) {
    const wht_problem &p = problem.wht();
    fused_rows f;
    if (const verdict shape = wht_as_rows(problem, &f.rows, true); !shape.empty()) return shape;
    const wht_rows &r = f.rows;
    f.ordered = p.order != wht_order::natural;
    if (r.y != r.x) return text("y is ", scalar_name(r.y), "; needs ", scalar_name(r.x), " like x");
    if (!wht_fused_exists(r.x, wht_log_vec(r.x)))
        return text("x is ", scalar_name(r.x), "; needs f16, bf16, f32 or f64");
    if (!wht_fused_exists(r.x, r.log_n))
        return text("n=", r.n, "; needs ", 16 / scalar_bytes(r.x), " to ",
                    r.x == scalar::f64 ? 16384 : 32768);
    if (p.signs) {
        if (const verdict v = wht_shared_vector("signs", p, &wht_axis::signs_stride); !v.empty())
            return v;
        f.extra[p.adjoint ? wht_any_out : wht_any_in] = wht_any_extra::signs;
    }
    if (p.diag != scalar::none) {
        if (const verdict v = wht_shared_vector("diag", p, &wht_axis::diag_stride); !v.empty())
            return v;
        f.extra[p.adjoint ? wht_any_in : wht_any_out] = wht_any_extra::diag;
    }
    if (!f.ordered && !p.signs && p.diag == scalar::none)
        return "neither signs, diag nor an order is in use";
    *out = f;
    return "";
}

} // namespace

verdict wht_cuda_fused_applicable(const problem &p, const profile &device) {
    if (device.backend != PLAIT_CUDA) return "the device is no CUDA device";
    fused_rows f;
    if (const verdict shape = read(p, &f); !shape.empty()) return shape;
    if (const verdict built = wht_cuda_built_for(device); !built.empty()) return built;
    wht_launch l{};
    wht_fused_launch(f.rows.x, f.rows.log_n, f.ordered, &l);
    if (l.smem_bytes > device.smem_per_block)
        return text("n=", f.rows.n, " needs ", l.smem_bytes,
                    " bytes of shared memory; a block has ", device.smem_per_block);
    return fits_memory(p, device, 0);
}

cost wht_cuda_fused_estimate(const problem &p, const profile &device) {
    fused_rows f;
    read(p, &f);
    const wht_rows &r = f.rows;
    wht_launch l{};
    wht_fused_launch(r.x, r.log_n, f.ordered, &l);
    const bool vector = wht_vector_side(r.x_align, r.x_stride, r.rows, r.x) &&
                        wht_vector_side(r.y_align, r.y_stride, r.rows, r.y);
    const bool longest = wht_is_half(r.x) && r.log_n == 15 && !f.ordered;
    const double share = wht_cost::block_share(r.x, r.y, r.log_n, vector) *
                         (longest ? wht_cost::fused_half_longest : wht_cost::fused);
    return wht_rows_cost(r, l.rows_per_tile, share, r.flops(), 1, device);
}

pipeline wht_cuda_fused_build(const problem &problem, const profile &device) {
    const wht_problem &p = problem.wht();
    fused_rows f;
    read(problem, &f);
    const wht_rows &r = f.rows;
    wht_launch l{};
    wht_fused_launch(r.x, r.log_n, f.ordered, &l);
    wht_fused_args args{};
    args.rows = r.rows;
    args.x_row_stride = r.x_stride;
    args.y_row_stride = r.y_stride;
    args.scale = r.scale;
    args.order = p.order;
    args.vector[wht_any_in] = wht_vector_side(r.x_align, r.x_stride, r.rows, r.x);
    args.vector[wht_any_out] = wht_vector_side(r.y_align, r.y_stride, r.rows, r.y);
    std::copy(f.extra, f.extra + 2, args.extra);
    step one;
    one.kernel = "wht.fused";
    one.variant = l.variant;
    one.grid = wht_block_grid(l, r.rows, device.sms);
    one.block = l.threads;
    one.smem_bytes = l.smem_bytes;
    one.operands = {role_operand(PLAIT_X, false), role_operand(PLAIT_Y, true),
                    p.signs ? role_operand(PLAIT_SIGNS, false) : operand{},
                    p.diag != scalar::none ? role_operand(PLAIT_DIAG, false) : operand{}};
    one.args = step_args(args);
    one.bytes_read = r.x_bytes();
    one.bytes_written = r.y_bytes();
    one.flops = r.flops() + (p.diag != scalar::none ? r.elements() : 0);
    pipeline out;
    out.steps.push_back(std::move(one));
    out.work.seal();
    return out;
}

} // namespace plait::impl
