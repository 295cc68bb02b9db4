// Part of kda.chunk64_prep, which begins in chunk64_prep.cuh:
// the same records of 16-bit q and k that copies of 16 bytes bring, by blocks of four warps.
//   layout   a block is a chunk of a value head; a warp has 16 rows, by 64 channels at a time, a
//            half warp eight of them, a lane four channels
//   near     gates bounded by -5, so that 16 tokens decay by at most e^-80: sums of gates and one
//            exponential to either side, around 2^58; one product has all pairs of 16 rows
//   levels   any gate: products of the decays of tokens, pairs of 16 rows by four levels
//            (chunk64_near_levels.cuh)
//   beyond   16 rows products of totals of warps; pairs of 16 and 32 rows by factors in shared
//            memory, squares of 16 rows of F and A on tensor cores, A from there to the record
//   inverse  f32: 16 rows by substitution, the rest by products of operands in two parts
//   copies   q, k and gates of the next chunk come while this one is inverted
//   traffic  as there
//   bound    keys = 128, `near`: issue by few warps. 14 830 instructions of warps for a chunk and
//            head, of which an H200 issued 1.9 a cycle and SM, with 12 warps in three blocks, all
//            that shared memory has room for: of 6.2 cycles to an instruction of a warp 1.35 are
//            fixed latencies, 1.0 instructions that are not there yet, 0.9 shared memory and
//            exponentials, 0.9 loads and barriers; DRAM at half of its peak. Straight code for each
//            warp's rows, a tenth fewer instructions but a third more text, made forward of 96
//            heads 8 % longer (1.055 ms for 0.978, in two runs)
#pragma once

#include "lib/cuda/common/predecessor.cuh"
#include "lib/cuda/kda/chunk64_near_levels.cuh"

