// Sequences in pieces, packed, permuted, step by step: the same bits as in one piece.
#include "tests/support/conv1d_check.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace plait::test {
namespace {

const plait_dtype floats[] = {PLAIT_F32, PLAIT_F16, PLAIT_BF16, PLAIT_F64};
const plait_layout layouts[] = {PLAIT_BCT, PLAIT_BTC};

/// Around a width: shorter than a state, and around the blocks of the kernels.
std::vector<int64_t> lengths(int64_t k) {
    std::vector<int64_t> all = {0, 1, 2, k - 2, k - 1, k, 63, 64, 65, 127, 129, 257};
    if (config().small || config().brief) all = {0, 1, k - 1, k, 65};
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    all.erase(all.begin(), std::lower_bound(all.begin(), all.end(), 0));
    return all;
}

/// Values of a result as an array, rows of `like`.
conv1d_array array_of(const conv1d_outcome &out, plait_role role, const conv1d_call &call) {
    const std::vector<int64_t> n = call.shape(role);
    conv1d_array a(n[0], n[1], n[2]);
    const std::vector<double> &v = out.values.at(role);
    std::copy(v.begin(), v.end(), a.v.begin());
    return a;
}

bool same(const conv1d_array &a, const conv1d_array &b) {
    if (a.v.size() != b.v.size()) return false;
    for (size_t e = 0; e < a.v.size(); ++e)
        if (std::isnan(a.v[e]) ? !std::isnan(b.v[e]) : a.v[e] != b.v[e]) return false;
    return true;
}

conv1d_call with_states(plait_dtype type, plait_layout layout, int64_t batch, int64_t channels,
                        int64_t length, int64_t k, int64_t entries) {
    conv1d_call c = conv1d(PLAIT_FORWARD, type, batch, channels, length, k);
    c.layout = layout;
    c.silu = true;
    c.used = {PLAIT_BIAS, PLAIT_STATE_IN, PLAIT_STATE_OUT};
    if (entries != k - 1) c.entries = entries;
    return c;
}

/// Does the candidate `by` apply to another call? Names of one backend do so by shape alone.
std::optional<candidate> same_name(const conv1d_call &call, const candidate &by) {
    for (const candidate &c : candidates_for(call))
        if (c.name == by.name || c.name.empty()) return c;
    return std::nullopt;
}

} // namespace

TEST_CASE("conv1d property: two chunks with the state handed over = one piece, bitwise") {
    rng random(config().seed + 21);
    for (const plait_dtype type : floats)
        for (const plait_layout layout : layouts)
            for (const int64_t k : {1, 4, 7})
                for (const int64_t extra : {0, 3}) {
                    const int64_t length = 131, entries = k - 1 + extra;
                    const conv1d_call whole = with_states(type, layout, 2, 5, length, k, entries);
                    const conv1d_inputs in = random_inputs(whole, conv1d_filling::uniform, random);
                    for_each_candidate(whole, [&](const candidate &by) {
                        const conv1d_outcome one = result_of(whole, in, by);
                        std::vector<int64_t> cuts = lengths(k);
                        cuts.push_back(length);
                        for (const int64_t cut : cuts) {
                            if (cut > length) continue;
                            CAPTURE(cut);
                            conv1d_call a = whole, b = whole;
                            a.length = cut;
                            b.length = length - cut;
                            const auto by_a = same_name(a, by), by_b = same_name(b, by);
                            if (!by_a || !by_b) continue;
                            conv1d_inputs head = in, tail = in;
                            head.length = a.length;
                            head.x = slice(in.x, 0, cut);
                            tail.length = b.length;
                            tail.x = slice(in.x, cut, length);
                            const conv1d_outcome first = result_of(a, head, *by_a);
                            tail.state = array_of(first, PLAIT_STATE_OUT, a);
                            const conv1d_outcome second = result_of(b, tail, *by_b);
                            const conv1d_array y = array_of(one, PLAIT_Y, whole);
                            CHECK(same(slice(y, 0, cut), array_of(first, PLAIT_Y, a)));
                            CHECK(same(slice(y, cut, length), array_of(second, PLAIT_Y, b)));
                            CHECK(same(array_of(one, PLAIT_STATE_OUT, whole),
                                       array_of(second, PLAIT_STATE_OUT, b)));
                        }
                    });
                }
}

