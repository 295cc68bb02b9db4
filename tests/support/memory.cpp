#include "tests/support/memory.h"

#include "tests/support/settings.h"

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <mutex>
#include <new>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>

namespace plait::test {
namespace {

constexpr int guard_byte = 0xFF; // NaN in every floating type, so that a read shows in the result
constexpr size_t guard_bytes = 1024; // a multiple of 256, more than the widest vector of a block

class host final : public memory {
public:
    void *allocate(size_t size, size_t align) override {
        if (config().exact_buffers) return before_a_wall(size, align);
        void *ptr = nullptr;
        if (posix_memalign(&ptr, 256, size ? size : 1) != 0) throw std::bad_alloc();
        return ptr;
    }
    void release(void *ptr) noexcept override {
        const std::lock_guard<std::mutex> lock(mutex_);
        const auto wall = walls_.find(ptr);
        if (wall == walls_.end()) return std::free(ptr);
        munmap(wall->second.first, wall->second.second);
        walls_.erase(wall);
    }
    void upload(void *to, const void *from, size_t size) override {
        if (size) std::memcpy(to, from, size);
    }
    void download(void *to, const void *from, size_t size) override {
        if (size) std::memcpy(to, from, size);
    }
    void fill(void *to, int byte, size_t size) override {
        if (size) std::memset(to, byte, size);
    }
    void wait() override {}
    size_t available() override {
        std::ifstream f("/proc/meminfo");
        for (std::string line; std::getline(f, line);)
            if (line.rfind("MemAvailable:", 0) == 0)
                return std::strtoull(line.c_str() + 13, nullptr, 10) * 1024;
        return size_t{1} << 30;
    }
    plait_stream stream() override { return nullptr; }

private:
    std::mutex mutex_;
    std::map<void *, std::pair<void *, size_t>> walls_; ///< address to mapping and its length

    /// Pages that nobody may touch lie behind the last bytes, as near as the alignment allows, and
    /// before the page of the first.
    void *before_a_wall(size_t size, size_t align) {
        const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
        const size_t used = (size + page - 1) / page * page + (size == 0 ? page : 0);
        const size_t whole = used + 2 * page;
        void *base = mmap(nullptr, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (base == MAP_FAILED) throw std::bad_alloc();
        char *first = static_cast<char *>(base) + page;
        if (mprotect(first, used, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
        void *ptr = first + used - (size + align - 1) / align * align;
        const std::lock_guard<std::mutex> lock(mutex_);
        walls_[ptr] = {base, whole};
        return ptr;
    }
};

} // namespace

memory &host_memory() {
    static host h;
    return h;
}

#ifndef PLAIT_TEST_CUDA
memory &target() { return host_memory(); }
#else
memory &target() { return on_device() ? device_memory() : host_memory(); }
#endif

int workspace_fill() { return config().exact_buffers ? -1 : 0xFF; }

guarded::guarded(size_t size, size_t shift, int fill_byte) : size_(size) {
    const size_t guard = config().exact_buffers ? 0 : guard_bytes;
    head_ = guard + shift;
    tail_ = guard;
    // Only a workspace, which is not filled, is promised more than what vectors need.
    block_ = target().allocate(head_ + size_ + tail_, fill_byte < 0 ? 256 : 16);
    char *p = static_cast<char *>(block_);
    target().fill(p, guard_byte, head_);
    if (fill_byte >= 0) target().fill(p + head_, fill_byte, size_);
    target().fill(p + head_ + size_, guard_byte, tail_);
}

guarded::~guarded() { target().release(block_); }

void guarded::put(const bytes &content) { target().upload(data(), content.data(), content.size()); }

bytes guarded::get() const {
    bytes content(size_);
    target().download(content.data(), data(), size_);
    return content;
}

std::string guarded::damage() const {
    bytes band(head_ + tail_);
    target().download(band.data(), block_, head_);
    target().download(band.data() + head_, static_cast<char *>(block_) + head_ + size_, tail_);
    for (size_t i = 0; i < band.size(); ++i)
        if (band[i] != std::byte{guard_byte})
            return i < head_ ? "wrote " + std::to_string(head_ - i) + " bytes before the tensor"
                             : "wrote " + std::to_string(i - head_) + " bytes after the tensor";
    return "";
}

} // namespace plait::test
