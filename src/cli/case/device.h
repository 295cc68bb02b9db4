// The memory and the clock of a backend: host memory and the steady clock for the CPU, device
// memory and events for CUDA. Host code only; the CUDA part is left out of builds without CUDA.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <plait/plait.h>
#include <string>

namespace plait::cases {

/// Work recorded once and run many times (a CUDA graph; a function on the CPU).
class replay {
public:
    virtual ~replay() = default;
    virtual void run() = 0;
};

class device {
public:
    virtual ~device() = default;
    virtual plait_backend backend() const = 0;
    virtual std::string name() const = 0;
    virtual plait_stream stream() const = 0;
    /// Can the host read and write what allocate() returns?
    virtual bool host_memory() const = 0;
    virtual size_t free_bytes() const = 0;
    /// Bytes of the largest cache that all of the device shares.
    virtual size_t cache_bytes() const = 0;

    /// Aligned to 256 bytes. OUT_OF_MEMORY when `bytes` are not there.
    virtual void *allocate(size_t bytes) = 0;
    virtual void release(void *ptr) noexcept = 0;
    virtual void upload(void *to, const void *from, size_t bytes) = 0;   ///< waits
    virtual void download(void *to, const void *from, size_t bytes) = 0; ///< waits
    /// Between buffers of the device, as fast as it can; ordered on the stream.
    virtual void copy(void *to, const void *from, size_t bytes) = 0;
    virtual void wait() = 0;

    /// Seconds on the device from the first to the last thing that `work` puts on the stream.
    virtual double seconds(const std::function<void()> &work) = 0;
    virtual std::unique_ptr<replay> record(const std::function<void()> &work) = 0;
};

/// `threads`: of copies on the CPU; 0 = all cores. NO_DEVICE when there is none.
std::unique_ptr<device> open_device(plait_backend backend, int number, int threads);

/// CUDA devices that this build can see; 0 without a driver and in builds without CUDA.
int cuda_devices();

class buffer {
public:
    buffer() = default;
    buffer(device &dev, size_t bytes)
        : device_(&dev), ptr_(bytes > 0 ? dev.allocate(bytes) : nullptr), bytes_(bytes) {}
    buffer(buffer &&other) noexcept { swap(other); }
    buffer &operator=(buffer &&other) noexcept {
        swap(other);
        return *this;
    }
    ~buffer() {
        if (ptr_) device_->release(ptr_);
    }
    void *get() const { return ptr_; }
    char *at(size_t offset) const { return static_cast<char *>(ptr_) + offset; }
    size_t bytes() const { return bytes_; }

private:
    void swap(buffer &other) noexcept {
        std::swap(device_, other.device_);
        std::swap(ptr_, other.ptr_);
        std::swap(bytes_, other.bytes_);
    }
    device *device_ = nullptr;
    void *ptr_ = nullptr;
    size_t bytes_ = 0;
};

std::string readable_bytes(double bytes); ///< "1.07 GB"

} // namespace plait::cases
