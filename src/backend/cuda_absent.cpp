// The CUDA backend of a build without CUDA.
#include "src/backend/backend.h"
#include "src/core/status.h"
#include "src/planner/profile.h"

namespace plait::impl {

int cuda_device_count() { return 0; }

std::string cuda_build() { return "no CUDA"; }

std::shared_ptr<const backend> cuda_backend(int device) {
    if (device < 0)
        fail(PLAIT_ERR_NO_DEVICE, "device=", device, " is negative; devices are counted from 0");
    fail(PLAIT_ERR_NO_DEVICE, "device=", device, ": this build of plait has no CUDA backend");
}

} // namespace plait::impl
