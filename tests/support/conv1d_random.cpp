#include "tests/support/conv1d_random.h"

#include <algorithm>

namespace plait::test {
namespace {

plait_dtype random_float(rng &r) {
    return r.pick({PLAIT_F32, PLAIT_F32, PLAIT_F16, PLAIT_BF16, PLAIT_BF16, PLAIT_F64});
}

void shape(rng &r, conv1d_call &c, int64_t work) {
    c.width = r.chance(0.75) ? r.between(1, 8) : r.pick<int64_t>({16, 31, 32, 64, 256});
    const int64_t k = c.width;
    c.length = r.pick<int64_t>({0,
                                1,
                                2,
                                k - 2,
                                k - 1,
                                k,
                                k + 1,
                                7,
                                63,
                                64,
                                65,
                                127,
                                128,
                                129,
                                257,
                                r.between(1, 300),
                                r.between(1, 600),
                                1024,
                                2047,
                                4099});
    if (c.direction == PLAIT_UPDATE) c.length = r.pick<int64_t>({0, 1, 1, 1, 2, 3, 4, k, k + 3});
    c.length = std::max<int64_t>(0, c.length);
    const int64_t room = std::max<int64_t>(1, work / (std::max<int64_t>(1, c.length) * k));
    c.channels = std::min(room, r.pick<int64_t>({1, 2, 3, 4, 7, 8, 16, 31, 32, 64, 65, 96, 128, 257,
                                                 r.between(1, 100), r.between(1, 700)}));
    c.batch = std::clamp<int64_t>(room / c.channels, 1, r.pick<int64_t>({1, 1, 2, 3, 5, 17}));
    if (r.chance(0.02)) c.batch = 0;
    if (r.chance(0.02)) c.channels = 0;
}

void features(rng &r, conv1d_call &c) {
    const auto use = [&](plait_role role, double p) {
        if (r.chance(p)) c.used.push_back(role);
    };
    c.silu = r.chance(0.5);
    c.residual = r.chance(0.2);
    use(PLAIT_BIAS, 0.6);
    const bool update = c.direction == PLAIT_UPDATE;
    if (!update) {
        use(PLAIT_STATE_IN, 0.5);
        use(PLAIT_STATE_OUT, 0.5);
        if (r.chance(0.3)) {
            c.batch = 1;
            const int64_t sequences = r.pick<int64_t>({0, 1, 2, 3, 5, 17, 40});
            const int64_t longest = r.chance(0.5) ? c.length : r.between(0, c.length);
            c.varlen = {sequences, longest};
        } else {
            use(PLAIT_SEQ_IDX, 0.25);
        }
    }
    if (r.chance(0.3)) c.entries = c.width - 1 + r.pick<int64_t>({0, 1, 2, 7, c.length});
    if (update && r.chance(0.4)) {
        c.ring = true;
        if (!c.entries) c.entries = c.width - 1 + r.between(0, 4);
        c.entries = std::max<int64_t>(1, *c.entries);
    }
    const bool any_state = update || c.uses(PLAIT_STATE_IN) || c.uses(PLAIT_STATE_OUT);
    if (c.direction != PLAIT_BACKWARD && any_state && r.chance(0.3))
        c.slots = {c.state_rows() + r.between(0, 4), r.pick({-1, -1, 0, 1000000, INT32_MIN})};
    if (c.varlen || c.slots) use(PLAIT_STATUS, 0.3);
    if (c.direction == PLAIT_BACKWARD)
        for (const plait_role role :
             {PLAIT_DX, PLAIT_DW, PLAIT_DBIAS, PLAIT_DSTATE_IN, PLAIT_DSTATE_OUT})
            if (r.chance(0.12)) c.dropped.push_back(role);
}

/// Axes nested in any order with gaps between them.
std::vector<int64_t> nested(rng &r, const conv1d_call &c, plait_role role) {
    const std::vector<int64_t> tight = c.packed(role);
    if (tight.size() < 3) return c.packed(role, r.between(0, 9));
    const std::vector<int64_t> n = c.shape(role);
    std::vector<int64_t> extents = {n[0], n[1], n[2]};
    if (c.layout == PLAIT_BTC) std::swap(extents[1], extents[2]);
    std::vector<size_t> order = {2, 1, 0};
    for (size_t i = 3; i > 1; --i)
        std::swap(order[i - 1],
                  order[static_cast<size_t>(r.between(0, static_cast<int64_t>(i) - 1))]);
    std::vector<int64_t> s(3);
    int64_t step = r.chance(0.3) ? r.between(1, 3) : 1;
    for (const size_t a : order) {
        s[a] = step;
        step = step * std::max<int64_t>(1, extents[a]) + (r.chance(0.5) ? r.between(0, 9) : 0);
    }
    return s;
}

void placement(rng &r, conv1d_call &c) {
    if (r.chance(0.5)) c.layout = PLAIT_BTC;
    for (const plait_role role : floating_roles(c)) {
        if (r.chance(0.2)) c.offsets[role] = r.between(1, 16);
        if (r.chance(0.25)) c.strides[role] = c.packed(role, r.pick<int64_t>({1, 3, 8, 16, 64}));
        if (r.chance(0.08)) c.strides[role] = nested(r, c, role);
    }
    if (c.direction == PLAIT_BACKWARD && r.chance(0.15)) {
        std::vector<int64_t> &s = c.strides[PLAIT_DY]; // an expanded gradient
        s = c.packed(PLAIT_DY);
        s[static_cast<size_t>(r.between(0, 2))] = 0;
        if (r.chance(0.3)) s = {0, 0, 0};
    }
    if (c.uses(PLAIT_SEQ_IDX) && r.chance(0.3))
        c.strides[PLAIT_SEQ_IDX] = c.packed(PLAIT_SEQ_IDX, r.between(1, 9));
}

} // namespace

std::vector<plait_role> floating_roles(const conv1d_call &c) {
    std::vector<plait_role> roles = {PLAIT_X, PLAIT_W};
    const bool update = c.direction == PLAIT_UPDATE, backward = c.direction == PLAIT_BACKWARD;
    const auto add = [&](bool wanted, plait_role role) {
        if (wanted && !c.drops(role)) roles.push_back(role);
    };
    add(c.uses(PLAIT_BIAS), PLAIT_BIAS);
    add(update, PLAIT_STATE);
    add(c.uses(PLAIT_STATE_IN), PLAIT_STATE_IN);
    add(!backward, PLAIT_Y);
    add(!backward && c.uses(PLAIT_STATE_OUT), PLAIT_STATE_OUT);
    add(backward, PLAIT_DX);
    add(backward, PLAIT_DY);
    add(backward, PLAIT_DW);
    add(backward && c.uses(PLAIT_BIAS), PLAIT_DBIAS);
    add(backward && c.uses(PLAIT_STATE_IN), PLAIT_DSTATE_IN);
    add(backward && c.uses(PLAIT_STATE_OUT), PLAIT_DSTATE_OUT);
    return roles;
}

conv1d_call random_conv1d(rng &r, int64_t work) {
    conv1d_call c;
    const double d = r.unit();
    c.direction = d < 0.45 ? PLAIT_FORWARD : d < 0.75 ? PLAIT_BACKWARD : PLAIT_UPDATE;
    shape(r, c, work);
    c.x = random_float(r);
    features(r, c);
    if (r.chance(0.35))
        for (const plait_role role : floating_roles(c))
            if (role != PLAIT_X && r.chance(0.5)) c.types[role] = random_float(r);
    if (c.varlen && r.chance(0.4)) c.types[PLAIT_CU_SEQLENS] = PLAIT_I32;
    if (r.chance(0.7)) placement(r, c);
    if (c.direction == PLAIT_FORWARD && c.uses(PLAIT_STATE_IN) && c.uses(PLAIT_STATE_OUT) &&
        r.chance(0.5)) {
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
    // Y of a backward call gives DY its type, and is no tensor of its own.
    return c;
}

conv1d_call laid_out(conv1d_call c, plait_layout layout, int64_t pitch, int64_t shift) {
    c.layout = layout;
    c.strides.clear();
    c.offsets.clear();
    for (const plait_role role : floating_roles(c)) {
        if (pitch != 0) c.strides[role] = c.packed(role, pitch);
        if (shift != 0) c.offsets[role] = shift;
    }
    return c;
}

} // namespace plait::test
