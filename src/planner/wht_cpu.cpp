// wht.cpu.simd and wht.cpu.ref.
#include "lib/common/factor_matrices.h"
#include "lib/cpu/wht/ref_args.h"
#include "lib/cpu/wht/simd_args.h"
#include "src/core/checked.h"
#include "src/core/tables.h"
#include "src/core/text.h"
#include "src/planner/wht_candidates.h"

#include <algorithm>
#include <cmath>

namespace plait::impl {

namespace {

/// Where the cost model's numbers come from: a 3 GHz core that retires two vector additions per
/// cycle; loads, stores and shuffles between them take half of that. wht.ref: one addition with its
/// load and store in float64, and one element through its address and type conversion.
constexpr double core_hertz = 3e9;
constexpr double simd_additions_per_cycle = 1.0; ///< vectors
constexpr double ref_addition_seconds = 1e-9;
constexpr double ref_element_seconds = 5e-9;
/// Cores that saturate the memory: one thread reaches this part of the machine's copy bandwidth.
constexpr int cores_of_bandwidth = 8;
/// Bytes that a transform in place moves for each byte of a copy, which fetches the lines that it
/// is going to overwrite.
constexpr double in_place_share = 2.0 / 3;
/// Of a pass after the first, in first passes: it finds the row in the last level of cache, or not.
constexpr double cached_pass = 0.3;
constexpr double later_pass = 0.5;
/// Part of the shorter of memory and arithmetic that the longer does not hide.
constexpr double not_hidden = 0.35;
/// A call without a team.
constexpr double call_seconds = 1e-7;
/// A barrier of a running team, in launches of a parallel region.
constexpr double barrier_share = 0.125;

double vector_bytes(const std::string &isa) {
    if (isa.rfind("AVX3", 0) == 0) return 64;
    if (isa.rfind("AVX2", 0) == 0 || isa.rfind("SVE_256", 0) == 0) return 32;
    if (isa == "SCALAR") return 4;
    return 16;
}

/// Reads and writes of memory of one row: wht.simd blocks for a core's cache, then takes up to
/// wht_simd_join_bits more bits in each pass.
double simd_passes(double row_bytes) {
    double passes = 1;
    for (double reach = static_cast<double>(cpu::wht_simd_l2_bytes); reach < row_bytes;
         reach *= static_cast<double>(int64_t{1} << cpu::wht_simd_join_bits))
        ++passes;
    return passes;
}

double bandwidth(const profile &device, double threads) {
    const double enough = std::clamp(device.cores, 1, cores_of_bandwidth);
    return device.copy_bandwidth * std::min(1.0, threads / enough);
}

int threads_of(const profile &device) { return std::max(1, device.threads); }

/// Of wht.simd.
int team_of(const wht_rows &r, const profile &device) {
    const int width = scalar_bytes(cpu::wht_simd_accumulator(r.x, r.y));
    const auto bytes = try_mul(r.elements(), width);
    return cpu::wht_simd_team(bytes.value_or(INT64_MAX), threads_of(device));
}

cost add_up(const profile &device, double threads, double barriers, double memory, double compute) {
    cost c;
    c.memory_seconds = memory;
    c.compute_seconds = compute;
    c.launch_seconds =
        threads > 1 ? device.launch_seconds * (1 + barriers * barrier_share) : call_seconds;
    c.seconds =
        c.launch_seconds + std::max(memory, compute) + not_hidden * std::min(memory, compute);
    return c;
}

int64_t product(const wht_problem &p, bool transformed) {
    int64_t n = 1;
    for (int a = 0; a < p.axes; ++a)
        if (p.axis[a].transformed == transformed) n *= p.axis[a].length;
    return n;
}

int64_t ref_flops(const wht_problem &p) {
    const int64_t elements = product(p, true) * product(p, false);
    int64_t per_element = p.scale != 1.0 ? 1 : 0;
    for (int a = 0; a < p.axes; ++a) {
        if (!p.axis[a].transformed) continue;
        const int m = cpu::wht_ref_order(p, p.axis[a]);
        per_element += m - 1;
        for (int64_t n = p.axis[a].length / m; n > 1; n /= 2) ++per_element;
    }
    if (p.diag_mid != scalar::none) per_element *= 2;
    for (const scalar diagonal : {p.diag, p.diag_in, p.diag_mid})
        if (diagonal != scalar::none) per_element += 1;
    if (p.amax != scalar::none || p.scales) per_element += 1;
    const bool complex = p.x == scalar::c64 || p.x == scalar::c128;
    return try_mul(elements, per_element * (complex ? 2 : 1)).value_or(INT64_MAX); // factors: many
}

} // namespace

verdict wht_cpu_simd_applicable(const problem &problem, const profile &device) {
    wht_rows r;
    const verdict shape = wht_as_rows(problem, &r);
    if (!shape.empty()) return shape;
    if (cpu::wht_simd_accumulator(r.x, r.y) == scalar::none)
        return text("x is ", scalar_name(r.x), " and y ", scalar_name(r.y),
                    "; there is no kernel for this pair");
    if (r.log_n > 32) return text("n=", r.n, " is over 2^32");
    return fits_memory(problem, device,
                       cpu::wht_simd_scratch_bytes(r.x, r.y, r.n, team_of(r, device)));
}

cost wht_cpu_simd_estimate(const problem &problem, const profile &device) {
    wht_rows r;
    wht_as_rows(problem, &r);
    const int width = scalar_bytes(cpu::wht_simd_accumulator(r.x, r.y));
    const double row_bytes = static_cast<double>(r.n) * width;
    const double rows = static_cast<double>(r.rows);
    const double threads = team_of(r, device);
    // Long rows are shared by the threads, short ones are not worth a barrier.
    const bool converts = cpu::wht_simd_converts(r.x, r.y);
    const double shared_from =
        static_cast<double>(converts ? 2 * cpu::wht_simd_l2_bytes : 8 * cpu::wht_simd_l1_bytes);
    const bool shares = threads > 1 && row_bytes >= shared_from;
    const double busy = shares ? threads : std::min(threads, rows);
    const double passes = simd_passes(row_bytes);
    const double together = converts ? rows : std::fmod(rows, threads); // rows that all share
    const double barriers = shares ? together * (passes + 1) : 0;

    double memory = static_cast<double>(r.x_bytes() + r.y_bytes()) / bandwidth(device, busy);
    if (r.alias) memory *= in_place_share;
    const bool cached = static_cast<double>(device.l3_bytes) > 2 * row_bytes;
    memory *= 1 + (cached ? cached_pass : later_pass) * (passes - 1);
    const double lanes = vector_bytes(device.isa) / width;
    const double compute =
        static_cast<double>(r.flops()) / (busy * lanes * simd_additions_per_cycle * core_hertz);
    return add_up(device, threads, barriers, memory, compute);
}

pipeline wht_cpu_simd_build(const problem &problem, const profile &device) {
    wht_rows r;
    wht_as_rows(problem, &r);
    pipeline out;
    step s;
    s.kernel = "wht.simd";
    s.block = team_of(r, device);
    operand scratch;
    const int64_t bytes = cpu::wht_simd_scratch_bytes(r.x, r.y, r.n, s.block);
    if (bytes > 0) scratch = piece_operand(out.work.book("scratch", bytes, 0, 0), true);
    s.operands = {role_operand(PLAIT_X, false), role_operand(PLAIT_Y, true), scratch};
    cpu::wht_simd_args args{};
    args.x_type = r.x;
    args.y_type = r.y;
    args.rows = r.rows;
    args.n = r.n;
    args.x_row_stride = r.x_stride;
    args.y_row_stride = r.y_stride;
    args.scale = r.scale;
    s.args = step_args(args);
    s.bytes_read = r.x_bytes();
    s.bytes_written = r.y_bytes();
    s.flops = r.flops();
    out.steps.push_back(std::move(s));
    out.work.seal();
    return out;
}

verdict wht_cpu_ref_applicable(const problem &problem, const profile &device) {
    if (problem.empty) return "the problem is empty: there is nothing to run";
    return fits_memory(problem, device,
                       cpu::wht_ref_scratch_bytes(problem.wht(), threads_of(device)));
}

cost wht_cpu_ref_estimate(const problem &problem, const profile &device) {
    const wht_problem &p = problem.wht();
    const double elements = static_cast<double>(product(p, true) * product(p, false));
    const bool chosen = p.rows_type != scalar::none;
    const double rows = static_cast<double>(p.rows) * static_cast<double>(product(p, false));
    const double read = chosen && p.adjoint ? rows : elements;
    const double written = chosen && !p.adjoint ? rows : elements;
    const double threads = threads_of(device);
    // A transform beyond a core's cache is read and written again by every stage.
    const bool shares = cpu::wht_ref_shares_transform(p, threads_of(device));
    const double stages = static_cast<double>(ref_flops(p)) / std::max(elements, 1.0);
    const bool sweeps = static_cast<double>(cpu::wht_ref_slice_bytes(p)) >
                        static_cast<double>(device.l2_core_bytes);
    const double bytes = read * scalar_bits(p.x) / 8.0 + written * scalar_bytes(p.y) +
                         (sweeps ? elements * 16 * stages : 0);
    const double busy =
        shares ? threads : std::clamp(static_cast<double>(product(p, false)), 1.0, threads);
    const double barriers = shares ? static_cast<double>(product(p, false)) * (stages + 2) : 0;
    const double compute = ((read + written) / 2 * ref_element_seconds +
                            static_cast<double>(ref_flops(p)) * ref_addition_seconds) /
                           busy;
    return add_up(device, threads, barriers, bytes / bandwidth(device, busy), compute);
}

pipeline wht_cpu_ref_build(const problem &problem, const profile &device) {
    const wht_problem &p = problem.wht();
    pipeline out;
    step s;
    s.kernel = "wht.ref";
    s.block = threads_of(device);
    // Transforms of nothing need none, and a piece of nothing is no piece.
    const int64_t bytes = std::max<int64_t>(cpu::wht_ref_scratch_bytes(p, s.block), 64);
    const int scratch = out.work.book("scratch", bytes, 0, 0);
    s.operands = {role_operand(PLAIT_X, false),
                  p.stores ? role_operand(PLAIT_Y, true) : operand{},
                  p.signs ? role_operand(PLAIT_SIGNS, false) : operand{},
                  p.diag != scalar::none ? role_operand(PLAIT_DIAG, false) : operand{},
                  p.overflow ? role_operand(PLAIT_OVERFLOW, true) : operand{},
                  piece_operand(scratch, true)};
    const auto optional = [&](plait_role role) {
        const tensor *t = problem.find(role);
        const bool written = t && (t->access & PLAIT_WRITE);
        s.operands.push_back(t ? role_operand(role, written) : operand{});
    };
    for (const plait_role role : {PLAIT_FACTOR, PLAIT_ROWS, PLAIT_DIAG_IN, PLAIT_DIAG_MID,
                                  PLAIT_AMAX, PLAIT_SCALES, PLAIT_HISTOGRAM, PLAIT_STATUS})
        optional(role);
    while (s.operands.back().from == operand::source::none) s.operands.pop_back();
    cpu::wht_ref_args args{};
    args.problem = p;
    s.args = step_args(args);
    // The tensors, each once: what passes through the scratch stays in the caches.
    for (const tensor &t : problem.tensors) {
        int64_t bits = dtype_of(t.dtype).bits;
        for (size_t a = 0; a < t.extents.size(); ++a)
            if (t.strides[a] != 0 || t.extents[a] == 0) bits *= t.extents[a];
        ((t.access & PLAIT_WRITE) ? s.bytes_written : s.bytes_read) += (bits + 7) / 8;
    }
    s.flops = ref_flops(p);
    out.steps.push_back(std::move(s));
    out.work.seal();
    return out;
}

} // namespace plait::impl
