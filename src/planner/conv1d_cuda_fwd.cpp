// The CUDA candidates of conv1d.fwd.
#include "lib/cuda/conv1d/fwd_btc_layout.h"
#include "lib/cuda/conv1d/fwd_masks_layout.h"
#include "src/core/text.h"
#include "src/planner/conv1d_cuda.h"
#include "src/planner/conv1d_cuda_fwd_pairs.h"
#include "src/planner/conv1d_cuda_fwd_rows.h"

#include <algorithm>

namespace plait::impl {

namespace {

/// Issue slots of conv1d.fwd_any: the index and the sequence, and each tap.
constexpr double any_slots = 300;
constexpr double any_slots_per_tap = 40;

/// Shares of the copy bandwidth on a full device, and issue slots of an output beside its taps.
constexpr double tiled_share = 0.95;
constexpr double masked_share = 0.83; ///< with conv1d.fwd_masks
constexpr double tiled_slots = 13;
/// A thread has loads for as many of the others under way.
constexpr double tiled_loads = 4;
/// Of an output of conv1d.fwd_bct_fix, which shares sectors with its neighbours in part.
constexpr double fix_slots = 40;
constexpr double fix_slots_per_tap = 12;
constexpr double bct_share = 0.9;
constexpr double bct_slots = 18;
constexpr double btc_share = 0.95;
constexpr double btc_element_share = 0.9; ///< single elements a thread
constexpr double btc_slots = 9.5;
constexpr double btc_element_slots = 3; ///< more of them
constexpr double btc_loads = 2;         ///< as tiled_loads

int64_t outputs(const conv1d_problem &p) { return p.batch * p.channels * p.length; }

bool writes_state(const conv1d_problem &p) {
    return p.state_out.used() && p.sequences > 0 && p.channels > 0 && p.entries > 0;
}

/// Whether rows are more than one live sequence without a state.
bool has_features(const conv1d_problem &p) {
    return p.state_in.used() || p.pooled || p.varlen || p.seq_idx.used();
}

/// Whether fwd_bct_tiled knows by conv1d.fwd_masks which taps count: ids, but no states, and packed
/// sequences where its masks cost the least.
bool masked(const conv1d_problem &p) {
    if (p.state_in.used()) return false;
    return p.varlen ? conv1d_fwd_bct_taps(p.width) == 4 : p.seq_idx.used();
}

int64_t masks_bytes(const conv1d_problem &p) {
    return conv1d_masks_bytes(p.batch, p.length, conv1d_fwd_bct_taps(p.width));
}

/// Whether fwd_bct_tiled leaves outputs to fwd_bct_fix.
bool needs_fix(const conv1d_problem &p) {
    return has_features(p) && !masked(p) && !conv1d_takes_state(p);
}

bool fixes_everywhere(const conv1d_problem &p) { return p.pooled || p.varlen || p.seq_idx.used(); }

/// First tokens of sequences; how many more changes of ids and dead tokens add is not known.
int64_t fixed_outputs(const conv1d_problem &p) {
    const int64_t of_a_channel = std::min(p.batch * p.length, p.sequences * p.history());
    return needs_fix(p) ? of_a_channel * p.channels : 0;
}

int launches(const conv1d_problem &p) {
    return 1 + (conv1d_needs_offsets(p) ? 1 : 0) + (writes_state(p) ? 1 : 0);
}

conv1d_fwd_args args_of(const conv1d_problem &p, const conv1d_sanitized &from) {
    conv1d_fwd_args a{};
    conv1d_fill_args(a, p, from);
    a.ids_b = p.seq_idx.b;
    a.ids_t = p.seq_idx.t;
    a.sequences = p.sequences;
    a.state_wide = p.state_in.type == scalar::f32;
    return a;
}

/// What all kernels with vectors need, which `contiguous` is a rule of.
verdict vectors_applicable(const problem &problem, const profile &device, int64_t most_width,
                           verdict (*contiguous)(const conv1d_problem &)) {
    verdict v = conv1d_cuda_device(problem, device);
    if (!v.empty()) return v;
    const conv1d_problem &p = problem.conv1d();
    v = conv1d_vector_types(p);
    if (v.empty()) v = contiguous(p);
    if (!v.empty()) return v;
    if (p.width > most_width) return text("width=", p.width, " is over ", most_width);
    if (p.length > conv1d_fwd_most_length)
        return text("length=", p.length, " is over ", conv1d_fwd_most_length);
    return fits_memory(problem, device, conv1d_offsets_bytes(p));
}

conv1d_bct_cut tiled_cut(const conv1d_problem &p, bool aligned) {
    return conv1d_bct_cut_of(p.x.type, p.batch * p.channels, p.length, aligned);
}

/// What a step has of the problem: x, y, w, bias and, if `all`, what else outputs depend on; and
/// `masks`.
template <class Fill>
void add_output_step(pipeline &out, const conv1d_problem &p, const conv1d_sanitized &from, bool all,
                     const operand &masks, const Fill &fill) {
    step s;
    const auto role = [&](const conv1d_view &v, plait_role r) {
        return v.used() ? role_operand(r, false) : operand{};
    };
    s.operands = {role_operand(PLAIT_X, false),
                  role_operand(PLAIT_Y, true),
                  role_operand(PLAIT_W, false),
                  role(p.bias, PLAIT_BIAS),
                  all ? role(p.state_in, PLAIT_STATE_IN) : operand{},
                  all ? from.slots : operand{},
                  all ? from.spans : operand{},
                  all ? role(p.seq_idx, PLAIT_SEQ_IDX) : operand{},
                  masks};
    s.bytes_read = conv1d_bytes_read(p);
    s.bytes_written = conv1d_bytes_written(p);
    s.flops = conv1d_flops(p);
    conv1d_fwd_args args = args_of(p, from);
    const conv1d_launch l = fill(s, args);
    s.variant = l.variant;
    s.grid = l.grid;
    s.block = l.threads;
    s.smem_bytes = l.smem_bytes;
    s.args = step_args(args);
    out.steps.push_back(std::move(s));
}

/// conv1d.fwd_bct_fix.
void add_fix(pipeline &out, const conv1d_problem &p, const conv1d_sanitized &from) {
    add_output_step(out, p, from, true, {}, [&](step &s, conv1d_fwd_args &args) {
        s.kernel = "conv1d.fwd_bct_fix";
        const int64_t n = fixed_outputs(p);
        s.bytes_read = n * p.width * scalar_bytes(p.x.type);
        s.bytes_written = n * scalar_bytes(p.y.type);
        s.flops = 2 * n * p.width;
        return conv1d_fwd_bct_fix_launch(args, fixes_everywhere(p));
    });
}

/// conv1d.fwd_masks; the step behind it reads what is returned.
operand add_masks(pipeline &out, const conv1d_problem &p, const conv1d_sanitized &from) {
    const int now = static_cast<int>(out.steps.size());
    operand masks = piece_operand(out.work.book("masks", masks_bytes(p), now, now + 1), true);
    add_output_step(out, p, from, true, {}, [&](step &s, conv1d_fwd_args &args) {
        s.kernel = "conv1d.fwd_masks";
        s.operands[1] = masks; // in the place of y
        for (const size_t unused : {0u, 2u, 3u}) s.operands[unused] = operand{};
        s.bytes_read = p.batch * p.length * 4;
        s.bytes_written = masks_bytes(p);
        s.flops = 0;
        return conv1d_fwd_masks_launch(args, conv1d_fwd_bct_taps(p.width));
    });
    masks.written = false;
    return masks;
}

/// How the kernel that writes y takes rows that are more than one live sequence.
enum class features { inside, fixed };

/// The offsets, the masks, the kernel that writes y, what mends it, the state.
template <class Main>
pipeline steps_of(const conv1d_problem &p, const profile &device, features how, const Main &main) {
    pipeline out;
    const bool has_y = outputs(p) > 0, inside = how == features::inside;
    const bool with_masks = has_y && !inside && masked(p),
               with_fix = has_y && !inside && needs_fix(p);
    // Behind conv1d.offsets.
    const int last =
        (has_y ? 1 : 0) + (with_masks ? 1 : 0) + (with_fix ? 1 : 0) + (writes_state(p) ? 1 : 0);
    const conv1d_sanitized from = conv1d_add_offsets(out, p, last);
    const operand masks = with_masks ? add_masks(out, p, from) : operand{};
    if (has_y) add_output_step(out, p, from, inside || conv1d_takes_state(p), masks, main);
    if (with_fix) add_fix(out, p, from);
    // A pool without rows to write: a plan that is not empty has a step all the same.
    if (writes_state(p) || out.steps.empty()) conv1d_add_state(out, p, from);
    conv1d_start_early(out, device, false);
    out.work.seal();
    return out;
}

} // namespace

// ---- conv1d.fwd.cuda.any ---------------------------------------------------------------------

verdict conv1d_cuda_fwd_any_applicable(const problem &problem, const profile &device) {
    const verdict shared = conv1d_cuda_device(problem, device);
    if (!shared.empty()) return shared;
    return fits_memory(problem, device, conv1d_offsets_bytes(problem.conv1d()));
}

cost conv1d_cuda_fwd_any_estimate(const problem &problem, const profile &device) {
    const conv1d_problem &p = problem.conv1d();
    return conv1d_cuda_cost(p, device, 0.8,
                            any_slots + any_slots_per_tap * static_cast<double>(p.width),
                            static_cast<double>(outputs(p)), launches(p));
}

pipeline conv1d_cuda_fwd_any_build(const problem &problem, const profile &device) {
    const conv1d_problem &p = problem.conv1d();
    return steps_of(p, device, features::inside, [&](step &s, conv1d_fwd_args &args) {
        s.kernel = "conv1d.fwd_any";
        args.channels_inner = p.y.c < p.y.t;
        return conv1d_fwd_any_launch(p.accumulator, outputs(p));
    });
}

// ---- conv1d.fwd.cuda.bct_tiled ---------------------------------------------------------------

verdict conv1d_cuda_fwd_bct_tiled_applicable(const problem &problem, const profile &device) {
    const verdict v =
        vectors_applicable(problem, device, conv1d_fwd_most_width, conv1d_time_contiguous);
    if (!v.empty()) return v;
    const conv1d_problem &p = problem.conv1d();
    const int64_t rows = p.batch * p.channels;
    const conv1d_bct_cut cut = tiled_cut(p, false);
    if (cut.tiles * cut.lanes > conv1d_bct_most_lanes)
        return text("a row takes ", cut.tiles * cut.lanes, " threads; the limit is ",
                    conv1d_bct_most_lanes);
    if (conv1d_bct_blocks(cut, p.batch, p.channels) > conv1d_most_blocks)
        return text(rows, " rows of ", cut.tiles, " tiles are more than a grid holds");
    if (p.sequences > conv1d_fix_most_sequences)
        return text(p.sequences, " sequences are over ", conv1d_fix_most_sequences);
    const conv1d_fix_cut fix = conv1d_fix_cut_of(p.length, p.channels, fixes_everywhere(p));
    if (needs_fix(p) && p.batch * fix.groups > conv1d_most_blocks / fix.chunks)
        return text(rows, " rows of ", fix.chunks, " pieces are more than a grid holds");
    const int64_t masks = masked(p) ? masks_bytes(p) + PLAIT_WORKSPACE_ALIGNMENT - 1 : 0;
    return fits_memory(problem, device, conv1d_offsets_bytes(p) + masks);
}

cost conv1d_cuda_fwd_bct_tiled_estimate(const problem &problem, const profile &device) {
    const conv1d_problem &p = problem.conv1d();
    const auto cut = tiled_cut(p, conv1d_rows_aligned(p, p.x) && conv1d_rows_aligned(p, p.y));
    const double rows = static_cast<double>(p.batch * p.channels);
    const double threads = rows * static_cast<double>(cut.tiles) * cut.lanes;
    // Vectors that a row does not fill leave threads idle.
    const double used =
        static_cast<double>(outputs(p)) / (threads * cut.vectors * conv1d_vector(p.x.type));
    const double fixed = static_cast<double>(fixed_outputs(p)) / static_cast<double>(outputs(p));
    const double width = static_cast<double>(p.width);
    return conv1d_cuda_cost(
        p, device, masked(p) ? masked_share : tiled_share,
        (tiled_slots + width) / used + fixed * (fix_slots + fix_slots_per_tap * width),
        threads * tiled_loads, launches(p) + (needs_fix(p) || masked(p) ? 1 : 0));
}

pipeline conv1d_cuda_fwd_bct_tiled_build(const problem &problem, const profile &device) {
    const conv1d_problem &p = problem.conv1d();
    return steps_of(p, device, features::fixed, [&](step &s, conv1d_fwd_args &args) {
        s.kernel = "conv1d.fwd_bct_tiled";
        args.rows_packed = conv1d_rows_packed(p, p.x);
        if (!masked(p) && conv1d_takes_flat(p)) return conv1d_fwd_bct_flat_launch(args);
        return conv1d_fwd_bct_tiled_launch(
            args, conv1d_rows_aligned(p, p.x) && conv1d_rows_aligned(p, p.y), masked(p),
            conv1d_takes_state(p));
    });
}

// ---- conv1d.fwd.cuda.bct ---------------------------------------------------------------------

verdict conv1d_cuda_fwd_bct_applicable(const problem &problem, const profile &device) {
    const verdict v =
        vectors_applicable(problem, device, conv1d_fwd_bct_most_width, conv1d_time_contiguous);
    if (!v.empty()) return v;
    const conv1d_problem &p = problem.conv1d();
    if (p.varlen) return "packed sequences are in use";
    if (p.seq_idx.used()) return "seq_idx is in use";
    if (!conv1d_rows_aligned(p, p.x)) return "rows of x do not begin at multiples of 16 bytes";
    if (!conv1d_rows_aligned(p, p.y)) return "rows of y do not begin at multiples of 16 bytes";
    return "";
}

cost conv1d_cuda_fwd_bct_estimate(const problem &problem, const profile &device) {
    const conv1d_problem &p = problem.conv1d();
    const double rows = static_cast<double>(p.batch * p.channels);
    // A chunk that the row does not fill leaves threads idle.
    const double chunk = conv1d_bct_threads * conv1d_vector(p.x.type);
    const double chunks = static_cast<double>(
        conv1d_ceil_div(p.length, conv1d_bct_threads * int64_t{conv1d_vector(p.x.type)}));
    const double used = static_cast<double>(p.length) / (chunks * chunk);
    return conv1d_cuda_cost(p, device, bct_share, (bct_slots + static_cast<double>(p.width)) / used,
                            rows * conv1d_bct_threads * used, launches(p));
}

pipeline conv1d_cuda_fwd_bct_build(const problem &problem, const profile &device) {
    const conv1d_problem &p = problem.conv1d();
    return steps_of(p, device, features::inside, [&](step &s, conv1d_fwd_args &args) {
        s.kernel = "conv1d.fwd_bct";
        return conv1d_fwd_bct_launch(args);
    });
}

// ---- conv1d.fwd.cuda.btc ---------------------------------------------------------------------

namespace {

/// Channels of a thread: those of a vector where everything is aligned to it, else 1.
int btc_vector(const conv1d_problem &p) {
    const int v = conv1d_btc_vector(p.x.type, conv1d_btc_taps(p.width));
    const int64_t bytes = int64_t{v} * scalar_bytes(p.x.type);
    const auto fits = [&](const conv1d_view &t) {
        return t.align >= bytes && (p.batch <= 1 || t.b % v == 0) &&
               (p.length <= 1 || t.t % v == 0);
    };
    return p.channels % v == 0 && fits(p.x) && fits(p.y) ? v : 1;
}

btc_pairs btc_pairs_of(const conv1d_problem &p) {
    return btc_vector(p) > 1 || has_features(p) ? btc_pairs::none : conv1d_btc_pairs_of(p);
}

int64_t btc_groups(const conv1d_problem &p) {
    if (const btc_pairs pairs = btc_pairs_of(p); pairs != btc_pairs::none)
        return conv1d_btc_pairs_groups(p.channels, pairs == btc_pairs::odd);
    return conv1d_btc_groups(p.channels, conv1d_btc_taps(p.width), btc_vector(p));
}

/// Variants "full": anything but x, w and bias enters, or rows are shorter than a tile.
bool btc_full(const conv1d_problem &p) {
    const int taps = conv1d_btc_taps(p.width);
    const bool tiled = conv1d_btc_tiled(taps, btc_vector(p), false);
    return has_features(p) || (tiled && p.length < conv1d_btc_tile(taps));
}

int32_t btc_strip(const conv1d_problem &p, const profile &device) {
    const int taps = conv1d_btc_taps(p.width), vector = btc_vector(p);
    const bool full = btc_full(p);
    if (btc_pairs_of(p) != btc_pairs::none) return conv1d_btc_pairs_tile;
    if (conv1d_btc_tiled(taps, vector, full)) return conv1d_btc_tile(taps);
    const int64_t threads =
        device.sms * conv1d_btc_threads * conv1d_btc_blocks_per_sm(p.x.type, taps, vector, full);
    return conv1d_btc_strip(conv1d_btc_longest_strip(p.x.type, taps, vector), p.batch, p.length,
                            btc_groups(p), threads);
}

} // namespace

verdict conv1d_cuda_fwd_btc_applicable(const problem &problem, const profile &device) {
    const verdict v =
        vectors_applicable(problem, device, conv1d_fwd_most_width, conv1d_channels_contiguous);
    if (!v.empty()) return v;
    const conv1d_problem &p = problem.conv1d();
    const int64_t groups = btc_groups(p);
    if (groups > conv1d_btc_most_groups)
        return text(p.channels, " channels take ", groups, " threads; the limit is ",
                    conv1d_btc_most_groups);
    const int64_t strips = conv1d_ceil_div(p.length, btc_strip(p, device));
    if (p.batch > conv1d_most_blocks / strips ||
        p.batch * strips > conv1d_most_blocks / groups * conv1d_btc_threads)
        return text(p.batch, " rows of ", strips, " strips are more than a grid holds");
    return "";
}

cost conv1d_cuda_fwd_btc_estimate(const problem &problem, const profile &device) {
    const conv1d_problem &p = problem.conv1d();
    const int vector = btc_vector(p);
    const int64_t strips = conv1d_ceil_div(p.length, btc_strip(p, device));
    const double threads =
        static_cast<double>(btc_groups(p)) * static_cast<double>(p.batch * strips);
    return conv1d_cuda_cost(p, device, vector > 1 ? btc_share : btc_element_share,
                            btc_slots + (vector > 1 ? 0 : btc_element_slots) +
                                static_cast<double>(p.width),
                            threads * btc_loads, launches(p));
}

pipeline conv1d_cuda_fwd_btc_build(const problem &problem, const profile &device) {
    const conv1d_problem &p = problem.conv1d();
    return steps_of(p, device, features::inside, [&](step &s, conv1d_fwd_args &args) {
        s.kernel = "conv1d.fwd_btc";
        if (const btc_pairs pairs = btc_pairs_of(p); pairs != btc_pairs::none)
            return conv1d_fwd_btc_pairs_launch(args, pairs == btc_pairs::odd);
        return conv1d_fwd_btc_launch(args, btc_vector(p), btc_strip(p, device), btc_full(p));
    });
}

} // namespace plait::impl
