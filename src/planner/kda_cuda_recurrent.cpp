// kda.fwd.cuda.recurrent.
#include "lib/cuda/kda/fwd_recurrent_layout.h"
#include "src/core/text.h"
#include "src/planner/kda_cuda.h"

#include <algorithm>

namespace plait::impl {

namespace {

/// Share of the copy bandwidth that tiles of states reach.
constexpr double state_share = 0.8;
/// Share of the f32 units that the recurrence in registers reaches, and seconds of a token, of
/// which none begins before the one before it has ended: an estimate of 300 cycles. Keys beyond
/// tiles pass over their state in memory.
constexpr double register_share = 0.3;
constexpr double token_seconds = 0.18e-6;
constexpr double any_share = 0.02;
constexpr double any_key_seconds = 20e-9;

bool fwd_any(const kda_problem &p) { return kda_fwd_recurrent_any(p); }

kda_launch fwd_launch(kda_fwd_recurrent_args &a, const profile &device) {
    return fwd_any(a.problem) ? kda_fwd_recurrent_any_launch(a, device.sms)
                              : kda_fwd_recurrent_launch(a, device.sms);
}

/// "" when the products of extents that launches and scratch are made of are within 64 bits.
verdict counts(const problem &problem) {
    const kda_problem &p = problem.kda();
    constexpr int64_t most = INT64_C(1) << 40;
    if (p.dim_k > most || p.dim_v > most || p.sequences > most || p.value_heads > most)
        return text("an extent is beyond ", most);
    return fits_counts(problem);
}

int64_t fwd_scratch(const kda_problem &p, const profile &device) {
    if (!fwd_any(p)) return 0;
    return kda_fwd_recurrent_scratch(p, 2 * int64_t{device.sms});
}

} // namespace

verdict kda_cuda_fwd_recurrent_applicable(const problem &problem, const profile &device) {
    const verdict shared = kda_cuda_device(problem, device);
    if (!shared.empty()) return shared;
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
    // Packed sequences are taken to be of one length.
    const double longest = p.varlen ? static_cast<double>(p.length) /
                                          static_cast<double>(std::max<int64_t>(p.sequences, 1))
                                    : static_cast<double>(p.length);
    const double keys = static_cast<double>(p.dim_k);
    const double token = fwd_any(p) ? keys * any_key_seconds : token_seconds;
    const double rounds = std::max(1.0, static_cast<double>(a.blocks) /
                                            (static_cast<double>(device.sms) * 512 / l.threads));
    return kda_cuda_cost(device, static_cast<double>(s.bytes_read + s.bytes_written), state_share,
                         static_cast<double>(kda_flops(p)), fwd_any(p) ? any_share : register_share,
                         longest * token * rounds, kda_needs_offsets(p) ? 2 : 1);
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

} // namespace plait::impl
