// One convolution as plain data: its descriptor, its tensors on the host, and how they lie in
// memory.
#pragma once

#include "tests/support/conv1d_oracle.h"
#include "tests/support/handles.h"
#include "tests/support/memory.h"
#include "tests/support/rng.h"
#include "tests/support/values.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace plait::test {

struct conv1d_call {
    plait_direction direction = PLAIT_FORWARD;
    plait_dtype x = PLAIT_F32;
    int64_t batch = 1, channels = 1, length = 1, width = 1;
    plait_layout layout = PLAIT_BCT;
    bool silu = false, residual = false, ring = false;
    std::optional<int64_t> entries;                    ///< default: width - 1
    std::optional<std::pair<int64_t, int64_t>> varlen; ///< sequences, longest
    std::optional<std::pair<int64_t, int32_t>> slots;  ///< count, pad
    std::vector<plait_role> used;    ///< BIAS, STATE_IN, STATE_OUT, SEQ_IDX, STATUS
    std::vector<plait_role> dropped; ///< gradients
    bool alias = false;              ///< STATE_OUT@STATE_IN
    std::map<plait_role, plait_dtype> types;
    std::map<plait_role, std::vector<int64_t>> strides;
    std::map<plait_role, int64_t> offsets; ///< elements between a multiple of 256 bytes and a base

    bool uses(plait_role role) const;
    bool drops(plait_role role) const;
    int64_t state_entries() const { return entries.value_or(width - 1); }
    int64_t state_rows() const { return varlen ? varlen->first : batch; }
    int64_t pool() const { return slots ? slots->first : state_rows(); }
    plait_dtype type(plait_role role) const; ///< as set, or the default
    plait_dtype accumulator() const;
    /// In the order of the tensor's axes; `pitch` more elements between its outermost rows.
    std::vector<int64_t> packed(plait_role role, int64_t pitch = 0) const;
    /// [row, channel, time] extents of a tensor; w is [1, channel, tap].
    std::vector<int64_t> shape(plait_role role) const;
    /// Elements from row to row, channel to channel, sample to sample, 0 for an axis that it lacks.
    std::vector<int64_t> steps(plait_role role) const;
};

/// Status of the first refusal of constructor, setters and check; `desc` is then null. Alignments
/// follow from the offsets.
plait_status make_desc(const conv1d_call &call, desc_ptr &desc);
/// For calls that are legal: throws with plait's sentence.
desc_ptr desc_of(const conv1d_call &call);

/// What the oracle needs of the call; arrays are empty.
conv1d_inputs inputs_of(const conv1d_call &call);

enum class conv1d_filling {
    uniform, ///< real numbers in (-1, 1)
    quarters ///< multiples of 1/4 up to 2: sums of products are exact in f32
};

/// Random values, rounded to the types of their tensors; legal offsets, ids, slots, positions.
conv1d_inputs random_inputs(const conv1d_call &call, conv1d_filling how, rng &random);

/// NaN in X and DY where they belong to nothing: padding, pad rows, tokens past the last offset.
void poison_unowned(const conv1d_call &call, conv1d_inputs &in);

/// Samples from..to of each row.
conv1d_array slice(const conv1d_array &a, int64_t from, int64_t to);

/// The array of the oracle that a role is; null for integers.
const conv1d_array *array_of(const conv1d_inputs &in, plait_role role);
/// The integers of SLOTS, CU_SEQLENS, SEQ_IDX, POSITION.
std::vector<int64_t> integers_of(const conv1d_inputs &in, plait_role role);

} // namespace plait::test
