// Runs a CUDA kernel on the CPU: every thread of a block is a fiber of the calling thread, clusters
// run one after the other, the blocks of a cluster in turn.
#pragma once

#include <cstdint>
#include <string>

namespace plait::emulation {

/// Who runs first wherever the kernel leaves it open. Between barriers forward and backward let
/// warps, and threads of a warp, run as far ahead of the others as they can; random mixes them.
enum class order { forward, backward, random };

struct settings {
    order how = order::forward;
    uint64_t seed = 1; ///< of order::random
    int64_t most_blocks =
        0; ///< not 0: grids are cut to this many clusters, for kernels that walk over tiles
    bool until_wait = false; ///< threads end where they wait for the kernel before, as all must
};
/// For the launches of the emulated device.
settings &current_settings();

struct launch_shape {
    int64_t grid[3] = {1, 1, 1};
    int block[3] = {1, 1, 1};
    int64_t shared_bytes = 0;
    int cluster = 1; ///< blocks in a row whose threads may meet and see each other's shared memory
};

/// `thread` runs one thread: kernel_entry::func of a kernel compiled with cuda_emulation.h. Dynamic
/// shared memory holds NaN before each block. "" or what the kernel did wrong: threads that wait
/// for each other forever, a write past the dynamic shared memory, a misaligned access.
std::string launch(const void *thread, const launch_shape &shape, const void *args,
                   const settings &how);

} // namespace plait::emulation
