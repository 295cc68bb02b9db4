// wht.cpu.lines: every layout, type, order and fusion, as passes of wht.lines.
#include "src/planner/cpu_cost.h"
#include "src/planner/wht_lines.h"

#include <algorithm>
#include <cmath>

namespace plait::impl {

namespace {

/// Vectors that a core adds, with their loads, stores and exchanges, in a cycle.
constexpr double vectors_per_cycle = 0.8;
/// Cycles of a vector on its way into the tile and out of it.
constexpr double move_cycles = 2;
/// Cycles of an element that passes through alone: order along contiguous memory, DIAG, SIGNS.
constexpr double element_cycles = 1.5;
/// A pass beside the opening of its parallel region.
constexpr double pass_seconds = 3e-7;
/// Bytes that a pass in place moves for each byte of a copy, which fetches the lines that it is
/// going to overwrite.
constexpr double in_place_share = 2.0 / 3;
/// Lines on pages of their own, in lines that follow one another.
constexpr double scattered = 2.5;

int64_t tiles_of(const cpu::wht_lines_args &a) {
    int64_t n = 1;
    for (int i = 0; i < a.outer_axes; ++i) n *= a.outer[i].length;
    return n;
}

/// Whether a tile reaches much further in memory than it is large.
bool is_scattered(const cpu::wht_lines_args &a) {
    double reach = 1;
    for (int i = 0; i < a.tile_axes; ++i)
        reach +=
            static_cast<double>(a.tile[i].length - 1) * static_cast<double>(a.tile[i].y_stride);
    return reach > 4 * static_cast<double>(a.tile_size);
}

struct pass_bytes {
    int64_t read, written;
};

/// The tensors, each once.
pass_bytes bytes_of(const wht_problem &p, const wht_lines_plan &plan, const wht_lines_pass &pass) {
    const auto touched = [&](int64_t wht_axis::*stride, int64_t bits) {
        int64_t n = 1;
        for (int a = 0; a < p.axes; ++a)
            if (p.axis[a].*stride != 0) n *= p.axis[a].length;
        return (n * bits + 7) / 8;
    };
    pass_bytes b{plan.elements * scalar_bytes(pass.args.x_type),
                 plan.elements * scalar_bytes(pass.args.y_type)};
    if (p.overflow) b.written += 4;
    if (plan.elements == 0) return b;
    if (pass.first) b.read = touched(&wht_axis::x_stride, scalar_bits(p.x));
    if (p.signs && (pass.args.signs_first ? pass.first : pass.last))
        b.read += touched(&wht_axis::signs_stride, 1);
    if (p.diag != scalar::none && (pass.args.diag_first ? pass.first : pass.last))
        b.read += touched(&wht_axis::diag_stride, scalar_bits(p.diag));
    return b;
}

bool in_place(const wht_problem &p, const wht_lines_plan &plan, const wht_lines_pass &pass) {
    if (plan.between_bytes > 0) return !pass.first && !pass.last;
    return pass.first ? p.alias : true;
}

int64_t flops_of(const wht_problem &p, const wht_lines_plan &plan, const wht_lines_pass &pass) {
    double each = pass.additions + (pass.last && p.scale != 1 ? 1 : 0);
    if (p.diag != scalar::none && (pass.args.diag_first ? pass.first : pass.last)) each += 1;
    return static_cast<int64_t>(each * static_cast<double>(plan.elements) * pass.args.parts);
}

} // namespace

verdict wht_cpu_lines_applicable(const problem &problem, const profile &device) {
    if (const verdict only = wht_ref_only(problem); !only.empty()) return only;
    wht_lines_plan plan;
    const verdict why = wht_as_lines(problem, cpu_threads(device), &plan);
    if (!why.empty()) return why;
    return fits_memory(problem, device, plan.scratch_bytes + plan.between_bytes);
}

cost wht_cpu_lines_estimate(const problem &problem, const profile &device) {
    wht_lines_plan plan;
    wht_as_lines(problem, cpu_threads(device), &plan);
    const wht_problem &p = problem.wht();
    cost total;
    for (const wht_lines_pass &pass : plan.passes) {
        const cpu::wht_lines_args &a = pass.args;
        const double tiles = static_cast<double>(tiles_of(a));
        const double busy = tiles / std::ceil(tiles / plan.team); // the last round is not full
        const pass_bytes bytes = bytes_of(p, plan, pass);
        double memory = cpu_traffic_seconds(device, bytes.read + bytes.written, busy);
        if (in_place(p, plan, pass)) memory *= in_place_share;
        if (is_scattered(a)) memory *= scattered;
        const double lanes = cpu_vector_bytes(device.isa) / scalar_bytes(plan.arithmetic);
        const double numbers = static_cast<double>(plan.elements) * a.parts;
        double cycles = (pass.additions / vectors_per_cycle + move_cycles) / lanes;
        const bool ordered = p.order != wht_order::natural && a.tile_axes > 0 &&
                             a.tile[0].kind == cpu::wht_lines_kind::bits;
        if (ordered) cycles += element_cycles;
        if (p.signs || p.diag != scalar::none) cycles += element_cycles / lanes;
        const cost c =
            cpu_cost(device, plan.team, memory, numbers * cycles / (busy * cpu_core_hertz));
        total.memory_seconds += c.memory_seconds;
        total.compute_seconds += c.compute_seconds;
        total.launch_seconds += c.launch_seconds + pass_seconds;
        total.seconds += c.seconds + pass_seconds;
    }
    return total;
}

pipeline wht_cpu_lines_build(const problem &problem, const profile &device) {
    wht_lines_plan plan;
    wht_as_lines(problem, cpu_threads(device), &plan);
    const wht_problem &p = problem.wht();
    pipeline out;
    const int last = static_cast<int>(plan.passes.size()) - 1;
    const int tiles = out.work.book("tiles", plan.scratch_bytes, 0, last);
    const int between =
        plan.between_bytes > 0 ? out.work.book("between", plan.between_bytes, 0, last) : -1;
    const auto middle = [&](bool written) {
        return between < 0 ? role_operand(PLAIT_Y, written) : piece_operand(between, written);
    };
    for (const wht_lines_pass &pass : plan.passes) {
        step s;
        s.kernel = "wht.lines";
        s.block = plan.team;
        const bool signs = p.signs && (pass.args.signs_first ? pass.first : pass.last);
        const bool diag = p.diag != scalar::none && (pass.args.diag_first ? pass.first : pass.last);
        s.operands = {pass.first ? role_operand(PLAIT_X, false) : middle(false),
                      pass.last ? role_operand(PLAIT_Y, true) : middle(true),
                      signs ? role_operand(PLAIT_SIGNS, false) : operand{},
                      diag ? role_operand(PLAIT_DIAG, false) : operand{},
                      p.overflow ? role_operand(PLAIT_OVERFLOW, true) : operand{},
                      piece_operand(tiles, true)};
        s.args = step_args(pass.args);
        const pass_bytes bytes = bytes_of(p, plan, pass);
        s.bytes_read = bytes.read;
        s.bytes_written = bytes.written;
        s.flops = flops_of(p, plan, pass);
        out.steps.push_back(std::move(s));
    }
    out.work.seal();
    return out;
}

} // namespace plait::impl
