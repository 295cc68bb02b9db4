// kda.fwd_chunk: forward in chunks of 16 tokens, in f32, for every problem without f64 tensors.
//   Work     one value head of one sequence at a time; per chunk the products of chunk-inl.h, three
//            with the state, which is a matrix in the caches of one core.
//   Threads  over (sequence, value head). The bits do not depend on the number of threads.
//   Numbers  f32 between load and store; norms in f64. No output depends on later tokens: a row of
//   a
//            chunk reads the rows up to it.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lib/cpu/kda/fwd_chunk.cpp"
#include "lib/cpu/simd_targets.h"

#include "lib/cpu/kda/chunk_args.h"
#include "lib/cpu/kda/kda_args.h"
#include "lib/cpu/kda/reserve.h"
#include "lib/cpu/sequences.h"

#include <algorithm>
#include <cmath>
#include <hwy/foreach_target.h> // IWYU pragma: keep
#include <hwy/highway.h>

#include "lib/cpu/kda/chunk-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plait::impl::cpu {
namespace HWY_NAMESPACE {
namespace kda_simd {

void forward(const head &one, float *state) {
    const kda_problem &p = one.p;
    const int64_t V = one.lay.dim_v;
    const chunk &w = one.w;
    if (!one.s.live) {
        std::fill(w.out, w.out + V, 0.0f);
        for (int64_t t = 0; t < one.s.length; ++t)
            store_row(p.o, one.a.o, place(p.o, one.s.row, one.s.begin + t, one.hv), p.dim_v, w.out);
        return one.store_state(p.state_out, one.a.state_out, nullptr);
    }
    one.load_state(p.state_in, one.a.state_in, state);
    for (int64_t t = 0; t < one.s.length; t += C) {
        if (one.reserve.written() && t % kda_reserve_rows == 0)
            one.reserve.put(t / kda_reserve_rows, state, V);
        const int64_t count = std::min(C, one.s.length - t);
        one.load_tokens(t, count);
        one.solve(state);
        product({w.qp, one.lay.dim_k, 1}, C, state, V, w.out, V, one.lay.dim_k, V, onto::zero);
        product({w.a, C, 1}, C, w.u, V, w.out, V, C, V, onto::sum);
        one.advance(state);
        for (int64_t i = 0; i < count; ++i)
            store_row(p.o, one.a.o, place(p.o, one.s.row, one.s.begin + t + i, one.hv), p.dim_v,
                      w.out + i * V);
    }
    one.store_state(p.state_out, one.a.state_out, state);
}

} // namespace kda_simd

void kda_forward_part(const kda_args &a, const sequence_table &table, const kda_chunk_layout &lay,
                      char *slice, int tid, int team) {
    const kda_problem &p = a.problem;
    kda_simd::carver from(slice);
    kda_simd::chunk buffers;
    buffers.carve(from, lay);
    float *state = from.floats(lay.state);
    const kda_simd::range heads(p.value_heads, tid, team);
    for (int64_t h = heads.begin; h < heads.end; ++h)
        kda_simd::clear_gaps(p, table, p.o, a.o, h, p.dim_v);
    if (p.value_heads == 0) return;
    const kda_simd::range items(table.count() * p.value_heads, tid, team);
    for (int64_t i = items.begin; i < items.end; ++i)
        kda_simd::forward(
            kda_simd::head(a, lay, table, i / p.value_heads, i % p.value_heads, buffers), state);
}

} // namespace HWY_NAMESPACE
} // namespace plait::impl::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#    include "lib/cpu/kda/kda_kernels.h"

#    include <omp.h>

namespace plait::impl::cpu {
namespace {

HWY_EXPORT(kda_forward_part);

} // namespace

void kda_fwd_chunk(const void *arguments, int threads) {
    const kda_args &a = *static_cast<const kda_args *>(arguments);
    const kda_chunk_layout lay(a.problem);
    const sequence_table table(kda_rules(a.problem), {a.cu_seqlens, a.slots, a.status}, a.scratch,
                               kda_reserve_piece(a.problem));
    put_reserve_header(a);
    char *scratch = static_cast<char *>(a.scratch) + kda_table_bytes(a.problem);
    const auto part = HWY_DYNAMIC_DISPATCH(kda_forward_part);
    // OpenMP would allocate a team even for one thread.
    if (threads <= 1) return part(a, table, lay, scratch, 0, 1);
#    pragma omp parallel num_threads(threads)
    part(a, table, lay, scratch + lay.slice * omp_get_thread_num(), omp_get_thread_num(),
         omp_get_num_threads());
}

} // namespace plait::impl::cpu
#endif
