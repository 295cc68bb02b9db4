// How many threads a call gets.
#pragma once

#include <cstdint>

namespace plait::impl::cpu {

/// All threads or the caller alone. OpenMP ends and creates threads when a region asks for another
/// number than the one before it, which costs more than any number in between gains. `busy`:
/// threads that the work keeps busy for as long as opening a parallel region takes.
constexpr int whole_team(int64_t busy, int threads) {
    return threads > 1 && busy >= 2 && busy >= threads / 8 ? threads : 1;
}

} // namespace plait::impl::cpu
