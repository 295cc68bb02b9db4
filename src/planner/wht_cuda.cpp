// The CUDA candidates of wht: one contiguous pass (wht.block) over the low bits of the index, then
// column passes over the remaining bits. Launch data comes from lib/cuda/wht/*_layout.h.
#include "lib/cuda/wht/block_layout.h"
#include "lib/cuda/wht/columns_shuffle_layout.h"
#include "lib/cuda/wht/columns_tiled_layout.h"
#include "src/core/text.h"
#include "src/planner/wht_candidates.h"
#include "src/planner/wht_cuda_cost.h"

#include <algorithm>
#include <cmath>

namespace plait::impl {

namespace {

// ---- Shapes of a candidate -------------------------------------------------------------------

enum class columns { none, shuffle, tiled };

struct plan_kind {
    columns kernel;  ///< of the passes after the first
    int max_columns; ///< column passes
    bool in_work;    ///< 16-bit results: the passes work on f32 in the workspace
};

constexpr plan_kind kind_block = {columns::none, 0, false};
constexpr plan_kind kind_shuffle = {columns::shuffle, 1, false};
constexpr plan_kind kind_tiled = {columns::tiled, 1, false};
constexpr int most_columns = 4; // column passes of any kind
constexpr plan_kind kind_multi = {columns::tiled, most_columns, true};

/// log2 of the longest rows that wht.block takes for these types; negative where there is none.
constexpr int longest_block(scalar x, scalar y) {
    int log_n = 30;
    while (log_n >= 0 && !wht_block_exists(x, y, log_n)) --log_n;
    return log_n;
}

constexpr int longest_columns = 12;

/// How many bits each pass transforms, and the estimate of it.
struct split {
    int log_block = 0;
    int count = 0; ///< column passes
    int log_m[most_columns] = {};
    cost estimate;
};

/// Types that each pass stores.
struct pass_types {
    scalar mid; ///< between passes
    bool work;  ///< mid lives in the workspace, else in Y
};

pass_types types_of(const wht_rows &r, const plan_kind &kind) {
    if (kind.in_work && wht_is_half(r.y)) return {scalar::f32, true};
    return {r.y, false};
}

bool aligned16(int64_t elements, scalar s) { return elements * scalar_bytes(s) % 16 == 0; }

/// The promises behind the vector variant of wht.block.
bool block_vector(scalar x, scalar y, int log_n, int x_align, int y_align, int64_t x_stride,
                  int64_t y_stride) {
    const int64_t n = int64_t{1} << log_n;
    const auto row = [n](scalar s, int align, int64_t stride) {
        if (align < 16) return false;
        return n * scalar_bytes(s) < 16 ? stride == n : aligned16(stride, s);
    };
    return row(x, x_align, x_stride) && row(y, y_align, y_stride);
}

// ---- The cost model --------------------------------------------------------------------------

/// Adds one pass. `tiles` blocks' worth of work, `bytes` read and written, `warm`: the bytes are
/// in the L2 cache when the pass reads them.
void add_pass(cost &sum, const profile &device, double share, double bytes, double additions,
              bool wide, double tiles, int launches, bool warm) {
    double bandwidth = device.copy_bandwidth * share;
    if (warm) bandwidth *= wht_cost::l2_speedup;
    // Blocks run on SMs: a device with idle SMs moves and adds less.
    const double busy = std::min(1.0, tiles / device.sms);
    const double memory = bytes / (bandwidth * busy);
    const double rate = wide ? device.f64_per_second : device.f32_per_second;
    const double compute = additions / (rate * wht_cost::additions * busy);
    sum.memory_seconds += memory;
    sum.compute_seconds += compute;
    sum.launch_seconds += launches * device.launch_seconds;
    sum.seconds += std::max(memory, compute) +
                   launches * (device.launch_seconds + wht_cost::block_latency_seconds);
}

// ---- Passes ----------------------------------------------------------------------------------

/// Launches of the first pass. Rows with gaps whose parts are transformed one by one need several:
/// wht.block knows one stride.
struct first_pass {
    int64_t launches;
    int64_t rows; ///< of each launch
    int64_t x_stride, y_stride;
    int64_t x_step, y_step; ///< elements from launch to launch
};

first_pass first_pass_of(const wht_rows &r, int log_block, bool y_packed) {
    const int64_t n = int64_t{1} << log_block;
    const int64_t parts = r.n / n;
    const int64_t y_stride = y_packed ? r.n : r.y_stride;
    if (parts == 1) return {1, r.rows, r.x_stride, y_stride, 0, 0};
    if (r.rows == 1 || (r.x_stride == r.n && y_stride == r.n))
        return {1, r.rows * parts, n, n, 0, 0};
    if (parts <= r.rows) return {parts, r.rows, r.x_stride, y_stride, n, n};
    return {r.rows, parts, n, n, r.x_stride, y_stride};
}

constexpr int64_t most_launches = 4096;

class builder {
public:
    builder(const wht_rows &r, const profile &device, const plan_kind &kind)
        : r_(r), device_(device), kind_(kind), types_(types_of(r, kind)),
          warm_(static_cast<double>(r.elements()) * scalar_bytes(types_.mid) <=
                wht_cost::l2_share * static_cast<double>(device.l2_bytes)),
          wide_(r.x == scalar::f64) {}

