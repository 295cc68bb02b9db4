// wht.cuda.cluster: rows that a cluster of blocks holds, in one pass over the memory.
#include "lib/cuda/wht/cluster_layout.h"
#include "src/core/text.h"
#include "src/planner/wht_cuda_cost.h"
#include "src/planner/wht_cuda_passes.h"

#include <algorithm>
#include <cmath>

namespace plait::impl {

namespace {

/// log2 of the lengths that are compiled, first to last.
void lengths(scalar x, int *first, int *last) {
    *first = 0;
    while (!wht_cluster_exists(x, *first)) ++*first;
    *last = *first;
    while (wht_cluster_exists(x, *last + 1)) ++*last;
}

verdict aligned(const char *what, scalar s, int align, int64_t rows, int64_t stride) {
    if (align < 16) return text(what, " is aligned to ", align, " bytes; needs 16");
    if (rows > 1 && !wht_aligned16(stride, s))
        return text("row stride ", stride, " of ", what, " is no multiple of 16 bytes");
    return "";
}

/// Clusters need compute capability 9.0; more than 8 blocks are known to work on 9.x and 10.x.
verdict clusters_of(const profile &device, int blocks) {
    if (device.cc_major < 9)
        return text("clusters need compute capability 9.0; the device is ", device.cc_major, '.',
                    device.cc_minor);
    // Code for older devices has an empty body here.
    if (!device.runs_code_from(90)) return "clusters need a build for compute capability 9.0";
    if (blocks > 8 && device.cc_major > 10)
        return text("needs clusters of ", blocks, " blocks; compute capability ", device.cc_major,
                    '.', device.cc_minor, " has 8");
    return "";
}

} // namespace

verdict wht_cuda_cluster_applicable(const problem &p, const profile &device) {
    wht_rows r;
    const verdict shared = wht_cuda_shared_rules(p, device, &r);
    if (!shared.empty()) return shared;
    if (r.x != r.y)
        return text("x is ", scalar_name(r.x), ", y is ", scalar_name(r.y), "; needs one type");
    int first = 0, last = 0;
    lengths(r.x, &first, &last);
    if (r.log_n < first) return text("n=", r.n, " is below ", int64_t{1} << first);
    if (r.log_n > last) return text("n=", r.n, " is over ", int64_t{1} << last);
    wht_launch l;
    wht_cluster_launch(r.x, r.log_n, &l);
    const verdict clusters = clusters_of(device, l.cluster);
    if (!clusters.empty()) return clusters;
    if (l.smem_bytes > device.smem_per_block || l.threads > device.threads_per_sm)
        return text("a block needs ", l.smem_bytes, " bytes of shared memory; the device has ",
                    device.smem_per_block);
    verdict rows = aligned("x", r.x, r.x_align, r.rows, r.x_stride);
    if (rows.empty()) rows = aligned("y", r.y, r.y_align, r.rows, r.y_stride);
    return rows.empty() ? fits_memory(p, device, 0) : rows;
}

cost wht_cuda_cluster_estimate(const problem &p, const profile &device) {
    wht_rows r;
    wht_as_rows(p, &r);
    wht_launch l;
    wht_cluster_launch(r.x, r.log_n, &l);
    const double blocks = static_cast<double>(r.rows) * l.cluster;
    // Clusters that have their SMs to themselves work in rounds. Not every SM can be in one: 7 of
    // 16 blocks and 15 of 8 are at work on the 132 SMs of an H200.
    const double clusters = std::max(1.0, std::floor(0.9 * device.sms / l.cluster));
    const double rounds = std::ceil(static_cast<double>(r.rows) / clusters);
    const double busy = l.persistent ? static_cast<double>(r.rows) / (rounds * clusters)
                                     : std::min(1.0, blocks / device.sms);
    const double share = wht_cost::cluster_share(r.x, r.log_n);
    const double rate = r.x == scalar::f64 ? device.f64_per_second : device.f32_per_second;
    cost sum;
    sum.memory_seconds =
        static_cast<double>(r.x_bytes() + r.y_bytes()) / (device.copy_bandwidth * share * busy);
    sum.compute_seconds = static_cast<double>(r.flops()) / (rate * wht_cost::additions * busy);
    sum.launch_seconds = device.launch_seconds;
    sum.seconds = std::max(sum.memory_seconds, sum.compute_seconds) + device.launch_seconds +
                  wht_cost::cluster_latency_seconds;
    return sum;
}

pipeline wht_cuda_cluster_build(const problem &p, const profile &) {
    wht_rows r;
    wht_as_rows(p, &r);
    wht_launch l;
    wht_cluster_launch(r.x, r.log_n, &l);
    step one;
    one.kernel = "wht.cluster";
    one.variant = l.variant;
    one.grid = wht_cluster_grid(l, r.rows);
    one.block = l.threads;
    one.smem_bytes = l.smem_bytes;
    one.cluster = l.cluster;
    one.resident = l.persistent;
    one.operands = {role_operand(PLAIT_X, false), role_operand(PLAIT_Y, true)};
    wht_cluster_args args{};
    args.rows = r.rows;
    args.x_row_stride = r.x_stride;
    args.y_row_stride = r.y_stride;
    args.scale = r.scale;
    one.args = step_args(args);
    one.bytes_read = r.x_bytes();
    one.bytes_written = r.y_bytes();
    one.flops = r.flops();
    pipeline out;
    out.steps.push_back(std::move(one));
    out.work.seal();
    return out;
}

} // namespace plait::impl
