// wht.cuda.l2: both passes in one launch, with the rows between them in the L2 cache.
#include "lib/cuda/wht/l2_layout.h"
#include "src/core/text.h"
#include "src/planner/wht_cuda_cost.h"
#include "src/planner/wht_cuda_passes.h"

#include <algorithm>

namespace plait::impl {

namespace {

struct l2_plan {
    wht_l2_config config;
    wht_launch launch;
    int64_t resident; ///< blocks that run at a time
    int64_t lead;
    int64_t slots; ///< rows of f32 in the workspace; 0: the passes meet in y
    int64_t tile_bytes;

    int64_t mid_bytes() const { return slots << (config.log_n + 2); }
};

l2_plan plan_of(const wht_rows &r, const profile &device) {
    l2_plan l{};
    wht_l2_launch(r.x, r.y, r.log_n, &l.launch);
    l.config = wht_l2_config_of(r.x, r.log_n);
    const int64_t by_memory = device.smem_per_sm / (l.launch.smem_bytes + 1024);
    const int64_t blocks = std::clamp<int64_t>(by_memory, 1, l.launch.min_blocks_per_sm);
    l.resident = device.sms * blocks;
    l.lead = wht_l2_lead(l.config, r.rows, l.resident);
    if (l.config.x != l.config.mid) l.slots = wht_l2_slots(l.config, r.rows, l.resident);
    l.tile_bytes = int64_t{scalar_bytes(l.config.mid)} << l.config.log_tile;
    return l;
}

/// Tiles between the passes and those in work. A ring is in the cache as a whole.
int64_t cached_bytes(const l2_plan &l) {
    return std::max(l.lead * l.tile_bytes, l.mid_bytes()) + l.resident * l.tile_bytes;
}

verdict aligned(const char *what, scalar s, int align, int64_t rows, int64_t stride) {
    if (align < 16) return text(what, " is aligned to ", align, " bytes; needs 16");
    if (rows > 1 && !wht_aligned16(stride, s))
        return text("row stride ", stride, " of ", what, " is no multiple of 16 bytes");
    return "";
}

verdict length_rule(const wht_rows &r) {
    if (r.x != r.y)
        return text("x is ", scalar_name(r.x), ", y is ", scalar_name(r.y), "; needs one type");
    if (wht_l2_exists(r.x, r.log_n)) return "";
    int first = 0;
    while (!wht_l2_exists(r.x, first)) ++first;
    if (r.log_n < first) return text("n=", r.n, " is below ", int64_t{1} << first);
    int last = first;
    while (wht_l2_exists(r.x, last + 1)) ++last;
    return text("n=", r.n, " is over ", int64_t{1} << last);
}

} // namespace

verdict wht_cuda_l2_applicable(const problem &p, const profile &device) {
    wht_rows r;
    const verdict shared = wht_cuda_shared_rules(p, device, &r);
    if (!shared.empty()) return shared;
    const verdict length = length_rule(r);
    if (!length.empty()) return length;
    verdict places = aligned("x", r.x, r.x_align, r.rows, r.x_stride);
    if (places.empty()) places = aligned("y", r.y, r.y_align, r.rows, r.y_stride);
    if (!places.empty()) return places;
    const l2_plan l = plan_of(r, device);
    if (!wht_l2_rows_fit(l.config, r.rows)) return text(r.rows, " rows have too many tiles");
    if (l.launch.smem_bytes > device.smem_per_block)
        return text("a block needs ", l.launch.smem_bytes,
                    " bytes of shared memory; the device has ", device.smem_per_block);
    const int64_t cached = cached_bytes(l);
    if (static_cast<double>(cached) > wht_cost::l2_fill * static_cast<double>(device.l2_bytes))
        return text("rows of ", r.n, " take ", cached, " bytes of the L2 cache, which has ",
                    device.l2_bytes);
    return fits_memory(p, device, l.mid_bytes() + 4 * wht_l2_counters(r.rows));
}

cost wht_cuda_l2_estimate(const problem &p, const profile &device) {
    wht_rows r;
    wht_as_rows(p, &r);
    const l2_plan l = plan_of(r, device);
    const double tiles = static_cast<double>(r.rows << l.config.log_m);
    const double busy = std::min(1.0, tiles / device.sms);
    const bool half = wht_is_half(r.x);
    const double share = wht_cost::l2_pass_share(half, r.log_n + (r.x == scalar::f64 ? 3 : 2));
    const double rate = r.x == scalar::f64 ? device.f64_per_second : device.f32_per_second;
    cost sum;
    sum.memory_seconds =
        static_cast<double>(r.x_bytes() + r.y_bytes()) / (device.copy_bandwidth * share * busy);
    sum.compute_seconds = static_cast<double>(r.flops()) / (rate * wht_cost::additions * busy);
    sum.launch_seconds = 2 * device.launch_seconds;
    sum.seconds = std::max(sum.memory_seconds, sum.compute_seconds) + sum.launch_seconds +
                  wht_cost::l2_latency_seconds;
    return sum;
}

pipeline wht_cuda_l2_build(const problem &p, const profile &device) {
    wht_rows r;
    wht_as_rows(p, &r);
    const l2_plan l = plan_of(r, device);
    pipeline out;
    const int64_t counters = wht_l2_counters(r.rows);
    const int count = out.work.book("counters", 4 * counters, 0, 1);

    step reset;
    reset.kernel = "wht.l2_reset";
    reset.variant = "u32";
    reset.grid = std::min<int64_t>((counters - 1) / wht_l2_reset_threads + 1, device.sms);
    reset.block = wht_l2_reset_threads;
    reset.operands = {piece_operand(count, true)};
    wht_l2_reset_args zero{};
    zero.count = counters;
    reset.args = step_args(zero);
    reset.bytes_written = 4 * counters;
    out.steps.push_back(std::move(reset));

    step one;
    one.kernel = "wht.l2";
    one.variant = l.launch.variant;
    const int64_t tickets = r.rows << (l.config.log_m + 1);
    one.grid = std::min(tickets, l.resident);
    one.block = l.launch.threads;
    one.smem_bytes = l.launch.smem_bytes;
    one.operands = {role_operand(PLAIT_X, false), role_operand(PLAIT_Y, true),
                    piece_operand(count, true)};
    if (l.slots > 0)
        one.operands.push_back(piece_operand(out.work.book("mid", l.mid_bytes(), 1, 1), true));
    wht_l2_args args{};
    args.x_row_stride = r.x_stride;
    args.y_row_stride = r.y_stride;
    args.rows = static_cast<int32_t>(r.rows);
    args.slots = static_cast<int32_t>(l.slots);
    args.lead = static_cast<int32_t>(l.lead);
    args.scale = r.scale;
    one.args = step_args(args);
    one.bytes_read = r.x_bytes();
    one.bytes_written = r.y_bytes();
    one.flops = r.flops();
    out.steps.push_back(std::move(one));
    out.work.seal();
    return out;
}

} // namespace plait::impl
