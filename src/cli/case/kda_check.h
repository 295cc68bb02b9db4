// Heads of Kimi Delta Attention against the definition in float64.
#pragma once

#include "src/cli/case/check.h"
#include "src/cli/case/handle.h"

#include <map>

namespace plait::cases {

class kda_checker final : public checker {
public:
    kda_checker(const std::string &token, const std::vector<tensor> &tensors);
    /// Heads of q and k. Value heads of no head have nothing to compute.
    int64_t parts() const override { return parts_.extent('h'); }
    int64_t elements() const override {
        return parts_.extent('b') * parts_.extent('t') * parts_.extent('k');
    }
    check_result check(const std::vector<int64_t> &which, rounding how, const fetch &inputs,
                       const fetch &outputs) override;

private:
    using buffers = std::map<plait_role, std::vector<unsigned char>>;
    /// One head with its value heads, F64 and packed: strides, promises, aliases and types are
    /// gone.
    std::string reference_token() const;
    void load(buffers &to, int64_t head, const fetch &inputs) const;
    void run(buffers &on) const;
    deviation compare(const buffers &from, const tensor &t, int64_t head, rounding how,
                      const fetch &outputs) const;

    token_parts parts_;
    std::vector<tensor> tensors_, reference_;
    int64_t group_;
    double relative_; ///< bound of the error of most tensors, of their norm
    context_ptr ctx_;
    plan_ptr plan_;
};

} // namespace plait::cases