    /// The cheapest split of the fewest passes; count < 0 when there is none.
    split best() const {
        for (int count = 0; count <= kind_.max_columns; ++count) {
            if (kind_.kernel != columns::none && count == 0) continue;
            split found = none();
            split current;
            current.count = count;
            for (int c = std::min(longest_block(r_.x, block_y(count == 0)), r_.log_n); c >= 0;
                 --c) {
                if (r_.log_n - c > count * longest_columns) break;
                if (count == 0 && c != r_.log_n) break;
                if (!block_fits(c)) continue;
                current.log_block = c;
                extend(current, 0, c, found);
            }
            if (found.count >= 0) return found;
        }
        return none();
    }

    pipeline build(const split &s) const {
        pipeline out;
        const operand no_base;
        operand mid_in = wht_role(PLAIT_Y, false), mid_out = wht_role(PLAIT_Y, true);
        if (types_.work) {
            const first_pass f = first_pass_of(r_, s.log_block, true);
            const int last = static_cast<int>(f.launches) + s.count - 1;
            const int piece =
                out.work.book("mid", r_.elements() * scalar_bytes(types_.mid), 0, last);
            mid_in = wht_piece(piece, false);
            mid_out = wht_piece(piece, true);
        }
        const double early = early_scale(s);
        add_block(out, s, mid_out, s.count == 0 ? r_.scale : early);
        int log_inner = s.log_block;
        for (int i = 0; i < s.count; ++i) {
            const bool last = i + 1 == s.count;
            add_columns(out, s.log_m[i], log_inner, mid_in,
                        last ? wht_role(PLAIT_Y, true) : mid_out,
                        last ? (early == 0 ? 1.0 : r_.scale / early) : 1.0, last);
            log_inner += s.log_m[i];
        }
        out.work.seal();
        return out;
    }

    /// Which part of the scale the first pass applies. Between passes of 16 bits it is the power of
    /// two in a scale below 1: the largest magnitude never falls from stage to stage, so what
    /// overflows then would overflow at the end.
    double early_scale(const split &s) const {
        if (s.count == 0 || !wht_is_half(types_.mid)) return 1.0;
        const double magnitude = std::fabs(r_.scale);
        if (magnitude == 0) return 0.0;
        if (magnitude >= 1) return 1.0;
        return std::ldexp(1.0, std::ilogb(magnitude));
    }

