// The numbers of the CUDA cost model of wht, in one place so that they can be argued with.
#pragma once

#include "lib/cuda/wht/columns_layout.h"

#include <cstddef>

namespace plait::impl::wht_cost {

/// Shares of the copy bandwidth that a pass reaches on a full device: time of a copy of the same
/// bytes / time of the pass, timed kernel by kernel on an H200 over 1 GiB (16-bit: 512 MiB). The
/// shape of the curves is what matters: where occupancy, exchanges or short runs begin to cost.
/// Other devices keep the shape, since layouts and limits of an SM are much the same.
/// Integers are taken as floats of their size.
enum class types { f32, f64, half, mixed }; ///< mixed: 16 bits on one side, f32 on the other

constexpr types types_of(scalar x, scalar y) {
    if (x != y) return types::mixed;
    return wht_is_wide(x) ? types::f64 : wht_is_half(x) ? types::half : types::f32;
}

// clang-format off: a column is log2 of the length, 0..16
inline constexpr double block_vector[4][17] = {
    {.99, .99, .99, .99, .99, .99, .99, .99, .99, .99, .99, .99, .99, .99, .98, .96, .84}, // f32
    {.97, .98, .98, .97, .97, .98, .98, .98, .98, .99, .98, .98, .98, .98, .91, .82, .82}, // f64
    {.98, .98, .97, .97, .98, .98, .98, .99, .99, .99, .99, .99, .99, .99, .89, .80, .62}, // half
    {.92, .92, .92, .92, .92, .92, .92, .92, .92, .92, .92, .97, .97, .97, .97, .87, .87}, // mixed
};
inline constexpr double block_element[4][17] = {
    {.98, .94, .92, .90, .88, .87, .93, .99, .98, .97, .97, .96, .96, .96, .94, .85, .82}, // f32
    {.97, .97, .99, .97, .97, .98, .97, .98, .97, .98, .97, .98, .97, .98, .92, .84, .84}, // f64
    {.61, .49, .48, .46, .45, .44, .50, .60, .65, .66, .68, .67, .67, .65, .59, .53, .57}, // half
    {.85, .85, .85, .85, .85, .85, .85, .85, .85, .85, .85, .87, .84, .87, .83, .70, .70}, // mixed
};
// A column is log2 of the rows of a column, 1..12: rows 2^12 elements apart, and 2^15 or more.
inline constexpr double columns_tiled_near[4][12] = {
    {.98, .98, .97, .98, .96, .97, .97, .97, .95, .91, .87, .69},         // f32
    {.97, .98, .98, .99, .99, .99, .99, .98, .94, .90, .85, .66},         // f64
    {.79, .81, .80, .80, .99, .98, .96, .98, .90, .78, .62, .45},         // half
    {1.02, 1.02, 1.02, 1.02, 1.01, 1.02, 1.02, 1.02, .96, .92, .87, .62}, // mixed
};
inline constexpr double columns_tiled_far[4][12] = {
    {.97, .97, .97, .98, .96, .97, .96, .95, .90, .81, .80, .68},         // f32
    {.97, .98, .98, .98, .98, .98, .97, .96, .88, .86, .78, .65},         // f64
    {.80, .81, .80, .80, .99, .96, .93, .94, .88, .79, .62, .45},         // half
    {1.02, 1.02, 1.02, 1.02, 1.01, 1.01, 1.01, 1.00, .90, .83, .81, .61}, // mixed
};
inline constexpr double columns_shuffle[4][5] = {
    {.99, .99, .99, .98, .97},      // f32
    {.99, .99, .98, .97, .95},      // f64
    {1.00, 1.00, 1.00, .99, .83},   // half
    {1.03, 1.02, 1.02, 1.02, 1.02}, // mixed
};
// clang-format on

/// wht.mma16, a column is log2 of the length, 7..15. Up to 2^13 it is 1 to 2 percent faster than
/// wht.block; that is not worth sums which are cut instead of rounded, so that its share there is
/// the other's, less a little. Element by element (.50 measured) it must stay ahead where it is
/// with vectors: the choice, and with it the last bits, may not depend on the alignment.
inline constexpr double mma16_vector[9] = {.98, .98, .98, .98, .98, .98, .98, .97, .94};
inline constexpr double mma16_element = .60;
/// Beside the latency of wht.block, for few rows: below zero where halving the exchanges pays.
inline constexpr double mma16_latency_seconds[9] = {.8e-6, .8e-6,  .8e-6, .8e-6, .8e-6,
                                                    .8e-6, -.3e-6, .1e-6, 1.4e-6};
inline constexpr double mma16_both_latency_seconds = -.1e-6; ///< both halves of 2^15 at once

/// wht.fused, of what wht.block reaches; 16-bit rows of 2^15, which it cannot ask for ahead: an
/// H200.
inline constexpr double fused = .97, fused_half_longest = .62;

/// wht.block_factor: memory alone, beside which additions of f32 and f64 bind; 16-bit types, whose
/// factors are no additions, an H200 at m 2^9.
inline constexpr double block_factor = .85, block_factor_half = .57;

/// wht.kron_tf32 with one and with three terms, of a first probe at 2^14 on an H200; shorter rows
/// have shorter products and are taken as the same.
inline constexpr double kron_tf32 = .73, kron_3xtf32 = .38;
/// wht.kron_int8: operations of an element and modulus beside the products: an estimate.
inline constexpr double kron_int8_operations = 40;

/// Lengths beyond the tables cost what the longest one does.
constexpr int column(int log, int first, int last) {
    return log < first ? 0 : log > last ? last - first : log - first;
}

/// wht.l2: log2 of the bytes of a row as accumulators, 18..24. 16-bit rows pass through L2 as f32,
/// three bytes there for each that a copy moves, others two.
inline constexpr double l2_float[7] = {.62, .62, .61, .61, .60, .60, .61};
inline constexpr double l2_half[7] = {.37, .37, .35, .37, .39, .35, .35};
constexpr double l2_pass_share(bool half, int log_bytes) {
    return (half ? l2_half : l2_float)[column(log_bytes, 18, 24)];
}
/// Rows and tiles in work must take no more of the L2 cache than this.
inline constexpr double l2_fill = 0.8;
/// From the first load to the last store of a row with nothing else running: tickets, two passes,
/// and what one tells the other.
inline constexpr double l2_latency_seconds = 3.8e-6;

/// wht.cluster: the four lengths from 2^16 (f64: 2^15) up.
inline constexpr double cluster[3][4] = {
    {.83, .80, .73, .63}, // f32
    {.90, .85, .76, .64}, // f64
    {.56, .51, .43, .37}, // half: exchanged as f32, twice the bytes that memory moves
};
constexpr double cluster_share(scalar x, int log_n) {
    const size_t row = x == scalar::f32 ? 0 : x == scalar::f64 ? 1 : 2;
    return cluster[row][log_n - (row == 1 ? 15 : 16)];
}
inline constexpr double cluster_latency_seconds = 2.5e-6;

/// Butterflies with their shuffles and exchanges, per addition that the device could do. It binds
/// where arithmetic is slow beside the memory: F64 on devices that have little of it.
inline constexpr double additions = 0.5;

/// A pass that finds its data in the L2 cache moves it this much faster; for that all of it must
/// take no more than this share of the cache.
inline constexpr double l2_speedup = 1.3;
inline constexpr double l2_share = 0.4;

/// What a launch that has little to do takes beside its bytes and a launch: of 150 problems on an
/// H200, replayed from a graph.
inline constexpr double block_latency_seconds = 0.35e-6;
/// And until memory moves at its full rate, where there are so many bytes that it comes to that.
inline constexpr double ramp_seconds = 0.8e-6, ramp_bytes = 2 << 20;
constexpr double start_seconds(double bytes) {
    const double ramp = bytes / ramp_bytes;
    return block_latency_seconds + ramp_seconds * (ramp < 1 ? ramp : 1);
}

/// An SM whose neighbours are idle moves this much more than its share of the bandwidth.
inline constexpr double lone_speedup = 1.4;
constexpr double busy_memory(double tiles, double sms) {
    const double part = lone_speedup * tiles / sms;
    return part < 1 ? part : 1;
}

constexpr double block_share(scalar x, scalar y, int log_n, bool vector) {
    const auto row = static_cast<size_t>(types_of(x, y));
    return (vector ? block_vector : block_element)[row][column(log_n, 0, 16)];
}

/// The element-wise kernel takes any rows, and is the better one at some lengths.
constexpr bool element_is_faster(scalar x, scalar y, int log_n) {
    return block_share(x, y, log_n, false) > block_share(x, y, log_n, true) + 0.01;
}

constexpr double mma16_share(int log_n, bool vector) {
    return vector ? mma16_vector[column(log_n, 7, 15)] : mma16_element;
}

constexpr double columns_share(bool shuffle, scalar x, scalar y, int log_m, int log_inner) {
    const auto row = static_cast<size_t>(types_of(x, y));
    if (shuffle) return columns_shuffle[row][column(log_m, 1, 5)];
    const double near = columns_tiled_near[row][column(log_m, 1, 12)];
    const double far = columns_tiled_far[row][column(log_m, 1, 12)];
    return near + (far - near) / 3 * column(log_inner, 12, 15);
}

} // namespace plait::impl::wht_cost
