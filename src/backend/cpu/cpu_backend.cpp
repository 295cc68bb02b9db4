// The CPU backend: kernels are functions, launches are calls, memory is aligned malloc.
#include "lib/cpu/isa.h"
#include "lib/cpu/kernel_table.h"
#include "src/backend/binding.h"
#include "src/backend/cpu/machine.h"
#include "src/backend/scratch.h"
#include "src/core/env.h"
#include "src/core/status.h"
#include "src/planner/profile.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <mutex>

namespace plait::impl {

namespace {

class aligned_memory final : public allocator {
public:
    void *allocate(size_t bytes, plait_stream) override {
        void *ptr = nullptr;
        if (posix_memalign(&ptr, PLAIT_WORKSPACE_ALIGNMENT, bytes ? bytes : 1) != 0)
            fail(PLAIT_ERR_OUT_OF_MEMORY, bytes, " bytes of memory are not to be had");
        return ptr;
    }
    void release(void *ptr, size_t, plait_stream) noexcept override { std::free(ptr); }
};

class cpu_prepared final : public prepared {
public:
    explicit cpu_prepared(const pipeline &what) {
        for (const step &s : what.steps) {
            const cpu::kernel_fn fn = cpu::find_kernel(s.kernel.c_str());
            if (!fn) fail(PLAIT_ERR_NOT_SUPPORTED, "this build has no CPU kernel ", s.kernel);
            calls_.push_back({fn, s.block, bound_step(s, what.work)});
        }
    }
    void launch(const bindings &pointers, plait_stream) const override {
        for (const call &c : calls_) {
            bound_step::blob args;
            c.what.fill(args, pointers);
            c.fn(args.bytes, c.threads);
        }
    }

private:
    struct call {
        cpu::kernel_fn fn;
        int threads;
        bound_step what;
    };
    std::vector<call> calls_;
};

/// PLAIT_CPU_ISA acts on the whole process and is read once. A level above what the machine has
/// restricts nothing.
void apply_isa_limit() {
    static std::once_flag once;
    std::call_once(once, [] {
        const std::string wanted = environment("PLAIT_CPU_ISA");
        if (wanted.empty()) return;
        bool found = false;
        for (const char *const *level = cpu::isa_compiled(); *level; ++level) {
            found = found || wanted == *level;
            if (found && cpu::isa_restrict(*level)) return;
        }
        if (!found)
            fail(PLAIT_ERR_INVALID_ARGUMENT, "PLAIT_CPU_ISA=", wanted,
                 " is not a level of this build: ", cpu_build());
    });
}

/// Enough of a block that copies of it do not repeat inside a cache line's reach.
constexpr size_t pattern_bytes = size_t{1} << 20;

void fill_buffers(const problem &of, const std::vector<scratch::buffer> &buffers) {
    for (const scratch::buffer &b : buffers) {
        if (b.bytes == 0) continue;
        const std::vector<std::byte> pattern = measuring_data(of, *b.what, pattern_bytes);
        const size_t head = std::min(b.bytes, pattern.size());
        std::memcpy(b.ptr, pattern.data(), head);
        for (size_t at = head; at < b.bytes; at += head)
            std::memcpy(static_cast<std::byte *>(b.ptr) + at, b.ptr, std::min(head, b.bytes - at));
    }
}

class cpu_device final : public backend {
public:
    explicit cpu_device(int threads) : threads_(threads > 0 ? threads : cpu::cores()) {}

    plait_backend kind() const override { return PLAIT_CPU; }
    int device() const override { return 0; }
    void check_current() const override {}

    profile describe() const override {
        profile p;
        p.backend = PLAIT_CPU;
        p.name = cpu::model_name();
        p.cores = cpu::cores();
        p.threads = threads_;
        p.isa = cpu::isa_name();
        p.memory_bytes = cpu::memory_bytes();
        const cpu::caches sizes = cpu::cache_sizes();
        p.l1_bytes = sizes.l1;
        p.l2_core_bytes = sizes.l2;
        p.l3_bytes = sizes.l3;
        // Not measured: a profile must be the same in every process, or plans would not be. One
        // core copies about 12 GB/s, and eight of them saturate the memory of one socket.
        p.copy_bandwidth = 12e9 * std::min(p.cores, 8);
        p.launch_seconds = 5e-6; // opening and closing one parallel region
        return p;
    }

    std::shared_ptr<const prepared> prepare(const pipeline &what) const override {
        return std::make_shared<cpu_prepared>(what);
    }

    std::shared_ptr<allocator> default_allocator() const override {
        return std::make_shared<aligned_memory>();
    }

    double measure(const pipeline &what, const problem &of, allocator &memory,
                   double budget) const override {
        const cpu_prepared ready(what);
        const scratch on(of.tensors, static_cast<size_t>(what.work.bytes()), memory, nullptr);
        fill_buffers(of, on.buffers);

        using clock = std::chrono::steady_clock;
        const auto seconds = [](clock::duration d) {
            return std::chrono::duration<double>(d).count();
        };
        const auto start = clock::now();
        ready.launch(on.pointers, nullptr); // first touch, threads, tables
        // A batch of runs lasts long enough for the clock; a few batches give a median.
        auto from = clock::now();
        ready.launch(on.pointers, nullptr);
        const double once = std::max(seconds(clock::now() - from), 1e-9);
        const int batch = static_cast<int>(std::clamp(50e-6 / once, 1.0, 1000.0));
        std::vector<double> times{once};
        while (times.size() < 31 && seconds(clock::now() - start) + once * batch < budget) {
            from = clock::now();
            for (int i = 0; i < batch; ++i) ready.launch(on.pointers, nullptr);
            times.push_back(seconds(clock::now() - from) / batch);
        }
        return median(times);
    }

private:
    int threads_;
};

} // namespace

int cpu_device_count() { return 1; }

int cpu_core_count() { return cpu::cores(); }

std::string cpu_build() {
    std::string out;
    for (const char *const *level = cpu::isa_compiled(); *level; ++level)
        out += text(out.empty() ? "" : " ", *level);
    return out;
}

std::shared_ptr<const backend> cpu_backend(int device, int threads) {
    if (device != 0)
        fail(PLAIT_ERR_NO_DEVICE, "device=", device, ": the CPU backend has one device, 0");
    apply_isa_limit();
    return std::make_shared<cpu_device>(threads);
}

} // namespace plait::impl
