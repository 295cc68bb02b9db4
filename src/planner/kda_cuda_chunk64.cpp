// kda.{fwd,bwd}.cuda.chunk64: kda.chunk64_prep makes a record of every chunk of 64 tokens and value
// head, scans walk over the records of a sequence, kda.chunk64_grad takes every chunk by itself.
#include "src/planner/kda_cuda_chunk64.h"
#include "lib/cuda/kda/chunk64_bwd_scan_layout.h"
#include "lib/cuda/kda/chunk64_grad_layout.h"
#include "lib/cuda/kda/chunk64_near_layout.h"
#include "lib/cuda/kda/chunk64_scans_layout.h"
#include "src/core/text.h"

#include <algorithm>
#include <utility>

namespace plait::impl {

namespace {

/// With fewer most of a tile is padding.
constexpr int64_t fewest_keys = 32, most_keys = 192;
constexpr int64_t fewest_values = 8, most_values = 256;
constexpr int64_t fewest_values_back = 16;
/// Of the longest sequence.
constexpr int64_t fewest_tokens = 16, fewest_tokens_back = 64;

/// From what an H200 takes, 128 keys: three blocks of kda.chunk64_prep, or one of kda.chunk64_grad,
/// on every SM; a chunk of the scans by their warps; what a scan takes without chunks.
constexpr double memory_share = 0.8;
constexpr double prep_seconds = 18.5e-6;
constexpr double grad_seconds = 21.5e-6;
constexpr double scan_seconds = 8e-6;
double step_seconds(int warps, bool pair) {
    if (warps <= kda64_split_most) return pair ? (warps == 1 ? 0.8e-6 : 1.0e-6) : 1.7e-6;
    return warps == 8 ? 3.1e-6 : 2.0e-6;
}
double steps_back_seconds(int warps) { return warps == 8 ? 10.5e-6 : 6.2e-6; } ///< both scans
/// Of both scans at once that of kda.chunk64_bwd_scan.
constexpr double beside_share = 0.61;
/// Of a scan that leaves O and what backward reads, beside one that leaves O: 64 and 96 heads.
double all_factor(int warps) { return warps == 8 ? 1.7 : 2.0; }
double scans_seconds(int tiles) { return tiles == 1 ? 1.3e-6 : 2.0e-6; } ///< kda.chunk64_scans

/// Four warps have 64 values; eight where four make more blocks than a scan has SMs, of which each
/// has room for one. Forward, 65 to 128 keys, also 32 values or 16 to a block, whose chain from
/// state to state is shorter, where L2 brings records as fast as all blocks read them.
int scan_warps(const kda_problem &p, const profile &device) {
    const bool backward = p.direction == kda_direction::backward;
    if (kda64_keys(p.dim_k) != 128) return 4;
    const auto blocks = [&p](int warps) {
        return p.sequences * p.value_heads * kda64_scan_slices(p.dim_v, warps);
    };
    const bool keeps = kda_keeps_states(p); // which few values to a block do not
    if (!backward && !keeps && blocks(1) <= device.sms / 2) return 1;
    if (!backward && !keeps && (p.dim_v <= 32 || blocks(2) <= device.sms)) return 2;
    // Backward has two scans that do not need each other, where the reserve has no states.
    const int64_t most = backward && !keeps ? device.sms / 2 : device.sms;
    return blocks(4) > most && kda_ceil_div(p.dim_v, 64) % 2 == 0 ? 8 : 4;
}

/// O has blocks of its own where there are SMs for them.
bool scan_pair(const kda_problem &p, int warps, const profile &device) {
    const int64_t blocks = p.sequences * p.value_heads * kda64_scan_slices(p.dim_v, warps);
    return warps <= kda64_split_most && blocks <= device.sms / 2;
}

/// Backward with few heads, 65 to 128 keys: tiles of 16 values of a block of kda.chunk64_scans,
/// where all run at once, one if they do then; else 0.
int scans_tiles(const kda_problem &p, const profile &device) {
    if (p.direction != kda_direction::backward || kda64_keys(p.dim_k) != 128 || kda_keeps_states(p))
        return 0;
    if (kda64_scans_ring_of(128, 2, true).bytes > device.smem_per_block) return 0;
    const int64_t blocks = 2 * p.sequences * p.value_heads * values_of(p) / 16; // with one tile
    return blocks <= device.sms ? 1 : blocks <= device.sms * 2 ? 2 : 0;
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
    // A forward writes no reserve that backward would not read.
    const bool backward = p.direction == kda_direction::backward || p.reserve;
    for (const auto &[name, v] : {std::pair{"q", &p.q}, {"k", &p.k}})
        if (backward && !kda_is_half(v->type))
            return text(name, " is ", scalar_name(v->type), "; must be f16 or bf16");
    const int64_t keys = backward ? kda64_grad_keys : most_keys;
    const int64_t values = backward ? kda64_grad_values : most_values;
    if (p.dim_k < fewest_keys || p.dim_k > keys)
        return text("dim_k=", p.dim_k, "; must be ", fewest_keys, " to ", keys);
    const int64_t least = backward ? fewest_values_back : fewest_values;
    if (p.dim_v < least || p.dim_v > values)
        return text("dim_v=", p.dim_v, "; must be ", least, " to ", values);
    const int64_t tokens = backward ? fewest_tokens_back : fewest_tokens;
    if (p.longest() < tokens)
        return text("sequences have at most ", p.longest(), " tokens, and a chunk is 64; from ",
                    tokens, " on");
    if (p.length > most_bytes / kda64_rows || p.sequences > most_bytes / kda64_rows ||
        p.value_heads > most_bytes / kda64_rows)
        return "more chunks than a workspace holds";
    if (kda_chunk_slots(p, kda64_rows) * p.value_heads == 0) return "there are no chunks";
    const int64_t heads = chunk_heads(p);
    const int warps = scan_warps(p, device);
    int64_t shared = kda64_forward_bytes(kda64_keys(p.dim_k), warps, scan_pair(p, warps, device));
    if (backward)
        shared =
            std::max<int64_t>({shared, kda64_bwd_scan_shape_of(kda64_keys(p.dim_k), warps).bytes,
                               kda64_grad_shared_of(kda64_keys(p.dim_k),
                                                    static_cast<int>(values_of(p)), p.group() > 1)
                                   .bytes});
    if (shared > device.smem_per_block)
        return text("a block takes ", shared, " bytes of shared memory; the device has ",
                    device.smem_per_block);
    const int64_t offsets = kda_offsets_bytes(p, kda64_rows);
    if (heads > most_bytes / (record_bytes(p) + work_bytes(p)) || offsets == INT64_MAX)
        return "more chunks than a workspace holds";
    return fits_memory(problem, device,
                       heads * work_bytes(p) + offsets + 6 * (PLAIT_WORKSPACE_ALIGNMENT - 1));
}

constexpr std::initializer_list<plait_role> inputs = {PLAIT_Q,    PLAIT_K,     PLAIT_G,
                                                      PLAIT_BETA, PLAIT_A_LOG, PLAIT_DT_BIAS};

void append(step &s, std::initializer_list<operand> more) {
    s.operands.insert(s.operands.end(), more);
}

operand read_only(operand o) {
    o.written = false;
    return o;
}

operand book(pipeline &out, const char *name, int64_t bytes, int last_step) {
    return piece_operand(out.work.book(name, bytes, static_cast<int>(out.steps.size()), last_step),
                         true);
}

/// Backward divides by a beta that is given. In place of 0 this leaves u the digits of what the
/// token asks for and adds nothing that f32 would keep.
float least_beta(const kda_problem &p) {
    const bool backward = p.direction == kda_direction::backward || p.reserve;
    return backward && !p.beta_logit ? 0x1p-60f : 0.0f;
}

operand reserve_records(bool written) {
    return role_operand(PLAIT_RESERVE, written, kda_reserve_head);
}
/// What kda.chunk64_fwd_scan leaves of each chunk.
operand reserve_states(const kda_problem &p, bool written) {
    return role_operand(PLAIT_RESERVE, written, kda_reserve_shape_of(p).states_at());
}
operand reserve_rows(const kda_problem &p, bool written) {
    return role_operand(PLAIT_RESERVE, written, kda_reserve_shape_of(p).rows_at());
}

/// Appends kda.chunk64_prep; records live until `last_step`, or in the reserve.
operand add_prep(pipeline &out, const problem &problem, const kda_sanitized &from, int last_step,
                 const profile &device) {
    const kda_problem &p = problem.kda();
    const operand records = p.reserve
                                ? reserve_records(true)
                                : book(out, "records", chunk_heads(p) * record_bytes(p), last_step);
    step s;
    s.operands = kda_operands(problem, inputs);
    append(s, {from.slots, from.table, from.chunks, records,
               p.reserve ? role_operand(PLAIT_RESERVE, true) : operand{}});
    kda_chunk64_prep_args args{};
    args.p = p;
    args.header = kda_reserve_header_of(p, kda_reserve_kind::records);
    args.least_beta = least_beta(p);
    kda_set_launch(s, "kda.chunk64_prep", kda_chunk64_prep_launch(args, device.sms));
    s.args = step_args(args);
    s.bytes_read = input_bytes(p);
    s.bytes_written = chunk_heads(p) * record_bytes(p);
    s.flops = chunk_heads(p) * prep_flops(p);
    out.steps.push_back(std::move(s));
    return read_only(records);
}

/// With O and STATE_OUT, or with what backward reads of each chunk.
void add_scan(pipeline &out, const problem &problem, const kda_sanitized &from,
              const operand &records, int warps, bool pair, const operand &states,
              const operand &written, const profile &device) {
    const kda_problem &p = problem.kda();
    const bool backward = p.direction == kda_direction::backward;
    step s;
    s.operands = {records};
    for (const operand &o : kda_operands(problem, {PLAIT_V, PLAIT_STATE_IN})) append(s, {o});
    if (backward)
        append(s, {operand{}, operand{}});
    else
        append(s, {kda_operand(problem, PLAIT_STATE_OUT), kda_operand(problem, PLAIT_O)});
    append(s, {states, written, from.slots, from.table});
    kda_chunk64_fwd_scan_args args{};
    args.p = p;
    args.vector = values_aligned(p, p.v);
    args.whole = kda_is_half(p.o.type) && p.dim_v % 16 == 0 && values_aligned(p, p.o);
    kda_set_launch(s, "kda.chunk64_fwd_scan", kda_chunk64_fwd_scan_launch(args, warps, pair));
    // Not backward: kda.chunk64_bwd_scan runs beside it, for which the records must be complete.
    s.programmatic = !backward && waits_for_predecessors(device);
    s.args = step_args(args);
    const kda64_record r = kda64_record_of(kda64_keys(p.dim_k));
    s.bytes_read = chunk_heads(p) * (backward ? r.states : r.bytes) +
                   token_bytes(p.v, p, p.value_heads, p.dim_v) + state_bytes(p.state_in, p);
    if (backward || kda_keeps_states(p))
        s.bytes_written = chunk_heads(p) * (state_tile_bytes(p) + row_tile_bytes(p));
    if (!backward)
        s.bytes_written +=
            token_bytes(p.o, p, p.value_heads, p.dim_v) + state_bytes(p.state_out, p);
    s.flops = chunk_heads(p) * scan_flops(p);
    out.steps.push_back(std::move(s));
}

void add_reverse_scan(pipeline &out, const problem &problem, const kda_sanitized &from,
                      const operand &records, int warps, const operand &gradients,
                      const operand &adjoints) {
    const kda_problem &p = problem.kda();
    step s;
    s.operands = {records};
    for (const operand &o :
         kda_operands(problem, {PLAIT_DO, PLAIT_DSTATE_OUT, PLAIT_DSTATE_IN, PLAIT_DV}))
        append(s, {o});
    append(s, {gradients, adjoints, from.slots, from.table});
    // Of kda.chunk64_fwd_scan: where few blocks of one leave SMs, both run at once.
    s.beside = !kda_keeps_states(p);
    kda_chunk64_bwd_scan_args args{};
    args.p = p;
    args.vector = p.d_o.type == scalar::bf16 && values_aligned(p, p.d_o);
    kda_set_launch(s, "kda.chunk64_bwd_scan", kda_chunk64_bwd_scan_launch(args, warps));
    s.args = step_args(args);
    s.bytes_read = chunk_heads(p) * record_bytes(p) +
                   token_bytes(p.d_o, p, p.value_heads, p.dim_v) + state_bytes(p.dstate_out, p);
    s.bytes_written = chunk_heads(p) * (state_tile_bytes(p) + row_tile_bytes(p)) +
                      token_bytes(p.dv, p, p.value_heads, p.dim_v) + state_bytes(p.dstate_in, p);
    s.flops = chunk_heads(p) * scan_flops(p);
    out.steps.push_back(std::move(s));
}

/// Both scans in one step.
void add_scans(pipeline &out, const problem &problem, const profile &device,
               const kda_sanitized &from, const operand &records, int tiles,
               std::initializer_list<operand> kept) {
    const kda_problem &p = problem.kda();
    step s;
    s.operands = {records};
    for (const operand &o : kda_operands(problem, {PLAIT_V, PLAIT_STATE_IN, PLAIT_DO,
                                                   PLAIT_DSTATE_OUT, PLAIT_DSTATE_IN, PLAIT_DV}))
        append(s, {o});
    append(s, kept);
    append(s, {from.slots, from.table});
    kda_chunk64_scans_args args{};
    args.p = p;
    args.vector_v = values_aligned(p, p.v);
    args.vector_o = p.d_o.type == scalar::bf16 && values_aligned(p, p.d_o);
    kda_set_launch(s, "kda.chunk64_scans", kda_chunk64_scans_launch(args, tiles));
    s.programmatic = waits_for_predecessors(device);
    s.args = step_args(args);
    const int64_t states = kda64_record_of(kda64_keys(p.dim_k)).states;
    s.bytes_read = chunk_heads(p) * (record_bytes(p) + states) +
                   token_bytes(p.v, p, p.value_heads, p.dim_v) +
                   token_bytes(p.d_o, p, p.value_heads, p.dim_v) + state_bytes(p.state_in, p) +
                   state_bytes(p.dstate_out, p);
    s.bytes_written = chunk_heads(p) * 2 * (state_tile_bytes(p) + row_tile_bytes(p)) +
                      token_bytes(p.dv, p, p.value_heads, p.dim_v) + state_bytes(p.dstate_in, p);
    s.flops = chunk_heads(p) * 2 * scan_flops(p);
    out.steps.push_back(std::move(s));
}

void add_grad(pipeline &out, const problem &problem, const profile &device,
              const kda_sanitized &from, std::initializer_list<operand> tiles,
              const operand &partials) {
    const kda_problem &p = problem.kda();
    step s;
    s.operands = kda_operands(problem, inputs);
    for (const operand &o :
         kda_operands(problem, {PLAIT_DO, PLAIT_DQ, PLAIT_DK, PLAIT_DG, PLAIT_DBETA}))
        append(s, {o});
    append(s, tiles);
    append(s, {partials, from.slots, from.table, from.chunks});
    kda_chunk64_grad_args args{};
    args.p = p;
    args.least_beta = least_beta(p);
    args.vector_q = channels_aligned(p, p.q, p.heads, p.dim_k);
    args.vector_k = channels_aligned(p, p.k, p.heads, p.dim_k);
    args.vector_o = p.d_o.type == scalar::bf16 && values_aligned(p, p.d_o);
    kda_set_launch(s, "kda.chunk64_grad", kda_chunk64_grad_launch(args, device.sms));
    s.args = step_args(args);
    s.bytes_read = input_bytes(p) + token_bytes(p.d_o, p, p.value_heads, p.dim_v) +
                   chunk_heads(p) * 2 * (state_tile_bytes(p) + row_tile_bytes(p));
    s.bytes_written = token_bytes(p.dq, p, p.heads, p.dim_k) +
                      token_bytes(p.dk, p, p.heads, p.dim_k) +
                      token_bytes(p.dg, p, p.value_heads, p.dim_k) +
                      token_bytes(p.dbeta, p, p.value_heads, 1) + partial_bytes(p);
    s.flops = chunk_heads(p) * grad_flops(p);
    out.steps.push_back(std::move(s));
}

void add_sums(pipeline &out, const problem &problem, const kda_sanitized &from,
              const operand &partials) {
    const kda_problem &p = problem.kda();
    step s;
    s.operands = {partials, kda_operand(problem, PLAIT_DA_LOG),
                  kda_operand(problem, PLAIT_DDT_BIAS)};
    append(s, {from.slots, from.table, from.chunks});
    kda_chunk64_sums_args args{};
    args.p = p;
    kda_set_launch(s, "kda.chunk64_sums", kda_chunk64_sums_launch(args));
    s.args = step_args(args);
    s.bytes_read = partial_bytes(p);
    s.bytes_written = p.value_heads * (p.dim_k + 1) * 4;
    out.steps.push_back(std::move(s));
}

} // namespace

verdict kda_cuda_chunk64_applicable(const problem &problem, const profile &device) {
    return applicable(problem, device);
}

cost kda_cuda_chunk64_estimate(const problem &problem, const profile &device) {
    const kda_problem &p = problem.kda();
    const bool backward = p.direction == kda_direction::backward;
    const auto heads = static_cast<double>(chunk_heads(p));
    // What a reserve has is written once, by forward; records are read by each scan.
    const bool reads = kda_reads_reserve(p), keeps = kda_keeps_states(p);
    double bytes = static_cast<double>((reads ? 0 : input_bytes(p)) +
                                       2 * token_bytes(p.v, p, p.value_heads, p.dim_v)) +
                   2 * heads * static_cast<double>(work_bytes(p)) +
                   heads * static_cast<double>(reserve_bytes(p) +
                                               (p.reserve && !backward ? record_bytes(p) : 0));
    if (backward)
        bytes += (keeps ? 0 : heads * static_cast<double>(record_bytes(p))) +
                 static_cast<double>(2 * input_bytes(p) +
                                     2 * token_bytes(p.d_o, p, p.value_heads, p.dim_v));
    const double share = static_cast<double>(kda64_keys(p.dim_k)) / 128;
    const double sms = device.sms;
    const int warps = scan_warps(p, device);
    const double chunks = static_cast<double>(kda_ceil_div(p.longest(), kda64_rows));
    const double steps = std::max(chunks, heads * kda64_scan_slices(p.dim_v, warps) / sms);
    const double blocks =
        static_cast<double>(p.sequences * p.value_heads * kda64_scan_slices(p.dim_v, warps));
    const double beside = keeps || 2 * blocks <= sms ? beside_share : 1.0;
    const double rounds =
        static_cast<double>(p.sequences * p.value_heads * kda64_scan_slices(p.dim_v, warps)) / sms;
    double busy = (reads ? 0 : std::max(1.0, heads / (3 * sms)) * prep_seconds) + scan_seconds;
    if (backward)
        busy += std::max(1.0, heads / sms) * grad_seconds + scan_seconds +
                (scans_tiles(p, device) ? chunks * scans_seconds(scans_tiles(p, device))
                                        : steps * steps_back_seconds(warps) * beside);
    else
        busy += steps * step_seconds(warps, scan_pair(p, warps, device)) *
                    (keeps ? all_factor(warps) : 1) +
                std::max(0.0, rounds - 1) * scan_seconds;
    int launches = 2 + (kda_needs_offsets(p) ? 1 : 0);
    if (backward) launches += 2 - reads - keeps + kda_needs_gaps(p) + has_sums(p);
    return kda_cuda_cost(device, bytes, memory_share, 0, 1, busy * share, launches);
}

pipeline kda_cuda_fwd_chunk64_build(const problem &problem, const profile &device) {
    const kda_problem &p = problem.kda();
    pipeline out;
    const int scan = kda_needs_offsets(p) ? 2 : 1;
    const kda_sanitized from = kda_add_offsets(out, p, kda64_rows, scan);
    const operand records = add_prep(out, problem, from, scan, device);
    const int warps = scan_warps(p, device);
    const bool keeps = kda_keeps_states(p);
    add_scan(out, problem, from, records, warps, scan_pair(p, warps, device),
             keeps ? reserve_states(p, true) : operand{}, keeps ? reserve_rows(p, true) : operand{},
             device);
    out.work.seal();
    return out;
}

pipeline kda_cuda_bwd_chunk64_build(const problem &problem, const profile &device) {
    const kda_problem &p = problem.kda();
    pipeline out;
    const int prep = (kda_needs_offsets(p) ? 1 : 0) + (kda_needs_gaps(p) ? 1 : 0);
    const int tiles = scans_tiles(p, device);
    const int scan = prep + (p.reserve ? 0 : 1);
    const bool keeps = kda_keeps_states(p); // forward has walked
    const int reverse = scan + (tiles || keeps ? 0 : 1), grad = reverse + 1;
    const int sums = grad + (has_sums(p) ? 1 : 0);
    const kda_sanitized from = kda_add_offsets(out, p, kda64_rows, sums);
    kda_add_gaps(out, problem, from);
    const operand records =
        p.reserve ? reserve_records(false) : add_prep(out, problem, from, reverse, device);
    const operand states = keeps ? reserve_states(p, false)
                                 : book(out, "states", chunk_heads(p) * state_tile_bytes(p), grad);
    const operand written = keeps ? reserve_rows(p, false)
                                  : book(out, "written", chunk_heads(p) * row_tile_bytes(p), grad);
    if (tiles == 0 && !keeps)
        add_scan(out, problem, from, records, scan_warps(p, device), false, states, written,
                 device);
    const operand gradients = book(out, "gradients", chunk_heads(p) * state_tile_bytes(p), grad);
    const operand adjoints = book(out, "adjoints", chunk_heads(p) * row_tile_bytes(p), grad);
    if (tiles == 0)
        add_reverse_scan(out, problem, from, records, scan_warps(p, device), gradients, adjoints);
    else
        add_scans(out, problem, device, from, records, tiles,
                  {states, written, gradients, adjoints});
    operand partials;
    if (has_sums(p)) partials = book(out, "partials", partial_bytes(p), sums);
    add_grad(out, problem, device, from,
             {read_only(states), read_only(gradients), read_only(written), read_only(adjoints)},
             partials);
    if (has_sums(p)) add_sums(out, problem, from, read_only(partials));
    out.work.seal();
    return out;
}

} // namespace plait::impl
