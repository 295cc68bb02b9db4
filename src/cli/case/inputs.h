// Data for the inputs of a problem: random numbers, and indices that keep the rules of their role.
#pragma once

#include "src/cli/case/tensor.h"

namespace plait::cases {

struct input_options {
    uint64_t seed = 1;
    /// For measuring: sequences fill their capacity and no row goes without a slot. Else some of
    /// everything that is legal: empty sequences, spare capacity, pad slots, padding.
    bool full = false;
};

/// The values of one tensor without axes of stride 0, in row-major order.
class input {
public:
    input(const token_parts &parts, const tensor &t, const input_options &options);
    /// Elements [first, first + count) in the tensor's own type (B1: a byte each).
    void read(int64_t first, int64_t count, void *to) const;

private:
    plait_dtype dtype_;
    uint64_t seed_;
    int64_t limit_;
    bool is_index_;
    bool whole_ = false;        ///< floats hold integers: the token promises a bound
    double from_ = -1, to_ = 1; ///< range of floats
    std::vector<int64_t> indices_;
};

/// SLOTS, POSITION, CU_SEQLENS, SEQ_IDX, ROWS.
bool is_index(plait_role role);
/// "" or the first rule that the values of an index tensor break.
std::string broken_rule(const token_parts &parts, plait_role role,
                        const std::vector<int64_t> &values);

} // namespace plait::cases
