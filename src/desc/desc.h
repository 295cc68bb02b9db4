// A descriptor: what the caller said. Families derive from it; api, planner and CLI see only this.
#pragma once

#include "src/core/tables.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <plait/plait.h>
#include <string>
#include <string_view>
#include <vector>

namespace plait::impl {

/// One tensor as execute expects it.
struct tensor {
    plait_role role;
    plait_access access;
    plait_dtype dtype;
    std::vector<int64_t> extents;
    std::vector<int64_t> strides; ///< elements (bits for PLAIT_B1), one per extent
    int alignment;                ///< promised for the base, bytes
    plait_role alias;             ///< may be the same pointer as this role; 0: none

    /// Product of the extents; checked.
    int64_t elements() const;
    /// Elements from the first to one past the last that is touched; 0 when empty; checked.
    int64_t span() const;
    int64_t span_bytes() const;
    bool dense() const; ///< span() == elements()
};

/// What setters said about one role; defaults are absent.
struct role_settings {
    std::optional<plait_dtype> dtype;
    std::optional<std::vector<int64_t>> strides;
    std::optional<int> alignment;
    std::optional<plait_role> alias;
    std::optional<bool> use;
};

class descriptor {
public:
    virtual ~descriptor() = default;
    virtual std::unique_ptr<descriptor> clone() const = 0;
    virtual const char *family() const = 0; ///< "wht"

    // Setters check one argument by itself (INVALID_ARGUMENT); check() finds contradictions.
    void use(plait_role role, bool on);
    void set_dtype(plait_role role, plait_dtype dtype);
    void set_strides(plait_role role, int rank, const int64_t *strides);
    void set_alignment(plait_role role, int bytes);
    void set_alias(plait_role out, plait_role in);

    /// Throws the first contradiction.
    virtual void check() const = 0;
    /// In the order of role numbers. Valid after check().
    virtual std::vector<tensor> tensors() const = 0;
    /// The canonical token.
    virtual std::string token() const = 0;

protected:
    virtual bool has_role(plait_role role) const = 0;
    virtual bool is_optional(plait_role role) const = 0;
    std::map<plait_role, role_settings> roles_;
    friend class token_writer;
};

/// Accepts canonical tokens only; the sentence of a refusal says what the canonical form is.
std::unique_ptr<descriptor> descriptor_from_token(std::string_view token);

} // namespace plait::impl
