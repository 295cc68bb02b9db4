// Where threads wait for each other: barriers of a block and of a cluster, operations of a warp.
#include "tests/emulate/emulator_state.h"

#include <algorithm>

namespace plait::emulation {

using plait::impl::cuda::shared;

/// All that live are at the barrier: they go on.
void settle_barrier() {
    block &b = here();
    if (b.arrived == 0 || b.arrived < b.live) return;
    b.votes_result = b.votes;
    b.arrived = b.votes = 0;
    for (int i = 0; i < now.count; ++i)
        if (b.threads[i].now == state::at_barrier) release(b, b.threads[i]);
}

/// The same for the threads of a cluster.
void settle_cluster() {
    int live = 0;
    for (int r = 0; r < now.blocks; ++r) live += all_blocks[r].live;
    if (now.arrived == 0 || now.arrived < live) return;
    now.arrived = 0;
    ++now.round;
    for (int r = 0; r < now.blocks; ++r)
        for (int i = 0; i < now.count; ++i)
            if (all_blocks[r].threads[i].now == state::at_cluster)
                release(all_blocks[r], all_blocks[r].threads[i]);
}

/// Whoever this thread waited for is here: they go on, each with a copy, because one of them may
/// meet others before the next has looked.
void settle_meeting(int first, const thread &t) {
    const int lanes = std::min(32, now.count - first);
    met all{};
    for (int i = 0; i < lanes; ++i) {
        const thread &other = here().threads[first + i];
        if (!(t.mask >> i & 1u) || other.now == state::exited) continue;
        if (other.now != state::at_meeting || other.kind != t.kind || other.mask != t.mask) return;
        all.lanes |= 1u << i;
        all.value[i] = other.value;
    }
    for (int i = 0; i < lanes; ++i) {
        if (!(all.lanes >> i & 1u)) continue;
        here().threads[first + i].result = all;
        release(here(), here().threads[first + i]);
    }
}

int barrier(bool value) {
    ++here().arrived;
    here().votes += value ? 1 : 0;
    wait_as(state::at_barrier);
    settle_barrier();
    if (me().now != state::ready) stacks().pause();
    return here().votes_result;
}

void part_barrier(int id, int threads) {
    if (id <= 0 || id >= most_parts || threads % 32 != 0) fault("no such barrier of some warps");
    if (++here().parts[id] == threads) {
        here().parts[id] = 0;
        for (int i = 0; i < now.count; ++i) {
            thread &t = here().threads[i];
            if (t.now == state::at_part && t.part == id) release(here(), t);
        }
        return;
    }
    me().part = id;
    wait_as(state::at_part);
    stacks().pause();
}

unsigned cluster_rank() { return static_cast<unsigned>(now.rank); }

void cluster_arrive() {
    if (me().arrived) fault("a thread arrives twice at the barrier of its cluster");
    me().arrived = true;
    me().round = now.round;
    ++now.arrived;
    settle_cluster();
}

void cluster_wait() {
    if (!me().arrived) fault("a thread waits for its cluster before it has arrived");
    if (me().round == now.round) {
        wait_as(state::at_cluster);
        stacks().pause();
    }
    me().arrived = false;
}

char *cluster_shared(const void *own, unsigned rank) {
    const ptrdiff_t at = static_cast<const char *>(own) - shared;
    if (at < 0 || at >= now.shared_bytes) fault("no address in dynamic shared memory");
    if (rank >= static_cast<unsigned>(now.blocks)) fault("the cluster has no block of this rank");
    const block &other = all_blocks[rank];
    if (!other.started) fault("access to shared memory of a block that may not have started");
    if (other.live == 0) fault("access to shared memory of a block that has exited");
    char *base =
        &other == &here() ? shared : reinterpret_cast<char *>(all_blocks[rank].image.data());
    return base + at;
}

const met &meet(meeting kind, uint32_t mask, uint64_t value) {
    thread &mine = me();
    if (!(mask >> lane() & 1u)) fault("a thread is not in the mask of its warp operation");
    mine.kind = kind;
    mine.mask = mask;
    mine.value = value;
    wait_as(state::at_meeting);
    settle_meeting(now.self & ~31, mine);
    if (mine.now != state::ready) stacks().pause();
    return mine.result;
}

} // namespace plait::emulation