    /// Values of about 1 grow by 2^(c/2) in the first pass. Times the early scale they must stay
    /// above the smallest normal number, or the rounding between passes is no longer relative.
    verdict early_scale_fits(const split &s) const {
        const double early = early_scale(s);
        if (early == 0 || early == 1) return "";
        const int smallest = types_.mid == scalar::f16 ? -14 : -126;
        if (2 * std::ilogb(early) + s.log_block >= 2 * smallest) return "";
        return text("scale=", r_.scale, " would push ", scalar_name(types_.mid),
                    " values between passes below the normal range");
    }

    int64_t work_bytes() const {
        return types_.work ? r_.elements() * scalar_bytes(types_.mid) : 0;
    }

private:
    static split none() {
        split s;
        s.count = -1;
        return s;
    }

    bool launch_fits(const wht_launch &l) const {
        return l.smem_bytes <= device_.smem_per_block && l.threads <= device_.threads_per_sm;
    }

    scalar block_y(bool only) const { return only ? r_.y : types_.mid; }

    bool vector_of(const first_pass &f, int log_block, bool only) const {
        const bool to_work = !only && types_.work;
        const scalar y = block_y(only);
        return block_vector(r_.x, y, log_block, r_.x_align, to_work ? 16 : r_.y_align, f.x_stride,
                            f.y_stride) &&
               aligned16(f.x_step, r_.x) && aligned16(f.y_step, y);
    }

    bool block_fits(int log_block) const {
        const bool only = log_block == r_.log_n;
        const first_pass f = first_pass_of(r_, log_block, !only && types_.work);
        wht_launch l;
        return f.launches <= most_launches &&
               wht_block_launch(r_.x, block_y(only), log_block, vector_of(f, log_block, only),
                                &l) &&
               launch_fits(l);
    }

    /// 16-byte accesses are possible in what column passes read and write.
    bool columns_vector(bool last) const {
        const bool y_ok = r_.y_align >= 16 && (r_.rows == 1 || aligned16(r_.y_stride, r_.y));
        return (types_.work || y_ok) && (!last || y_ok);
    }

    bool columns_launch(int log_m, int log_inner, bool last, wht_launch *l) const {
        const scalar y = last ? r_.y : types_.mid;
        const bool ok = kind_.kernel == columns::shuffle
                            ? wht_columns_shuffle_launch(types_.mid, y, log_m, log_inner,
                                                         columns_vector(last), l)
                            : wht_columns_tiled_launch(types_.mid, y, log_m, log_inner,
                                                       columns_vector(last), l);
        return ok && launch_fits(*l);
    }

    /// Distributes the bits from log_inner upwards over the passes from `index`.
    void extend(split &current, int index, int log_inner, split &found) const {
        const int left = r_.log_n - log_inner;
        if (index == current.count) {
            if (left != 0) return;
            current.estimate = price(current);
            if (found.count < 0 || current.estimate.seconds < found.estimate.seconds)
                found = current;
            return;
        }
        if (index >= most_columns) return; // never; the compiler cannot know that count is bounded
        const int more = current.count - index - 1; // passes after this one
        const int low = std::max(1, left - more * longest_columns);
        const int high = std::min(longest_columns, left - more);
        for (int m = low; m <= high; ++m) {
            wht_launch l;
            if (!columns_launch(m, log_inner, more == 0, &l)) continue;
            current.log_m[index] = m;
            extend(current, index + 1, log_inner + m, found);
        }
    }

