// wht.cuda.mma16_narrow: rows of bits or bytes in one pass, the first factors on tensor cores: as
// i32, or only their largest magnitudes (AMAX) and counts (HISTOGRAM).
#include "lib/cuda/wht/mma16_narrow_layout.h"
#include "src/core/text.h"
#include "src/planner/wht_candidates.h"
#include "src/planner/wht_cuda_cost.h"

#include <algorithm>

namespace plait::impl {

namespace {

/// Instructions of an element, and more where it is counted: an estimate.
constexpr double instructions = 14, counted_instructions = 16;

struct narrow_rows {
    wht_rows rows; ///< as of i32
    wht_launch launch{};
    wht_mma16_narrow_args args{};
    int64_t read = 0, written = 0; ///< bytes
};

verdict as_narrow_rows(const problem &problem, narrow_rows *out) {
    const wht_problem &p = problem.wht();
    if (p.x != scalar::b1 && p.x != scalar::i8)
        return text("x is ", scalar_name(p.x), "; needs b1 or i8");
    if (p.y != scalar::i32 && (p.stores || p.y != scalar::i64))
        return text("y is ", scalar_name(p.y), "; needs i32");
    if (p.groups != 1) return text("there are ", p.groups, " groups of amax in a row; needs one");
    // The rows as they would be in the type of their sums.
    impl::problem plain = problem;
    wht_problem &q = std::get<wht_problem>(plain.form);
    q.x = q.y = scalar::i32;
    q.amax = scalar::none;
    q.bins = 0;
    q.stores = true;
    for (int a = 0; a < q.axes && !p.stores; ++a) q.axis[a].y_stride = q.axis[a].x_stride;
    wht_rows &r = out->rows;
    if (const verdict shape = wht_as_rows(plain, &r); !shape.empty()) return shape;
    const int64_t bins = p.bins;
    if (!wht_mma16_narrow_launch(p.x, r.log_n, bins, &out->launch))
        return text("n=", r.n, "; needs 128 to 32768");
    const int access = p.x == scalar::b1 ? 1 : wht_mma16_narrow_access;
    if (r.x_align < access) return text("x is aligned to ", r.x_align, " bytes; needs ", access);
    if (r.rows > 1 && r.x_stride % wht_mma16_narrow_access != 0)
        return text("row stride ", r.x_stride, " of x is no multiple of ", wht_mma16_narrow_access);
    if (p.stores && !wht_vector_side(r.y_align, r.y_stride, r.rows, scalar::i32))
        return "y needs 16-byte alignment, of its rows too";
    if (bins * out->launch.rows_per_tile > wht_mma16_narrow_counters)
        return text("a block has ", bins * out->launch.rows_per_tile, " bins; at most ",
                    wht_mma16_narrow_counters);
    constexpr int64_t reach = wht_mma16_narrow_reach;
    if (bins > 0 && (p.first_bin < -reach || p.first_bin > reach || p.bin_width > reach))
        return text("bins begin at ", p.first_bin, " and are ", p.bin_width,
                    " wide; needs at most ", reach, " of both");

    wht_mma16_narrow_args &a = out->args;
    a.rows = r.rows;
    a.x_row_stride = r.x_stride;
    a.y_row_stride = r.y_stride;
    a.amax_type = p.amax;
    for (int i = 0; i < p.axes; ++i)
        if (!p.axis[i].transformed) {
            a.amax_stride = p.axis[i].amax_stride;
            a.histogram_stride[0] = p.axis[i].histogram_stride;
        }
    a.histogram_stride[1] = p.bin_stride;
    a.bins = static_cast<int32_t>(bins);
    a.first_bin = static_cast<int32_t>(bins > 0 ? p.first_bin : 0);
    a.bin_width = static_cast<uint32_t>(bins > 0 ? p.bin_width : 1);
    a.bins_end = static_cast<uint32_t>(std::min(bins * int64_t{a.bin_width}, int64_t{1} << 30));
    a.bin_shift = -1;
    for (int s = 0; s < 24; ++s)
        if (a.bin_width == 1u << s) a.bin_shift = s;
    out->read = (r.elements() * (p.x == scalar::b1 ? 1 : 8) + 7) / 8;
    out->written =
        (p.stores ? r.elements() * 4 : 0) + r.rows * (scalar_bytes(p.amax) + int64_t{a.bins} * 8);
    return "";
}

} // namespace

verdict wht_cuda_mma16_narrow_applicable(const problem &p, const profile &device) {
    if (device.backend != PLAIT_CUDA) return "the device is no CUDA device";
    if (p.empty) return "the problem is empty: there is nothing to run";
    narrow_rows n;
    if (const verdict why = as_narrow_rows(p, &n); !why.empty()) return why;
    if (const verdict built = wht_cuda_built_for(device); !built.empty()) return built;
    if (!device.runs_code_from(80)) return "needs compute capability 8.0 and a build for it";
    if (n.launch.smem_bytes > device.smem_per_block)
        return text("n=", n.rows.n, " needs ", n.launch.smem_bytes,
                    " bytes of shared memory; a block has ", device.smem_per_block);
    return fits_memory(p, device, 0);
}

cost wht_cuda_mma16_narrow_estimate(const problem &p, const profile &device) {
    narrow_rows n;
    as_narrow_rows(p, &n);
    const wht_rows &r = n.rows;
    const auto tiles = static_cast<double>((r.rows - 1) / n.launch.rows_per_tile + 1);
    const double busy = wht_cost::busy_memory(tiles, device.sms);
    const double each = instructions + (p.wht().bins > 0 ? counted_instructions : 0);
    cost sum;
    sum.memory_seconds = static_cast<double>(n.read + n.written) /
                         (device.copy_bandwidth * wht_cost::mma16_share(r.log_n, true) * busy);
    sum.compute_seconds = static_cast<double>(r.elements()) * each / (device.f32_per_second * busy);
    sum.launch_seconds = device.launch_seconds;
    sum.seconds = std::max(sum.memory_seconds, sum.compute_seconds) + device.launch_seconds +
                  wht_cost::start_seconds(static_cast<double>(n.read + n.written));
    return sum;
}

pipeline wht_cuda_mma16_narrow_build(const problem &problem, const profile &device) {
    const wht_problem &p = problem.wht();
    narrow_rows n;
    as_narrow_rows(problem, &n);
    step s;
    s.kernel = "wht.mma16_narrow";
    s.variant = n.launch.variant;
    s.grid = wht_mma16_grid(n.launch, n.rows.rows, device.sms);
    s.block = n.launch.threads;
    s.smem_bytes = n.launch.smem_bytes;
    s.operands = {role_operand(PLAIT_X, false), p.stores ? role_operand(PLAIT_Y, true) : operand{},
                  p.amax != scalar::none ? role_operand(PLAIT_AMAX, true) : operand{},
                  p.bins > 0 ? role_operand(PLAIT_HISTOGRAM, true) : operand{}};
    s.args = step_args(n.args);
    s.bytes_read = n.read;
    s.bytes_written = n.written;
    s.flops = n.rows.flops();
    pipeline out;
    out.steps.push_back(std::move(s));
    out.work.seal();
    return out;
}

} // namespace plait::impl
