#include "src/cli/case/device_parts.h"
#include "src/cli/case/handle.h"

#include <cuda_runtime_api.h>

namespace plait::cases {
namespace {

void cuda(cudaError_t code, const char *what) {
    if (code == cudaSuccess) return;
    cudaGetLastError(); // or the next launch reports this failure once more
    throw failure(code == cudaErrorMemoryAllocation ? PLAIT_ERR_OUT_OF_MEMORY : PLAIT_ERR_DEVICE,
                  std::string(what) + ": " + cudaGetErrorString(code));
}

class graph_replay final : public replay {
public:
    graph_replay(cudaGraph_t graph, cudaStream_t stream) : stream_(stream) {
        const cudaError_t code = cudaGraphInstantiate(&exec_, graph, 0);
        cudaGraphDestroy(graph);
        cuda(code, "cudaGraphInstantiate");
    }
    ~graph_replay() override { cudaGraphExecDestroy(exec_); }
    void run() override { cuda(cudaGraphLaunch(exec_, stream_), "cudaGraphLaunch"); }

private:
    cudaStream_t stream_;
    cudaGraphExec_t exec_ = nullptr;
};

class cuda_device final : public device {
public:
    explicit cuda_device(int number) {
        cuda(cudaSetDevice(number), "cudaSetDevice");
        cudaDeviceProp facts{};
        cuda(cudaGetDeviceProperties(&facts, number), "cudaGetDeviceProperties");
        name_ = facts.name;
        l2_ = static_cast<size_t>(facts.l2CacheSize);
        cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
        cuda(cudaEventCreate(&begin_), "cudaEventCreate");
        cuda(cudaEventCreate(&end_), "cudaEventCreate");
    }
    ~cuda_device() override {
        cudaEventDestroy(begin_);
        cudaEventDestroy(end_);
        cudaStreamDestroy(stream_);
    }

    plait_backend backend() const override { return PLAIT_CUDA; }
    std::string name() const override { return name_; }
    plait_stream stream() const override { return stream_; }
    bool host_memory() const override { return false; }
    size_t free_bytes() const override {
        size_t free = 0, total = 0;
        cuda(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
        return free;
    }
    size_t cache_bytes() const override { return l2_; }

    void *allocate(size_t bytes) override {
        void *ptr = nullptr;
        const cudaError_t code = cudaMalloc(&ptr, bytes);
        if (code == cudaErrorMemoryAllocation) {
            cudaGetLastError();
            throw failure(PLAIT_ERR_OUT_OF_MEMORY,
                          readable_bytes(static_cast<double>(bytes)) +
                              " of device memory are not there, " +
                              readable_bytes(static_cast<double>(free_bytes())) + " are free");
        }
        cuda(code, "cudaMalloc");
        return ptr;
    }
    void release(void *ptr) noexcept override { cudaFree(ptr); }
    void upload(void *to, const void *from, size_t bytes) override {
        move(to, from, bytes, cudaMemcpyHostToDevice);
    }
    void download(void *to, const void *from, size_t bytes) override {
        move(to, from, bytes, cudaMemcpyDeviceToHost);
    }
    void copy(void *to, const void *from, size_t bytes) override {
        if (bytes == 0) return;
        cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream_),
             "cudaMemcpyAsync");
    }
    void wait() override { cuda(cudaStreamSynchronize(stream_), "cudaStreamSynchronize"); }

    double seconds(const std::function<void()> &work) override {
        cuda(cudaEventRecord(begin_, stream_), "cudaEventRecord");
        work();
        cuda(cudaEventRecord(end_, stream_), "cudaEventRecord");
        cuda(cudaEventSynchronize(end_), "cudaEventSynchronize");
        float milliseconds = 0;
        cuda(cudaEventElapsedTime(&milliseconds, begin_, end_), "cudaEventElapsedTime");
        return milliseconds * 1e-3;
    }

    std::unique_ptr<replay> record(const std::function<void()> &work) override {
        cudaGraph_t graph = nullptr;
        cuda(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal),
             "cudaStreamBeginCapture");
        try {
            work();
        } catch (...) { // a stream that stays in capture would make every later call fail
            cudaStreamEndCapture(stream_, &graph);
            if (graph) cudaGraphDestroy(graph);
            cudaGetLastError();
            throw;
        }
        cuda(cudaStreamEndCapture(stream_, &graph), "cudaStreamEndCapture");
        return std::make_unique<graph_replay>(graph, stream_);
    }

private:
    void move(void *to, const void *from, size_t bytes, cudaMemcpyKind kind) {
        if (bytes == 0) return;
        cuda(cudaMemcpyAsync(to, from, bytes, kind, stream_), "cudaMemcpyAsync");
        wait();
    }

    std::string name_;
    size_t l2_ = 0;
    cudaStream_t stream_ = nullptr;
    cudaEvent_t begin_ = nullptr;
    cudaEvent_t end_ = nullptr;
};

} // namespace

std::unique_ptr<device> open_cuda_device(int number) {
    const int count = cuda_devices();
    if (number < 0 || number >= count)
        throw failure(PLAIT_ERR_NO_DEVICE, "CUDA device " + std::to_string(number) + " of " +
                                               std::to_string(count) + " is not there");
    return std::make_unique<cuda_device>(number);
}

int cuda_devices() {
    int count = 0;
    if (cudaGetDeviceCount(&count) == cudaSuccess) return count;
    cudaGetLastError();
    return 0;
}

} // namespace plait::cases
