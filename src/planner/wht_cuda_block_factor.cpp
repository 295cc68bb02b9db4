// wht.cuda.block_factor: rows of m 2^k elements, m = 12, 20, 28, 40, in one pass.
#include "lib/cuda/wht/block_factor_layout.h"
#include "src/core/text.h"
#include "src/planner/wht_candidates.h"
#include "src/planner/wht_cuda_cost.h"

#include <algorithm>

namespace plait::impl {

namespace {

struct factor_rows {
    wht_rows rows{};
    wht_factor factor = wht_factor::h1;
    int log_k = 0;
    wht_launch launch{};
};

/// Rows whose transformed axis has a factor.
verdict read(const problem &problem, factor_rows *out) {
    if (problem.empty) return "the problem is empty: there is nothing to run";
    if (const verdict only = wht_ref_only(problem); !only.empty()) return only;
    const wht_problem &p = problem.wht();
    if (p.signs) return "signs is in use";
    if (p.diag != scalar::none) return "diag is in use";
    if (p.overflow) return "overflow is in use";
    const wht_axis *line = nullptr, *batch = nullptr;
    for (int a = 0; a < p.axes; ++a) {
        if ((p.axis[a].transformed ? line : batch) != nullptr)
            return text(p.axes, " axes do not merge; needs one transformed and one other");
        (p.axis[a].transformed ? line : batch) = &p.axis[a];
    }
    if (!line || line->factor == wht_factor::h1) return "n has no factor matrix";
    if (line->x_stride != 1 || line->y_stride != 1)
        return text("the transformed axis has strides ", line->x_stride, " and ", line->y_stride,
                    "; needs 1");
    factor_rows f;
    wht_rows &r = f.rows;
    r.x = p.x;
    r.y = p.y;
    r.n = line->length;
    r.rows = batch ? batch->length : 1;
    r.x_stride = batch ? batch->x_stride : r.n;
    r.y_stride = batch ? batch->y_stride : r.n;
    r.x_align = p.x_align;
    r.y_align = p.y_align;
    r.scale = p.scale;
    f.factor = line->factor;
    while (int64_t{wht_factor_order(f.factor)} << f.log_k < r.n) ++f.log_k; // n < 2^62
    if (r.x_stride < r.n)
        return text("rows of x overlap: row stride ", r.x_stride, " is below n=", r.n);
    if (r.y != r.x) return text("y is ", scalar_name(r.y), "; needs ", scalar_name(r.x), " like x");
    if (!wht_block_factor_exists(r.x, f.factor, 0))
        return text("x is ", scalar_name(r.x), "; needs f16, bf16, f32 or f64");
    if (!wht_block_factor_launch(r.x, f.factor, p.adjoint, f.log_k, &f.launch))
        return text("n=", r.n, " is over ", wht_factor_order(f.factor), " times ",
                    1 << wht_block_factor_log_k);
    *out = f;
    return "";
}

bool aligned(int align, int bytes, int64_t stride, int64_t rows, scalar s) {
    return align >= bytes && (rows == 1 || stride * scalar_bytes(s) % bytes == 0);
}

} // namespace

verdict wht_cuda_block_factor_applicable(const problem &p, const profile &device) {
    if (device.backend != PLAIT_CUDA) return "the device is no CUDA device";
    factor_rows f;
    if (const verdict shape = read(p, &f); !shape.empty()) return shape;
    if (const verdict built = wht_cuda_built_for(device); !built.empty()) return built;
    if (wht_is_half(f.rows.x) && !device.runs_code_from(80))
        return "16-bit types need compute capability 8.0 and a build for it";
    if (f.launch.smem_bytes > device.smem_per_block)
        return text("n=", f.rows.n, " needs ", f.launch.smem_bytes,
                    " bytes of shared memory; a block has ", device.smem_per_block);
    return fits_memory(p, device, 0);
}

cost wht_cuda_block_factor_estimate(const problem &p, const profile &device) {
    factor_rows f;
    read(p, &f);
    const wht_rows &r = f.rows;
    const auto tiles = static_cast<double>((r.rows - 1) / f.launch.rows_per_tile + 1);
    const double busy = std::min(1.0, tiles / device.sms);
    const double rate = r.x == scalar::f64 ? device.f64_per_second : device.f32_per_second;
    const bool half = wht_is_half(r.x);
    const int stages = f.log_k + (half ? 0 : wht_factor_order(f.factor) / 2 + 1);
    const double additions = static_cast<double>(r.elements()) * stages;
    const double share = half ? wht_cost::block_factor_half : wht_cost::block_factor;
    cost sum;
    sum.memory_seconds =
        static_cast<double>(r.x_bytes() + r.y_bytes()) / (device.copy_bandwidth * share * busy);
    sum.compute_seconds = additions / (rate * wht_cost::additions * busy);
    sum.launch_seconds = device.launch_seconds;
    sum.seconds = std::max(sum.memory_seconds, sum.compute_seconds) + device.launch_seconds +
                  2 * wht_cost::block_latency_seconds;
    return sum;
}

pipeline wht_cuda_block_factor_build(const problem &problem, const profile &device) {
    factor_rows f;
    read(problem, &f);
    const wht_rows &r = f.rows;
    wht_block_factor_args args{};
    args.rows = r.rows;
    args.x_row_stride = r.x_stride;
    args.y_row_stride = r.y_stride;
    args.scale = r.scale;
    args.log_k = f.log_k;
    args.rows_per_tile = f.launch.rows_per_tile;
    args.blocks_per_sm = f.launch.min_blocks_per_sm;
    const int per_tile = f.launch.rows_per_tile;
    if (per_tile == 1 || r.x_stride == r.n) // a tile lies in a row
        args.lines = static_cast<int32_t>((per_tile * r.n * scalar_bytes(r.x) - 1) / 128 + 1);
    args.x_vector = f.log_k >= 3 && aligned(r.x_align, 16, r.x_stride, r.rows, r.x);
    args.y_vector =
        r.n * scalar_bytes(r.y) % 16 == 0 && aligned(r.y_align, 16, r.y_stride, r.rows, r.y);
    if (wht_is_half(r.x))
        for (int i = 0; i < wht_factor_order(f.factor); ++i)
            args.minus[i] = wht_block_factor_signs(f.factor, problem.wht().adjoint, i);
    step one;
    one.kernel = "wht.block_factor";
    one.variant = f.launch.variant;
    one.grid = wht_grid(f.launch, (r.rows - 1) / f.launch.rows_per_tile + 1, device.sms);
    one.block = f.launch.threads;
    one.smem_bytes = f.launch.smem_bytes;
    one.operands = {role_operand(PLAIT_X, false), role_operand(PLAIT_Y, true)};
    one.args = step_args(args);
    one.bytes_read = r.x_bytes();
    one.bytes_written = r.y_bytes();
    one.flops = r.elements() * (wht_factor_order(f.factor) / 2 + 1 + f.log_k);
    pipeline out;
    out.steps.push_back(std::move(one));
    out.work.seal();
    return out;
}

} // namespace plait::impl
