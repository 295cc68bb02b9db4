// conv1d.bwd.cuda.{bct,btc,any}: which problems they take, what they cost, their steps:
//   conv1d.offsets (packed sequences), conv1d.bwd_marks (fast kernels with features), the main
//   kernel (dx, partial sums of dw and dbias), conv1d.bwd_reduce, conv1d.bwd_state. Behind
//   conv1d.bwd_btc conv1d.bwd_btc_fix does all that states enter; its marks are its own.
#include "lib/cuda/conv1d/bwd_any_layout.h"
#include "lib/cuda/conv1d/bwd_btc_layout.h"
#include "lib/cuda/conv1d/offsets_layout.h"
#include "src/core/text.h"
#include "src/planner/conv1d_cuda.h"

#include <algorithm>
#include <cstring>

namespace plait::impl {

namespace {

enum class way { bct, btc, any };

// ---- What runs ---------------------------------------------------------------------------------

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

/// Also without sequences: STATUS is written.
bool runs_offsets(const conv1d_problem &p) {
    return p.varlen && (p.status || (p.sequences > 0 && (runs_main(p) || runs_state(p))));
}

/// The main kernel of a candidate.
struct main_step {
    const char *kernel;
    conv1d_launch launch;
    conv1d_btc_args args; ///< of which the other kernels take the base
};

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

/// The main kernel writes dw and dbias itself.
bool writes_sums(way how, const main_step &m) { return how == way::bct && m.args.slots == 1; }

bool runs_fix(way how, const conv1d_problem &p) {
    return how == way::btc && runs_main(p) && conv1d_bwd_btc_fixes(p);
}

/// Partial sums of conv1d.bwd_btc_fix.
int64_t more_slots(way how, const conv1d_problem &p) {
    return runs_fix(how, p) && wants_sums(p) ? conv1d_bwd_btc_slices(p) : 0;
}

int64_t mark_tokens_bytes(way how, const conv1d_problem &p) {
    if (how == way::btc) {
        const int64_t tiles = conv1d_ceil_div(p.length, conv1d_bwd_taps(p.width));
        return conv1d_bwd_btc_flags_at(p.batch, p.length) +
               4 * p.batch * conv1d_ceil_div(tiles, 32);
    }
    return conv1d_marks_size(p.width, p.batch * p.length);
}

double marks_bytes(way how, const conv1d_problem &p) {
    if (!runs_marks(how, p)) return 0;
    return static_cast<double>(p.batch) * static_cast<double>(p.length) *
               (conv1d_mark_bytes(p.width) + 1.0 / (1 << conv1d_marks_log_group)) +
           2 * conv1d_marks_slack + 1;
}

int64_t accumulator_bytes(const conv1d_problem &p) { return scalar_bytes(p.accumulator); }

double partial_bytes(way how, const conv1d_problem &p, const main_step &m) {
    if (writes_sums(how, m)) return 0;
    const conv1d_bwd_args &a = m.args;
    return static_cast<double>(a.slots + more_slots(how, p)) * static_cast<double>(p.width + 1) *
           static_cast<double>(p.channels * accumulator_bytes(p));
}

// ---- Rules -------------------------------------------------------------------------------------

verdict built_for(const profile &device) {
    const int have = device.cc_major * 10 + device.cc_minor;
    for (const int arch : device.built)
        if (arch <= have) return "";
    if (device.built.empty()) return "this build holds no CUDA kernels";
    return text("this build holds kernels from ", device.built.front(), " up; the device is ",
                device.cc_major, '.', device.cc_minor);
}

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
    if (device.backend != PLAIT_CUDA) return "the device is no CUDA device";
    if (problem.empty) return "the problem is empty: there is nothing to run";
    const conv1d_problem &p = problem.conv1d();
    if (p.width > INT32_MAX / 2) return text("width=", p.width, " is over ", INT32_MAX / 2);
    if (const verdict built = built_for(device); !built.empty()) return built;
    if (!runs_main(p)) {
        if (how != way::any) return "no token contributes to dx, dw or dbias";
        return fits_memory(problem, device, p.varlen ? p.sequences * 16 : 0);
    }
    if (how != way::any)
        if (const verdict own = fast_rule(how, p); !own.empty()) return own;
    const main_step m = main_of(how, p, device);
    const double work = marks_bytes(how, p) + (wants_sums(p) ? partial_bytes(how, p, m) : 0) +
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
    if (conv1d_bwd_bct_reads_marks(p)) slow += 0.85;
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
                   (wants_sums(p) ? 1 : 0) + (runs_fix(how, p) || runs_state(p) ? 1 : 0);
    if (runs_main(p)) {
        const main_step m = main_of(how, p, device);
        if (!wants_sums(p) || !writes_sums(how, m)) ++launches;
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

// ---- Steps -------------------------------------------------------------------------------------

operand input_of(const problem &problem, plait_role role) {
    return problem.find(role) ? role_operand(role, false) : operand{};
}

operand output_of(const problem &problem, plait_role role) {
    return problem.find(role) ? role_operand(role, true) : operand{};
}

int64_t bytes_of(const problem &problem, std::initializer_list<plait_role> roles) {
    int64_t sum = 0;
    for (const plait_role role : roles)
        if (const tensor *t = problem.find(role))
            sum += t->elements() * scalar_bytes(static_cast<scalar>(t->dtype));
    return sum;
}

/// The workspace of a pipeline: pieces that are not in use have the number -1.
struct pieces {
    int spans = -1, marks = -1, partial = -1;
};

operand piece_or_none(int piece, bool written) {
    return piece < 0 ? operand{} : piece_operand(piece, written);
}

/// In the order of conv1d_bwd_args.
std::vector<operand> operands_of(const problem &problem, const pieces &w, bool state) {
    return {input_of(problem, PLAIT_X),
            input_of(problem, PLAIT_W),
            input_of(problem, PLAIT_BIAS),
            input_of(problem, PLAIT_STATE_IN),
            input_of(problem, PLAIT_SEQ_IDX),
            piece_or_none(w.spans, false),
            input_of(problem, PLAIT_DY),
            input_of(problem, PLAIT_DSTATE_OUT),
            piece_or_none(w.marks, false),
            state ? operand{} : output_of(problem, PLAIT_DX),
            state ? operand{} : piece_or_none(w.partial, true),
            state ? output_of(problem, PLAIT_DSTATE_IN) : operand{},
            operand{}};
}

constexpr size_t operand_dstate_in = 11;

void set_launch(step &s, const conv1d_launch &l) {
    s.variant = l.variant;
    s.grid = l.grid;
    s.block = l.threads;
    s.smem_bytes = l.smem_bytes;
}

step offsets_step(const problem &problem, const pieces &w) {
    const conv1d_problem &p = problem.conv1d();
    step s;
    s.kernel = "conv1d.offsets";
    set_launch(s, conv1d_offsets_launch());
    conv1d_offsets_args a{};
    a.sequences = p.sequences;
    a.tokens = p.length;
    a.max_length = p.max_length;
    a.wide = p.index == scalar::i64;
    s.args = step_args(a);
    s.operands = {input_of(problem, PLAIT_CU_SEQLENS),
                  operand{},
                  piece_or_none(w.spans, true),
                  operand{},
                  operand{},
                  output_of(problem, PLAIT_STATUS)};
    s.bytes_read = bytes_of(problem, {PLAIT_CU_SEQLENS});
    s.bytes_written = p.sequences * 16;
    return s;
}

step reduce_step(const problem &problem, int64_t slots, const pieces &w) {
    const conv1d_problem &p = problem.conv1d();
    conv1d_bwd_reduce_args a{};
    a.vdw = p.dw;
    a.vdbias = p.dbias;
    a.channels = p.channels;
    a.slots = slots;
    a.width = p.width;
    a.log_slices = conv1d_bwd_reduce_log_slices(slots);
    step s;
    s.kernel = "conv1d.bwd_reduce";
    s.variant = scalar_name(p.accumulator);
    s.grid = conv1d_bwd_reduce_grid(p.channels, p.width, a.log_slices);
    s.block = conv1d_bwd_threads;
    s.smem_bytes = conv1d_bwd_threads * 8;
    s.operands = {piece_or_none(w.partial, false), output_of(problem, PLAIT_DW),
                  output_of(problem, PLAIT_DBIAS)};
    s.args = step_args(a);
    const int64_t sums = (p.width + 1) * p.channels * slots;
    s.bytes_read = sums * accumulator_bytes(p);
    s.bytes_written = bytes_of(problem, {PLAIT_DW, PLAIT_DBIAS});
    s.flops = sums;
    return s;
}

step state_step(const problem &problem, const pieces &w) {
    const conv1d_problem &p = problem.conv1d();
    step s;
    s.kernel = "conv1d.bwd_state";
    s.variant = scalar_name(p.accumulator);
    s.grid = std::min(conv1d_ceil_div(p.sequences * p.channels * p.entries, conv1d_bwd_threads),
                      conv1d_most_blocks);
    s.block = conv1d_bwd_threads;
    s.operands = operands_of(problem, w, true);
    s.args = step_args(conv1d_bwd_args_of(p));
    s.bytes_read = bytes_of(problem, {PLAIT_DSTATE_OUT});
    s.bytes_written = bytes_of(problem, {PLAIT_DSTATE_IN});
    return s;
}

step marks_step(const problem &problem, way how, const main_step &m, const pieces &w) {
    const conv1d_problem &p = problem.conv1d();
    step s;
    if (how == way::btc) {
        s.kernel = "conv1d.bwd_btc_marks";
        set_launch(s, conv1d_bwd_btc_mark_launch(p.batch, m.args.tiles));
        s.args = step_args(m.args);
    } else {
        s.kernel = "conv1d.bwd_marks";
        s.variant = conv1d_short_marks(p.width) ? "u8" : "u64";
        s.grid = conv1d_grid(p.batch * p.length, conv1d_bwd_threads);
        s.block = conv1d_bwd_threads;
        s.args = step_args(conv1d_bwd_args_of(p));
    }
    s.operands = operands_of(problem, w, false);
    for (operand &o : s.operands)
        if (o.written || (o.from == operand::source::work && o.piece == w.marks)) o = operand{};
    s.operands.back() = piece_operand(w.marks, true);
    s.bytes_read = bytes_of(problem, {PLAIT_SEQ_IDX});
    s.bytes_written = mark_tokens_bytes(how, p);
    return s;
}

/// conv1d.bwd_btc_fix; its partial sums lie behind those of the main kernel.
step fix_step(const problem &problem, const main_step &m, const pieces &w) {
    const conv1d_problem &p = problem.conv1d();
    conv1d_btc_args a = m.args;
    step s;
    s.kernel = "conv1d.bwd_btc_fix";
    set_launch(s, conv1d_bwd_btc_fix_fill(p, w.partial >= 0, &a));
    s.variant = conv1d_is_half(p.x.type) ? "half" : "f32";
    s.operands = operands_of(problem, w, false);
    for (operand &o : s.operands)
        if (o.from == operand::source::work && o.piece == w.marks) o = operand{};
    s.operands[operand_dstate_in] = output_of(problem, PLAIT_DSTATE_IN);
    s.args = step_args(a);
    s.bytes_read = bytes_of(problem, {PLAIT_STATE_IN, PLAIT_DSTATE_OUT});
    s.bytes_written = bytes_of(problem, {PLAIT_DSTATE_IN});
    return s;
}

step main_of_step(const problem &problem, way how, const main_step &m, const pieces &w) {
    const conv1d_problem &p = problem.conv1d();
    step s;
    s.kernel = m.kernel;
    set_launch(s, m.launch);
    s.operands = operands_of(problem, w, false);
    if (writes_sums(how, m)) {
        s.operands.push_back(output_of(problem, PLAIT_DW));
        s.operands.push_back(output_of(problem, PLAIT_DBIAS));
        s.bytes_written += bytes_of(problem, {PLAIT_DW, PLAIT_DBIAS});
    }
    s.args = how == way::btc ? step_args(m.args)
                             : step_args(static_cast<const conv1d_bwd_args &>(m.args));
    s.bytes_read = bytes_of(problem, {PLAIT_X, PLAIT_DY, PLAIT_W, PLAIT_BIAS, PLAIT_SEQ_IDX,
                                      PLAIT_STATE_IN, PLAIT_DSTATE_OUT});
    s.bytes_written += bytes_of(problem, {PLAIT_DX});
    if (w.partial >= 0) s.bytes_written += static_cast<int64_t>(partial_bytes(how, p, m));
    s.flops =
        static_cast<int64_t>(elements_of(p) * 2 * static_cast<double>(p.width) * (p.silu ? 3 : 2));
    return s;
}

pipeline build(const problem &problem, const profile &device, way how) {
    const conv1d_problem &p = problem.conv1d();
    const bool main = runs_main(p), fix = runs_fix(how, p), state = runs_state(p) && !fix;
    main_step m{};
    if (main) m = main_of(how, p, device);
    const bool sums = wants_sums(p) && !(main && writes_sums(how, m)); // by conv1d.bwd_reduce
    const bool offsets = runs_offsets(p), marks = runs_marks(how, p);
    const int marks_at = offsets ? 1 : 0, main_at = marks_at + (marks ? 1 : 0);
    const int fix_at = main_at + (main ? 1 : 0), reduce_at = fix_at + (fix ? 1 : 0);
    const int state_at = reduce_at + (sums ? 1 : 0);
    pipeline out;
    pieces w;
    if (offsets && p.sequences > 0)
        w.spans = out.work.book("spans", p.sequences * 16, 0,
                                state ? state_at
                                : fix ? fix_at
                                      : main_at);
    if (marks) w.marks = out.work.book("marks", mark_tokens_bytes(how, p), marks_at, main_at);
    if (main && sums)
        w.partial = out.work.book("partial", static_cast<int64_t>(partial_bytes(how, p, m)),
                                  main_at, reduce_at);
    if (offsets) out.steps.push_back(offsets_step(problem, w));
    if (marks) out.steps.push_back(marks_step(problem, how, m, w));
    if (main) out.steps.push_back(main_of_step(problem, how, m, w));
    if (fix) out.steps.push_back(fix_step(problem, m, w));
    const int64_t slots = main ? m.args.slots + more_slots(how, p) : 0;
    if (sums) out.steps.push_back(reduce_step(problem, slots, w));
    if (state) out.steps.push_back(state_step(problem, w));
    conv1d_start_early(out, device, false);
    out.work.seal();
    return out;
}

} // namespace

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
