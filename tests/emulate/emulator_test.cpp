// The emulator does what a device does, and notices what a device would not forgive.
#include "tests/emulate/cuda_emulation.h"

#include "lib/cuda/common/kernel_entry.cuh"
#include "lib/cuda/common/predecessor.cuh"
#include "tests/emulate/emulator.h"

#include <algorithm>
#include <doctest/doctest.h>
#include <set>
#include <vector>

// Kernels are where `extern __shared__` finds its array.
namespace plait::impl::cuda {

struct emulated_args {
    int *out;
    int mode;
};

/// Every thread reads what its neighbour wrote. mode: 1 with the barriers, 2 without the one before
/// the words are read, 3 without the one before they are written again.
__global__ void neighbours(const __grid_constant__ emulated_args args) {
    extern __shared__ __align__(16) char shared[];
    int *words = reinterpret_cast<int *>(shared);
    const unsigned t = threadIdx.x, next = (t + 37) % blockDim.x;
    int sum = static_cast<int>(t);
    for (int round = 0; round < 3; ++round) {
        words[t] = sum;
        if (args.mode != 2) __syncthreads();
        sum = sum * 3 + words[next];
        if (args.mode != 3) __syncthreads();
    }
    args.out[blockIdx.x * blockDim.x + t] = sum;
}

/// Only __syncwarp between warps that exchange words.
__global__ void warps_apart(const __grid_constant__ emulated_args args) {
    extern __shared__ __align__(16) char shared[];
    int *words = reinterpret_cast<int *>(shared);
    const unsigned t = threadIdx.x;
    words[t] = static_cast<int>(t);
    __syncthreads();
    const int other = words[t ^ 32];
    __syncwarp();
    words[t] = other + 1;
    __syncthreads();
    args.out[t] = words[t];
}

__global__ void exits(const __grid_constant__ emulated_args args) {
    const int t = static_cast<int>(threadIdx.x);
    if (t % 3 == args.mode) return;
    const int here = __syncthreads_count(t % 2);
    __syncwarp();
    args.out[t] = here;
}

__global__ void never_meet(const __grid_constant__ emulated_args args) {
    if (static_cast<int>(threadIdx.x) == args.mode)
        __syncwarp();
    else
        __syncthreads();
    args.out[threadIdx.x] = 1;
}

__global__ void shared_at(const __grid_constant__ emulated_args args) {
    extern __shared__ __align__(16) char shared[];
    if (threadIdx.x == 0) reinterpret_cast<int *>(shared)[args.mode] = 7;
    __syncthreads();
    args.out[threadIdx.x] = reinterpret_cast<int *>(shared)[args.mode];
}

__global__ void first_sight(const __grid_constant__ emulated_args args) {
    extern __shared__ __align__(16) char shared[];
    int *word = reinterpret_cast<int *>(shared) + threadIdx.x;
    args.out[blockIdx.x * blockDim.x + threadIdx.x] = *word + 1; // NaN is all ones
    *word = args.mode;
}

__global__ void static_array(const __grid_constant__ emulated_args args) {
    __shared__ int words[64];
    words[threadIdx.x] = static_cast<int>(threadIdx.x) + args.mode;
    __syncthreads();
    args.out[threadIdx.x] = words[63 - threadIdx.x];
}

__global__ void misaligned(const __grid_constant__ emulated_args args) {
    __stcs(reinterpret_cast<int4 *>(args.out + args.mode), make_int4(1, 2, 3, 4));
}

__global__ void warp_operations(const __grid_constant__ emulated_args args) {
    const int t = static_cast<int>(threadIdx.x), w = args.mode;
    int *out = args.out + t * 8;
    out[0] = __shfl_sync(0xffffffffu, t, 5, w);
    out[1] = __shfl_xor_sync(0xffffffffu, t, 3, w);
    out[2] = __shfl_up_sync(0xffffffffu, t, 2, w);
    out[3] = __shfl_down_sync(0xffffffffu, t, 2, w);
    out[4] = static_cast<int>(__ballot_sync(0xffffffffu, t % 3 == 0));
    const unsigned half = t % 32 < 16 ? 0xffffu : 0xffff0000u; // warps may split
    out[5] = __any_sync(half, t % 32 == 3);
    out[6] = __all_sync(half, t % 32 < 16);
    out[7] = static_cast<int>(__shfl_xor_sync(0xffffffffu, t + 0.25, 16) * 4);
}

__global__ void absent_lane(const __grid_constant__ emulated_args args) {
    if (threadIdx.x == 9) return;
    args.out[threadIdx.x] = __shfl_sync(0xffffffffu, 1, args.mode);
}

__global__ void waits(const __grid_constant__ emulated_args args) {
    if (static_cast<int>(threadIdx.x) < args.mode) return;
    args.out[wait_for_predecessor()] = 1;
}

__global__ void counters(const __grid_constant__ emulated_args args) {
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    atomicAdd(args.out, 1);
    atomicMax(args.out + 1, i);
    if (atomicExch(args.out + 2, i) == -1) args.out[3] = i; // the first one of all
}

} // namespace plait::impl::cuda

