// What a token should give: the same transform on the CPU with every float F64 (integers: I64).
#pragma once

#include "src/cli/case/handle.h"
#include "src/cli/case/token.h"

#include <map>

namespace plait::cases {

class wht_reference {
public:
    /// `candidates`: who computes it. The default is the float64 definition of the family.
    explicit wht_reference(const std::string &token, const std::string &candidates = "");

    /// "wht:f64:b7:n4096": `count` transforms of the token, packed. Batch axes, strides, promises,
    /// aliases and types of the token are gone, and so is what happens around a transform: chosen
    /// rows, groups, histograms.
    std::string token(int64_t count) const;
    /// Transforms that one call may take; 1 when signs or diag differ between transforms.
    bool batches() const { return batches_; }
    int64_t length() const { return parts_.length(); }

    /// x and y: `count` packed transforms of double (complex: pairs) or int64_t. `others`: SIGNS
    /// and FACTOR as bits, diagonals as doubles (pairs), one transform long, those in use. Returns
    /// the overflow flag.
    int32_t run(int64_t count, const void *x, const std::vector<plait_arg> &others, void *y);

private:
    token_parts parts_;
    std::string dtype_, options_, uses_;
    bool batches_, overflow_;
    pref_ptr pref_;
    context_ptr ctx_;
    std::map<int64_t, plan_ptr> plans_;
};

} // namespace plait::cases
