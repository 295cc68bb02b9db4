#include "src/api/arguments.h"

#include "src/core/status.h"

#include <algorithm>

namespace plait::impl {

namespace {

uintptr_t address(const void *ptr) { return reinterpret_cast<uintptr_t>(ptr); }

std::string hex(const void *ptr) {
    char digits[20] = "0x";
    const auto end = std::to_chars(digits + 2, digits + sizeof digits, address(ptr), 16).ptr;
    return std::string(digits, end);
}

/// Does one range begin inside the other? Written so that no end is computed, which could wrap.
bool ranges_meet(uintptr_t a, uintptr_t a_bytes, uintptr_t b, uintptr_t b_bytes) {
    return a <= b ? b - a < a_bytes : a - b < b_bytes;
}

} // namespace

argument_rules::argument_rules(const std::vector<tensor> &tensors, int64_t needed, bool no_steps)
    : needed_(static_cast<uintptr_t>(needed)), no_steps_(no_steps) {
    for (const tensor &t : tensors) {
        rule r{};
        r.role = t.role;
        r.alias = t.alias;
        r.written = (t.access & PLAIT_WRITE) != 0;
        r.alignment = static_cast<uintptr_t>(t.alignment);
        r.bytes = static_cast<uintptr_t>(t.span_bytes());
        const dtype_row &type = dtype_of(t.dtype);
        r.element_bytes = type.what == kind::bit ? 4 : type.bits / 8;
        // Elements that differ: axes with stride 0 repeat them.
        int64_t distinct = 1;
        for (size_t a = 0; a < t.extents.size(); ++a) {
            if (t.strides[a] != 0) distinct *= t.extents[a];
            if (t.extents[a] > 1 && type.what != kind::bit)
                r.axes.push_back({t.extents[a], t.strides[a] * r.element_bytes});
        }
        r.packed = distinct == t.span();
        std::sort(r.axes.begin(), r.axes.end(),
                  [](const axis &a, const axis &b) { return a.stride > b.stride; });
        rules_.push_back(std::move(r));
    }
}

const argument_rules::rule *argument_rules::find(int64_t role) const {
    for (const rule &r : rules_)
        if (r.role == role) return &r;
    return nullptr;
}

void argument_rules::bind(const plait_arg *args, int nargs, void *workspace, size_t workspace_bytes,
                          prepared::bindings &out) const {
    bind_roles(args, nargs, out);
    if (no_steps_) return;
    for (size_t i = 0; i < rules_.size(); ++i)
        for (size_t k = i + 1; k < rules_.size(); ++k)
            check_pair(rules_[i], out[rules_[i].role], rules_[k], out[rules_[k].role]);
    check_workspace(workspace, workspace_bytes, out);
    out.work = needed_ ? workspace : nullptr;
}

void argument_rules::bind_roles(const plait_arg *args, int nargs, prepared::bindings &out) const {
    if (nargs < 0) fail(PLAIT_ERR_INVALID_ARGUMENT, "nargs=", nargs, " is negative");
    if (nargs > 0 && !args)
        fail(PLAIT_ERR_INVALID_ARGUMENT, "args=NULL: nargs=", nargs, " arguments are required");
    uint64_t given = 0; // bit i: rules_[i]
    for (int i = 0; i < nargs; ++i) {
        const int64_t role = args[i].role;
        const rule *r = find(role);
        if (!r) {
            const bool small = role > 0 && role <= INT32_MAX;
            const char *name = small ? role_name(plait_role(role)) : nullptr;
            if (name)
                fail(PLAIT_ERR_POINTER, "args[", i, "].role=", name,
                     " is not in use by this plan (plait_desc_use)");
            fail(PLAIT_ERR_POINTER, "args[", i, "].role=", role, " is no plait_role");
        }
        const uint64_t bit = uint64_t{1} << (r - rules_.data());
        if (given & bit)
            fail(PLAIT_ERR_POINTER, "args[", i, "].role=", role_name(r->role), " is given twice");
        given |= bit;
        void *ptr = args[i].ptr;
        if (!ptr && !no_steps_ && r->bytes > 0)
            fail(PLAIT_ERR_POINTER, role_name(r->role), "=NULL: the plan has work to do");
        if (address(ptr) % r->alignment != 0)
            fail(PLAIT_ERR_POINTER, role_name(r->role), '=', hex(ptr), " is not aligned to the ",
                 r->alignment, " bytes that were promised (plait_desc_set_alignment)");
        out[r->role] = ptr;
    }
    if (no_steps_) return;
    for (size_t i = 0; i < rules_.size(); ++i)
        if (!(given >> i & 1u))
            fail(PLAIT_ERR_POINTER, "role ", role_name(rules_[i].role), " is missing in args");
}

void argument_rules::check_pair(const rule &a, const void *pa, const rule &b,
                                const void *pb) const {
    if (!a.written && !b.written) return;
    if (a.bytes == 0 || b.bytes == 0) return; // such pointers are never followed
    const rule &out = a.written ? a : b;
    const rule &other = a.written ? b : a;
    if (pa == pb) {
        if (a.alias == b.role || b.alias == a.role) return;
        fail(PLAIT_ERR_POINTER, role_name(out.role), " and ", role_name(other.role),
             " are the same pointer ", hex(pa),
             ", which the descriptor does not permit (plait_desc_set_alias)");
    }
    if (meet(a, address(pa), b, address(pb)))
        fail(PLAIT_ERR_POINTER, role_name(out.role), " overlaps ", role_name(other.role), ": ",
             hex(pa), " and ", hex(pb), " are closer than the tensors are long");
}

/// True if the tensors share a byte. Two packed tensors are ranges. Two tensors of one layout can
/// be told exactly; this is how column ranges of one matrix stay legal. Others pass.
bool argument_rules::meet(const rule &a, uintptr_t pa, const rule &b, uintptr_t pb) {
    if (!ranges_meet(pa, a.bytes, pb, b.bytes)) return false;
    if (a.packed && b.packed) return true;
    if (a.element_bytes != b.element_bytes || !(a.axes == b.axes)) return false;
    return meet_shifted(a, pa < pb ? static_cast<int64_t>(pb - pa) : static_cast<int64_t>(pa - pb),
                        0);
}

/// Is there a difference of two indices whose distance is within one element of `shift`? Strides
/// nest, so that only the two multiples next to shift / stride can leave a rest for the inner axes.
bool argument_rules::meet_shifted(const rule &r, int64_t shift, size_t from) {
    if (from == r.axes.size()) return shift > -r.element_bytes && shift < r.element_bytes;
    const axis &x = r.axes[from];
    const int64_t low = shift / x.stride - (shift % x.stride < 0 ? 1 : 0);
    for (const int64_t steps : {low, low + 1})
        if (steps > -x.extent && steps < x.extent &&
            meet_shifted(r, shift - steps * x.stride, from + 1))
            return true;
    return false;
}

void argument_rules::check_workspace(const void *workspace, size_t bytes,
                                     const prepared::bindings &pointers) const {
    if (needed_ == 0) return;
    if (!workspace) fail(PLAIT_ERR_WORKSPACE, "workspace=NULL: the plan needs ", needed_, " bytes");
    if (bytes < needed_)
        fail(PLAIT_ERR_WORKSPACE, "workspace_bytes=", bytes, " is less than the ", needed_,
             " bytes that the plan needs");
    if (address(workspace) % PLAIT_WORKSPACE_ALIGNMENT != 0)
        fail(PLAIT_ERR_WORKSPACE, "workspace=", hex(workspace), " is not aligned to ",
             PLAIT_WORKSPACE_ALIGNMENT, " bytes");
    for (const rule &r : rules_) {
        const void *ptr = pointers[r.role];
        // A tensor with gaps may lie around the workspace, but cannot begin in it.
        const uintptr_t bytes_here = r.packed ? r.bytes : 1;
        if (ranges_meet(address(ptr), bytes_here, address(workspace), needed_))
            fail(PLAIT_ERR_WORKSPACE, "workspace=", hex(workspace), " overlaps ", role_name(r.role),
                 '=', hex(ptr));
    }
}

} // namespace plait::impl
