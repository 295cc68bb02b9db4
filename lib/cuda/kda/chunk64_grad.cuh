// kda.chunk64_grad: gradients of q, k, g and beta of a chunk from the states at both its ends.
//   dq = s (e^G S DO + P k e),  dk = -e^G S dv + e^(later) dS u + F k e + (P^T q + F^T k) e
//   dg_r: of states; k * what the state is given before r; what rows from r on read; pairs around r
//   layout   a block is a chunk and head of q and k with its value heads in turn; a thread has a
//            channel of 32 rows, products a warp's 16 channels, which meet in shared memory
//   pairs    by the levels of kda.chunk64_prep. In a level all pairs around r have r between their
//            anchor and one of them, so that a sum of rows from r on, or of columns before r, is
//            all of dg: nothing is subtracted, and operands may be bf16 without matched rounding
//   dbeta    <w, u> / beta, or (1 - beta / scale) <w, u> of logits; no product with k+ S
//   traffic  keys = values = 128: reads 192 KiB for a chunk and head, writes 48 KiB: 50 ns at 4.2
//            TB/s on a whole device
//   bound    one block of 8 warps to an SM (217 KiB); 9 exponentials for each element; barriers: 22
//            a chunk and head. About 12 us a chunk and head (estimate), 90 ns on 132 SMs
#pragma once

#include "lib/cuda/common/cluster.cuh"
#include "lib/cuda/kda/chunk64_grad_pairs.cuh"

