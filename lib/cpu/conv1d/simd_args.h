// How the SIMD kernels of conv1d cut their work, and their scratch.
#pragma once

#include "lib/cpu/conv1d/conv1d_args.h"
#include "lib/cpu/conv1d/sequences_layout.h"
#include "lib/cpu/team_layout.h"

#include <algorithm>

namespace plait::impl::cpu {

/// Taps that have a place in the buffers of a thread.
constexpr int64_t conv1d_simd_max_width = 256;

/// Outputs that are stored at a time: as many as the store queue of a core takes while it goes on
/// with the next ones, and whole groups of vectors.
constexpr int64_t conv1d_simd_burst = 512;

/// Where y lies across the lines that are computed, elements go out one by one, and a cache line
/// waits for its next ones: in vain where rows lie a multiple of this apart and so share few places
/// of a cache. There runs of a whole line go out (f32 [4, 4096, 256] from BTC to BCT: 77 -> 10 ms).
constexpr int64_t conv1d_simd_crowded = 1024;
constexpr int64_t conv1d_simd_turned = 64;

/// One thread's place in the team that shares the work.
struct conv1d_team {
    int tid, size;
    void (*barrier)();

    int64_t begin(int64_t count) const {
        return count / size * tid + std::min<int64_t>(count % size, tid);
    }
    int64_t end(int64_t count) const {
        return count / size * (tid + 1) + std::min<int64_t>(count % size, tid + 1);
    }
    void wait() const {
        if (size > 1) barrier();
    }
};

/// The unit of work is a block of channels of one piece of a sequence. It depends on the problem
/// alone, and so do the sums over it.
struct conv1d_simd_layout {
    bool along_time;  ///< vectors lie along time, else across channels
    int64_t channels; ///< of a block
    int64_t blocks;
    int64_t tokens;      ///< of a piece
    int64_t step;        ///< tokens that are computed at a time
    int64_t line;        ///< elements of a buffer line: a step along time, or a block of channels
    int64_t rows;        ///< lines of x in the buffers: of a step with its history
    int64_t turned;      ///< forward: lines of y that leave together, across; else 0
    int64_t table_bytes; ///< of conv1d_sequences
    int64_t slice_bytes; ///< buffers of one thread
    int64_t strips;      ///< backward: groups of pieces, each with sums of its own
    int64_t sum_bytes;   ///< backward: float64 sums [strip][width + 1][channel]

    int64_t bytes(int threads) const {
        if (table_bytes == INT64_MAX) return INT64_MAX;
        return table_bytes + slice_bytes * std::max(1, threads) + sum_bytes;
    }
};

/// Opening a parallel region takes as long as one core takes for about this many elements.
constexpr int64_t conv1d_simd_thread_elements = int64_t{1} << 13;

inline int conv1d_simd_team(const conv1d_problem &p, int threads) {
    const double elements = static_cast<double>(p.batch) * static_cast<double>(p.channels) *
                            static_cast<double>(p.length + p.entries);
    const double busy = elements / static_cast<double>(conv1d_simd_thread_elements);
    return whole_team(static_cast<int64_t>(std::min(busy, 1e9)), threads);
}

/// Whether an output is stored past the caches: whole cache lines only, for a line that is written
/// in two ways is written slowly. Lines along time are long, their ends do not count.
inline bool conv1d_simd_streams(const conv1d_args &a, const conv1d_simd_layout &l,
                                const conv1d_view &v, const void *base) {
    if (!a.stream || l.along_time) return a.stream;
    const int64_t size = scalar_bytes(v.type);
    return v.c == 1 && v.t * size % 64 == 0 && v.b * size % 64 == 0 &&
           reinterpret_cast<uintptr_t>(base) % 64 == 0;
}

inline conv1d_simd_layout conv1d_simd_layout_of(const conv1d_problem &p) {
    const auto distance = [](int64_t stride) { return stride < 0 ? -stride : stride; };
    const auto up = [](int64_t n, int64_t to) { return (n + to - 1) / to * to; };
    const bool backward = p.direction == conv1d_direction::backward;
    constexpr int64_t slack = 64; ///< what whole groups of vectors may touch behind a line
    conv1d_simd_layout l{};
    // Where both axes are near one another (one channel, one token) long rows go along time.
    const bool short_rows = p.length < 16 && p.channels > 1;
    const auto turned = [&](int64_t along, int64_t other) -> int64_t {
        const int64_t size = scalar_bytes(p.y.type);
        const bool crowded = distance(along) * size % conv1d_simd_crowded == 0;
        return !backward && !short_rows && crowded && distance(other) < distance(along)
                   ? conv1d_simd_turned / size
                   : 0;
    };
    l.along_time = p.x.t == 1 ? !(short_rows || (p.x.c == 1 && p.length < p.channels))
                              : p.x.c != 1 && distance(p.x.t) < distance(p.x.c) && !short_rows;
    const int64_t width = scalar_bytes(p.accumulator);
    if (l.along_time) {
        l.turned = turned(p.y.t, p.y.c);
        l.channels = l.turned > 0 ? l.turned : 8;
        l.tokens = l.turned > 0 ? 512 : backward ? 1024 : 2048;
        l.step = l.tokens;
        // x, y (backward: x, dy, g, dx) and ids, each with history on both sides, and the taps.
        l.line = up(l.step + 2 * p.width, 16) + slack;
        l.rows = 1;
        l.slice_bytes = width * ((backward ? 5 : 3 + l.turned) * l.line + 2 * up(p.width + 1, 16));
    } else {
        // Long runs of a row for the memory; decoding has few rows and shares them among threads;
        // what wide convolutions keep of x must fit a cache.
        const bool long_runs = p.length >= 64 && p.width <= 8;
        l.turned = turned(p.y.c, p.y.t);
        l.channels = p.width > 16 ? 64 : backward || l.turned > 0 ? 256 : long_runs ? 2048 : 512;
        l.tokens = 256;
        l.step = backward ? std::max<int64_t>(16, up(p.width, 16)) : 1;
        l.line = l.channels;
        l.rows = backward ? l.step + p.width : p.width;
        // x, y (backward: x, dy, g, dx), the taps and the bias (backward: their sums too), ids.
        l.slice_bytes = width * ((backward ? 4 * l.rows : l.rows + 1 + l.turned) * l.line +
                                 (backward ? 2 : 1) * (p.width + 2) * l.line +
                                 up(l.tokens + 2 * p.width, 16) + slack);
    }
    l.slice_bytes = up(l.slice_bytes, 64) + 64;
    l.blocks = (p.channels + l.channels - 1) / l.channels;
    l.table_bytes = conv1d_table_bytes(p);
    if (p.channels > int64_t{1} << 40)
        l.table_bytes = INT64_MAX; // the sums would be beyond 64 bits
    if (backward) {
        // Enough units for many threads; the sums stay far smaller than the tensors.
        const int64_t wanted = l.blocks > 0 ? (512 + l.blocks - 1) / l.blocks : 1;
        const int64_t pieces = p.length / l.tokens + 1;
        const int64_t most = p.varlen ? pieces + p.sequences : pieces * p.sequences;
        l.strips = std::max<int64_t>(1, std::min(wanted, most));
        l.sum_bytes = up(8 * l.strips * (p.width + 1) * p.channels, 64);
    }
    return l;
}

} // namespace plait::impl::cpu
