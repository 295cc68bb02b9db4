// Tensors to measure on: memory from an allocator, filled with finite random data by the backend.
#pragma once

#include "src/backend/backend.h"

namespace plait::impl {

/// Memory that goes back to its allocator.
class lent_memory {
public:
    lent_memory(allocator &from, size_t bytes, plait_stream stream)
        : from_(&from), ptr_(bytes ? from.allocate(bytes, stream) : nullptr), bytes_(bytes),
          stream_(stream) {}
    lent_memory(lent_memory &&other) noexcept
        : from_(other.from_), ptr_(other.ptr_), bytes_(other.bytes_), stream_(other.stream_) {
        other.ptr_ = nullptr;
    }
    lent_memory(const lent_memory &) = delete;
    lent_memory &operator=(const lent_memory &) = delete;
    ~lent_memory() {
        if (ptr_) from_->release(ptr_, bytes_, stream_);
    }
    void *get() const { return ptr_; }
    size_t bytes() const { return bytes_; }

private:
    allocator *from_;
    void *ptr_;
    size_t bytes_;
    plait_stream stream_;
};

/// One set of tensors and a workspace. When there is no room for an output next to an input that it
/// may be aliased to, both are one: a state that fills the memory can still be measured.
class scratch {
public:
    scratch(const std::vector<tensor> &tensors, size_t work_bytes, allocator &memory,
            plait_stream stream);
    prepared::bindings pointers;

    struct buffer {
        const tensor *what;
        void *ptr;
        size_t bytes;
    };
    std::vector<buffer> buffers; ///< without those that share an input's memory

private:
    std::vector<lent_memory> memory_;
};

/// Bytes of all tensors, without workspace.
size_t tensor_bytes(const std::vector<tensor> &tensors);

/// Fills a block of elements of this type: floats in [-1, 1], integers in [-8, 8], random bits.
/// `bytes` is a multiple of the element size (of 4 for PLAIT_B1).
void fill_random(void *to, size_t bytes, plait_dtype dtype, uint64_t seed);

/// What a tensor holds while a candidate is measured: the whole of it where every element has its
/// place (offsets, slots), else a block of at most `most` bytes to be repeated.
std::vector<std::byte> measuring_data(const problem &of, const tensor &what, size_t most);

/// The middle of the times; they are reordered. 0 when there is none.
double median(std::vector<double> &seconds);

} // namespace plait::impl
