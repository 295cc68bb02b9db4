// One call of the transform as plain data: its descriptor, its tensors on the host, what the
// definition says about the result, and how far a result may be from it.
#pragma once

#include "tests/support/handles.h"
#include "tests/support/memory.h"
#include "tests/support/oracle.h"
#include "tests/support/rng.h"
#include "tests/support/values.h"

#include <optional>
#include <string>
#include <vector>

namespace plait::test {

struct wht_call {
    plait_dtype x = PLAIT_F32;
    std::optional<plait_dtype> y; ///< default: x, of I8 and I16 I32
    std::vector<int64_t> extents;
    std::optional<uint32_t> axes; ///< default: the last axis
    std::optional<uint64_t> bits;
    std::optional<std::pair<int, plait_wht_factor>> factor; ///< axis, matrix
    plait_wht_order order = PLAIT_NATURAL;
    bool adjoint = false;
    std::optional<double> scale;
    std::optional<int64_t> bound;
    std::optional<std::vector<int64_t>> x_strides, y_strides, signs_strides, diag_strides;
    bool signs = false, overflow = false, alias = false;
    std::optional<plait_dtype> diag;
    int64_t x_offset = 0, y_offset = 0; ///< elements between a multiple of 256 bytes and the base

    plait_dtype y_type() const { return y.value_or(is_narrow(x) ? PLAIT_I32 : x); }
    double scale_value() const { return scale.value_or(1.0); }
    int rank() const { return static_cast<int>(extents.size()); }
    bool is_transformed(int axis) const;
    plait_wht_factor factor_of(int axis) const;
    int64_t elements() const;  ///< product of the extents
    int64_t transform() const; ///< elements of one transform (bits: of the transformed bits)
    int stages() const;        ///< log2 of the butterfly part of one transform
    int factor_orders() const; ///< sum of the factor orders, at least 1
    std::vector<int64_t> packed() const;
    std::vector<int64_t> strides(plait_role role) const; ///< as given, or the default
    int64_t span(plait_role role) const; ///< elements from the first to one past the last
    /// The promise that the offset leaves: 16 bytes, or less.
    int alignment(plait_role role) const;
    bool accumulates_f64() const;
    /// Of the kernels on a CPU only wht.ref computes it, on CUDA wht.cuda.composed: a factor beyond
    /// those of orders 12, 20, 28, 40; narrow integers; I64 whose sums must be known beyond 64
    /// bits.
    bool needs_definition() const {
        return (factor && factor->second > PLAIT_H40) || is_narrow(x) ||
               (x == PLAIT_I64 && overflow && signs && adjoint);
    }
};

/// Status of the first refusal of constructor, setters and check; `desc` is then null. Alignments
/// follow from the offsets.
plait_status make_desc(const wht_call &call, desc_ptr &desc);
/// For calls that are legal: throws with plait's sentence.
desc_ptr desc_of(const wht_call &call);

/// Positions of the elements of a role in its buffer (without the offset), in logical order.
std::vector<int64_t> positions(const wht_call &call, plait_role role);

/// Host images of the tensors, from the first element of each tensor on.
struct wht_data {
    bytes x;
    std::vector<uint8_t> signs; ///< one entry per bit
    bytes diag;
};

enum class filling {
    uniform,  ///< real numbers in (-1, 1)
    integers, ///< small whole numbers: partial sums are exact
    huge      ///< integer types: the whole range, so that results wrap
};

/// Random values; the gaps of X hold poison.
wht_data random_data(const wht_call &call, filling how, rng &random);

/// What the definition gives, in logical order (complex: re, im pairs).
struct expectation {
    std::vector<long double> value; ///< floating types
    std::vector<wide> exact;        ///< integers, before wrapping
    bool overflow = false;          ///< some exact value does not fit Y
};
expectation reference(const wht_call &call, const wht_data &data);

/// Norm-wise per transform: the largest ||y - ref|| / allowed, where allowed is
/// (k + m) u ||ref|| + || half ulp of Y ||: each stage adds at most u. 0 for an equal result. NaN
/// or Inf in only one of the two gives HUGE_VAL. `u` is the unit roundoff of the candidate.
double worst_ratio(const wht_call &call, const expectation &ref, const bytes &y, double u);
/// "" when every element of Y equals the rounded (wrapped) reference, else the first that differs.
std::string first_difference(const wht_call &call, const expectation &ref, const bytes &y);
/// "" when the bytes of Y between its elements still hold `fill`.
std::string gap_damage(const wht_call &call, const bytes &y, const bytes &before);

} // namespace plait::test
