// Of conv1d.fwd_bct_tiled: which vectors edges of rows, sequences, ids or states touch, and their
// outputs.
#pragma once

#include "lib/cuda/conv1d/fwd_vector.cuh"

namespace plait::impl::cuda {

constexpr unsigned conv1d_all_lanes = 0xffffffffu;

/// Of the vectors of a warp of packed sequences, those (this lane's: tokens low .. high) that see
/// more than one sequence, or none that lives. The warp's tokens begin at `low` of lane 0.
__device__ __forceinline__ bool conv1d_bct_sequences_touch(const conv1d_fwd_args &a, uint32_t lane,
                                                           int low, int high) {
    constexpr int most_begins = 8; // beyond that each vector looks for itself
    const int start = max(__shfl_sync(conv1d_all_lanes, low, 0), 0);
    const int stop = min(__shfl_sync(conv1d_all_lanes, high, 31), static_cast<int>(a.length) - 1);
    if (start > stop) return false;
    // The sequence of the first token: begin[first] <= start < begin[behind], 32 at a time.
    int64_t first = -1, behind = a.sequences;
    while (behind - first > 1) {
        const int64_t step = (behind - first + 30) >> 5, probe = first + 1 + lane * step;
        const bool before = probe < behind && a.spans[probe].begin <= start;
        const int64_t found = __popc(__ballot_sync(conv1d_all_lanes, before));
        const int64_t next = first + 1 + found * step;
        if (found > 0) first += 1 + (found - 1) * step;
        if (next < behind) behind = next;
    }
    if (first < 0) return true;
    // A lane for that one and each of those behind it.
    const int64_t n = first + lane;
    int begin = stop + 1, end = stop + 1;
    bool lives = true;
    if (n < a.sequences && a.spans[n].begin <= stop) {
        const conv1d_sequence s = conv1d_sequence_of(a, n);
        begin = static_cast<int>(s.begin);
        end = static_cast<int>(s.end);
        lives = s.live;
    }
    const int next = __shfl_down_sync(conv1d_all_lanes, begin, 1);
    const unsigned begins = __ballot_sync(conv1d_all_lanes, begin <= stop);
    const bool whole = begin > stop || (lives && end >= min(next, stop + 1));
    if (!__all_sync(conv1d_all_lanes, whole) || __popc(begins) > most_begins) return true;
    bool touched = low < 0;
    for (unsigned rest = begins; rest != 0; rest &= rest - 1) {
        const int at = __shfl_sync(conv1d_all_lanes, begin, __ffs(static_cast<int>(rest)) - 1);
        touched = touched || (low < at && at <= high);
    }
    return touched;
}

/// Whether tokens low .. high see more than one id, none, or what lies before the row.
__device__ __forceinline__ bool conv1d_bct_ids_touch(const conv1d_fwd_args &a, int64_t row, int low,
                                                     int high) {
    const int length = static_cast<int>(a.length);
    if (low >= length) return false;
    if (low < 0) return true;
    const int32_t *ids = a.seq_idx + row * a.ids_b;
    bool same = true;
    int32_t id;
    if (a.ids_t == 1 && (reinterpret_cast<uintptr_t>(ids) & 15u) == 0) {
        // `high` is the last one of a quad.
        id = __ldg(ids + low);
        for (int p = low & ~3; p <= high; p += 4) {
            if (p + 4 <= length) {
                const int4 four = __ldg(reinterpret_cast<const int4 *>(ids + p));
                same = same && (p + 0 < low || four.x == id) && (p + 1 < low || four.y == id) &&
                       (p + 2 < low || four.z == id) && four.w == id;
            } else {
                for (int q = p; q < length; ++q) same = same && (q < low || __ldg(ids + q) == id);
            }
        }
    } else {
        id = __ldg(ids + low * a.ids_t);
        for (int p = low + 1; p <= min(high, length - 1); ++p)
            same = same && __ldg(ids + p * a.ids_t) == id;
    }
    return !same || id < 0;
}

/// Bit l of the result: vector l of quarter `quarter` of a tile of 32 lanes is no plain one, in
/// rows that begin anywhere up to a.strip elements behind a multiple of 16 bytes.
template <scalar S>
__device__ __forceinline__ uint32_t conv1d_bct_mark(const conv1d_fwd_args &a, uint32_t row,
                                                    uint32_t tile, uint32_t quarter,
                                                    uint32_t lane) {
    constexpr int v = conv1d_vector(S);
    const int t = conv1d_bct_first(S, tile, 32, lane, conv1d_bct_vectors, 0) +
                  static_cast<int>(quarter) * 32 * v;
    const int low = t - a.strip - (static_cast<int>(a.width) - 1), high = t + v - 1;
    const bool touched = a.spans != nullptr ? conv1d_bct_sequences_touch(a, lane, low, high)
                                            : conv1d_bct_ids_touch(a, row, low, high) ||
                                                  !conv1d_sequence_of(a, row).live;
    return __ballot_sync(conv1d_all_lanes, touched);
}

/// Bit i: vector i of the thread is no plain one. Each warp looks at a quarter for all. `again`:
/// the block has been here before.
template <scalar S>
__device__ __forceinline__ unsigned conv1d_bct_touched(const conv1d_fwd_args &a,
                                                       const conv1d_bct_self &self, bool again) {
    __shared__ uint32_t marks[conv1d_bct_vectors];
    const uint32_t warp = threadIdx.x / 32;
    const uint32_t mark = conv1d_bct_mark<S>(a, self.b, self.tile, warp, self.lane);
    if (again) __syncthreads(); // the marks of the tile before are read
    if (self.lane == 0) marks[warp] = mark;
    __syncthreads(); // the marks of the four quarters are written
    unsigned touched = 0;
#pragma unroll
    for (int i = 0; i < conv1d_bct_vectors; ++i) touched |= (marks[i] >> self.lane & 1u) << i;
    return touched;
}

/// Samples t - Taps .. t + v - 1; 0 outside the row.
template <scalar S, int Taps>
__device__ __forceinline__ void conv1d_bct_edge_window(const typename stored<S>::bits *x, int t,
                                                       int length, float *window) {
    constexpr int n = Taps + conv1d_vector(S);
    uint32_t words[conv1d_words<S, n>];
    conv1d_gather_words<S, n>(x, t - Taps, length, words);
    conv1d_widen_words<S, n>(words, window);
}

/// The window's samples before `begin` become those of the state, or 0.
template <scalar S, int Taps>
__device__ __forceinline__ void conv1d_bct_edge_state(const conv1d_fwd_args &a,
                                                      const conv1d_sequence &s, uint32_t c, int t,
                                                      float *window) {
    const int begin = static_cast<int>(s.begin), width = static_cast<int>(a.width);
    const int64_t state =
        s.state * a.state_stride.b + c * a.state_stride.c + (a.entries - begin) * a.state_stride.t;
#pragma unroll
    for (int i = 0; i < Taps + conv1d_vector(S) - 1; ++i) {
        const int p = t - Taps + i;
        if (p >= begin) continue;
        window[i] = a.state_in != nullptr && p > begin - width
                        ? conv1d_load_as<S>(a.state_in, state + p * a.state_stride.t, a.state_wide)
                        : 0.0f;
    }
}

/// Outputs t .. t + v - 1 of a row of any sequences. Begins grow, so that the window of one
/// sequence can be made that of the next.
template <scalar S, int Taps>
__device__ __forceinline__ void
conv1d_bct_edge_sequences(const conv1d_fwd_args &a, uint32_t b, uint32_t c,
                          const typename stored<S>::bits *x, int t, const float (&taps)[Taps],
                          float bias, float (&out)[conv1d_vector(S)]) {
    constexpr int v = conv1d_vector(S);
    const int length = static_cast<int>(a.length), last = min(t + v, length);
    int from = max(t, 0);
    float window[Taps + v];
    conv1d_bct_edge_window<S, Taps>(x, t, length, window);
#pragma unroll
    for (int j = 0; j < v; ++j) out[j] = 0.0f;
    int64_t n = a.spans != nullptr ? conv1d_find_sequence(a, from) : b;
    while (from < last) {
        int stop = last; // of the tokens from `from` on that are the sequence's, or none's
        conv1d_sequence s{0, 0, 0, false};
        if (a.spans != nullptr) {
            while (n + 1 < a.sequences && a.spans[n + 1].begin <= from) ++n;
            if (n + 1 < a.sequences && a.spans[n + 1].begin < last)
                stop = static_cast<int>(a.spans[n + 1].begin);
        }
        if (n >= 0) s = conv1d_sequence_of(a, n);
        if (s.live && from < s.end) {
            float now[v];
            conv1d_bct_edge_state<S, Taps>(a, s, c, t, window);
            conv1d_compute<S, Taps, Taps, v>(a, taps, bias, window, now);
#pragma unroll
            for (int j = 0; j < v; ++j)
                if (t + j >= from && t + j < stop && t + j < s.end) out[j] = now[j];
        }
        from = stop;
    }
}

/// The same for a row with ids: taps meet samples of their token's id alone.
template <scalar S, int Taps>
__device__ __forceinline__ void conv1d_bct_edge_ids(const conv1d_fwd_args &a, uint32_t b,
                                                    uint32_t c, const typename stored<S>::bits *x,
                                                    int t, const float (&taps)[Taps], float bias,
                                                    float (&out)[conv1d_vector(S)]) {
    constexpr int v = conv1d_vector(S);
    const int length = static_cast<int>(a.length), width = static_cast<int>(a.width);
    const conv1d_sequence s = conv1d_sequence_of(a, b);
    const int32_t *ids = a.seq_idx + b * a.ids_b;
    // Before the first token ids are that of the first token if there is a state, else none.
    const int32_t before = a.state_in != nullptr ? __ldg(ids) : -1;
    const auto id_of = [&](int p) {
        return p < 0 ? before : p < length ? __ldg(ids + p * a.ids_t) : -1;
    };
    if constexpr (Taps <= 8) {
        // Bit j: token t + j has an id, and its sample d before has that.
        unsigned live = 0, same[Taps] = {};
#pragma unroll 1
        for (int j = 0; j < v; ++j) {
            const int32_t id = id_of(t + j);
            if (s.live && id >= 0) live |= 1u << j;
#pragma unroll
            for (int d = 1; d < Taps; ++d)
                if (d < width && id_of(t + j - d) == id) same[d] |= 1u << j;
        }
        same[0] = ~0u;
        float window[Taps + v];
        conv1d_bct_edge_window<S, Taps>(x, t, length, window);
        if (t < width && s.live) conv1d_bct_edge_state<S, Taps>(a, s, c, t, window);
#pragma unroll
        for (int j = 0; j < v; ++j) out[j] = bias;
#pragma unroll
        for (int d = Taps - 1; d >= 0; --d) {
            if (d >= width) continue;
#pragma unroll
            for (int j = 0; j < v; ++j)
                if (same[d] >> j & 1u) out[j] = __fmaf_rn(taps[d], window[Taps + j - d], out[j]);
        }
        conv1d_activate<S, v>(a, window + Taps, out);
#pragma unroll
        for (int j = 0; j < v; ++j)
            if ((live >> j & 1u) == 0) out[j] = 0.0f;
    } else {
        // Registers do not hold so many ids; neighbours are asked for again.
#pragma unroll
        for (int j = 0; j < v; ++j)
            out[j] = t + j >= 0 && t + j < length
                         ? conv1d_output_before_rounding<float>(a, s, b, c, t + j)
                         : 0.0f;
    }
}

} // namespace plait::impl::cuda
