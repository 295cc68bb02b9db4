// One call of Kimi Delta Attention as plain data: its descriptor, its tensors on the host, and how
// they lie in memory.
#pragma once

#include "tests/support/handles.h"
#include "tests/support/memory.h"
#include "tests/support/rng.h"
#include "tests/support/values.h"

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace plait::test {

/// Dense, in logical order: tokens [batch][token][head][channel], A_LOG [1][1][head][1], DT_BIAS
/// [1][1][head][channel], states [sequence][head][key][value] whatever their orientation is.
struct kda_array {
    std::array<int64_t, 4> n{};
    std::vector<long double> v;

    kda_array() = default;
    explicit kda_array(const std::array<int64_t, 4> &extents, long double fill = 0)
        : n(extents), v(static_cast<size_t>(n[0] * n[1] * n[2] * n[3]), fill) {}
    size_t place(int64_t a, int64_t b, int64_t c, int64_t d) const {
        return static_cast<size_t>(((a * n[1] + b) * n[2] + c) * n[3] + d);
    }
    long double &at(int64_t a, int64_t b, int64_t c, int64_t d) { return v.at(place(a, b, c, d)); }
    long double at(int64_t a, int64_t b, int64_t c, int64_t d) const {
        return v.at(place(a, b, c, d));
    }
};

struct kda_call {
    plait_direction direction = PLAIT_FORWARD;
    plait_dtype q = PLAIT_F32;
    int64_t batch = 1, length = 1, heads = 1, value_heads = 1, dim_k = 1, dim_v = 1;
    plait_kda_gate gate = PLAIT_GATE_LOG;
    double lower_bound = 0;
    std::optional<double> beta_scale; ///< BETA is a logit
    std::optional<double> eps;        ///< q and k are normed
    std::optional<double> scale;
    plait_state_layout orientation = PLAIT_STATE_KV;   ///< set where a state is in use
    std::optional<std::pair<int64_t, int64_t>> varlen; ///< sequences, longest
    std::optional<std::pair<int64_t, int32_t>> slots;  ///< count, pad
    std::vector<plait_role> used;                      ///< DT_BIAS, STATE_IN, STATE_OUT, STATUS
    std::vector<plait_role> dropped;                   ///< gradients, A_LOG
    bool alias = false;                                ///< STATE_OUT@STATE_IN
    bool reserve = false;
    std::map<plait_role, plait_dtype> types;
    std::map<plait_role, std::vector<int64_t>> strides; ///< as plait_desc_set_strides takes them
    std::map<plait_role, int64_t> offsets; ///< elements between a multiple of 256 bytes and a base

    bool backward() const { return direction == PLAIT_BACKWARD; }
    bool uses(plait_role role) const; ///< inputs, states and STATUS
    bool drops(plait_role role) const;
    bool reads(plait_role role) const; ///< a floating tensor that execute takes and reads
    bool writes(plait_role role) const;
    int64_t sequences() const { return varlen ? varlen->first : batch; }
    plait_dtype type(plait_role role) const; ///< as set, or the default
    std::array<int64_t, 4> shape(plait_role role) const;
    /// Packed, in the order of the tensor's axes; `pitch` more elements behind each innermost row.
    std::vector<int64_t> packed(plait_role role, int64_t pitch = 0) const;
    /// Elements between neighbours along the axes of shape(); 0 for an axis that it lacks.
    std::array<int64_t, 4> steps(plait_role role) const;
    std::vector<plait_role> floating() const; ///< every floating tensor that execute takes
};

/// Status of the first refusal of constructor, setters and check; `desc` is then null. Alignments
/// follow from the offsets.
plait_status make_desc(const kda_call &call, desc_ptr &desc);
/// The forward whose gradients a call computes.
kda_call forward_of(const kda_call &backward);
/// For calls that are legal: throws with plait's sentence.
desc_ptr desc_of(const kda_call &call);

struct kda_inputs {
    std::map<plait_role, kda_array> arrays; ///< also what STATE_OUT holds before the call
    std::vector<int64_t> offsets;
    std::vector<int32_t> slot;
    bytes reserve; ///< of a backward that reads it

    const kda_array &operator[](plait_role role) const { return arrays.at(role); }
};

/// Random values, rounded to the types of their tensors; states stay of order one. Legal offsets
/// and slots. NaN stands where nothing belongs to a sequence, half of the time.
kda_inputs random_inputs(const kda_call &call, rng &random);
/// Every feature; about `work` entries of states over all tokens.
kda_call random_kda(rng &random, int64_t work);
/// As kernels that work in chunks of tokens take it: 16-bit q, k and v, enough keys, values,
/// tokens.
kda_call random_kda_chunks(rng &random, plait_direction direction, int64_t work);

/// Tokens from..to of each row.
kda_array slice(const kda_array &a, int64_t from, int64_t to);

} // namespace plait::test
