// CUDA errors as codes and sentences, and the caller's current device.
#pragma once

#include "src/core/status.h"

#include <cuda_runtime_api.h>

namespace plait::impl::cuda {

/// Who must act on this error.
plait_status code_of(cudaError_t error);

/// fail_cuda(error, "step wht.block"): the sentence ends with what CUDA says.
[[noreturn]] void fail_cuda(cudaError_t error, std::string_view what);

inline void check(cudaError_t error, std::string_view what) {
    if (error != cudaSuccess) fail_cuda(error, what);
}

/// Makes a device current until the end of the scope. When it is current already, which is the
/// usual case, nothing happens at all.
class device_scope {
public:
    explicit device_scope(int device);
    ~device_scope();
    device_scope(const device_scope &) = delete;
    device_scope &operator=(const device_scope &) = delete;

private:
    int before_ = -1; ///< -1: nothing to restore
};

} // namespace plait::impl::cuda
