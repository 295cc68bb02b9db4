// wht.groups: largest magnitudes of groups -> AMAX and SCALES, a few bytes a group.
// wht.clear: zeros in HISTOGRAM: 8 bytes a bin.
// wht.chains: for each place of a transform the entries of ROWS that name it, ascending, as a
// chain:
//   every warp owns a range of places and reads all of ROWS from its end, so that nothing depends
//   on the order of threads. 8 bytes a place out, `count` entries in for each warp, by way of L2.
// wht.rows_status: STATUS: 0, or 1 + the first entry of ROWS that is no place; ROWS in once.
// Blocks walk, offsets have 64 bits.
#include "lib/cuda/common/kernel_entry.cuh"
#include "lib/cuda/kernel_list.h"
#include "lib/cuda/wht/around.cuh"
#include "lib/cuda/wht/e4m3.cuh"

namespace plait::impl::cuda {

/// Calls use(number in the order of the walk, where its line begins, place along it).
template <int K, class Use>
__device__ __forceinline__ void wht_walk_all(const wht_walk<K> &w, wht_walk_bases<K> &base,
                                             Use use) {
    wht_walk_tiles(w, base, [&](int64_t tile, const int64_t(*lines)[K]) {
        const int count = wht_walk_count(w, tile);
        const int64_t first = wht_walk_number(w, tile);
        for (int i = static_cast<int>(threadIdx.x); i < count; i += wht_walk_threads) {
            const int line = wht_walk_line(w, i);
            use(first + i, lines[line], i - line * w.part);
        }
    });
}

__global__ static void __launch_bounds__(wht_walk_threads)
    wht_groups(const __grid_constant__ wht_groups_args a) {
    __shared__ wht_walk_bases<wht_groups_tensors> base;
    wht_walk_all(a.walk, base, [&](int64_t number, const int64_t *line, int along) {
        const auto at = [&](int tensor) { return line[tensor] + along * a.walk.step[tensor]; };
        if (a.amax_type == scalar::i64) {
            static_cast<int64_t *>(a.amax)[at(wht_groups_amax)] =
                static_cast<const int64_t *>(a.largest)[number];
            return;
        }
        const double size = a.w_type == scalar::f32
                                ? static_cast<double>(static_cast<const float *>(a.largest)[number])
                                : static_cast<const double *>(a.largest)[number];
        if (a.amax_type == scalar::f32)
            static_cast<float *>(a.amax)[at(wht_groups_amax)] = static_cast<float>(size);
        if (a.amax_type == scalar::f64) static_cast<double *>(a.amax)[at(wht_groups_amax)] = size;
        const float scale = wht_group_scale(size);
        if (a.scales) a.scales[at(wht_groups_scales)] = scale;
        if (a.dense) a.dense[number] = scale;
    });
}

__global__ static void __launch_bounds__(wht_walk_threads)
    wht_clear(const __grid_constant__ wht_clear_args a) {
    __shared__ wht_walk_bases<1> base;
    wht_walk_all(a.walk, base, [&](int64_t, const int64_t *line, int along) {
        a.out[line[0] + along * a.walk.step[0]] = 0;
    });
}

__global__ static void __launch_bounds__(wht_walk_threads)
    wht_chains(const __grid_constant__ wht_chains_args a) {
    const int lane = static_cast<int>(threadIdx.x % 32);
    const int64_t each = (a.places + a.warps - 1) / a.warps;
    const int64_t step = static_cast<int64_t>(gridDim.x) * (wht_walk_threads / 32);
    for (int64_t warp =
             static_cast<int64_t>(blockIdx.x) * (wht_walk_threads / 32) + threadIdx.x / 32;
         warp < a.warps; warp += step) {
        const int64_t begin = warp * each;
        const int64_t end = begin + each < a.places ? begin + each : a.places;
        for (int64_t k = begin + lane; k < end; k += 32) a.chains[k] = -1;
        __syncwarp(); // lane 0 reads what the others wrote
        if (begin >= end) continue;
        constexpr int ahead = 8; // loads on their way
        const int64_t last = (a.count + 32 * ahead - 1) / (32 * ahead);
        for (int64_t r = (last - 1) * 32 * ahead; r >= 0; r -= 32 * ahead) {
            int64_t place[ahead];
#pragma unroll
            for (int q = 0; q < ahead; ++q) {
                const int64_t k = r + 32 * q + lane;
                place[q] = k < a.count ? wht_row_at(a.type, a.rows, k * a.stride, a.places) : -1;
            }
#pragma unroll
            for (int q = ahead; q-- > 0;) {
                unsigned mine = __ballot_sync(0xffffffffu, place[q] >= begin && place[q] < end);
                while (mine != 0) { // the last of them first
                    const int from = 31 - __clz(static_cast<int>(mine));
                    mine &= ~(1u << from);
                    const int64_t at = __shfl_sync(0xffffffffu, place[q], from);
                    if (lane != 0) continue;
                    a.chains[a.places + r + 32 * q + from] = a.chains[at];
                    a.chains[at] = r + 32 * q + from;
                }
            }
        }
    }
}

__global__ static void __launch_bounds__(wht_walk_threads)
    wht_rows_status(const __grid_constant__ wht_rows_status_args a) {
    const int64_t step = static_cast<int64_t>(gridDim.x) * wht_walk_threads;
    for (int64_t r = static_cast<int64_t>(blockIdx.x) * wht_walk_threads + threadIdx.x; r < a.count;
         r += step) {
        if (wht_row_at(a.type, a.rows, r * a.stride, a.places) >= 0) continue;
        const auto found = static_cast<int>(r < INT32_MAX ? r + 1 : INT32_MAX);
        int old = *static_cast<volatile int32_t *>(a.status);
        while (old == 0 || old > found) {
            const int seen = atomicCAS(a.status, old, found);
            if (seen == old) break;
            old = seen;
        }
        return; // the thread's first one
    }
}

kernel_list list_wht_around_small() {
    static const kernel_entry entries[] = {
        make_kernel_entry<&wht_groups>("wht.groups", "any"),
        make_kernel_entry<&wht_clear>("wht.clear", "i64"),
        make_kernel_entry<&wht_chains>("wht.chains", "i64"),
        make_kernel_entry<&wht_rows_status>("wht.rows_status", "i32")};
    return {entries, static_cast<int>(sizeof(entries) / sizeof(entries[0]))};
}

} // namespace plait::impl::cuda
