// What the planner knows of a device: plain numbers, also as text ("key value" lines).
#pragma once

#include <cstdint>
#include <plait/plait.h>
#include <string>
#include <string_view>
#include <vector>

namespace plait::impl {

struct profile {
    plait_backend backend = PLAIT_CPU;
    std::string name;          ///< "NVIDIA H200", "AMD EPYC"; any text of one line
    double copy_bandwidth = 0; ///< bytes/s of a copy, read plus written
    double launch_seconds = 0; ///< cost of one more launch (one parallel region on the CPU)
    int64_t memory_bytes = 0;  ///< of the device, of the machine; 0: unknown
    // CUDA
    int cc_major = 0;
    int cc_minor = 0;
    int sms = 0;
    int64_t smem_per_block = 0; ///< with opt-in
    int64_t smem_per_sm = 0;
    int threads_per_sm = 0;
    int registers_per_sm = 0;
    int64_t l2_bytes = 0;
    double f32_per_second = 0; ///< FP32 additions per second, whole device
    double f64_per_second = 0;
    std::vector<int> built; ///< architectures in this build that matter: 80, 90, ...
    // CPU
    std::string isa; ///< Highway's name of the level in use, "AVX2"
    int cores = 0;
    int threads = 0;           ///< that plans use
    int64_t l1_bytes = 0;      ///< per core
    int64_t l2_core_bytes = 0; ///< per core
    int64_t l3_bytes = 0;      ///< of the machine; 0: none or unknown

    /// Does a CUDA device run code that was compiled for `arch` (80, 90) or newer? An architecture
    /// in `built` means its code and its PTX; the device takes the newest that is not beyond it.
    bool runs_code_from(int arch) const;
    /// "cuda/9.0/132sm/NVIDIA_H200", "cpu/AVX2/64c/AMD_EPYC": the device column of wisdom. A CPU
    /// whose plans use another number of threads than cores says so ("64c/8t"): its times differ.
    std::string fingerprint() const;
    /// Under which wisdom keeps times for any CPU with these instructions; "" for a GPU.
    std::string generic_fingerprint() const;
    /// "plait-profile 1", then one "key value" line for each key of the backend.
    std::string to_text() const;
};

/// Whether kernels of this build can wait on the device for what precedes them: compute capability
/// 9.0, and code for it, not for an older one that the driver translates.
bool waits_for_predecessors(const profile &);

/// Throws INVALID_ARGUMENT with the line number, or VERSION for a newer header. Blank lines and
/// lines that begin with '#' are skipped; every key of the backend must stand there once, and no
/// other, so that a typing error cannot pass; a last line without a newline is torn.
profile profile_from_text(std::string_view text);

} // namespace plait::impl
