// Builds without CUDA.
#include "src/cli/case/device_parts.h"
#include "src/cli/case/handle.h"

namespace plait::cases {

std::unique_ptr<device> open_cuda_device(int) {
    throw failure(PLAIT_ERR_NO_DEVICE, "this build has no CUDA backend");
}

int cuda_devices() { return 0; }

} // namespace plait::cases
