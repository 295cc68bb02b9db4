// The fields of a canonical token. The library checks tokens; this takes apart what it accepted.
#pragma once

#include <cstdint>
#include <functional>
#include <plait/plait.h>
#include <string>
#include <utility>
#include <vector>

namespace plait::cases {

struct token_axis {
    char
        letter; ///< b: batch, n: transformed (wht); b, c, t, k (conv1d); b, t, h, w: hv, k, v (kda)
    bool transformed;
    int64_t length;
    int factor_order; ///< m of length = m * 2^k; 1 without a factor
    int log2;         ///< k; 0 for a batch axis
    std::string text; ///< "n1536.h12p2"
};

struct token_role {
    std::string name;
    std::string strides; ///< ".s128.1" as written, or ""
    int alignment;       ///< the promise in bytes as written, or 0
    std::string alias;   ///< name of the role whose pointer it may share, or ""
    std::string dtype;   ///< as written, or ""
    std::string text;    ///< the whole field
};

struct token_parts {
    std::string family;
    std::string dtype;
    std::vector<token_axis> axes;     ///< in memory order
    std::vector<std::string> options; ///< "seq", "scale=0.5"
    std::vector<std::string> uses;    ///< optional tensors that are on
    std::vector<std::string> drops;   ///< gradients that are off
    std::vector<token_role> roles;    ///< those that differ from the defaults

    const token_role *find(const std::string &role) const;
    /// The value behind "name=", or "".
    std::string option(const std::string &name) const;
    bool flag(const std::string &name) const; ///< an option without a value
    bool used(const std::string &role) const; ///< is in `uses`
    /// "+signs-bias" of the roles that `keep` takes, by role number, as the canonical form has
    /// them.
    std::string uses_text(const std::function<bool(const std::string &)> &keep) const;

    // conv1d, kda
    int64_t extent(char letter) const;
    /// The two numbers of seqs=17.4096, slots=8.-1; zeros without the option.
    std::pair<int64_t, int64_t> two(const std::string &name) const;
    int64_t entries() const; ///< of a state of conv1d
    bool is_kda() const { return family.compare(0, 4, "kda.") == 0; }
    int64_t value_heads() const; ///< kda

    // wht
    int64_t transforms() const; ///< product of the batch axes
    int64_t length() const;     ///< product of the transformed axes
    /// Sum of k over the transformed axes, or the number of transformed bits.
    int stages() const;
    /// Sum of the orders of the factors; 0 without one.
    int factor_orders() const;
};

token_parts split_token(const std::string &canonical);

} // namespace plait::cases
