// kda.fwd.cuda.recurrent and kda.bwd.cuda.recurrent.
#include "lib/cuda/kda/bwd_recurrent_layout.h"
#include "lib/cuda/kda/fwd_recurrent_layout.h"
#include "src/core/text.h"
#include "src/planner/kda_cuda.h"

#include <algorithm>
#include <cmath>

namespace plait::impl {

namespace {

/// Share of the copy bandwidth that tiles of states reach.
constexpr double state_share = 0.8;
/// Share of the f32 units that the recurrence in registers reaches, and seconds of a token, of
/// which none begins before the one before it has ended: an estimate of 300 cycles. Keys beyond
/// tiles pass over their state in memory.
constexpr double register_share = 0.3;
constexpr double few_share = 0.4; ///< of variants one and few
constexpr double token_seconds = 0.18e-6;
constexpr double any_share = 0.02;
constexpr double any_key_seconds = 20e-9;
/// A token of the adjoint: three runs forward, one barrier and two passes of the adjoint; and its
/// share of the f32 units (an H200 with 4 and 96 heads of 128 keys).
constexpr double adjoint_seconds = 6.2e-6, adjoint_share = 0.17;

bool fwd_any(const kda_problem &p) { return kda_fwd_recurrent_any(p); }

kda_launch fwd_launch(kda_fwd_recurrent_args &a, const profile &device) {
    return fwd_any(a.problem) ? kda_fwd_recurrent_any_launch(a, device.sms)
                              : kda_fwd_recurrent_launch(a, device.sms);
}

/// "" when the products of extents that launches and scratch are made of are within 64 bits.
verdict counts(const problem &problem) {
    const kda_problem &p = problem.kda();
    constexpr int64_t most = INT64_C(1) << 40;
    for (const int64_t extent : {p.dim_k, p.dim_v, p.sequences, p.value_heads, p.length, p.slots})
        if (extent > most) return text("an extent of ", extent, " is beyond ", most);
    if (static_cast<double>(kda_places(p)) * static_cast<double>(p.value_heads) *
            static_cast<double>(p.dim_v + 1) >
        1e17)
        return text("its sequences and heads are more than a launch counts");
    return fits_counts(problem);
}

int64_t fwd_scratch(const kda_problem &p, const profile &device) {
    if (!fwd_any(p)) return 0;
    return kda_fwd_recurrent_scratch(p, 2 * int64_t{device.sms});
}

/// Sequences of packed tokens are taken to be of one length.
double length_of(const kda_problem &p) {
    const double tokens = static_cast<double>(p.length);
    return p.varlen ? tokens / static_cast<double>(std::max<int64_t>(p.sequences, 1)) : tokens;
}

// ---- Backward --------------------------------------------------------------------------------

struct bwd_plan {
    kda_bwd_recurrent_args args;
    kda_launch launch;
    int64_t marks, rows, sums; ///< bytes
    double bytes;              ///< of all three
};

bwd_plan bwd_of(const kda_problem &p, const profile &device) {
    bwd_plan b{};
    b.args.problem = p;
    b.launch = kda_bwd_recurrent_launch(b.args, device.sms, device.smem_per_block);
    const auto tokens = static_cast<double>(p.batch) * static_cast<double>(p.length);
    const auto heads = static_cast<double>(p.value_heads);
    const double marks =
        4.0 * static_cast<double>(b.launch.grid) * static_cast<double>(b.args.block_floats);
    const double rows = 4.0 * static_cast<double>(b.args.tiles) * tokens * heads *
                        static_cast<double>(kda_bwd_row(b.args.pitch));
    b.bytes = marks + rows + tokens * heads * static_cast<double>(p.dim_k + 1);
    if (b.bytes > 1e18) return b; // refused: the numbers below are within 64 bits
    b.marks = 4 * b.launch.grid * b.args.block_floats;
    b.rows = 4 * b.args.tiles * p.batch * p.length * p.value_heads * kda_bwd_row(b.args.pitch);
    if (p.da_log.used() || p.ddt_bias.used())
        b.sums = 4 * kda_bwd_token_blocks(p) * p.value_heads * (p.dim_k + 1);
    return b;
}

} // namespace

verdict kda_cuda_fwd_recurrent_applicable(const problem &problem, const profile &device) {
    const verdict shared = kda_cuda_device(problem, device);
    if (!shared.empty()) return shared;
    if (const verdict reserve = kda_without_reserve(problem); !reserve.empty()) return reserve;
    const verdict counted = counts(problem);
    if (!counted.empty()) return counted;
    const kda_problem &p = problem.kda();
    return fits_memory(problem, device, kda_offsets_bytes(p, 0) + fwd_scratch(p, device));
}

cost kda_cuda_fwd_recurrent_estimate(const problem &problem, const profile &device) {
    const kda_problem &p = problem.kda();
    kda_fwd_recurrent_args a{};
    a.problem = p;
    const kda_launch l = fwd_launch(a, device);
    step s;
    kda_add_traffic(problem, s);
    const double keys = static_cast<double>(p.dim_k);
    const double token = fwd_any(p) ? keys * any_key_seconds : token_seconds;
    const bool few = kda_few_access(p) != kda_state_access::elements;
    const double rounds = std::max(1.0, static_cast<double>(a.blocks) /
                                            (static_cast<double>(device.sms) * 512 / l.threads));
    return kda_cuda_cost(device, static_cast<double>(s.bytes_read + s.bytes_written), state_share,
                         static_cast<double>(kda_flops(p)),
                         fwd_any(p) ? any_share
                         : few      ? few_share
                                    : register_share,
                         length_of(p) * token * rounds, kda_needs_offsets(p) ? 2 : 1);
}

pipeline kda_cuda_fwd_recurrent_build(const problem &problem, const profile &device) {
    const kda_problem &p = problem.kda();
    pipeline out;
    const kda_sanitized from = kda_add_offsets(out, p, 0, 1);
    kda_fwd_recurrent_args args{};
    args.problem = p;
    const kda_launch l = fwd_launch(args, device);
    if (args.blocks > 0) {
        step s;
        const int now = static_cast<int>(out.steps.size());
        s.operands =
            kda_operands(problem, {PLAIT_Q, PLAIT_K, PLAIT_V, PLAIT_G, PLAIT_BETA, PLAIT_O,
                                   PLAIT_A_LOG, PLAIT_DT_BIAS, PLAIT_STATE_IN, PLAIT_STATE_OUT});
        s.operands.push_back(from.slots);
        s.operands.push_back(from.table);
        s.operands.push_back(
            fwd_any(p)
                ? piece_operand(
                      out.work.book("states", kda_fwd_recurrent_scratch(p, l.grid), now, now), true)
                : operand{});
        kda_set_launch(s, "kda.fwd_recurrent", l);
        s.args = step_args(args);
        kda_add_traffic(problem, s);
        s.flops = kda_flops(p);
        out.steps.push_back(std::move(s));
    }
    out.work.seal();
    return out;
}

verdict kda_cuda_bwd_recurrent_applicable(const problem &problem, const profile &device) {
    const verdict shared = kda_cuda_device(problem, device);
    if (!shared.empty()) return shared;
    if (const verdict reserve = kda_without_reserve(problem); !reserve.empty()) return reserve;
    const verdict counted = counts(problem);
    if (!counted.empty()) return counted;
    const kda_problem &p = problem.kda();
    const double entries = static_cast<double>(p.dim_k) * static_cast<double>(p.dim_v);
    if (entries * std::sqrt(static_cast<double>(p.longest())) > 1e16)
        return text("kept states take more bytes than ", most_bytes);
    const bwd_plan b = bwd_of(p, device);
    if (b.bytes > 1e18) return text("the sums of tokens take more bytes than ", most_bytes);
    return fits_memory(problem, device, kda_offsets_bytes(p, 0) + b.marks + b.rows + b.sums);
}

cost kda_cuda_bwd_recurrent_estimate(const problem &problem, const profile &device) {
    const kda_problem &p = problem.kda();
    const bwd_plan b = bwd_of(p, device);
    step s;
    kda_add_traffic(problem, s);
    const bool any = p.dim_k > 64 * kda_tile_quads;
    const double rounds =
        std::max(1.0, static_cast<double>(b.args.blocks) / static_cast<double>(b.launch.grid));
    const double token = any ? 6 * static_cast<double>(p.dim_k) * any_key_seconds : adjoint_seconds;
    const double bytes = static_cast<double>(s.bytes_read + s.bytes_written) +
                         2 * static_cast<double>(b.rows + b.sums);
    return kda_cuda_cost(device, bytes, state_share, static_cast<double>(kda_flops(p)),
                         any ? any_share : adjoint_share, length_of(p) * token * rounds,
                         4 + (kda_needs_offsets(p) ? 2 : 0));
}

pipeline kda_cuda_bwd_recurrent_build(const problem &problem, const profile &device) {
    const kda_problem &p = problem.kda();
    const bwd_plan b = bwd_of(p, device);
    pipeline out;
    const int first = (kda_needs_offsets(p) ? 1 : 0) + (kda_needs_gaps(p) ? 1 : 0);
    const kda_sanitized from = kda_add_offsets(out, p, 0, first + 1);
    kda_add_gaps(out, problem, from);
    const auto piece = [&](const char *name, int64_t bytes, int begin, int end) {
        return bytes > 0 ? piece_operand(out.work.book(name, bytes, begin, end), true) : operand{};
    };
    operand rows = piece("rows", b.rows, first, first + 1);
    operand sums = piece("sums", b.sums, first + 1, first + 2);
    step s;
    s.operands = kda_operands(problem, {PLAIT_Q, PLAIT_K, PLAIT_V, PLAIT_G, PLAIT_BETA, PLAIT_A_LOG,
                                        PLAIT_DT_BIAS, PLAIT_STATE_IN, PLAIT_DO, PLAIT_DSTATE_OUT,
                                        PLAIT_DV, PLAIT_DSTATE_IN});
    s.operands.push_back(from.table);
    s.operands.push_back(piece("marks", b.marks, first, first));
    s.operands.push_back(rows);
    s.operands.push_back({}); // slots: backward has none
    kda_set_launch(s, "kda.bwd_recurrent", b.launch);
    s.args = step_args(b.args);
    kda_add_traffic(problem, s);
    s.bytes_written += b.rows;
    s.flops = kda_flops(p);
    out.steps.push_back(std::move(s));

    rows.written = false;
    s = step{};
    s.operands = kda_operands(problem, {PLAIT_Q, PLAIT_K, PLAIT_G, PLAIT_BETA, PLAIT_A_LOG,
                                        PLAIT_DT_BIAS, PLAIT_DQ, PLAIT_DK, PLAIT_DG, PLAIT_DBETA});
    s.operands.push_back(from.table);
    s.operands.push_back(rows);
    s.operands.push_back(sums);
    kda_bwd_finish_args finish{};
    finish.problem = p;
    finish.tiles = b.args.tiles;
    finish.pitch = b.args.pitch;
    kda_set_launch(s, "kda.bwd_finish", kda_bwd_finish_launch(finish));
    s.args = step_args(finish);
    s.bytes_read = b.rows;
    s.bytes_written = b.sums;
    out.steps.push_back(std::move(s));

    if (p.da_log.used() || p.ddt_bias.used()) {
        sums.written = false;
        s = step{};
        s.operands = {sums, kda_operand(problem, PLAIT_DA_LOG),
                      kda_operand(problem, PLAIT_DDT_BIAS)};
        kda_bwd_params_args params{};
        params.problem = p;
        kda_set_launch(s, "kda.bwd_params", kda_bwd_params_launch(params));
        s.args = step_args(params);
        s.bytes_read = b.sums;
        out.steps.push_back(std::move(s));
    }
    out.work.seal();
    return out;
}

} // namespace plait::impl
