// wht.cuda.any: every problem, in passes of wht.any.
#include "src/planner/wht_cuda_any.h"

#include "lib/cuda/wht/l2_layout.h"
#include "src/planner/wht_cuda_cost.h"

#include <algorithm>

namespace plait::impl {

namespace {

/// Part of the copy bandwidth that a pass is taken to reach where it is not bound by its
/// instructions: an estimate.
constexpr double pass_share = 0.75;
/// F32 additions that an SM could do in the time it takes for an element, with several tiles at a
/// time and with one alone: of passes over rows of 2^9 to 2^14 on an H200.
constexpr double element_additions = 300, lone_element_additions = 360;
constexpr double factor_additions = 10; ///< more for each row of a factor

/// Of an element, beside one of f32 or f64.
double walk_share(wht_any_number number) {
    switch (number) {
    case wht_any_number::c128: return 1.8;
    case wht_any_number::c64:
    case wht_any_number::i64:
    case wht_any_number::checked64: return 1.4;
    default: return 1;
    }
}
/// From the first place that a block works out to its last store, of small tiles.
constexpr double tile_latency_seconds = 3.5e-6;
/// Bytes that memory moves for an element that lies alone.
constexpr double sector_bytes = 32;

int64_t flops(const wht_any_plan &plan, const wht_any_args &a) {
    const int64_t parts =
        plan.number == wht_any_number::c64 || plan.number == wht_any_number::c128 ? 2 : 1;
    return plan.elements * parts * (a.stages + a.factor - 1 + (a.scale != 1.0 ? 1 : 0));
}

int64_t moved(const wht_any_plan &plan, const wht_any_args &a, wht_any_side side) {
    return plan.elements * scalar_bytes(a.type[side]);
}

} // namespace

int64_t wht_any_work_bytes(const wht_any_plan &plan) {
    return plan.uses_work ? plan.elements * scalar_bytes(wht_any_number_type(plan.number)) : 0;
}

void wht_any_price(const wht_any_plan &plan, const profile &device, cost &sum) {
    const bool wide = plan.number == wht_any_number::f64 || plan.number == wht_any_number::c128;
    const double rate = wide ? device.f64_per_second : device.f32_per_second;
    for (const wht_any_pass &pass : plan.passes) {
        const wht_any_args &a = pass.args;
        const double busy =
            std::min(1.0, static_cast<double>(a.tiles) / static_cast<double>(device.sms));
        double bytes = 0;
        for (const wht_any_side side : {wht_any_in, wht_any_out}) {
            const double run =
                static_cast<double>(pass.elements[side] * scalar_bytes(a.type[side]));
            bytes += static_cast<double>(moved(plan, a, side)) * std::max(1.0, sector_bytes / run);
        }
        const double memory = bytes / (device.copy_bandwidth * pass_share * busy);
        // Places and shared memory cost more than what they are for.
        const double walk = std::max(static_cast<double>(plan.elements) / busy *
                                         (element_additions + factor_additions * (a.factor - 1)),
                                     device.sms * wht_any_slots(a) * lone_element_additions) /
                            device.f32_per_second * walk_share(plan.number);
        const double compute = std::max(walk, static_cast<double>(flops(plan, a)) /
                                                  (rate * wht_cost::additions * busy));
        sum.memory_seconds += memory;
        sum.compute_seconds += compute;
        sum.launch_seconds += device.launch_seconds;
        sum.seconds += std::max(memory, compute) + device.launch_seconds + tile_latency_seconds;
    }
    if (wht_any_is_checked(plan.number)) { // clears the flag
        sum.launch_seconds += device.launch_seconds;
        sum.seconds += device.launch_seconds;
    }
}

void wht_any_add_steps(const wht_any_plan &plan, const wht_problem &p, const profile &device,
                       pipeline &out) {
    if (p.overflow) {
        step reset;
        reset.kernel = "wht.l2_reset";
        reset.variant = "u32";
        reset.block = wht_l2_reset_threads;
        reset.operands = {role_operand(PLAIT_OVERFLOW, true)};
        wht_l2_reset_args zero{};
        zero.count = 1;
        reset.args = step_args(zero);
        reset.bytes_written = 4;
        out.steps.push_back(std::move(reset));
    }
    int piece = -1;
    if (plan.uses_work) {
        const int first = static_cast<int>(out.steps.size());
        piece = out.work.book("mid", wht_any_work_bytes(plan), first,
                              first + static_cast<int>(plan.passes.size()) - 1);
    }
    for (const wht_any_pass &pass : plan.passes) {
        const wht_any_args &a = pass.args;
        const auto has = [&](wht_any_extra e) {
            return a.extra[wht_any_in] == e || a.extra[wht_any_out] == e;
        };
        step one;
        one.kernel = "wht.any";
        one.variant = wht_any_number_name(plan.number);
        one.block = wht_any_threads;
        one.smem_bytes = plan.smem_bytes(pass);
        // two or three waves of what registers let run together
        const int64_t together = std::clamp<int64_t>(device.smem_per_sm / one.smem_bytes, 1, 6);
        one.grid = std::min<int64_t>(a.tiles, device.sms * together);
        const bool first = &pass == &plan.passes.front();
        one.operands = {pass.from_work ? piece_operand(piece, false)
                                       : role_operand(first ? PLAIT_X : PLAIT_Y, false),
                        pass.to_work ? piece_operand(piece, true) : role_operand(PLAIT_Y, true),
                        has(wht_any_extra::signs) ? role_operand(PLAIT_SIGNS, false) : operand{},
                        has(wht_any_extra::diag) ? role_operand(PLAIT_DIAG, false) : operand{},
                        p.overflow ? role_operand(PLAIT_OVERFLOW, true) : operand{}};
        one.args = step_args(a);
        one.bytes_read = moved(plan, a, wht_any_in);
        one.bytes_written = moved(plan, a, wht_any_out);
        one.flops = flops(plan, a);
        out.steps.push_back(std::move(one));
    }
}

verdict wht_cuda_any_applicable(const problem &problem, const profile &device) {
    if (device.backend != PLAIT_CUDA) return "the device is no CUDA device";
    if (problem.empty) return "the problem is empty: there is nothing to run";
    if (const verdict only = wht_ref_only(problem); !only.empty()) return only;
    const verdict built = wht_cuda_built_for(device);
    if (!built.empty()) return built;
    const wht_any_plan plan = plan_wht_any(problem.wht(), device);
    if (!plan.refusal.empty()) return plan.refusal;
    return fits_memory(problem, device, wht_any_work_bytes(plan));
}

cost wht_cuda_any_estimate(const problem &problem, const profile &device) {
    cost sum;
    wht_any_price(plan_wht_any(problem.wht(), device), device, sum);
    return sum;
}

pipeline wht_cuda_any_build(const problem &problem, const profile &device) {
    pipeline out;
    wht_any_add_steps(plan_wht_any(problem.wht(), device), problem.wht(), device, out);
    out.work.seal();
    return out;
}

} // namespace plait::impl