TEST_CASE("conv1d property: updates of S samples = one forward, bitwise, linear and ring") {
    rng random(config().seed + 22);
    for (const plait_dtype type : floats)
        for (const plait_layout layout : layouts)
            for (const int64_t k : {1, 2, 4, 9})
                for (const bool ring : {false, true})
                    for (const int64_t step : {1, 2, 5, 16}) {
                        const int64_t length = 16, entries = k - 1 + (ring ? step : 0);
                        conv1d_call whole = with_states(type, layout, 3, 6, length, k, entries);
                        whole.residual = step == 2;
                        const conv1d_inputs in =
                            random_inputs(whole, conv1d_filling::uniform, random);
                        conv1d_call part = whole;
                        part.direction = PLAIT_UPDATE;
                        part.used = {PLAIT_BIAS};
                        part.ring = ring;
                        part.entries = entries;
                        for_each_candidate(whole, [&](const candidate &by) {
                            const conv1d_array y =
                                array_of(result_of(whole, in, by), PLAIT_Y, whole);
                            for_each_candidate(part, [&](const candidate &with) {
                                // The definition rounds less than the other candidates.
                                if (with.narrowest != by.narrowest) return;
                                conv1d_inputs now = in;
                                now.op = conv1d_op::update;
                                now.ring = ring;
                                now.last_state = false;
                                std::vector<int32_t> position(3, 0);
                                for (int64_t t = 0; t < length; t += step) {
                                    conv1d_call c = part;
                                    c.length = std::min(step, length - t);
                                    now.length = c.length;
                                    now.x = slice(in.x, t, t + c.length);
                                    now.position = position;
                                    const conv1d_outcome out = result_of(c, now, with);
                                    if (!out.fault.empty()) return;
                                    CHECK(
                                        same(array_of(out, PLAIT_Y, c), slice(y, t, t + c.length)));
                                    now.state = array_of(out, PLAIT_STATE, c);
                                    for (int32_t &p : position) p += static_cast<int32_t>(c.length);
                                }
                            });
                        });
                    }
}

TEST_CASE("conv1d property: a packed sequence = the sequence alone, in any order, bitwise") {
    rng random(config().seed + 23);
    for (const plait_dtype type : {PLAIT_F32, PLAIT_BF16, PLAIT_F16})
        for (const plait_layout layout : layouts)
            for (const int64_t k : {1, 4, 6})
                for (const plait_direction direction : {PLAIT_FORWARD, PLAIT_BACKWARD}) {
                    std::vector<int64_t> lens = lengths(k);
                    const auto count = static_cast<int64_t>(lens.size());
                    const int64_t total = std::accumulate(lens.begin(), lens.end(), int64_t{0});
                    conv1d_call c = with_states(type, layout, 1, 4, total + 3, k, k - 1);
                    c.direction = direction;
                    c.varlen = {count, 257};
                    conv1d_inputs in = random_inputs(c, conv1d_filling::uniform, random);
                    const auto pack = [&](const std::vector<size_t> &order) {
                        conv1d_inputs packed = in;
                        int64_t at = 0;
                        packed.offsets = {0};
                        for (size_t i = 0; i < order.size(); ++i) {
                            const size_t n = order[i];
                            for (int64_t ch = 0; ch < 4; ++ch) {
                                for (int64_t t = 0; t < lens[n]; ++t) {
                                    packed.x.at(0, ch, at + t) = in.x.at(0, ch, in.offsets[n] + t);
                                    if (direction == PLAIT_BACKWARD)
                                        packed.dy.at(0, ch, at + t) =
                                            in.dy.at(0, ch, in.offsets[n] + t);
                                }
                                for (int64_t e = 0; e < k - 1; ++e) {
                                    const auto to = static_cast<int64_t>(i),
                                               from = static_cast<int64_t>(n);
                                    packed.state.at(to, ch, e) = in.state.at(from, ch, e);
                                    if (direction == PLAIT_BACKWARD)
                                        packed.dstate_out.at(to, ch, e) =
                                            in.dstate_out.at(from, ch, e);
                                }
                            }
                            at += lens[n];
                            packed.offsets.push_back(at);
                        }
                        return packed;
                    };
                    std::vector<size_t> order(lens.size());
                    std::iota(order.begin(), order.end(), size_t{0});
                    in.offsets = {0};
                    for (const int64_t n : lens) in.offsets.push_back(in.offsets.back() + n);
                    for (conv1d_array *a : {&in.x, &in.dy})
                        for (long double &v : a->v)
                            if (std::isnan(v)) v = 0.25;
                    in = pack(order);
                    std::vector<size_t> reversed(order.rbegin(), order.rend());
                    std::swap(reversed[0], reversed[1]);
                    const conv1d_inputs other = pack(reversed);
                    const plait_role y = direction == PLAIT_FORWARD ? PLAIT_Y : PLAIT_DX;
                    const plait_role state =
                        direction == PLAIT_FORWARD ? PLAIT_STATE_OUT : PLAIT_DSTATE_IN;
                    for_each_candidate(c, [&](const candidate &by) {
                        const conv1d_outcome a = result_of(c, in, by), b = result_of(c, other, by);
                        const conv1d_array ya = array_of(a, y, c), yb = array_of(b, y, c);
                        const conv1d_array sa = array_of(a, state, c), sb = array_of(b, state, c);
                        for (size_t i = 0; i < reversed.size(); ++i) {
                            const size_t n = reversed[i];
                            CAPTURE(lens[n]);
                            const conv1d_array piece =
                                slice(ya, in.offsets[n], in.offsets[n] + lens[n]);
                            CHECK(same(piece,
                                       slice(yb, other.offsets[i], other.offsets[i] + lens[n])));
                            conv1d_call alone = c;
                            alone.varlen.reset();
                            alone.length = lens[n];
                            const auto also = same_name(alone, by);
                            conv1d_inputs one = in;
                            one.varlen = false;
                            one.length = lens[n];
                            one.x = slice(in.x, in.offsets[n], in.offsets[n] + lens[n]);
                            if (direction == PLAIT_BACKWARD)
                                one.dy = slice(in.dy, in.offsets[n], in.offsets[n] + lens[n]);
                            const auto row = [&](const conv1d_array &s, size_t r) {
                                conv1d_array out(1, s.channels, s.time);
                                for (int64_t ch = 0; ch < s.channels; ++ch)
                                    for (int64_t e = 0; e < s.time; ++e)
                                        out.at(0, ch, e) = s.at(static_cast<int64_t>(r), ch, e);
                                return out;
                            };
                            CHECK(same(row(sa, n), row(sb, i)));
                            if (!also) continue;
                            one.state = row(in.state, n);
                            if (direction == PLAIT_FORWARD)
                                one.state_out = conv1d_array(1, 4, k - 1, NAN);
                            else
                                one.dstate_out = row(in.dstate_out, n);
                            const conv1d_outcome single = result_of(alone, one, *also);
                            if (!single.fault.empty()) return;
                            CHECK(same(piece, array_of(single, y, alone)));
                            CHECK(same(row(sa, n), array_of(single, state, alone)));
                        }
                    });
                }
}

