// What the device tests share.
#pragma once

#include "tests/gpu/device_rows.h"
#include "tests/support/check.h"
#include "tests/support/random_call.h"

#include <cuda_runtime_api.h>

namespace plait::test {

#define REQUIRE_CUDA(call)                                                                         \
    REQUIRE_MESSAGE((call) == cudaSuccess, cudaGetErrorString(cudaGetLastError()))

class test_stream {
public:
    test_stream() { REQUIRE_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
    ~test_stream() { cudaStreamDestroy(stream_); }
    test_stream(const test_stream &) = delete;
    test_stream &operator=(const test_stream &) = delete;
    operator cudaStream_t() const { return stream_; }
    void wait() const { REQUIRE_CUDA(cudaStreamSynchronize(stream_)); }

private:
    cudaStream_t stream_ = nullptr;
};

inline wht_call rows_of(plait_dtype type, int64_t count, int64_t n) {
    wht_call c;
    c.x = type;
    c.extents = {count, n};
    return c;
}

constexpr plait_dtype device_types[] = {PLAIT_F32, PLAIT_F64, PLAIT_F16, PLAIT_BF16};

/// Problems that between them use every candidate of the device.
inline std::vector<wht_call> typical_calls() {
    std::vector<wht_call> calls;
    for (plait_dtype type : device_types)
        for (const auto &[count, n] : {std::pair<int64_t, int64_t>{1000, 16},
                                       {33, 1024},
                                       {5, 32768},
                                       {3, 131072},
                                       {1, 1 << 20}}) {
            wht_call c = rows_of(type, count, n);
            c.scale = 0.3;
            calls.push_back(c);
        }
    return calls;
}

} // namespace plait::test
