// What the parts of the emulator share: the launch, its blocks and threads, and who waits for what.
#pragma once

#include "tests/emulate/cuda_emulation.h"
#include "tests/emulate/emulator.h"
#include "tests/emulate/fibers.h"
#include "tests/support/rng.h"

#include <string>
#include <vector>

namespace plait::emulation {

constexpr int64_t most_shared = 227 * 1024; // of one block on compute capability 9.0
constexpr int64_t guard_shared = 16 * 1024; // writes up to this far behind it are seen

} // namespace plait::emulation

namespace plait::impl::cuda {
alignas(1024) extern thread_local char shared[plait::emulation::most_shared +
                                              plait::emulation::guard_shared];
} // namespace plait::impl::cuda

namespace plait::emulation {

constexpr int most_threads = 1024;
constexpr int most_blocks = 16;       // of a cluster
constexpr int most_parts = 16;        // barriers of a block
constexpr int most_fibers = 16 * 512; // of a cluster

enum class state { ready, at_barrier, at_part, at_meeting, at_cluster, at_counter, exited };

struct thread {
    uint3 index;
    state now = state::exited;
    meeting kind = meeting::sync; ///< while at_meeting
    uint32_t mask = 0;
    int part = 0; ///< while at_part
    uint64_t value = 0;
    met result{};
    uint64_t *counter = nullptr; ///< while at_counter: in `shared`
    bool parity = false;
    bool arrived = false; ///< at the barrier of the cluster, and has not waited there yet
    uint64_t round = 0;   ///< which one it was
};

/// A bulk copy that its counter has not seen.
struct copy {
    void *to;
    const void *from;
    uint32_t bytes;
    uint64_t *counter;
};

struct block {
    uint3 index{};
    bool started = false;
    int live = 0;
    int ready = 0;
    int arrived = 0; ///< at the barrier
    int votes = 0, votes_result = 0;
    int parts[most_parts]; ///< arrived at barriers of some warps
    thread threads[most_threads];
    int at_counters = 0;      ///< threads
    std::vector<uint4> image; ///< its shared memory while another block of the cluster runs
    std::vector<copy> copies; ///< on their way
};

/// The launch, and the cluster that runs now. One of its blocks runs at a time.
struct running {
    void (*body)(const void *) = nullptr;
    const void *args = nullptr;
    std::string fault;
    int count = 0;  ///< threads of a block
    int blocks = 1; ///< of a cluster
    int64_t shared_bytes = 0;
    int arrived = 0; ///< at the barrier of the cluster
    uint64_t round = 0;
    int rank = 0; ///< of the block whose words are in `shared`
    int self = 0;
    order how = order::forward;
    bool until_wait = false;
    plait::test::rng *random = nullptr;
    block *block_now = nullptr;
};

extern block all_blocks[most_blocks];
extern running now;

inline block &here() { return *now.block_now; }
inline thread &me() { return here().threads[now.self]; }
fibers &stacks();

inline void wait_as(state s) {
    me().now = s;
    --here().ready;
}

inline void release(block &b, thread &t) {
    t.now = state::ready;
    ++b.ready;
}

// meetings.cpp
void settle_barrier();
void settle_cluster();
void settle_meeting(int first, const thread &t);
// counters.cpp
bool awake();

} // namespace plait::emulation
