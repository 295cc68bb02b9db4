// Walks of the kernels around the passes of a Walsh-Hadamard transform.
#pragma once

#include "lib/cuda/wht/around_layout.h"
#include "src/planner/profile.h"

#include <algorithm>
#include <vector>

namespace plait::impl {

/// Axes, outermost first, of K tensors that are walked together.
template <int K> using wht_way = std::vector<wht_walk_axis<K>>;

/// Neighbours that every tensor has packed behind one another become one; axes of one are dropped.
template <int K> wht_way<K> merged(const wht_way<K> &way) {
    wht_way<K> out;
    for (const wht_walk_axis<K> &axis : way) {
        if (axis.length == 1) continue;
        bool packed = !out.empty();
        for (int k = 0; packed && k < K; ++k)
            packed = out.back().stride[k] == axis.stride[k] * axis.length;
        if (packed) {
            const int64_t outer = out.back().length;
            out.back() = axis;
            out.back().length *= outer;
        } else {
            out.push_back(axis);
        }
    }
    return out;
}

/// False where more axes are left than a walk has. `tile`: elements, no more than wht_walk_tile.
template <int K> bool make_walk(const wht_way<K> &way, int tile, wht_walk<K> *walk) {
    const wht_way<K> axes = merged<K>(way);
    wht_walk<K> w{};
    w.lines = w.length = 1;
    if (!axes.empty()) {
        w.length = axes.back().length;
        std::copy(axes.back().stride, axes.back().stride + K, w.step);
    }
    if (axes.size() > wht_walk_most_axes + 1) return false;
    for (size_t a = axes.size(); a-- > 1;) {
        w.axis[w.axes++] = axes[a - 1];
        w.lines *= axes[a - 1].length;
    }
    w.part = static_cast<int32_t>(std::clamp<int64_t>(w.length, 1, tile));
    w.lines_per_tile = std::min(wht_walk_most_lines, std::max(1, tile / w.part));
    w.chunks = std::max<int64_t>(1, (w.length + w.part - 1) / w.part);
    w.magic =
        ((uint64_t{1} << 32) + static_cast<uint64_t>(w.part) - 1) / static_cast<uint64_t>(w.part);
    w.tiles = w.length == 0 ? 0 : (w.lines + w.lines_per_tile - 1) / w.lines_per_tile * w.chunks;
    *walk = w;
    return true;
}

/// Tiles of the most elements that still give every multiprocessor some of them.
inline int wht_tile_for(int64_t elements, const profile &device) {
    int tile = wht_walk_tile;
    while (tile > wht_walk_threads && elements / tile < 4 * device.sms) tile /= 2;
    return tile;
}

} // namespace plait::impl
