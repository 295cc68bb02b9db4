// Channels of a convolution against the definition in float64.
#pragma once

#include "src/cli/case/check.h"
#include "src/cli/case/conv1d_reference.h"

namespace plait::cases {

class conv1d_checker final : public checker {
public:
    conv1d_checker(const std::string &token, const std::vector<tensor> &tensors);
    int64_t parts() const override { return parts_.extent('c'); }
    int64_t elements() const override { return parts_.extent('b') * parts_.extent('t'); }
    check_result check(const std::vector<int64_t> &which, rounding how, const fetch &inputs,
                       const fetch &outputs) override;

private:
    struct buffers;
    void load(buffers &to, const int64_t *channels, int64_t count, const fetch &inputs);
    deviation compare(const buffers &from, const tensor &t, int64_t channel, int64_t at,
                      const fetch &outputs) const;
    element_tolerance tolerance_of(plait_role role, plait_dtype stored, double largest) const;

    token_parts parts_;
    std::vector<tensor> tensors_;
    conv1d_reference values_, sizes_;
    double unit_ = 0; ///< roundoff of the accumulator, for one check
};

} // namespace plait::cases
