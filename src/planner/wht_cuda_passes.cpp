#include "src/planner/wht_cuda_passes.h"

#include "lib/cuda/wht/columns_shuffle_layout.h"
#include "lib/cuda/wht/columns_tiled_layout.h"
#include "lib/cuda/wht/mma16_layout.h"
#include "src/core/text.h"
#include "src/planner/wht_cuda_cost.h"

#include <algorithm>
#include <cmath>

namespace plait::impl {

namespace {

constexpr int longest_columns = 12;
constexpr int64_t most_launches = 4096;

/// Adds one pass. `tiles` blocks' worth of work, `bytes` read and written, `warm`: the bytes are
/// in the L2 cache when the pass reads them.
void add_pass(cost &sum, const profile &device, double share, double bytes, double additions,
              bool wide, double tiles, int launches, bool warm) {
    double bandwidth = device.copy_bandwidth * share;
    if (warm) bandwidth *= wht_cost::l2_speedup;
    // Blocks run on SMs: a device with idle SMs moves and adds less.
    const double busy = std::min(1.0, tiles / device.sms);
    const double memory = bytes / (bandwidth * wht_cost::busy_memory(tiles, device.sms));
    const double rate = wide ? device.f64_per_second : device.f32_per_second;
    const double compute = additions / (rate * wht_cost::additions * busy);
    sum.memory_seconds += memory;
    sum.compute_seconds += compute;
    sum.launch_seconds += launches * device.launch_seconds;
    sum.seconds += std::max(memory, compute) + launches * device.launch_seconds +
                   wht_cost::start_seconds(bytes / launches) * launches;
}

/// The promises behind 16-byte accesses of wht.block to one side.
bool rows_aligned(scalar s, int log_n, int align, int64_t stride) {
    if (align < 16) return false;
    const int64_t n = int64_t{1} << log_n;
    return n * scalar_bytes(s) < 16 ? stride == n : wht_aligned16(stride, s);
}

wht_split no_split() {
    wht_split s;
    s.count = -1;
    return s;
}

/// One packed, aligned row of the problem.
wht_rows one_row(wht_rows r) {
    r.rows = 1;
    r.x_stride = r.y_stride = r.n;
    r.x_align = r.y_align = 16;
    return r;
}

} // namespace

wht_between wht_between_passes(const wht_rows &r, const wht_pass_kind &kind) {
    if (kind.in_work && wht_is_half(r.y)) return {scalar::f32, true};
    return {r.y, false};
}

wht_passes::wht_passes(const wht_rows &r, const profile &device, const wht_pass_kind &kind)
    : r_(r), device_(device), kind_(kind), mid_(wht_between_passes(r, kind)),
      warm_(static_cast<double>(r.elements()) * scalar_bytes(mid_.type) <=
            wht_cost::l2_share * static_cast<double>(device.l2_bytes)),
      wide_(wht_is_wide(r.x)) {}

int64_t wht_passes::work_bytes() const {
    return mid_.work ? r_.elements() * scalar_bytes(mid_.type) : 0;
}

// ---- Launches --------------------------------------------------------------------------------

wht_passes::first_pass wht_passes::first(int log_block) const {
    const int64_t n = int64_t{1} << log_block;
    const int64_t parts = r_.n / n;
    const int64_t y_stride = !only(log_block) && mid_.work ? r_.n : r_.y_stride;
    if (parts == 1) return {1, r_.rows, r_.x_stride, y_stride, 0, 0};
    if (r_.rows == 1 || (r_.x_stride == r_.n && y_stride == r_.n))
        return {1, r_.rows * parts, n, n, 0, 0};
    if (parts <= r_.rows) return {parts, r_.rows, r_.x_stride, y_stride, n, n};
    return {r_.rows, parts, n, n, r_.x_stride, y_stride};
}

bool wht_passes::block_vector(const first_pass &f, int log_block) const {
    const bool to_work = !only(log_block) && mid_.work;
    const scalar y = block_y(log_block);
    if (wht_cost::element_is_faster(r_.x, y, log_block)) return false;
    return rows_aligned(r_.x, log_block, r_.x_align, f.x_stride) &&
           rows_aligned(y, log_block, to_work ? 16 : r_.y_align, f.y_stride) &&
           wht_aligned16(f.x_step, r_.x) && wht_aligned16(f.y_step, y);
}

bool wht_passes::launch_fits(const wht_launch &l) const {
    return l.smem_bytes <= device_.smem_per_block && l.threads <= device_.threads_per_sm;
}

bool wht_passes::first_on_tensor_cores(int log_block) const {
    wht_launch l;
    return !only(log_block) && r_.parts == 0 && log_block >= 14 &&
           wht_mma16_launch(r_.x, block_y(log_block), log_block, true, &l) && launch_fits(l) &&
           device_.runs_code_from(80);
}

bool wht_passes::block_launch(int log_block, wht_launch *l) const {
    const first_pass f = first(log_block);
    if (f.launches > most_launches) return false;
    if (first_on_tensor_cores(log_block))
        return wht_mma16_launch(r_.x, block_y(log_block), log_block, block_vector(f, log_block), l);
    return wht_block_launch(r_.x, block_y(log_block), log_block, block_vector(f, log_block), l,
                            r_.parts) &&
           launch_fits(*l);
}

/// 16-byte accesses are possible in what column passes read and write.
bool wht_passes::columns_vector(bool last) const {
    const bool y_ok = r_.y_align >= 16 && (r_.rows == 1 || wht_aligned16(r_.y_stride, r_.y));
    return (mid_.work || y_ok) && (!last || y_ok);
}

bool wht_passes::columns_launch(int log_m, int log_inner, bool last, wht_launch *l) const {
    const scalar y = last ? r_.y : mid_.type;
    const bool vector = columns_vector(last);
    const bool exists = kind_.kernel == wht_columns::shuffle
                            ? wht_columns_shuffle_launch(mid_.type, y, log_m, log_inner, vector, l)
                            : wht_columns_tiled_launch(mid_.type, y, log_m, log_inner, vector, l);
    return exists && launch_fits(*l);
}

// ---- Splits ----------------------------------------------------------------------------------

/// Priced as one packed, aligned row, whatever the batch, the strides and the alignment: a row
/// passes through the same additions wherever it lies, so its last bits do not depend on that.
wht_split wht_passes::best() const {
    const wht_rows row = one_row(r_);
    const wht_passes of_row(row, device_, kind_);
    for (int count = kind_.kernel == wht_columns::none ? 0 : 1; count <= kind_.max_columns;
         ++count) {
        wht_split found = no_split();
        wht_split current;
        current.count = count;
        const scalar y = count == 0 ? r_.y : mid_.type;
        for (int c = std::min(wht_longest_block(r_.x, y, r_.parts), r_.log_n); c >= 0; --c) {
            if (r_.log_n - c > count * longest_columns) break;
            wht_launch l;
            if (!block_launch(c, &l)) continue;
            current.log_block = c;
            extend(of_row, current, 0, c, found);
        }
        if (found.count >= 0) {
            found.estimate = price(found);
            return found;
        }
    }
    return no_split();
}

/// Distributes the bits from log_inner upwards over the passes from `index`.
void wht_passes::extend(const wht_passes &of_row, wht_split &current, int index, int log_inner,
                        wht_split &found) const {
    const int left = r_.log_n - log_inner;
    if (index == current.count) {
        if (left != 0) return;
        current.estimate = of_row.price(current);
        if (found.count < 0 || current.estimate.seconds < found.estimate.seconds) found = current;
        return;
    }
    const int more = current.count - index - 1; // passes after this one
    const int low = std::max(1, left - more * longest_columns);
    const int high = std::min(longest_columns, left - more);
    for (int m = low; m <= high; ++m) {
        wht_launch l;
        if (!columns_launch(m, log_inner, more == 0, &l)) continue;
        current.log_m[index] = m;
        extend(of_row, current, index + 1, log_inner + m, found);
    }
}

cost wht_passes::price(const wht_split &s) const {
    cost sum;
    const double elements = static_cast<double>(r_.elements());
    const double mid = scalar_bytes(mid_.type);
    const double scaling = r_.scale != 1.0 ? 1 : 0;
    const first_pass f = first(s.log_block);
    wht_launch l;
    block_launch(s.log_block, &l);
    const scalar y = block_y(s.log_block);
    const bool vector = block_vector(f, s.log_block);
    add_pass(sum, device_,
             first_on_tensor_cores(s.log_block)
                 ? wht_cost::mma16_share(s.log_block, vector)
                 : wht_cost::block_share(r_.x, y, s.log_block, vector),
             elements * (scalar_bytes(r_.x) + scalar_bytes(y)),
             elements * (s.log_block - r_.parts + (s.count == 0 ? scaling : 0)), wide_,
             std::ceil(static_cast<double>(f.rows) / l.rows_per_tile), static_cast<int>(f.launches),
             false);
    int log_inner = s.log_block;
    for (int i = 0; i < s.count; ++i) {
        const bool last = i + 1 == s.count;
        const int m = s.log_m[i];
        const scalar out = last ? r_.y : mid_.type;
        columns_launch(m, log_inner, last, &l);
        add_pass(sum, device_,
                 wht_cost::columns_share(kind_.kernel == wht_columns::shuffle, mid_.type, out, m,
                                         log_inner),
                 elements * (mid + scalar_bytes(out)), elements * (m + (last ? scaling : 0)), wide_,
                 elements / std::ldexp(1.0, m + l.log_columns), 1, warm_);
        log_inner += m;
    }
    return sum;
}

// ---- Scale -----------------------------------------------------------------------------------

/// Which part of the scale the first pass applies. Between passes of 16 bits it is the power of two
/// in a scale below 1: the largest magnitude never falls from stage to stage, so what overflows
/// then would overflow at the end.
double wht_passes::early_scale(const wht_split &s) const {
    if (s.count == 0 || !wht_is_half(mid_.type)) return 1.0;
    const double magnitude = std::fabs(r_.scale);
    if (magnitude == 0) return 0.0;
    if (magnitude >= 1) return 1.0;
    return std::ldexp(1.0, std::ilogb(magnitude));
}

/// Values of about 1 grow by 2^(c/2) in the first pass. Times the early scale they must stay above
/// the smallest normal number, or the rounding between passes is no longer relative.
verdict wht_passes::early_scale_fits(const wht_split &s) const {
    const double early = early_scale(s);
    if (early == 0 || early == 1) return "";
    const int smallest = mid_.type == scalar::f16 ? -14 : -126;
    if (2 * std::ilogb(early) + s.log_block >= 2 * smallest) return "";
    return text("scale=", r_.scale, " would push ", scalar_name(mid_.type),
                " values between passes below the normal range");
}

// ---- Steps -----------------------------------------------------------------------------------

pipeline wht_passes::build(const wht_split &s) const {
    pipeline out;
    operand mid_in = role_operand(PLAIT_Y, false), mid_out = role_operand(PLAIT_Y, true);
    if (mid_.work && s.count > 0) {
        const int last = static_cast<int>(first(s.log_block).launches) + s.count - 1;
        const int piece = out.work.book("mid", work_bytes(), 0, last);
        mid_in = piece_operand(piece, false);
        mid_out = piece_operand(piece, true);
    }
    const double early = early_scale(s);
    add_block(out, s, mid_out, s.count == 0 ? r_.scale : early);
    int log_inner = s.log_block;
    for (int i = 0; i < s.count; ++i) {
        const bool last = i + 1 == s.count;
        const double late = early == 0 ? 1.0 : r_.scale / early;
        add_columns(out, s.log_m[i], log_inner, mid_in,
                    last ? role_operand(PLAIT_Y, true) : mid_out, last ? late : 1.0, last);
        log_inner += s.log_m[i];
    }
    out.work.seal();
    return out;
}

void wht_passes::add_block(pipeline &out, const wht_split &s, const operand &to,
                           double scale) const {
    const scalar y = block_y(s.log_block);
    const first_pass f = first(s.log_block);
    wht_launch l;
    block_launch(s.log_block, &l);
    for (int64_t i = 0; i < f.launches; ++i) {
        step one;
        const bool on_tensor_cores = first_on_tensor_cores(s.log_block);
        one.kernel = on_tensor_cores ? "wht.mma16" : "wht.block";
        one.variant = l.variant;
        one.grid = on_tensor_cores ? wht_mma16_grid(l, f.rows, device_.sms)
                                   : wht_block_grid(l, f.rows, device_.sms);
        one.block = l.threads;
        one.smem_bytes = l.smem_bytes;
        one.operands = {role_operand(PLAIT_X, false, i * f.x_step * scalar_bytes(r_.x)), to};
        one.operands[1].offset = i * f.y_step * scalar_bytes(y);
        const auto fill = [&](auto args) {
            args.rows = f.rows;
            args.x_row_stride = f.x_stride;
            args.y_row_stride = f.y_stride;
            args.scale = scale;
            return step_args(args);
        };
        one.args = on_tensor_cores ? fill(wht_mma16_args{}) : fill(wht_block_args{});
        const int64_t elements = f.rows << s.log_block;
        one.bytes_read = elements * scalar_bytes(r_.x);
        one.bytes_written = elements * scalar_bytes(y);
        one.flops = elements * (s.log_block - r_.parts + (scale != 1.0 ? 1 : 0));
        one.programmatic = out.steps.empty() ? wht_cuda_starts_early(one, device_)
                                             : waits_for_predecessors(device_);
        out.steps.push_back(std::move(one));
    }
}

void wht_passes::add_columns(pipeline &out, int log_m, int log_inner, const operand &from,
                             const operand &to, double scale, bool last) const {
    wht_launch l;
    columns_launch(log_m, log_inner, last, &l);
    const scalar y = last ? r_.y : mid_.type;
    wht_columns_args args{};
    args.outer = r_.n >> (log_inner + log_m);
    args.batch = r_.rows;
    args.x_batch_stride = mid_.work ? r_.n : r_.y_stride;
    args.y_batch_stride = last ? r_.y_stride : args.x_batch_stride;
    args.log_m = log_m;
    args.log_inner = log_inner;
    args.scale = scale;
    step one;
    one.kernel = kind_.kernel == wht_columns::shuffle ? "wht.columns_shuffle" : "wht.columns_tiled";
    one.variant = l.variant;
    one.grid = wht_columns_grid(l, args.batch * args.outer, log_inner, device_.sms);
    one.block = l.threads;
    one.smem_bytes = l.smem_bytes;
    one.operands = {from, to};
    one.args = step_args(args);
    one.bytes_read = r_.elements() * scalar_bytes(mid_.type);
    one.bytes_written = r_.elements() * scalar_bytes(y);
    one.flops = r_.elements() * (log_m + (scale != 1.0 ? 1 : 0));
    one.programmatic = waits_for_predecessors(device_) && !out.steps.empty();
    out.steps.push_back(std::move(one));
}

} // namespace plait::impl
