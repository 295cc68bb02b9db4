#include "src/backend/cuda/check.h"
#include "src/backend/cuda/cuda_device.h"

#include <algorithm>
#include <cstdlib>

namespace plait::impl::cuda {

namespace {

int attribute(cudaDeviceAttr which, int device) {
    int value = 0;
    check(cudaDeviceGetAttribute(&value, which, device),
          text("cudaDeviceGetAttribute of device ", device));
    return value;
}

struct adders {
    int cc; ///< major * 10 + minor
    int f32;
    int f64;
};
/// Additions per clock and SM, from the arithmetic throughput table of the CUDA programming guide.
/// A compute capability that is not listed takes the row before it.
constexpr adders throughput[] = {
    {75, 64, 2},    {80, 64, 32},  {86, 128, 2},  {90, 128, 64},
    {100, 128, 64}, {103, 128, 2}, {110, 128, 2}, {120, 128, 2},
};

adders adders_of(int cc) {
    adders found = throughput[0];
    for (const adders &row : throughput)
        if (row.cc <= cc) found = row;
    return found;
}

std::vector<int> built_architectures() {
    std::vector<int> out;
    for (const char *at = PLAIT_CUDA_ARCHITECTURES; *at;) {
        char *end = nullptr;
        const int number = static_cast<int>(std::strtol(at, &end, 10));
        if (std::find(out.begin(), out.end(), number) == out.end()) out.push_back(number);
        while (*end && *end != ',') ++end; // the letter of 90a
        at = *end ? end + 1 : end;
    }
    return out;
}

} // namespace

profile describe(int device) {
    cudaDeviceProp prop;
    check(cudaGetDeviceProperties(&prop, device),
          text("cudaGetDeviceProperties of device ", device));
    profile p;
    p.backend = PLAIT_CUDA;
    p.name = prop.name;
    p.memory_bytes = static_cast<int64_t>(prop.totalGlobalMem);
    p.cc_major = attribute(cudaDevAttrComputeCapabilityMajor, device);
    p.cc_minor = attribute(cudaDevAttrComputeCapabilityMinor, device);
    p.sms = attribute(cudaDevAttrMultiProcessorCount, device);
    p.smem_per_block = attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
    p.smem_per_sm = attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor, device);
    p.threads_per_sm = attribute(cudaDevAttrMaxThreadsPerMultiProcessor, device);
    p.registers_per_sm = attribute(cudaDevAttrMaxRegistersPerMultiprocessor, device);
    p.l2_bytes = attribute(cudaDevAttrL2CacheSize, device);
    p.built = built_architectures();

    // Double data rate: two transfers per clock. A copy reaches 88 % of the pins' rate.
    const double clock = 1e3 * attribute(cudaDevAttrMemoryClockRate, device);
    const double bus_bytes = attribute(cudaDevAttrGlobalMemoryBusWidth, device) / 8.0;
    p.copy_bandwidth = 0.88 * 2 * clock * bus_bytes;
    // Some virtual GPUs hide their clocks: the rate of a mid-range card.
    if (!(p.copy_bandwidth > 0)) p.copy_bandwidth = 400e9;
    p.launch_seconds = 1e-6; // one more kernel behind others in a graph or a full stream

    const adders per_sm = adders_of(p.cc_major * 10 + p.cc_minor);
    double core_clock = 1e3 * attribute(cudaDevAttrClockRate, device);
    if (!(core_clock > 0)) core_clock = 1.5e9;
    p.f32_per_second = per_sm.f32 * p.sms * core_clock;
    p.f64_per_second = per_sm.f64 * p.sms * core_clock;
    return p;
}

} // namespace plait::impl::cuda
