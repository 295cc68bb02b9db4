#include "tests/support/memory.h"

#include <cuda_runtime_api.h>
#include <new>
#include <stdexcept>

namespace plait::test {
namespace {

void require(cudaError_t status, const char *what) {
    if (status == cudaSuccess) return;
    (void)cudaGetLastError();
    if (status == cudaErrorMemoryAllocation) throw std::bad_alloc();
    throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(status));
}

class device final : public memory {
public:
    device() { require(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "stream"); }
    void *allocate(size_t size, size_t) override {
        void *ptr = nullptr;
        require(cudaMalloc(&ptr, size ? size : 1), "cudaMalloc");
        return ptr;
    }
    void release(void *ptr) noexcept override { (void)cudaFree(ptr); }
    void upload(void *to, const void *from, size_t size) override {
        if (!size) return;
        require(cudaMemcpyAsync(to, from, size, cudaMemcpyHostToDevice, stream_), "upload");
        wait();
    }
    void download(void *to, const void *from, size_t size) override {
        if (!size) return;
        require(cudaMemcpyAsync(to, from, size, cudaMemcpyDeviceToHost, stream_), "download");
        wait();
    }
    void fill(void *to, int byte, size_t size) override {
        if (size) require(cudaMemsetAsync(to, byte, size, stream_), "fill");
    }
    void wait() override { require(cudaStreamSynchronize(stream_), "the work on the stream"); }
    size_t available() override {
        size_t free = 0, total = 0;
        require(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
        return free;
    }
    plait_stream stream() override { return stream_; }

private:
    cudaStream_t stream_ = nullptr; // lives until the process ends
};

} // namespace

memory &device_memory() {
    static device d;
    return d;
}

} // namespace plait::test
