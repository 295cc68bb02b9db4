// A device that can run steps. The planner uses it to measure, the api to execute.
#pragma once

#include "src/desc/problem.h"
#include "src/pipeline/pipeline.h"

#include <memory>
#include <string>

namespace plait::impl {

struct profile;

/// Memory for workspaces; stream-ordered where the device has streams.
class allocator {
public:
    virtual ~allocator() = default;
    virtual void *allocate(size_t bytes, plait_stream stream) = 0; ///< throws OUT_OF_MEMORY
    virtual void release(void *ptr, size_t bytes, plait_stream stream) noexcept = 0;
};

/// A pipeline whose kernels are loaded; immutable, shared by threads.
class prepared {
public:
    virtual ~prepared() = default;
    /// Pointer of each role; null where not in use.
    struct bindings {
        /// Roles are below 64, gradients from 256 on as their primals: see plait_role.
        static constexpr int roles = 128;
        static constexpr int index(plait_role role) {
            return role < 256 ? static_cast<int>(role) : static_cast<int>(role) - 256 + 64;
        }
        void *&operator[](plait_role role) { return role_[index(role)]; }
        void *operator[](plait_role role) const { return role_[index(role)]; }
        void *work = nullptr;

    private:
        void *role_[roles] = {};
    };
    /// Launches every step in order; neither allocates nor waits. `step::kernel` is in the
    /// sentence when a launch is refused.
    virtual void launch(const bindings &, plait_stream stream) const = 0;
};

class backend {
public:
    virtual ~backend() = default;
    virtual plait_backend kind() const = 0;
    virtual int device() const = 0;
    virtual profile describe() const = 0;
    /// NOT_SUPPORTED when this build lacks a kernel, DEVICE when it cannot be loaded.
    virtual std::shared_ptr<const prepared> prepare(const pipeline &) const = 0;
    /// The plan's device must be the current one of the calling thread, else DEVICE.
    virtual void check_current() const = 0;
    virtual std::shared_ptr<allocator> default_allocator() const = 0;
    /// Median seconds of one run on scratch tensors of its own (from `memory`) filled with finite
    /// random data and with offsets and slots that keep their rules, after a warm-up; at most about
    /// `budget` seconds. The planner calls it for one candidate at a time.
    virtual double measure(const pipeline &, const problem &, allocator &memory,
                           double budget) const = 0;
};

// Each backend has one entry; device counts never fail, builds are described in a few words.
// Throws NO_DEVICE. `threads` 0: every core that the process may use.
int cpu_device_count();
int cpu_core_count();
std::string cpu_build();
std::shared_ptr<const backend> cpu_backend(int device, int threads);
int cuda_device_count();
std::string cuda_build();
std::shared_ptr<const backend> cuda_backend(int device);

} // namespace plait::impl
