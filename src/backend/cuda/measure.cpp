#include "src/backend/cuda/check.h"
#include "src/backend/cuda/cuda_device.h"
#include "src/backend/scratch.h"

#include <algorithm>
#include <chrono>

namespace plait::impl::cuda {

namespace {

/// A stream of its own, which does not wait for the caller's legacy stream.
class own_stream {
public:
    own_stream() {
        check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "measuring stream");
    }
    ~own_stream() {
        cudaStreamSynchronize(stream_);
        cudaStreamDestroy(stream_);
    }
    own_stream(const own_stream &) = delete;
    own_stream &operator=(const own_stream &) = delete;
    cudaStream_t get() const { return stream_; }

private:
    cudaStream_t stream_ = nullptr;
};

class event {
public:
    event() { check(cudaEventCreate(&event_), "cudaEventCreate"); }
    ~event() { cudaEventDestroy(event_); }
    event(const event &) = delete;
    event &operator=(const event &) = delete;
    cudaEvent_t get() const { return event_; }

private:
    cudaEvent_t event_ = nullptr;
};

constexpr size_t pattern_bytes = size_t{4} << 20;

/// A block from the host, then copies of it on the device.
void fill(const problem &of, const std::vector<scratch::buffer> &buffers, cudaStream_t stream) {
    for (const scratch::buffer &b : buffers) {
        if (b.bytes == 0) continue;
        const std::vector<std::byte> pattern = measuring_data(of, *b.what, pattern_bytes);
        const size_t head = std::min(b.bytes, pattern.size());
        auto *base = static_cast<std::byte *>(b.ptr);
        check(cudaMemcpyAsync(base, pattern.data(), head, cudaMemcpyHostToDevice, stream),
              "filling scratch");
        for (size_t at = head; at < b.bytes; at += head)
            check(cudaMemcpyAsync(base + at, base, std::min(head, b.bytes - at),
                                  cudaMemcpyDeviceToDevice, stream),
                  "filling scratch");
        check(cudaStreamSynchronize(stream), "filling scratch");
    }
}

/// Sets of tensors to rotate through, so that no run finds its input in the L2 of the run before.
size_t sets_for(size_t bytes, int device) {
    int l2 = 0;
    check(cudaDeviceGetAttribute(&l2, cudaDevAttrL2CacheSize, device), "cudaDeviceGetAttribute");
    const size_t enough = 2 * static_cast<size_t>(l2);
    if (bytes == 0 || bytes > enough) return 1;
    return std::min<size_t>(64, enough / bytes + 1);
}

} // namespace

double measure(const pipeline &what, const problem &of, allocator &memory, double budget,
               int device) {
    const device_scope current(device);
    const std::shared_ptr<const prepared> ready = prepare(what, device);
    const own_stream stream;
    const auto work = static_cast<size_t>(what.work.bytes());

    using clock = std::chrono::steady_clock;
    const auto start = clock::now();
    std::vector<scratch> sets;
    const size_t wanted = sets_for(tensor_bytes(of.tensors), device);
    sets.reserve(wanted);
    while (sets.size() < wanted) {
        sets.emplace_back(of.tensors, work, memory, stream.get());
        fill(of, sets.back().buffers, stream.get());
    }

    const event begin;
    const event end;
    size_t turn = 0;
    const auto time_of = [&](int runs) {
        check(cudaEventRecord(begin.get(), stream.get()), "cudaEventRecord");
        for (int i = 0; i < runs; ++i)
            ready->launch(sets[turn++ % sets.size()].pointers, stream.get());
        check(cudaEventRecord(end.get(), stream.get()), "cudaEventRecord");
        check(cudaEventSynchronize(end.get()), "measuring");
        float ms = 0;
        check(cudaEventElapsedTime(&ms, begin.get(), end.get()), "cudaEventElapsedTime");
        return 1e-3 * static_cast<double>(ms) / runs;
    };
    time_of(3); // clocks, caches of instructions
    const double once = std::max(time_of(1), 1e-7);
    // Long enough for the events' resolution of half a microsecond.
    const int batch = static_cast<int>(std::clamp(200e-6 / once, 1.0, 200.0));
    std::vector<double> times;
    const auto spent = [&] { return std::chrono::duration<double>(clock::now() - start).count(); };
    do {
        times.push_back(time_of(batch));
    } while (times.size() < 21 && spent() + once * batch < budget);
    return median(times);
}

} // namespace plait::impl::cuda
