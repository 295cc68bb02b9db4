// conv1d.update.cuda.
#include "lib/cuda/conv1d/update_layout.h"
#include "src/core/text.h"
#include "src/planner/conv1d_cuda.h"

namespace plait::impl {

namespace {

/// Issue slots of variants any.*, for each output and tap.
constexpr double any_slots = 200;
constexpr double any_slots_per_tap = 40;

} // namespace

verdict conv1d_cuda_update_applicable(const problem &problem, const profile &device) {
    const verdict shared = conv1d_cuda_device(problem, device);
    if (!shared.empty()) return shared;
    return fits_memory(problem, device, conv1d_offsets_bytes(problem.conv1d()));
}

cost conv1d_cuda_update_estimate(const problem &problem, const profile &device) {
    const conv1d_problem &p = problem.conv1d();
    return conv1d_cuda_cost(
        p, device, 0.8, any_slots + any_slots_per_tap * static_cast<double>(p.width),
        static_cast<double>(p.batch * p.channels), conv1d_needs_offsets(p) ? 2 : 1);
}

pipeline conv1d_cuda_update_build(const problem &problem, const profile &) {
    const conv1d_problem &p = problem.conv1d();
    pipeline out;
    const conv1d_sequences from = conv1d_add_offsets(out, p, 1);
    // Without samples there is nothing to store but what conv1d.offsets reports.
    if (p.batch * p.channels * p.length == 0 && !out.steps.empty()) {
        out.work.seal();
        return out;
    }
    step s;
    s.kernel = "conv1d.update";
    s.operands = {role_operand(PLAIT_X, false),
                  role_operand(PLAIT_Y, true),
                  role_operand(PLAIT_W, false),
                  p.bias.used() ? role_operand(PLAIT_BIAS, false) : operand{},
                  role_operand(PLAIT_STATE, true),
                  p.ring ? role_operand(PLAIT_POSITION, false) : operand{},
                  from.slots};
    conv1d_update_args a{};
    a.x_stride = conv1d_strides_of(p.x);
    a.y_stride = conv1d_strides_of(p.y);
    a.state_stride = conv1d_strides_of(p.state_in);
    a.w_c = p.w.c;
    a.w_t = p.w.t;
    a.bias_c = p.bias.c;
    a.batch = p.batch;
    a.channels = p.channels;
    a.length = p.length;
    a.width = p.width;
    a.entries = p.entries;
    a.slot_count = p.slots;
    a.pad = from.pad;
    a.x_type = p.x.type;
    a.y_type = p.y.type;
    a.w_type = p.w.type;
    a.bias_type = p.bias.type;
    a.state_type = p.state_in.type;
    a.silu = p.silu;
    a.residual = p.residual;
    const conv1d_launch l = conv1d_update_any_launch(p.accumulator, p.batch, p.channels);
    s.variant = l.variant;
    s.grid = l.grid;
    s.block = l.threads;
    s.smem_bytes = l.smem_bytes;
    s.args = step_args(a);
    s.bytes_read = conv1d_bytes_read(p);
    s.bytes_written = conv1d_bytes_written(p) + p.batch * p.channels *
                                                    (p.ring ? p.length : p.entries) *
                                                    scalar_bytes(p.state_in.type);
    s.flops = conv1d_flops(p);
    out.steps.push_back(std::move(s));
    out.work.seal();
    return out;
}

} // namespace plait::impl
