// wht.cuda.kron_*: one pass, a row as two matrix products on tensor cores. Taken by name or where
// measured: on no known device do they beat wht.cuda.block.
#include "lib/cuda/wht/kron_int8_layout.h"
#include "lib/cuda/wht/kron_tf32_layout.h"
#include "src/core/text.h"
#include "src/planner/wht_candidates.h"
#include "src/planner/wht_cuda_cost.h"

#include <algorithm>

namespace plait::impl {

namespace {

verdict aligned(const char *what, scalar s, int align, int64_t rows, int64_t stride) {
    if (align < 16) return text(what, " is aligned to ", align, " bytes; needs 16");
    if (rows > 1 && stride * scalar_bytes(s) % 16 != 0)
        return text("row stride ", stride, " of ", what, " is no multiple of 16 bytes");
    return "";
}

/// What a block of the kernel asks of device and rows.
verdict device_rules(const problem &p, const profile &device, const wht_rows &r,
                     const wht_launch &l) {
    if (!device.runs_code_from(80)) return "needs compute capability 8.0 and a build for it";
    if (l.smem_bytes > device.smem_per_block)
        return text("n=", r.n, " needs ", l.smem_bytes, " bytes of shared memory; a block has ",
                    device.smem_per_block);
    verdict rows = aligned("x", r.x, r.x_align, r.rows, r.x_stride);
    if (rows.empty()) rows = aligned("y", r.y, r.y_align, r.rows, r.y_stride);
    return rows.empty() ? fits_memory(p, device, 0) : rows;
}

cost cost_of(const wht_rows &r, const profile &device, const wht_launch &l, double share,
             double operations) {
    const auto tiles = static_cast<double>((r.rows - 1) / l.rows_per_tile + 1);
    // Blocks run on SMs: a device with idle SMs moves and adds less.
    const double busy = std::min(1.0, tiles / device.sms);
    cost sum;
    sum.memory_seconds =
        static_cast<double>(r.x_bytes() + r.y_bytes()) / (device.copy_bandwidth * share * busy);
    sum.compute_seconds =
        static_cast<double>(r.elements()) * operations / (device.f32_per_second * busy);
    sum.launch_seconds = device.launch_seconds;
    sum.seconds = std::max(sum.memory_seconds, sum.compute_seconds) + device.launch_seconds +
                  wht_cost::block_latency_seconds;
    return sum;
}

template <class Args>
pipeline build_of(const wht_rows &r, const profile &device, const wht_launch &l, const char *kernel,
                  Args args) {
    args.rows = r.rows;
    args.x_row_stride = r.x_stride;
    args.y_row_stride = r.y_stride;
    args.scale = r.scale;
    step one;
    one.kernel = kernel;
    one.variant = l.variant;
    one.grid = wht_grid(l, (r.rows - 1) / l.rows_per_tile + 1, device.sms);
    one.block = l.threads;
    one.smem_bytes = l.smem_bytes;
    one.operands = {role_operand(PLAIT_X, false), role_operand(PLAIT_Y, true)};
    one.args = step_args(args);
    one.bytes_read = r.x_bytes();
    one.bytes_written = r.y_bytes();
    one.flops = r.flops();
    pipeline out;
    out.steps.push_back(std::move(one));
    out.work.seal();
    return out;
}

// ---- TF32 ------------------------------------------------------------------------------------

verdict tf32_applicable(const problem &p, const profile &device, int terms) {
    wht_rows r;
    const verdict shared = wht_cuda_shared_rules(p, device, &r);
    if (!shared.empty()) return shared;
    if (r.x != scalar::f32) return text("x is ", scalar_name(r.x), "; needs f32");
    if (r.y != scalar::f32) return text("y is ", scalar_name(r.y), "; needs f32");
    wht_launch l{};
    if (!wht_kron_tf32_launch(r.x, r.y, r.log_n, terms, &l))
        return text("n=", r.n, "; needs 512 to 16384");
    return device_rules(p, device, r, l);
}

cost tf32_estimate(const problem &p, const profile &device, int terms) {
    wht_rows r;
    wht_as_rows(p, &r);
    wht_launch l{};
    wht_kron_tf32_launch(r.x, r.y, r.log_n, terms, &l);
    return cost_of(r, device, l, terms == 1 ? wht_cost::kron_tf32 : wht_cost::kron_3xtf32, 0);
}

pipeline tf32_build(const problem &p, const profile &device, int terms) {
    wht_rows r;
    wht_as_rows(p, &r);
    wht_launch l{};
    wht_kron_tf32_launch(r.x, r.y, r.log_n, terms, &l);
    return build_of(r, device, l, "wht.kron_tf32", wht_kron_tf32_args{});
}

// ---- Residues --------------------------------------------------------------------------------

/// The fewest moduli that tell all sums of n numbers up to `bound` apart; 0 when even `most` do
/// not.
int moduli_for(int64_t n, int64_t bound, int most) {
    for (int count = 1; count <= most; ++count)
        if (bound <= wht_kron_reach(count) / n) return count;
    return 0;
}

} // namespace

verdict wht_cuda_kron_tf32_applicable(const problem &p, const profile &d) {
    return tf32_applicable(p, d, 1);
}
cost wht_cuda_kron_tf32_estimate(const problem &p, const profile &d) {
    return tf32_estimate(p, d, 1);
}
pipeline wht_cuda_kron_tf32_build(const problem &p, const profile &d) {
    return tf32_build(p, d, 1);
}

verdict wht_cuda_kron_3xtf32_applicable(const problem &p, const profile &d) {
    return tf32_applicable(p, d, 3);
}
cost wht_cuda_kron_3xtf32_estimate(const problem &p, const profile &d) {
    return tf32_estimate(p, d, 3);
}
pipeline wht_cuda_kron_3xtf32_build(const problem &p, const profile &d) {
    return tf32_build(p, d, 3);
}

verdict wht_cuda_kron_int8_applicable(const problem &p, const profile &device) {
    if (device.backend != PLAIT_CUDA) return "the device is no CUDA device";
    wht_rows r;
    const verdict shape = wht_as_rows(p, &r);
    if (!shape.empty()) return shape;
    if (r.x != scalar::i32 && r.x != scalar::f32 && r.x != scalar::f64)
        return text("x is ", scalar_name(r.x), "; needs i32, f32 or f64");
    if (r.y != r.x) return text("y is ", scalar_name(r.y), "; needs ", scalar_name(r.x), " like x");
    wht_launch l{};
    if (!wht_kron_int8_launch(r.x, r.y, r.log_n, &l))
        return text("n=", r.n, "; needs 1024 to 16384");
    const int64_t bound = p.wht().bound;
    if (bound == 0) return "there is no bound; needs the promise of whole numbers up to a bound";
    const int most = wht_kron_moduli_of(r.x);
    if (moduli_for(r.n, bound, most) == 0)
        return text("bound=", bound, " is over ", wht_kron_reach(most) / r.n,
                    ", the most for n=", r.n, " and the ", most, " moduli of ", scalar_name(r.x));
    return device_rules(p, device, r, l);
}

cost wht_cuda_kron_int8_estimate(const problem &p, const profile &device) {
    wht_rows r;
    wht_as_rows(p, &r);
    wht_launch l{};
    wht_kron_int8_launch(r.x, r.y, r.log_n, &l);
    const int moduli = moduli_for(r.n, p.wht().bound, wht_kron_moduli_of(r.x));
    return cost_of(r, device, l, 1.0, wht_cost::kron_int8_operations * moduli);
}

pipeline wht_cuda_kron_int8_build(const problem &p, const profile &device) {
    wht_rows r;
    wht_as_rows(p, &r);
    wht_launch l{};
    wht_kron_int8_launch(r.x, r.y, r.log_n, &l);
    wht_kron_int8_args args{};
    args.moduli = moduli_for(r.n, p.wht().bound, wht_kron_moduli_of(r.x));
    args.whole = wht_kron_whole(args.moduli);
    return build_of(r, device, l, "wht.kron_int8", args);
}

} // namespace plait::impl
