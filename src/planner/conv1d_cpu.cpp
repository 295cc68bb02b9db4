// conv1d.{fwd,bwd,update}.cpu.{simd,ref}.
#include "lib/cpu/conv1d/ref_args.h"
#include "lib/cpu/conv1d/simd_args.h"
#include "src/core/text.h"
#include "src/planner/conv1d_candidates.h"
#include "src/planner/cpu_cost.h"

#include <algorithm>

namespace plait::impl {

namespace {

/// conv1d.ref takes one float64 product and sum a cycle, and a few nanoseconds for the address and
/// the conversions of an element, and for an exponential.
constexpr double ref_tap_seconds = 1 / cpu_core_hertz;
constexpr double ref_element_seconds = 8e-9;
constexpr double ref_exponential_seconds = 10e-9;
/// Cycles of one vector: its loads, stores and conversions, one for each tap, and the exponential
/// with its division, which the two units for products are busy with.
constexpr double simd_element_cycles = 6;
constexpr double simd_exponential_cycles = 10.5;

/// The tensors, each once, but of a pool only the slots of the call.
void add_traffic(const problem &problem, step *s) {
    const conv1d_problem &p = problem.conv1d();
    for (const tensor &t : problem.tensors) {
        const bool state =
            t.role == PLAIT_STATE || t.role == PLAIT_STATE_IN || t.role == PLAIT_STATE_OUT;
        int64_t bytes = touched_bytes(t);
        if (state && p.pooled && p.slots > p.sequences) bytes = bytes / p.slots * p.sequences;
        if (t.access & PLAIT_READ) s->bytes_read += bytes;
        if (t.access & PLAIT_WRITE) s->bytes_written += bytes;
    }
}

double elements_of(const conv1d_problem &p) {
    return static_cast<double>(p.batch) * static_cast<double>(p.channels) *
           static_cast<double>(p.length);
}

/// Convolutions of the problem's length: backward recomputes the first of its three.
double convolutions(const conv1d_problem &p) {
    if (p.direction != conv1d_direction::backward) return 1;
    return p.silu ? 3 : 2;
}

int64_t flops_of(const conv1d_problem &p) {
    return static_cast<int64_t>(elements_of(p) * convolutions(p) * 2 *
                                static_cast<double>(p.width));
}

/// One pointer per role in the order of role numbers, then the scratch.
std::vector<operand> operands_of(const problem &problem, const operand &scratch) {
    std::vector<operand> list;
    for (const plait_role role :
         {PLAIT_X, PLAIT_Y, PLAIT_W, PLAIT_BIAS, PLAIT_STATE_IN, PLAIT_STATE_OUT, PLAIT_STATE,
          PLAIT_POSITION, PLAIT_SLOTS, PLAIT_CU_SEQLENS, PLAIT_SEQ_IDX, PLAIT_STATUS, PLAIT_DX,
          PLAIT_DY, PLAIT_DW, PLAIT_DBIAS, PLAIT_DSTATE_IN, PLAIT_DSTATE_OUT}) {
        const tensor *t = problem.find(role);
        list.push_back(t ? role_operand(role, (t->access & PLAIT_WRITE) != 0) : operand{});
    }
    list.push_back(scratch);
    return list;
}

pipeline one_step(const problem &problem, const profile &device, const char *kernel, int threads,
                  int64_t scratch_bytes) {
    pipeline out;
    step s;
    s.kernel = kernel;
    s.block = threads;
    operand scratch;
    if (scratch_bytes > 0)
        scratch = piece_operand(out.work.book("scratch", scratch_bytes, 0, 0), true);
    s.operands = operands_of(problem, scratch);
    cpu::conv1d_args args{};
    args.problem = problem.conv1d();
    add_traffic(problem, &s);
    // Without a known last level, what one core's caches can never hold.
    args.stream = s.bytes_written > std::max(device.l3_bytes, int64_t{1} << 22);
    s.args = step_args(args);
    s.flops = flops_of(args.problem);
    out.steps.push_back(std::move(s));
    out.work.seal();
    return out;
}

double traffic_seconds(const problem &problem, const profile &device, double busy) {
    step s;
    add_traffic(problem, &s);
    return cpu_traffic_seconds(device, s.bytes_read + s.bytes_written, busy);
}

int simd_team(const problem &problem, const profile &device) {
    return cpu::conv1d_simd_team(problem.conv1d(), cpu_threads(device));
}

} // namespace

verdict conv1d_cpu_simd_applicable(const problem &problem, const profile &device) {
    const conv1d_problem &p = problem.conv1d();
    if (p.width > cpu::conv1d_simd_max_width)
        return text("width=", p.width, " is over ", cpu::conv1d_simd_max_width);
    return cpu_fits(problem, device,
                    cpu::conv1d_simd_layout_of(p).bytes(simd_team(problem, device)));
}

cost conv1d_cpu_simd_estimate(const problem &problem, const profile &device) {
    const conv1d_problem &p = problem.conv1d();
    const int team = simd_team(problem, device);
    const double busy = team;
    const double each = convolutions(p) * (simd_element_cycles + static_cast<double>(p.width)) +
                        (p.silu ? simd_exponential_cycles : 0);
    const double lanes = cpu_vector_bytes(device.isa) / scalar_bytes(p.accumulator);
    const double compute = elements_of(p) * each / (lanes * cpu_core_hertz * busy);
    return cpu_cost(device, team, traffic_seconds(problem, device, busy), compute);
}

pipeline conv1d_cpu_simd_build(const problem &problem, const profile &device) {
    const conv1d_problem &p = problem.conv1d();
    const int threads = simd_team(problem, device);
    const char *kernel = p.direction == conv1d_direction::forward    ? "conv1d.fwd_simd"
                         : p.direction == conv1d_direction::backward ? "conv1d.bwd_simd"
                                                                     : "conv1d.update_simd";
    return one_step(problem, device, kernel, threads, cpu::conv1d_simd_layout_of(p).bytes(threads));
}

verdict conv1d_cpu_ref_applicable(const problem &problem, const profile &device) {
    return cpu_fits(problem, device,
                    cpu::conv1d_ref_scratch_bytes(problem.conv1d(), cpu_threads(device)));
}

cost conv1d_cpu_ref_estimate(const problem &problem, const profile &device) {
    const conv1d_problem &p = problem.conv1d();
    const bool backward = p.direction == conv1d_direction::backward;
    const double items =
        static_cast<double>(p.channels) * (backward ? 1.0 : static_cast<double>(p.sequences));
    const double busy = std::max(1.0, std::min<double>(cpu_threads(device), items));
    const double each =
        convolutions(p) * (ref_element_seconds + static_cast<double>(p.width) * ref_tap_seconds) +
        (p.silu ? ref_exponential_seconds : 0);
    return cpu_cost(device, cpu_threads(device), traffic_seconds(problem, device, busy),
                    elements_of(p) * each / busy);
}

pipeline conv1d_cpu_ref_build(const problem &problem, const profile &device) {
    return one_step(problem, device, "conv1d.ref", cpu_threads(device),
                    cpu::conv1d_ref_scratch_bytes(problem.conv1d(), cpu_threads(device)));
}

} // namespace plait::impl
