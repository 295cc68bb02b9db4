#include "tests/emulate/emulator.h"

#include "tests/emulate/cuda_emulation.h"
#include "tests/emulate/fibers.h"
#include "tests/support/rng.h"

#include <algorithm>
#include <vector>

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace {
constexpr int64_t most_shared = 227 * 1024; // of one block on compute capability 9.0
constexpr int64_t guard_shared = 16 * 1024; // writes up to this far behind it are seen
} // namespace

namespace plait::impl::cuda {
// Kernels do not see whether their `extern thread_local` needs an initialisation and ask for it.
// GCC makes a call to nowhere of that under -fvisibility=hidden, unless there is one.
static char first_byte() { return 0; }
alignas(1024) thread_local char shared[most_shared + guard_shared] = {first_byte()};
} // namespace plait::impl::cuda

namespace plait::emulation {

namespace {

using plait::impl::cuda::shared;

constexpr int most_threads = 1024;
constexpr char poison = '\xFF'; // NaN in every floating type
constexpr char canary = '\xFE'; // another one, also NaN

enum class state { ready, at_barrier, at_meeting, exited };

struct thread {
    uint3 index;
    state now = state::exited;
    meeting kind = meeting::sync; ///< while at_meeting
    uint32_t mask = 0;
    uint64_t value = 0;
    met result{};
};

/// The block that runs now.
struct block {
    void (*body)(const void *) = nullptr;
    const void *args = nullptr;
    int count = 0;
    int live = 0;
    int ready = 0;
    int arrived = 0; ///< at the barrier
    int votes = 0, votes_result = 0;
    int self = 0;
    std::string fault;
    thread threads[most_threads];
};

block now;

void entry();

fibers &stacks() {
    static fibers all(most_threads, &entry);
    return all;
}

void wait_as(state s) {
    now.threads[now.self].now = s;
    --now.ready;
}

void release(thread &t) {
    t.now = state::ready;
    ++now.ready;
}

/// All that live are at the barrier: they go on.
void settle_barrier() {
    if (now.arrived == 0 || now.arrived < now.live) return;
    now.votes_result = now.votes;
    now.arrived = now.votes = 0;
    for (int i = 0; i < now.count; ++i)
        if (now.threads[i].now == state::at_barrier) release(now.threads[i]);
}

/// Whoever this thread waited for is here: they go on, each with a copy, because one of them may
/// meet others before the next has looked.
void settle_meeting(int first, const thread &t) {
    const int lanes = std::min(32, now.count - first);
    met all{};
    for (int i = 0; i < lanes; ++i) {
        const thread &other = now.threads[first + i];
        if (!(t.mask >> i & 1u) || other.now == state::exited) continue;
        if (other.now != state::at_meeting || other.kind != t.kind || other.mask != t.mask) return;
        all.lanes |= 1u << i;
        all.value[i] = other.value;
    }
    for (int i = 0; i < lanes; ++i) {
        if (!(all.lanes >> i & 1u)) continue;
        now.threads[first + i].result = all;
        release(now.threads[first + i]);
    }
}

void leave() {
    wait_as(state::exited);
    --now.live;
    settle_barrier();
    const int first = now.self & ~31;
    for (int i = first; i < std::min(first + 32, now.count); ++i)
        if (now.threads[i].now == state::at_meeting) settle_meeting(first, now.threads[i]);
    stacks().pause();
}

void entry() {
    now.body(now.args);
    leave();
}

void run_thread(int i) {
    now.self = i;
    threadIdx = now.threads[i].index;
    stacks().run(i);
}

/// One warp until none of its lanes can go on.
void run_warp(int first, bool backward) {
    const int lanes = std::min(32, now.count - first);
    for (bool any = true; any && now.fault.empty();) {
        any = false;
        for (int i = 0; i < lanes && now.fault.empty(); ++i) {
            const int t = first + (backward ? lanes - 1 - i : i);
            if (now.threads[t].now != state::ready) continue;
            run_thread(t);
            any = true;
        }
    }
}

template <class T> void shuffle_order(std::vector<T> &all, plait::test::rng &random) {
    for (size_t i = all.size(); i > 1; --i) std::swap(all[i - 1], all[random.next() % i]);
}

void run_block(order how, plait::test::rng &random) {
    const int warps = (now.count + 31) / 32;
    std::vector<int> mixed(static_cast<size_t>(now.count));
    for (int i = 0; i < now.count; ++i) mixed[static_cast<size_t>(i)] = i;
    while (now.live > 0 && now.fault.empty()) {
        if (now.ready == 0) {
            now.fault = std::to_string(now.arrived) + " threads wait at __syncthreads, " +
                        std::to_string(now.live - now.arrived) +
                        " at a shuffle, a vote or __syncwarp, and none of them can go on";
            return;
        }
        if (how != order::random) {
            const bool backward = how == order::backward;
            for (int w = 0; w < warps; ++w) run_warp((backward ? warps - 1 - w : w) * 32, backward);
            continue;
        }
        shuffle_order(mixed, random);
        for (const int t : mixed) // some stay behind
            if (now.threads[t].now == state::ready && now.fault.empty() && random.chance(0.7))
                run_thread(t);
    }
}

void begin_block(const launch_shape &s) {
    now.live = now.ready = now.count;
    now.arrived = now.votes = 0;
    for (int i = 0; i < now.count; ++i) {
        const int x = i % s.block[0], y = i / s.block[0] % s.block[1],
                  z = i / s.block[0] / s.block[1];
        now.threads[i].index = {static_cast<unsigned>(x), static_cast<unsigned>(y),
                                static_cast<unsigned>(z)};
        now.threads[i].now = state::ready;
        stacks().restart(i);
    }
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

void fault(const char *what) {
    now.fault = what;
    for (;;) stacks().pause();
}

int barrier(bool value) {
    ++now.arrived;
    now.votes += value ? 1 : 0;
    wait_as(state::at_barrier);
    settle_barrier();
    if (now.threads[now.self].now != state::ready) stacks().pause();
    return now.votes_result;
}

const met &meet(meeting kind, uint32_t mask, uint64_t value) {
    thread &me = now.threads[now.self];
    if (!(mask >> lane() & 1u)) fault("a thread is not in the mask of its warp operation");
    me.kind = kind;
    me.mask = mask;
    me.value = value;
    wait_as(state::at_meeting);
    settle_meeting(now.self & ~31, me);
    if (me.now != state::ready) stacks().pause();
    return me.result;
}

std::string launch(const void *body, const launch_shape &s, const void *args, const settings &how) {
    now.count = s.block[0] * s.block[1] * s.block[2];
    if (now.count < 1 || now.count > most_threads)
        return "a block has " + std::to_string(now.count) + " threads";
    if (s.shared_bytes < 0 || s.shared_bytes > most_shared)
        return "a block has " + std::to_string(s.shared_bytes) + " bytes of shared memory";
    now.body = reinterpret_cast<void (*)(const void *)>(const_cast<void *>(body));
    now.args = args;
    now.fault.clear();
    int64_t grid[3] = {s.grid[0], s.grid[1], s.grid[2]};
    if (how.most_blocks > 0) grid[0] = std::min(grid[0], how.most_blocks);
    const auto u = [](int64_t v) { return static_cast<unsigned>(v); };
    gridDim = dim3(u(grid[0]), u(grid[1]), u(grid[2]));
    blockDim = dim3(u(s.block[0]), u(s.block[1]), u(s.block[2]));

    plait::test::rng random(how.seed);
    std::vector<int64_t> blocks(static_cast<size_t>(grid[0] * grid[1] * grid[2]));
    for (size_t i = 0; i < blocks.size(); ++i) blocks[i] = static_cast<int64_t>(i);
    if (how.how == order::backward) std::reverse(blocks.begin(), blocks.end());
    if (how.how == order::random) shuffle_order(blocks, random);
    for (const int64_t b : blocks) {
        blockIdx = {u(b % grid[0]), u(b / grid[0] % grid[1]), u(b / grid[0] / grid[1])};
        begin_block(s);
        run_block(how.how, random);
        check_shared(s);
        if (!now.fault.empty())
            return "block " + std::to_string(b) + ", thread " + std::to_string(now.self) + ": " +
                   now.fault;
    }
    return "";
}

} // namespace plait::emulation
