#include "src/cli/case/device.h"

#include "src/cli/case/device_parts.h"
#include "src/cli/case/handle.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <new>
#include <omp.h>
#include <unistd.h>

namespace plait::cases {
namespace {

class function_replay final : public replay {
public:
    explicit function_replay(std::function<void()> work) : work_(std::move(work)) {}
    void run() override { work_(); }

private:
    std::function<void()> work_;
};

class cpu_device final : public device {
public:
    explicit cpu_device(int threads) : threads_(threads > 0 ? threads : omp_get_num_procs()) {}

    plait_backend backend() const override { return PLAIT_CPU; }
    std::string name() const override { return "cpu"; }
    plait_stream stream() const override { return nullptr; }
    bool host_memory() const override { return true; }

    size_t free_bytes() const override {
        // MemAvailable counts what the page cache would give back; _SC_AVPHYS_PAGES does not.
        std::ifstream meminfo("/proc/meminfo");
        std::string key;
        for (size_t kb; meminfo >> key;)
            if (key == "MemAvailable:" && meminfo >> kb) return kb * 1024;
        return static_cast<size_t>(sysconf(_SC_AVPHYS_PAGES)) *
               static_cast<size_t>(sysconf(_SC_PAGESIZE));
    }

    size_t cache_bytes() const override {
        const long bytes = sysconf(_SC_LEVEL3_CACHE_SIZE);
        return bytes > 0 ? static_cast<size_t>(bytes) : size_t{32} << 20;
    }

    void *allocate(size_t bytes) override {
        const size_t rounded = (std::max<size_t>(bytes, 1) + 255) / 256 * 256;
        void *ptr = bytes <= rounded ? std::aligned_alloc(256, rounded) : nullptr;
        if (!ptr)
            throw failure(PLAIT_ERR_OUT_OF_MEMORY, readable_bytes(static_cast<double>(bytes)) +
                                                       " of host memory are not there");
        return ptr;
    }
    void release(void *ptr) noexcept override { std::free(ptr); }
    void upload(void *to, const void *from, size_t bytes) override { copy(to, from, bytes); }
    void download(void *to, const void *from, size_t bytes) override { copy(to, from, bytes); }

    void copy(void *to, const void *from, size_t bytes) override {
        if (bytes == 0) return;
        // A thread's part takes longer than the opening of a region, which costs microseconds: few
        // bytes are copied by one thread faster than by many, and the copy is a yardstick.
        const int threads = static_cast<int>(
            std::clamp<size_t>(bytes / thread_bytes, 1, static_cast<size_t>(threads_)));
        if (threads == 1) {
            std::memcpy(to, from, bytes);
            return;
        }
#pragma omp parallel num_threads(threads)
        {
            // OpenMP may give fewer threads (OMP_THREAD_LIMIT). Whole pages each, so that no two
            // share a cache line.
            const size_t team = static_cast<size_t>(omp_get_num_threads());
            const size_t part = (bytes / team + 4096) / 4096 * 4096;
            const size_t begin = std::min(bytes, part * static_cast<size_t>(omp_get_thread_num()));
            std::memcpy(static_cast<char *>(to) + begin, static_cast<const char *>(from) + begin,
                        std::min(part, bytes - begin));
        }
    }
    void wait() override {}

    double seconds(const std::function<void()> &work) override {
        const auto begin = std::chrono::steady_clock::now();
        work();
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    }
    std::unique_ptr<replay> record(const std::function<void()> &work) override {
        return std::make_unique<function_replay>(work);
    }

private:
    static constexpr size_t thread_bytes = size_t{128} << 10;
    int threads_;
};

} // namespace

std::unique_ptr<device> open_cpu_device(int threads) {
    return std::make_unique<cpu_device>(threads);
}

std::unique_ptr<device> open_device(plait_backend backend, int number, int threads) {
    return backend == PLAIT_CUDA ? open_cuda_device(number) : open_cpu_device(threads);
}

std::string readable_bytes(double bytes) {
    const char *const units[] = {"B", "kB", "MB", "GB", "TB"};
    int unit = 0;
    for (; bytes >= 999.5 && unit < 4; ++unit) bytes /= 1000;
    char text[32];
    std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.3g %s", bytes, units[unit]);
    return text;
}

} // namespace plait::cases
