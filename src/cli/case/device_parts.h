// What open_device() is made of.
#pragma once

#include "src/cli/case/device.h"

namespace plait::cases {

std::unique_ptr<device> open_cpu_device(int threads);
/// NO_DEVICE in builds without CUDA.
std::unique_ptr<device> open_cuda_device(int number);

} // namespace plait::cases
