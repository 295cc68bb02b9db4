// wht.cuda.columns: packed tensors whose transformed bits stand anywhere in the index: strided
// axes, several axes, bit masks; complex numbers are pairs of real columns. Runs of bits that have
// whole tiles of columns below them are passes of wht.columns_*, in place in Y; what lies lower is
// taken by one pass before: wht.block where that is rows, else wht.any.
#include "lib/cuda/wht/block_layout.h"
#include "lib/cuda/wht/columns_shuffle_layout.h"
#include "lib/cuda/wht/columns_tiled_layout.h"
#include "src/core/text.h"
#include "src/planner/wht_cuda_any.h"
#include "src/planner/wht_cuda_cost.h"

#include <algorithm>

namespace plait::impl {

namespace {

constexpr int longest_columns = 12;
constexpr int longest_row = 12; // of wht.block, before columns
constexpr int low_bits = 12;    // taken by wht.any where columns would be too short
constexpr int64_t most_elements = int64_t{1} << 46;

int log2_of(int64_t power) {
    int b = 0;
    while (int64_t{1} << b < power) ++b;
    return b;
}

/// Index bits low..low + count-1 of a batch entry.
struct bit_run {
    int low, count;
};

enum class first_pass { none, block, any };

struct columns_plan {
    std::string refusal;
    scalar real = scalar::none; ///< type of the columns
    int log_parts = 0;          ///< real numbers of an element
    int64_t batch = 1;          ///< entries, each packed
    int64_t x_batch = 0, y_batch = 0;
    int64_t packed = 1; ///< elements of an entry
    first_pass first = first_pass::none;
    int log_row = 0;           ///< first == block
    wht_any_plan low;          ///< first == any
    wht_problem low_problem{}; ///< what it was made for
    std::vector<bit_run> passes;
    bool vector[2] = {}; ///< 16-byte accesses to X, to Y

