// kda.fwd.cuda.chunk64: kda.chunk64_prep makes a record of every chunk of 64 tokens and value head,
// kda.chunk64_fwd_scan walks over the records of a sequence.
#include "lib/cuda/kda/chunk64_fwd_scan_layout.h"
#include "lib/cuda/kda/chunk64_prep_layout.h"
#include "src/core/text.h"
#include "src/planner/kda_cuda.h"

#include <algorithm>

namespace plait::impl {

namespace {

/// With fewer most of a tile is padding.
constexpr int64_t fewest_keys = 32, most_keys = 192;
constexpr int64_t fewest_values = 8, most_values = 256;
constexpr int64_t fewest_tokens = 16; ///< of the longest sequence

/// Estimates: shares of the copy bandwidth and of what tensor cores give to mma.sync, from 132 SMs
/// at 1.755 GHz; seconds of a chunk of 64 tokens that no other block shortens, for 128 keys.
constexpr double memory_share = 0.8;
constexpr double tensor_flops_per_sm = 3.0e12;
constexpr double step_seconds = 1.2e-6;
/// Exponentials of a record's elements, at a share of 16 for each SM and cycle.
constexpr double exponentials = 8;
constexpr double exponentials_per_sm = 16 * 1.755e9 * 0.5;

int64_t chunk_heads(const kda_problem &p) { return kda_chunk_slots(p, kda64_rows) * p.value_heads; }

int64_t record_bytes(const kda_problem &p) { return kda64_record_of(kda64_keys(p.dim_k)).bytes; }

/// Four warps have 64 values. Two, for 65 to 128 keys, where that leaves half of the SMs without a
/// block.
int scan_warps(const kda_problem &p, const profile &device) {
    if (kda64_keys(p.dim_k) != 128) return 4;
    if (p.dim_v <= 32) return 2;
    const int64_t blocks = p.sequences * p.value_heads * kda64_scan_slices(p.dim_v, 4);
    return blocks * 2 <= device.sms ? 2 : 4;
}

/// Pieces of 8 values of V are 16 aligned bytes.
bool values_aligned(const kda_problem &p) {
    const kda_view &v = p.v;
    const auto fits = [](int64_t extent, int64_t stride) { return extent <= 1 || stride % 8 == 0; };
    return v.c == 1 && v.align >= 16 && p.dim_v % 8 == 0 && fits(p.batch, v.b) &&
           fits(p.length, v.t) && fits(p.value_heads, v.h);
}

verdict applicable(const problem &problem, const profile &device) {
    const verdict v = kda_cuda_device(problem, device);
    if (!v.empty()) return v;
    const kda_problem &p = problem.kda();
    if (device.cc_major < 9)
        return text("needs compute capability 9.0; the device has ", device.cc_major, '.',
                    device.cc_minor);
    if (!kda_is_half(p.v.type))
        return text("v is ", scalar_name(p.v.type), "; operands are bf16, v must be f16 or bf16");
    if (p.dim_k < fewest_keys || p.dim_k > most_keys)
        return text("dim_k=", p.dim_k, "; must be ", fewest_keys, " to ", most_keys);
    if (p.dim_v < fewest_values || p.dim_v > most_values)
        return text("dim_v=", p.dim_v, "; must be ", fewest_values, " to ", most_values);
    if (p.longest() < fewest_tokens)
        return text("sequences have at most ", p.longest(), " tokens, and a chunk is 64; from ",
                    fewest_tokens, " on");
    if (p.length > most_bytes / kda64_rows || p.sequences > most_bytes / kda64_rows ||
        p.value_heads > most_bytes / kda64_rows)
        return "more chunks than a workspace holds";
    if (kda_chunk_slots(p, kda64_rows) * p.value_heads == 0) return "there are no chunks";
    const int64_t heads = chunk_heads(p);
    const kda64_scan_shape shape =
        kda64_fwd_scan_shape_of(kda64_keys(p.dim_k), scan_warps(p, device));
    if (shape.bytes > device.smem_per_block)
        return text("a block takes ", shape.bytes, " bytes of shared memory; the device has ",
                    device.smem_per_block);
    const int64_t offsets = kda_offsets_bytes(p, kda64_rows);
    if (heads > most_bytes / record_bytes(p) || offsets == INT64_MAX)
        return "more chunks than a workspace holds";
    return fits_memory(problem, device,
                       heads * record_bytes(p) + offsets + PLAIT_WORKSPACE_ALIGNMENT - 1);
}

/// Flops of a chunk and head: of pairs, and of what meets the state.
int64_t prep_flops(const kda_problem &p) {
    return 40 * 2 * 16 * 8 * kda64_keys(p.dim_k) + 2 * 64 * 64 * 64 / 3;
}
int64_t scan_flops(const kda_problem &p) {
    return 2 * 64 * p.dim_v * (3 * kda64_keys(p.dim_k) + 2 * 40);
}

int64_t token_bytes(const kda_view &v, const kda_problem &p, int64_t heads, int64_t channels) {
    return v.used() ? p.batch * p.length * heads * channels * scalar_bytes(v.type) : 0;
}
int64_t state_bytes(const kda_state_view &v, const kda_problem &p) {
    return v.used() ? p.sequences * p.value_heads * p.dim_k * p.dim_v * scalar_bytes(v.type) : 0;
}

/// Appends kda.chunk64_prep; records live until `last_step`.
operand add_prep(pipeline &out, const problem &problem, const kda_sanitized &from, int last_step) {
    const kda_problem &p = problem.kda();
    const int now = static_cast<int>(out.steps.size());
    const operand records = piece_operand(
        out.work.book("records", chunk_heads(p) * record_bytes(p), now, last_step), true);
    step s;
    s.operands =
        kda_operands(problem, {PLAIT_Q, PLAIT_K, PLAIT_G, PLAIT_BETA, PLAIT_A_LOG, PLAIT_DT_BIAS});
    for (const operand &o : {from.slots, from.table, from.chunks, records}) s.operands.push_back(o);
    kda_chunk64_prep_args args{};
    args.p = p;
    kda_set_launch(s, "kda.chunk64_prep", kda_chunk64_prep_launch(args));
    s.args = step_args(args);
    s.bytes_read = (token_bytes(p.q, p, p.heads, p.dim_k) + token_bytes(p.k, p, p.heads, p.dim_k)) +
                   token_bytes(p.g, p, p.value_heads, p.dim_k) +
                   token_bytes(p.beta, p, p.value_heads, 1);
    s.bytes_written = chunk_heads(p) * record_bytes(p);
    s.flops = chunk_heads(p) * prep_flops(p);
    out.steps.push_back(std::move(s));
    operand read = records;
    read.written = false;
    return read;
}

void add_scan(pipeline &out, const problem &problem, const profile &device,
              const kda_sanitized &from, const operand &records) {
    const kda_problem &p = problem.kda();
    step s;
    s.operands = {records};
    for (const operand &o :
         kda_operands(problem, {PLAIT_V, PLAIT_STATE_IN, PLAIT_STATE_OUT, PLAIT_O}))
        s.operands.push_back(o);
    for (const operand &o : {operand{}, operand{}, from.slots, from.table}) s.operands.push_back(o);
    kda_chunk64_fwd_scan_args args{};
    args.p = p;
    args.vector = values_aligned(p);
    kda_set_launch(s, "kda.chunk64_fwd_scan",
                   kda_chunk64_fwd_scan_launch(args, scan_warps(p, device)));
    s.args = step_args(args);
    s.bytes_read = chunk_heads(p) * record_bytes(p) + token_bytes(p.v, p, p.value_heads, p.dim_v) +
                   state_bytes(p.state_in, p);
    s.bytes_written = token_bytes(p.o, p, p.value_heads, p.dim_v) + state_bytes(p.state_out, p);
    s.flops = chunk_heads(p) * scan_flops(p);
    out.steps.push_back(std::move(s));
}

} // namespace

verdict kda_cuda_fwd_chunk64_applicable(const problem &problem, const profile &device) {
    return applicable(problem, device);
}

cost kda_cuda_fwd_chunk64_estimate(const problem &problem, const profile &device) {
    const kda_problem &p = problem.kda();
    const auto heads = static_cast<double>(chunk_heads(p));
    const double tokens = static_cast<double>(p.batch) * static_cast<double>(p.length);
    const double bytes =
        2 * heads * static_cast<double>(record_bytes(p)) +
        tokens * static_cast<double>(p.value_heads) * 4 * static_cast<double>(p.dim_k + p.dim_v);
    const double per_head =
        static_cast<double>(prep_flops(p) + scan_flops(p)) / tensor_flops_per_sm +
        exponentials * 64 * kda64_keys(p.dim_k) / exponentials_per_sm;
    const double busy = heads * per_head / device.sms;
    const double chunks = static_cast<double>(kda_ceil_div(p.longest(), kda64_rows));
    const double serial = chunks * step_seconds * kda64_keys(p.dim_k) / 128;
    return kda_cuda_cost(device, bytes, memory_share, 0, 1, std::max(busy, serial),
                         kda_needs_offsets(p) ? 3 : 2);
}

pipeline kda_cuda_fwd_chunk64_build(const problem &problem, const profile &device) {
    const kda_problem &p = problem.kda();
    pipeline out;
    const int scan = kda_needs_offsets(p) ? 2 : 1;
    const kda_sanitized from = kda_add_offsets(out, p, kda64_rows, scan);
    const operand records = add_prep(out, problem, from, scan);
    add_scan(out, problem, device, from, records);
    out.work.seal();
    return out;
}

} // namespace plait::impl
