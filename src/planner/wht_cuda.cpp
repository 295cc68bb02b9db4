// The CUDA candidates of wht: which problems they take. Passes, cost and steps: wht_cuda_passes.
#include "src/core/text.h"
#include "src/planner/wht_cuda_passes.h"

#include <algorithm>

namespace plait::impl {

namespace {

constexpr wht_pass_kind kind_block = {wht_columns::none, 0, false};
constexpr wht_pass_kind kind_shuffle = {wht_columns::shuffle, 1, false};
constexpr wht_pass_kind kind_tiled = {wht_columns::tiled, 1, false};
constexpr wht_pass_kind kind_multi = {wht_columns::tiled, wht_most_columns, true};

bool floating(scalar s) {
    return s == scalar::f64 || s == scalar::f32 || s == scalar::f16 || s == scalar::bf16;
}

/// Rows as the passes take them.
verdict pass_rows(const problem &p, const profile &device, wht_rows *r) {
    if (device.backend != PLAIT_CUDA) return "the device is no CUDA device";
    const verdict shape = wht_as_rows(p, r);
    if (!shape.empty()) return shape;
    *r = wht_as_reals(*r);
    return wht_cuda_built_for(device);
}

verdict block_rule(const wht_rows &r, const profile &device) {
    const int longest = wht_longest_block(r.x, r.y, r.parts);
    if (!wht_block_exists(r.x, r.y, std::min(r.log_n, longest), r.parts))
        return text("there is no kernel that stores ", scalar_name(r.x), " rows of ", r.n, " as ",
                    scalar_name(r.y));
    if (r.log_n > longest)
        return text("n=", r.n >> r.parts, " is over ", int64_t{1} << (longest - r.parts));
    if (wht_passes(r, device, kind_block).best().count >= 0) return "";
    return text("n=", r.n >> r.parts, " does not fit the ", device.smem_per_block,
                " bytes of shared memory of a block");
}

verdict columns_rule(const wht_rows &r, const profile &device, const wht_pass_kind &kind,
                     wht_split *s) {
    if (block_rule(r, device).empty()) return text("n=", r.n >> r.parts, " fits one block");
    const wht_passes b(r, device, kind);
    *s = b.best();
    if (s->count >= 0) return b.early_scale_fits(*s);
    if (kind.kernel == wht_columns::shuffle) {
        if (r.y_align < 16) return text("y is aligned to ", r.y_align, " bytes; needs 16");
        if (r.rows > 1 && !wht_aligned16(r.y_stride, r.y))
            return text("row stride ", r.y_stride, " of y is no multiple of 16 bytes");
    }
    const scalar mid = wht_between_passes(r, kind).type;
    const int longest = wht_longest_block(r.x, mid, r.parts);
    if (!wht_block_exists(r.x, mid, std::min(r.log_n, longest), r.parts))
        return text("there is no kernel that stores ", scalar_name(r.x), " rows of ", r.n, " as ",
                    scalar_name(mid));
    if (r.log_n <= longest)
        return text("n=", r.n, " is too short for a column pass, which would store ",
                    scalar_name(mid), " as ", scalar_name(r.y));
    return text("n=", r.n >> r.parts, " is beyond wht.block and ", kind.max_columns, " column pass",
                kind.max_columns > 1 ? "es" : "", " of ",
                kind.kernel == wht_columns::shuffle ? "5" : "11 or 12", " bits");
}

verdict applicable(const problem &p, const profile &device, const wht_pass_kind &kind) {
    wht_rows r;
    const verdict shared = pass_rows(p, device, &r);
    if (!shared.empty()) return shared;
    wht_split s;
    const verdict own = kind.kernel == wht_columns::none ? block_rule(r, device)
                                                         : columns_rule(r, device, kind, &s);
    if (!own.empty()) return own;
    return fits_memory(p, device, wht_passes(r, device, kind).work_bytes());
}

cost estimate(const problem &p, const profile &device, const wht_pass_kind &kind) {
    wht_rows r;
    pass_rows(p, device, &r);
    return wht_passes(r, device, kind).best().estimate;
}

pipeline build(const problem &p, const profile &device, const wht_pass_kind &kind) {
    wht_rows r;
    pass_rows(p, device, &r);
    const wht_passes b(r, device, kind);
    return b.build(b.best());
}

} // namespace

verdict wht_cuda_built_for(const profile &device) {
    const int have = device.cc_major * 10 + device.cc_minor;
    for (const int arch : device.built)
        if (arch <= have) return "";
    if (device.built.empty()) return "this build holds no CUDA kernels";
    return text("this build holds kernels from ", device.built.front(), " up; the device is ",
                device.cc_major, '.', device.cc_minor);
}

bool wht_cuda_starts_early(const step &one, const profile &device) {
    constexpr int64_t short_pass_bytes = int64_t{32} << 20; // a few times as long as a launch
    return waits_for_predecessors(device) && one.grid <= device.sms &&
           one.bytes_read + one.bytes_written <= short_pass_bytes;
}

verdict wht_cuda_shared_rules(const problem &problem, const profile &device, wht_rows *r) {
    if (device.backend != PLAIT_CUDA) return "the device is no CUDA device";
    const verdict shape = wht_as_rows(problem, r);
    if (!shape.empty()) return shape;
    if (!floating(r->x)) return text("x is ", scalar_name(r->x), "; needs f16, bf16, f32 or f64");
    return wht_cuda_built_for(device);
}

verdict wht_cuda_block_applicable(const problem &p, const profile &d) {
    return applicable(p, d, kind_block);
}
cost wht_cuda_block_estimate(const problem &p, const profile &d) {
    return estimate(p, d, kind_block);
}
pipeline wht_cuda_block_build(const problem &p, const profile &d) {
    return build(p, d, kind_block);
}

verdict wht_cuda_two_pass_shuffle_applicable(const problem &p, const profile &d) {
    return applicable(p, d, kind_shuffle);
}
cost wht_cuda_two_pass_shuffle_estimate(const problem &p, const profile &d) {
    return estimate(p, d, kind_shuffle);
}
pipeline wht_cuda_two_pass_shuffle_build(const problem &p, const profile &d) {
    return build(p, d, kind_shuffle);
}

verdict wht_cuda_two_pass_tiled_applicable(const problem &p, const profile &d) {
    return applicable(p, d, kind_tiled);
}
cost wht_cuda_two_pass_tiled_estimate(const problem &p, const profile &d) {
    return estimate(p, d, kind_tiled);
}
pipeline wht_cuda_two_pass_tiled_build(const problem &p, const profile &d) {
    return build(p, d, kind_tiled);
}

verdict wht_cuda_multi_pass_applicable(const problem &p, const profile &d) {
    return applicable(p, d, kind_multi);
}
cost wht_cuda_multi_pass_estimate(const problem &p, const profile &d) {
    return estimate(p, d, kind_multi);
}
pipeline wht_cuda_multi_pass_build(const problem &p, const profile &d) {
    return build(p, d, kind_multi);
}

} // namespace plait::impl
