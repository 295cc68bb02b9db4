// A thread of conv1d.fwd_btc: its channels, taps and window, and what it does with its tokens.
#pragma once

#include "lib/cuda/conv1d/fwd_btc_lane.cuh"

namespace plait::impl::cuda {

/// What the walk knows at compile time: the width and that the activation is all, the width,
/// nothing.
enum class conv1d_btc_walk { silu, exact, masked };

template <scalar S, int V, int Taps, bool Strided> struct conv1d_btc_thread {
    using lane = conv1d_btc_lane<S, V, Strided>;
    using bits = typename stored<S>::bits;
    static constexpr int group = conv1d_btc_group(Taps), part = conv1d_btc_part(Taps);

    lane own;
    const bits *x; ///< first channel, token 0
    bits *y;
    char *ring; ///< the thread's first cell
    float taps[V][Taps], bias[V];

    /// Bias and taps of token t + u, which is window[u % Taps].
    template <conv1d_btc_walk How>
    __device__ __forceinline__ void sum(const conv1d_fwd_args &a, int u,
                                        const float (&window)[Taps][V], float (&out)[V]) const {
#pragma unroll
        for (int i = 0; i < V; ++i) out[i] = bias[i];
#pragma unroll
        for (int d = Taps - 1; d >= 0; --d) {
            if (How == conv1d_btc_walk::masked && d >= static_cast<int>(a.width)) continue;
#pragma unroll
            for (int i = 0; i < V; ++i)
                out[i] = __fmaf_rn(taps[i][d], window[(u - d + Taps) % Taps][i], out[i]);
        }
    }

    /// Token t + U of a part that lies at `cells` of the ring.
    template <conv1d_btc_walk How, int U>
    __device__ __forceinline__ void token(const conv1d_fwd_args &a, const char *cells, bits *to,
                                          float (&window)[Taps][V]) const {
        lane::read(cells + U * conv1d_btc_threads * lane::cell, window[U]);
        float out[V];
        sum<How>(a, U, window, out);
        finish<How == conv1d_btc_walk::silu>(a, window[U], out);
        own.store(to, out);
    }
    template <conv1d_btc_walk How, bool Checked, int U>
    __device__ __forceinline__ void part_of(const conv1d_fwd_args &a, const char *cells, bits *&to,
                                            int left, float (&window)[Taps][V]) const {
        if (Checked && U >= left) return;
        token<How, U>(a, cells, to, window);
        to += a.y_stride.t;
        if constexpr (U + 1 < Taps) part_of<How, Checked, U + 1>(a, cells, to, left, window);
    }

    /// The next `left` tokens, at most a part, from `from` on.
    __device__ __forceinline__ void fetch(const conv1d_fwd_args &a, int slot, const bits *&from,
                                          int left) const {
        if (left >= Taps) {
#pragma unroll
            for (int u = 0; u < Taps; ++u) {
                own.copy(ring + slot + u * conv1d_btc_threads * lane::cell, from);
                from += a.x_stride.t;
            }
        } else {
#pragma unroll 1
            for (int u = 0; u < left; ++u) {
                own.copy(ring + slot + u * conv1d_btc_threads * lane::cell, from);
                from += a.x_stride.t;
            }
        }
        async_commit();
    }

    /// Tokens t .. stop - 1.
    template <conv1d_btc_walk How>
    __device__ __forceinline__ void walk(const conv1d_fwd_args &a, int t, int stop) const {
        constexpr int slots = conv1d_btc_slots(S, Taps);
        constexpr int slot = conv1d_btc_slot(S, Taps), last = (slots - 1) * slot;
        const bits *from = x + t * a.x_stride.t;
        bits *to = y + t * a.y_stride.t;
        int left = stop - t;
        // Token t + u is window[u % Taps].
        float window[Taps][V];
        {
            typename lane::raw before[Taps];
            const bits *back = from;
#pragma unroll
            for (int i = 0; i < slots - 1; ++i) fetch(a, i * slot, from, left - i * Taps);
#pragma unroll
            for (int d = 1; d < Taps; ++d) {
                before[d] = typename lane::raw{};
                back -= a.x_stride.t;
                if (t - d >= 0) before[d] = own.load(back);
            }
#pragma unroll
            for (int d = 1; d < Taps; ++d) lane::widen_all(before[d], window[Taps - d]);
        }
        int at = 0, fill = last;
#pragma unroll 1
        for (; left >= Taps; left -= Taps) {
            async_wait<slots - 2>();
            fetch(a, fill, from, left - (slots - 1) * Taps);
            part_of<How, false, 0>(a, ring + at, to, Taps, window);
            fill = at;
            at = at == last ? 0 : at + slot;
        }
        async_wait<0>();
        part_of<How, true, 0>(a, ring + at, to, left, window);
    }

    /// A tile's samples, and those in front of it.
    struct tile_samples {
        typename lane::raw before[Taps - 1], now[conv1d_btc_tile(Taps)];
    };
    __device__ __forceinline__ void load_tile(const conv1d_fwd_args &a, int t,
                                              tile_samples &r) const {
        const bits *from = x + t * a.x_stride.t, *back = from;
#pragma unroll
        for (int d = 1; d < Taps; ++d) {
            r.before[d - 1] = typename lane::raw{};
            back -= a.x_stride.t;
            if (t - d >= 0) r.before[d - 1] = own.load(back);
        }
#pragma unroll
        for (int u = 0; u < conv1d_btc_tile(Taps); ++u) {
            r.now[u] = own.load(from);
            from += a.x_stride.t;
        }
    }

    /// The tile at token t.
    template <conv1d_btc_walk How>
    __device__ __forceinline__ void tile(const conv1d_fwd_args &a, int t,
                                         const tile_samples &r) const {
        bits *to = y + t * a.y_stride.t;
        // Token t + u is window[u % Taps].
        float window[Taps][V];
#pragma unroll
        for (int d = 1; d < Taps; ++d) lane::widen_all(r.before[d - 1], window[Taps - d]);
#pragma unroll
        for (int u = 0; u < conv1d_btc_tile(Taps); ++u) {
            float out[V];
            lane::widen_all(r.now[u], window[u % Taps]);
            sum<How>(a, u, window, out);
            finish<How == conv1d_btc_walk::silu>(a, window[u % Taps], out);
            own.store(to, out);
            to += a.y_stride.t;
        }
    }

    /// Tokens t .. t + groups * group - 1.
    template <conv1d_btc_walk How>
    __device__ __forceinline__ void walk_groups(const conv1d_fwd_args &a, int t, int groups) {
        const int64_t x_step = a.x_stride.t, y_step = a.y_stride.t;
        const bits *from = x + t * x_step;
        bits *to = y + t * y_step;
        const int stop = t + groups * group;
        // Token t + u is window[u % Taps].
        float window[Taps][V];
        typename lane::raw raw[group];
        {
            typename lane::raw before[Taps];
            const bits *back = from;
#pragma unroll
            for (int d = 1; d < Taps; ++d) {
                before[d] = typename lane::raw{};
                back -= x_step;
                if (t - d >= 0) before[d] = own.load(back);
            }
#pragma unroll
            for (int u = 0; u < group; ++u) {
                raw[u] = own.load(from);
                from += x_step;
            }
#pragma unroll
            for (int d = 1; d < Taps; ++d) lane::widen_all(before[d], window[Taps - d]);
        }
        for (; groups > 0; --groups) {
            // Behind the last group it is loaded again: cheaper than a decision at every load.
            if (groups == 1) from -= group * x_step;
#pragma unroll
            for (int first = 0; first < group; first += part) {
#pragma unroll
                for (int u = first; u < first + part; ++u) {
                    lane::widen_all(raw[u], window[u % Taps]);
                    float out[V];
                    sum<How>(a, u, window, out);
                    finish<How == conv1d_btc_walk::silu>(a, window[u % Taps], out);
                    own.store(to, out);
                    to += y_step;
                }
                // Behind the last use of all of the part: loads of a part share what waits for
                // them.
#pragma unroll
                for (int u = first; u < first + part; ++u) {
                    raw[u] = own.load(from);
                    from += x_step;
                }
            }
        }
        // From where they stand: x and y need no registers of their own meanwhile.
        x = from - stop * x_step;
        y = to - stop * y_step;
    }

    template <bool Silu>
    __device__ __forceinline__ void finish(const conv1d_fwd_args &a, const float (&now)[V],
                                           float (&out)[V]) const {
        if (Silu || a.silu) {
#pragma unroll
            for (int i = 0; i < V; ++i) out[i] = conv1d_silu<S != scalar::f32>(out[i]);
        }
        if (!Silu && a.residual) {
#pragma unroll
            for (int i = 0; i < V; ++i) out[i] = __fadd_rn(out[i], now[i]);
        }
    }

    /// Token t, whatever lies before it.
    template <bool Full>
    __device__ __forceinline__ void single(const conv1d_fwd_args &a, const conv1d_sequence &s,
                                           const int32_t *ids, int t) const {
        const int width = static_cast<int>(a.width), begin = static_cast<int>(s.begin);
        const bool has_ids = Full && ids != nullptr, state = Full && a.state_in != nullptr;
        const int32_t id = has_ids ? __ldg(ids + t * a.ids_t) : 0;
        // Before the first token ids are that of the first token if there is a state, else none.
        const bool back = !has_ids || (state && __ldg(ids) == id);
        float out[V], value[V];
#pragma unroll
        for (int i = 0; i < V; ++i) out[i] = bias[i];
#pragma unroll
        for (int d = Taps - 1; d >= 0; --d) {
            const int p = t - d;
            if (d >= width) continue;
            if (p >= begin) {
                if (has_ids && __ldg(ids + p * a.ids_t) != id) continue;
                lane::widen_all(own.load(x + p * a.x_stride.t), value);
            } else {
                if (!back) continue;
                const int64_t entry =
                    s.state * a.state_stride.b + (a.entries + p - begin) * a.state_stride.t;
#pragma unroll
                for (int i = 0; i < V; ++i) {
                    value[i] = 0.0f;
                    if (state && own.owns(i))
                        value[i] = conv1d_load_as<S>(
                            a.state_in, entry + own.channel_of(i) * a.state_stride.c, a.state_wide);
                }
            }
#pragma unroll
            for (int i = 0; i < V; ++i) out[i] = __fmaf_rn(taps[i][d], value[i], out[i]);
        }
        finish<false>(a, value, out);
        own.store(y + t * a.y_stride.t, out);
    }

    template <bool Full>
    __device__ __forceinline__ void singles(const conv1d_fwd_args &a, const conv1d_sequence &s,
                                            const int32_t *ids, int t, int stop) const {
#pragma unroll 1
        for (; t < stop; ++t) single<Full>(a, s, ids, t);
    }

    /// Outputs of tokens that belong to nothing.
    __device__ __forceinline__ void zeros(const conv1d_fwd_args &a, int t, int stop) const {
        const float out[V] = {};
#pragma unroll 1
        for (; t < stop; ++t) own.store(y + t * a.y_stride.t, out);
    }

    template <conv1d_btc_walk How>
    __device__ __forceinline__ void row_as(const conv1d_fwd_args &a, int t, int stop) {
        if constexpr (Strided) {
            const int groups = (stop - t) / group;
            if (groups > 0) walk_groups<How>(a, t, groups);
            singles<false>(a, {0, 0, 0, true}, nullptr, t + groups * group, stop);
        } else {
            walk<How>(a, t, stop);
        }
    }

    /// Tokens t .. stop - 1 of a row that is one sequence with zeros before it.
    __device__ __forceinline__ void row(const conv1d_fwd_args &a, int t, int stop) {
        if (a.width != Taps) {
            row_as<conv1d_btc_walk::masked>(a, t, stop);
        } else if (a.silu && !a.residual) {
            row_as<conv1d_btc_walk::silu>(a, t, stop);
        } else {
            row_as<conv1d_btc_walk::exact>(a, t, stop);
        }
    }

    /// Of tokens t .. stop - 1 of a live sequence those that are not as `row` left them.
    __device__ __forceinline__ void sequence(const conv1d_fwd_args &a, const conv1d_sequence &s,
                                             const int32_t *ids, int t, int stop) const {
        const int begin = static_cast<int>(s.begin), history = static_cast<int>(a.width) - 1;
        while (t < stop) {
            int end = stop, first = t;
            bool pads = false;
            if (ids == nullptr) {
                if (a.state_in != nullptr || begin > 0) first = max(t, min(begin + history, stop));
            } else {
                // A run of equal ids; its first tokens look at what is before it.
                const int32_t id = __ldg(ids + t * a.ids_t);
                end = t + 1 + conv1d_btc_equal(ids + (t + 1) * a.ids_t, a.ids_t, id, stop - t - 1);
                pads = id < 0;
                const int64_t before = t - history;
                const bool inside =
                    before >= begin &&
                    conv1d_btc_equal(ids + before * a.ids_t, a.ids_t, id, history) == history;
                if (!inside) first = min(t + history, end);
            }
            if (pads) {
                zeros(a, t, end);
            } else {
                singles<true>(a, s, ids, t, first);
            }
            t = end;
        }
    }
};

} // namespace plait::impl::cuda
