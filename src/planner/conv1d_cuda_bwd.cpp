// conv1d.bwd.cuda.{bct,btc,any}: which problems they take, what they cost.
#include "src/planner/conv1d_cuda_bwd.h"

#include "src/core/text.h"

#include <algorithm>

namespace plait::impl {

namespace conv1d_bwd {

double elements_of(const conv1d_problem &p) {
    return static_cast<double>(p.batch) * static_cast<double>(p.channels) *
           static_cast<double>(p.length);
}

bool has_tokens(const conv1d_problem &p) { return p.batch > 0 && p.channels > 0 && p.length > 0; }

bool wants_sums(const conv1d_problem &p) {
    return (p.dw.used() || p.dbias.used()) && p.channels > 0;
}

bool runs_main(const conv1d_problem &p) { return has_tokens(p) && (p.dx.used() || wants_sums(p)); }

bool runs_state(const conv1d_problem &p) {
    return p.dstate_in.used() && p.sequences > 0 && p.channels > 0 && p.entries > 0;
}

bool runs_offsets(const conv1d_problem &p) {
    return p.varlen && (p.status || (p.sequences > 0 && (runs_main(p) || runs_state(p))));
}

main_step main_of(way how, const conv1d_problem &p, const profile &device) {
    main_step m{};
    static_cast<conv1d_bwd_args &>(m.args) = conv1d_bwd_args_of(p);
    switch (how) {
    case way::bct:
        m.kernel = "conv1d.bwd_bct";
        m.launch = conv1d_bwd_bct_fill(p, device.sms, device.smem_per_block, &m.args);
        break;
    case way::btc:
        m.kernel = "conv1d.bwd_btc";
        m.launch = conv1d_bwd_btc_fill(p, device.sms, &m.args);
        break;
    case way::any:
        m.kernel = "conv1d.bwd_any";
        m.launch = conv1d_bwd_any_fill(p, device.sms, device.smem_per_block, &m.args);
        break;
    }
    return m;
}

bool runs_marks(way how, const conv1d_problem &p) {
    if (how == way::any || !runs_main(p)) return false;
    return how == way::bct ? conv1d_bwd_bct_reads_marks(p) : conv1d_bwd_btc_reads_marks(p);
}

bool writes_sums(way how, const conv1d_problem &p, const main_step &m) {
    return how == way::bct && m.args.slots == 1 && !conv1d_bwd_bct_fixes(p);
}

bool runs_fix(way how, const conv1d_problem &p) {
    if (how == way::any || !runs_main(p)) return false;
    return how == way::bct ? conv1d_bwd_bct_fixes(p) : conv1d_bwd_btc_fixes(p);
}

int64_t more_slots(way how, const conv1d_problem &p) {
    if (!runs_fix(how, p) || !wants_sums(p)) return 0;
    return how == way::bct ? conv1d_bwd_bct_slices(p) : conv1d_bwd_btc_slices(p);
}

bool runs_own_state(way how, const conv1d_problem &p) {
    return runs_state(p) && !(how == way::btc && runs_fix(how, p));
}

int64_t mark_tokens_bytes(way how, const conv1d_problem &p, const main_step &m) {
    if (how == way::btc) {
        const int64_t tiles = conv1d_ceil_div(p.length, conv1d_bwd_taps(p.width));
        return conv1d_bwd_btc_flags_at(p.batch, p.length) +
               4 * p.batch * conv1d_ceil_div(tiles, 32);
    }
    return conv1d_bwd_bct_marks_bytes(p, m.args);
}

double marks_bytes(way how, const conv1d_problem &p, const main_step &m) {
    return runs_marks(how, p) ? static_cast<double>(mark_tokens_bytes(how, p, m)) : 0;
}

int64_t accumulator_bytes(const conv1d_problem &p) { return scalar_bytes(p.accumulator); }

double partial_bytes(way how, const conv1d_problem &p, const main_step &m) {
    if (writes_sums(how, p, m)) return 0;
    const conv1d_bwd_args &a = m.args;
    return static_cast<double>(a.slots + more_slots(how, p)) * static_cast<double>(p.width + 1) *
           static_cast<double>(p.channels * accumulator_bytes(p));
}

namespace {

// ---- Rules -------------------------------------------------------------------------------------

/// What the fast kernels ask for.
verdict fast_rule(way how, const conv1d_problem &p) {
    if (p.x.type == scalar::f64) return "x is f64; needs f16, bf16 or f32";
    if (p.accumulator == scalar::f64) return "a tensor is f64; sums must be f32";
    for (const auto &[name, v] : {std::pair{"dy", &p.dy}, std::pair{"dx", &p.dx}})
        if (v->used() && v->type != p.x.type)
            return text(name, " is ", scalar_name(v->type), "; needs the type of x, ",
                        scalar_name(p.x.type));
    if (p.width > conv1d_bwd_bct_longest)
        return text("width=", p.width, " is over ", conv1d_bwd_bct_longest);
    if (how == way::btc) {
        if (p.width < 2 || p.width > conv1d_bwd_btc_longest)
            return text("width=", p.width, "; needs 2 to ", conv1d_bwd_btc_longest);
        if (p.entries > INT32_MAX / 4)
            return text("entries=", p.entries, " is over ", INT32_MAX / 4);
    }
    constexpr int64_t most = int64_t{1} << 30;
    if (p.length > most) return text("length=", p.length, " is over ", most);
    if (p.batch > most) return text("batch=", p.batch, " is over ", most);
    for (const auto &[name, v] :
         {std::pair{"x", &p.x}, std::pair{"dy", &p.dy}, std::pair{"dx", &p.dx}}) {
        const int64_t stride = how == way::bct ? v->t : v->c;
        const int64_t extent = how == way::bct ? p.length : p.channels;
        const int64_t reach = int64_t{1} << 24; // taps * stride stays within 32 bits
        if (how == way::btc && v->used() && (v->t >= reach || v->t <= -reach))
            return text("time stride ", v->t, " of ", name, " is over ", reach);
        if (v->used() && stride != 1 && extent > 1)
            return text(how == way::bct ? "time" : "channel", " stride ", stride, " of ", name,
                        "; needs 1");
    }
    return "";
}

verdict applicable(const problem &problem, const profile &device, way how) {
    if (const verdict shared = conv1d_cuda_device(problem, device); !shared.empty()) return shared;
    const conv1d_problem &p = problem.conv1d();
    if (p.width > INT32_MAX / 2) return text("width=", p.width, " is over ", INT32_MAX / 2);
    if (!runs_main(p)) {
        if (how != way::any) return "no token contributes to dx, dw or dbias";
        return fits_memory(problem, device, p.varlen ? p.sequences * 16 : 0);
    }
    if (how != way::any)
        if (const verdict own = fast_rule(how, p); !own.empty()) return own;
    const main_step m = main_of(how, p, device);
    const double work = marks_bytes(how, p, m) + (wants_sums(p) ? partial_bytes(how, p, m) : 0) +
                        (p.varlen ? static_cast<double>(p.sequences) * 16 : 0);
    if (work > 1e18) return "its partial sums have more bytes than 64 bits count";
    return fits_memory(problem, device, static_cast<int64_t>(work));
}

// ---- Cost --------------------------------------------------------------------------------------

/// Of the copy bandwidth that conv1d.bwd_bct reaches on an H200 (measured): less where rows begin
/// anywhere, for their ends, and with marks.
double bct_share(const conv1d_problem &p) {
    const bool even = ((p.x.b | p.x.c) & ((1 << conv1d_log_vec(p.x.type)) - 1)) == 0;
    double slow = 1.1;
    if (!even) slow += 0.145 + 227 / static_cast<double>(p.length);
    if (p.state_in.used() || p.dstate_out.used()) slow += 0.08;
    if (conv1d_bwd_bct_fixes(p)) {
        slow += 1.2; // borders are mended apart: measured for K = 4, before fields took their place
    } else if (conv1d_bwd_bct_reads_marks(p)) {
        slow += p.x.type == scalar::f32 ? 0.03 : 0.3; // issue slots of masked tiles
    }
    return 1 / slow;
}

/// Shares of the copy bandwidth for the bytes of x, dy and dx. Instructions decide for `any`: its
/// elements go through accessors, taps and all.
constexpr double any_share = 0.08;
/// Instructions of an element in the fast kernels: three products for each tap, g, and the rest.
constexpr double element_slots = 15, silu_slots = 9, marks_slots = 3;
constexpr double issue_share = 0.85;

/// The same of conv1d.bwd_btc, fitted to times on an H200: with a lane's few channels, and with
/// channels that lie on no multiple of a cell.
constexpr double btc_slots = 8, btc_few_slots = 9, btc_loose_slots = 14, btc_loose_f32_slots = 30;
constexpr double btc_issue_share = 0.54, btc_memory_share = 0.93;

double fast_slots(way how, const conv1d_problem &p) {
    const int taps = conv1d_bwd_taps(p.width);
    if (how == way::btc) {
        const bool f32 = p.x.type == scalar::f32;
        return btc_slots + (p.silu ? 3 : 2) * taps + (p.silu ? silu_slots : 0) +
               (taps > 4 ? btc_few_slots : 0) +
               (!conv1d_bwd_btc_loose(p) ? 0
                : f32                    ? btc_loose_f32_slots
                                         : btc_loose_slots);
    }
    return element_slots + (p.silu ? 3 : 2) * taps + (p.silu ? silu_slots : 0) +
           (runs_marks(how, p) ? marks_slots : 0);
}

constexpr double state_seconds_per_element = 1e-10;
constexpr double latency_seconds = 2e-6; ///< of a launch whose work is short

cost estimate(const problem &problem, const profile &device, way how) {
    const conv1d_problem &p = problem.conv1d();
    cost c;
    int launches = (runs_offsets(p) ? 1 : 0) + (runs_marks(how, p) ? 1 : 0) +
                   (wants_sums(p) ? 1 : 0) + (runs_fix(how, p) ? 1 : 0) +
                   (runs_own_state(how, p) ? 1 : 0);
    if (runs_main(p)) {
        const main_step m = main_of(how, p, device);
        if (!wants_sums(p) || !writes_sums(how, p, m)) ++launches;
        const int bytes =
            scalar_bytes(p.x.type) + scalar_bytes(p.dy.type) + scalar_bytes(p.dx.type);
        const double taps = 1 + static_cast<double>(p.width) / 8;
        const double sums = wants_sums(p) ? 2 * partial_bytes(how, p, m) : 0;
        c.memory_seconds = (elements_of(p) * bytes + sums) / device.copy_bandwidth;
        if (how == way::btc) c.memory_seconds /= btc_memory_share;
        if (how == way::bct) c.memory_seconds /= bct_share(p);
        c.compute_seconds =
            how == way::any
                ? elements_of(p) * bytes * taps / (device.copy_bandwidth * any_share)
                : elements_of(p) * fast_slots(how, p) /
                      (device.f32_per_second * (how == way::btc ? btc_issue_share : issue_share));
    }
    if (runs_state(p))
        c.compute_seconds += static_cast<double>(p.sequences) * static_cast<double>(p.channels) *
                             static_cast<double>(p.entries) * state_seconds_per_element;
    c.launch_seconds = launches * device.launch_seconds;
    c.seconds = std::max(c.memory_seconds, c.compute_seconds) + c.launch_seconds +
                launches * latency_seconds;
    return c;
}

} // namespace

} // namespace conv1d_bwd

using conv1d_bwd::applicable, conv1d_bwd::build, conv1d_bwd::estimate, conv1d_bwd::way;

verdict conv1d_cuda_bwd_bct_applicable(const problem &p, const profile &d) {
    return applicable(p, d, way::bct);
}
cost conv1d_cuda_bwd_bct_estimate(const problem &p, const profile &d) {
    return estimate(p, d, way::bct);
}
pipeline conv1d_cuda_bwd_bct_build(const problem &p, const profile &d) {
    return build(p, d, way::bct);
}

verdict conv1d_cuda_bwd_btc_applicable(const problem &p, const profile &d) {
    return applicable(p, d, way::btc);
}
cost conv1d_cuda_bwd_btc_estimate(const problem &p, const profile &d) {
    return estimate(p, d, way::btc);
}
pipeline conv1d_cuda_bwd_btc_build(const problem &p, const profile &d) {
    return build(p, d, way::btc);
}

verdict conv1d_cuda_bwd_any_applicable(const problem &p, const profile &d) {
    return applicable(p, d, way::any);
}
cost conv1d_cuda_bwd_any_estimate(const problem &p, const profile &d) {
    return estimate(p, d, way::any);
}
pipeline conv1d_cuda_bwd_any_build(const problem &p, const profile &d) {
    return build(p, d, way::any);
}

} // namespace plait::impl
