// Counters in shared memory (mbarrier) and the bulk copies that they wait for.
#include "tests/emulate/emulator_state.h"

#include <cstdlib>

namespace plait::emulation {

namespace {

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

} // namespace

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
    if (b.ready == 0 && !b.copies.empty()) { // nobody can go on before they land
        land(nullptr);
        return awake();
    }
    return b.ready > 0;
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

} // namespace plait::emulation
