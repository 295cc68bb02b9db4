// The CUDA backend: one object per context, nothing of it lives on the device.
#include "src/backend/cuda/check.h"
#include "src/backend/cuda/cuda_device.h"

namespace plait::impl {

namespace {

class cuda_device final : public backend {
public:
    explicit cuda_device(int device) : device_(device) {}

    plait_backend kind() const override { return PLAIT_CUDA; }
    int device() const override { return device_; }
    profile describe() const override { return cuda::describe(device_); }

    void check_current() const override {
        int now = -1;
        cuda::check(cudaGetDevice(&now), "cudaGetDevice");
        if (now != device_)
            fail(PLAIT_ERR_DEVICE, "device ", now, " is current; the plan is for device ", device_);
    }

    std::shared_ptr<const prepared> prepare(const pipeline &what) const override {
        return cuda::prepare(what, device_);
    }

    std::shared_ptr<allocator> default_allocator() const override {
        return cuda::default_memory(device_);
    }

    double measure(const pipeline &what, const problem &of, allocator &memory,
                   double budget) const override {
        return cuda::measure(what, of, memory, budget, device_);
    }

private:
    int device_;
};

} // namespace

int cuda_device_count() {
    int count = 0;
    return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

std::string cuda_build() {
    return text("CUDA ", CUDART_VERSION / 1000, '.', CUDART_VERSION % 1000 / 10, " for sm ",
                PLAIT_CUDA_ARCHITECTURES);
}

std::shared_ptr<const backend> cuda_backend(int device) {
    if (device < 0)
        fail(PLAIT_ERR_NO_DEVICE, "device=", device, " is negative; devices are counted from 0");
    int count = 0, driver = 0;
    const cudaError_t error = cudaGetDeviceCount(&count);
    // The runtime calls a driver that is not there one that is too old.
    if (error == cudaErrorInsufficientDriver && cudaDriverGetVersion(&driver) == cudaSuccess &&
        driver == 0)
        fail(PLAIT_ERR_NO_DEVICE, "device=", device, ": there is no CUDA driver on this machine");
    if (error == cudaErrorNoDevice)
        fail(PLAIT_ERR_NO_DEVICE, "device=", device, ": there is no CUDA device on this machine");
    if (error != cudaSuccess)
        fail(PLAIT_ERR_NO_DEVICE, "device=", device, ": ", cudaGetErrorString(error));
    if (device >= count)
        fail(PLAIT_ERR_NO_DEVICE, "device=", device, ": there are ", count,
             " CUDA devices, counted from 0");
    return std::make_shared<cuda_device>(device);
}

} // namespace plait::impl
