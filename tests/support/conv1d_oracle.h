// The definition of the causal depthwise convolution, from its formulas alone, on dense arrays.
//   xe[p] = x[p] for p >= 0, state[p + entries] before that, or 0
//   y[t]  = act(bias + sum_k w[k] xe[t - (width - 1) + k]) [+ x[t]]
// A tap counts iff it belongs to the token's sequence; what belongs to nothing gives 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace plait::test {

/// [row][channel][time], packed, whatever the layout in memory is.
struct conv1d_array {
    int64_t rows = 0, channels = 0, time = 0;
    std::vector<long double> v;

    conv1d_array() = default;
    conv1d_array(int64_t r, int64_t c, int64_t t, long double fill = 0)
        : rows(r), channels(c), time(t), v(static_cast<size_t>(r * c * t), fill) {}
    long double &at(int64_t r, int64_t c, int64_t t) {
        return v[static_cast<size_t>((r * channels + c) * time + t)];
    }
    long double at(int64_t r, int64_t c, int64_t t) const {
        return v[static_cast<size_t>((r * channels + c) * time + t)];
    }
};

enum class conv1d_op { forward, backward, update };

/// Everything that a result depends on. Arrays of optional tensors count only with their flag.
struct conv1d_inputs {
    conv1d_op op = conv1d_op::forward;
    bool silu = false, residual = false, ring = false, varlen = false, pooled = false;
    bool bias = false, first_state = false, last_state = false, ids = false, status = false;
    bool dlast_state = false;
    int64_t batch = 0, channels = 0, length = 0, width = 1, entries = 0;
    int64_t sequences = 0, max_length = 0; ///< of varlen
    int64_t slots = 0;
    int32_t pad = -1;
    conv1d_array x, w, b;   ///< w is [1][channel][tap], b [1][channel][1]
    conv1d_array state;     ///< STATE_IN, or an update's STATE, or the pool
    conv1d_array state_out; ///< what the rows of STATE_OUT hold before the call
    conv1d_array dy, dstate_out;
    std::vector<int64_t> offsets;
    std::vector<int32_t> seq_idx, slot, position;

    /// Rows of states that are not pooled.
    int64_t state_rows() const { return varlen ? sequences : batch; }
};

/// A result and, for each value, how far the accumulator may be from it before the store when its
/// unit roundoff is `u`.
struct conv1d_output {
    conv1d_array value, bound;
};

struct conv1d_results {
    conv1d_output y, state_out; ///< an update's state is in state_out
    conv1d_output dx, dw, dbias, dstate_in;
    int32_t status = 0;
};

/// `u` = 0: values alone, every bound is 0.
conv1d_results conv1d_reference(const conv1d_inputs &in, double u);

long double silu(long double p);
long double silu_derivative(long double p);

} // namespace plait::test
