// wht.cuda.block_e4m3, wht.cuda.mma16_e4m3: rows that are stored in E4M3, with SCALES and AMAX of
// rows or groups, in one pass, by butterflies or (16-bit X) with the first factors on tensor cores.
// Everything else about E4M3: wht.cuda.composed.
#include "lib/cuda/wht/mma16_e4m3_layout.h"
#include "src/core/text.h"
#include "src/planner/wht_candidates.h"
#include "src/planner/wht_cuda_cost.h"

#include <algorithm>

namespace plait::impl {

namespace {

/// Shares of the copy bandwidth, in those of wht.block: an H200 at n = 4096 and 8192, bf16.
/// Instructions bind, those of groups more than those of the store.
constexpr double plain_share = 0.83, grouped_share = 0.64;
/// f32 has more bytes for the same instructions.
constexpr double grouped_share_f32 = 0.88;
/// Of wht.mma16_e4m3, in those of wht.mma16.
constexpr double mma_plain_share = 0.95, mma_grouped_share = 0.9;

enum class by { butterflies, tensor_cores };

struct e4m3_rows {
    wht_rows rows;
    wht_launch launch{};
    wht_block_e4m3_args args{};
};

int log2_of(int64_t n) {
    int log = 0;
    while ((int64_t{1} << log) < n) ++log;
    return log;
}

verdict as_e4m3_rows(by how, const problem &problem, const profile &device, e4m3_rows *out) {
    const wht_problem &p = problem.wht();
    if (p.y != scalar::e4m3) return text("y is ", scalar_name(p.y), "; needs e4m3");
    if (!p.stores) return "y is not in use";
    // The rows as they would be in their own type.
    impl::problem plain = problem;
    wht_problem &q = std::get<wht_problem>(plain.form);
    q.y = q.x;
    q.amax = scalar::none;
    q.scales = false;
    wht_rows &r = out->rows;
    if (const verdict shape = wht_as_rows(plain, &r); !shape.empty()) return shape;
    const bool tensor_cores = how == by::tensor_cores;
    if (!(tensor_cores ? wht_mma16_e4m3_launch(r.x, r.log_n, &out->launch)
                       : wht_block_e4m3_launch(r.x, r.log_n, &out->launch)))
        return text("there is no kernel that stores ", scalar_name(r.x), " rows of ", r.n,
                    " as e4m3");
    const wht_block_config c = wht_block_e4m3_config(r.x, r.log_n);
    const int access = tensor_cores ? wht_mma16_e4m3_access : 1 << c.tile.log_vec_y;
    if (r.x_align < 16) return text("x is aligned to ", r.x_align, " bytes; needs 16");
    if (r.rows > 1 && r.x_stride * scalar_bytes(r.x) % 16 != 0)
        return text("row stride ", r.x_stride, " of x is no multiple of 16 bytes");
    if (r.y_align < access) return text("y is aligned to ", r.y_align, " bytes; needs ", access);
    if (r.rows > 1 && r.y_stride % access != 0)
        return text("row stride ", r.y_stride, " of y is no multiple of ", access);
    if (out->launch.smem_bytes > device.smem_per_block ||
        out->launch.threads > device.threads_per_sm)
        return text("n=", r.n, " does not fit the ", device.smem_per_block,
                    " bytes of shared memory of a block");

    wht_block_e4m3_args &a = out->args;
    a.rows = r.rows;
    a.x_row_stride = r.x_stride;
    a.y_row_stride = r.y_stride;
    a.scale = p.scale;
    a.amax_type = p.amax;
    if (p.amax == scalar::none && !p.scales) return "";
    a.log_group = log2_of(p.group_length);
    const bool power = (int64_t{1} << a.log_group) == p.group_length;
    if (tensor_cores) {
        const wht_mma16_config m = wht_mma16_config_of(r.x, r.log_n, true);
        if (!power || !wht_mma16_e4m3_group(m, a.log_group))
            return text("group=", p.group_length, " is no power of two from ", access,
                        " to 256, nor a row of up to 16384, nor a part of a row of up to 2048");
    } else if (!power || !wht_block_e4m3_group(c, a.log_group)) {
        return text("group=", p.group_length, " is no power of two from ", access, " to ",
                    32 << c.tile.log_items, ", nor the row");
    }
    for (int i = 0; i < p.axes; ++i)
        if (!p.axis[i].transformed) {
            a.scales_stride[0] = p.axis[i].scales_stride;
            a.amax_stride[0] = p.axis[i].amax_stride;
        }
    a.scales_stride[1] = p.scales_group_stride;
    a.amax_stride[1] = p.amax_group_stride;
    return "";
}

int64_t groups_of(const e4m3_rows &e, const wht_problem &p) { return e.rows.rows * p.groups; }

verdict applicable(by how, const problem &problem, const profile &device) {
    if (device.backend != PLAIT_CUDA) return "the device is no CUDA device";
    if (problem.empty) return "the problem is empty: there is nothing to run";
    e4m3_rows e;
    if (const verdict why = as_e4m3_rows(how, problem, device, &e); !why.empty()) return why;
    if (const verdict built = wht_cuda_built_for(device); !built.empty()) return built;
    if (how == by::tensor_cores && !device.runs_code_from(80))
        return "needs compute capability 8.0 and a build for it";
    return fits_memory(problem, device, 0);
}

cost estimate(by how, const problem &problem, const profile &device) {
    e4m3_rows e;
    as_e4m3_rows(how, problem, device, &e);
    const wht_rows &r = e.rows;
    const bool grouped = problem.wht().scales || problem.wht().amax != scalar::none;
    double share = 0, latency = 0, additions = static_cast<double>(r.flops());
    if (how == by::tensor_cores) {
        const wht_mma16_config m = wht_mma16_config_of(r.x, r.log_n, true);
        share =
            wht_cost::mma16_share(r.log_n, true) * (grouped ? mma_grouped_share : mma_plain_share);
        latency =
            wht_cost::mma16_latency_seconds[wht_cost::column(r.log_n, 7, 15)] +
            wht_cost::start_seconds(static_cast<double>(r.elements() * (scalar_bytes(r.x) + 1)));
        additions -= static_cast<double>(r.elements()) * (m.dense + m.halves - 1);
    } else {
        share = wht_cost::block_share(r.x, r.x, r.log_n, true) * (!grouped ? plain_share
                                                                  : wht_is_half(r.x)
                                                                      ? grouped_share
                                                                      : grouped_share_f32);
        latency = 2 * wht_cost::block_latency_seconds;
    }
    cost c;
    c.memory_seconds = static_cast<double>(r.elements() * (scalar_bytes(r.x) + 1)) /
                       (device.copy_bandwidth * share);
    c.compute_seconds = additions / (device.f32_per_second * wht_cost::additions);
    c.launch_seconds = device.launch_seconds;
    c.seconds = std::max(c.memory_seconds, c.compute_seconds) + c.launch_seconds + latency;
    return c;
}

pipeline build(by how, const problem &problem, const profile &device) {
    const wht_problem &p = problem.wht();
    e4m3_rows e;
    as_e4m3_rows(how, problem, device, &e);
    pipeline out;
    step s;
    if (how == by::tensor_cores) {
        s.kernel = "wht.mma16_e4m3";
        s.grid = wht_mma16_grid(e.launch, e.rows.rows, device.sms);
    } else {
        s.kernel = "wht.block_e4m3";
        s.grid = wht_block_grid(e.launch, e.rows.rows, device.sms);
    }
    s.variant = e.launch.variant;
    s.block = e.launch.threads;
    s.smem_bytes = e.launch.smem_bytes;
    s.operands = {role_operand(PLAIT_X, false), role_operand(PLAIT_Y, true),
                  p.scales ? role_operand(PLAIT_SCALES, true) : operand{},
                  p.amax != scalar::none ? role_operand(PLAIT_AMAX, true) : operand{}};
    s.args = step_args(e.args);
    s.bytes_read = e.rows.x_bytes();
    s.bytes_written =
        e.rows.elements() + groups_of(e, p) * ((p.scales ? 4 : 0) + scalar_bytes(p.amax));
    s.flops = e.rows.flops();
    out.steps.push_back(std::move(s));
    out.work.seal();
    return out;
}

} // namespace

verdict wht_cuda_block_e4m3_applicable(const problem &p, const profile &d) {
    return applicable(by::butterflies, p, d);
}
cost wht_cuda_block_e4m3_estimate(const problem &p, const profile &d) {
    return estimate(by::butterflies, p, d);
}
pipeline wht_cuda_block_e4m3_build(const problem &p, const profile &d) {
    return build(by::butterflies, p, d);
}

verdict wht_cuda_mma16_e4m3_applicable(const problem &p, const profile &d) {
    return applicable(by::tensor_cores, p, d);
}
cost wht_cuda_mma16_e4m3_estimate(const problem &p, const profile &d) {
    return estimate(by::tensor_cores, p, d);
}
pipeline wht_cuda_mma16_e4m3_build(const problem &p, const profile &d) {
    return build(by::tensor_cores, p, d);
}

} // namespace plait::impl
