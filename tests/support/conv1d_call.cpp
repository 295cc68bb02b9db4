#include "tests/support/conv1d_call.h"

#include <algorithm>
#include <cmath>

namespace plait::test {
namespace {

bool is_gradient(plait_role role) { return role >= PLAIT_DX; }
plait_role primal(plait_role role) {
    return is_gradient(role) ? static_cast<plait_role>(role - 256) : role;
}

/// The places of row, channel and time among a tensor's axes; -1: an axis that it lacks.
struct axes {
    int row, channel, time, rank;
};

axes axes_of(const conv1d_call &c, plait_role role) {
    switch (primal(role)) {
    case PLAIT_W: return {-1, 0, 1, 2};
    case PLAIT_BIAS: return {-1, 0, -1, 1};
    case PLAIT_SEQ_IDX: return {0, -1, 1, 2};
    case PLAIT_POSITION:
    case PLAIT_SLOTS:
    case PLAIT_CU_SEQLENS:
    case PLAIT_STATUS: return {0, -1, -1, 1};
    default: return c.layout == PLAIT_BCT ? axes{0, 1, 2, 3} : axes{0, 2, 1, 3};
    }
}

double value_of(conv1d_filling how, rng &random) {
    return how == conv1d_filling::uniform ? random.sign_unit()
                                          : static_cast<double>(random.between(-8, 8)) / 4;
}

void fill(const conv1d_call &c, plait_role role, conv1d_array &a, conv1d_filling how, rng &random) {
    const std::vector<int64_t> n = c.shape(role);
    a = conv1d_array(n[0], n[1], n[2]);
    const plait_dtype type = c.type(role);
    for (long double &v : a.v) v = rounded(type, value_of(how, random));
    // Along a stride of 0 there is one element.
    const std::vector<int64_t> step = c.steps(role);
    for (int64_t r = 0; r < n[0]; ++r)
        for (int64_t ch = 0; ch < n[1]; ++ch)
            for (int64_t t = 0; t < n[2]; ++t)
                a.at(r, ch, t) = a.at(step[0] ? r : 0, step[1] ? ch : 0, step[2] ? t : 0);
}

/// Runs of any length, also of one; ids come back, and some are padding.
std::vector<int32_t> random_ids(const conv1d_call &c, rng &random) {
    std::vector<int32_t> ids;
    for (int64_t b = 0; b < c.batch; ++b) {
        const int64_t longest = random.pick<int64_t>({1, 3, 9, 70, 1000});
        int64_t left = 0;
        int32_t id = 0;
        for (int64_t t = 0; t < c.length; ++t, --left) {
            if (left == 0) {
                id = random.pick({0, 1, 2, 7, -1, -3, INT32_MAX, INT32_MIN, 5});
                left = random.between(1, longest);
            }
            ids.push_back(id);
        }
    }
    return ids;
}

std::vector<int64_t> random_offsets(const conv1d_call &c, rng &random) {
    const auto [sequences, longest] = *c.varlen;
    std::vector<int64_t> cu{0};
    for (int64_t n = 0; n < sequences; ++n) {
        const int64_t room = std::min(longest, c.length - cu.back());
        const int64_t wanted =
            random.pick<int64_t>({0, 1, 2, c.width - 2, c.width - 1, c.width, 63, 64, 65, 129,
                                  c.length / std::max<int64_t>(1, sequences), longest});
        cu.push_back(cu.back() + std::clamp<int64_t>(wanted, 0, room));
    }
    return cu;
}

std::vector<int32_t> random_slots(const conv1d_call &c, rng &random) {
    std::vector<int32_t> free;
    for (int32_t s = 0; s < c.slots->first; ++s)
        if (s != c.slots->second) free.push_back(s);
    std::vector<int32_t> slots;
    for (int64_t r = 0; r < c.state_rows(); ++r) {
        if (free.empty() || random.chance(0.2)) {
            slots.push_back(c.slots->second);
            continue;
        }
        const auto at = random.between(0, static_cast<int64_t>(free.size()) - 1);
        slots.push_back(free[static_cast<size_t>(at)]);
        free.erase(free.begin() + at);
    }
    return slots;
}

} // namespace

bool conv1d_call::uses(plait_role role) const {
    return std::find(used.begin(), used.end(), role) != used.end();
}

bool conv1d_call::drops(plait_role role) const {
    return std::find(dropped.begin(), dropped.end(), role) != dropped.end();
}

plait_dtype conv1d_call::type(plait_role role) const {
    const auto set = types.find(role);
    if (set != types.end()) return set->second;
    if (is_gradient(role)) return type(primal(role));
    switch (role) {
    case PLAIT_CU_SEQLENS: return PLAIT_I64;
    case PLAIT_POSITION:
    case PLAIT_SLOTS:
    case PLAIT_SEQ_IDX:
    case PLAIT_STATUS: return PLAIT_I32;
    case PLAIT_X: return x;
    default: return type(PLAIT_X);
    }
}

std::vector<int64_t> conv1d_call::shape(plait_role role) const {
    switch (primal(role)) {
    case PLAIT_W: return {1, channels, width};
    case PLAIT_BIAS: return {1, channels, 1};
    case PLAIT_STATE:
    case PLAIT_STATE_IN:
    case PLAIT_STATE_OUT: return {pool(), channels, state_entries()};
    case PLAIT_SEQ_IDX: return {batch, 1, length};
    case PLAIT_POSITION: return {batch, 1, 1};
    case PLAIT_SLOTS: return {state_rows(), 1, 1};
    case PLAIT_CU_SEQLENS: return {state_rows() + 1, 1, 1};
    case PLAIT_STATUS: return {1, 1, 1};
    default: return {batch, channels, length};
    }
}

std::vector<int64_t> conv1d_call::packed(plait_role role, int64_t pitch) const {
    const axes a = axes_of(*this, role);
    const std::vector<int64_t> n = shape(role);
    std::vector<int64_t> extents(static_cast<size_t>(a.rank));
    if (a.row >= 0) extents[static_cast<size_t>(a.row)] = n[0];
    if (a.channel >= 0) extents[static_cast<size_t>(a.channel)] = n[1];
    if (a.time >= 0) extents[static_cast<size_t>(a.time)] = n[2];
    std::vector<int64_t> strides(extents.size());
    int64_t step = 1;
    for (size_t i = extents.size(); i-- > 0;) {
        strides[i] = step;
        step *= std::max<int64_t>(extents[i], 1);
        if (i + 1 == extents.size()) step += pitch;
    }
    return strides;
}

std::vector<int64_t> conv1d_call::steps(plait_role role) const {
    const axes a = axes_of(*this, role);
    const auto set = strides.find(role);
    const std::vector<int64_t> s = set != strides.end() ? set->second : packed(role);
    const auto along = [&](int axis) { return axis < 0 ? 0 : s[static_cast<size_t>(axis)]; };
    return {along(a.row), along(a.channel), along(a.time)};
}

plait_dtype conv1d_call::accumulator() const {
    desc_ptr desc = desc_of(*this);
    int count = 0;
    plait_desc_num_tensors(desc.get(), &count);
    for (int i = 0; i < count; ++i) {
        plait_dtype dtype;
        plait_desc_tensor(desc.get(), i, nullptr, nullptr, &dtype, nullptr, nullptr, nullptr);
        if (dtype == PLAIT_F64) return PLAIT_F64;
    }
    return PLAIT_F32;
}

plait_status make_desc(const conv1d_call &c, desc_ptr &desc) {
    desc.reset();
    plait_desc *raw = nullptr;
    if (plait_status s =
            plait_conv1d_create(&raw, c.direction, c.x, c.batch, c.channels, c.length, c.width))
        return s;
    desc_ptr made(raw);
    plait_status s = PLAIT_OK;
    const auto set = [&](bool wanted, auto &&call) {
        if (s == PLAIT_OK && wanted) s = call();
    };
    set(c.layout != PLAIT_BCT, [&] { return plait_conv1d_set_layout(raw, c.layout); });
    set(c.silu, [&] { return plait_conv1d_set_activation(raw, PLAIT_ACT_SILU); });
    set(c.residual, [&] { return plait_conv1d_set_residual(raw, 1); });
    set(c.ring || c.entries, [&] {
        return plait_conv1d_set_state(raw, c.ring ? PLAIT_STATE_RING : PLAIT_STATE_LINEAR,
                                      c.state_entries());
    });
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
        if (off != 0 && left < (is_integer(c.type(role)) ? bytes_of(c.type(role)) : 16))
            set(true, [&, r = role] { return plait_desc_set_alignment(raw, r, left); });
    }
    set(c.alias, [&] { return plait_desc_set_alias(raw, PLAIT_STATE_OUT, PLAIT_STATE_IN); });
    set(true, [&] { return plait_desc_check(raw); });
    if (s == PLAIT_OK) desc = std::move(made);
    return s;
}

