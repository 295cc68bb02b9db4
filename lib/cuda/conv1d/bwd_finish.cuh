// conv1d.bwd_reduce: dw[c,k] and dbias[c], the sums of the slots, in f64 and in a fixed order.
// conv1d.bwd_state: dstate_in[n,c,i] = sum_k w[k] g[t], t = p + K-1-k, p = i - entries, plus what
// the gradient of the last state passes on.
//
// Both follow the main kernel of a backward. A sum has 2^log_slices threads, neighbours take
// neighbouring channels; an element of a state has one thread, which computes the g of the first
// K-1 tokens again.
// Parts: bwd_state.cuh, states behind conv1d.bwd_bct.
#pragma once

#include "lib/cuda/common/predecessor.cuh"
#include "lib/cuda/conv1d/bwd_any.cuh"

namespace plait::impl::cuda {

template <class A>
__global__ void __launch_bounds__(conv1d_bwd_threads, 2)
    conv1d_bwd_reduce(const __grid_constant__ conv1d_bwd_reduce_args a) {
    extern __shared__ __align__(16) char shared[];
    double *const sums = reinterpret_cast<double *>(shared);
    const int thread = static_cast<int>(threadIdx.x);
    const int log_columns = 8 - a.log_slices, slices = 1 << a.log_slices;
    const int slice = thread >> log_columns;
    const int64_t columns = (a.width + 1) * a.channels;
    const int64_t step = static_cast<int64_t>(gridDim.x) << log_columns;
    start_successor();
    for (int64_t base = static_cast<int64_t>(wait_for_predecessor()) << log_columns; base < columns;
         base += step) {
        const int64_t column = base + (thread & ((1 << log_columns) - 1));
        double sum = 0;
        if (column < columns) {
            const A *const from = static_cast<const A *>(a.partial) + column;
            constexpr int ahead = 8;
            for (int64_t s = slice; s < a.slots; s += int64_t{ahead} * slices) {
                A part[ahead]; // all on their way before the first is added
#pragma unroll
                for (int i = 0; i < ahead; ++i)
                    part[i] = s + i * slices < a.slots ? from[(s + i * slices) * columns] : A(0);
#pragma unroll
                for (int i = 0; i < ahead; ++i) sum += static_cast<double>(part[i]);
            }
        }
        __syncthreads(); // the sums of the last columns are read
        sums[thread] = sum;
        __syncthreads(); // sums of all slices are written
        if (slice != 0 || column >= columns) continue;
        for (int i = 1; i < slices; ++i) sum += sums[thread + (i << log_columns)];
        const bool narrow =
            columns <= UINT32_MAX; // a division of 64 bits takes longer than the sum
        const int64_t k = narrow ? static_cast<uint32_t>(column) / static_cast<uint32_t>(a.channels)
                                 : column / a.channels;
        const int64_t c = column - k * a.channels;
        if (k < a.width) {
            if (a.dw) conv1d_store(a.dw, c * a.vdw.c + k * a.vdw.t, a.vdw.type, sum);
        } else if (a.dbias) {
            conv1d_store(a.dbias, c * a.vdbias.c, a.vdbias.type, sum);
        }
    }
}

/// Neighbouring threads take neighbouring channels where these lie side by side, else entries.
template <class A>
__global__ void __launch_bounds__(conv1d_bwd_threads)
    conv1d_bwd_state(const __grid_constant__ conv1d_bwd_args a) {
    const int64_t elements = a.sequences * a.channels * a.entries;
    const int64_t step = static_cast<int64_t>(gridDim.x) * conv1d_bwd_threads;
    const bool channels_first = a.vdstate_in.c < a.vdstate_in.t;
    start_successor();
    for (int64_t e =
             static_cast<int64_t>(wait_for_predecessor()) * conv1d_bwd_threads + threadIdx.x;
         e < elements; e += step) {
        const int64_t rest = channels_first ? e / a.channels : e / a.entries;
        const int64_t c = channels_first ? e % a.channels : rest % a.channels;
        const int64_t i = channels_first ? rest % a.entries : e % a.entries;
        const int64_t n = rest / (channels_first ? a.entries : a.channels);
        const bool packed = a.packed;
        const conv1d_sequence s = {n, packed ? a.spans[n].begin : 0,
                                   packed ? a.spans[n].end : a.length};
        A sum = A(0);
        const int64_t b = packed ? 0 : n;
        if (s.end >= s.begin) {
            const int64_t p = s.begin + i - a.entries;
            for (int j = 1; j < a.width; ++j) {
                const int64_t t = p + j;
                if (t < s.begin || t >= s.end) continue;
                if (!conv1d_live(a, s, b, t) || !conv1d_counts(a, s, b, t, p)) continue;
                const A w = conv1d_load<A>(a.w, c * a.vw.c + (a.width - 1 - j) * a.vw.t, a.vw.type);
                sum = conv1d_fma(w, conv1d_bwd_g<A>(a, b, c, t), sum);
            }
            if (s.end == s.begin && a.dstate_out) {
                sum = conv1d_load<A>(a.dstate_out, conv1d_at(a.vdstate_out, n, c, i),
                                     a.vdstate_out.type);
            } else {
                sum += conv1d_tail<A>(a, s, b, c, p);
            }
        }
        conv1d_store<A>(a.dstate_in, conv1d_at(a.vdstate_in, n, c, i), a.vdstate_in.type, sum);
    }
}

} // namespace plait::impl::cuda
