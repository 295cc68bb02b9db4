// kda.chunk64_grad: gradients of q, k, g and beta of a chunk from the states at both its ends.
//   dq = s (e^G S DO + P k e),  dk = -e^G S dv + e^(later) dS u + F k e + (P^T q + F^T k) e
//   dg_r: of states; k * what the state is given before r; what rows from r on read; pairs around r
//   layout   a block is a chunk and head of q and k with its value heads in turn; a warp has 16
//            channels of 32 rows, transposed in accumulators, whose layout is that of operands of
//            the next product: of pairs only the 64 x 64 coefficients are in shared memory
//   pairs    by the levels of kda.chunk64_prep (chunk64_grad_pairs.cuh). In a level those around
//            r have r between their anchor and one of them: nothing is subtracted in dg, and
//            operands may be bf16 without matched rounding
//   raw      q and k are what is stored; their norms and the scale are in P, F and the results
//   dbeta    <w, u> / beta, or (1 - beta / scale) <w, u> of logits; no product with k+ S
//   traffic  keys = values = 128: reads 160 KiB for a chunk and head, writes 48 KiB: 50 ns at 4.2
//            TB/s on a whole device
//   bound    issue: some 78000 instructions of warps a chunk and head (counted in the code), about
//            two a cycle; one block of 16 warps to an SM, which 128 registers of a thread allow
#pragma once

#include "lib/cuda/common/cluster.cuh"
#include "lib/cuda/kda/chunk64_grad_eights.cuh"
#include "lib/cuda/kda/chunk64_grad_gates.cuh"

namespace plait::impl::cuda {

/// What is needed again when the pairs are done; in shared memory, because they need the registers.
struct kda64_grad_place {
    kda_chunk_place at;
    int64_t h, hv, record;
    uint32_t phase; ///< of both counters
};

/// Coefficients of rows: of q (norm and scale), of k, of w S, the squares of both norms; what <w,
/// u> is times (logits) or divided by in dbeta.
__device__ __forceinline__ void kda64_put_rows(const kda_problem &p, int count, uint32_t beta_bits,
                                               float least_beta, const float *squares, float *rows,
                                               float *of_betas) {
    const int self = kda64_anew(static_cast<int>(threadIdx.x));
    if (self >= 128) return;
    const int row = self % 64;
    float norm = 0;
    if (row < count) norm = p.norm ? kda_inverse_norm(p, squares[self]) : 1.0f;
    rows[self] = self < 64 ? norm * static_cast<float>(p.scale) : norm;
    rows[192 + self] = p.norm ? norm * norm : 0.0f;
    if (self < 64) return;
    float beta = 0, of_beta = 0;
    if (row < count) {
        const float raw = kda_widen(beta_bits, p.beta.type);
        beta = kda_beta_of(p, raw);
        if (fabsf(beta) < least_beta) beta = least_beta;
        of_beta = p.beta_logit ? kda_sigmoid(-raw) : beta;
    }
    rows[64 + self] = -beta * norm;
    of_betas[row] = of_beta;
}

/// P and F of 16 x 16 tokens with the coefficients of their rows, to tiles and to `near`; dbeta.
template <int Keys>
__device__ __forceinline__ void
kda64_put_pairs(const kda_chunk64_grad_args &a, const kda_chunk_place &at, int64_t hv,
                const float *rows, const float *of_betas, int row, int column, int lane,
                const kda64_row_pairs &x, char *pairs, float *near) {
    const kda_problem &p = a.p;
#pragma unroll
    for (int n = 0; n < 2; ++n) {
#pragma unroll
        for (int e = 0; e < 4; e += 2) {
            const mma_place in = mma_place_d(lane, e);
            const int i = row + in.row, j = column + 8 * n + in.column;
            float of_p[2], of_f[2];
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                of_p[h] = rows[i] * rows[64 + j + h] * x.p[n][e + h];
                of_f[h] = rows[128 + i] * rows[64 + j + h] * x.f[n][e + h];
                if (i == j + h) {
                    near[i / 2 * 4 + i % 2] = of_p[h];
                    if (a.dbeta != nullptr && i < at.rows) {
                        const float dot = x.f[n][e + h], of_beta = of_betas[i];
                        kda_store(a.dbeta, kda_at(p.dbeta, at.row, at.token + i, hv), p.dbeta.type,
                                  p.beta_logit ? of_beta * dot : dot / of_beta);
                    }
                }
            }
            if (i % 2 == 1 && i == j + 1) {
                near[i / 2 * 4 + 2] = of_p[0];
                near[i / 2 * 4 + 3] = of_f[0];
            }
            *reinterpret_cast<uint32_t *>(pairs + kda64_at(64, i, j)) =
                round_pair<scalar::bf16>(of_p[0], of_p[1]);
            *reinterpret_cast<uint32_t *>(pairs + kda64_tile_bytes(64, 64) + kda64_at(64, i, j)) =
                round_pair<scalar::bf16>(of_f[0], of_f[1]);
        }
    }
}

