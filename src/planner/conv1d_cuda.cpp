#include "src/planner/conv1d_cuda.h"

#include "lib/cuda/conv1d/state_layout.h"
#include "src/core/text.h"

#include <algorithm>

namespace plait::impl {

namespace {

/// From the first load of a block to its last store with nothing else running.
constexpr double block_latency_seconds = 1.2e-6;
/// Threads of an SM that keep the memory busy; with fewer it idles in proportion.
constexpr double threads_per_sm_for_bandwidth = 512;
/// Share of the issue slots that index arithmetic and taps reach.
constexpr double issue_share = 0.6;

/// An architecture in the list means its code and its PTX, so everything newer runs it too.
verdict built_for(const profile &device) {
    const int have = device.cc_major * 10 + device.cc_minor;
    for (const int arch : device.built)
        if (arch <= have) return "";
    if (device.built.empty()) return "this build holds no CUDA kernels";
    return text("this build holds kernels from ", device.built.front(), " up; the device is ",
                device.cc_major, '.', device.cc_minor);
}

int64_t at_least_one(int64_t n) { return std::max<int64_t>(n, 1); }

int64_t elements(const conv1d_problem &p) { return p.batch * p.channels * p.length; }

int64_t owners_bytes(const conv1d_problem &p) {
    return p.pooled && p.status ? at_least_one(p.slots) * static_cast<int64_t>(sizeof(uint64_t))
                                : 0;
}

int64_t spans_bytes(const conv1d_problem &p) {
    return p.varlen ? at_least_one(p.sequences) * static_cast<int64_t>(sizeof(conv1d_span)) : 0;
}

int64_t slots_bytes(const conv1d_problem &p) {
    return p.pooled ? at_least_one(p.sequences) * static_cast<int64_t>(sizeof(int32_t)) : 0;
}

/// History that taps read in front of the samples.
int64_t history_bytes(const conv1d_problem &p) {
    if (!p.state_in.used()) return 0;
    return p.sequences * p.channels * p.history() * scalar_bytes(p.state_in.type);
}

} // namespace

verdict conv1d_cuda_device(const problem &problem, const profile &device) {
    if (device.backend != PLAIT_CUDA) return "the device is no CUDA device";
    if (problem.empty) return "the problem is empty: there is nothing to run";
    return built_for(device);
}

bool conv1d_needs_offsets(const conv1d_problem &p) { return p.varlen || (p.pooled && p.status); }

int64_t conv1d_offsets_bytes(const conv1d_problem &p) {
    if (!conv1d_needs_offsets(p)) return 0;
    constexpr int64_t most = INT64_C(1) << 55; // of no memory; 16 bytes each are within 64 bits
    if (p.sequences > most || p.slots > most) return INT64_MAX;
    const int64_t align = PLAIT_WORKSPACE_ALIGNMENT - 1; // what each of three pieces may lose
    return spans_bytes(p) + slots_bytes(p) + owners_bytes(p) + 3 * align;
}

conv1d_sanitized conv1d_add_offsets(pipeline &out, const conv1d_problem &p, int last_step) {
    conv1d_sanitized found{{}, p.pooled ? role_operand(PLAIT_SLOTS, false) : operand{}, p.pad};
    if (!conv1d_needs_offsets(p)) return found;
    const int now = static_cast<int>(out.steps.size());
    const auto piece = [&](const char *name, int64_t bytes, int last) {
        return bytes > 0 ? piece_operand(out.work.book(name, bytes, now, last), true) : operand{};
    };
    step s;
    const conv1d_launch l = conv1d_offsets_launch(p.sequences);
    s.kernel = "conv1d.offsets";
    s.variant = l.variant;
    s.grid = l.grid;
    s.block = l.threads;
    s.smem_bytes = l.smem_bytes;
    const operand spans = piece("spans", spans_bytes(p), last_step);
    const operand slots = piece("slots", slots_bytes(p), last_step);
    const operand owners = piece("owners", owners_bytes(p), now);
    s.operands = {p.varlen ? role_operand(PLAIT_CU_SEQLENS, false) : operand{},
                  found.slots,
                  spans,
                  slots,
                  owners,
                  p.status ? role_operand(PLAIT_STATUS, true) : operand{}};
    conv1d_offsets_args args{};
    args.sequences = p.sequences;
    args.tokens = p.length;
    args.max_length = p.max_length;
    args.slot_count = p.slots;
    args.pad = p.pad;
    args.wide = p.index == scalar::i64;
    s.args = step_args(args);
    s.bytes_read = (p.varlen ? (p.sequences + 1) * scalar_bytes(p.index) : 0) +
                   (p.pooled ? p.sequences * 4 : 0);
    s.bytes_written = (p.varlen ? p.sequences * static_cast<int64_t>(sizeof(conv1d_span)) : 0) +
                      (p.pooled ? p.sequences * 4 : 0) + (p.status ? 4 : 0);
    out.steps.push_back(std::move(s));
    found.spans = spans;
    found.spans.written = false;
    if (p.pooled) {
        found.slots = slots;
        found.slots.written = false;
        found.pad = -1;
    }
    return found;
}

void conv1d_add_state(pipeline &out, const conv1d_problem &p, const conv1d_sanitized &from) {
    step s;
    const conv1d_launch l = conv1d_state_launch(p.sequences, p.channels);
    s.kernel = "conv1d.state";
    s.variant = l.variant;
    s.grid = l.grid;
    s.block = l.threads;
    s.operands = {role_operand(PLAIT_X, false),
                  p.state_in.used() ? role_operand(PLAIT_STATE_IN, false) : operand{},
                  from.slots,
                  from.spans,
                  p.seq_idx.used() ? role_operand(PLAIT_SEQ_IDX, false) : operand{},
                  role_operand(PLAIT_STATE_OUT, true)};
    conv1d_state_args args{};
    args.x_stride = conv1d_strides_of(p.x);
    args.in_stride = conv1d_strides_of(p.state_in);
    args.out_stride = conv1d_strides_of(p.state_out);
    args.ids_b = p.seq_idx.b;
    args.ids_t = p.seq_idx.t;
    args.sequences = p.sequences;
    args.channels = p.channels;
    args.length = p.length;
    args.entries = p.entries;
    args.slot_count = p.slots;
    args.pad = from.pad;
    args.x_type = p.x.type;
    args.in_type = p.state_in.type;
    args.out_type = p.state_out.type;
    s.args = step_args(args);
    s.bytes_written = p.sequences * p.channels * p.entries * scalar_bytes(p.state_out.type);
    s.bytes_read = p.sequences * p.channels * p.entries * scalar_bytes(p.x.type);
    out.steps.push_back(std::move(s));
}

void conv1d_start_early(pipeline &out, const profile &device, bool all) {
    if (!waits_for_predecessors(device)) return;
    for (size_t i = all ? 0 : 1; i < out.steps.size(); ++i) out.steps[i].programmatic = true;
}

bool conv1d_taps_packed(const conv1d_problem &p) {
    const int64_t bytes = 4 * scalar_bytes(p.w.type);
    return p.width % 4 == 0 && p.w.t == 1 && p.w.align >= bytes &&
           (p.channels <= 1 || p.w.c % 4 == 0);
}

verdict conv1d_vector_types(const conv1d_problem &p) {
    const scalar s = p.x.type;
    if (elements(p) == 0) return "y is empty; only states are to be written";
    if (s == scalar::f64) return "x is f64; needs f16, bf16 or f32";
    if (p.y.type != s) return text("y is ", scalar_name(p.y.type), " and x ", scalar_name(s));
    const auto fits = [&](const conv1d_view &v) {
        return !v.used() || v.type == s || v.type == scalar::f32;
    };
    if (!fits(p.w)) return text("w is ", scalar_name(p.w.type), "; needs x's type or f32");
    if (!fits(p.bias)) return text("bias is ", scalar_name(p.bias.type), "; needs x's type or f32");
    if (!fits(p.state_in))
        return text("state_in is ", scalar_name(p.state_in.type), "; needs x's type or f32");
    if (p.accumulator != scalar::f32) return "a tensor is f64";
    return "";
}

int64_t conv1d_bytes_read(const conv1d_problem &p) {
    int64_t bytes = elements(p) * scalar_bytes(p.x.type) +
                    p.channels * p.width * scalar_bytes(p.w.type) + history_bytes(p);
    if (p.bias.used()) bytes += p.channels * scalar_bytes(p.bias.type);
    if (p.seq_idx.used()) bytes += p.batch * p.length * 4;
    return bytes;
}

int64_t conv1d_bytes_written(const conv1d_problem &p) {
    return elements(p) * scalar_bytes(p.y.type);
}

int64_t conv1d_flops(const conv1d_problem &p) { return 2 * elements(p) * p.width; }

cost conv1d_cuda_cost(const conv1d_problem &p, const profile &device, double share, double slots,
                      double threads, int launches) {
    cost c;
    c.launch_seconds = launches * device.launch_seconds;
    c.seconds = c.launch_seconds + launches * block_latency_seconds;
    if (elements(p) == 0) return c; // states alone: a launch
    const double busy =
        std::clamp(threads / (device.sms * threads_per_sm_for_bandwidth), 1e-6, 1.0);
    const double bytes = static_cast<double>(conv1d_bytes_read(p) + conv1d_bytes_written(p));
    const bool wide = p.accumulator == scalar::f64;
    const double rate = wide ? device.f64_per_second : device.f32_per_second;
    c.memory_seconds = bytes / (device.copy_bandwidth * share * busy);
    c.compute_seconds = static_cast<double>(elements(p)) * slots / (rate * issue_share * busy);
    c.seconds += std::max(c.memory_seconds, c.compute_seconds);
    return c;
}

} // namespace plait::impl