namespace plait::test {
namespace {

using namespace plait::impl::cuda;
using plait::emulation::order;

constexpr order orders[] = {order::forward, order::backward, order::random};

struct result {
    std::string fault;
    std::vector<int> out;
    bool operator<(const result &other) const { return out < other.out; }
};

template <auto Kernel>
result run(int mode, int threads, int shared_bytes, order how, int blocks = 1, int each = 1) {
    result r;
    r.out.assign(static_cast<size_t>(threads * blocks * each), -1);
    plait::emulation::launch_shape shape;
    shape.grid[0] = blocks;
    shape.block[0] = threads;
    shape.shared_bytes = shared_bytes;
    const emulated_args args{r.out.data(), mode};
    r.fault =
        plait::emulation::launch(make_kernel_entry<Kernel>("", "").func, shape, &args, {how, 7, 0});
    return r;
}

/// How many different results the orders give.
template <auto Kernel> size_t results(int mode, int threads, int shared_bytes) {
    std::set<result> all;
    for (const order how : orders) {
        all.insert(run<Kernel>(mode, threads, shared_bytes, how));
        CHECK(all.begin()->fault == "");
    }
    return all.size();
}

} // namespace

TEST_CASE("emulator: a missing barrier changes results from order to order") {
    CHECK(results<neighbours>(1, 256, 1024) == 1);
    CHECK(results<neighbours>(2, 256, 1024) == 3);
    CHECK(results<neighbours>(3, 256, 1024) > 1);
    CHECK(results<warps_apart>(0, 64, 256) > 1);
    std::vector<int> words(200), next(200);
    for (int i = 0; i < 200; ++i) words[static_cast<size_t>(i)] = i;
    for (int round = 0; round < 3; ++round, words = next)
        for (size_t i = 0; i < 200; ++i) next[i] = words[i] * 3 + words[(i + 37) % 200];
    CHECK(run<neighbours>(1, 200, 800, order::random).out == words);
}

TEST_CASE("emulator: threads that have exited are not waited for, all others are") {
    for (const order how : orders) {
        const result r = run<exits>(1, 80, 0, how);
        REQUIRE(r.fault == "");
        int odd = 0;
        for (int t = 0; t < 80; ++t) odd += t % 3 != 1 && t % 2;
        for (int t = 0; t < 80; ++t)
            CHECK(r.out[static_cast<size_t>(t)] == (t % 3 == 1 ? -1 : odd));
        const std::string fault = run<never_meet>(40, 64, 0, how).fault;
        CHECK(fault.find("63 threads wait at __syncthreads, 1 at a shuffle") != std::string::npos);
    }
}

TEST_CASE("emulator: shared memory begins as NaN and ends where the launch said") {
    for (const order how : orders) {
        CHECK(run<shared_at>(63, 64, 256, how).fault == "");
        CHECK(run<shared_at>(64, 64, 256, how).fault.find("byte 256 of 256") != std::string::npos);
        CHECK(run<first_sight>(1, 64, 256, how, 3).out == std::vector<int>(192, 0));
        const result swapped = run<static_array>(5, 64, 0, how);
        REQUIRE(swapped.fault == "");
        for (int t = 0; t < 64; ++t) CHECK(swapped.out[static_cast<size_t>(t)] == 68 - t);
    }
    CHECK(run<shared_at>(0, 64, 1 << 20, order::forward).fault.find("1048576 bytes") !=
          std::string::npos);
}

TEST_CASE("emulator: vector accesses must be aligned") {
    alignas(16) int out[8] = {};
    for (int mode = 0; mode < 3; ++mode) {
        const emulated_args args{out, mode};
        const std::string fault =
            plait::emulation::launch(make_kernel_entry<misaligned>("", "").func, {}, &args, {});
        CHECK((fault.find("not aligned") != std::string::npos) == (mode != 0));
    }
    CHECK(out[3] == 4);
}

TEST_CASE("emulator: shuffles and votes") {
    for (const order how : orders)
        for (const int w : {32, 8}) {
            const result r = run<warp_operations>(w, 64, 0, how, 1, 8);
            REQUIRE(r.fault == "");
            for (int t = 0; t < 64; ++t) {
                const int *out = &r.out[static_cast<size_t>(t) * 8], first = t & ~(w - 1);
                CHECK(out[0] == first + 5);
                CHECK(out[1] == (t ^ 3));
                CHECK(out[2] == (t - 2 >= first ? t - 2 : t));
                CHECK(out[3] == (t + 2 < first + w ? t + 2 : t));
                unsigned third = 0;
                for (int i = 0; i < 32; ++i) third |= ((t & 32) + i) % 3 == 0 ? 1u << i : 0u;
                CHECK(static_cast<unsigned>(out[4]) == third);
                CHECK(out[5] == (t % 32 < 16));
                CHECK(out[6] == (t % 32 < 16));
                CHECK(out[7] == (t ^ 16) * 4 + 1);
            }
            CHECK(run<absent_lane>(8, 32, 0, how).fault == "");
            CHECK(run<absent_lane>(9, 32, 0, how).fault.find("does not take part") !=
                  std::string::npos);
        }
}

TEST_CASE("emulator: blocks run in every order, atomics see each other") {
    std::set<int> firsts;
    for (const order how : orders) {
        const result r = run<counters>(0, 32, 0, how, 5);
        REQUIRE(r.fault == "");
        CHECK(r.out[0] == 159); // began at -1
        CHECK(r.out[1] == 159);
        firsts.insert(r.out[3]);
    }
    CHECK(firsts.size() == 3);
}

TEST_CASE("emulator: threads up to the wait for the kernel before") {
    for (const order how : orders) {
        int out[2] = {};
        const auto start = [&](int first) {
            const emulated_args args{out, first};
            plait::emulation::settings only{how, 1};
            only.until_wait = true;
            return plait::emulation::launch(make_kernel_entry<waits>("", "").func,
                                            {{2, 1, 1}, {40, 1, 1}}, &args, only);
        };
        CHECK(start(0) == "");
        CHECK(start(33).find("exits without a wait") != std::string::npos);
        CHECK((out[0] == 0 && out[1] == 0));
        CHECK(run<waits>(0, 40, 0, how, 2).out[1] == 1);
    }
}

} // namespace plait::test
