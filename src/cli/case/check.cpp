#include "src/cli/case/check.h"

#include "src/cli/case/conv1d_check.h"
#include "src/cli/case/kda_check.h"
#include "src/cli/case/wht_check.h"

#include <algorithm>

namespace plait::cases {

std::unique_ptr<checker> make_checker(const std::string &token, const std::vector<tensor> &tensors,
                                      bool quick) {
    const token_parts parts = split_token(token);
    if (parts.is_kda()) return std::make_unique<kda_checker>(token, tensors);
    if (parts.family == "wht") return std::make_unique<wht_checker>(token, tensors, quick);
    return std::make_unique<conv1d_checker>(token, tensors);
}

std::vector<int64_t> pick_parts(int64_t parts, int64_t limit) {
    limit = std::min(parts, std::max<int64_t>(limit, 1));
    std::vector<int64_t> which;
    which.reserve(static_cast<size_t>(limit));
    for (int64_t i = 0; i < limit; ++i)
        which.push_back(limit == 1 ? 0
                                   : static_cast<int64_t>(static_cast<long double>(i) *
                                                          static_cast<long double>(parts - 1) /
                                                          static_cast<long double>(limit - 1)));
    return which;
}

} // namespace plait::cases
