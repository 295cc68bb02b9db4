// The numbers of the CUDA cost model of wht, in one place so that they can be argued with.
#pragma once

#include "lib/cuda/wht/columns_layout.h"

#include <cstddef>

namespace plait::impl::wht_cost {

/// Shares of the copy bandwidth that a pass reaches on a full device: time of a copy of the same
/// bytes / time of the pass, timed kernel by kernel on an H200 over 1 GiB (16-bit: 512 MiB). The
/// shape of the curves is what matters: where occupancy, exchanges or short runs begin to cost.
/// Other devices keep the shape, since layouts and limits of an SM are much the same.
enum class types { f32, f64, half, mixed }; ///< mixed: 16 bits on one side, f32 on the other

constexpr types types_of(scalar x, scalar y) {
    if (x != y) return types::mixed;
    return x == scalar::f64 ? types::f64 : x == scalar::f32 ? types::f32 : types::half;
}

// clang-format off: a column is log2 of the length, 0..16
inline constexpr double block_vector[4][17] = {
    {.95, .94, .94, .94, .94, .95, .94, .95, .95, .95, .94, .92, .92, .91, .92, .89, .75}, // f32
    {.95, .94, .94, .94, .94, .93, .93, .95, .93, .93, .95, .92, .93, .93, .88, .81, .75}, // f64
    {.94, .94, .94, .94, .94, .94, .94, .94, .92, .92, .97, .97, .97, .96, .86, .75, .75}, // half
    {.96, .96, .96, .96, .96, .96, .96, .96, .96, .96, .96, .96, .96, .96, .87, .87, .75}, // mixed
};
inline constexpr double block_element[4][17] = {
    {.98, .95, .94, .93, .92, .90, .94, .98, .98, .98, .97, .96, .96, .96, .92, .84, .75}, // f32
    {.96, .97, .97, .97, .97, .97, .97, .97, .97, .97, .96, .97, .97, .97, .88, .81, .75}, // f64
    {.60, .53, .51, .50, .49, .47, .56, .65, .67, .68, .67, .67, .67, .65, .58, .49, .75}, // half
    {.86, .86, .86, .86, .86, .86, .86, .86, .86, .86, .86, .85, .85, .87, .82, .68, .75}, // mixed
};
// A column is log2 of the rows of a column, 1..12.
inline constexpr double columns_tiled[4][12] = {
    {.97, .97, .97, .97, .96, .97, .95, .94, .92, .86, .83, .65}, // f32
    {.97, .98, .98, .98, .98, .98, .98, .92, .91, .87, .81, .63}, // f64
    {.79, .80, .80, .80, .79, .96, .94, .86, .84, .74, .62, .52}, // half
    {.99, .99, .99, .99, .99, .99, .99, .99, .97, .87, .84, .64}, // mixed
};
inline constexpr double columns_shuffle[4][5] = {
    {.99, .99, .99, .98, .95}, // f32
    {.99, .99, .98, .97, .95}, // f64
    {.99, .99, .99, .98, .82}, // half
    {.99, .99, .99, .99, .99}, // mixed
};
// clang-format on

/// Butterflies with their shuffles and exchanges, per addition that the device could do. It binds
/// where arithmetic is slow beside the memory: F64 on devices that have little of it.
inline constexpr double additions = 0.5;

/// A pass that finds its data in the L2 cache moves it this much faster; for that all of it must
/// take no more than this share of the cache.
inline constexpr double l2_speedup = 1.3;
inline constexpr double l2_share = 0.4;

/// From the first load of a block to its last store with nothing else running: two trips to memory
/// and the exchanges.
inline constexpr double block_latency_seconds = 1e-6;

/// Lengths beyond the tables cost what the longest one does.
constexpr int column(int log, int first, int last) {
    return log < first ? 0 : log > last ? last - first : log - first;
}

constexpr double block_share(scalar x, scalar y, int log_n, bool vector) {
    const auto row = static_cast<size_t>(types_of(x, y));
    return (vector ? block_vector : block_element)[row][column(log_n, 0, 16)];
}

constexpr double columns_share(bool shuffle, scalar x, scalar y, int log_m) {
    const auto row = static_cast<size_t>(types_of(x, y));
    return shuffle ? columns_shuffle[row][column(log_m, 1, 5)]
                   : columns_tiled[row][column(log_m, 1, 12)];
}

} // namespace plait::impl::wht_cost
