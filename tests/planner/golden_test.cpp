// Golden plans: what is chosen for every token of the corpus on every profile, with all numbers
// that reach a launch.
#include "lib/cpu/wht/simd_args.h"
#include "lib/cuda/wht/any_layout.h"
#include "lib/cuda/wht/around_layout.h"
#include "lib/cuda/wht/block_e4m3_layout.h"
#include "lib/cuda/wht/block_factor_layout.h"
#include "lib/cuda/wht/block_layout.h"
#include "lib/cuda/wht/cluster_layout.h"
#include "lib/cuda/wht/columns_layout.h"
#include "lib/cuda/wht/diagonal_layout.h"
#include "lib/cuda/wht/l2_layout.h"
#include "lib/cuda/wht/mma16_layout.h"
#include "lib/cuda/wht/mma16_narrow_layout.h"
#include "src/core/status.h"
#include "src/core/text.h"
#include "tests/planner/golden_text.h"

namespace plait::test {

namespace {

template <class Args> Args args_of(const step &s) {
    REQUIRE(s.args.size() == sizeof(Args));
    Args args;
    std::memcpy(&args, s.args.data(), sizeof args);
    return args;
}

template <int K> std::string walk_text(const wht_walk<K> &w) {
    return text(" tiles=", w.tiles, " lines=", w.lines, " length=", w.length, " part=", w.part,
                " outer=", w.axes);
}

std::string arguments(const step &s) {
    if (s.kernel == "wht.block") {
        const auto a = args_of<wht_block_args>(s);
        return text("rows=", a.rows, " x_stride=", a.x_row_stride, " y_stride=", a.y_row_stride,
                    " scale=", a.scale);
    }
    if (s.kernel == "wht.mma16") {
        const auto a = args_of<wht_mma16_args>(s);
        return text("rows=", a.rows, " x_stride=", a.x_row_stride, " y_stride=", a.y_row_stride,
                    " scale=", a.scale);
    }
    if (s.kernel == "wht.block_factor") {
        const auto a = args_of<wht_block_factor_args>(s);
        return text("rows=", a.rows, " x_stride=", a.x_row_stride, " y_stride=", a.y_row_stride,
                    " scale=", a.scale, " log_k=", a.log_k, " tile=", a.rows_per_tile,
                    " x_vector=", a.x_vector, " y_vector=", a.y_vector);
    }
    if (s.kernel == "wht.fused") {
        const auto a = args_of<wht_fused_args>(s);
        return text("rows=", a.rows, " x_stride=", a.x_row_stride, " y_stride=", a.y_row_stride,
                    " scale=", a.scale, " order=", static_cast<int>(a.order),
                    " extra=", static_cast<int>(a.extra[0]), static_cast<int>(a.extra[1]),
                    " vector=", a.vector[0], a.vector[1]);
    }
    if (s.kernel == "wht.diagonal") {
        const auto a = args_of<wht_diagonal_args>(s);
        std::string kinds;
        for (const wht_diagonal_kind k : a.kind) kinds += text(static_cast<int>(k));
        return text("rows=", a.rows, " x_stride=", a.x_row_stride, " y_stride=", a.y_row_stride,
                    " scale=", a.scale, " kinds=", kinds, " conjugate=", a.conjugate,
                    " signs_out=", a.signs_out, " vector=", a.vector[0], a.vector[1]);
    }
    if (s.kernel == "wht.cluster") {
        const auto a = args_of<wht_cluster_args>(s);
        return text("rows=", a.rows, " x_stride=", a.x_row_stride, " y_stride=", a.y_row_stride,
                    " scale=", a.scale);
    }
    if (s.kernel == "wht.columns_tiled" || s.kernel == "wht.columns_shuffle") {
        const auto a = args_of<wht_columns_args>(s);
        return text("batch=", a.batch, " x_stride=", a.x_batch_stride,
                    " y_stride=", a.y_batch_stride, " outer=", a.outer, " log_m=", a.log_m,
                    " log_inner=", a.log_inner, " scale=", a.scale);
    }
    if (s.kernel == "wht.l2") {
        const auto a = args_of<wht_l2_args>(s);
        return text("rows=", a.rows, " x_stride=", a.x_row_stride, " y_stride=", a.y_row_stride,
                    " slots=", a.slots, " lead=", a.lead, " scale=", a.scale);
    }
    if (s.kernel == "wht.any") {
        const auto a = args_of<wht_any_args>(s);
        std::string stages;
        for (int i = 0; i < a.stages; ++i) stages += text(i == 0 ? "" : ",", int{a.stage[i]});
        return text(scalar_name(a.type[0]), "->", scalar_name(a.type[1]), " tiles=", a.tiles,
                    " bits=", a.bits, " factor=", a.factor, " stages=", stages,
                    " digits=", a.digits, " chunks=", a.chunks, " ordered=", a.axes,
                    " scale=", a.scale);
    }
    if (s.kernel == "wht.block_e4m3" || s.kernel == "wht.mma16_e4m3") {
        const auto a = args_of<wht_block_e4m3_args>(s);
        return text("rows=", a.rows, " x_stride=", a.x_row_stride, " y_stride=", a.y_row_stride,
                    " log_group=", a.log_group, " scale=", a.scale);
    }
    if (s.kernel == "wht.mma16_narrow") {
        const auto a = args_of<wht_mma16_narrow_args>(s);
        return text("rows=", a.rows, " x_stride=", a.x_row_stride, " y_stride=", a.y_row_stride,
                    " amax=", scalar_name(a.amax_type), " bins=", a.bins, " from=", a.first_bin,
                    " width=", a.bin_width);
    }
    if (s.kernel == "wht.widen") {
        const auto a = args_of<wht_widen_args>(s);
        return text(scalar_name(a.source.x), "->", scalar_name(a.source.w), walk_text(a.walk));
    }
    if (s.kernel == "wht.factor") {
        const auto a = args_of<wht_factor_args>(s);
        return text(scalar_name(a.source.x), "->", scalar_name(a.source.w), " order=", a.order,
                    " bits=", a.bits, walk_text(a.walk));
    }
    if (s.kernel == "wht.finish") {
        const auto a = args_of<wht_finish_args>(s);
        return text(scalar_name(a.w_type), "->", a.stores ? scalar_name(a.y_type) : "nothing",
                    walk_text(a.walk));
    }
    if (s.kernel == "wht.groups")
        return text("amax=", scalar_name(args_of<wht_groups_args>(s).amax_type),
                    walk_text(args_of<wht_groups_args>(s).walk));
    if (s.kernel == "wht.clear") return text("zeros", walk_text(args_of<wht_clear_args>(s).walk));
    if (s.kernel == "wht.chains") return text("places=", args_of<wht_chains_args>(s).places);
    if (s.kernel == "wht.rows_status")
        return text("count=", args_of<wht_rows_status_args>(s).count);
    if (s.kernel == "wht.l2_reset") return text("count=", args_of<wht_l2_reset_args>(s).count);
    if (s.kernel == "wht.simd") {
        const auto a = args_of<cpu::wht_simd_args>(s);
        return text("rows=", a.rows, " n=", a.n, " x_stride=", a.x_row_stride,
                    " y_stride=", a.y_row_stride, " scale=", a.scale);
    }
    return "problem";
}

std::string plan_of(const std::string &token, const profile &device, const preferences &pref) {
    std::string out = text(token, pref.math == PLAIT_MATH_F32 ? " math=f32" : "", '\n');
    wisdom none;
    try {
        const choice c = choose(problem_of(token), device, pref, none, nullptr);
        if (!c.what) return out + "  empty\n";
        out += text("  ", c.what->name, " rev ", c.what->revision, '\n',
                    steps_text(c.steps, arguments));
        return out + work_text(c.steps);
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
            const tensor *y = p.find(PLAIT_Y);
            const bool half = y && (y->dtype == PLAIT_F16 || y->dtype == PLAIT_BF16);
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
