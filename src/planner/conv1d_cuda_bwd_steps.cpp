// conv1d.bwd.cuda.{bct,btc,any}: their steps:
//   conv1d.offsets (packed sequences), marks (fast kernels with features), the main kernel (dx,
//   partial sums of dw and dbias), what mends it, conv1d.bwd_reduce, conv1d.bwd_state.
//   conv1d.bwd_btc_fix does all that states enter behind conv1d.bwd_btc, conv1d.bwd_bct_fix what is
//   near borders of ids and packed sequences behind conv1d.bwd_bct.
#include "lib/cuda/conv1d/offsets_layout.h"
#include "src/planner/conv1d_cuda_bwd.h"

#include <algorithm>

namespace plait::impl::conv1d_bwd {

namespace {

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
    set_launch(s, conv1d_offsets_launch(p.sequences));
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

step state_step(const problem &problem, way how, const pieces &w) {
    const conv1d_problem &p = problem.conv1d();
    step s;
    s.kernel = "conv1d.bwd_state";
    s.variant = how == way::bct && conv1d_bwd_fix_taps(p.width) == 4
                    ? conv1d_bwd_fix_variant(p.x.type, 4).text
                    : scalar_name(p.accumulator);
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
        set_launch(
            s, conv1d_bwd_btc_mark_launch(p.batch, m.args.tiles, static_cast<int>(m.args.tile)));
        s.args = step_args(m.args);
    } else {
        s.kernel = "conv1d.bwd_marks";
        s.variant = "all";
        s.grid = conv1d_bwd_bct_mark_grid(p, m.args);
        s.block = conv1d_bwd_threads;
        s.args = step_args(static_cast<const conv1d_bwd_args &>(m.args));
    }
    s.operands = operands_of(problem, w, false);
    for (operand &o : s.operands)
        if (o.written || (o.from == operand::source::work && o.piece == w.marks)) o = operand{};
    s.operands.back() = piece_operand(w.marks, true);
    s.bytes_read = bytes_of(problem, {PLAIT_SEQ_IDX});
    s.bytes_written = mark_tokens_bytes(how, p, m);
    return s;
}

/// conv1d.bwd_bct_fix, conv1d.bwd_btc_fix; their partial sums lie behind those of the main kernel.
step fix_step(const problem &problem, way how, const main_step &m, const pieces &w) {
    const conv1d_problem &p = problem.conv1d();
    step s;
    s.operands = operands_of(problem, w, false);
    if (how == way::bct) {
        conv1d_bct_fix_args a{};
        static_cast<conv1d_bwd_args &>(a) = m.args;
        s.kernel = "conv1d.bwd_bct_fix";
        set_launch(s, conv1d_bwd_bct_fix_fill(p, &a));
        s.args = step_args(a);
        s.bytes_read = mark_tokens_bytes(how, p, m) + bytes_of(problem, {PLAIT_DSTATE_OUT});
        return s;
    }
    conv1d_btc_args a = m.args;
    s.kernel = "conv1d.bwd_btc_fix";
    set_launch(s, conv1d_bwd_btc_fix_fill(p, w.partial >= 0, &a));
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
    if (writes_sums(how, p, m)) {
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

} // namespace

pipeline build(const problem &problem, const profile &device, way how) {
    const conv1d_problem &p = problem.conv1d();
    const bool main = runs_main(p), fix = runs_fix(how, p), state = runs_own_state(how, p);
    main_step m{};
    if (main) m = main_of(how, p, device);
    const bool sums = wants_sums(p) && !(main && writes_sums(how, p, m)); // by conv1d.bwd_reduce
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
    if (marks)
        w.marks = out.work.book("marks", mark_tokens_bytes(how, p, m), marks_at,
                                how == way::bct && fix ? fix_at : main_at);
    if (main && sums)
        w.partial = out.work.book("partial", static_cast<int64_t>(partial_bytes(how, p, m)),
                                  main_at, reduce_at);
    if (offsets) out.steps.push_back(offsets_step(problem, w));
    if (marks) out.steps.push_back(marks_step(problem, how, m, w));
    if (main) out.steps.push_back(main_of_step(problem, how, m, w));
    if (fix) out.steps.push_back(fix_step(problem, how, m, w));
    const int64_t slots = main ? m.args.slots + more_slots(how, p) : 0;
    if (sums) out.steps.push_back(reduce_step(problem, slots, w));
    if (state) out.steps.push_back(state_step(problem, how, w));
    conv1d_start_early(out, device, false);
    out.work.seal();
    return out;
}

} // namespace plait::impl::conv1d_bwd