    int64_t elements() const { return batch * packed; }
    int64_t reals() const { return elements() << log_parts; }
};

/// The axes as batch and packed index; the transformed bits as runs, lowest first.
std::vector<bit_run> read_axes(const wht_problem &p, columns_plan &plan) {
    std::vector<bit_run> runs;
    for (int a = p.axes - 1; a >= 0; --a) {
        const wht_axis &ax = p.axis[a];
        if (ax.factor != wht_factor::h1) {
            plan.refusal = text("n=", ax.length, " has a factor matrix; needs a power of two");
            return runs;
        }
        if (ax.x_stride != plan.packed || ax.y_stride != plan.packed) {
            if (a > 0 || ax.transformed) {
                plan.refusal =
                    text("the axis of ", ax.length, " has strides ", ax.x_stride, " and ",
                         ax.y_stride, "; needs ", plan.packed, ", what is inside");
                return runs;
            }
            plan.batch = ax.length;
            plan.x_batch = ax.x_stride;
            plan.y_batch = ax.y_stride;
            continue;
        }
        if (ax.transformed) {
            if ((plan.packed & (plan.packed - 1)) != 0) {
                plan.refusal = text("the axis of ", ax.length, " stands before ", plan.packed,
                                    " elements, which is no power of two");
                return runs;
            }
            runs.push_back({log2_of(plan.packed), log2_of(ax.length)});
        }
        if (plan.packed > most_elements / ax.length) {
            plan.refusal = text("it has more than ", most_elements, " elements");
            return runs;
        }
        plan.packed *= ax.length;
    }
    if (plan.batch == 1) plan.x_batch = plan.y_batch = plan.packed;
    return runs;
}

/// As few passes as there can be and `more`, of about the same length.
void cut(bit_run run, int more, std::vector<bit_run> &out) {
    const int fewest = (run.count + longest_columns - 1) / longest_columns;
    for (int left = std::min(fewest + more, run.count); left > 0; --left) {
        const int count = (run.count + left - 1) / left;
        out.push_back({run.low, count});
        run.low += count;
        run.count -= count;
    }
}

/// The launch of pass i; false where its rows are too short.
bool launch_of(const columns_plan &plan, const profile &device, size_t i, wht_launch *l,
               bool *shuffle) {
    const bit_run &run = plan.passes[i];
    const bool reads_x = i == 0 && plan.first == first_pass::none;
    const bool vector = plan.vector[1] && (!reads_x || plan.vector[0]);
    const int inner = run.low + plan.log_parts;
    *shuffle = wht_columns_shuffle_launch(plan.real, plan.real, run.count, inner, vector, l);
    return (*shuffle ||
            wht_columns_tiled_launch(plan.real, plan.real, run.count, inner, vector, l)) &&
           l->smem_bytes <= device.smem_per_block && l->threads <= device.threads_per_sm;
}

bool all_launch(const columns_plan &plan, const profile &device) {
    wht_launch l;
    bool shuffle;
    for (size_t i = 0; i < plan.passes.size(); ++i)
        if (!launch_of(plan, device, i, &l, &shuffle)) return false;
    return true;
}

/// The problem of the bits below `end` alone.
wht_problem low_part(const wht_problem &p, int end) {
    wht_problem low = p;
    low.scale = 1.0;
    low.axes = 0;
    for (int a = 0; a < p.axes; ++a) {
        wht_axis ax = p.axis[a];
        const int64_t below = int64_t{1} << end;
        if (ax.transformed && ax.x_stride >= below) {
            ax.transformed = false;
        } else if (ax.transformed && ax.x_stride * ax.length > below) {
            wht_axis high = ax;
            high.length = ax.x_stride * ax.length / below;
            high.x_stride = high.y_stride = below;
            high.transformed = false;
            ax.length = below / ax.x_stride;
            high.signs_stride = ax.signs_stride * ax.length;
            high.diag_stride = ax.diag_stride * ax.length;
            low.axis[low.axes++] = high;
        }
        low.axis[low.axes++] = ax;
    }
    return low;
}

void add_runs_from(const std::vector<bit_run> &runs, int begin, int more,
                   std::vector<bit_run> &passes) {
    passes.clear();
    for (const bit_run &r : runs) {
        const int low = std::max(r.low, begin), count = r.low + r.count - low;
        if (count > 0) cut({low, count}, more, passes);
    }
}

/// Only columns; or the lowest run as rows; or all low bits by wht.any.
bool split(const wht_problem &p, const profile &device, const std::vector<bit_run> &runs, int more,
           columns_plan &plan) {
    const bool plain = !p.signs && p.diag == scalar::none;
    plan.first = first_pass::none;
    add_runs_from(runs, 0, more, plan.passes);
    if (plain && all_launch(plan, device)) return true;
    if (plain && plan.log_parts == 0 && runs[0].low == 0 && plan.batch == 1) {
        plan.first = first_pass::block;
        plan.log_row = std::min(runs[0].count, longest_row);
        add_runs_from(runs, plan.log_row, more, plan.passes);
        if (!plan.passes.empty() && all_launch(plan, device)) return true;
    }
    plan.first = first_pass::any;
    add_runs_from(runs, low_bits, more, plan.passes);
    if (runs[0].low >= low_bits || plan.passes.empty() || !all_launch(plan, device)) return false;
    plan.low_problem = low_part(p, low_bits);
    plan.low = plan_wht_any(plan.low_problem, device);
    return plan.low.refusal.empty();
}

bool has_vectors(const columns_plan &plan, int align, int64_t batch_stride) {
    const int64_t bytes = batch_stride * scalar_bytes(plan.real) << plan.log_parts;
    return align >= 16 && (plan.batch == 1 || bytes % 16 == 0);
}

bool block_vector(const wht_problem &p, const columns_plan &plan) {
    const int64_t n = int64_t{1} << plan.log_row;
    return p.x_align >= 16 && p.y_align >= 16 && n * scalar_bytes(plan.real) >= 16 &&
           !wht_cost::element_is_faster(plan.real, plan.real, plan.log_row);
}

void add_pass(cost &sum, const profile &device, const columns_plan &plan, double share, int stages,
              double tiles) {
    const double busy = std::min(1.0, tiles / device.sms);
    const double reals = static_cast<double>(plan.reals());
    const double memory =
        2 * reals * scalar_bytes(plan.real) / (device.copy_bandwidth * share * busy);
    const double rate = wht_is_wide(plan.real) ? device.f64_per_second : device.f32_per_second;
    const double compute = reals * stages / (rate * wht_cost::additions * busy);
    sum.memory_seconds += memory;
    sum.compute_seconds += compute;
    sum.launch_seconds += device.launch_seconds;
    sum.seconds +=
        std::max(memory, compute) + device.launch_seconds + wht_cost::block_latency_seconds;
}

cost price(const wht_problem &p, const columns_plan &plan, const profile &device) {
    cost sum;
    wht_launch l;
    if (plan.first == first_pass::any) wht_any_price(plan.low, device, sum);
    if (plan.first == first_pass::block) {
        const bool vector = block_vector(p, plan);
        wht_block_launch(plan.real, plan.real, plan.log_row, vector, &l);
        const double rows = static_cast<double>(plan.elements() >> plan.log_row);
        add_pass(sum, device, plan,
                 wht_cost::block_share(plan.real, plan.real, plan.log_row, vector), plan.log_row,
                 rows / l.rows_per_tile);
    }
    for (size_t i = 0; i < plan.passes.size(); ++i) {
        bool shuffle;
        launch_of(plan, device, i, &l, &shuffle);
        const bit_run &run = plan.passes[i];
        const double tiles =
            static_cast<double>(plan.reals() >> (run.count + l.log_columns)); // at least one
        add_pass(sum, device, plan,
                 wht_cost::columns_share(shuffle, plan.real, plan.real, run.count,
                                         run.low + plan.log_parts),
                 run.count, tiles);
    }
    return sum;
}

/// The cheapest number of passes for one entry: columns that are long leave few tiles.
bool best_split(const wht_problem &p, const profile &device, const std::vector<bit_run> &runs,
                columns_plan &plan) {
    columns_plan trial = plan;
    double best = 0;
    bool found = false;
    for (int more = 0; more < 3; ++more) {
        if (!split(p, device, runs, more, trial)) continue;
        // 16-bit types round between passes
        const size_t passes = trial.passes.size() + (trial.first != first_pass::none);
        if (found && wht_is_half(p.x) && passes > 1) continue;
        columns_plan entry = trial;
        entry.batch = 1;
        const double seconds = price(p, entry, device).seconds;
        if (!found || seconds < best) {
            plan = trial;
            best = seconds;
        }
        found = true;
    }
    return found;
}

columns_plan plan_of(const problem &problem, const profile &device) {
    const wht_problem &p = problem.wht();
    columns_plan plan;
    const bool complex = p.x == scalar::c64 || p.x == scalar::c128;
    plan.real = p.x == scalar::c64 ? scalar::f32 : p.x == scalar::c128 ? scalar::f64 : p.x;
    plan.log_parts = complex ? 1 : 0;
    // The first pass applies what stands before the transform.
    if (p.signs && p.adjoint) plan.refusal = "signs is in use, behind the transform";
    if (p.diag != scalar::none && !p.adjoint) plan.refusal = "diag is in use, behind the transform";
    if (p.overflow) plan.refusal = "overflow is in use";
    if (p.order != wht_order::natural) plan.refusal = "the order is not natural";
    if (p.y != p.x)
        plan.refusal = text("y is ", scalar_name(p.y), " and x ", scalar_name(p.x), "; needs one");
    if (!wht_columns_types(plan.real, plan.real))
        plan.refusal =
            text("x is ", scalar_name(p.x), "; needs f16, bf16, f32, f64, i32, i64, c64 or c128");
    wht_rows rows;
    if (!complex && wht_as_rows(problem, &rows).empty())
        plan.refusal = "it is rows, for which there are kernels";
    if (!plan.refusal.empty()) return plan;
    const std::vector<bit_run> runs = read_axes(p, plan);
    if (plan.refusal.empty() && runs.empty()) plan.refusal = "no axis is transformed";
    if (!plan.refusal.empty()) return plan;
    plan.vector[0] = has_vectors(plan, p.x_align, plan.x_batch);
    plan.vector[1] = has_vectors(plan, p.y_align, plan.y_batch);
    if (!best_split(p, device, runs, plan))
        plan.refusal = text("its bits do not divide into those below ", low_bits,
                            ", for wht.any, and columns");
    else if (wht_is_half(p.x) && plan.passes.size() + (plan.first != first_pass::none) > 1)
        plan.refusal =
            text("it takes several passes, between which ", scalar_name(p.x), " would round");
    return plan;
}

step empty_step(const columns_plan &plan, const wht_launch &l, int stages, double scale) {
    step one;
    one.variant = l.variant;
    one.block = l.threads;
    one.smem_bytes = l.smem_bytes;
    one.bytes_read = one.bytes_written = plan.reals() * scalar_bytes(plan.real);
    one.flops = plan.reals() * (stages + (scale != 1.0 ? 1 : 0));
    return one;
}

} // namespace

verdict wht_cuda_columns_applicable(const problem &problem, const profile &device) {
    if (device.backend != PLAIT_CUDA) return "the device is no CUDA device";
    if (problem.empty) return "the problem is empty: there is nothing to run";
    if (const verdict only = wht_ref_only(problem); !only.empty()) return only;
    const columns_plan plan = plan_of(problem, device);
    if (!plan.refusal.empty()) return plan.refusal;
    const verdict built = wht_cuda_built_for(device);
    if (!built.empty()) return built;
    return fits_memory(problem, device, 0);
}

cost wht_cuda_columns_estimate(const problem &problem, const profile &device) {
    return price(problem.wht(), plan_of(problem, device), device);
}

pipeline wht_cuda_columns_build(const problem &problem, const profile &device) {
    const wht_problem &p = problem.wht();
    const columns_plan plan = plan_of(problem, device);
    pipeline out;
    wht_launch l;
    if (plan.first == first_pass::any) wht_any_add_steps(plan.low, plan.low_problem, device, out);
    if (plan.first == first_pass::block) {
        wht_block_launch(plan.real, plan.real, plan.log_row, block_vector(p, plan), &l);
        wht_block_args args{};
        args.rows = plan.elements() >> plan.log_row;
        args.x_row_stride = args.y_row_stride = int64_t{1} << plan.log_row;
        args.scale = 1.0;
        step one = empty_step(plan, l, plan.log_row, 1.0);
        one.kernel = "wht.block";
        one.grid = wht_block_grid(l, args.rows, device.sms);
        one.operands = {role_operand(PLAIT_X, false), role_operand(PLAIT_Y, true)};
        one.args = step_args(args);
        out.steps.push_back(std::move(one));
    }
    for (size_t i = 0; i < plan.passes.size(); ++i) {
        bool shuffle;
        launch_of(plan, device, i, &l, &shuffle);
        const bit_run &run = plan.passes[i];
        const bool reads_x = i == 0 && plan.first == first_pass::none;
        wht_columns_args args{};
        args.batch = plan.batch;
        args.x_batch_stride = (reads_x ? plan.x_batch : plan.y_batch) << plan.log_parts;
        args.y_batch_stride = plan.y_batch << plan.log_parts;
        args.outer = plan.packed >> (run.low + run.count);
        args.log_m = run.count;
        args.log_inner = run.low + plan.log_parts;
        args.scale = i + 1 == plan.passes.size() ? p.scale : 1.0;
        step one = empty_step(plan, l, run.count, args.scale);
        one.kernel = shuffle ? "wht.columns_shuffle" : "wht.columns_tiled";
        one.grid = wht_columns_grid(l, args.batch * args.outer, args.log_inner, device.sms);
        one.operands = {role_operand(reads_x ? PLAIT_X : PLAIT_Y, false),
                        role_operand(PLAIT_Y, true)};
        one.args = step_args(args);
        out.steps.push_back(std::move(one));
    }
    out.work.seal();
    return out;
}

} // namespace plait::impl
