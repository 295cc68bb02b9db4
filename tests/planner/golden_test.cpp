// Golden plans: what is chosen for every token of the corpus on every profile, with all numbers
// that reach a launch.
#include "lib/cpu/wht/simd_args.h"
#include "lib/cuda/wht/block_layout.h"
#include "lib/cuda/wht/columns_layout.h"
#include "src/core/status.h"
#include "src/core/text.h"
#include "tests/planner/support.h"

namespace plait::test {

namespace {

template <class Args> Args args_of(const step &s) {
    REQUIRE(s.args.size() == sizeof(Args));
    Args args;
    std::memcpy(&args, s.args.data(), sizeof args);
    return args;
}

std::string arguments(const step &s) {
    if (s.kernel == "wht.block") {
        const auto a = args_of<wht_block_args>(s);
        return text("rows=", a.rows, " x_stride=", a.x_row_stride, " y_stride=", a.y_row_stride,
                    " scale=", a.scale);
    }
    if (s.kernel == "wht.columns_tiled" || s.kernel == "wht.columns_shuffle") {
        const auto a = args_of<wht_columns_args>(s);
        return text("batch=", a.batch, " x_stride=", a.x_batch_stride,
                    " y_stride=", a.y_batch_stride, " outer=", a.outer, " log_m=", a.log_m,
                    " log_inner=", a.log_inner, " scale=", a.scale);
    }
    if (s.kernel == "wht.simd") {
        const auto a = args_of<cpu::wht_simd_args>(s);
        return text("rows=", a.rows, " n=", a.n, " x_stride=", a.x_row_stride,
                    " y_stride=", a.y_row_stride, " scale=", a.scale);
    }
    return "problem";
}

std::string operand_text(const pipeline &p, const operand &o) {
    std::string name = "null";
    if (o.from == operand::source::role) name = role_name(o.role);
    if (o.from == operand::source::work) name = p.work.pieces()[static_cast<size_t>(o.piece)].name;
    if (o.offset != 0) name += text('+', o.offset);
    return o.written ? name + "!" : name;
}

std::string step_text(const pipeline &p, const step &s) {
    std::string out = text("  ", s.kernel, s.variant.empty() ? "" : " ", s.variant, " grid ",
                           s.grid, " block ", s.block, " smem ", s.smem_bytes, " read ",
                           s.bytes_read, " written ", s.bytes_written, " flops ", s.flops, " (");
    for (const operand &o : s.operands)
        out += text(&o == s.operands.data() ? "" : " ", operand_text(p, o));
    return text(out, ") ", arguments(s), '\n');
}

/// Plans of one launch for each of many rows would fill the file with equal lines.
std::string steps_text(const pipeline &p) {
    std::string out;
    for (size_t i = 0; i < p.steps.size(); ++i) {
        if (p.steps.size() > 12 && i == 4) {
            out += text("  ... ", p.steps.size() - 8, " more\n");
            i = p.steps.size() - 4;
        }
        out += step_text(p, p.steps[i]);
    }
    return out;
}

std::string plan_of(const std::string &token, const profile &device, const preferences &pref) {
    std::string out = text(token, pref.math == PLAIT_MATH_F32 ? " math=f32" : "", '\n');
    wisdom none;
    try {
        const choice c = choose(problem_of(token), device, pref, none, nullptr);
        if (!c.what) return out + "  empty\n";
        out += text("  ", c.what->name, " rev ", c.what->revision, '\n', steps_text(c.steps));
        for (const piece &one : c.steps.work.pieces())
            out += text("  work ", one.name, ' ', one.bytes, " at ", one.offset, " steps ",
                        one.first_step, "..", one.last_step, '\n');
        return out;
    } catch (const failure &f) {
        if (f.code() != PLAIT_ERR_NOT_SUPPORTED) throw;
        return text(out, "  none: ", f.what(), '\n');
    }
}

} // namespace

TEST_CASE("golden plans") {
    for (const named_profile &device : profiles()) {
        std::string text = "# " + device.facts.fingerprint() + "\n";
        for (const std::string &token : corpus()) {
            const problem p = problem_of(token);
            text += plan_of(token, device.facts, {});
            preferences wide;
            wide.math = PLAIT_MATH_F32;
            const bool half =
                p.find(PLAIT_Y)->dtype == PLAIT_F16 || p.find(PLAIT_Y)->dtype == PLAIT_BF16;
            if (half && device.facts.backend == PLAIT_CUDA && p.wht().axes > 0 && !p.empty &&
                p.wht().axis[p.wht().axes - 1].length > 65536)
                text += plan_of(token, device.facts, wide);
        }
        check_golden(device.name + ".txt", text);
    }
}

TEST_CASE("golden print") {
    std::string text;
    wisdom known;
    const profile &h200 = profile_named("h200");
    const problem p = problem_of("wht:f32:b1024:n262144");
    known.record(p.token, h200.fingerprint(), candidate_named("wht.cuda.two_pass.shuffle"), 1.1e-3);
    const problem q = problem_of("wht:bf16:n67108864");
    preferences wide;
    wide.math = PLAIT_MATH_F32;
    for (const plait_format format : {PLAIT_TEXT, PLAIT_JSON}) {
        text += print_plan(p, h200, PLAIT_ESTIMATE, choose(p, h200, {}, known, nullptr), format);
        text += print_candidates(p, h200, rank(p, h200, {}, known), format);
        text += print_plan(q, h200, PLAIT_ESTIMATE, choose(q, h200, wide, known, nullptr), format);
        text += print_candidates(q, h200, rank(q, h200, wide, known), format);
    }
    check_golden("print.txt", text);
}

} // namespace plait::test
