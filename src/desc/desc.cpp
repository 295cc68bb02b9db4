#include "src/desc/desc.h"

#include "src/core/checked.h"
#include "src/core/status.h"

#include <algorithm>
#include <numeric>

namespace plait::impl {

namespace {

constexpr int max_alignment = 4096;
/// Bits are stored in 32-bit words.
constexpr int word_bits = 32;

/// Bytes that a pointer must be aligned to, whatever was promised: a scalar is read whole.
int natural_alignment(plait_dtype dtype) {
    const dtype_row &row = dtype_of(dtype);
    return row.what == kind::bit ? word_bits / 8 : dtype_of(row.real).bits / 8;
}

std::optional<int64_t> bytes_of(plait_dtype dtype, int64_t span) {
    if (dtype_of(dtype).what == kind::bit)
        return try_mul(span / word_bits + (span % word_bits != 0), word_bits / 8);
    return try_mul(span, dtype_of(dtype).bits / 8);
}

std::string names_of(uint32_t dtypes) {
    std::string out;
    for (int number = 0; number < 32; ++number)
        if (dtypes >> number & 1u)
            out += text(out.empty() ? "" : " ", dtype_of(static_cast<plait_dtype>(number)).name);
    return out;
}

bool is_empty(const tensor &t) {
    return std::find(t.extents.begin(), t.extents.end(), 0) != t.extents.end();
}

std::optional<int64_t> try_span(const tensor &t) {
    if (is_empty(t)) return 0;
    int64_t last = 0;
    for (size_t a = 0; a < t.extents.size(); ++a) {
        const auto reach = try_mul(t.extents[a] - 1, t.strides[a]);
        const auto sum = reach ? try_add(last, *reach) : std::nullopt;
        if (!sum) return std::nullopt;
        last = *sum;
    }
    return try_add(last, 1);
}

/// Sizes beyond 64 bits are refused for empty tensors too, over the axes that are not empty: a
/// batch of 0 must not hide a shape that fails for a batch of 1.
void check_sizes(tensor t) {
    const bool empty = std::count(t.extents.begin(), t.extents.end(), 0) > 0;
    const char *taken = empty ? " (with extents of 0 taken as 1)" : "";
    for (int64_t &e : t.extents) e = std::max<int64_t>(e, 1);
    const char *name = role_name(t.role);
    int64_t elements = 1;
    for (const int64_t e : t.extents) {
        const auto product = try_mul(elements, e);
        if (!product)
            fail(PLAIT_ERR_INVALID_DESC, "plait_desc_check: ", name, ": extents: ", elements, " * ",
                 e, " elements", taken, " are beyond 64 bits");
        elements = *product;
    }
    const auto span = try_span(t);
    if (!span)
        fail(PLAIT_ERR_INVALID_DESC, "plait_desc_check: ", name,
             ": strides: the last element lies beyond 64 bits");
    if (!bytes_of(t.dtype, *span))
        fail(PLAIT_ERR_INVALID_DESC, "plait_desc_check: ", name, ": ", *span, " elements of ",
             dtype_of(t.dtype).name, taken, " are more bytes than 64 bits count");
}

/// A written element must have one address only.
void check_written_strides(const tensor &t) {
    std::vector<size_t> axes;
    for (size_t a = 0; a < t.extents.size(); ++a)
        if (t.extents[a] > 1) axes.push_back(a);
    for (const size_t a : axes)
        if (t.strides[a] == 0)
            fail(PLAIT_ERR_INVALID_DESC, "plait_desc_check: ", role_name(t.role), ": strides[", a,
                 "]=0 is for tensors that are only read");
    std::stable_sort(axes.begin(), axes.end(),
                     [&](size_t a, size_t b) { return t.strides[a] < t.strides[b]; });
    int64_t span = 1; // cannot overflow: check_sizes came before
    for (const size_t a : axes) {
        if (t.strides[a] < span)
            fail(PLAIT_ERR_INVALID_DESC, "plait_desc_check: ", role_name(t.role), ": strides[", a,
                 "]=", t.strides[a], " does not nest: the axes inside it span ", span, " elements");
        span += (t.extents[a] - 1) * t.strides[a];
    }
}

void check_alias(const tensor &out, const tensor &in) {
    const std::string pair = text(role_name(out.role), '@', role_name(in.role));
    if (dtype_of(out.dtype).bits != dtype_of(in.dtype).bits)
        fail(PLAIT_ERR_INVALID_DESC, "plait_desc_check: alias=", pair,
             " needs equal element sizes: ", role_name(out.role), " is ", dtype_of(out.dtype).name,
             ", ", role_name(in.role), " is ", dtype_of(in.dtype).name);
    if (out.extents != in.extents)
        fail(PLAIT_ERR_INVALID_DESC, "plait_desc_check: alias=", pair, " needs equal extents");
    for (size_t a = 0; a < out.extents.size(); ++a)
        if (out.extents[a] > 1 && out.strides[a] != in.strides[a])
            fail(PLAIT_ERR_INVALID_DESC, "plait_desc_check: alias=", pair,
                 " needs equal strides: strides[", a, "] is ", out.strides[a], " and ",
                 in.strides[a]);
}

} // namespace

int64_t tensor::elements() const {
    int64_t out = is_empty(*this) ? 0 : 1;
    for (const int64_t e : extents) out = checked_mul(out, e, role_name(role));
    return out;
}

int64_t tensor::span() const {
    if (const auto out = try_span(*this)) return *out;
    fail(PLAIT_ERR_INVALID_DESC, role_name(role), ": the last element lies beyond 64 bits");
}

int64_t tensor::span_bytes() const {
    if (const auto out = bytes_of(dtype, span())) return *out;
    fail(PLAIT_ERR_INVALID_DESC, role_name(role), ": more bytes than 64 bits count");
}

bool tensor::dense() const { return span() == elements(); }

void descriptor::set_varlen(int64_t, int64_t) {
    fail(PLAIT_ERR_INVALID_ARGUMENT, "plait_desc_set_varlen: ", family(),
         " has no packed sequences");
}

void descriptor::set_slots(int64_t, int32_t) {
    fail(PLAIT_ERR_INVALID_ARGUMENT, "plait_desc_set_slots: ", family(), " has no pool of states");
}

void descriptor::check_varlen_argument(int64_t sequences, int64_t max_length) {
    if (sequences < 0)
        fail(PLAIT_ERR_INVALID_ARGUMENT, "plait_desc_set_varlen: sequences=", sequences,
             " is negative");
    if (max_length < 0)
        fail(PLAIT_ERR_INVALID_ARGUMENT, "plait_desc_set_varlen: max_length=", max_length,
             " is negative");
}

void descriptor::check_slots_argument(int64_t count) {
    if (count < 0 || count > INT32_MAX)
        fail(PLAIT_ERR_INVALID_ARGUMENT, "plait_desc_set_slots: count=", count,
             " is not between 0 and ", INT32_MAX, ", what a slot number can name");
}

const char *descriptor::implied_by(plait_role role) const {
    fail(PLAIT_ERR_INTERNAL, role_name(role), " of ", family(), " is implied by nothing");
}

const role_facts *descriptor::find_facts(plait_role role) const {
    for (const role_facts &facts : role_table())
        if (facts.role == role) return &facts;
    return nullptr;
}

const role_facts &descriptor::role_argument(const char *function, const char *name,
                                            plait_role role) const {
    if (const role_facts *facts = find_facts(role)) return *facts;
    const char *known = role_name(role);
    const std::string value = known ? known : text(role);
    fail(PLAIT_ERR_INVALID_ARGUMENT, function, ": ", name, '=', value, " is no role of ", family());
}

void descriptor::use(plait_role role, bool on) {
    const role_facts &facts = role_argument("plait_desc_use", "role", role);
    if (facts.when == presence::required && !on)
        fail(PLAIT_ERR_INVALID_ARGUMENT, "plait_desc_use: role=", role_name(role),
             " is required and cannot be turned off");
    if (facts.when == presence::implied && on && !in_use(facts))
        fail(PLAIT_ERR_INVALID_ARGUMENT, "plait_desc_use: role=", role_name(role),
             " is turned on by another setter alone: ", implied_by(role));
    if (facts.when == presence::implied && !on && in_use(facts))
        fail(PLAIT_ERR_INVALID_ARGUMENT, "plait_desc_use: role=", role_name(role),
             " follows from another setter and cannot be turned off");
    roles_[role].use = on;
}

void descriptor::set_dtype(plait_role role, plait_dtype dtype) {
    const role_facts &facts = role_argument("plait_desc_set_dtype", "role", role);
    const dtype_row *row = find_dtype(dtype);
    if (!row)
        fail(PLAIT_ERR_INVALID_ARGUMENT, "plait_desc_set_dtype: dtype=", dtype,
             " is no plait_dtype");
    if (!(facts.dtypes >> dtype & 1u))
        fail(PLAIT_ERR_INVALID_ARGUMENT, "plait_desc_set_dtype: dtype=", row->name,
             " is no type of ", role_name(role), "; possible: ", names_of(facts.dtypes));
    roles_[role].dtype = dtype;
}

void descriptor::set_strides(plait_role role, int rank, const int64_t *strides) {
    role_argument("plait_desc_set_strides", "role", role);
    const size_t expected = extents_of(role).size();
    if (rank < 0 || static_cast<size_t>(rank) != expected)
        fail(PLAIT_ERR_INVALID_ARGUMENT, "plait_desc_set_strides: rank=", rank, " is not the rank ",
             expected, " of ", role_name(role));
    if (!strides)
        fail(PLAIT_ERR_INVALID_ARGUMENT, "plait_desc_set_strides: strides=NULL needs ", rank,
             " values");
    for (int a = 0; a < rank; ++a)
        if (strides[a] < 0)
            fail(PLAIT_ERR_INVALID_ARGUMENT, "plait_desc_set_strides: strides[", a,
                 "]=", strides[a], " of ", role_name(role), " is negative");
    roles_[role].strides.emplace(strides, strides + rank);
}

void descriptor::set_alignment(plait_role role, int64_t bytes) {
    role_argument("plait_desc_set_alignment", "role", role);
    if (bytes < 1 || bytes > max_alignment || (bytes & (bytes - 1)) != 0)
        fail(PLAIT_ERR_INVALID_ARGUMENT, "plait_desc_set_alignment: bytes=", bytes, " of ",
             role_name(role), " is no power of two from 1 to ", max_alignment);
    roles_[role].alignment = static_cast<int>(bytes);
}

void descriptor::set_alias(plait_role out, plait_role in) {
    const role_facts &written = role_argument("plait_desc_set_alias", "out", out);
    role_argument("plait_desc_set_alias", "in", in);
    if (written.alias == plait_role{} || written.alias != in) {
        std::string pairs;
        for (const role_facts &facts : role_table())
            if (facts.alias != plait_role{})
                pairs += text(' ', role_name(facts.role), '@', role_name(facts.alias));
        fail(PLAIT_ERR_INVALID_ARGUMENT, "plait_desc_set_alias: out=", role_name(out),
             " in=", role_name(in),
             " is no pair of an output and an input that may share a pointer; these "
             "may:",
             pairs);
    }
    roles_[out].alias = in;
}

const role_settings &descriptor::settings(plait_role role) const {
    static const role_settings nothing;
    const auto at = roles_.find(role);
    return at == roles_.end() ? nothing : at->second;
}

bool descriptor::in_use_by_default(const role_facts &facts) const {
    switch (facts.when) {
    case presence::required: return true;
    case presence::optional:
    case presence::named: return false;
    case presence::gradient: return uses(primal_of(facts.role));
    case presence::implied:
    case presence::usual: return *implied_by(facts.role) == 0;
    }
    return false;
}

bool descriptor::in_use(const role_facts &facts) const {
    const bool fixed = facts.when == presence::required || facts.when == presence::implied;
    const std::optional<bool> &said = settings(facts.role).use;
    return said && !fixed ? *said : in_use_by_default(facts);
}

bool descriptor::uses(plait_role role) const {
    const role_facts *facts = find_facts(role);
    return facts && in_use(*facts);
}

plait_dtype descriptor::dtype_of_role(plait_role role) const {
    return settings(role).dtype.value_or(default_dtype(role));
}

int descriptor::default_alignment(const role_facts &facts) const {
    return facts.alignment != 0 ? facts.alignment : natural_alignment(dtype_of_role(facts.role));
}

std::optional<std::vector<int64_t>> descriptor::default_strides(plait_role role) const {
    const std::vector<int64_t> extents = extents_of(role);
    const uint32_t packed = packed_axes_of(role);
    std::vector<int64_t> strides(extents.size(), 0);
    int64_t next = 1;
    for (size_t a = extents.size(); a-- > 0;) {
        if (!(packed >> a & 1u)) continue;
        strides[a] = next;
        // An empty axis counts as 1, so that strides do not depend on what else is empty.
        const auto product = try_mul(next, std::max<int64_t>(extents[a], 1));
        if (!product) return std::nullopt;
        next = *product;
    }
    return strides;
}

tensor descriptor::tensor_of(const role_facts &facts) const {
    const role_settings &set = settings(facts.role);
    tensor t;
    t.role = facts.role;
    t.access = facts.access;
    t.dtype = dtype_of_role(facts.role);
    t.extents = extents_of(facts.role);
    if (set.strides) {
        t.strides = *set.strides;
    } else if (auto packed = default_strides(facts.role)) {
        t.strides = std::move(*packed);
    } else {
        fail(PLAIT_ERR_INVALID_DESC, "plait_desc_check: ", role_name(facts.role),
             ": extents: the number of elements is beyond 64 bits");
    }
    t.alignment = set.alignment.value_or(default_alignment(facts));
    t.alias = set.alias.value_or(plait_role{});
    return t;
}

std::vector<tensor> descriptor::tensors() const {
    std::vector<tensor> out;
    for (const role_facts &facts : role_table())
        if (facts.access != no_access && in_use(facts)) out.push_back(tensor_of(facts));
    return out;
}

void descriptor::check_roles() const {
    for (const role_facts &facts : role_table()) {
        if (in_use(facts)) {
            if (facts.when == presence::gradient && !uses(primal_of(facts.role)))
                fail(PLAIT_ERR_INVALID_DESC, "plait_desc_check: role=", role_name(facts.role),
                     " is in use, but ", role_name(primal_of(facts.role)),
                     ", whose gradient it is, is not (plait_desc_use)");
            continue;
        }
        const role_settings &set = settings(facts.role);
        const char *what = nullptr;
        if (set.dtype && *set.dtype != default_dtype(facts.role)) what = "a type";
        if (set.strides && set.strides != default_strides(facts.role)) what = "strides";
        if (set.alignment && *set.alignment != default_alignment(facts)) what = "an alignment";
        if (set.alias) what = "an alias";
        if (what)
            fail(PLAIT_ERR_INVALID_DESC, "plait_desc_check: role=", role_name(facts.role), " has ",
                 what, " but is not in use (plait_desc_use)");
    }
    const std::vector<tensor> all = tensors();
    for (const tensor &t : all) {
        check_sizes(t);
        if (t.access & PLAIT_WRITE) check_written_strides(t);
        if (t.alignment < natural_alignment(t.dtype))
            fail(PLAIT_ERR_INVALID_DESC, "plait_desc_check: ", role_name(t.role),
                 ": alignment=", t.alignment, " is less than ", dtype_of(t.dtype).name,
                 " needs: ", natural_alignment(t.dtype));
        if (t.alias == plait_role{}) continue;
        if (!uses(t.alias))
            fail(PLAIT_ERR_INVALID_DESC, "plait_desc_check: alias=", role_name(t.role), '@',
                 role_name(t.alias), " names ", role_name(t.alias),
                 ", which is not in use (plait_desc_use)");
        for (const tensor &in : all)
            if (in.role == t.alias) check_alias(t, in);
    }
}

void descriptor::append_roles(std::string &token) const {
    std::string uses;
    for (const role_facts &facts : role_table())
        if (facts.when != presence::named && in_use(facts) != in_use_by_default(facts))
            uses += text(in_use(facts) ? '+' : '-', role_name(facts.role));
    if (!uses.empty()) token += text(':', uses);

    for (const role_facts &facts : role_table()) {
        const role_settings &set = settings(facts.role);
        const char *name = role_name(facts.role);
        std::string field;
        if (set.dtype && *set.dtype != default_dtype(facts.role))
            field += text('.', dtype_of(*set.dtype).name);
        if (set.strides && set.strides != default_strides(facts.role))
            for (size_t a = 0; a < set.strides->size(); ++a)
                field += text(a == 0 ? ".s" : ".", (*set.strides)[a]);
        if (set.alignment && *set.alignment != default_alignment(facts))
            field += text(".a", *set.alignment);
        if (set.alias) field += text('@', role_name(*set.alias));
        if (!field.empty()) token += text(':', name, field);
    }
}

} // namespace plait::impl
