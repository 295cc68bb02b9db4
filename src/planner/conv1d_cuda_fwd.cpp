// The CUDA candidates of conv1d.fwd.
#include "lib/cuda/conv1d/fwd_layout.h"
#include "src/core/text.h"
#include "src/planner/conv1d_cuda.h"

namespace plait::impl {

namespace {

/// Issue slots of conv1d.fwd_any: the index and the sequence, and each tap.
constexpr double any_slots = 300;
constexpr double any_slots_per_tap = 40;

int64_t outputs(const conv1d_problem &p) { return p.batch * p.channels * p.length; }

bool writes_state(const conv1d_problem &p) {
    return p.state_out.used() && p.sequences > 0 && p.channels > 0 && p.entries > 0;
}

int launches(const conv1d_problem &p) {
    return 1 + (conv1d_needs_offsets(p) ? 1 : 0) + (writes_state(p) ? 1 : 0);
}

conv1d_fwd_args args_of(const conv1d_problem &p, const conv1d_sequences &from) {
    conv1d_fwd_args a{};
    a.x_stride = conv1d_strides_of(p.x);
    a.y_stride = conv1d_strides_of(p.y);
    a.state_stride = conv1d_strides_of(p.state_in);
    a.w_c = p.w.c;
    a.w_t = p.w.t;
    a.bias_c = p.bias.c;
    a.ids_b = p.seq_idx.b;
    a.ids_t = p.seq_idx.t;
    a.batch = p.batch;
    a.channels = p.channels;
    a.length = p.length;
    a.width = p.width;
    a.entries = p.entries;
    a.sequences = p.sequences;
    a.slot_count = p.slots;
    a.pad = from.pad;
    a.x_type = p.x.type;
    a.y_type = p.y.type;
    a.w_type = p.w.type;
    a.bias_type = p.bias.type;
    a.state_type = p.state_in.type;
    a.silu = p.silu;
    a.residual = p.residual;
    return a;
}

/// The offsets, the kernel that writes y, the state.
template <class Main> pipeline steps_of(const conv1d_problem &p, const Main &main) {
    pipeline out;
    const bool has_y = outputs(p) > 0;
    const int last = (has_y ? 1 : 0) + (writes_state(p) ? 1 : 0); // behind conv1d.offsets
    const conv1d_sequences from = conv1d_add_offsets(out, p, last);
    if (has_y) {
        step s;
        s.operands = {role_operand(PLAIT_X, false),
                      role_operand(PLAIT_Y, true),
                      role_operand(PLAIT_W, false),
                      p.bias.used() ? role_operand(PLAIT_BIAS, false) : operand{},
                      p.state_in.used() ? role_operand(PLAIT_STATE_IN, false) : operand{},
                      from.slots,
                      from.spans,
                      p.seq_idx.used() ? role_operand(PLAIT_SEQ_IDX, false) : operand{}};
        s.bytes_read = conv1d_bytes_read(p);
        s.bytes_written = conv1d_bytes_written(p);
        s.flops = conv1d_flops(p);
        conv1d_fwd_args args = args_of(p, from);
        const conv1d_launch l = main(s, args);
        s.variant = l.variant;
        s.grid = l.grid;
        s.block = l.threads;
        s.smem_bytes = l.smem_bytes;
        s.args = step_args(args);
        out.steps.push_back(std::move(s));
    }
    // A pool without rows to write: a plan that is not empty has a step all the same.
    if (writes_state(p) || out.steps.empty()) conv1d_add_state(out, p, from);
    out.work.seal();
    return out;
}

} // namespace

// ---- conv1d.fwd.cuda.any ---------------------------------------------------------------------

verdict conv1d_cuda_fwd_any_applicable(const problem &problem, const profile &device) {
    const verdict shared = conv1d_cuda_device(problem, device);
    if (!shared.empty()) return shared;
    return fits_memory(problem, device, conv1d_offsets_bytes(problem.conv1d()));
}

cost conv1d_cuda_fwd_any_estimate(const problem &problem, const profile &device) {
    const conv1d_problem &p = problem.conv1d();
    return conv1d_cuda_cost(p, device, 0.8,
                            any_slots + any_slots_per_tap * static_cast<double>(p.width),
                            static_cast<double>(outputs(p)), launches(p));
}

pipeline conv1d_cuda_fwd_any_build(const problem &problem, const profile &) {
    const conv1d_problem &p = problem.conv1d();
    return steps_of(p, [&](step &s, conv1d_fwd_args &args) {
        s.kernel = "conv1d.fwd_any";
        args.channels_inner = p.y.c < p.y.t;
        return conv1d_fwd_any_launch(p.accumulator, outputs(p));
    });
}

} // namespace plait::impl