/// Gradients times the coefficients of their rows, through the norm, to their place.
template <int Keys, bool Bf16>
__device__ __forceinline__ void
kda64_put_gradient(const kda_problem &p, const kda_view &v, void *base, const kda_chunk_place &at,
                   int64_t h, const kda64_own &own, const char *tile, scalar type,
                   const float *along, float4 *slot, float (&dx)[4][mma_items_d]) {
#pragma unroll
    for (int pair = 0; pair < 2; ++pair) {
        uint32_t w[4];
        kda64_words<Keys>(tile, own, pair, w);
#pragma unroll
        for (int n = 0; n < 2; ++n) {
            const int t = 2 * pair + n, token = 32 * own.half + 8 * t + 2 * own.quad;
            const float2 sum = *reinterpret_cast<const float2 *>(along + token);
#pragma unroll
            for (int i = 0; i < 4; ++i)
                dx[t][i] = __fmaf_rn(-kda64_take<Bf16>(w[2 * n + i / 2], i % 2, type),
                                     i % 2 ? sum.y : sum.x, dx[t][i]);
        }
    }
    kda64_store_items(base, v.type, kda64_items_of<Keys>(p, v, at, h, own), slot, dx);
}

/// Shares of <gradient, row> of each token to `parts`.
template <int Keys, bool Bf16>
__device__ __forceinline__ void kda64_put_along(const kda64_own &own, const char *tile, scalar type,
                                                const float (&dx)[4][mma_items_d], float *parts) {
    float sums[8];
#pragma unroll
    for (int pair = 0; pair < 2; ++pair) {
        uint32_t w[4];
        kda64_words<Keys>(tile, own, pair, w);
#pragma unroll
        for (int n = 0; n < 4; ++n) {
            const int t = 2 * pair + n / 2, i = n % 2;
            sums[4 * pair + n] =
                __fmaf_rn(dx[t][i], kda64_take<Bf16>(w[n / 2 * 2], i, type),
                          dx[t][2 + i] * kda64_take<Bf16>(w[n / 2 * 2 + 1], i, type));
        }
    }
    parts[kda64_part_at<Keys>(own)] = kda64_sum_channels(sums, own.row);
}

