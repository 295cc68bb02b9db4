#include "tests/support/memory.h"

#include "tests/support/settings.h"

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <new>

namespace plait::test {
namespace {

constexpr int guard_byte = 0xFF; // NaN in every floating type, so that a read shows in the result
constexpr size_t guard_bytes = 1024; // a multiple of 256, more than the widest vector of a block

class host final : public memory {
public:
    void *allocate(size_t size) override {
        void *ptr = nullptr;
        if (posix_memalign(&ptr, 256, size ? size : 1) != 0) throw std::bad_alloc();
        return ptr;
    }
    void release(void *ptr) noexcept override { std::free(ptr); }
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
    block_ = target().allocate(head_ + size_ + tail_);
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