desc_ptr desc_of(const conv1d_call &call) {
    desc_ptr desc;
    if (make_desc(call, desc) != PLAIT_OK) throw std::runtime_error(plait_last_error());
    return desc;
}

conv1d_inputs inputs_of(const conv1d_call &c) {
    conv1d_inputs in;
    const bool update = c.direction == PLAIT_UPDATE;
    in.op = update                          ? conv1d_op::update
            : c.direction == PLAIT_BACKWARD ? conv1d_op::backward
                                            : conv1d_op::forward;
    in.silu = c.silu;
    in.residual = c.residual;
    in.ring = c.ring;
    in.varlen = c.varlen.has_value();
    in.pooled = c.slots.has_value();
    in.bias = c.uses(PLAIT_BIAS);
    in.first_state = update || c.uses(PLAIT_STATE_IN);
    in.last_state = c.uses(PLAIT_STATE_OUT);
    in.ids = c.uses(PLAIT_SEQ_IDX);
    in.status = c.uses(PLAIT_STATUS);
    in.dlast_state = in.last_state && !c.drops(PLAIT_DSTATE_OUT);
    in.batch = c.batch;
    in.channels = c.channels;
    in.length = c.length;
    in.width = c.width;
    in.entries = c.state_entries();
    if (c.varlen) {
        in.sequences = c.varlen->first;
        in.max_length = c.varlen->second;
    }
    if (c.slots) {
        in.slots = c.slots->first;
        in.pad = c.slots->second;
    }
    return in;
}

