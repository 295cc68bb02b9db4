#include "src/backend/cuda/check.h"

namespace plait::impl::cuda {

plait_status code_of(cudaError_t error) {
    switch (error) {
    case cudaSuccess: return PLAIT_OK;
    case cudaErrorMemoryAllocation: return PLAIT_ERR_OUT_OF_MEMORY;
    case cudaErrorNoDevice:
    case cudaErrorInvalidDevice:
    case cudaErrorInsufficientDriver:
    case cudaErrorStubLibrary: return PLAIT_ERR_NO_DEVICE;
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorUnsupportedPtxVersion: return PLAIT_ERR_NOT_SUPPORTED;
    case cudaErrorStreamCaptureUnsupported:
    case cudaErrorStreamCaptureInvalidated:
    case cudaErrorStreamCaptureMerge:
    case cudaErrorStreamCaptureUnmatched:
    case cudaErrorStreamCaptureUnjoined:
    case cudaErrorStreamCaptureIsolation:
    case cudaErrorStreamCaptureImplicit:
    case cudaErrorStreamCaptureWrongThread: return PLAIT_ERR_CAPTURING;
    default: return PLAIT_ERR_DEVICE;
    }
}

void fail_cuda(cudaError_t error, std::string_view what) {
    fail(code_of(error), what, ": ", cudaGetErrorName(error), ": ", cudaGetErrorString(error));
}

device_scope::device_scope(int device) {
    int now = -1;
    check(cudaGetDevice(&now), "cudaGetDevice");
    if (now == device) return;
    check(cudaSetDevice(device), text("cudaSetDevice(", device, ')'));
    before_ = now;
}

device_scope::~device_scope() {
    if (before_ >= 0) cudaSetDevice(before_);
}

} // namespace plait::impl::cuda
