// conv1d.bwd_marks: which tokens are at a border of their sequence, for conv1d.bwd_bct, which are
// of none, and which tiles have such: bwd_marks_layout.h. A warp a word, a lane a token; then a
// warp a tile, a lane a vector. Bytes: ids twice, and 1/4 or 1 a token. Latency of two trips to
// memory.
#pragma once

#include "lib/cuda/common/predecessor.cuh"
#include "lib/cuda/conv1d/bwd_access.cuh"
#include "lib/cuda/conv1d/bwd_marks_layout.h"

namespace plait::impl::cuda {

/// Whether all taps of a live token meet what they meet in a row that is one sequence without a
/// state.
__device__ __forceinline__ bool conv1d_bwd_inner(const conv1d_bwd_args &a, const conv1d_sequence &s,
                                                 int64_t b, int64_t t) {
    bool inner = t - s.begin >= a.width - 1 || (s.begin == 0 && !a.state_in);
    if (a.seq_idx)
        for (int j = 1; j < a.width && j <= t; ++j)
            inner = inner && conv1d_id(a, b, t - j) == conv1d_id(a, b, t);
    return inner;
}

/// The field of a live token.
__device__ __forceinline__ uint32_t conv1d_bwd_field(const conv1d_bwd_args &a,
                                                     const conv1d_sequence &s, int64_t b,
                                                     int64_t t) {
    uint32_t field = ~0u >> (32 - 32 / a.fields);
    for (int d = 1; d < a.width; ++d)
        if (t - d < s.begin || (a.seq_idx && conv1d_id(a, b, t - d) != conv1d_id(a, b, t)))
            field &= ~(1u << d);
    return field;
}

/// Whether all tokens from `first` to `last` are live and inner. A chain: each as the one before.
__device__ __forceinline__ bool conv1d_bwd_all_inner(const conv1d_bwd_args &a, int64_t b,
                                                     int64_t first, int64_t last) {
    if (first > last) return true;
    const conv1d_sequence s = conv1d_sequence_of(a, b, first);
    if (!conv1d_live(a, s, b, first) || last >= s.end || !conv1d_bwd_inner(a, s, b, first))
        return false;
    if (!a.seq_idx) return true;
    const int32_t id = conv1d_id(a, b, first);
    bool same = true;
    for (int64_t t = first + 1; t <= last; ++t) same = same && conv1d_id(a, b, t) == id;
    return same;
}

/// Flags of tiles.
__device__ __forceinline__ void conv1d_bwd_flag_tiles(const conv1d_bwd_args &a, int64_t from,
                                                      int64_t step, bool shifted) {
    const int lane = static_cast<int>(threadIdx.x % 32), vec = a.fields;
    const int log_lanes = a.log_lanes, in_row = lane & ((1 << log_lanes) - 1);
    const int64_t all = conv1d_mark_flags(a);
    char *const flags = static_cast<char *>(a.marks_out) + a.flags_at;
    for (int64_t at = from; at < all; at += step) {
        // 256 bytes of fields for each tile: their number has 32 bits
        const int64_t part = static_cast<uint32_t>(at) / static_cast<uint32_t>(a.tiles);
        const int64_t tile = at - part * a.tiles;
        const int64_t b = (part << (5 - log_lanes)) + (lane >> log_lanes);
        const int64_t t = tile * a.tile + in_row * vec;
        const int64_t first = max(t - (shifted ? vec - 1 : 0), int64_t{0});
        const int64_t last = min(t + vec - 1 + a.width - 1, a.length - 1);
        const bool full = b >= a.batch || conv1d_bwd_all_inner(a, b, first, last);
        const bool any = __any_sync(0xffffffffu, static_cast<int>(!full)) != 0;
        if (lane == 0) flags[at] = any ? 1 : 0;
    }
}

/// conv1d.bwd_marks: a warp 32 tokens, a lane a token.
__global__ void __launch_bounds__(conv1d_bwd_threads)
    conv1d_bwd_marks(const __grid_constant__ conv1d_bwd_args a) {
    constexpr int warps = conv1d_bwd_threads / 32;
    const int lane = static_cast<int>(threadIdx.x % 32), fields = a.fields;
    const int64_t words = conv1d_border_words(a.length);
    const int64_t pieces = conv1d_mark_pieces(a.length, fields, a.field_pairs);
    const int64_t all = (fields ? a.field_rows : a.batch) * pieces;
    const int64_t step = static_cast<int64_t>(gridDim.x) * warps;
    start_successor();
    int64_t piece = static_cast<int64_t>(wait_for_predecessor()) * warps + threadIdx.x / 32;
    for (; piece < all; piece += step) {
        const int64_t b = piece / pieces, word = piece - b * pieces - (fields ? 1 : 0);
        const int64_t t = word * 32 + lane;
        bool border = false, dead = false;
        uint32_t field = 0;
        if (t >= 0 && t < a.length && b < a.batch) {
            const conv1d_sequence s = conv1d_sequence_of(a, b, t);
            dead = !conv1d_live(a, s, b, t);
            border = dead || !conv1d_bwd_inner(a, s, b, t);
            if (fields && !(dead || (border && a.borders_at >= 0)))
                field = conv1d_bwd_field(a, s, b, t);
        }
        if (fields) {
            const int in_word = lane & (fields - 1);
            field <<= in_word * (32 / fields);
            for (int by = 1; by < fields; by *= 2) field |= __shfl_xor_sync(0xffffffffu, field, by);
            // word n is the second one of pair n and the first one of the next
            uint32_t *const row = static_cast<uint32_t *>(a.marks_out) + b * a.field_pairs * 2;
            const int64_t n = (word * 32 + lane) / fields;
            if (in_word == 0 && n >= 0 && n < a.field_pairs) row[2 * n + 1] = field;
            if (in_word == 0 && n >= -1 && n + 1 < a.field_pairs) row[2 * (n + 1)] = field;
        }
        if (a.borders_at < 0 || word < 0 || word >= words || b >= a.batch) continue;
        const uint32_t borders = __ballot_sync(0xffffffffu, static_cast<int>(border));
        const uint32_t deads = __ballot_sync(0xffffffffu, static_cast<int>(dead));
        if (lane == 0)
            reinterpret_cast<uint2 *>(static_cast<char *>(a.marks_out) +
                                      a.borders_at)[b * words + word] = make_uint2(borders, deads);
    }
    // the next warps, as those of pieces end
    conv1d_bwd_flag_tiles(a, piece - all, step, ((a.vx.b | a.vx.c) & (fields - 1)) != 0);
}

} // namespace plait::impl::cuda
