// kda.{fwd,bwd}.cpu.{chunk,ref}.
#include "lib/common/kda_reserve.h"
#include "lib/cpu/kda/chunk_args.h"
#include "lib/cpu/kda/kda_args.h"
#include "lib/cpu/kda/ref_args.h"
#include "src/core/text.h"
#include "src/planner/cpu_cost.h"
#include "src/planner/kda_candidates.h"

#include <algorithm>
#include <cmath>

namespace plait::impl {

namespace {

/// Cycles of kda.ref for an entry of a state at one token: forward decays, predicts, writes and
/// reads it in two passes of two doubles a vector; backward runs forward three times, twice to have
/// the states (once from those of a reserve), and the adjoint has four sums of one lane.
constexpr double forward_entry_cycles = 3;
constexpr double backward_entry_cycles = 20;
/// An exponential or its inverse, with address and conversion of its element.
constexpr double channel_cycles = 60;

/// Cycles of the chunk kernels: a product and sum of two vectors with its load and broadcast, an
/// exponential of a vector, and loading and converting a number.
constexpr double product_cycles = 0.8;
constexpr double exponential_cycles = 14;
constexpr double load_cycles = 2;
/// Products of all rows of a chunk with a state: forward three; backward has two for each of two
/// forward runs (a reserve saves one) and seven of its own. Sums over pairs of rows: one, four.
constexpr double forward_products = 3, backward_products = 11;
constexpr double forward_pairs = 1, backward_pairs = 4;

double tokens_of(const kda_problem &p) {
    return static_cast<double>(p.batch) * static_cast<double>(p.length) *
           static_cast<double>(p.value_heads);
}

double entries_of(const kda_problem &p) {
    return static_cast<double>(p.dim_k) * static_cast<double>(p.dim_v);
}

/// States that the reserve holds.
int64_t reserve_states_bytes(const kda_problem &p) {
    return kda_reserve_slots(p.varlen, p.sequences, p.length) * p.value_heads * p.dim_k * p.dim_v *
           scalar_bytes(kda_reserve_state_type(p));
}

bool is_backward(const kda_problem &p) { return p.direction == kda_direction::backward; }

/// Products and sums of the recurrence: decay, predict, write, read; backward runs them again.
int64_t flops_of(const kda_problem &p) {
    return static_cast<int64_t>(tokens_of(p) * entries_of(p) * (is_backward(p) ? 22 : 7));
}

/// The tensors, each once, but of a pool only the slots of the call.
void add_traffic(const problem &problem, step *s) {
    const kda_problem &p = problem.kda();
    for (const tensor &t : problem.tensors) {
        int64_t bytes = touched_bytes(t);
        const bool state = t.role == PLAIT_STATE_IN || t.role == PLAIT_STATE_OUT;
        if (state && p.pooled && p.slots > p.sequences) bytes = bytes / p.slots * p.sequences;
        if (t.role == PLAIT_RESERVE) bytes = reserve_states_bytes(p);
        (t.access & PLAIT_READ ? s->bytes_read : s->bytes_written) += bytes;
    }
}

/// One pointer per role in the order of role numbers, then the scratch.
std::vector<operand> operands_of(const problem &problem, const operand &scratch) {
    std::vector<operand> list;
    for (const plait_role role :
         {PLAIT_Q,         PLAIT_K,        PLAIT_V,          PLAIT_G,         PLAIT_BETA,
          PLAIT_O,         PLAIT_A_LOG,    PLAIT_DT_BIAS,    PLAIT_RESERVE,   PLAIT_STATE_IN,
          PLAIT_STATE_OUT, PLAIT_SLOTS,    PLAIT_CU_SEQLENS, PLAIT_STATUS,    PLAIT_DQ,
          PLAIT_DK,        PLAIT_DV,       PLAIT_DG,         PLAIT_DBETA,     PLAIT_DO,
          PLAIT_DA_LOG,    PLAIT_DDT_BIAS, PLAIT_DSTATE_IN,  PLAIT_DSTATE_OUT}) {
        const tensor *t = problem.find(role);
        list.push_back(t ? role_operand(role, (t->access & PLAIT_WRITE) != 0) : operand{});
    }
    list.push_back(scratch);
    return list;
}

/// Threads that have something to do: the bits do not depend on how many there are.
int team_of(const kda_problem &p, const profile &device) {
    const double items =
        is_backward(p) ? static_cast<double>(p.heads)
                       : static_cast<double>(p.value_heads) * static_cast<double>(p.sequences);
    return static_cast<int>(std::clamp<double>(items, 1, cpu_threads(device)));
}

pipeline one_step(const problem &problem, const char *kernel, int team, int64_t scratch_bytes) {
    pipeline out;
    step s;
    cpu::kda_args args{};
    args.problem = problem.kda();
    s.kernel = kernel;
    s.block = team;
    operand scratch;
    if (scratch_bytes > 0)
        scratch = piece_operand(out.work.book("scratch", scratch_bytes, 0, 0), true);
    s.operands = operands_of(problem, scratch);
    add_traffic(problem, &s);
    s.args = step_args(args);
    s.flops = flops_of(args.problem);
    out.steps.push_back(std::move(s));
    out.work.seal();
    return out;
}

double traffic_seconds(const problem &problem, const profile &device, int team) {
    step s;
    add_traffic(problem, &s);
    return cpu_traffic_seconds(device, s.bytes_read + s.bytes_written, team);
}

} // namespace

verdict kda_cpu_chunk_applicable(const problem &problem, const profile &device) {
    const kda_problem &p = problem.kda();
    for (const tensor &t : problem.tensors)
        if (t.dtype == PLAIT_F64) return text(role_name(t.role), " is f64; its arithmetic is f32");
    return cpu_fits(problem, device, cpu::kda_chunk_scratch_bytes(p, team_of(p, device)));
}

cost kda_cpu_chunk_estimate(const problem &problem, const profile &device) {
    const kda_problem &p = problem.kda();
    const bool backward = is_backward(p);
    const int team = team_of(p, device);
    const cpu::kda_chunk_layout lay(p);
    const double lanes = cpu_vector_bytes(device.isa) / 4, keys = static_cast<double>(lay.dim_k),
                 values = static_cast<double>(lay.dim_v), rows = cpu::kda_chunk,
                 pairs = rows * (rows + 1) / 2;
    const double saved = backward && p.reserve ? 1 : 0; // runs forward
    const double products =
        (backward ? backward_products - 2 * saved : forward_products) * rows * keys * values;
    const double sums = (backward ? backward_pairs - saved : forward_pairs) * pairs;
    const double each = products * product_cycles / lanes +
                        sums * (keys * exponential_cycles + 2 * values * product_cycles) / lanes +
                        (backward ? 3 - saved : 1) * rows * (3 * keys + values) * load_cycles;
    // Most sequences of packed tokens end inside a chunk.
    const double chunks =
        std::ceil(static_cast<double>(p.length) / rows) * static_cast<double>(p.batch) +
        (p.varlen ? 0.5 * static_cast<double>(p.sequences) : 0);
    return cpu_cost(device, team, traffic_seconds(problem, device, team),
                    chunks * static_cast<double>(p.value_heads) * each / (cpu_core_hertz * team));
}

pipeline kda_cpu_chunk_build(const problem &problem, const profile &device) {
    const kda_problem &p = problem.kda();
    const int team = team_of(p, device);
    return one_step(problem, is_backward(p) ? "kda.bwd_chunk" : "kda.fwd_chunk", team,
                    cpu::kda_chunk_scratch_bytes(p, team));
}

verdict kda_cpu_ref_applicable(const problem &problem, const profile &device) {
    const kda_problem &p = problem.kda();
    return cpu_fits(problem, device, cpu::kda_ref_scratch_bytes(p, team_of(p, device)));
}

cost kda_cpu_ref_estimate(const problem &problem, const profile &device) {
    const kda_problem &p = problem.kda();
    const int team = team_of(p, device);
    const double saved = is_backward(p) && p.reserve ? 1 : 0; // runs forward
    const double each =
        entries_of(p) * (is_backward(p) ? backward_entry_cycles - saved * forward_entry_cycles
                                        : forward_entry_cycles) +
        static_cast<double>(p.dim_k) * channel_cycles * (is_backward(p) ? 3 - saved : 1);
    return cpu_cost(device, team, traffic_seconds(problem, device, team),
                    tokens_of(p) * each / (cpu_core_hertz * team));
}

pipeline kda_cpu_ref_build(const problem &problem, const profile &device) {
    const int team = team_of(problem.kda(), device);
    return one_step(problem, "kda.ref", team, cpu::kda_ref_scratch_bytes(problem.kda(), team));
}

} // namespace plait::impl
