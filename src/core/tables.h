// Names and facts of the public enumerations, each in one table.
#pragma once

#include <optional>
#include <plait/plait.h>
#include <string>
#include <string_view>

namespace plait::impl {

enum class kind { floating, complex, integer, bit };

struct dtype_row {
    plait_dtype dtype;
    const char *name; ///< as in tokens
    int bits;
    kind what;
    plait_dtype real; ///< type of one part of a complex element, else itself
};

/// nullptr for a value that is no plait_dtype.
const dtype_row *find_dtype(plait_dtype dtype);
std::optional<plait_dtype> dtype_from_name(std::string_view name);
std::string dtype_names(); ///< of all, with spaces between
/// For values that were checked before.
const dtype_row &dtype_of(plait_dtype dtype);

/// "x", "signs"; nullptr for a value that is no plait_role.
const char *role_name(plait_role role);
std::optional<plait_role> role_from_name(std::string_view name);

struct factor_row {
    plait_wht_factor factor;
    const char *name; ///< "h12p2"; empty for H1
    int order;
};
const factor_row *find_factor(plait_wht_factor factor);
std::optional<plait_wht_factor> factor_from_name(std::string_view name);
std::string factor_names(); ///< "h12p2 h12s ..."

const char *backend_name(plait_backend backend); ///< "cpu", "cuda"; nullptr if unknown
const char *rigor_name(plait_rigor rigor);       ///< "estimate"; nullptr if unknown

} // namespace plait::impl
