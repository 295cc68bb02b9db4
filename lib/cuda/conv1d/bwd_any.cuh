// conv1d.bwd_any: dx, and partial sums of dw and dbias, of any problem: any strides, types, width.
//   g = dy * silu'(pre);  dx[p] = sum_j w[K-1-j] g[p+j];  dw[k] = sum g[t] x[t-(K-1)+k]
// A block takes one slot of 2^log_lanes channels: tiles of [tokens][lanes], each with the g of
// width - 1 tokens behind it in shared memory (recomputed for each use if it does not fit).
// Sums: 2^log_group threads share the taps of a channel, the others divide the tokens.
// Traffic: unbounded by design; every element goes through the accessors of bwd_access.cuh.
#pragma once

#include "lib/cuda/common/predecessor.cuh"
#include "lib/cuda/conv1d/bwd_access.cuh"
#include "lib/cuda/conv1d/bwd_math.cuh"

namespace plait::impl::cuda {

template <class A>
__device__ __forceinline__ A conv1d_bwd_g(const conv1d_bwd_args &a, int64_t b, int64_t c,
                                          int64_t t) {
    if (t >= a.length || c >= a.channels) return A(0);
    const conv1d_sequence s = conv1d_sequence_of(a, b, t);
    if (!conv1d_live(a, s, b, t)) return A(0);
    const A dy = conv1d_load<A>(a.dy, conv1d_at(a.vdy, b, c, t), a.vdy.type);
    return a.silu ? conv1d_silu_gradient<false>(dy, conv1d_pre<A>(a, s, b, c, t)) : dy;
}

/// `g(t)` of the tokens of a row, from t on to t + width - 1.
template <class A, class G>
__device__ __forceinline__ A conv1d_bwd_dx(const conv1d_bwd_args &a, int64_t b, int64_t c,
                                           int64_t p, const G &g) {
    const conv1d_sequence s = conv1d_sequence_of(a, b, p);
    if (!conv1d_live(a, s, b, p)) return A(0);
    A dx = A(0);
    for (int j = 0; j < a.width && p + j < s.end; ++j) {
        if (a.seq_idx && conv1d_id(a, b, p + j) != conv1d_id(a, b, p)) continue;
        const A w = conv1d_load<A>(a.w, c * a.vw.c + (a.width - 1 - j) * a.vw.t, a.vw.type);
        dx = conv1d_fma(w, g(p + j), dx);
    }
    dx = conv1d_add(dx, conv1d_tail<A>(a, s, b, c, p));
    if (a.residual)
        dx = conv1d_add(dx, conv1d_load<A>(a.dy, conv1d_at(a.vdy, b, c, p), a.vdy.type));
    return dx;
}

template <class A>
__global__ void __launch_bounds__(conv1d_bwd_threads, 2)
    conv1d_bwd_any(const __grid_constant__ conv1d_bwd_args a) {
    extern __shared__ __align__(16) char shared[];
    A *const sums = reinterpret_cast<A *>(shared);
    A *const gs = sums + conv1d_bwd_threads;
    const int thread = static_cast<int>(threadIdx.x);
    const int lanes = 1 << a.log_lanes, rest = conv1d_bwd_threads >> a.log_lanes;
    const int lane = thread & (lanes - 1), part = thread >> a.log_lanes;
    const int group = 1 << a.log_group, slices = rest >> a.log_group;
    const int k0 = part & (group - 1), slice = part >> a.log_group;
    const int64_t halo = a.tile + a.width - 1;
    const int64_t tiles = a.tiles * a.batch;
    A *const partial = static_cast<A *>(a.partial);

    start_successor();
    for (int64_t item = wait_for_predecessor(); item < a.items; item += gridDim.x) {
        const int64_t slot = item % a.slots;
        const int64_t c = ((item / a.slots) << a.log_lanes) + lane;
        const int64_t first = tiles / a.slots * slot + min(slot, tiles % a.slots);
        const int64_t last = tiles / a.slots * (slot + 1) + min(slot + 1, tiles % a.slots);
        A *const to = partial + slot * (a.width + 1) * a.channels + c; // of tap 0
        A sum = A(0);
        for (int64_t n = first; n < last; ++n) {
            const int64_t b = n / a.tiles, t0 = n % a.tiles * a.tile;
            const auto g = [&](int64_t t) {
                return a.g_shared ? gs[((t - t0) << a.log_lanes) + lane]
                                  : conv1d_bwd_g<A>(a, b, c, t);
            };
            __syncthreads(); // the last tile's g, and the last item's sums, are read
            if (a.g_shared) {
                for (int64_t i = part; i < halo; i += rest)
                    gs[(i << a.log_lanes) + lane] = conv1d_bwd_g<A>(a, b, c, t0 + i);
                __syncthreads(); // g is written
            }
            const int64_t tokens = min(a.tile, a.length - t0);
            if (c >= a.channels) continue;
            if (a.dx) {
                for (int64_t i = part; i < tokens; i += rest)
                    conv1d_store<A>(a.dx, conv1d_at(a.vdx, b, c, t0 + i), a.vdx.type,
                                    conv1d_bwd_dx<A>(a, b, c, t0 + i, g));
            }
            if (!partial) continue;
            for (int64_t k = k0; k <= a.width; k += group) {
                A own = A(0);
                for (int64_t t = t0 + slice; t < t0 + tokens; t += slices) {
                    const conv1d_sequence s = conv1d_sequence_of(a, b, t);
                    if (!conv1d_live(a, s, b, t)) continue;
                    const int64_t p = t - (a.width - 1) + k;
                    if (k == a.width) {
                        own += g(t);
                    } else if (conv1d_counts(a, s, b, t, p)) {
                        own = conv1d_fma(g(t), conv1d_input<A>(a, s, b, c, p), own);
                    }
                }
                // More sums than threads: there are no slices, a thread adds to its own words.
                if (group > a.width) {
                    sum += own;
                } else {
                    A *const word = to + k * a.channels;
                    *word = n == first ? own : *word + own;
                }
            }
        }
        if (!partial || group <= a.width) continue;
        sums[thread] = sum;
        __syncthreads(); // sums of all slices are written
        if (slice == 0 && k0 <= a.width && c < a.channels) {
            for (int i = 1; i < slices; ++i)
                sum += sums[thread + (i << (a.log_lanes + a.log_group))];
            to[k0 * a.channels] = sum;
        }
    }
}

} // namespace plait::impl::cuda
