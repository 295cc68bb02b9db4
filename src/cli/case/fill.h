// Data for tensors: reproducible random numbers, poison, guard bands.
#pragma once

#include "src/cli/case/tensor.h"

namespace plait::cases {

/// The range of random integers: [-limit, limit].
struct fill_options {
    uint64_t seed = 1;
    int64_t integer_limit = 1000;
};

/// `count` dense random elements from position `first` of the stream of `seed`: the value of a
/// position does not depend on where a chunk begins. Floats are uniform in [-1, 1); every one is
/// exact in its type. B1: one byte (0 or 1) per element.
void fill_random(plait_dtype dtype, const fill_options &options, int64_t first, int64_t count,
                 void *dense);

/// A byte that makes a NaN of every floating type and a large integer of the others.
constexpr unsigned char poison_byte = 0xff;

/// Host image of a device buffer: guard, the tensor's span, guard; all poison at first.
class guarded_image {
public:
    static constexpr size_t guard_bytes = 1024;

    guarded_image() = default;
    explicit guarded_image(size_t span_bytes);
    std::vector<unsigned char> bytes;
    void *data() { return bytes.data() + guard_bytes; }
    const void *data() const { return bytes.data() + guard_bytes; }
    /// Is every byte poison that is not an element of `t`? "" or what was overwritten.
    std::string untouched(const tensor &t) const;
};

} // namespace plait::cases
