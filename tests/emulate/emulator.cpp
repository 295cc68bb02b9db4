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
constexpr int most_blocks = 16;       // of a cluster
constexpr int most_fibers = 16 * 512; // of a cluster
constexpr char poison = '\xFF';       // NaN in every floating type
constexpr char canary = '\xFE';       // another one, also NaN

enum class state { ready, at_barrier, at_meeting, at_cluster, at_counter, exited };

struct thread {
    uint3 index;
    state now = state::exited;
    meeting kind = meeting::sync; ///< while at_meeting
    uint32_t mask = 0;
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
    plait::test::rng *random = nullptr;
    block *block_now = nullptr;
};

block all_blocks[most_blocks];
running now;

block &here() { return *now.block_now; }
thread &me() { return here().threads[now.self]; }

void entry();

fibers &stacks() {
    static fibers all(most_fibers, &entry);
    return all;
}

void wait_as(state s) {
    me().now = s;
    --here().ready;
}

void release(block &b, thread &t) {
    t.now = state::ready;
    ++b.ready;
}

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
    leave();
}

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

/// A counter in shared memory (mbarrier): phases complete when all arrivals and all bytes are in.
struct counter_bits {
    int32_t bytes;    ///< that are still to come
    int16_t pending;  ///< arrivals that are still to come
    int16_t arrivals; ///< of a phase; negative in odd phases
};

counter_bits bits_of(const uint64_t *counter) { return bits_as<counter_bits>(*counter); }

void change_counter(uint64_t *counter, int arrivals, int32_t bytes) {
    counter_bits b = bits_of(counter);
    b.bytes += bytes;
    b.pending = static_cast<int16_t>(b.pending - arrivals);
    if (b.pending < 0) fault("a counter has more arrivals than it was made for");
    if (b.pending == 0 && b.bytes == 0) {
        b.pending = static_cast<int16_t>(std::abs(b.arrivals));
        b.arrivals = static_cast<int16_t>(-b.arrivals);
    }
    *counter = bits_as<uint64_t>(b);
}

/// The copies that this counter waits for; all of them for nullptr.
void land(uint64_t *counter) {
    std::vector<copy> rest;
    for (const copy &c : here().copies) {
        if (counter && c.counter != counter) {
            rest.push_back(c);
            continue;
        }
        std::memcpy(c.to, c.from, c.bytes);
        change_counter(c.counter, 0, -static_cast<int32_t>(c.bytes));
    }
    here().copies = rest;
}

/// Whether a thread of this block can go on, where it waited for a counter too.
bool awake() {
    block &b = here();
    if (b.at_counters > 0)
        for (int i = 0; i < now.count; ++i) {
            thread &t = b.threads[i];
            if (t.now != state::at_counter || (bits_of(t.counter).arrivals < 0) == t.parity)
                continue;
            --b.at_counters;
            release(b, t);
        }
    return b.ready > 0;
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
                    " at a shuffle, a vote or __syncwarp, and none of them can go on";
    }
}

void begin_block(int rank, uint3 index, const launch_shape &s) {
    block &b = all_blocks[rank];
    b.index = index;
    b.started = false;
    b.live = b.ready = now.count;
    b.arrived = b.votes = b.at_counters = 0;
    b.copies.clear();
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

void fault(const char *what) {
    now.fault = what;
    for (;;) stacks().pause();
}

int barrier(bool value) {
    ++here().arrived;
    here().votes += value ? 1 : 0;
    wait_as(state::at_barrier);
    settle_barrier();
    if (me().now != state::ready) stacks().pause();
    return here().votes_result;
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

void counter_init(uint64_t *counter, int arrivals) {
    check_aligned(counter);
    *counter = bits_as<uint64_t>(
        counter_bits{0, static_cast<int16_t>(arrivals), static_cast<int16_t>(arrivals)});
}

void counter_expect(uint64_t *counter, uint32_t bytes) {
    change_counter(counter, 0, static_cast<int32_t>(bytes));
    change_counter(counter, 1, 0);
}

void counter_come(uint64_t *counter, uint32_t bytes) {
    change_counter(counter, 0, -static_cast<int32_t>(bytes));
}

void counter_wait(uint64_t *counter, unsigned parity) {
    const bool odd = parity != 0;
    if ((bits_of(counter).arrivals < 0) != odd) return;
    land(counter);
    if ((bits_of(counter).arrivals < 0) != odd) return;
    me().counter = counter;
    me().parity = odd;
    ++here().at_counters;
    wait_as(state::at_counter);
    stacks().pause();
}

void bulk_load(void *to, const void *from, uint32_t bytes, uint64_t *counter) {
    if ((reinterpret_cast<uintptr_t>(to) | reinterpret_cast<uintptr_t>(from) | bytes) % 16 != 0)
        fault("a bulk copy is not aligned to 16 bytes");
    here().copies.push_back({to, from, bytes, counter});
    if (now.how == order::forward || (now.how == order::random && now.random->chance(0.5)))
        land(nullptr);
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
