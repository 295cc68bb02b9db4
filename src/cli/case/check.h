// Parts of a problem picked, recomputed in float64 and compared. A part is what can be computed
// alone: a transform (wht), a channel of all rows (conv1d), a head of q and k with its value heads
// (kda).
#pragma once

#include "src/cli/case/compare.h"
#include "src/cli/case/tensor.h"

#include <functional>
#include <memory>

namespace plait::cases {

/// Packs the elements of a part of one tensor (B1: a byte each), in the tensor's own type. Where
/// they come from (host image, device) is the caller's business.
using fetch = std::function<void(const slice &part, void *packed)>;

/// What a candidate rounds on the way, beside its sums.
enum class rounding {
    sums,   ///< nothing
    stored, ///< to the narrowest type of the call
    tf32,   ///< operands of both of two products to TF32
};

struct check_result {
    deviation values;
    std::string wrong; ///< "" or which flag is not what it should be
};

class checker {
public:
    virtual ~checker() = default;
    virtual int64_t parts() const = 0;
    virtual int64_t elements() const = 0; ///< of the input, of one part
    /// `inputs` gives every tensor as it was before the call, `outputs` as it is behind it.
    virtual check_result check(const std::vector<int64_t> &which, rounding how, const fetch &inputs,
                               const fetch &outputs) = 0;
};

/// `quick`: what the definition in float64 would need too long for may be judged by a fast float64
/// kernel, which is proved against the definition.
std::unique_ptr<checker> make_checker(const std::string &token, const std::vector<tensor> &tensors,
                                      bool quick = false);

/// All parts, or `limit` of them spread evenly with the first and the last.
std::vector<int64_t> pick_parts(int64_t parts, int64_t limit);

} // namespace plait::cases
