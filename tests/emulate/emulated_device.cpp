// The CUDA backend of plait, on the emulator: takes the place of src/backend/cuda in this binary.
#include "lib/cuda/kernel_table.h"
#include "src/backend/binding.h"
#include "src/core/status.h"
#include "src/core/text.h"
#include "src/planner/profile.h"
#include "tests/emulate/emulator.h"
#include "tests/support/memory.h"

#include <cstring>
#include <fstream>
#include <sstream>
#include <sys/mman.h>

namespace plait::impl {

namespace {

class emulated_prepared final : public prepared {
public:
    explicit emulated_prepared(const pipeline &what) {
        for (const step &s : what.steps) {
            const void *func = cuda::find_kernel(s.kernel.c_str(), s.variant.c_str());
            const std::string name = text(s.kernel, ' ', s.variant);
            if (!func) fail(PLAIT_ERR_NOT_SUPPORTED, "this build has no CUDA kernel ", name);
            emulation::launch_shape shape;
            shape.grid[0] = s.grid;
            shape.block[0] = s.block;
            shape.shared_bytes = s.smem_bytes;
            shape.cluster = s.cluster;
            launches_.push_back({func, shape, name, bound_step(s, what.work),
                                 s.programmatic ? s.operands.size() : 0});
        }
    }

    void launch(const bindings &pointers, plait_stream) const override {
        for (const one &l : launches_) {
            bound_step::blob args;
            l.what.fill(args, pointers);
            if (l.pointers > 0) start(l, args);
            const std::string fault =
                emulation::launch(l.func, l.shape, args.bytes, emulation::current_settings());
            if (!fault.empty()) fail(PLAIT_ERR_DEVICE, "step ", l.name, ": ", fault);
        }
    }

private:
    struct one {
        const void *func;
        emulation::launch_shape shape;
        std::string name;
        bound_step what;
        size_t pointers; ///< of a programmatic step
    };

    /// A programmatic step up to its wait. It has nowhere to read or write: that ends the run.
    static void start(const one &l, bound_step::blob args) {
        const size_t space = size_t{1} << 34;
        static char *const wall = static_cast<char *>(
            mmap(nullptr, space, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
        for (size_t i = 0; i < l.pointers; ++i) {
            char *p;
            std::memcpy(&p, args.bytes + i * sizeof p, sizeof p);
            if (p) p = wall + space / 2;
            std::memcpy(args.bytes + i * sizeof p, &p, sizeof p);
        }
        emulation::settings how = emulation::current_settings();
        how.until_wait = true;
        how.most_blocks = 2;
        const std::string fault = emulation::launch(l.func, l.shape, args.bytes, how);
        if (!fault.empty()) fail(PLAIT_ERR_DEVICE, "step ", l.name, ": ", fault);
    }

    std::vector<one> launches_;
};

class emulated_device final : public backend {
public:
    plait_backend kind() const override { return PLAIT_CUDA; }
    int device() const override { return 0; }
    profile describe() const override {
        std::ifstream file(PLAIT_EMULATED_PROFILE);
        std::stringstream content;
        content << file.rdbuf();
        return profile_from_text(content.str());
    }
    std::shared_ptr<const prepared> prepare(const pipeline &what) const override {
        return std::make_shared<emulated_prepared>(what);
    }
    void check_current() const override {}
    std::shared_ptr<allocator> default_allocator() const override {
        return cpu_backend(0, 1)->default_allocator();
    }
    double measure(const pipeline &, const problem &, allocator &, double) const override {
        fail(PLAIT_ERR_DEVICE, "an emulated device says nothing about time");
    }
};

} // namespace

int cuda_device_count() { return 1; }

std::string cuda_build() { return "CUDA, emulated"; }

std::shared_ptr<const backend> cuda_backend(int) { return std::make_shared<emulated_device>(); }

} // namespace plait::impl

namespace plait::test {
memory &device_memory() { return host_memory(); }
} // namespace plait::test