namespace plait::impl::cuda {

/// A chunk's DO as bf16, 0 where nothing is.
template <int Threads>
__device__ __forceinline__ void kda64_load_output(const kda_problem &p, const void *base,
                                                  const kda_chunk_place &at, int64_t hv, int values,
                                                  char *tile) {
    const kda_view &v = p.d_o;
    const int64_t first = kda_at(v, at.row, at.token, hv);
    for (int e = static_cast<int>(threadIdx.x); e < 64 * values / 2; e += Threads) {
        const int row = e / (values / 2), column = e % (values / 2) * 2;
        float x[2] = {};
        for (int i = 0; i < 2; ++i)
            if (row < at.rows && column + i < p.dim_v)
                x[i] = kda_load(base, first + row * v.t + (column + i) * v.c, v.type);
        *reinterpret_cast<uint32_t *>(tile + kda64_at(kda64_grad_values, row, column)) =
            round_pair<scalar::bf16>(x[0], x[1]);
    }
}

/// The share of a thread in sum over values of dS S, and parts of <w, u> with what rounding to bf16
/// has left of both: `written`, `adjoints` of the record.
template <int Keys>
__device__ __forceinline__ float kda64_dots(char *shared, int values, const char *written,
                                            const char *adjoints) {
    constexpr kda64_grad_shared s = kda64_grad_shared_of(Keys);
    const int self = kda64_anew(static_cast<int>(threadIdx.x));
    const int half = self / Keys, channel = self % Keys;
    const auto take = [](const char *from) {
        return widen<scalar::bf16>(*reinterpret_cast<const uint16_t *>(from));
    };
    const int rest = kda64_tile_bytes(values, 64);
    float *parts = reinterpret_cast<float *>(shared + s.parts);
    float sum = 0;
    for (int v = self / 64; v < values; v += Keys / 32) {
        const int at = kda64_at(64, v, self % 64);
        const float u = take(shared + s.written + at) + take(written + rest + at);
        const float w = take(shared + s.adjoints + at) + take(adjoints + rest + at);
        sum = __fmaf_rn(u, w, sum);
    }
    parts[self % 64 * (Keys / 32) + self / 64] = sum;
    sum = 0;
    for (int v = half * (values / 2); v < (half + 1) * (values / 2); ++v) {
        const int at = kda64_at(Keys, v, channel);
        sum = __fmaf_rn(take(shared + s.states + at), take(shared + s.gradients + at), sum);
    }
    return sum;
}

/// dq, dk of a thread's channel, and dg of one value head.
struct kda64_results {
    float q[32], k[32], g[32];
};

/// What rows and states make of one another. dg lacks what the other half has to add: `read`, sums
/// of rows that read, and `wrote`, of rows that write, are those of this half.
template <int Keys>
__device__ __forceinline__ void kda64_meet_states(const kda64_raw_columns<Keys> &c, char *shared,
                                                  int values, float before, float behind,
                                                  kda64_results &d, float &read, float &wrote) {
    constexpr kda64_grad_shared s = kda64_grad_shared_of(Keys);
    const int self = kda64_anew(static_cast<int>(threadIdx.x)), half = self / Keys;
    auto *product = reinterpret_cast<float *>(shared + s.product);
    const float *own = product + 32 * half * kda64_pitch(Keys) + self % Keys;
    const auto *beta = reinterpret_cast<const float *>(shared + s.beta) + 32 * half;
    const auto *diagonal = reinterpret_cast<const float *>(shared + s.diagonal) + 32 * half;
    kda64_rows_with_state<Keys>(shared + s.d_o, nullptr, shared + s.states, values, product);
    __syncthreads(); // DO S is written, the diagonal too
    float sum = before;
#pragma unroll
    for (int i = 0; i < 32; ++i) {
        sum += c.g(i);
        const float x = __expf(sum) * own[i * kda64_pitch(Keys)];
        d.g[i] = c.q(i) * x;
        d.q[i] += __fmaf_rn(diagonal[i], c.k(i), x);
        d.k[i] = __fmaf_rn(diagonal[i], c.q(i), d.k[i]);
    }
    __syncthreads(); // DO S is read
    kda64_rows_with_state<Keys>(nullptr, shared + s.adjoints, shared + s.states, values, product);
    __syncthreads(); // w S is written
    sum = before;
#pragma unroll
    for (int i = 0; i < 32; ++i) {
        sum += c.g(i);
        const float x = -beta[i] * __expf(sum) * own[i * kda64_pitch(Keys)];
        d.g[i] = __fmaf_rn(c.k(i), x, d.g[i]);
        d.k[i] += x;
    }
    read = 0;
#pragma unroll
    for (int i = 31; i >= 0; --i) {
        read += d.g[i];
        d.g[i] = read;
    }
    __syncthreads(); // w S is read
    kda64_rows_with_state<Keys>(nullptr, shared + s.written, shared + s.gradients, values, product);
    __syncthreads(); // u dS is written
    float x[32];
    sum = behind;
#pragma unroll
    for (int i = 31; i >= 0; --i) {
        x[i] = __expf(sum) * own[i * kda64_pitch(Keys)];
        d.k[i] += x[i];
        sum += c.g(i);
    }
    wrote = 0;
#pragma unroll
    for (int i = 0; i < 32; ++i) {
        d.g[i] += wrote;
        wrote = __fmaf_rn(c.k(i), x[i], wrote);
    }
    __syncthreads(); // u dS is read, and so are all tiles of states
}

/// A thread's rows, through a column of shared memory that is its own, to loops that are not
/// unrolled 32 times.
template <int Keys>
__device__ __forceinline__ void kda64_park(const float (&x)[32], float *column) {
#pragma unroll
    for (int i = 0; i < 32; ++i) column[i * Keys] = x[i];
}

/// Columns of a thread in shared memory where its dq and dk wait while pairs take the registers.
struct kda64_sums_at {
    float *q, *k;
};

/// Takes the products of a level.
template <int Keys, int B>
__device__ __forceinline__ void kda64_collect(const kda64_raw_columns<Keys> &c,
                                              const float *product, float middle,
                                              const kda64_sums_at &to, float (&g)[32]) {
    constexpr int mask = (1 << B) - 1, pitch = kda64_pitch(Keys);
    const int self = kda64_anew(static_cast<int>(threadIdx.x)), half = self / Keys;
    const float *own = product + self % Keys;
    float x[32], sum = 0;
    if (B < 5 || half == 1) {
#pragma unroll
        for (int i = 0; i < 32; ++i) {
            if (B < 5 && !(i >> B & 1)) continue;
            sum = (i & mask) == 0 ? 0.0f : sum + c.g(i);
            const float e = __expf(sum);
            const int row = kda64_without(32 * half + i, B);
            const float q = e * own[row * pitch], k = e * own[(32 + row) * pitch];
            to.q[i * Keys] += q;
            to.k[i * Keys] += k;
            x[i] = __fmaf_rn(c.q(i), q, c.k(i) * k);
        }
#pragma unroll
        for (int i = 31; i >= 0; --i) {
            if (B < 5 && !(i >> B & 1)) continue;
            sum = (i & mask) == mask ? x[i] : sum + x[i];
            g[i] += sum;
        }
    }
    if (B < 5 || half == 0) {
        if (B == 5) sum = middle;
#pragma unroll
        for (int i = 31; i >= 0; --i) {
            if (B < 5 && (i >> B & 1)) continue;
            if (B < 5 && (i & mask) == mask) sum = c.g(i + 1);
            const int row = kda64_without(32 * half + i, B);
            const float k = __expf(sum) * own[(64 + row) * pitch];
            to.k[i * Keys] += k;
            x[i] = c.k(i) * k;
            sum += c.g(i);
        }
#pragma unroll
        for (int i = 0; i < 32; ++i) {
            if (B < 5 && (i >> B & 1)) continue;
            if ((i & mask) == 0) sum = 0;
            g[i] += sum;
            sum += x[i];
        }
    }
}

/// All levels from B down, two barriers each.
template <int Keys, int B>
__device__ __forceinline__ void kda64_pairs_back(const kda64_raw_columns<Keys> &c, char *shared,
                                                 float middle, const kda64_sums_at &to,
                                                 float (&g)[32]) {
    constexpr kda64_grad_shared s = kda64_grad_shared_of(Keys);
    auto *product = reinterpret_cast<float *>(shared + s.product);
    kda64_factors<Keys, B>(c, shared + s.states, middle);
    __syncthreads(); // factors are written, the products of the level before are read
    kda64_multiply_back<Keys, B>(shared + s.pairs_q, shared + s.pairs_k, shared + s.states,
                                 product);
    __syncthreads(); // products are written, factors are read
    kda64_collect<Keys, B>(c, product, middle, to, g);
    if constexpr (B > 0) kda64_pairs_back<Keys, B - 1>(c, shared, middle, to, g);
}

/// dg, parked in `column`, through the gate to its place, and partial sums of parameters. One
/// barrier.
template <int Keys>
__device__ __forceinline__ void kda64_put_gates(const kda_chunk64_grad_args &a,
                                                const kda_chunk_place &at, int64_t hv,
                                                int64_t record, char *shared, const float *column) {
    constexpr kda64_grad_shared s = kda64_grad_shared_of(Keys);
    const kda_problem &p = a.p;
    const int self = kda64_anew(static_cast<int>(threadIdx.x));
    const int half = self / Keys, channel = self % Keys;
    const int count = channel < p.dim_k ? min(at.rows - 32 * half, 32) : 0;
    const float rate = kda_rate(p, a.in.a_log, hv);
    const float bias = kda_bias(p, a.in.dt_bias, hv, channel < p.dim_k ? channel : 0);
    const int64_t g = kda_at(p.g, at.row, at.token + 32 * half, hv) + channel * p.g.c;
    const int64_t dg = kda_at(p.dg, at.row, at.token + 32 * half, hv) + channel * p.dg.c;
    float of_bias = 0, of_a = 0;
#pragma unroll 1
    for (int i = 0; i < count; ++i) {
        float dx = column[i * Keys];
        if (p.gate != kda_gate::log)
            dx = kda_gate_adjoint(p, rate, kda_load(a.in.g, g + i * p.g.t, p.g.type) + bias, dx,
                                  &of_a);
        of_bias += dx;
        if (a.dg != nullptr) kda_store(a.dg, dg + i * p.dg.t, p.dg.type, dx);
    }
    if (a.partials == nullptr) return;
    auto *sums = reinterpret_cast<float *>(shared + s.sums) + 6 * Keys;
    auto *parts = reinterpret_cast<float *>(shared + s.parts);
    if (half) sums[channel] = of_bias;
    const float all = kda_warp_sum(of_a);
    if (self % 32 == 0) parts[self / 32] = all;
    __syncthreads(); // sums and parts are written
    float *to = a.partials + record * (Keys + 1);
    if (!half) to[channel] = of_bias + sums[channel];
    if (self == 0) {
        float sum = 0;
        for (int w = 0; w < 2 * Keys / 32; ++w) sum += parts[w];
        to[Keys] = sum;
    }
}

/// Gradients of rows through their norm to their place: y(i) = scale * norm * raw is what the
/// products took. `column` is used up. Three barriers.
template <int Keys, class Row>
__device__ __forceinline__ void kda64_put_rows(const kda_problem &p, const kda_view &v, void *base,
                                               const kda_chunk_place &at, int64_t h, float *parts,
                                               float *along, const float *norms, float scale,
                                               const Row &y, float (&dx)[32], float *column) {
    const int self = kda64_anew(static_cast<int>(threadIdx.x));
    const int half = self / Keys, channel = self % Keys;
    float terms[32];
#pragma unroll
    for (int i = 0; i < 32; ++i) terms[i] = y(i) * dx[i];
    kda64_put_parts<Keys>(terms, parts, half);
    __syncthreads(); // parts are written
    const float inverse = scale != 0.0f ? 1.0f / scale : 0.0f;
    if (self < 64) along[self] = p.norm ? kda64_take_parts<Keys>(parts, self) * inverse : 0.0f;
    __syncthreads(); // sums are written
#pragma unroll
    for (int i = 0; i < 32; ++i)
        column[i * Keys] = norms[32 * half + i] * (scale * dx[i] - y(i) * along[32 * half + i]);
    const int count = channel < p.dim_k && base != nullptr ? min(at.rows - 32 * half, 32) : 0;
    const int64_t to = kda_at(v, at.row, at.token + 32 * half, h) + channel * v.c;
#pragma unroll 4
    for (int i = 0; i < count; ++i) kda_store(base, to + i * v.t, v.type, column[i * Keys]);
    __syncthreads(); // sums are read
}

template <int Keys>
__global__ void __launch_bounds__(kda64_prep_threads(Keys))
    kda_chunk64_grad(const __grid_constant__ kda_chunk64_grad_args a) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    extern __shared__ __align__(16) char shared[];
    constexpr kda64_grad_shared s = kda64_grad_shared_of(Keys);
    constexpr int threads = kda64_prep_threads(Keys);
    const kda_problem &p = a.p;
    auto *counter = reinterpret_cast<uint64_t *>(shared + s.counter);
    auto *parts = reinterpret_cast<float *>(shared + s.parts);
    auto *norms = reinterpret_cast<float *>(shared + s.norms);
    auto *beta = reinterpret_cast<float *>(shared + s.beta);
    auto *first = reinterpret_cast<float *>(shared + s.first);
    auto *sums = reinterpret_cast<float *>(shared + s.sums);
    if (threadIdx.x == 0) counter_init(counter);
    uint32_t phase = 0;
    const uint32_t state_bytes = static_cast<uint32_t>(kda64_tile_bytes(a.values, Keys));
    const uint32_t row_bytes = static_cast<uint32_t>(kda64_tile_bytes(a.values, 64));
    for (int64_t block = blockIdx.x; block < a.blocks; block += gridDim.x) {
        const int64_t h = block % p.heads, slot = block / p.heads;
        const kda_chunk_place at = kda_chunk_of(p, a.table, a.chunks, a.slots, slot, kda64_rows);
        if (at.rows <= 0) continue; // all threads
        kda64_raw_columns<Keys> c;
        kda64_results d = {};
        for (int64_t hv = h * p.group(); hv < (h + 1) * p.group(); ++hv) {
            const int self = kda64_anew(static_cast<int>(threadIdx.x));
            const int half = self / Keys, channel = self % Keys;
            const int64_t record = slot * p.value_heads + hv;
            bulk_fence();
            __syncthreads(); // the tiles and words of the chunk before are read, the counter is
                             // there
            if (self == 0) {
                counter_expect(counter, 2 * state_bytes + 2 * row_bytes);
                bulk_load(shared + s.states, a.states + record * state_bytes, state_bytes, counter);
                bulk_load(shared + s.gradients, a.gradients + record * state_bytes, state_bytes,
                          counter);
                bulk_load(shared + s.written, a.written + 2 * record * row_bytes, row_bytes,
                          counter);
                bulk_load(shared + s.adjoints, a.adjoints + 2 * record * row_bytes, row_bytes,
                          counter);
            }
            kda64_load_output<threads>(p, a.d_o, at, hv, a.values, shared + s.d_o);
            kda64_load<Keys>(p, a.in, at, hv, a.least_beta,
                             {parts, norms, beta, reinterpret_cast<float *>(shared + s.gates)}, c);
            float total = 0;
#    pragma unroll
            for (int i = 0; i < 32; ++i) total += c.g(i);
            sums[half * Keys + channel] = total;
            if (half) first[channel] = c.g(0);
            counter_wait(counter, phase);
            phase ^= 1;
            kda64_rows_with_rows<Keys>(shared, a.values);
            sums[(2 + half) * Keys + channel] =
                kda64_dots<Keys>(shared, a.values, a.written + 2 * record * row_bytes,
                                 a.adjoints + 2 * record * row_bytes);
            __syncthreads(); // sums, parts, pairs are written
            if (self < at.rows && a.dbeta != nullptr) {
                const float dot = kda64_take_parts<Keys>(parts, self);
                const float raw =
                    kda_load(a.in.beta, kda_at(p.beta, at.row, at.token + self, hv), p.beta.type);
                kda_store(a.dbeta, kda_at(p.dbeta, at.row, at.token + self, hv), p.dbeta.type,
                          p.beta_logit ? kda_sigmoid(-raw) * dot : dot / beta[self]);
            }
            const kda64_sums_at wait = {
                reinterpret_cast<float *>(shared + s.gradients) + 32 * half * Keys + channel,
                reinterpret_cast<float *>(shared + s.written) + 32 * half * Keys + channel};
            const float front = sums[channel], back = sums[Keys + channel];
            float read, wrote;
            kda64_meet_states<Keys>(c, shared, a.values, half ? front : 0.0f, half ? 0.0f : back, d,
                                    read, wrote);
            kda64_park<Keys>(d.q, wait.q); // the tiles are read
            kda64_park<Keys>(d.k, wait.k);
            // What the other half has to say: read in front of it, written behind.
            const float of_states =
                __expf(front + back) * (sums[2 * Keys + channel] + sums[3 * Keys + channel]);
            sums[(4 + half) * Keys + channel] = half ? read : wrote;
            kda64_factors<Keys, 5>(c, shared + s.states, first[channel]);
            __syncthreads(); // sums and factors are written
            const float other = sums[(5 - half) * Keys + channel];
#    pragma unroll
            for (int i = 0; i < 32; ++i) d.g[i] += of_states + other;
            kda64_multiply_back<Keys, 5>(shared + s.pairs_q, shared + s.pairs_k, shared + s.states,
                                         reinterpret_cast<float *>(shared + s.product));
            __syncthreads(); // products are written, factors are read
            kda64_collect<Keys, 5>(c, reinterpret_cast<const float *>(shared + s.product),
                                   first[channel], wait, d.g);
            kda64_pairs_back<Keys, 4>(c, shared, 0.0f, wait, d.g);
            kda64_park<Keys>(d.g, c.gates);
            kda64_put_gates<Keys>(a, at, hv, record, shared, c.gates);
#    pragma unroll
            for (int i = 0; i < 32; ++i) {
                d.q[i] = wait.q[i * Keys];
                d.k[i] = wait.k[i * Keys];
            }
        }
        __syncthreads(); // parts are read
        kda64_put_rows<Keys>(
            p, p.dq, a.dq, at, h, parts, sums, norms, static_cast<float>(p.scale),
            [&](int i) { return c.q(i); }, d.q, c.gates);
        kda64_put_rows<Keys>(
            p, p.dk, a.dk, at, h, parts, sums, norms + 64, 1.0f, [&](int i) { return c.k(i); }, d.k,
            c.gates);
    }
#endif
}

} // namespace plait::impl::cuda
