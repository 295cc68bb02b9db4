// Random legal calls of Kimi Delta Attention, and random inputs for a call.
#include "tests/support/kda_call.h"

#include <algorithm>
#include <cmath>

namespace plait::test {
namespace {

plait_dtype random_float(rng &r) {
    return r.pick({PLAIT_F32, PLAIT_BF16, PLAIT_BF16, PLAIT_F16, PLAIT_F64});
}

/// Values of G: logarithms of decays, or what a gate's function is taken of. Weak, middling, strong
/// and saturated ones in one call.
double gate_value(const kda_call &c, rng &r) {
    const double u = r.unit();
    if (c.gate == PLAIT_GATE_LOG)
        return u < 0.3    ? -0.02 * r.unit()
               : u < 0.9  ? -1.5 * r.unit()
               : u < 0.98 ? -40 * r.unit()
                          : r.pick({-400.0, -1000.0, 0.0});
    return u < 0.8 ? 3 * r.sign_unit() : u < 0.95 ? 12 * r.sign_unit() : r.pick({-60.0, 60.0, 0.0});
}

double value_of(const kda_call &c, plait_role role, rng &r) {
    switch (role) {
    case PLAIT_Q: return r.sign_unit();
    case PLAIT_K: // |k|^2 beta <= 2: the state does not grow
        return c.eps
                   ? r.sign_unit()
                   : r.sign_unit() / std::sqrt(static_cast<double>(std::max<int64_t>(1, c.dim_k)));
    case PLAIT_G: return gate_value(c, r);
    case PLAIT_BETA: return c.beta_scale ? 4 * r.sign_unit() : r.chance(0.05) ? 0 : r.unit();
    case PLAIT_A_LOG: return 0.8 * r.sign_unit();
    default: return r.sign_unit();
    }
}

std::vector<int64_t> random_offsets(const kda_call &c, rng &r) {
    const auto [sequences, longest] = *c.varlen;
    std::vector<int64_t> cu{0};
    for (int64_t n = 0; n < sequences; ++n) {
        const int64_t room = std::min(longest, c.length - cu.back());
        const int64_t wanted = r.pick<int64_t>(
            {0, 1, 2, 15, 16, 17, 63, 64, 65, c.length / std::max<int64_t>(1, sequences), longest});
        cu.push_back(cu.back() + std::clamp<int64_t>(wanted, 0, room));
    }
    return cu;
}

std::vector<int32_t> random_slots(const kda_call &c, rng &r) {
    std::vector<int32_t> free, slots;
    for (int32_t s = 0; s < c.slots->first; ++s)
        if (s != c.slots->second) free.push_back(s);
    for (int64_t n = 0; n < c.sequences(); ++n) {
        if (free.empty() || r.chance(0.2)) {
            slots.push_back(c.slots->second);
            continue;
        }
        const auto at = r.between(0, static_cast<int64_t>(free.size()) - 1);
        slots.push_back(free[static_cast<size_t>(at)]);
        free.erase(free.begin() + at);
    }
    return slots;
}

/// Tokens that belong to no sequence, or to one without a slot.
bool owned(const kda_call &c, const kda_inputs &in, int64_t row, int64_t t) {
    if (!c.varlen) return !c.slots || in.slot[static_cast<size_t>(row)] != c.slots->second;
    for (size_t n = 0; n + 1 < in.offsets.size(); ++n)
        if (t >= in.offsets[n] && t < in.offsets[n + 1])
            return !c.slots || in.slot[n] != c.slots->second;
    return false;
}

void poison(const kda_call &c, kda_inputs &in) {
    for (auto &[role, a] : in.arrays) {
        const auto s = c.steps(role);
        const bool tokens = role == PLAIT_Q || role == PLAIT_K || role == PLAIT_V ||
                            role == PLAIT_G || role == PLAIT_BETA || role == PLAIT_DO;
        if (!tokens || s[0] == 0 || s[1] == 0 || s[2] == 0) continue; // expanded: others' elements
        for (int64_t b = 0; b < a.n[0]; ++b)
            for (int64_t t = 0; t < a.n[1]; ++t)
                for (int64_t h = 0; !owned(c, in, b, t) && h < a.n[2]; ++h)
                    for (int64_t i = 0; i < a.n[3]; ++i) a.at(b, t, h, i) = std::nanl("");
    }
}

void features(rng &r, kda_call &c) {
    c.gate = r.pick({PLAIT_GATE_LOG, PLAIT_GATE_SOFTPLUS, PLAIT_GATE_BOUNDED});
    if (c.gate == PLAIT_GATE_BOUNDED) c.lower_bound = r.pick({-5.0, -1.0, -0.25, -12.5});
    if (c.gate == PLAIT_GATE_BOUNDED && r.chance(0.3)) c.dropped.push_back(PLAIT_A_LOG);
    if (c.gate != PLAIT_GATE_LOG && r.chance(0.7)) c.used.push_back(PLAIT_DT_BIAS);
    if (r.chance(0.6)) c.eps = r.pick({1e-6, 1e-3});
    if (r.chance(0.6)) c.beta_scale = c.eps && r.chance(0.3) ? 2 : 1;
    if (r.chance(0.2)) c.scale = r.pick({1.0, 0.25, -0.5});
    if (r.chance(0.6)) c.used.push_back(PLAIT_STATE_IN);
    if (r.chance(0.6)) c.used.push_back(PLAIT_STATE_OUT);
    if (r.chance(0.5)) c.orientation = PLAIT_STATE_VK;
    const bool state = c.uses(PLAIT_STATE_IN) || c.uses(PLAIT_STATE_OUT);
    if (!c.backward() && state && r.chance(0.3))
        c.slots = {c.sequences() + r.between(0, 3),
                   static_cast<int32_t>(r.pick<int64_t>({-1, -7, 0, c.sequences()}))};
    if ((c.varlen || c.slots) && r.chance(0.5)) c.used.push_back(PLAIT_STATUS);
    if (!c.backward()) return;
    for (const plait_role role : {PLAIT_DQ, PLAIT_DK, PLAIT_DV, PLAIT_DG, PLAIT_DBETA, PLAIT_DA_LOG,
                                  PLAIT_DDT_BIAS, PLAIT_DSTATE_IN, PLAIT_DSTATE_OUT})
        if (r.chance(0.06) && c.uses(static_cast<plait_role>(role - 256)))
            c.dropped.push_back(role);
}

void placement(rng &r, kda_call &c) {
    for (const plait_role role : c.floating()) {
        if (r.chance(0.3)) {
            const plait_dtype set = random_float(r);
            const bool parameter =
                c.shape(role)[0] == 1 && c.shape(role)[1] == 1 && c.packed(role).size() < 3;
            const bool state = c.packed(role).size() == 4 && (role & 255) >= PLAIT_STATE_IN;
            if (parameter)
                c.types[role] = r.pick({PLAIT_F32, PLAIT_F64});
            else if (role != PLAIT_Q)
                c.types[role] = state && set == PLAIT_F16 ? PLAIT_BF16 : set;
        }
        if (r.chance(0.2)) c.offsets[role] = r.between(1, 16);
        if (r.chance(0.25)) c.strides[role] = c.packed(role, r.pick<int64_t>({1, 3, 8, 64}));
    }
    if (c.backward() && r.chance(0.15)) {
        std::vector<int64_t> &s = c.strides[PLAIT_DO]; // an expanded gradient
        s = c.packed(PLAIT_DO);
        s[static_cast<size_t>(r.between(0, 3))] = 0;
    }
    if (c.varlen && r.chance(0.4)) c.types[PLAIT_CU_SEQLENS] = PLAIT_I32;
}

} // namespace

kda_call random_kda(rng &r, int64_t work) {
    kda_call c;
    if (r.chance(0.5)) c.direction = PLAIT_BACKWARD;
    c.q = random_float(r);
    c.heads = r.between(1, 3);
    c.value_heads = c.heads * r.pick<int64_t>({1, 1, 2, 3});
    c.dim_k = r.pick<int64_t>({1, 3, 4, 8, 16, 20, 32, 60, 64, 128, 192, 250, 270});
    c.dim_v = r.pick<int64_t>({1, 2, 5, 8, 16, 24, 32, 64, 100, 128});
    const int64_t most = std::clamp<int64_t>(work / (c.value_heads * c.dim_k * c.dim_v), 1, 300);
    c.length = std::min(most, r.pick<int64_t>({0, 1, 2, 15, 16, 17, 63, 64, 65, 130, 300}));
    c.batch = r.pick<int64_t>({0, 1, 1, 2, 3});
    if (r.chance(0.4)) {
        c.batch = 1;
        c.varlen = {r.between(0, 6), r.pick<int64_t>({c.length, c.length, c.length + 9, 20})};
    }
    if (r.chance(0.03)) c.dim_k = 0;
    if (r.chance(0.03)) c.dim_v = 0;
    if (r.chance(0.03)) c.value_heads = 0;
    features(r, c);
    if (r.chance(0.7)) placement(r, c);
    if (!c.backward() && c.uses(PLAIT_STATE_IN) && c.uses(PLAIT_STATE_OUT) && r.chance(0.5)) {
        c.alias = true;
        const auto follow = [](auto &map) {
            map.erase(PLAIT_STATE_OUT);
            if (map.count(PLAIT_STATE_IN)) map[PLAIT_STATE_OUT] = map.at(PLAIT_STATE_IN);
        };
        c.types[PLAIT_STATE_IN] = c.type(PLAIT_STATE_IN);
        follow(c.types);
        follow(c.strides);
        follow(c.offsets);
    }
    return c;
}

kda_call random_kda_chunks(rng &r, plait_direction direction, int64_t work) {
    kda_call c;
    c.direction = direction;
    c.q = r.pick({PLAIT_BF16, PLAIT_F16});
    c.heads = r.between(1, 2);
    c.value_heads = c.heads * r.pick<int64_t>({1, 1, 2});
    c.dim_k = r.pick<int64_t>({32, 40, 64, 72, 96, 128, 128});
    c.dim_v = r.pick<int64_t>({16, 20, 64, 72, 96, 128, 128});
    if (!c.backward() && r.chance(0.3)) c.dim_k = r.pick<int64_t>({136, 192});
    if (!c.backward() && r.chance(0.3)) c.dim_v = r.pick<int64_t>({8, 136, 192, 256});
    const int64_t most = work / (c.value_heads * c.dim_k * c.dim_v);
    c.length = std::max<int64_t>(
        64, std::min(most, r.pick<int64_t>({64, 65, 66, 79, 95, 127, 128, 129, 191, 200, 321})));
    c.batch = r.pick<int64_t>({1, 1, 2});
    if (r.chance(0.4)) {
        c.batch = 1;
        c.varlen = {r.between(1, 6), r.pick<int64_t>({c.length, c.length, 64, 70})};
    }
    features(r, c);
    if (r.chance(0.7)) placement(r, c);
    for (auto &[role, type] : c.types)
        if (role == PLAIT_K || role == PLAIT_V)
            type = r.pick({PLAIT_BF16, PLAIT_F16});
        else if (type == PLAIT_F64)
            type = PLAIT_F32;
    return c;
}

kda_inputs random_inputs(const kda_call &c, rng &r) {
    kda_inputs in;
    if (c.varlen) in.offsets = random_offsets(c, r);
    if (c.slots) in.slot = random_slots(c, r);
    for (const plait_role role : c.floating()) {
        if (c.writes(role) && role != PLAIT_STATE_OUT) continue;
        kda_array a(c.shape(role));
        for (long double &v : a.v) v = rounded(c.type(role), value_of(c, role, r));
        const auto s = c.steps(role); // along a stride of 0 there is one element
        kda_array expanded = a;
        for (int64_t i = 0; i < a.n[0]; ++i)
            for (int64_t j = 0; j < a.n[1]; ++j)
                for (int64_t k = 0; k < a.n[2]; ++k)
                    for (int64_t l = 0; l < a.n[3]; ++l)
                        expanded.at(i, j, k, l) =
                            a.at(s[0] ? i : 0, s[1] ? j : 0, s[2] ? k : 0, s[3] ? l : 0);
        in.arrays[role] = expanded;
    }
    if (c.alias) in.arrays[PLAIT_STATE_OUT] = in[PLAIT_STATE_IN];
    if (r.chance(0.5)) poison(c, in);
    return in;
}

} // namespace plait::test
