// conv1d.update.cuda.
#include "lib/cuda/conv1d/update_layout.h"
#include "src/core/text.h"
#include "src/planner/conv1d_cuda.h"

#include <algorithm>

namespace plait::impl {

namespace {

/// Issue slots of variants any.*, for each output and tap.
constexpr double any_slots = 200;
constexpr double any_slots_per_tap = 40;

/// Shares of the copy bandwidth of the two kinds.
constexpr double any_share = 0.5;
constexpr double vector_share = 0.7;
constexpr double vector_slots = 30;
constexpr double update_loads = 4; ///< of a thread under way
/// A launch behind another one of few bytes, all steps of which start early (measured).
constexpr double step_seconds = 1.1e-6;
/// Below this many threads of an SM the variants with few channels a thread are faster.
constexpr int64_t crowd = 768;

/// How a vector variant does the call; vector 0: none does.
struct vector_choice {
    int vector;
    conv1d_update_state state;
    bool single; ///< variants *.single
};

/// Numbers that the variants *.single take in 32 bits.
bool small(int64_t n) { return n >= INT32_MIN && n <= INT32_MAX; }

/// Samples of a row into a ring, all at once: what one writes no other reads, nor writes.
bool samples_fit(const conv1d_problem &p, int vector) {
    constexpr int64_t most = int64_t{1} << 30;
    return p.ring && p.length > 1 && p.length < most && p.entries - p.history() >= p.length &&
           p.channels % (32 * vector) == 0 && p.batch <= most / p.length / (p.channels / vector);
}

bool single_fits(const conv1d_problem &p, int vector) {
    if (p.width != 4 || !conv1d_taps_packed(p)) return false;
    if (p.length != 1 && !samples_fit(p, vector)) return false;
    if (p.bias.used() &&
        (p.bias.type != p.w.type || (p.channels > 1 && p.bias.c != 1) ||
         p.bias.align < std::min<int64_t>(16, int64_t{vector} * scalar_bytes(p.bias.type))))
        return false;
    for (const int64_t n : {p.x.b, p.y.b, p.x.t * p.length, p.y.t * p.length, p.state_in.b,
                            p.state_in.t, p.w.c, p.batch, p.channels * p.entries})
        if (!small(n)) return false;
    return true;
}

bool state_fits(const conv1d_problem &p, int vector, conv1d_update_state how) {
    const conv1d_view &s = p.state_in;
    const int64_t bytes = int64_t{vector} * scalar_bytes(s.type);
    const int64_t rows = p.pooled ? p.slots : p.batch;
    if (s.align < bytes || (rows > 1 && s.b % vector != 0)) return false;
    if (how == conv1d_update_state::rows)
        return (p.channels <= 1 || s.c == 1) && (p.entries <= 1 || s.t % vector == 0);
    return !p.ring && (p.entries <= 1 || s.t == 1) && (p.channels <= 1 || s.c == p.entries);
}

vector_choice choose_vector(const conv1d_problem &p, const profile &device) {
    const vector_choice none{0, conv1d_update_state::rows, false};
    if (p.length < 1 || p.width < 2 || p.width > 4) return none;
    if (!conv1d_vector_types(p).empty() || p.state_in.type != p.x.type) return none;
    if (p.ring ? p.entries > INT32_MAX : p.entries != p.width - 1) return none;
    if (p.channels > 1 && (p.x.c != 1 || p.y.c != 1)) return none;
    const auto fits = [&](const conv1d_view &v, int vector) {
        return v.align >= int64_t{vector} * scalar_bytes(v.type) &&
               (p.batch <= 1 || v.b % vector == 0) && (p.length <= 1 || v.t % vector == 0);
    };
    const int many = conv1d_update_vector(p.x.type, false);
    const bool crowded = p.batch * p.length * (p.channels / many) >= device.sms * crowd;
    for (const bool few : {!crowded, crowded}) {
        const int v = conv1d_update_vector(p.x.type, few);
        const bool single = single_fits(p, v);
        // Of width 4 only variants *.single have few channels a thread.
        if (conv1d_update_single(v) && !single && (p.length > 1 || p.width == 4)) continue;
        const int64_t groups = p.channels / v;
        if (p.channels % v != 0 || groups > conv1d_update_most_groups) continue;
        if (p.batch > conv1d_most_blocks / groups) continue;
        if (!fits(p.x, v) || !fits(p.y, v)) continue;
        for (const auto how : {conv1d_update_state::rows, conv1d_update_state::lines})
            if (state_fits(p, v, how))
                return {v,
                        !single || !p.ring ? how
                        : p.length > 1     ? conv1d_update_state::samples
                                           : conv1d_update_state::ring,
                        single};
    }
    return none;
}

} // namespace

verdict conv1d_cuda_update_applicable(const problem &problem, const profile &device) {
    const verdict shared = conv1d_cuda_device(problem, device);
    if (!shared.empty()) return shared;
    return fits_memory(problem, device, conv1d_offsets_bytes(problem.conv1d()));
}

cost conv1d_cuda_update_estimate(const problem &problem, const profile &device) {
    const conv1d_problem &p = problem.conv1d();
    const int vector = choose_vector(p, device).vector;
    const double width = static_cast<double>(p.width);
    const double slots = vector > 0 ? vector_slots + width : any_slots + any_slots_per_tap * width;
    const double threads = static_cast<double>(p.batch) * static_cast<double>(p.channels);
    const int launches = conv1d_needs_offsets(p) ? 2 : 1;
    cost c = conv1d_cuda_cost(p, device, vector > 0 ? vector_share : any_share, slots,
                              threads * update_loads / (vector > 0 ? vector : 1), launches);
    if (waits_for_predecessors(device))
        c.seconds = std::max(c.memory_seconds, c.compute_seconds) + launches * step_seconds;
    return c;
}

pipeline conv1d_cuda_update_build(const problem &problem, const profile &device) {
    const conv1d_problem &p = problem.conv1d();
    pipeline out;
    const conv1d_sanitized from = conv1d_add_offsets(out, p, 1);
    // Without samples there is nothing to store but what conv1d.offsets reports.
    if (p.batch * p.channels * p.length == 0 && !out.steps.empty()) {
        out.work.seal();
        return out;
    }
    step s;
    s.kernel = "conv1d.update";
    s.operands = {role_operand(PLAIT_X, false),
                  role_operand(PLAIT_Y, true),
                  role_operand(PLAIT_W, false),
                  p.bias.used() ? role_operand(PLAIT_BIAS, false) : operand{},
                  role_operand(PLAIT_STATE, true),
                  p.ring ? role_operand(PLAIT_POSITION, false) : operand{},
                  from.slots};
    conv1d_update_args a{};
    conv1d_fill_args(a, p, from);
    const vector_choice chosen = choose_vector(p, device);
    const conv1d_launch l =
        chosen.state == conv1d_update_state::samples
            ? conv1d_update_samples_launch(a, chosen.vector)
        : chosen.single ? conv1d_update_single_launch(a, chosen.vector, chosen.state, device.sms)
        : chosen.vector > 0 ? conv1d_update_launch(a, chosen.vector, chosen.state, device.sms)
                            : conv1d_update_any_launch(p.accumulator, p.batch, p.channels);
    s.variant = l.variant;
    s.grid = l.grid;
    s.block = l.threads;
    s.smem_bytes = l.smem_bytes;
    s.args = step_args(a);
    s.bytes_read = conv1d_bytes_read(p);
    s.bytes_written = conv1d_bytes_written(p) + p.batch * p.channels *
                                                    (p.ring ? p.length : p.entries) *
                                                    scalar_bytes(p.state_in.type);
    s.flops = conv1d_flops(p);
    out.steps.push_back(std::move(s));
    conv1d_start_early(out, device, true);
    out.work.seal();
    return out;
}

} // namespace plait::impl
