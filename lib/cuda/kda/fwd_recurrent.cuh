// kda.fwd_recurrent: the recurrence token by token, S in f32 registers, for every problem with at
// most 256 keys. A block has a value head of a sequence and 8 columns a warp; the warps are next to
// one another and share q, k, decays and beta: each fetches two tokens of the next batch while the
// batch runs, norms and gates them, and leaves them in shared memory. Then per token
//   r = S'^T k and S'^T q in one pass and one fold over the warp, u = beta (v - r),
//   S = S' + k u^T, o = S'^T q + <k, q> u
// without a barrier. Both orientations of a state are accesses of 16 bytes of whole sectors.
// Traffic: states once; tokens once for each tile. Bound: short calls by the bytes of states, long
// ones by about 300 cycles a token (estimates). Tokens of nobody in front of a sequence are its.
// Parts: fwd_recurrent_any.cuh (more keys), fwd_recurrent_few.cuh (few tokens),
// fwd_recurrent_one.cuh (one token).
#pragma once

#include "lib/cuda/kda/fwd_recurrent_layout.h"
#include "lib/cuda/kda/recurrent.cuh"

namespace plait::impl::cuda {

/// Zeros to columns of O.
__device__ __forceinline__ void kda_fwd_clear(const kda_fwd_recurrent_args &a, const kda_item &item,
                                              int64_t from, int64_t to, int columns) {
    const kda_problem &p = a.problem;
    for (int64_t i = threadIdx.x; i < (to - from) * columns; i += blockDim.x) {
        const int64_t t = i / columns, column = item.column + (i - t * columns);
        if (column < p.dim_v)
            kda_store(a.o, kda_at(p.o, item.at.row, from + t, item.hv) + column * p.o.c, p.o.type,
                      0);
    }
}

/// A token of the batch, `tile` at the columns of this thread.
template <int Quads>
__device__ __forceinline__ void kda_fwd_token(kda_tile<Quads> &tile, const kda_batch_layout &lay,
                                              float *batch, int slot) {
    const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
    float q[4 * Quads], k[4 * Quads], d[4 * Quads], r[4] = {}, o[4] = {}, u[4];
    kda_row_of<Quads>(batch + lay.q(slot), q);
    kda_row_of<Quads>(batch + lay.k(slot), k);
    kda_row_of<Quads>(batch + lay.decay(slot), d);
#pragma unroll
    for (int i = 0; i < 4 * Quads; ++i)
#pragma unroll
        for (int c = 0; c < 4; ++c) {
            tile.s[i][c] *= d[i];
            r[c] += k[i] * tile.s[i][c];
            o[c] += q[i] * tile.s[i][c];
        }
    const float sum = kda_fold(r, o);
    const int column = kda_tile_column(warp, lane) + kda_fold_column();
    const float mine = batch[lay.beta(slot)] * (batch[lay.v(slot) + column] - sum);
    kda_unfold(mine, u);
    const float update = __shfl_xor_sync(0xffffffffu, mine, 8);
    if ((lane & 9) == 8) batch[lay.o(slot) + column] = sum + batch[lay.kq(slot)] * update;
#pragma unroll
    for (int i = 0; i < 4 * Quads; ++i)
#pragma unroll
        for (int c = 0; c < 4; ++c) tile.s[i][c] += k[i] * u[c];
}

/// The tokens of a sequence through a tile.
template <int Quads>
__device__ __forceinline__ void kda_fwd_tokens(const kda_fwd_recurrent_args &a,
                                               const kda_item &item, kda_tile<Quads> &tile,
                                               const kda_batch_layout &lay, float *batch) {
    const kda_problem &p = a.problem;
    const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
    const int warps = static_cast<int>(blockDim.x / 32);
    kda_raw_token<Quads> ahead[2]; // tokens `warp` and `warp + warps` of the next batch
    const auto fetch = [&](int64_t from) {
#pragma unroll
        for (int x = 0; x < 2; ++x)
            if (from + warp + x * warps < item.at.length)
                ahead[x].load(a, item, from + warp + x * warps, lay.columns);
    };
    const auto put = [&](int64_t from) {
#pragma unroll
        for (int x = 0; x < 2; ++x) {
            const int slot = warp + x * warps;
            const int64_t column = item.column + lane;
            if (from + slot < item.at.length && lane < lay.columns && column < p.dim_v)
                kda_store(a.o,
                          kda_at(p.o, item.at.row, item.at.begin + from + slot, item.hv) +
                              column * p.o.c,
                          p.o.type, batch[lay.o(slot) + lane]);
        }
    };
    fetch(0);
    int64_t last = 0;
    for (int64_t from = 0; from < item.at.length; from += lay.tokens) {
        __syncthreads(); // nobody reads the batch before any more, and its outputs are written
        if (from > 0) put(from - lay.tokens);
#pragma unroll
        for (int x = 0; x < 2; ++x)
            if (from + warp + x * warps < item.at.length)
                ahead[x].stage(a, item, lay, batch, warp + x * warps);
        fetch(from + lay.tokens);
        __syncthreads(); // the batch is there, and the outputs before are read
        last = from;
        const int64_t left = item.at.length - from;
        const int here = static_cast<int>(left < lay.tokens ? left : lay.tokens);
        for (int slot = 0; slot < here; ++slot) kda_fwd_token<Quads>(tile, lay, batch, slot);
    }
    __syncthreads(); // the last outputs are written; the next item stages behind its own barrier
    put(last);
}

template <int Quads>
__global__ void __launch_bounds__(32 * kda_fwd_recurrent_warps,
                                  kda_fwd_recurrent_blocks_per_sm(Quads))
    kda_fwd_recurrent(const __grid_constant__ kda_fwd_recurrent_args a) {
    extern __shared__ __align__(16) char shared[];
    float *batch = reinterpret_cast<float *>(shared);
    const kda_problem &p = a.problem;
    const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
    const int warps = static_cast<int>(blockDim.x / 32);
    const kda_batch_layout lay{64 * Quads, warps * kda_warp_columns, 2 * warps};
    for (int64_t block = blockIdx.x; block < a.blocks; block += gridDim.x) {
        const kda_item item = kda_item_of(a, block, lay.columns);
        const int64_t column = item.column + kda_tile_column(warp, lane);
        const int64_t head = item.at.state * p.state_in.n + item.hv * p.state_in.h;
        kda_tile<Quads> tile;
        if (item.at.live && p.state_in.used())
            tile.load(p, p.state_in, a.state_in, a.in, head, column);
        else
            tile.clear();
        kda_fwd_clear(a, item, item.at.gap, item.at.begin, lay.columns);
        if (!item.at.live)
            kda_fwd_clear(a, item, item.at.begin, item.at.begin + item.at.length, lay.columns);
        else if (item.at.length > 0)
            kda_fwd_tokens<Quads>(a, item, tile, lay, batch);
        if (p.state_out.used() && item.at.state >= 0)
            tile.store(p, p.state_out, a.state_out, a.out,
                       item.at.state * p.state_out.n + item.hv * p.state_out.h, column);
    }
}

} // namespace plait::impl::cuda
