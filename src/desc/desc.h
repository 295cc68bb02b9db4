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
    plait_role alias;             ///< of an output: the input that may share its pointer; 0: none

    /// Product of the extents; checked.
    int64_t elements() const;
    /// Elements from the first to one past the last that is touched; 0 when empty; checked.
    int64_t span() const;
    /// Whole 32-bit words for PLAIT_B1.
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

/// When a role is in use.
enum class presence {
    required, ///< always
    optional, ///< when plait_desc_use says so
    named,    ///< as optional; the family's part of a token says it
    gradient, ///< while the role that it is the gradient of is, unless plait_desc_use drops it
    implied,  ///< when a setter of the family says so; plait_desc_use is refused
    usual,    ///< when a setter of the family says so, unless plait_desc_use says otherwise
};

/// What a family says about one of its roles.
struct role_facts {
    plait_role role;
    plait_access access; ///< none: only settings and use count, it is no argument of execute
    presence when;
    plait_role alias; ///< of an output: the input whose pointer it may share when asked; 0: none
    uint32_t dtypes;  ///< bit d: the type with number d is possible
    int alignment;    ///< default promise, bytes; 0: that of an element
};

/// The access of a role that execute does not take: Y in a backward descriptor gives DY its type.
constexpr plait_access no_access = plait_access{};

/// The role whose gradient PLAIT_D... is.
constexpr plait_role primal_of(plait_role gradient) { return plait_role(gradient - 256); }

class descriptor {
public:
    virtual ~descriptor() = default;
    virtual std::unique_ptr<descriptor> clone() const = 0;
    virtual const char *family() const = 0; ///< "wht"

    // Setters check one argument by itself (INVALID_ARGUMENT); check() finds contradictions.
    void use(plait_role role, bool on);
    void set_dtype(plait_role role, plait_dtype dtype);
    void set_strides(plait_role role, int rank, const int64_t *strides);
    void set_alignment(plait_role role, int64_t bytes);
    void set_alias(plait_role out, plait_role in);
    // Refused by families that have no packed sequences, no pools.
    virtual void set_varlen(int64_t sequences, int64_t max_length);
    virtual void set_slots(int64_t count, int32_t pad);

    /// Throws the first contradiction.
    virtual void check() const = 0;
    /// In the order of role numbers. Valid after check().
    virtual std::vector<tensor> tensors() const;
    /// The canonical token. Also of a descriptor that check() refuses.
    virtual std::string token() const = 0;

protected:
    /// In the order of role numbers.
    virtual const std::vector<role_facts> &role_table() const = 0;
    virtual std::vector<int64_t> extents_of(plait_role role) const = 0;
    /// Bit a: axis a is packed in the default strides; the stride of the others is 0.
    virtual uint32_t packed_axes_of(plait_role role) const = 0;
    virtual plait_dtype default_dtype(plait_role role) const = 0;
    /// Of presence::implied and usual: "" while in use, else the name of the setter that brings it.
    virtual const char *implied_by(plait_role role) const;

    /// What set_varlen and set_slots of all families refuse.
    static void check_varlen_argument(int64_t sequences, int64_t max_length);
    static void check_slots_argument(int64_t count);

    const role_settings &settings(plait_role role) const;
    bool in_use(const role_facts &facts) const;
    bool uses(plait_role role) const; ///< false for a role that the family does not have
    plait_dtype dtype_of_role(plait_role role) const;
    int default_alignment(const role_facts &facts) const;
    /// nullopt when they are beyond 64 bits.
    std::optional<std::vector<int64_t>> default_strides(plait_role role) const;
    tensor tensor_of(const role_facts &facts) const;

    /// The part of check() that is the same for all families: sizes within 64 bits, strides,
    /// alignments, aliases, settings of roles that are not in use.
    void check_roles() const;
    /// Appends ":+signs" and ":x.s8.1": the part of a token that is the same for all families.
    void append_roles(std::string &token) const;

    std::map<plait_role, role_settings> roles_;

private:
    bool in_use_by_default(const role_facts &facts) const;
    const role_facts *find_facts(plait_role role) const;
    const role_facts &role_argument(const char *function, const char *name, plait_role role) const;
};

/// Accepts canonical tokens only; the sentence of a refusal says what the canonical form is.
std::unique_ptr<descriptor> descriptor_from_token(std::string_view token);

} // namespace plait::impl