namespace plait::impl::cuda {

template <int Keys>
__device__ __forceinline__ void kda64_fetch_task(const kda_chunk64_prep_args &a,
                                                 const kda64_task &t, int warp, int lane,
                                                 char *shared) {
    constexpr kda64_near_shared s = kda64_near_shared_of(Keys);
    const int row = kda64_near_rows * warp, left = t.rows - row;
    const int dim_k = static_cast<int>(a.p.dim_k);
    const int64_t token = t.token + (left > 0 ? row : 0);
    const int64_t h = t.head / static_cast<uint32_t>(a.group);
    kda64_fetch<Keys>(a.p.k, a.in.k, kda_at(a.p.k, t.row, token, h), left, dim_k, lane,
                      shared + s.k + kda64_factor_at(Keys, row, 0));
    kda64_fetch<Keys>(a.p.q, a.in.q, kda_at(a.p.q, t.row, token, h), left, dim_k, lane,
                      shared + s.q + kda64_factor_at(Keys, row, 0));
    async_commit();
}

/// Raw gates of 64 channels from `first` on, of this lane's rows.
__device__ __forceinline__ void kda64_fetch_gates(const kda_chunk64_prep_args &a,
                                                  const kda64_task &t, int first, int warp,
                                                  int lane, kda64_raw_gates &raw) {
    const kda_view &g = a.p.g;
    const int row = kda64_near_rows * warp + lane / 16 * 8, channel = first + lane % 16 * 4;
    const int bytes = g.type == scalar::f32 ? 4 : 2;
    raw.left = t.rows - row;
    const int64_t at = kda_at(g, t.row, t.token + (raw.left > 0 ? row : 0), t.head) +
                       (channel < a.p.dim_k ? channel : 0);
    raw.from = static_cast<const char *>(a.in.g) + at * bytes;
    raw.next = static_cast<int>(g.t) * bytes;
    raw.load(g.type);
}

/// S: the type of q and k. Near: gates within kda64_near, else any.
template <int Keys, scalar S, bool Near>
__global__ void __launch_bounds__(32 * kda64_near_warps, kda64_near_blocks(Keys, Near))
    kda_chunk64_near(const __grid_constant__ kda_chunk64_prep_args a) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    extern __shared__ __align__(16) char shared[];
    constexpr kda64_near_shared s = kda64_near_shared_of(Keys);
    constexpr kda64_record r = kda64_record_of(Keys);
    constexpr int pitch = kda64_factor_pitch(Keys), tile = kda64_near_rows * pitch;
    const kda_problem &p = a.p;
    start_successor(); // a scan takes places that this one leaves
    if (blockIdx.x == 0 && threadIdx.x == 0 && a.to != nullptr) *a.to = a.header;
    const int warp = static_cast<int>(threadIdx.x) >> 5, lane = static_cast<int>(threadIdx.x) & 31;
    const int first = kda64_near_rows * warp;
    auto *totals = reinterpret_cast<float *>(shared + s.totals);
    auto *norms = reinterpret_cast<float2 *>(shared + s.norms) + first;
    auto *diagonal = reinterpret_cast<float *>(shared + s.diagonal) + first;
    auto *beta = reinterpret_cast<float *>(shared + s.beta);
    char *const own_k = shared + s.k + first * pitch, *const own_q = shared + s.q + first * pitch;
    char *const lower = shared + s.lower + first * kda64_lower_pitch;
    const auto norms_of = [&](int block) {
        return reinterpret_cast<const float2 *>(shared + s.norms) + kda64_near_rows * block;
    };
    constexpr float unit = Near ? kda64_near_unit : 1.0f;
    const auto square = [&](int row, int column) {
        return shared + (row == column
                             ? s.lower + kda64_near_rows * kda64_lower_pitch * row
                             : s.squares + kda64_square_bytes * kda64_square_of(row, column));
    };
    // Records of 2^31 blocks are more than any memory, so that 32 bits number them.
    kda64_task next = kda64_task_from(a, blockIdx.x);
    kda64_raw_gates raw{};
    if (next.there) {
        kda64_fetch_task<Keys>(a, next, warp, lane, shared);
        kda64_fetch_gates(a, next, 0, warp, lane, raw);
    }
    kda64_task &t = reinterpret_cast<kda64_task *>(shared + s.tasks)[warp]; // not in registers
    while (next.there) {
        if (lane == 0) t = next;
        __syncwarp(); // t is written
        const auto record = [&] { return a.records + int64_t{t.block} * r.bytes; };
        const int left = t.rows - first;
        const int64_t token = t.token + (left > 0 ? first : 0);
        if (lane == 0) t.rate = kda_rate(p, a.in.a_log, t.head);
        const float bound = static_cast<float>(p.lower_bound) * kda64_log2_e;
        if (lane < kda64_near_rows) {
            float value = 0;
            if (lane < left) {
                value =
                    kda_beta_of(p, kda_load(a.in.beta, kda_at(p.beta, t.row, token + lane, t.head),
                                            p.beta.type));
                if (fabsf(value) < a.least_beta) value = a.least_beta;
            }
            beta[first + lane] = value;
            reinterpret_cast<float *>(record() + r.beta)[first + lane] = value;
        }
        async_wait<0>();
        __syncwarp(); // all lanes' copies are there
        kda64_near_norms<Keys, S>(p, own_k, own_q, left, lane, norms, diagonal);
        __syncwarp(); // norms are written
        kda64_pair_of_squares near[1] = {};
        kda64_level_sums sums = {};
#    pragma unroll 1
        for (int from = 0; from < Keys; from += kda64_near_channels) {
            const int channel = from + lane % 16 * 4;
            const bool inside = channel < p.dim_k;
            // Near: sums of gates, that of the half warp before and of all rows; else decays, of
            // this half warp and of the other.
            kda64_four bias, gates[8], one, two, decay;
            kda64_near_bias(a, t.head, inside ? channel : 0, bias);
            if constexpr (Near) {
                kda64_near_gates(raw, p.g.type, t.rate, bias, inside, lane, gates, one, two);
#    pragma unroll
                for (int c = 0; c < 4; ++c) decay[c] = kda64_exp2(bound * two[c]);
            } else {
                kda64_level_gates(p, raw, t.rate, bias, inside, gates, one, two);
#    pragma unroll
                for (int c = 0; c < 4; ++c) decay[c] = one[c] * two[c];
            }
            const auto next_gates = [&] {
                if (from + kda64_near_channels < Keys)
                    kda64_fetch_gates(a, t, from + kda64_near_channels, warp, lane, raw);
            };
            if constexpr (Near) next_gates();
            if (lane < 16)
                *reinterpret_cast<float4 *>(totals + warp * Keys + channel) =
                    kda64_as_float4(decay);
            __syncthreads(); // totals are written; of the chunk before all is read
            if constexpr (Near) {
                kda64_near_factors<Keys, S>(gates, one, two, bound, from, warp, lane, shared,
                                            record());
                __syncwarp(); // factors are written
                kda64_meet_squares<kda64_near_channels, pitch, kda64_lower_pitch, 1>(
                    own_k + 2 * from, own_q + 2 * from, {lower}, lane, near);
                __syncwarp(); // those of 64 channels are read
            } else {
                kda64_level_factors<Keys, S>(gates, two, from, warp, lane, shared, record(),
                                             next_gates, sums);
            }
        }
        if constexpr (Near) {
            kda64_put_triangle(near[0], beta + first, lane,
                               reinterpret_cast<float *>(square(warp, warp)));
            kda64_put_a<true>(near[0], nullptr, diagonal, warp, warp, lane, record() + r.a);
        } else {
            kda64_put_levels(sums, reinterpret_cast<const float4 *>(shared + s.sums)[threadIdx.x],
                             beta + first, norms, diagonal, warp, lane, square(warp, warp),
                             record() + r.a);
        }
        __syncthreads(); // factors, and squares of the diagonal, are written
        const char *tiles = shared + s.tiles;
        kda64_pair_of_squares below[2] = {};
        if (warp < 2) { // blocks 2 and 3 with 0 and 1
            const char *k = warp == 0 ? shared + s.k + 2 * tile : tiles + kda64_far_upper * tile;
            const char *q =
                warp == 0 ? shared + s.q + 2 * tile : tiles + (kda64_far_upper + 1) * tile;
            kda64_meet_squares<Keys, pitch, pitch, 2>(
                k, q, {tiles + kda64_far_lower * tile, tiles + (kda64_own_lower + 1) * tile}, lane,
                below);
        } else { // block 1 with 0, 3 with 2
            const int lower_block = 2 * (warp - 2);
            kda64_pair_of_squares one[1] = {};
            kda64_meet_squares<Keys, pitch, pitch, 1>(
                shared + s.k + (lower_block + 1) * tile, shared + s.q + (lower_block + 1) * tile,
                {tiles + (kda64_own_lower + lower_block) * tile}, lane, one);
            below[0] = one[0];
            const int of = lower_block + lane / 16;
            kda64_invert_to_parts(square(of, of), lane % 16);
        }
        __syncthreads(); // factors are read
        next = kda64_task_from(a, t.block + gridDim.x);
        if (next.there) {
            kda64_fetch_task<Keys>(a, next, warp, lane, shared);
            kda64_fetch_gates(a, next, 0, warp, lane, raw);
        }
        if (warp < 2) {
#    pragma unroll
            for (int c = 0; c < 2; ++c) {
                kda64_put_parts(below[c].l, unit, beta + 16 * (2 + warp), lane,
                                square(2 + warp, c));
                kda64_put_a<false>(below[c], Near ? nullptr : norms_of(2 + warp), diagonal,
                                   2 + warp, c, lane, record() + r.a);
            }
        } else {
            const int c = 2 * (warp - 2);
            kda64_put_parts(below[0].l, unit, beta + 16 * (c + 1), lane, square(c + 1, c));
            kda64_put_a<false>(below[0], Near ? nullptr : norms_of(c + 1), diagonal, c + 1, c, lane,
                               record() + r.a);
        }
        __syncthreads(); // L is written, triangles are inverted
        if (warp < 3) {
            kda64_invert_below(square, record() + r.m, warp, lane);
        } else {
            kda64_put_upper(square, record() + r.m, record() + r.a, lane);
        }
        __syncwarp(); // t is read
    }
#endif
}

} // namespace plait::impl::cuda
