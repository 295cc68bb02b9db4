// Proofs about a tile that hold for every kernel, by walking over all of its threads.
#pragma once

#include "lib/cuda/common/tile_layout.h"

#include <cstdint>
#include <vector>

namespace plait_test {

/// Every phase holds every element once.
void check_phases_are_bijections(const plait::impl::tile_layout &t);

/// Each bit of `transformed` has its butterflies in one phase, in registers or among the lanes of a
/// warp, and both partners are there.
void check_butterflies(const plait::impl::tile_layout &t, uint32_t transformed);

/// Words are distinct and within tile_words; a warp exchange stays within a warp; every warp-wide
/// shared access takes the fewest passes over the banks.
void check_exchanges(const plait::impl::tile_layout &t, int word_bytes);

/// 32-byte sectors that accesses of `bytes` at these byte addresses touch. Each must be aligned.
int sectors(const std::vector<int64_t> &addresses, int bytes);

/// The bits of a transform in the order of their butterflies: of two tiles, of the tile, of halves.
std::vector<int> stage_order(const plait::impl::tile_layout &t, int log_rounds, bool parked);

} // namespace plait_test
