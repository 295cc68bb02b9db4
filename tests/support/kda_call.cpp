#include "tests/support/kda_call.h"

#include <algorithm>
#include <cmath>

namespace plait::test {
namespace {

bool is_gradient(plait_role role) { return role >= 256; }
plait_role primal(plait_role role) {
    return is_gradient(role) ? static_cast<plait_role>(role - 256) : role;
}
bool is_state(plait_role role) {
    return primal(role) == PLAIT_STATE_IN || primal(role) == PLAIT_STATE_OUT;
}

bool holds(const std::vector<plait_role> &list, plait_role role) {
    return std::find(list.begin(), list.end(), role) != list.end();
}

/// Which axes of shape() a tensor has, in the order of its own axes.
std::vector<size_t> axes_of(const kda_call &c, plait_role role) {
    switch (primal(role)) {
    case PLAIT_BETA: return {0, 1, 2};
    case PLAIT_A_LOG: return {2};
    case PLAIT_DT_BIAS: return {2, 3};
    case PLAIT_SLOTS:
    case PLAIT_CU_SEQLENS:
    case PLAIT_STATUS: return {0};
    default: break;
    }
    if (is_state(role) && c.orientation == PLAIT_STATE_VK) return {0, 1, 3, 2};
    return {0, 1, 2, 3};
}

} // namespace

bool kda_call::uses(plait_role role) const {
    switch (role) {
    case PLAIT_Q:
    case PLAIT_K:
    case PLAIT_V:
    case PLAIT_G:
    case PLAIT_BETA:
    case PLAIT_O: return true;
    case PLAIT_A_LOG: return gate != PLAIT_GATE_LOG && !drops(role);
    default: return holds(used, role);
    }
}

bool kda_call::drops(plait_role role) const { return holds(dropped, role); }

bool kda_call::reads(plait_role role) const {
    if (role == PLAIT_DO) return backward();
    if (role == PLAIT_DSTATE_OUT) return backward() && uses(PLAIT_STATE_OUT) && !drops(role);
    if (is_gradient(role) || role == PLAIT_O || role == PLAIT_STATE_OUT) return false;
    return role != PLAIT_STATUS && uses(role);
}

bool kda_call::writes(plait_role role) const {
    if (role == PLAIT_O || role == PLAIT_STATE_OUT) return !backward() && uses(role);
    if (!is_gradient(role) || role == PLAIT_DO || role == PLAIT_DSTATE_OUT) return false;
    return backward() && uses(primal(role)) && !drops(role);
}

std::vector<plait_role> kda_call::floating() const {
    std::vector<plait_role> all;
    for (const plait_role role :
         {PLAIT_Q,  PLAIT_K,      PLAIT_V,        PLAIT_G,         PLAIT_BETA,
          PLAIT_O,  PLAIT_A_LOG,  PLAIT_DT_BIAS,  PLAIT_STATE_IN,  PLAIT_STATE_OUT,
          PLAIT_DQ, PLAIT_DK,     PLAIT_DV,       PLAIT_DG,        PLAIT_DBETA,
          PLAIT_DO, PLAIT_DA_LOG, PLAIT_DDT_BIAS, PLAIT_DSTATE_IN, PLAIT_DSTATE_OUT})
        if (reads(role) || writes(role)) all.push_back(role);
    return all;
}

plait_dtype kda_call::type(plait_role role) const {
    const auto set = types.find(role);
    if (set != types.end()) return set->second;
    if (is_gradient(role)) return type(primal(role));
    switch (role) {
    case PLAIT_CU_SEQLENS: return PLAIT_I64;
    case PLAIT_SLOTS:
    case PLAIT_STATUS: return PLAIT_I32;
    case PLAIT_Q: return q;
    case PLAIT_A_LOG:
    case PLAIT_DT_BIAS:
    case PLAIT_STATE_IN:
    case PLAIT_STATE_OUT: return type(PLAIT_Q) == PLAIT_F64 ? PLAIT_F64 : PLAIT_F32;
    default: return type(PLAIT_Q);
    }
}

std::array<int64_t, 4> kda_call::shape(plait_role role) const {
    switch (primal(role)) {
    case PLAIT_Q:
    case PLAIT_K: return {batch, length, heads, dim_k};
    case PLAIT_G: return {batch, length, value_heads, dim_k};
    case PLAIT_BETA: return {batch, length, value_heads, 1};
    case PLAIT_A_LOG: return {1, 1, value_heads, 1};
    case PLAIT_DT_BIAS: return {1, 1, value_heads, dim_k};
    case PLAIT_STATE_IN:
    case PLAIT_STATE_OUT: return {slots ? slots->first : sequences(), value_heads, dim_k, dim_v};
    case PLAIT_SLOTS: return {sequences(), 1, 1, 1};
    case PLAIT_CU_SEQLENS: return {sequences() + 1, 1, 1, 1};
    case PLAIT_STATUS: return {1, 1, 1, 1};
    default: return {batch, length, value_heads, dim_v};
    }
}

std::vector<int64_t> kda_call::packed(plait_role role, int64_t pitch) const {
    const std::vector<size_t> axes = axes_of(*this, role);
    const std::array<int64_t, 4> n = shape(role);
    std::vector<int64_t> out(axes.size());
    int64_t step = 1;
    for (size_t i = axes.size(); i-- > 0;) {
        out[i] = step;
        step *= std::max<int64_t>(n[axes[i]], 1);
        if (i + 1 == axes.size()) step += pitch;
    }
    return out;
}

std::array<int64_t, 4> kda_call::steps(plait_role role) const {
    const std::vector<size_t> axes = axes_of(*this, role);
    const auto set = strides.find(role);
    const std::vector<int64_t> s = set != strides.end() ? set->second : packed(role);
    std::array<int64_t, 4> out{};
    for (size_t i = 0; i < axes.size(); ++i) out[axes[i]] = s.at(i);
    return out;
}

plait_status make_desc(const kda_call &c, desc_ptr &desc) {
    desc.reset();
    plait_desc *raw = nullptr;
    if (plait_status s = plait_kda_create(&raw, c.direction, c.q, c.batch, c.length, c.heads,
                                          c.value_heads, c.dim_k, c.dim_v))
        return s;
    desc_ptr made(raw);
    plait_status s = PLAIT_OK;
    const auto set = [&](bool wanted, auto &&call) {
        if (s == PLAIT_OK && wanted) s = call();
    };
    set(true, [&] { return plait_kda_set_gate(raw, c.gate, c.lower_bound); });
    set(c.beta_scale.has_value(), [&] { return plait_kda_set_beta(raw, 1, *c.beta_scale); });
    set(c.eps.has_value(), [&] { return plait_kda_set_qk_norm(raw, 1, *c.eps); });
    set(c.scale.has_value(), [&] { return plait_kda_set_scale(raw, *c.scale); });
    set(c.uses(PLAIT_STATE_IN) || c.uses(PLAIT_STATE_OUT),
        [&] { return plait_kda_set_state(raw, c.orientation); });
    set(c.varlen.has_value(),
        [&] { return plait_desc_set_varlen(raw, c.varlen->first, c.varlen->second); });
    set(c.slots.has_value(),
        [&] { return plait_desc_set_slots(raw, c.slots->first, c.slots->second); });
    for (const plait_role role : c.used) set(true, [&] { return plait_desc_use(raw, role, 1); });
    for (const plait_role role : c.dropped) set(true, [&] { return plait_desc_use(raw, role, 0); });
    for (const auto &entry : c.types)
        set(true, [&] { return plait_desc_set_dtype(raw, entry.first, entry.second); });
    for (const auto &entry : c.strides)
        set(true, [&] {
            return plait_desc_set_strides(raw, entry.first, static_cast<int>(entry.second.size()),
                                          entry.second.data());
        });
    for (const auto &[role, elements] : c.offsets) {
        const int64_t off = elements * bytes_of(c.type(role));
        const auto left = static_cast<int>(std::min<int64_t>(16, off & -off));
        if (off != 0 && left < 16)
            set(true, [&, r = role] { return plait_desc_set_alignment(raw, r, left); });
    }
    set(c.reserve, [&] { return plait_desc_use(raw, PLAIT_RESERVE, 1); });
    set(c.alias, [&] { return plait_desc_set_alias(raw, PLAIT_STATE_OUT, PLAIT_STATE_IN); });
    set(true, [&] { return plait_desc_check(raw); });
    if (s == PLAIT_OK) desc = std::move(made);
    return s;
}

kda_call forward_of(const kda_call &backward) {
    kda_call c = backward;
    c.direction = PLAIT_FORWARD;
    c.dropped.clear();
    if (backward.drops(PLAIT_A_LOG)) c.dropped = {PLAIT_A_LOG};
    if (!c.varlen && !c.slots)
        c.used.erase(std::remove(c.used.begin(), c.used.end(), PLAIT_STATUS), c.used.end());
    const auto forget = [](auto &map) {
        for (auto at = map.begin(); at != map.end();)
            at = is_gradient(at->first) ? map.erase(at) : std::next(at);
    };
    forget(c.types);
    forget(c.strides);
    forget(c.offsets);
    return c;
}

desc_ptr desc_of(const kda_call &call) {
    desc_ptr desc;
    if (make_desc(call, desc) != PLAIT_OK) throw std::runtime_error(plait_last_error());
    return desc;
}

kda_array slice(const kda_array &a, int64_t from, int64_t to) {
    kda_array out({a.n[0], to - from, a.n[2], a.n[3]});
    for (int64_t b = 0; b < a.n[0]; ++b)
        for (int64_t t = from; t < to; ++t)
            for (int64_t h = 0; h < a.n[2]; ++h)
                for (int64_t i = 0; i < a.n[3]; ++i) out.at(b, t - from, h, i) = a.at(b, t, h, i);
    return out;
}

} // namespace plait::test
