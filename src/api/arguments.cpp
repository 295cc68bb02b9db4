#include "src/api/arguments.h"

#include "src/core/status.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

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
        r.run = dtype_of(t.dtype).bits / 8;
        for (size_t a = 0; a < t.extents.size(); ++a)
            if (t.extents[a] > 1 && t.strides[a] != 0) // an axis of stride 0 repeats its elements
                r.axes.push_back({t.extents[a], t.strides[a] * r.run});
        std::sort(r.axes.begin(), r.axes.end(),
                  [](const axis &a, const axis &b) { return a.stride > b.stride; });
        while (!r.axes.empty() && r.axes.back().stride == r.run) {
            r.run *= r.axes.back().extent;
            r.axes.pop_back();
        }
        if (dtype_of(t.dtype).what == kind::bit) { // read in whole words, whatever the strides
            r.run = static_cast<int64_t>(r.bytes);
            r.axes.clear();
        }
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
             hex(a.written ? pa : pb), " and ", hex(a.written ? pb : pa),
             " are closer than the tensors are long");
}

namespace {

/// The search for a run of one tensor that meets a run of another. What it decides exactly is what
/// callers do: packed tensors, rows of one pitch, column ranges of one matrix.
class meeting {
public:
    struct axis {
        int64_t extent, stride; ///< stride with the sign that it has in the distance
    };

    /// Runs at a distance d, b behind a, share a byte iff -b_run < d < a_run.
    meeting(int64_t a_run, int64_t b_run) : above_(a_run), below_(-b_run) {}

    void add(const axis &next) { axes_[count_++] = next; }

    /// True too when it cannot tell within its budget: only tensors that interleave with different
    /// pitches, whose common divisor leaves no room between the runs, are that hard.
    bool at(int64_t distance) {
        if (parted(distance)) return false;
        std::sort(axes_, axes_ + count_, [](const axis &x, const axis &y) {
            return std::abs(x.stride) > std::abs(y.stride);
        });
        for (int k = count_; k-- > 0;) {
            const int64_t reach = (axes_[k].extent - 1) * axes_[k].stride;
            low_[k] = low_[k + 1] + std::min<int64_t>(reach, 0);
            high_[k] = high_[k + 1] + std::max<int64_t>(reach, 0);
        }
        return search(distance, 0);
    }

private:
    /// All distances of runs differ by multiples of the strides' common divisor. True if none of
    /// those that have the remainder of this one lies between the bounds.
    bool parted(int64_t distance) const {
        int64_t common = 0;
        for (int k = 0; k < count_; ++k) common = std::gcd(common, axes_[k].stride);
        if (common == 0) return false;
        const int64_t least = below_ + 1, rest = (distance - least) % common;
        return least + (rest < 0 ? rest + common : rest) >= above_;
    }

    bool search(int64_t d, int k) {
        if (--budget_ < 0) return true;
        if (d + low_[k] >= above_ || d + high_[k] <= below_) return false;
        if (k == count_) return true;
        // Steps after which the other axes can still bring the distance between the bounds.
        const axis &x = axes_[k];
        const int64_t stride = std::abs(x.stride);
        const int64_t rest_low =
            x.stride > 0 ? below_ - high_[k + 1] - d : d + low_[k + 1] - above_;
        const int64_t rest_high =
            x.stride > 0 ? above_ - low_[k + 1] - d : d + high_[k + 1] - below_;
        int64_t from = std::max<int64_t>(0, rest_low / stride);
        const int64_t to = std::min(x.extent - 1, rest_high / stride);
        for (; from <= to; ++from)
            if (search(d + from * x.stride, k + 1)) return true;
        return false;
    }

    axis axes_[2 * PLAIT_MAX_RANK];
    int64_t low_[2 * PLAIT_MAX_RANK + 1] = {}, high_[2 * PLAIT_MAX_RANK + 1] = {};
    int count_ = 0;
    int64_t above_, below_;
    int budget_ = 1 << 16;
};

} // namespace

/// True if the tensors share a byte.
bool argument_rules::meet(const rule &a, uintptr_t pa, const rule &b, uintptr_t pb) {
    if (!ranges_meet(pa, a.bytes, pb, b.bytes)) return false;
    meeting search(a.run, b.run);
    for (const axis &x : a.axes) search.add({x.extent, -x.stride});
    for (const axis &x : b.axes) search.add({x.extent, x.stride});
    return search.at(static_cast<int64_t>(pb - pa));
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
    rule work{};
    work.bytes = needed_;
    work.run = static_cast<int64_t>(needed_);
    for (const rule &r : rules_) {
        const void *ptr = pointers[r.role];
        if (r.bytes > 0 && meet(r, address(ptr), work, address(workspace)))
            fail(PLAIT_ERR_WORKSPACE, "workspace=", hex(workspace), " overlaps ", role_name(r.role),
                 '=', hex(ptr));
    }
}

} // namespace plait::impl
