#include "src/backend/cuda/check.h"
#include "src/backend/cuda/cuda_device.h"

namespace plait::impl::cuda {

namespace {

class device_memory final : public allocator {
public:
    explicit device_memory(int device) : device_(device) {
        int supported = 0;
        check(cudaDeviceGetAttribute(&supported, cudaDevAttrMemoryPoolsSupported, device),
              "cudaDeviceGetAttribute");
        pools_ = supported != 0;
    }

    void *allocate(size_t bytes, plait_stream stream) override {
        const device_scope current(device_);
        void *ptr = nullptr;
        // Both align to at least 256 bytes.
        const cudaError_t error =
            pools_ ? cudaMallocAsync(&ptr, bytes, static_cast<cudaStream_t>(stream))
                   : cudaMalloc(&ptr, bytes);
        if (error != cudaSuccess)
            fail_cuda(error, text(bytes, " bytes of memory of device ", device_));
        return ptr;
    }

    void release(void *ptr, size_t, plait_stream stream) noexcept override {
        try {
            const device_scope current(device_);
            if (pools_) {
                cudaFreeAsync(ptr, static_cast<cudaStream_t>(stream));
            } else {
                cudaFree(ptr);
            }
        } catch (...) { // the device is lost, and its memory with it
        }
    }

private:
    int device_;
    bool pools_;
};

} // namespace

std::shared_ptr<allocator> default_memory(int device) {
    return std::make_shared<device_memory>(device);
}

} // namespace plait::impl::cuda