template <int Keys, bool Bf16>
__global__ void __launch_bounds__(kda64_grad_threads(Keys), kda64_grad_blocks(Keys, Bf16))
    kda_chunk64_grad(const __grid_constant__ kda_chunk64_grad_args a) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    extern __shared__ __align__(16) char shared[];
    constexpr int threads = kda64_grad_threads(Keys);
    const kda_problem &p = a.p;
    const kda64_grad_shared s = kda64_grad_shared_of(Keys, a.values, p.group() > 1);
    auto *counter = reinterpret_cast<uint64_t *>(shared + s.counter);
    auto *rows = reinterpret_cast<float *>(shared + s.rows);
    auto *near = reinterpret_cast<float *>(shared + s.near);
    auto *totals = reinterpret_cast<float *>(shared + s.totals);
    auto *place = reinterpret_cast<kda64_grad_place *>(shared + s.place);
    auto *parts = reinterpret_cast<float *>(shared + s.pairs); // [2][keys / 16][64]
    if (threadIdx.x == 0) {
        counter_init(counter), counter_init(counter + 1);
        place->phase = 1;
    }
    const int group = static_cast<int>(p.group());
    for (int64_t block = blockIdx.x; block < a.blocks; block += gridDim.x) {
        for (int turn = 0; turn < group; ++turn) {
            // Of the place as little as can be waits in registers.
            const int64_t h = block % p.heads, slot = block / p.heads;
            const kda_chunk_place at =
                kda_chunk_of(p, a.table, a.chunks, a.slots, slot, kda64_rows);
            if (at.rows <= 0) break; // all threads
            int self = kda64_anew(static_cast<int>(threadIdx.x));
            kda64_own own = kda64_own_of<Keys>();
            const int64_t hv = h * group + turn, record = slot * p.value_heads + hv;
            bulk_fence();
            __syncthreads(); // what shared memory held is read, counters are there
            if (self == 0) {
                const auto row_bytes = static_cast<uint32_t>(kda64_tile_bytes(a.values, 64));
                *place = {at, h, hv, record, place->phase ^ 1};
                counter_expect(counter, 2 * row_bytes);
                bulk_load(shared + s.written, a.written + record * row_bytes, row_bytes, counter);
                bulk_load(shared + s.adjoints, a.adjoints + record * row_bytes, row_bytes, counter);
            }
            if (turn == 0) {
                kda64_load_rows<threads, false>(p.q, a.in.q, kda_at(p.q, at.row, at.token, h),
                                                at.rows, p.dim_k, Keys, a.vector_q, shared + s.q);
                kda64_load_rows<threads, false>(p.k, a.in.k, kda_at(p.k, at.row, at.token, h),
                                                at.rows, p.dim_k, Keys, a.vector_k, shared + s.k);
            }
            kda64_load_rows<threads, true>(p.d_o, a.d_o, kda_at(p.d_o, at.row, at.token, hv),
                                           at.rows, p.dim_v, a.values, a.vector_o, shared + s.d_o);
            async_commit();
            if (self == 0) { // behind what is needed before
                const auto bytes = static_cast<uint32_t>(kda64_tile_bytes(a.values, Keys));
                counter_expect(counter + 1, 2 * bytes);
                bulk_load(shared + s.states, a.states + record * bytes, bytes, counter + 1);
                bulk_load(shared + s.gradients, a.gradients + record * bytes, bytes, counter + 1);
            }
            uint32_t beta_bits = 0; // of row self - 64; on its way until rows are written
            if (self >= 64 && self - 64 < at.rows)
                beta_bits = kda_load_bits(
                    a.in.beta, kda_at(p.beta, at.row, at.token + self - 64, hv), p.beta.type);
            float decays[4][4];
            {
                const kda64_items items = kda64_items_of<Keys>(p, p.g, at, hv, own);
                const float rate = kda_rate(p, a.in.a_log, hv);
                const kda64_bias bias = kda64_bias_of(p, a.in.dt_bias, hv, own);
                kda64_load_items(a.in.g, p.g.type, items,
                                 reinterpret_cast<float4 *>(shared + s.pairs) + self, decays);
                kda64_to_decays(p, rate, bias, items, decays);
            }
            async_wait<0>();
            __syncthreads(); // q, k and DO are there
            kda64_put_squares<Keys, Bf16>(shared + s.q, shared + s.k, p.q.type, p.k.type, parts);
            counter_wait(counter, place->phase);
            __syncthreads(); // squares are written
            kda64_put_rows(p, place->at.rows, beta_bits, a.least_beta, parts, rows, totals);
            __syncthreads(); // rows are written, squares are read
#    pragma unroll 1
            for (int job = self / 32; job < 10; job += threads / 32) {
                const int m = job < 1 ? 0 : job < 3 ? 1 : job < 6 ? 2 : 3;
                const int row = 16 * m, column = 16 * (job - m * (m + 1) / 2);
                kda64_row_pairs x;
                kda64_rows_with_rows(shared + s.d_o, shared + s.written, shared + s.adjoints,
                                     a.values, row, column, own.lane, x);
                kda64_put_pairs<Keys>(a, place->at, place->hv, rows, totals, row, column, own.lane,
                                      x, shared + s.pairs, near);
            }
            counter_wait(counter + 1, place->phase); // states
            kda64_gradients d = {};
            float dots[2];
            kda64_rows_with_states<Keys>(s, shared, a.values, own, d, dots);
#    pragma unroll
            for (int t = 0; t < 4; ++t) {
                const int token = 32 * own.half + 8 * t + 2 * own.quad;
                const float2 of_q = *reinterpret_cast<const float2 *>(rows + token);
                const float2 of_k = *reinterpret_cast<const float2 *>(rows + 64 + token);
                const float2 of_w = *reinterpret_cast<const float2 *>(rows + 128 + token);
#    pragma unroll
                for (int i = 0; i < 4; ++i) {
                    d.q[t][i] *= i % 2 ? of_q.y : of_q.x;
                    d.read[t][i] *= i % 2 ? of_w.y : of_w.x;
                    d.write[t][i] *= i % 2 ? of_k.y : of_k.x;
                }
            }
            __syncthreads();            // pairs are written, tiles of states are read
            own = kda64_own_of<Keys>(); // again: cheaper than registers until here
            auto *own_decays = reinterpret_cast<float4 *>(shared + s.decays) + self;
#    pragma unroll
            for (int t = 0; t < 4; ++t)
                own_decays[t * threads] =
                    make_float4(decays[t][0], decays[t][1], decays[t][2], decays[t][3]);
            const kda64_level_inputs<Keys> in = {
                shared + s.q,     shared + s.k,
                shared + s.pairs, shared + s.pairs + kda64_tile_bytes(64, 64),
                own_decays,       p.q.type,
                p.k.type};
            kda64_level_halves<Keys, Bf16>(in, totals, dots, shared + s.states, d);
            kda64_level_sixteen<Keys, Bf16>(in, d);
#    pragma unroll 1 // else the registers of all are in use at once
            for (int t = 0; t < 4; ++t) {
                if (t % 2 == 0) kda64_level_eights<Keys, Bf16>(in, t / 2, d);
                float same[2] = {d.same[0][0], d.same[1][0]};
                kda64_level_rest<Keys, Bf16>(in, t, reinterpret_cast<const float4 *>(near), d.q[0],
                                             d.read[0], d.write[0], same);
                kda64_turn(d);
            }
            if (group > 1) {
                auto *sums = reinterpret_cast<float4 *>(shared + s.sums) + self;
#    pragma unroll
                for (int t = 0; t < 4; ++t) {
                    const auto add = [&](float4 *to, float(&x)[mma_items_d]) {
                        if (turn > 0) {
                            const float4 y = *to;
                            x[0] += y.x, x[1] += y.y, x[2] += y.z, x[3] += y.w;
                        }
                        if (turn + 1 < group) *to = make_float4(x[0], x[1], x[2], x[3]);
                    };
                    add(sums + t * threads, d.q[t]);
                    add(sums + (4 + t) * threads, d.read[t]);
                }
            }
            const kda64_grad_place here = *place;
            self = kda64_anew(static_cast<int>(threadIdx.x));
            own = kda64_own_of<Keys>();
            float of_bias[2], of_a;
            {
                const kda64_items items = kda64_items_of<Keys>(p, p.g, here.at, here.hv, own);
                float x[4][4] = {};
                if (p.gate != kda_gate::log)
                    kda64_load_items(a.in.g, p.g.type, items, own_decays, x);
                kda64_gates_back(p, kda_rate(p, a.in.a_log, here.hv),
                                 kda64_bias_of(p, a.in.dt_bias, here.hv, own), items, x, d.write,
                                 of_bias, of_a);
            }
            kda64_store_items(a.dg, p.dg.type, kda64_items_of<Keys>(p, p.dg, here.at, here.hv, own),
                              own_decays, d.write);
#    pragma unroll
            for (int c = 0; c < 2; ++c) {
                of_bias[c] += __shfl_xor_sync(0xffffffffu, of_bias[c], 1);
                of_bias[c] += __shfl_xor_sync(0xffffffffu, of_bias[c], 2);
            }
            of_a = kda_warp_sum(of_a);
            __syncthreads(); // pairs and totals are read
            if (own.quad == 0) {
                totals[own.half * Keys + own.channel] = of_bias[0];
                totals[own.half * Keys + own.channel + 8] = of_bias[1];
            }
            if (own.lane == 0) near[self / 32] = of_a;
            if (turn + 1 == group) {
                kda64_put_along<Keys, Bf16>(own, shared + s.q, p.q.type, d.q, parts);
                kda64_put_along<Keys, Bf16>(own, shared + s.k, p.k.type, d.read, parts + 4 * Keys);
            }
            __syncthreads(); // sums over tokens and parts are written
            if (a.partials != nullptr) {
                float *to = a.partials + here.record * (Keys + 1);
                if (self < Keys) to[self] = totals[self] + totals[Keys + self];
                if (self == Keys) {
                    float sum = 0;
                    for (int w = 0; w < threads / 32; ++w) sum += near[w];
                    to[Keys] = sum;
                }
            }
            if (turn + 1 < group) continue;
            if (self < 128)
                rows[self] = rows[192 + self] *
                             kda64_part_sum<Keys>(parts + self / 64 * 4 * Keys, self % 64);
            __syncthreads(); // sums over channels are there
            kda64_put_gradient<Keys, Bf16>(p, p.dq, a.dq, here.at, here.h, own, shared + s.q,
                                           p.q.type, rows, own_decays, d.q);
            kda64_put_gradient<Keys, Bf16>(p, p.dk, a.dk, here.at, here.h, own, shared + s.k,
                                           p.k.type, rows + 64, own_decays, d.read);
        }
    }
#endif
}

} // namespace plait::impl::cuda