    cost price(const split &s) const {
        cost sum;
        const bool only = s.count == 0;
        const double elements = static_cast<double>(r_.elements());
        const double x = scalar_bytes(r_.x), y = scalar_bytes(r_.y), mid = scalar_bytes(types_.mid);
        const double extra = r_.scale != 1.0 ? 1 : 0;
        {
            const first_pass f = first_pass_of(r_, s.log_block, !only && types_.work);
            const bool vector = vector_of(f, s.log_block, only);
            wht_launch l;
            wht_block_launch(r_.x, block_y(only), s.log_block, vector, &l);
            const double tiles = std::ceil(static_cast<double>(f.rows) / l.rows_per_tile);
            add_pass(sum, device_, wht_cost::block_share(r_.x, block_y(only), s.log_block, vector),
                     elements * (x + (only ? y : mid)),
                     elements * (s.log_block + (only ? extra : 0)), wide_, tiles,
                     static_cast<int>(f.launches), false);
        }
        int log_inner = s.log_block;
        for (int i = 0; i < s.count; ++i) {
            const bool last = i + 1 == s.count;
            const scalar out = last ? r_.y : types_.mid;
            wht_launch l;
            columns_launch(s.log_m[i], log_inner, last, &l);
            const double tiles = elements / std::ldexp(1.0, s.log_m[i] + l.log_columns);
            add_pass(sum, device_,
                     wht_cost::columns_share(kind_.kernel == columns::shuffle, types_.mid, out,
                                             s.log_m[i]),
                     elements * (mid + (last ? y : mid)),
                     elements * (s.log_m[i] + (last ? extra : 0)), wide_, tiles, 1, warm_);
            log_inner += s.log_m[i];
        }
        return sum;
    }

    void add_block(pipeline &out, const split &s, const operand &mid, double scale) const {
        const bool only = s.count == 0;
        const bool to_work = !only && types_.work;
        const scalar y = block_y(only);
        const first_pass f = first_pass_of(r_, s.log_block, to_work);
        wht_launch l;
        wht_block_launch(r_.x, y, s.log_block, vector_of(f, s.log_block, only), &l);
        for (int64_t i = 0; i < f.launches; ++i) {
            step one;
            one.kernel = "wht.block";
            one.variant = l.variant;
            one.grid = wht_block_grid(l, f.rows, device_.sms);
            one.block = l.threads;
            one.smem_bytes = l.smem_bytes;
            operand to = only ? wht_role(PLAIT_Y, true) : mid;
            to.offset = i * f.y_step * scalar_bytes(y);
            one.operands = {wht_role(PLAIT_X, false, i * f.x_step * scalar_bytes(r_.x)), to};
            wht_block_args args{};
            args.rows = f.rows;
            args.x_row_stride = f.x_stride;
            args.y_row_stride = f.y_stride;
            args.scale = scale;
            one.args = step_args(args);
            const int64_t elements = f.rows << s.log_block;
            one.bytes_read = elements * scalar_bytes(r_.x);
            one.bytes_written = elements * scalar_bytes(y);
            one.flops = elements * (s.log_block + (scale != 1.0 ? 1 : 0));
            out.steps.push_back(std::move(one));
        }
    }

    void add_columns(pipeline &out, int log_m, int log_inner, const operand &from,
                     const operand &to, double scale, bool last) const {
        wht_launch l;
        columns_launch(log_m, log_inner, last, &l);
        const scalar y = last ? r_.y : types_.mid;
        wht_columns_args args{};
        args.outer = r_.n >> (log_inner + log_m);
        args.batch = r_.rows;
        args.x_batch_stride = types_.work ? r_.n : r_.y_stride;
        args.y_batch_stride = last ? r_.y_stride : args.x_batch_stride;
        args.log_m = log_m;
        args.log_inner = log_inner;
        args.scale = scale;
        step one;
        one.kernel = kind_.kernel == columns::shuffle ? "wht.columns_shuffle" : "wht.columns_tiled";
        one.variant = l.variant;
        one.grid = wht_columns_grid(l, args.batch * args.outer, log_inner, device_.sms);
        one.block = l.threads;
        one.smem_bytes = l.smem_bytes;
        one.operands = {from, to};
        one.args = step_args(args);
        one.bytes_read = r_.elements() * scalar_bytes(types_.mid);
        one.bytes_written = r_.elements() * scalar_bytes(y);
        one.flops = r_.elements() * (log_m + (scale != 1.0 ? 1 : 0));
        out.steps.push_back(std::move(one));
    }

