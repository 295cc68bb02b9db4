// Clusters on the emulator: blocks meet, see each other's shared memory, and are caught when the
// other one may not have started, has exited, or is not waited for.
#include "tests/emulate/cuda_emulation.h"

#include "lib/cuda/common/cluster.cuh"
#include "lib/cuda/common/kernel_entry.cuh"
#include "tests/emulate/emulator.h"

#include <doctest/doctest.h>
#include <set>
#include <vector>

namespace plait::impl::cuda {

struct emulated_cluster_args {
    int *out;
    int size;
    int mode;
    const int *in;
};

/// Every thread adds up what it reads in the next block of the cluster. mode: 0 with all barriers;
/// without the one 1 before the others' words are read the first time, 2 before they are read
/// again, 3 before words are written again, 4 before blocks exit.
__global__ void next_block(const __grid_constant__ emulated_cluster_args args) {
    extern __shared__ __align__(16) char shared[];
    const auto meet = [&](bool skip) {
        if (skip) return;
        cluster_arrive();
        cluster_wait();
    };
    int *words = reinterpret_cast<int *>(shared) + threadIdx.x;
    const unsigned next = (cluster_rank() + 1) % static_cast<unsigned>(args.size);
    int sum = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    for (int round = 0; round < 2; ++round) {
        *words = sum;
        meet(args.mode == 1 + round);
        sum = sum * 3 + *cluster_shared(words, next);
        if (round == 0) meet(args.mode == 3);
    }
    meet(args.mode == 4);
    args.out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

/// Blocks of which one does not come to the barrier, or does not arrive before it waits.
__global__ void never_together(const __grid_constant__ emulated_cluster_args args) {
    if (args.mode == 0 && cluster_rank() == 1) {
        __syncthreads();
        if (threadIdx.x == 3) __syncwarp();
    }
    if (args.mode == 0 && cluster_rank() == 1 && threadIdx.x != 3) __syncthreads();
    if (args.mode != 1) cluster_arrive();
    if (args.mode == 2) cluster_arrive();
    cluster_wait();
    args.out[blockIdx.x * blockDim.x + threadIdx.x] = 1;
}

/// Threads add up three pieces that bulk copies bring into the same place. mode: 0 as it should be,
/// 1 without the barrier before the place is filled again, 2 without waiting, 3 for a phase that
/// nobody expects, 4 at a misaligned place, 5 without looking at the last one.
__global__ void pieces(const __grid_constant__ emulated_cluster_args args) {
    extern __shared__ __align__(16) char shared[];
    auto *counter = reinterpret_cast<uint64_t *>(shared);
    int *words = reinterpret_cast<int *>(shared + 16);
    const unsigned t = threadIdx.x, bytes = blockDim.x * 4;
    if (t == 0) counter_init(counter);
    __syncthreads();
    int sum = 0;
    for (unsigned i = 0; i < 3; ++i) {
        if (t == 0) {
            if (args.mode != 3 || i == 0) counter_expect(counter, bytes);
            bulk_load(words + (args.mode == 4 ? 1 : 0), args.in + i * blockDim.x, bytes, counter);
        }
        if (args.mode == 5 && i == 2) return;
        if (args.mode != 2) counter_wait(counter, i % 2);
        sum = sum * 2 + words[(t + 40) % blockDim.x];
        if (args.mode != 1) __syncthreads();
    }
    args.out[blockIdx.x * blockDim.x + t] = sum;
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
};

template <auto Kernel> result run(int mode, int size, order how) {
    constexpr int threads = 96, clusters = 2;
    result r;
    r.out.assign(static_cast<size_t>(threads * clusters * size), -1);
    plait::emulation::launch_shape shape;
    shape.grid[0] = clusters * size;
    shape.block[0] = threads;
    shape.shared_bytes = threads * 4 + 16;
    shape.cluster = size;
    alignas(16) static int in[3 * threads];
    for (int i = 0; i < 3 * threads; ++i) in[i] = i * i;
    const emulated_cluster_args args{r.out.data(), size, mode, in};
    r.fault =
        plait::emulation::launch(make_kernel_entry<Kernel>("", "").func, shape, &args, {how, 7, 0});
    return r;
}

/// All orders without a fault, and with the same results.
template <auto Kernel> bool sound(int mode, int size) {
    std::set<std::vector<int>> all;
    for (const order how : orders) {
        const result r = run<Kernel>(mode, size, how);
        if (!r.fault.empty()) return false;
        all.insert(r.out);
    }
    return all.size() == 1;
}

} // namespace

TEST_CASE("emulator: blocks of a cluster meet and read each other's shared memory") {
    for (const int size : {2, 8, 16}) {
        CHECK(sound<next_block>(0, size));
        for (int mode = 1; mode <= 4; ++mode) CHECK_FALSE(sound<next_block>(mode, size));
    }
    const result r = run<next_block>(0, 2, order::random);
    // sum, then 3 sum + other, then 3 (3 sum + other) + (3 other + sum)
    for (int i = 0; i < 96; ++i) CHECK(r.out[static_cast<size_t>(i)] == 10 * i + 6 * (i + 96));
}

TEST_CASE("emulator: faults of clusters") {
    for (const order how : orders) {
        CHECK(run<never_together>(1, 2, how).fault.find("before it has arrived") !=
              std::string::npos);
        CHECK(run<never_together>(2, 2, how).fault.find("arrives twice") != std::string::npos);
        const std::string stuck = run<never_together>(0, 2, how).fault;
        CHECK(stuck.find("wait at __syncthreads, 96 for the cluster") != std::string::npos);
    }
    CHECK(run<next_block>(1, 2, order::forward).fault.find("may not have started") !=
          std::string::npos);
    CHECK(run<next_block>(4, 2, order::forward).fault.find("has exited") != std::string::npos);
    CHECK(run<next_block>(0, 32, order::forward).fault.find("cluster") != std::string::npos);
}

TEST_CASE("emulator: bulk copies and the counters that see them") {
    CHECK(sound<pieces>(0, 2));
    const result r = run<pieces>(0, 1, order::random);
    const auto at = [](int i, int t) { return (i * 96 + t) * (i * 96 + t); };
    for (int t = 0; t < 96; ++t) {
        const int other = (t + 40) % 96;
        CHECK(r.out[static_cast<size_t>(t)] == 4 * at(0, other) + 2 * at(1, other) + at(2, other));
    }
    CHECK_FALSE(sound<pieces>(1, 1));
    CHECK_FALSE(sound<pieces>(2, 1));
    for (const order how : orders) {
        CHECK(run<pieces>(3, 1, how).fault.find("for a counter") != std::string::npos);
        CHECK(run<pieces>(4, 1, how).fault.find("not aligned to 16 bytes") != std::string::npos);
    }
    CHECK(run<pieces>(5, 1, order::backward).fault.find("on its way") != std::string::npos);
}

} // namespace plait::test