TEST_CASE("conv1d property: segments by ids = segments alone, bitwise; NaN stays in its segment") {
    rng random(config().seed + 24);
    for (const plait_dtype type : {PLAIT_F32, PLAIT_BF16})
        for (const plait_layout layout : layouts)
            for (const plait_direction direction : {PLAIT_FORWARD, PLAIT_BACKWARD})
                for (int item = 0; item < (config().small ? 2 : 6); ++item) {
                    const int64_t k = random.pick<int64_t>({2, 4, 8}), length = 140;
                    conv1d_call c = conv1d(direction, type, 2, 5, length, k);
                    c.layout = layout;
                    c.silu = true;
                    c.used = {PLAIT_BIAS, PLAIT_SEQ_IDX};
                    conv1d_inputs in = random_inputs(c, conv1d_filling::uniform, random);
                    for (conv1d_array *a : {&in.x, &in.dy})
                        for (long double &v : a->v)
                            if (std::isnan(v)) v = 0.5;
                    // runs 0, 1, 2 .., every third one padding
                    const int64_t run = random.between(1, 30);
                    for (int64_t b = 0; b < 2; ++b)
                        for (int64_t t = 0; t < length; ++t) {
                            const auto id = static_cast<int32_t>(t / run);
                            in.seq_idx[static_cast<size_t>(b * length + t)] =
                                id % 3 == 2 ? -1 - id : id;
                        }
                    conv1d_inputs dirty =
                        in; // one value of each odd run and of padding is not finite
                    for (int64_t t = 0; t < length; ++t)
                        if ((t / run) % 2 == 1 || (t / run) % 3 == 2)
                            for (int64_t ch = 0; ch < 5; ++ch) {
                                dirty.x.at(0, ch, t) =
                                    random.pick<double>({HUGE_VAL, -HUGE_VAL, NAN});
                                if (direction == PLAIT_BACKWARD) dirty.dy.at(0, ch, t) = NAN;
                            }
                    const plait_role y = direction == PLAIT_FORWARD ? PLAIT_Y : PLAIT_DX;
                    for_each_candidate(c, [&](const candidate &by) {
                        const conv1d_outcome a = result_of(c, in, by), b = result_of(c, dirty, by);
                        const conv1d_array ya = array_of(a, y, c), yb = array_of(b, y, c);
                        int64_t spread = 0, padded = 0;
                        for (int64_t row = 0; row < 2; ++row)
                            for (int64_t ch = 0; ch < 5; ++ch)
                                for (int64_t t = 0; t < length; ++t) {
                                    const bool pad = (t / run) % 3 == 2;
                                    const bool hit = row == 0 && (t / run) % 2 == 1 && !pad;
                                    if (!hit) spread += ya.at(row, ch, t) != yb.at(row, ch, t);
                                    if (pad) padded += yb.at(row, ch, t) != 0;
                                }
                        CHECK(spread == 0);
                        CHECK(padded == 0);
                        conv1d_call alone = c;
                        alone.used = {PLAIT_BIAS};
                        for (int64_t from = 0; from < length; from += run) {
                            if ((from / run) % 3 == 2) continue;
                            const int64_t to = std::min(length, from + run);
                            alone.length = to - from;
                            const auto also = same_name(alone, by);
                            if (!also) continue;
                            conv1d_inputs one = in;
                            one.ids = false;
                            one.length = alone.length;
                            one.x = slice(in.x, from, to);
                            if (direction == PLAIT_BACKWARD) one.dy = slice(in.dy, from, to);
                            const conv1d_outcome single = result_of(alone, one, *also);
                            if (!single.fault.empty()) return;
                            CHECK(same(slice(ya, from, to), array_of(single, y, alone)));
                        }
                    });
                }
}

