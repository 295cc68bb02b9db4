// kda.bwd_recurrent: the adjoint of the recurrence, token by token, for every problem with at most
// 256 keys. The tiles of fwd_recurrent: S and D = dL/dS in f32 registers. A block runs forward and
// keeps tiles (layout header), then takes segments and their chunks from the last to the first; of
// the chunk at hand all states are in shared memory. Per token, in one pass and one fold,
//   r = S'^T k, w = D^T k; e = v - r, u = beta e, du = w + <k, q> do, dv = beta du, dr = -dv
// then by rows dq = S do, D += q do^T, dk = D u + S' dr, D += k dr^T, dg = D S', D *= decay; sums
// over the columns of the block go to a row of scratch for every token, head and tile (bwd_finish).
// Traffic: tokens four times, kept tiles twice, rows 12 K bytes. Bound: about 1500 cycles a token
// of a block that has an SM to itself (estimate): simple, for what chunk kernels do not take.
// Parts: bwd_recurrent_any.cuh, more keys.
#pragma once

#include "lib/cuda/kda/bwd_recurrent_layout.h"
#include "lib/cuda/kda/recurrent.cuh"

namespace plait::impl::cuda {

/// A thread's part of a kept tile.
template <int Quads>
__device__ __forceinline__ void kda_keep(float *at, const kda_tile<Quads> &tile) {
#pragma unroll
    for (int i = 0; i < 4 * Quads; ++i)
        reinterpret_cast<float4 *>(at)[i * blockDim.x + threadIdx.x] =
            make_float4(tile.s[i][0], tile.s[i][1], tile.s[i][2], tile.s[i][3]);
}
template <int Quads>
__device__ __forceinline__ void kda_kept(const float *at, int i, float (&s)[4]) {
    const float4 four = reinterpret_cast<const float4 *>(at)[i * blockDim.x + threadIdx.x];
    s[0] = four.x, s[1] = four.y, s[2] = four.z, s[3] = four.w;
}

template <int Quads> class kda_bwd_block {
public:
    __device__ __forceinline__ kda_bwd_block(const kda_bwd_recurrent_args &args, const kda_item &of,
                                             const kda_batch_layout &layout, float *shared,
                                             const kda_bwd_smem &smem)
        : a(args), p(args.problem), item(of), lay(layout), states(shared + smem.states),
          batch(shared + smem.batch), sums(shared + smem.sums),
          lane(static_cast<int>(threadIdx.x % 32)), warp(static_cast<int>(threadIdx.x / 32)),
          warps(static_cast<int>(blockDim.x / 32)) {}

    __device__ __forceinline__ void run(kda_tile<Quads> &d, int64_t tile_number) {
        const int64_t total = kda_ceil_div(item.at.length, a.chunk); // chunks of the sequence
        const int64_t segments = kda_ceil_div(total, a.group), segment = a.group * a.chunk;
        const int64_t floats = int64_t(16 * Quads) * blockDim.x; // of a kept tile
        float *outer = a.marks + blockIdx.x * a.block_floats;
        float *inner = outer + a.segments * floats;
        const int64_t column = item.column + kda_tile_column(warp, lane);
        kda_tile<Quads> s;
        if (p.state_in.used())
            s.load(p, p.state_in, a.state_in, a.in,
                   item.at.state * p.state_in.n + item.hv * p.state_in.h, column);
        else
            s.clear();
        for (int64_t x = 0; x < segments; ++x) {
            kda_keep(outer + x * floats, s);
            for (int64_t t = x * segment; x + 1 < segments && t < (x + 1) * segment; t += a.chunk)
                advance_chunk(s, t, a.chunk);
        }
        for (int64_t x = segments; x-- > 0;) {
            const int64_t first = x * segment, left = total - x * a.group;
            const int64_t chunks = left < a.group ? left : a.group;
            fetch(outer + x * floats, s);
            for (int64_t c = 0; c < chunks; ++c) {
                kda_keep(inner + c * floats, s);
                if (c + 1 < chunks) advance_chunk(s, first + c * a.chunk, a.chunk);
            }
            for (int64_t c = chunks; c-- > 0;) {
                fetch(inner + c * floats, s);
                adjoint_chunk(s, d, first + c * a.chunk, tile_number);
            }
        }
    }

private:
    const kda_bwd_recurrent_args &a;
    const kda_problem &p;
    const kda_item &item;
    const kda_batch_layout &lay;
    float *states, *batch, *sums;
    int lane, warp, warps;

    __device__ __forceinline__ void fetch(const float *at, kda_tile<Quads> &s) const {
#pragma unroll
        for (int i = 0; i < 4 * Quads; ++i) kda_kept<Quads>(at, i, s.s[i]);
    }

    /// Tokens t ... of the sequence to the batch; between two barriers.
    __device__ __forceinline__ void stage(int64_t t, int count) const {
        __syncthreads(); // nobody reads the batch before any more
#pragma unroll 1
        for (int slot = warp; slot < count; slot += warps)
            kda_stage_token(a, item, lay, batch, slot, t + slot);
        __syncthreads(); // the batch is there
    }

    __device__ __forceinline__ void advance(kda_tile<Quads> &s, int slot) const {
        float r[4] = {}, u[4];
#pragma unroll
        for (int j = 0; j < Quads; ++j) {
            const int key = kda_tile_key(lane, 4 * j);
            float k[4], decay[4];
            kda_four(batch + lay.k(slot) + key, k);
            kda_four(batch + lay.decay(slot) + key, decay);
#pragma unroll
            for (int x = 0; x < 4; ++x)
#pragma unroll
                for (int c = 0; c < 4; ++c) {
                    s.s[4 * j + x][c] *= decay[x];
                    r[c] += k[x] * s.s[4 * j + x][c];
                }
        }
        const float sum = kda_fold(r, r);
        const int column = kda_tile_column(warp, lane) + kda_fold_column();
        kda_unfold(batch[lay.beta(slot)] * (batch[lay.v(slot) + column] - sum), u);
#pragma unroll
        for (int j = 0; j < Quads; ++j) {
            float k[4];
            kda_four(batch + lay.k(slot) + kda_tile_key(lane, 4 * j), k);
#pragma unroll
            for (int x = 0; x < 4; ++x)
#pragma unroll
                for (int c = 0; c < 4; ++c) s.s[4 * j + x][c] += k[x] * u[c];
        }
    }

    /// Whole chunks only: the last one of a sequence is never run forward.
    __device__ __forceinline__ void advance_chunk(kda_tile<Quads> &s, int64_t t, int count) const {
        stage(t, count);
#pragma unroll 1
        for (int slot = 0; slot < count; ++slot) advance(s, slot);
    }

    __device__ __forceinline__ void adjoint_chunk(kda_tile<Quads> &s, kda_tile<Quads> &d, int64_t t,
                                                  int64_t tile_number) const {
        const int64_t left = item.at.length - t;
        const int count = static_cast<int>(left < a.chunk ? left : a.chunk);
        const int floats = 16 * Quads * static_cast<int>(blockDim.x);
        stage(t, count);
#pragma unroll 1
        for (int slot = 0; slot < count; ++slot) {
            kda_keep(states + slot * floats, s); // read back by this thread alone
            if (slot + 1 < count) advance(s, slot);
        }
#pragma unroll 1
        for (int slot = count; slot-- > 0;) {
            float *mine = sums + (slot % 2 * warps + warp) * (3 * 64 * Quads + 4);
            adjoint(states + slot * floats, d, slot, mine);
            // Rows alternate: those of the token behind are read before anybody passes this.
            __syncthreads();
            put_row(sums + slot % 2 * warps * (3 * 64 * Quads + 4), item.at.begin + t + slot,
                    tile_number);
        }
        // Behind the last barrier: every dv lies where its v was.
        for (int slot = warp; p.dv.used() && slot < count; slot += warps)
            for (int x = lane; x < lay.columns; x += 32)
                if (item.column + x < p.dim_v)
                    kda_store(a.dv,
                              kda_at(p.dv, item.at.row, item.at.begin + t + slot, item.hv) +
                                  (item.column + x) * p.dv.c,
                              p.dv.type, batch[lay.v(slot) + x]);
    }

    /// d: the gradient of the state behind the token, then of the one before it.
    __device__ __forceinline__ void adjoint(const float *before, kda_tile<Quads> &d, int slot,
                                            float *row) const {
        float r[4] = {}, w[4] = {}, u[4], dr[4];
#pragma unroll
        for (int j = 0; j < Quads; ++j) {
            const int key = kda_tile_key(lane, 4 * j);
            float k[4], decay[4];
            kda_four(batch + lay.k(slot) + key, k);
            kda_four(batch + lay.decay(slot) + key, decay);
#pragma unroll
            for (int x = 0; x < 4; ++x) {
                float s[4];
                kda_kept<Quads>(before, 4 * j + x, s);
#pragma unroll
                for (int c = 0; c < 4; ++c) {
                    r[c] += k[x] * (decay[x] * s[c]);
                    w[c] += k[x] * d.s[4 * j + x][c];
                }
            }
        }
        const float sum = kda_fold(r, w), other = __shfl_xor_sync(0xffffffffu, sum, 8);
        const int column = kda_tile_column(warp, lane) + kda_fold_column();
        const float beta = batch[lay.beta(slot)];
        // Of the four lanes of a column the first alone reads v and leaves dv there; what the
        // others make of their zero goes nowhere.
        const float v = (lane & 9) == 0 ? batch[lay.v(slot) + column] : 0.0f;
        const float e = v - ((lane & 8) != 0 ? other : sum);
        const float du =
            ((lane & 8) != 0 ? sum : other) + batch[lay.kq(slot)] * batch[lay.o(slot) + column];
        kda_unfold(beta * e, u);
        kda_unfold(-beta * du, dr);
        if ((lane & 9) == 0) batch[lay.v(slot) + column] = beta * du;
        float dbeta = du * e;
        dbeta += __shfl_xor_sync(0xffffffffu, dbeta, 2);
        dbeta += __shfl_xor_sync(0xffffffffu, dbeta, 4);
        dbeta +=
            __shfl_xor_sync(0xffffffffu, dbeta, 16); // lanes 1 and 8 apart have the same column
        if (lane == 0) row[3 * 64 * Quads] = dbeta;

        float d_o[4];
        kda_four(batch + lay.o(slot) + kda_tile_column(warp, lane), d_o);
#pragma unroll
        for (int j = 0; j < Quads; ++j) {
            const int key = kda_tile_key(lane, 4 * j);
            float q[4], k[4], decay[4], of[3][4] = {};
            kda_four(batch + lay.q(slot) + key, q);
            kda_four(batch + lay.k(slot) + key, k);
            kda_four(batch + lay.decay(slot) + key, decay);
#pragma unroll
            for (int x = 0; x < 4; ++x) {
                float s[4];
                kda_kept<Quads>(before, 4 * j + x, s);
#pragma unroll
                for (int c = 0; c < 4; ++c) {
                    const float kept = decay[x] * s[c];
                    float g = d.s[4 * j + x][c] + q[x] * d_o[c];
                    of[0][x] += (kept + k[x] * u[c]) * d_o[c];
                    of[1][x] += g * u[c] + kept * dr[c];
                    g += k[x] * dr[c];
                    of[2][x] += g * kept;
                    d.s[4 * j + x][c] = decay[x] * g;
                }
            }
            // Both halves of the warp have these keys: each adds up two of four.
            const bool upper = lane >= 16;
#pragma unroll
            for (int m = 0; m < 3; ++m)
#pragma unroll
                for (int x = 0; x < 2; ++x) {
                    const float v =
                        (upper ? of[m][2 + x] : of[m][x]) +
                        __shfl_xor_sync(0xffffffffu, upper ? of[m][x] : of[m][2 + x], 16);
                    row[m * 64 * Quads + key + (upper ? 2 : 0) + x] = v;
                }
        }
    }

    static __device__ __forceinline__ void kda_four(const float *at, float (&v)[4]) {
        const float4 four = *reinterpret_cast<const float4 *>(at);
        v[0] = four.x, v[1] = four.y, v[2] = four.z, v[3] = four.w;
    }

    /// The warps' rows, added up in order.
    __device__ __forceinline__ void put_row(const float *of, int64_t token,
                                            int64_t tile_number) const {
        constexpr int row = 3 * 64 * Quads;
        float *to = a.rows + ((tile_number * p.batch * p.length + item.at.row * p.length + token) *
                                  p.value_heads +
                              item.hv) *
                                 kda_bwd_row(a.pitch);
        for (int x = static_cast<int>(threadIdx.x); x <= row; x += static_cast<int>(blockDim.x)) {
            float sum = 0;
#pragma unroll 1
            for (int w = 0; w < warps; ++w) sum += of[w * (row + 4) + x];
            to[x] = sum;
        }
    }
};

template <int Quads>
__global__ void __launch_bounds__(32 * kda_bwd_recurrent_warps, 1)
    kda_bwd_recurrent(const __grid_constant__ kda_bwd_recurrent_args a) {
    extern __shared__ __align__(16) char shared[];
    const kda_problem &p = a.problem;
    const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
    const int warps = static_cast<int>(blockDim.x / 32);
    const kda_batch_layout lay{64 * Quads, warps * kda_warp_columns, a.chunk};
    const kda_bwd_smem smem(Quads, warps, a.chunk);
    for (int64_t block = blockIdx.x; block < a.blocks; block += gridDim.x) {
        const kda_item item = kda_item_of(a, block, lay.columns);
        const int64_t column = item.column + kda_tile_column(warp, lane);
        kda_tile<Quads> d;
        if (item.at.live && p.dstate_out.used())
            d.load(p, p.dstate_out, a.dstate_out, a.out,
                   item.at.state * p.dstate_out.n + item.hv * p.dstate_out.h, column);
        else
            d.clear();
        if (item.at.live && item.at.length > 0)
            kda_bwd_block<Quads>(a, item, lay, reinterpret_cast<float *>(shared), smem)
                .run(d, item.column / lay.columns);
        if (p.dstate_in.used() && item.at.state >= 0)
            d.store(p, p.dstate_in, a.dstate_in, a.din,
                    item.at.state * p.dstate_in.n + item.hv * p.dstate_in.h, column);
    }
}

} // namespace plait::impl::cuda
