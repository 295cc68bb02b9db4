// A causal depthwise convolution in normal form. BCT and BTC differ by strides alone: every tensor
// is seen as [batch][channel][time], whatever lies next to what. Candidates see this and nothing
// else.
//
//   xe[p] = x[p] for p >= 0, the first state before that, else 0
//   pre[b,c,t] = bias[c] + sum_k w[c,k] * xe[b,c,t-(width-1)+k],    y = activation(pre) [+ x]
#pragma once

#include "lib/common/scalar.h"

#include <cstdint>

namespace plait::impl {

enum class conv1d_direction : int32_t { forward = 0, backward = 1, update = 2 };

/// A tensor [row][channel][time]; w is [channel][tap] in c and t, bias [channel], states are
/// [sequence or slot][channel][entry], seq_idx [row][time].
struct conv1d_view {
    scalar type;     ///< none: not in use
    int32_t align;   ///< promised alignment of the base, bytes
    int64_t b, c, t; ///< strides in elements; 0 for an axis that it does not have

    constexpr bool used() const { return type != scalar::none; }
};

struct conv1d_problem {
    conv1d_direction direction;
    bool silu;
    bool residual; ///< y += x behind the activation
    bool varlen;   ///< batch is 1; sequences lie behind one another along time
    bool ring;     ///< update: the state is a ring, else it is shifted
    bool pooled;   ///< states live in slots
    bool alias;    ///< STATE_OUT may be STATE_IN
    bool status;   ///< STATUS is in use
    scalar index;  ///< type of CU_SEQLENS, i32 or i64; none without varlen
    int32_t pad;   ///< the slot number of rows without a slot
    int64_t batch, channels, length, width;
    int64_t sequences;  ///< rows of states that are not pooled: batch, or packed sequences
    int64_t max_length; ///< of a sequence; length without varlen
    int64_t entries;    ///< of a state, at least width - 1
    int64_t slots;      ///< of the pool; 0 without
    conv1d_view x, y, w, bias;
    conv1d_view state_in, state_out; ///< forward and backward; an update has one state in both
    conv1d_view seq_idx;
    conv1d_view dx, dy, dw, dbias, dstate_in, dstate_out;
    scalar accumulator; ///< f64 where any floating tensor is, else f32

    /// Entries of a state that taps read.
    constexpr int64_t history() const { return width - 1; }
};

} // namespace plait::impl
