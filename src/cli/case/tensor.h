// Tensors of a descriptor and the way from their strides to dense arrays and back.
#pragma once

#include "src/cli/case/token.h"

#include <cstddef>
#include <string>

namespace plait::cases {

struct tensor {
    plait_role role;
    std::string name; ///< "x"
    plait_access access;
    plait_dtype dtype;
    std::vector<int64_t> extents;
    std::vector<int64_t> strides; ///< elements; bits for B1
    int alignment;                ///< promised for the base, bytes
    plait_role alias;             ///< may share the pointer of this role; 0: none

    int64_t elements() const;
    int64_t span() const; ///< elements from the first to one past the last that is touched
    size_t span_bytes() const;
    size_t dense_bytes() const; ///< of elements() packed
    bool dense() const;         ///< row major without gaps
    bool reads() const { return (access & PLAIT_READ) != 0; }
    bool writes() const { return (access & PLAIT_WRITE) != 0; }
    std::string shape() const; ///< "8 x 4096"
};

/// The same memory without axes of stride 0: every element once. This is the shape of data.
tensor distinct(const tensor &t);

std::vector<tensor> tensors_of(const plait_desc *desc);
/// nullptr when the role is not in use.
const tensor *find_tensor(const std::vector<tensor> &tensors, plait_role role);

// Copies elements [first, first + count) in row-major order between dense memory and the strided
// tensor whose element 0 is at `base`. No conversion. B1 is one byte (0 or 1) per element on the
// dense side.
void gather(const tensor &t, const void *base, int64_t first, int64_t count, void *dense);
void scatter(const tensor &t, void *base, int64_t first, int64_t count, const void *dense);

/// A part of a tensor, and the distance in elements from the tensor's base.
struct slice {
    tensor part;
    int64_t offset;
};
// All elements of a part; `base` is that of the whole tensor.
void gather(const slice &s, const void *base, void *dense);
void scatter(const slice &s, void *base, const void *dense);

/// The transformed axes alone: what belongs to one transform of a wht.
/// `index` counts the transforms in row-major order of the batch axes.
slice transform_slice(const tensor &t, const std::vector<token_axis> &axes, int64_t index);
/// Without axis `axis`, at index `at` of it.
slice cut(const tensor &t, size_t axis, int64_t at);

} // namespace plait::cases
