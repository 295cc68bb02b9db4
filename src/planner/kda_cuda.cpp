#include "src/planner/kda_cuda.h"

#include "lib/cuda/kda/gaps_layout.h"
#include "lib/cuda/kda/offsets_layout.h"
#include "src/core/text.h"
#include "src/planner/cpu_cost.h"

#include <algorithm>

namespace plait::impl {

namespace {

/// From the first load of a block to its last store with nothing else running.
constexpr double block_latency_seconds = 1.5e-6;

/// An architecture in the list means its code and its PTX, so everything newer runs it too.
verdict built_for(const profile &device) {
    const int have = device.cc_major * 10 + device.cc_minor;
    for (const int arch : device.built)
        if (arch <= have) return "";
    if (device.built.empty()) return "this build holds no CUDA kernels";
    return text("this build holds kernels from ", device.built.front(), " up; the device is ",
                device.cc_major, '.', device.cc_minor);
}

int64_t table_bytes(const kda_problem &p) {
    return (p.sequences + 1) * static_cast<int64_t>(sizeof(kda_sequence));
}
int64_t chunks_bytes(const kda_problem &p, int64_t chunk) {
    if (!p.varlen || chunk == 0) return 0;
    return kda_chunk_slots(p, chunk) * static_cast<int64_t>(sizeof(kda_chunk));
}
int64_t owners_bytes(const kda_problem &p) {
    if (!p.pooled || !p.status) return 0;
    return std::max<int64_t>(p.slots, 1) * static_cast<int64_t>(sizeof(uint64_t));
}

constexpr std::initializer_list<plait_role> cleared = {PLAIT_O,  PLAIT_DQ, PLAIT_DK,
                                                       PLAIT_DV, PLAIT_DG, PLAIT_DBETA};

} // namespace

verdict kda_cuda_device(const problem &problem, const profile &device) {
    if (device.backend != PLAIT_CUDA) return "the device is no CUDA device";
    if (problem.empty) return "the problem is empty: there is nothing to run";
    for (const tensor &t : problem.tensors)
        if (t.dtype == PLAIT_F64)
            return text(role_name(t.role), " is f64; the arithmetic of kda on CUDA is f32");
    return built_for(device);
}

verdict kda_without_reserve(const problem &problem) {
    const kda_problem &p = problem.kda();
    if (!p.reserve) return "";
    return p.direction == kda_direction::backward
               ? "role=reserve is in use, and it reads none; kda.bwd.cuda.chunk64 does"
               : "role=reserve is in use, and it writes none; kda.fwd.cuda.chunk64 does";
}

int64_t kda_offsets_bytes(const kda_problem &p, int64_t chunk) {
    if (!kda_needs_offsets(p)) return 0;
    constexpr int64_t most = INT64_C(1) << 55; // of no memory; 48 bytes each are within 64 bits
    if (p.sequences > most || p.slots > most || p.length > most) return INT64_MAX;
    const int64_t align = PLAIT_WORKSPACE_ALIGNMENT - 1; // what each of three pieces may lose
    return table_bytes(p) + chunks_bytes(p, chunk) + owners_bytes(p) + 3 * align;
}

kda_sanitized kda_add_offsets(pipeline &out, const kda_problem &p, int64_t chunk, int last_step) {
    const operand slots = p.pooled ? role_operand(PLAIT_SLOTS, false) : operand{};
    if (!kda_needs_offsets(p)) return {{}, {}, slots};
    const int now = static_cast<int>(out.steps.size());
    const auto piece = [&](const char *name, int64_t bytes, int last) {
        return bytes > 0 ? piece_operand(out.work.book(name, bytes, now, last), true) : operand{};
    };
    kda_sanitized found{piece("sequences", table_bytes(p), last_step),
                        piece("chunks", chunks_bytes(p, chunk), last_step),
                        {}};
    step s;
    s.operands = {p.varlen ? role_operand(PLAIT_CU_SEQLENS, false) : operand{},
                  slots,
                  found.table,
                  found.chunks,
                  piece("owners", owners_bytes(p), now),
                  p.status ? role_operand(PLAIT_STATUS, true) : operand{},
                  kda_reads_reserve(p) ? role_operand(PLAIT_RESERVE, false) : operand{}};
    kda_offsets_args args{};
    args.expected = kda_reserve_header_of(p, kda_reserve_kind::records);
    args.sequences = p.sequences;
    args.tokens = p.length;
    args.max_length = p.max_length;
    args.slot_count = p.slots;
    args.chunk = std::max<int64_t>(chunk, 1);
    args.chunk_slots = found.chunks.from == operand::source::none ? 0 : kda_chunk_slots(p, chunk);
    args.pad = p.pad;
    args.wide = p.index == scalar::i64;
    s.args = step_args(args);
    kda_set_launch(s, "kda.offsets", kda_offsets_launch());
    s.bytes_read = (p.varlen ? (p.sequences + 1) * scalar_bytes(p.index) : 0) +
                   (p.pooled ? p.sequences * 4 : 0) +
                   (kda_reads_reserve(p) ? static_cast<int64_t>(sizeof(kda_reserve_header)) : 0);
    s.bytes_written = table_bytes(p) + chunks_bytes(p, chunk) + (p.status ? 4 : 0);
    out.steps.push_back(std::move(s));
    found.table.written = false;
    found.chunks.written = false;
    return found;
}

bool kda_needs_gaps(const kda_problem &p) {
    if (!kda_has_gaps(p) || p.batch * p.length == 0) return false;
    for (const kda_view *v : {&p.o, &p.dq, &p.dk, &p.dv, &p.dg, &p.dbeta})
        if (v->used()) return true;
    return false;
}

void kda_add_gaps(pipeline &out, const problem &problem, const kda_sanitized &from) {
    const kda_problem &p = problem.kda();
    if (!kda_needs_gaps(p)) return;
    step s;
    s.operands = {from.table, from.slots};
    for (const plait_role role : cleared) s.operands.push_back(kda_operand(problem, role));
    kda_gaps_args args{};
    args.problem = p;
    kda_set_launch(s, "kda.gaps", kda_gaps_launch(args));
    s.args = step_args(args);
    s.bytes_read = kda_needs_offsets(p) ? table_bytes(p) : p.sequences * 4;
    out.steps.push_back(std::move(s));
}

operand kda_operand(const problem &problem, plait_role role) {
    const tensor *t = problem.find(role);
    return t ? role_operand(role, (t->access & PLAIT_WRITE) != 0) : operand{};
}

std::vector<operand> kda_operands(const problem &problem, std::initializer_list<plait_role> roles) {
    std::vector<operand> list;
    for (const plait_role role : roles) list.push_back(kda_operand(problem, role));
    return list;
}

void kda_set_launch(step &s, const char *kernel, const kda_launch &l) {
    s.kernel = kernel;
    s.variant = l.variant;
    s.grid = l.grid;
    s.block = l.threads;
    s.smem_bytes = l.smem_bytes;
    s.cluster = l.cluster;
}

void kda_add_traffic(const problem &problem, step &s) {
    const kda_problem &p = problem.kda();
    for (const tensor &t : problem.tensors) {
        int64_t bytes = touched_bytes(t);
        const bool state = t.role == PLAIT_STATE_IN || t.role == PLAIT_STATE_OUT;
        if (state && p.pooled && p.slots > p.sequences) bytes = bytes / p.slots * p.sequences;
        (t.access & PLAIT_READ ? s.bytes_read : s.bytes_written) += bytes;
    }
}

int64_t kda_flops(const kda_problem &p) {
    const double entries = static_cast<double>(p.batch) * static_cast<double>(p.length) *
                           static_cast<double>(p.value_heads) * static_cast<double>(p.dim_k) *
                           static_cast<double>(p.dim_v);
    return static_cast<int64_t>(entries * (p.direction == kda_direction::backward ? 22 : 7));
}

cost kda_cuda_cost(const profile &device, double bytes, double share, double flops, double rate,
                   double serial, int launches) {
    cost c;
    c.launch_seconds = launches * device.launch_seconds;
    c.memory_seconds = bytes / (device.copy_bandwidth * share);
    c.compute_seconds = flops / (device.f32_per_second * rate) + serial;
    c.seconds = c.launch_seconds + launches * block_latency_seconds +
                std::max(c.memory_seconds, c.compute_seconds);
    return c;
}

} // namespace plait::impl