TEST_CASE("conv1d property: STATE_OUT in the place of STATE_IN, for every length around it") {
    rng random(config().seed + 25);
    for (const plait_dtype type : {PLAIT_F32, PLAIT_BF16})
        for (const plait_layout layout : layouts)
            for (const int64_t k : {2, 4, 9})
                for (const int64_t extra : {0, 1, 6}) {
                    const int64_t entries = k - 1 + extra;
                    std::vector<int64_t> some = lengths(k);
                    for (int64_t d = -2; d <= 2; ++d)
                        some.push_back(std::max<int64_t>(0, entries + d));
                    if (k == 4 && extra == 0) some.push_back(2048);
                    for (const int64_t length : some) {
                        conv1d_call c = with_states(type, layout, 2, 11, length, k, entries);
                        const conv1d_inputs in = random_inputs(c, conv1d_filling::uniform, random);
                        conv1d_call shared = c;
                        shared.alias = true;
                        conv1d_inputs in_place = in;
                        in_place.state_out = in.state;
                        for_each_candidate(shared, [&](const candidate &by) {
                            const auto apart = same_name(c, by);
                            if (!apart) return;
                            CHECK(difference(result_of(shared, in_place, by),
                                             result_of(c, in, *apart)) == "");
                        });
                    }
                }
}

TEST_CASE("conv1d property: bad offsets and slots: the good are computed, the bad are reported") {
    const int items = config().small ? 60 : config().brief ? 150 : 500;
    for (int i = 0; i < items; ++i) {
        rng random(derive(config().seed, static_cast<uint64_t>(950000 + i)));
        conv1d_call c = random_conv1d(random, 15000);
        if (!c.varlen && !c.slots) continue;
        if (!c.uses(PLAIT_STATUS)) c.used.push_back(PLAIT_STATUS);
        // NaN in x where nothing owns it: a bad sequence is in no sum
        conv1d_inputs in = random_inputs(c, conv1d_filling::uniform, random);
        const bool break_offsets = c.varlen && (!c.slots || random.chance(0.5));
        const auto breach = [&](auto &numbers, std::initializer_list<int64_t> bad) {
            if (numbers.empty()) return;
            for (int64_t n = random.between(1, 3); n > 0; --n) {
                const auto at = random.between(0, static_cast<int64_t>(numbers.size()) - 1);
                using number = typename std::decay_t<decltype(numbers)>::value_type;
                numbers[static_cast<size_t>(at)] = static_cast<number>(random.pick(bad));
            }
        };
        if (break_offsets)
            breach(in.offsets, {-1, -5, c.length + 1, c.length, 0, 1, c.length / 2, INT32_MAX,
                                INT32_MIN, random.between(0, c.length)});
        else
            breach(in.slot, {c.slots->first, c.slots->first + 7, -2, INT32_MAX, INT32_MIN,
                             c.slots->second, 0, 0, 1});
        expect(c, in, roundoff_of(c));
    }
}

} // namespace plait::test
