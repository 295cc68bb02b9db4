// wht.cuda.mma16: one pass, the first factors on tensor cores.
#include "lib/cuda/wht/mma16_layout.h"
#include "src/core/text.h"
#include "src/planner/wht_candidates.h"
#include "src/planner/wht_cuda_cost.h"

#include <algorithm>

namespace plait::impl {

namespace {

bool vector_rows(const wht_rows &r) {
    return r.x_align >= 16 && r.y_align >= 16 && r.x_stride * scalar_bytes(r.x) % 16 == 0 &&
           r.y_stride * scalar_bytes(r.y) % 16 == 0;
}

} // namespace

verdict wht_cuda_mma16_applicable(const problem &p, const profile &device) {
    wht_rows r;
    const verdict shared = wht_cuda_shared_rules(p, device, &r);
    if (!shared.empty()) return shared;
    if (!wht_is_half(r.x)) return text("x is ", scalar_name(r.x), "; needs f16 or bf16");
    if (r.y != r.x) return text("y is ", scalar_name(r.y), "; needs ", scalar_name(r.x), " like x");
    wht_launch l{};
    if (!wht_mma16_launch(r.x, r.y, r.log_n, vector_rows(r), &l))
        return text("n=", r.n, "; needs 128 to 32768");
    if (!device.runs_code_from(80)) return "needs compute capability 8.0 and a build for it";
    if (l.smem_bytes > device.smem_per_block)
        return text("n=", r.n, " needs ", l.smem_bytes, " bytes of shared memory; a block has ",
                    device.smem_per_block);
    return fits_memory(p, device, 0);
}

cost wht_cuda_mma16_estimate(const problem &p, const profile &device) {
    wht_rows r;
    wht_as_rows(p, &r);
    const bool vector = vector_rows(r);
    wht_launch l{};
    wht_mma16_launch(r.x, r.y, r.log_n, vector, &l);
    const auto tiles = static_cast<double>((r.rows - 1) / l.rows_per_tile + 1);
    // Blocks run on SMs: a device with idle SMs moves and adds less.
    const double busy = std::min(1.0, tiles / device.sms);
    const wht_mma16_config c = wht_mma16_config_of(r.x, r.log_n, vector);
    const int left = r.log_n - c.dense - (c.halves - 1); // stages that are butterflies
    const double additions = static_cast<double>(r.elements()) * left;
    cost sum;
    sum.memory_seconds = static_cast<double>(r.x_bytes() + r.y_bytes()) /
                         (device.copy_bandwidth * wht_cost::mma16_share(r.log_n, vector) *
                          wht_cost::busy_memory(tiles, device.sms));
    sum.compute_seconds = additions / (device.f32_per_second * wht_cost::additions * busy);
    sum.launch_seconds = device.launch_seconds;
    sum.seconds = std::max(sum.memory_seconds, sum.compute_seconds) + device.launch_seconds +
                  wht_cost::start_seconds(static_cast<double>(r.x_bytes() + r.y_bytes())) +
                  (r.log_n == 15 && r.rows <= device.sms
                       ? wht_cost::mma16_both_latency_seconds
                       : wht_cost::mma16_latency_seconds[wht_cost::column(r.log_n, 7, 15)]);
    return sum;
}

pipeline wht_cuda_mma16_build(const problem &p, const profile &device) {
    wht_rows r;
    wht_as_rows(p, &r);
    wht_launch l{};
    wht_mma16_launch(r.x, r.y, r.log_n, vector_rows(r), &l);
    wht_launch both{}; // the same sums by twice the warps
    if (r.rows <= device.sms && wht_mma16_launch(r.x, r.y, r.log_n, vector_rows(r), &both, true) &&
        both.smem_bytes <= device.smem_per_block)
        l = both;
    wht_mma16_args args{};
    args.rows = r.rows;
    args.x_row_stride = r.x_stride;
    args.y_row_stride = r.y_stride;
    args.scale = r.scale;
    step one;
    one.kernel = "wht.mma16";
    one.variant = l.variant;
    one.grid = wht_mma16_grid(l, r.rows, device.sms);
    one.block = l.threads;
    one.smem_bytes = l.smem_bytes;
    one.operands = {role_operand(PLAIT_X, false), role_operand(PLAIT_Y, true)};
    one.args = step_args(args);
    one.bytes_read = r.x_bytes();
    one.bytes_written = r.y_bytes();
    one.flops = r.flops();
    one.programmatic = wht_cuda_starts_early(one, device);
    // One block to a multiprocessor, or those that start early crowd some of them.
    if (one.programmatic)
        one.smem_bytes = std::max(one.smem_bytes, static_cast<int>(device.smem_per_sm / 2));
    pipeline out;
    out.steps.push_back(std::move(one));
    out.work.seal();
    return out;
}

} // namespace plait::impl
