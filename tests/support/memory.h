// Memory of the backend under test, and tensors in it that notice what must not be touched.
#pragma once

#include <cstddef>
#include <cstdint>
#include <plait/plait.h>
#include <string>
#include <vector>

namespace plait::test {

using bytes = std::vector<std::byte>;

class memory {
public:
    virtual ~memory() = default;
    /// Aligned to `align` at least; throws std::bad_alloc.
    virtual void *allocate(size_t size, size_t align = 256) = 0;
    virtual void release(void *ptr) noexcept = 0;
    virtual void upload(void *to, const void *from, size_t size) = 0;
    virtual void download(void *to, const void *from, size_t size) = 0;
    virtual void fill(void *to, int byte, size_t size) = 0;
    /// Waits for stream(); throws with the sentence of the device if its work failed.
    virtual void wait() = 0;
    virtual size_t available() = 0;
    virtual plait_stream stream() = 0;
};

memory &target();
memory &host_memory();
memory &device_memory(); ///< exists in binaries with CUDA only

/// What fills a workspace before a run: poison, or nothing with settings::exact_buffers.
int workspace_fill();

/// One block of memory with guard bands (see settings::exact_buffers).
class guarded {
public:
    /// data() lies `shift` bytes after an address that is a multiple of 256. fill_byte < 0: left as
    /// it is, so that a checker of uninitialised memory sees every read.
    guarded(size_t size, size_t shift, int fill_byte);
    ~guarded();
    guarded(const guarded &) = delete;
    guarded &operator=(const guarded &) = delete;

    void *data() const { return size_ ? static_cast<char *>(block_) + head_ : nullptr; }
    size_t size() const { return size_; }
    void put(const bytes &content);
    bytes get() const;
    /// "" or which guard byte changed.
    std::string damage() const;

private:
    void *block_ = nullptr;
    size_t size_, head_, tail_;
};

} // namespace plait::test
