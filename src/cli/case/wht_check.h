// Transforms of a wht against the definition in float64.
#pragma once

#include "src/cli/case/check.h"
#include "src/cli/case/wht_reference.h"

namespace plait::cases {

/// In the Euclidean norm of one transform of n = m * 2^k: (k + m) u ||ref|| plus half an ulp of the
/// stored type per element; u of the type that accumulates. Integers are exact. TF32: 2^-11 more
/// for each of two products, which keep norms.
tolerance wht_tolerance(const token_parts &parts, plait_dtype x, plait_dtype y, rounding how);

class wht_checker final : public checker {
public:
    wht_checker(const std::string &token, const std::vector<tensor> &tensors, bool quick = false);
    int64_t parts() const override { return parts_.transforms(); }
    int64_t elements() const override { return parts_.length(); }
    check_result check(const std::vector<int64_t> &which, rounding how, const fetch &inputs,
                       const fetch &outputs) override;

private:
    slice part_of(const tensor &t, int64_t transform) const;
    /// Of one transform: bits in words, doubles (pairs for complex X).
    std::vector<uint32_t> signs_of(int64_t transform, const fetch &inputs) const;
    std::vector<double> diag_of(int64_t transform, const fetch &inputs) const;

    token_parts parts_;
    std::vector<tensor> tensors_;
    wht_reference reference_;
};

} // namespace plait::cases