conv1d_inputs random_inputs(const conv1d_call &c, conv1d_filling how, rng &random) {
    conv1d_inputs in = inputs_of(c);
    fill(c, PLAIT_X, in.x, how, random);
    fill(c, PLAIT_W, in.w, how, random);
    if (in.bias) fill(c, PLAIT_BIAS, in.b, how, random);
    if (c.direction == PLAIT_UPDATE)
        fill(c, PLAIT_STATE, in.state, how, random);
    else if (in.first_state)
        fill(c, PLAIT_STATE_IN, in.state, how, random);
    if (in.last_state && c.direction == PLAIT_FORWARD) {
        if (c.alias) {
            in.state_out = in.state;
        } else {
            fill(c, PLAIT_STATE_OUT, in.state_out, how, random);
            if (!c.slots) std::fill(in.state_out.v.begin(), in.state_out.v.end(), std::nanl(""));
        }
    }
    if (c.direction == PLAIT_BACKWARD) {
        fill(c, PLAIT_DY, in.dy, how, random);
        if (in.dlast_state) fill(c, PLAIT_DSTATE_OUT, in.dstate_out, how, random);
    }
    if (in.ids) in.seq_idx = random_ids(c, random);
    if (c.varlen) in.offsets = random_offsets(c, random);
    if (c.slots) in.slot = random_slots(c, random);
    if (c.ring)
        for (int64_t r = 0; r < c.batch; ++r)
            in.position.push_back(random.chance(0.1)
                                      ? INT32_MAX
                                      : static_cast<int32_t>(random.between(0, 3 * *c.entries)));
    if (random.chance(0.5)) poison_unowned(c, in);
    return in;
}

void poison_unowned(const conv1d_call &c, conv1d_inputs &in) {
    const int64_t packed_end = in.varlen && !in.offsets.empty() ? in.offsets.back() : c.length;
    for (int64_t b = 0; b < c.batch; ++b)
        for (int64_t t = 0; t < c.length; ++t) {
            bool owned = t < packed_end;
            if (in.ids && in.seq_idx[static_cast<size_t>(b * c.length + t)] < 0) owned = false;
            if (in.pooled && !in.varlen && in.slot[static_cast<size_t>(b)] == in.pad) owned = false;
            if (in.pooled && in.varlen)
                for (size_t n = 0; n < in.slot.size(); ++n)
                    if (t >= in.offsets[n] && t < in.offsets[n + 1] && in.slot[n] == in.pad)
                        owned = false;
            if (owned) continue;
            for (const plait_role role : {PLAIT_X, PLAIT_DY}) {
                conv1d_array &a = role == PLAIT_X ? in.x : in.dy;
                const std::vector<int64_t> s = c.steps(role); // expanded: not its own element
                if (a.v.empty() || s[0] == 0 || s[1] == 0 || s[2] == 0) continue;
                for (int64_t ch = 0; ch < c.channels; ++ch) a.at(b, ch, t) = std::nanl("");
            }
        }
}

conv1d_array slice(const conv1d_array &a, int64_t from, int64_t to) {
    conv1d_array out(a.rows, a.channels, to - from);
    for (int64_t r = 0; r < a.rows; ++r)
        for (int64_t c = 0; c < a.channels; ++c)
            for (int64_t t = from; t < to; ++t) out.at(r, c, t - from) = a.at(r, c, t);
    return out;
}

const conv1d_array *array_of(const conv1d_inputs &in, plait_role role) {
    switch (role) {
    case PLAIT_X: return &in.x;
    case PLAIT_W: return &in.w;
    case PLAIT_BIAS: return &in.b;
    case PLAIT_STATE:
    case PLAIT_STATE_IN: return &in.state;
    case PLAIT_STATE_OUT: return &in.state_out;
    case PLAIT_DY: return &in.dy;
    case PLAIT_DSTATE_OUT: return &in.dstate_out;
    default: return nullptr;
    }
}

std::vector<int64_t> integers_of(const conv1d_inputs &in, plait_role role) {
    switch (role) {
    case PLAIT_CU_SEQLENS: return in.offsets;
    case PLAIT_SLOTS: return {in.slot.begin(), in.slot.end()};
    case PLAIT_POSITION: return {in.position.begin(), in.position.end()};
    default: return {in.seq_idx.begin(), in.seq_idx.end()};
    }
}

} // namespace plait::test