    const wht_rows &r_;
    const profile &device_;
    const plan_kind &kind_;
    pass_types types_;
    bool warm_;
    bool wide_; ///< additions in F64
};

// ---- Rules -----------------------------------------------------------------------------------

bool floating(scalar s) {
    return s == scalar::f64 || s == scalar::f32 || s == scalar::f16 || s == scalar::bf16;
}

/// An architecture in the list means its code and its PTX, so everything newer runs it too.
verdict built_for(const profile &device) {
    const int have = device.cc_major * 10 + device.cc_minor;
    for (const int arch : device.built)
        if (arch <= have) return "";
    if (device.built.empty()) return "this build holds no CUDA kernels";
    return text("this build holds kernels from ", device.built.front(), " up; the device is ",
                device.cc_major, '.', device.cc_minor);
}

verdict shared_rules(const problem &problem, const profile &device, wht_rows *r) {
    if (device.backend != PLAIT_CUDA) return "the device is no CUDA device";
    const verdict shape = wht_as_rows(problem, r);
    if (!shape.empty()) return shape;
    if (!floating(r->x)) return text("x is ", scalar_name(r->x), "; needs f16, bf16, f32 or f64");
    return built_for(device);
}

verdict block_rule(const wht_rows &r, const profile &device) {
    const int longest = longest_block(r.x, r.y);
    if (!wht_block_exists(r.x, r.y, std::min(r.log_n, longest)))
        return text("there is no kernel that stores ", scalar_name(r.x), " rows of ", r.n, " as ",
                    scalar_name(r.y));
    if (r.log_n > longest) return text("n=", r.n, " is over ", int64_t{1} << longest);
    if (builder(r, device, kind_block).best().count >= 0) return "";
    return text("n=", r.n, " does not fit the ", device.smem_per_block,
                " bytes of shared memory of a block");
}

verdict columns_rule(const wht_rows &r, const profile &device, const plan_kind &kind, split *s) {
    if (block_rule(r, device).empty()) return text("n=", r.n, " fits one block");
    const builder b(r, device, kind);
    *s = b.best();
    if (s->count >= 0) return b.early_scale_fits(*s);
    if (kind.kernel == columns::shuffle) {
        if (r.y_align < 16) return text("y is aligned to ", r.y_align, " bytes; needs 16");
        if (r.rows > 1 && !aligned16(r.y_stride, r.y))
            return text("row stride ", r.y_stride, " of y is no multiple of 16 bytes");
    }
    const scalar mid = types_of(r, kind).mid;
    const int longest = longest_block(r.x, mid);
    if (!wht_block_exists(r.x, mid, std::min(r.log_n, longest)))
        return text("there is no kernel that stores ", scalar_name(r.x), " rows of ", r.n, " as ",
                    scalar_name(mid));
    if (r.log_n <= longest)
        return text("n=", r.n, " is too short for a column pass, which would store ",
                    scalar_name(mid), " as ", scalar_name(r.y));
    return text("n=", r.n, " is beyond wht.block and ", kind.max_columns, " column pass",
                kind.max_columns > 1 ? "es" : "", " of ",
                kind.kernel == columns::shuffle ? "5" : "11 or 12", " bits");
}

verdict applicable(const problem &p, const profile &device, const plan_kind &kind) {
    wht_rows r;
    const verdict shared = shared_rules(p, device, &r);
    if (!shared.empty()) return shared;
    split s;
    const verdict own =
        kind.kernel == columns::none ? block_rule(r, device) : columns_rule(r, device, kind, &s);
    if (!own.empty()) return own;
    return wht_fits_memory(p, device, builder(r, device, kind).work_bytes());
}

cost estimate(const problem &p, const profile &device, const plan_kind &kind) {
    wht_rows r;
    wht_as_rows(p, &r);
    return builder(r, device, kind).best().estimate;
}

pipeline build(const problem &p, const profile &device, const plan_kind &kind) {
    wht_rows r;
    wht_as_rows(p, &r);
    const builder b(r, device, kind);
    return b.build(b.best());
}

} // namespace

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
