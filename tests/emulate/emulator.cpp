// Launches: who runs when, and the shared memory of a block.
#include "tests/emulate/emulator_state.h"

#include <algorithm>
#include <iterator>

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace plait::impl::cuda {
// Kernels do not see whether their `extern thread_local` needs an initialisation and ask for it.
// GCC makes a call to nowhere of that under -fvisibility=hidden, unless there is one.
static char first_byte() { return 0; }
alignas(1024) thread_local char shared[emulation::most_shared + emulation::guard_shared] = {
    first_byte()};
} // namespace plait::impl::cuda

namespace plait::emulation {

block all_blocks[most_blocks];
running now;

namespace {

using plait::impl::cuda::shared;

constexpr char poison = '\xFF'; // NaN in every floating type
constexpr char canary = '\xFE'; // another one, also NaN

void leave() {
    wait_as(state::exited);
    --here().live;
    if (here().live == 0 && !here().copies.empty())
        now.fault = "the block exits while a bulk copy is on its way";
    if (me().arrived && me().round == now.round) --now.arrived;
    settle_barrier();
    settle_cluster();
    const int first = now.self & ~31;
    for (int i = first; i < std::min(first + 32, now.count); ++i)
        if (here().threads[i].now == state::at_meeting) settle_meeting(first, here().threads[i]);
    stacks().pause();
}

void entry() {
    now.body(now.args);
    if (now.until_wait) now.fault = "a thread exits without a wait for the kernel before";
    leave();
}

} // namespace

fibers &stacks() {
    static fibers all(most_fibers, &entry);
    return all;
}

namespace {

void run_thread(int i) {
    now.self = i;
    threadIdx = here().threads[i].index;
    stacks().run(now.rank * now.count + i);
}

/// One warp until none of its lanes can go on.
void run_warp(int first, bool backward) {
    const int lanes = std::min(32, now.count - first);
    for (bool any = true; any && now.fault.empty();) {
        any = false;
        for (int i = 0; i < lanes && now.fault.empty(); ++i) {
            const int t = first + (backward ? lanes - 1 - i : i);
            if (here().threads[t].now != state::ready) continue;
            run_thread(t);
            any = true;
        }
    }
}

template <class T> void shuffle_order(std::vector<T> &all, plait::test::rng &random) {
    for (size_t i = all.size(); i > 1; --i) std::swap(all[i - 1], all[random.next() % i]);
}

/// The block until none of its threads can go on; order::random may leave it before.
void run_block(order how, plait::test::rng &random) {
    const int warps = (now.count + 31) / 32;
    std::vector<int> mixed(static_cast<size_t>(now.count));
    for (int i = 0; i < now.count; ++i) mixed[static_cast<size_t>(i)] = i;
    while (awake() && now.fault.empty()) {
        if (how != order::random) {
            const bool backward = how == order::backward;
            for (int w = 0; w < warps; ++w) run_warp((backward ? warps - 1 - w : w) * 32, backward);
            continue;
        }
        shuffle_order(mixed, random);
        for (const int t : mixed) // some stay behind
            if (here().threads[t].now == state::ready && now.fault.empty() && random.chance(0.7))
                run_thread(t);
        if (now.blocks > 1 && random.chance(0.05)) return;
    }
}

size_t words_of(const launch_shape &s) { return (static_cast<size_t>(s.shared_bytes) + 15) / 16; }

/// Brings the shared memory of this block to where kernels find it.
void enter_block(int rank, const launch_shape &s) {
    const size_t bytes = static_cast<size_t>(s.shared_bytes);
    if (now.blocks > 1 && now.rank != rank) {
        if (bytes > 0) {
            std::memcpy(here().image.data(), shared, bytes);
            std::memcpy(shared, all_blocks[rank].image.data(), bytes);
        }
        now.rank = rank;
    }
    now.block_now = &all_blocks[rank];
    here().started = true;
    blockIdx = here().index;
}

void run_cluster(const launch_shape &s, order how, plait::test::rng &random) {
    std::vector<int> ranks(static_cast<size_t>(now.blocks));
    for (int r = 0; r < now.blocks; ++r) ranks[static_cast<size_t>(r)] = r;
    if (how == order::backward) std::reverse(ranks.begin(), ranks.end());
    while (now.fault.empty()) {
        if (how == order::random) shuffle_order(ranks, random);
        int live = 0;
        bool any = false;
        for (const int r : ranks) {
            if (all_blocks[r].ready + all_blocks[r].at_counters > 0 && now.fault.empty()) {
                enter_block(r, s);
                any = awake() || any;
                run_block(how, random);
            }
            live += all_blocks[r].live;
        }
        if (live == 0) return;
        if (any) continue;
        int waiting = 0, in_cluster = 0, counting = 0;
        for (int r = 0; r < now.blocks; ++r) {
            waiting += all_blocks[r].arrived;
            counting += all_blocks[r].at_counters;
            for (int i = 0; i < now.count; ++i)
                in_cluster += all_blocks[r].threads[i].now == state::at_cluster ? 1 : 0;
        }
        now.fault = std::to_string(waiting) + " threads wait at __syncthreads, " +
                    (now.blocks > 1 ? std::to_string(in_cluster) + " for the cluster, " : "") +
                    (counting > 0 ? std::to_string(counting) + " for a counter, " : "") +
                    std::to_string(live - waiting - in_cluster - counting) +
                    " at a shuffle, a vote, __syncwarp or a barrier of some warps, and none of "
                    "them can go on";
    }
}

void begin_block(int rank, uint3 index, const launch_shape &s) {
    block &b = all_blocks[rank];
    b.index = index;
    b.started = false;
    b.live = b.ready = now.count;
    b.arrived = b.votes = b.at_counters = 0;
    b.copies.clear();
    std::fill(std::begin(b.parts), std::end(b.parts), 0);
    for (int i = 0; i < now.count; ++i) {
        const int x = i % s.block[0], y = i / s.block[0] % s.block[1],
                  z = i / s.block[0] / s.block[1];
        b.threads[i].index = {static_cast<unsigned>(x), static_cast<unsigned>(y),
                              static_cast<unsigned>(z)};
        b.threads[i].now = state::ready;
        b.threads[i].arrived = false;
        stacks().restart(rank * now.count + i);
    }
    if (now.blocks > 1) {
        b.image.resize(words_of(s));
        std::memset(b.image.data(), poison, b.image.size() * sizeof(uint4));
    }
}

void begin_cluster(const launch_shape &s) {
    now.rank = 0;
    now.block_now = &all_blocks[0];
    now.arrived = 0;
    std::memset(shared, poison, static_cast<size_t>(s.shared_bytes));
    std::memset(shared + s.shared_bytes, canary,
                sizeof shared - static_cast<size_t>(s.shared_bytes));
}

void check_shared(const launch_shape &s) {
    const char *end = shared + sizeof shared;
    const char *bad = std::find_if(shared + s.shared_bytes, const_cast<char *>(end),
                                   [](char c) { return c != canary; });
    if (bad != end && now.fault.empty())
        now.fault = "byte " + std::to_string(bad - shared) + " of " +
                    std::to_string(s.shared_bytes) + " bytes of shared memory was written";
}

} // namespace

settings &current_settings() {
    static settings s;
    return s;
}

unsigned lane() { return static_cast<unsigned>(now.self) % 32; }

void wait_for_predecessor() {
    if (now.until_wait) leave();
}

void fault(const char *what) {
    now.fault = what;
    for (;;) stacks().pause();
}

std::string launch(const void *body, const launch_shape &s, const void *args, const settings &how) {
    now.count = s.block[0] * s.block[1] * s.block[2];
    if (now.count < 1 || now.count > most_threads)
        return "a block has " + std::to_string(now.count) + " threads";
    if (s.shared_bytes < 0 || s.shared_bytes > most_shared)
        return "a block has " + std::to_string(s.shared_bytes) + " bytes of shared memory";
    now.blocks = s.cluster;
    if (now.blocks < 1 || now.blocks > most_blocks || now.blocks * now.count > most_fibers)
        return "a cluster has " + std::to_string(now.blocks) + " blocks";
    now.shared_bytes = s.shared_bytes;
    now.body = reinterpret_cast<void (*)(const void *)>(const_cast<void *>(body));
    now.args = args;
    now.fault.clear();
    int64_t grid[3] = {s.grid[0], s.grid[1], s.grid[2]};
    if (grid[0] % s.cluster != 0) return "the grid is no multiple of the cluster";
    if (how.most_blocks > 0) grid[0] = std::min(grid[0], how.most_blocks * s.cluster);
    const auto u = [](int64_t v) { return static_cast<unsigned>(v); };
    gridDim = dim3(u(grid[0]), u(grid[1]), u(grid[2]));
    blockDim = dim3(u(s.block[0]), u(s.block[1]), u(s.block[2]));

    plait::test::rng random(how.seed);
    now.how = how.how;
    now.until_wait = how.until_wait;
    now.random = &random;
    std::vector<int64_t> clusters(static_cast<size_t>(grid[0] * grid[1] * grid[2] / s.cluster));
    for (size_t i = 0; i < clusters.size(); ++i) clusters[i] = static_cast<int64_t>(i);
    if (how.how == order::backward) std::reverse(clusters.begin(), clusters.end());
    if (how.how == order::random) shuffle_order(clusters, random);
    for (const int64_t c : clusters) {
        begin_cluster(s);
        for (int r = 0; r < now.blocks; ++r) {
            const int64_t b = c * s.cluster + r;
            begin_block(r, {u(b % grid[0]), u(b / grid[0] % grid[1]), u(b / grid[0] / grid[1])}, s);
        }
        run_cluster(s, how.how, random);
        check_shared(s);
        if (!now.fault.empty())
            return "block " + std::to_string(c * s.cluster + now.rank) + ", thread " +
                   std::to_string(now.self) + ": " + now.fault;
    }
    return "";
}

} // namespace plait::emulation
