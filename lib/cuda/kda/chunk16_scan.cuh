// kda.bwd_c16_states: the scan of states from the first chunk to the last, kept before each chunk.
// kda.bwd_c16_a: the scan of their gradients from the last chunk to the first, kept behind each.
//   E = N (V - k+ S), U = beta E, S = diag(e^G) S + kR^T U
//   dU = A^T dO + kR dS, dVc = M^T dU, dv = beta dVc, dS = diag(e^G) dS + q+^T dO - k+^T dv
// Layout   S^T in the registers of a warp: 16 values x all keys; products give what the next
//          product takes, so that no state passes through shared memory
// Tiling   a block per 64 values of a value head of a sequence; its four warps read the same
//          record, which a ring of two or three stages brings; one barrier of each chunk
// Traffic  bf16, K = V = 128, of each chunk and value head: states 13 KB read, 36 KB written, a 18
//          and 40
// Numbers  states in f32, E and dVc too until they are stored, and what the ones of M and N leave
//          as it is; operands of products bf16 or f32
// Bound    memory with many heads, else the chain of products: 20 for K = 128 (estimates)
// Size     up to K = 128 at most 72 KB of shared memory and 168 registers: three blocks of an SM;
//          beyond, 107 KB and 255: two
#pragma once

#include "lib/cuda/common/async_copy.cuh"
#include "lib/cuda/kda/chunk16_input.cuh"

