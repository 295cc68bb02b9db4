// Transforms of a wht against the definition in float64.
#pragma once

#include "src/cli/case/check.h"
#include "src/cli/case/wht_reference.h"
#include "src/cli/case/wht_results.h"

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
    const tensor *find(plait_role role) const { return find_tensor(tensors_, role); }
    /// Bits as words: SIGNS of one transform, the whole FACTOR.
    std::vector<uint32_t> bits_of(const slice &part, const fetch &inputs) const;
    /// Of one transform, doubles (pairs for complex X).
    std::vector<double> diagonal_of(const tensor &diag, int64_t transform,
                                    const fetch &inputs) const;
    /// X of one transform as the reference takes it: rows of an adjoint are at their places.
    wht_values load_x(int64_t transform, const fetch &inputs) const;
    /// The results among the values of a whole transform.
    wht_values results_of(const wht_values &whole) const;
    /// SIGNS, FACTOR and the diagonals of one transform; `keep` holds the memory.
    struct others;
    std::vector<plait_arg> others_of(int64_t transform, const fetch &inputs, others &keep) const;
    /// "" or what is wrong with AMAX, SCALES and HISTOGRAM of one transform.
    std::string wrong_around(int64_t transform, const wht_values &results, const tolerance &tol,
                             const fetch &outputs) const;
    deviation compare(int64_t transform, wht_values &results, const tolerance &tol,
                      const fetch &outputs) const;

    token_parts parts_;
    std::vector<tensor> tensors_;
    wht_reference reference_;
    std::vector<int64_t> rows_; ///< ROWS, during a check
};

} // namespace plait::cases
