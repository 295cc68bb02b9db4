// Kimi Delta Attention in normal form. Orientations of states and layouts differ by strides alone:
// tokens are seen as [batch][token][head][channel], states as [sequence][head][key][value]. What is
// one of q's or k's heads is named `heads`, all others `value_heads`. Candidates see this and
// nothing else.
//
//   q, k  are divided by sqrt(sum of squares + eps) where norm is on
//   x = G + DT_BIAS, A = exp(A_LOG):  g = G, -A softplus(x) or lower_bound sigmoid(A x)
//   beta = BETA or beta_scale sigmoid(BETA)
//   S' = diag(exp g) S,  u = beta (v - S'^T k),  S = S' + k u^T,  o = scale S^T q
#pragma once

#include "lib/common/hd.h"
#include "lib/common/scalar.h"

#include <cstdint>

namespace plait::impl {

enum class kda_direction : int32_t { forward = 0, backward = 1 };
enum class kda_gate : int32_t { log = 0, softplus = 1, bounded = 2 };

/// [batch][token][head][channel]; A_LOG is [head], DT_BIAS [head][channel], BETA without channels.
struct kda_view {
    scalar type;        ///< none: not in use
    int32_t align;      ///< promised alignment of the base, bytes
    int64_t b, t, h, c; ///< strides in elements; 0 for an axis that it does not have

    PLAIT_HD constexpr bool used() const { return type != scalar::none; }
};

/// [sequence or slot][value head][key][value]
struct kda_state_view {
    scalar type;
    int32_t align;
    int64_t n, h, k, v;

    PLAIT_HD constexpr bool used() const { return type != scalar::none; }
};

struct kda_problem {
    kda_direction direction;
    kda_gate gate;
    bool norm;       ///< of q and k
    bool beta_logit; ///< else BETA is beta
    bool varlen;     ///< batch is 1; sequences lie behind one another along time
    bool pooled;     ///< states live in slots
    bool alias;      ///< STATE_OUT may be STATE_IN
    bool status;     ///< STATUS is in use
    bool reserve;    ///< RESERVE is: forward writes it, backward reads it (kda_reserve.h)
    scalar index;    ///< type of CU_SEQLENS, i32 or i64; none without varlen
    int32_t pad;     ///< the slot number of sequences without a slot
    double lower_bound, beta_scale, eps, scale;
    int64_t batch, length, heads, value_heads, dim_k, dim_v;
    int64_t sequences;  ///< rows of states that are not pooled: batch, or packed sequences
    int64_t max_length; ///< of a sequence; length without varlen
    int64_t slots;      ///< of the pool; 0 without
    kda_view q, k, v, g, beta, o, a_log, dt_bias;
    kda_state_view state_in, state_out;
    kda_view dq, dk, dv, dg, dbeta, d_o, da_log, ddt_bias;
    kda_state_view dstate_in, dstate_out;
    scalar accumulator; ///< f64 where any floating tensor is, else f32

    /// Value heads that share one head of q and k.
    PLAIT_HD constexpr int64_t group() const { return heads > 0 ? value_heads / heads : 0; }
    /// Tokens of the longest sequence that can be.
    PLAIT_HD constexpr int64_t longest() const { return max_length < length ? max_length : length; }
};

} // namespace plait::impl