namespace plait::impl::cuda {

/// The work of a block of a scan.
struct kda_c16_run {
    int64_t n, first_chunk, chunks; ///< of sequence n
    int64_t batch, begin, length;
    int hv, tile; ///< of values, of this warp
    bool live;
};

__device__ __forceinline__ kda_c16_run kda_c16_run_of(const kda_c16_args &a, int64_t block) {
    const kda_problem &p = a.problem;
    const int64_t groups = kda_ceil_div(a.vt, kda_c16_warps), row = block / groups;
    kda_c16_run r{};
    r.tile = static_cast<int>(block - row * groups) * kda_c16_warps + kda_warp();
    r.n = row / p.value_heads;
    r.hv = static_cast<int>(row - r.n * p.value_heads);
    const kda_place at = kda_place_of(p, a.table, nullptr, r.n);
    r.live = at.live;
    r.batch = at.row;
    r.begin = at.begin;
    r.length = r.live ? at.length : 0;
    r.first_chunk =
        a.table != nullptr ? a.table[r.n].first_chunk : r.n * kda_ceil_div(p.length, kda_c16);
    r.chunks = kda_ceil_div(r.length, kda_c16);
    return r;
}

/// Records of a run in shared memory, some ahead.
class kda_c16_ring {
public:
    __device__ __forceinline__ kda_c16_ring(char *memory, int bytes)
        : memory_(memory), bytes_(bytes), stages_(kda_c16_stages(bytes)) {}
    /// Part of record `from` for step `step`; null: nothing, which is a group as well.
    __device__ __forceinline__ void bring(int64_t step, const char *from) {
        if (from != nullptr) {
            const shared_at to = shared_at_of(memory_ + step % stages_ * bytes_);
            for (int b = static_cast<int>(threadIdx.x) * 16; b < bytes_; b += kda_c16_threads * 16)
                async_copy<16>(to + b, from + b);
        }
        async_commit();
    }
    /// All threads: what step `step` needs is there, and nobody reads what the step before it had.
    __device__ __forceinline__ const char *here(int64_t step) const {
        if (stages_ == 3)
            async_wait<1>();
        else
            async_wait<0>();
        __syncthreads();
        return memory_ + step % stages_ * bytes_;
    }
    __device__ __forceinline__ int ahead() const { return stages_ - 1; }

private:
    char *memory_;
    int bytes_, stages_;
};

/// A state, its keys by tiles: rows values, columns keys. Zeros without one.
template <int Held>
__device__ __forceinline__ void kda_c16_load_state(const kda_c16_args &a, const kda_state_view &v,
                                                   const void *base, const kda_c16_run &run,
                                                   float (&state)[Held][8]) {
    const int64_t at = run.n * v.n + run.hv * v.h;
#pragma unroll
    for (int j = 0; j < Held; ++j)
#pragma unroll
        for (int e = 0; e < 8; ++e) {
            const int64_t value = 16 * run.tile + kda_tile_row(e),
                          key = 16 * j + kda_tile_column(e);
            const bool there =
                v.used() && run.live && key < a.problem.dim_k && value < a.problem.dim_v;
            state[j][e] = there ? kda_load(base, at + key * v.k + value * v.v, v.type) : 0.0f;
        }
}

/// The tiles of a state, turned: rows keys, columns values.
template <scalar S, int Held>
__device__ __forceinline__ void kda_c16_keep_state(const kda_c16_args &a, const kda_c16_run &run,
                                                   int64_t at, const float (&state)[Held][8],
                                                   char *states) {
#pragma unroll
    for (int j = 0; j < Held; ++j)
        if (j < a.kt)
            kda_store_tile<S>(states, (at * a.kt + j) * a.vt + run.tile,
                              kda_turned<S>(kda_make_tile<S>(state[j])));
}

template <scalar S, int Held>
__global__ void __launch_bounds__(kda_c16_threads, Held > 8 ? 2 : 3)
    kda_bwd_c16_states(const __grid_constant__ kda_c16_args a) {
    extern __shared__ __align__(16) char shared[];
    const kda_problem &p = a.problem;
    const kda_c16_record r = kda_c16_record_of(a.kt, a.vt, S == scalar::f32);
    kda_c16_ring ring(shared, r.forward_bytes());
    for (int64_t block = blockIdx.x; block < kda_c16_scans(a); block += gridDim.x) {
        const kda_c16_run run = kda_c16_run_of(a, block);
        const bool mine = run.tile < a.vt;
        const auto record = [&](int64_t c) {
            return a.records + ((run.first_chunk + c) * p.value_heads + run.hv) * r.size + r.floats;
        };
        for (int c = 0; c < ring.ahead(); ++c) ring.bring(c, c < run.chunks ? record(c) : nullptr);
        float state[Held][8];
        kda_c16_load_state(a, p.state_in, a.state_in, run, state);
        for (int64_t c = 0; c < run.chunks; ++c) {
            const char *in = ring.here(c);
            const int64_t next = c + ring.ahead();
            ring.bring(next, next < run.chunks ? record(next) : nullptr);
            if (!mine) continue;
            const int64_t at = (run.first_chunk + c) * p.value_heads + run.hv;
            float rest[8]; // V, then what S does not predict of it; rows values, columns tokens
#pragma unroll
            for (int e = 0; e < 8; ++e) {
                const int64_t value = 16 * run.tile + kda_tile_row(e),
                              token = 16 * c + kda_tile_column(e);
                const bool there = token < run.length && value < p.dim_v;
                rest[e] = there ? kda_load(a.v,
                                           kda_at(p.v, run.batch, run.begin + token, run.hv) +
                                               value * p.v.c,
                                           p.v.type)
                                : 0.0f;
            }
            kda_c16_keep_state<S>(a, run, at, state, a.states);
            float known[8], error[8];
#pragma unroll
            for (int e = 0; e < 8; ++e) known[e] = 0;
#pragma unroll
            for (int j = 0; j < Held; ++j)
                if (j < a.kt)
                    kda_product<S>(known, kda_make_tile<S>(state[j]),
                                   kda_load_tile<S>(in + r.kp - r.floats, j));
#pragma unroll
            for (int e = 0; e < 8; ++e) error[e] = rest[e] = rest[e] - known[e];
            kda_product<S>(error, kda_make_tile<S>(rest), kda_load_tile<S>(in + r.n - r.floats, 0));
            kda_store_tile<S>(a.errors, at * a.vt + run.tile,
                              kda_turned<S>(kda_make_tile<S>(error)));
            if (c + 1 == run.chunks) continue; // the last state is nobody's
            const float *total = reinterpret_cast<const float *>(in), *beta = total + 16 * a.kt;
#pragma unroll
            for (int e = 0; e < 8; ++e) error[e] *= beta[kda_tile_column(e)];
            const kda_tile<S> written = kda_make_tile<S>(error);
#pragma unroll
            for (int j = 0; j < Held; ++j)
                if (j < a.kt) {
#pragma unroll
                    for (int e = 0; e < 8; ++e) state[j][e] *= total[16 * j + kda_tile_column(e)];
                    kda_product<S>(state[j], written,
                                   kda_load_tile<S>(in + r.turned_kr - r.floats, j));
                }
        }
        async_wait<0>();
        __syncthreads(); // the next run replaces what is read here
    }
}

template <scalar S, int Held>
__global__ void __launch_bounds__(kda_c16_threads, Held > 8 ? 2 : 3)
    kda_bwd_c16_a(const __grid_constant__ kda_c16_args a) {
    extern __shared__ __align__(16) char shared[];
    const kda_problem &p = a.problem;
    const kda_c16_record r = kda_c16_record_of(a.kt, a.vt, S == scalar::f32);
    kda_c16_ring ring(shared, r.reverse_bytes());
    for (int64_t block = blockIdx.x; block < kda_c16_scans(a); block += gridDim.x) {
        const kda_c16_run run = kda_c16_run_of(a, block);
        const bool mine = run.tile < a.vt;
        const auto record = [&](int64_t step) { // from the last chunk on
            const int64_t c = run.first_chunk + run.chunks - 1 - step;
            return a.records + (c * p.value_heads + run.hv) * r.size;
        };
        for (int c = 0; c < ring.ahead(); ++c) ring.bring(c, c < run.chunks ? record(c) : nullptr);
        float state[Held][8];
        kda_c16_load_state(a, p.dstate_out, a.dstate_out, run, state);
        for (int64_t step = 0; step < run.chunks; ++step) {
            const char *in = ring.here(step);
            const int64_t next = step + ring.ahead();
            ring.bring(next, next < run.chunks ? record(next) : nullptr);
            if (!mine) continue;
            const int64_t c = run.chunks - 1 - step,
                          at = (run.first_chunk + c) * p.value_heads + run.hv;
            const kda_tile<S> out =
                kda_load_tile<S>(a.records + at * r.size + r.turned_do, run.tile);
            kda_c16_keep_state<S>(a, run, at, state, a.dstates);
            float du[8], dv[8];
#pragma unroll
            for (int e = 0; e < 8; ++e) du[e] = 0;
            kda_product<S>(du, out, kda_load_tile<S>(in + r.turned_a, 0));
#pragma unroll
            for (int j = 0; j < Held; ++j)
                if (j < a.kt)
                    kda_product<S>(du, kda_make_tile<S>(state[j]),
                                   kda_load_tile<S>(in + r.kr(), j));
#pragma unroll
            for (int e = 0; e < 8; ++e) dv[e] = du[e];
            kda_product<S>(dv, kda_make_tile<S>(du), kda_load_tile<S>(in + r.turned_m, 0));
            kda_store_tile<S>(a.dvalues, at * a.vt + run.tile, kda_turned<S>(kda_make_tile<S>(dv)));
            const float *total = reinterpret_cast<const float *>(in + r.floats),
                        *beta = total + 16 * a.kt;
#pragma unroll
            for (int e = 0; e < 8; ++e) {
                dv[e] *= beta[kda_tile_column(e)];
                const int64_t value = 16 * run.tile + kda_tile_row(e),
                              token = 16 * c + kda_tile_column(e);
                if (p.dv.used() && token < run.length && value < p.dim_v)
                    kda_store(a.dv,
                              kda_at(p.dv, run.batch, run.begin + token, run.hv) + value * p.dv.c,
                              p.dv.type, dv[e]);
                dv[e] = -dv[e];
            }
            const kda_tile<S> taken = kda_make_tile<S>(dv);
#pragma unroll
            for (int j = 0; j < Held; ++j)
                if (j < a.kt) {
#pragma unroll
                    for (int e = 0; e < 8; ++e) state[j][e] *= total[16 * j + kda_tile_column(e)];
                    kda_product<S>(state[j], out, kda_load_tile<S>(in + r.turned_qp(), j));
                    kda_product<S>(state[j], taken, kda_load_tile<S>(in + r.turned_kp(), j));
                }
        }
        if (p.dstate_in.used()) {
            const kda_state_view &v = p.dstate_in;
#pragma unroll
            for (int j = 0; j < Held; ++j)
#pragma unroll
                for (int e = 0; e < 8; ++e) {
                    const int64_t value = 16 * run.tile + kda_tile_row(e),
                                  key = 16 * j + kda_tile_column(e);
                    if (key < p.dim_k && value < p.dim_v)
                        kda_store(a.dstate_in, run.n * v.n + run.hv * v.h + key * v.k + value * v.v,
                                  v.type, state[j][e]);
                }
        }
        async_wait<0>();
        __syncthreads(); // the next run replaces what is read here
    }
}

} // namespace plait::impl::cuda
