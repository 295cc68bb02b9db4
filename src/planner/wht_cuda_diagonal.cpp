// wht.cuda.diagonal: rows, real or complex, that fit one block, between diagonals that all rows
// share, and two transforms around one (DIAG_MID), in one pass of wht.diagonal.
#include "lib/cuda/wht/diagonal_layout.h"
#include "src/core/text.h"
#include "src/planner/wht_candidates.h"
#include "src/planner/wht_cuda_cost.h"

#include <variant>

namespace plait::impl {

namespace {

/// Of wht.block's share of the copy bandwidth: a diagonal on either side, and two transforms. An
/// H200, rows of 4096, f32 and c64.
constexpr double sides_share = 0.95, mid_share = 0.75, mid_share_half = 0.5;

struct diagonal_rows {
    wht_rows rows{}; ///< of real numbers
    bool mid = false;
    wht_launch launch{};
    wht_diagonal_args args{};
    plait_role role[3]{}; ///< of the diagonals, as they are met
};

verdict read(const problem &problem, diagonal_rows *out) {
    const wht_problem &p = problem.wht();
    impl::problem plain = problem;
    std::get<wht_problem>(plain.form).diag_in = scalar::none;
    std::get<wht_problem>(plain.form).diag_mid = scalar::none;
    wht_rows given{};
    if (const verdict shape = wht_as_rows(plain, &given, true); !shape.empty()) return shape;
    if (p.order != wht_order::natural) return "an order is in use; needs natural";
    if (given.y != given.x)
        return text("y is ", scalar_name(given.y), "; needs ", scalar_name(given.x), " like x");
    diagonal_rows d;
    d.rows = wht_as_reals(given);
    const wht_rows &r = d.rows;
    d.mid = p.diag_mid != scalar::none;
    const bool sides =
        p.diag_in != scalar::none || (r.parts > 0 && (p.signs || p.diag != scalar::none));
    if (!sides && !d.mid)
        return r.parts > 0 ? "neither signs nor a diagonal is in use"
                           : "neither diag_in nor diag_mid is in use";
    if (!wht_diagonal_launch(r.x, r.log_n, r.parts, d.mid, &d.launch))
        return text("there is no kernel for ", d.mid ? "two transforms" : "rows", " of ",
                    scalar_name(given.x), " of n=", given.n);
    struct one {
        plait_role role;
        const char *name;
        scalar type;
        int64_t wht_axis::*stride;
    };
    const one all[3] = {{PLAIT_DIAG_IN, "diag_in", p.diag_in, &wht_axis::diag_in_stride},
                        {PLAIT_DIAG_MID, "diag_mid", p.diag_mid, &wht_axis::diag_mid_stride},
                        {PLAIT_DIAG, "diag", p.diag, &wht_axis::diag_stride}};
    for (int i = 0; i < 3; ++i) {
        const one &o = all[p.adjoint ? 2 - i : i];
        d.role[i] = o.role;
        if (o.type == scalar::none) continue;
        if (const verdict v = wht_shared_vector(o.name, p, o.stride); !v.empty()) return v;
        d.args.kind[i] =
            o.type == given.x && r.parts > 0 ? wht_diagonal_kind::paired : wht_diagonal_kind::real;
    }
    if (p.signs) {
        const verdict v = wht_shared_vector("signs", p, &wht_axis::signs_stride);
        if (!v.empty()) return v;
    }
    d.args.rows = r.rows;
    d.args.x_row_stride = r.x_stride;
    d.args.y_row_stride = r.y_stride;
    d.args.scale = r.scale;
    d.args.conjugate = p.adjoint;
    d.args.signs_out = p.adjoint;
    d.args.vector[0] = wht_vector_side(r.x_align, r.x_stride, r.rows, r.x);
    d.args.vector[1] = wht_vector_side(r.y_align, r.y_stride, r.rows, r.y);
    *out = d;
    return "";
}

int64_t flops_of(const diagonal_rows &d) {
    int64_t each = (d.mid ? 2 : 1) * (d.rows.log_n - d.rows.parts) + (d.rows.scale != 1 ? 1 : 0);
    for (const wht_diagonal_kind k : d.args.kind)
        each += k == wht_diagonal_kind::none ? 0 : k == wht_diagonal_kind::real ? 1 : 3;
    return d.rows.elements() * each;
}

} // namespace

verdict wht_cuda_diagonal_applicable(const problem &p, const profile &device) {
    if (device.backend != PLAIT_CUDA) return "the device is no CUDA device";
    diagonal_rows d;
    if (const verdict shape = read(p, &d); !shape.empty()) return shape;
    if (const verdict built = wht_cuda_built_for(device); !built.empty()) return built;
    if (d.launch.smem_bytes > device.smem_per_block)
        return text("a row needs ", d.launch.smem_bytes, " bytes of shared memory; a block has ",
                    device.smem_per_block);
    return fits_memory(p, device, 0);
}

cost wht_cuda_diagonal_estimate(const problem &p, const profile &device) {
    diagonal_rows d;
    read(p, &d);
    const wht_rows &r = d.rows;
    const bool vector = d.args.vector[0] && d.args.vector[1];
    const double share =
        wht_cost::block_share(r.x, r.x, r.log_n, vector) * (!d.mid             ? sides_share
                                                            : wht_is_half(r.x) ? mid_share_half
                                                                               : mid_share);
    return wht_rows_cost(r, d.launch.rows_per_tile, share, flops_of(d), d.mid ? 2 : 1, device);
}

pipeline wht_cuda_diagonal_build(const problem &problem, const profile &device) {
    const wht_problem &p = problem.wht();
    diagonal_rows d;
    read(problem, &d);
    const wht_rows &r = d.rows;
    step one;
    one.kernel = "wht.diagonal";
    one.variant = d.launch.variant;
    one.grid = wht_block_grid(d.launch, r.rows, device.sms);
    one.block = d.launch.threads;
    one.smem_bytes = d.launch.smem_bytes;
    one.operands = {role_operand(PLAIT_X, false), role_operand(PLAIT_Y, true),
                    p.signs ? role_operand(PLAIT_SIGNS, false) : operand{}};
    for (int i = 0; i < 3; ++i)
        one.operands.push_back(
            d.args.kind[i] != wht_diagonal_kind::none ? role_operand(d.role[i], false) : operand{});
    one.args = step_args(d.args);
    one.bytes_read = r.x_bytes();
    one.bytes_written = r.y_bytes();
    one.flops = flops_of(d);
    pipeline out;
    out.steps.push_back(std::move(one));
    out.work.seal();
    return out;
}

} // namespace plait::impl
