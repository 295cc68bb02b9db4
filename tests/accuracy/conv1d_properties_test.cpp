// What must hold without any reference, for every candidate that applies: bits, and sums that are
// exact.
#include "tests/support/conv1d_check.h"

#include <algorithm>
#include <cmath>

namespace plait::test {
namespace {

const plait_dtype floats[] = {PLAIT_F32, PLAIT_F16, PLAIT_BF16, PLAIT_F64};
const plait_layout layouts[] = {PLAIT_BCT, PLAIT_BTC};

std::vector<int64_t> widths() {
    return config().small ? std::vector<int64_t>{1, 4} : std::vector<int64_t>{1, 2, 3, 4, 7, 16};
}

long double dot(const conv1d_array &a, const std::vector<double> &b) {
    REQUIRE(a.v.size() == b.size());
    long double sum = 0;
    for (size_t e = 0; e < b.size(); ++e) sum += a.v[e] * b[e];
    return sum;
}

/// Wide outputs of narrow inputs, so that sums of quarters are stored as they are.
void widen(conv1d_call &c) {
    for (const plait_role role : floating_roles(c))
        if (role == PLAIT_Y || role >= PLAIT_DX) c.types[role] = PLAIT_F32;
}

/// Every way in which the operator is linear, on random shapes.
conv1d_call linear_call(rng &r) {
    conv1d_call c = random_conv1d(r, 20000);
    while (c.direction != PLAIT_FORWARD || c.accumulator() == PLAIT_F64)
        c = random_conv1d(r, 20000);
    c.silu = c.alias = false;
    c.slots.reset();
    c.used.erase(std::remove(c.used.begin(), c.used.end(), PLAIT_STATUS), c.used.end());
    c.types.erase(PLAIT_STATE_OUT);
    c.strides.erase(PLAIT_STATE_OUT);
    c.offsets.erase(PLAIT_STATE_OUT);
    c.strides.erase(PLAIT_Y);
    widen(c);
    return c;
}

conv1d_call backward_of(const conv1d_call &forward) {
    conv1d_call c = forward;
    c.direction = PLAIT_BACKWARD;
    c.types.erase(PLAIT_STATE_OUT);
    c.strides.erase(PLAIT_Y);
    c.offsets.erase(PLAIT_Y);
    widen(c);
    return c;
}

} // namespace

TEST_CASE("conv1d property: <A x, y> = <x, A' y>, and dw, dbias are its derivatives") {
    const int items = config().small ? 20 : config().brief ? 60 : 200;
    for (int i = 0; i < items; ++i) {
        rng random(derive(config().seed, static_cast<uint64_t>(900000 + i)));
        const conv1d_call there = linear_call(random);
        const conv1d_call back = backward_of(there);
        conv1d_inputs in = random_inputs(back, conv1d_filling::quarters, random);
        for (conv1d_array *a : {&in.x, &in.dy}) // a product with NaN is no number
            for (long double &v : a->v)
                if (std::isnan(v)) v = 0;
        conv1d_inputs ahead = random_inputs(there, conv1d_filling::quarters, random);
        ahead.x = in.x;
        ahead.w = in.w;
        ahead.b = in.b;
        ahead.state = in.state;
        ahead.seq_idx = in.seq_idx;
        ahead.offsets = in.offsets;
        conv1d_inputs constant = ahead; // what the bias alone gives
        for (conv1d_array *a : {&constant.x, &constant.state})
            for (long double &v : a->v) v = 0;
        for_each_candidate(there, [&](const candidate &by) {
            const conv1d_outcome out = result_of(there, ahead, by);
            const conv1d_outcome still = result_of(there, constant, by);
            if (!out.fault.empty() || !still.fault.empty()) return;
            long double left =
                dot(in.dy, out.values.at(PLAIT_Y)) - dot(in.dy, still.values.at(PLAIT_Y));
            if (in.last_state) left += dot(in.dstate_out, out.values.at(PLAIT_STATE_OUT));
            for_each_candidate(back, [&](const candidate &again) {
                const conv1d_outcome grad = result_of(back, in, again);
                if (!grad.fault.empty()) return;
                long double right = dot(in.x, grad.values.at(PLAIT_DX));
                if (in.first_state) right += dot(in.state, grad.values.at(PLAIT_DSTATE_IN));
                CHECK(left == right);
                if (there.residual) return;
                long double weights = dot(in.w, grad.values.at(PLAIT_DW));
                if (in.bias) weights += dot(in.b, grad.values.at(PLAIT_DBIAS));
                CHECK(weights == dot(in.dy, out.values.at(PLAIT_Y)));
            });
        });
    }
}

TEST_CASE("conv1d property: no output depends on a later input") {
    rng random(config().seed + 11);
    for (const plait_dtype type : floats)
        for (const plait_layout layout : layouts)
            for (const int64_t k : {3, 4, 9}) {
                conv1d_call c = conv1d(PLAIT_FORWARD, type, 2, 5, 150, k);
                c.layout = layout;
                c.silu = true;
                c.used = {PLAIT_BIAS, PLAIT_STATE_IN};
                const conv1d_inputs in = random_inputs(c, conv1d_filling::uniform, random);
                const int64_t from = random.between(1, 149);
                conv1d_inputs changed = in;
                for (int64_t b = 0; b < 2; ++b)
                    for (int64_t ch = 0; ch < 5; ++ch)
                        for (int64_t t = from; t < 150; ++t) changed.x.at(b, ch, t) = NAN;
                for_each_candidate(c, [&](const candidate &by) {
                    const auto a = result_of(c, in, by), b = result_of(c, changed, by);
                    int64_t early = 0, late = 0;
                    for (size_t e = 0; e < a.values.at(PLAIT_Y).size(); ++e) {
                        const double x = a.values.at(PLAIT_Y)[e], y = b.values.at(PLAIT_Y)[e];
                        const int64_t t = static_cast<int64_t>(e) % 150;
                        early += t < from && !(x == y);
                        late += t >= from && !std::isnan(y);
                    }
                    CHECK(early == 0);
                    CHECK(late == 0); // each of them sees its own sample
                });
            }
}

TEST_CASE("conv1d property: a unit tap is a delay, exactly") {
    rng random(config().seed + 12);
    for (const plait_dtype type : floats)
        for (const plait_layout layout : layouts)
            for (const int64_t k : widths())
                for (const int64_t delay : {int64_t{0}, k / 2, k - 1}) {
                    conv1d_call c = conv1d(PLAIT_FORWARD, type, 2, 9, 77, k);
                    c.layout = layout;
                    conv1d_inputs in = random_inputs(c, conv1d_filling::uniform, random);
                    for (long double &w : in.w.v) w = 0;
                    for (int64_t ch = 0; ch < 9; ++ch) in.w.at(0, ch, k - 1 - delay) = 1;
                    for_each_candidate(c, [&](const candidate &by) {
                        const conv1d_outcome out = result_of(c, in, by);
                        int64_t wrong = 0;
                        for (size_t e = 0; e < in.x.v.size(); ++e) {
                            const int64_t t = static_cast<int64_t>(e) % 77;
                            const long double want =
                                t < delay ? 0 : in.x.v[e - static_cast<size_t>(delay)];
                            wrong += out.values.at(PLAIT_Y)[e] != static_cast<double>(want);
                        }
                        CHECK(wrong == 0);
                    });
                }
}

TEST_CASE("conv1d property: BCT = BTC, any pitch, any base, the same bits") {
    const int items = config().small ? 20 : config().brief ? 60 : 200;
    for (int i = 0; i < items; ++i) {
        rng random(derive(config().seed, static_cast<uint64_t>(910000 + i)));
        const conv1d_call any = random_conv1d(random, 20000);
        const conv1d_call plain = laid_out(any, PLAIT_BCT, 0, 0);
        const conv1d_inputs in = random_inputs(plain, conv1d_filling::uniform, random);
        std::map<std::string, conv1d_outcome> first;
        for (const plait_layout layout : layouts)
            for (const int64_t pitch : {0, 5})
                for (const int64_t shift : {0, 1, 3}) {
                    const conv1d_call c = laid_out(any, layout, pitch, shift);
                    for_each_candidate(c, [&](const candidate &by) {
                        const conv1d_outcome out = result_of(c, in, by);
                        // Sums over tokens have an order that a plan may choose by layout and
                        // promised alignment (of one element by 1 and by 3), but not by a base.
                        const std::string sums = by.name + std::to_string(layout) +
                                                 std::to_string(pitch) + (shift ? "loose" : "");
                        conv1d_outcome samples = out;
                        samples.values.erase(PLAIT_DW);
                        samples.values.erase(PLAIT_DBIAS);
                        const auto check = [&](const std::string &key, const conv1d_outcome &now) {
                            const auto known = first.find(key);
                            if (known != first.end()) CHECK(difference(known->second, now) == "");
                            first.emplace(key, now);
                        };
                        check(by.name, samples);
                        check(sums, out);
                    });
                }
    }
}

TEST_CASE("conv1d property: forward and update give the same bits by every candidate") {
    const int items = config().small ? 30 : config().brief ? 100 : 300;
    for (int i = 0; i < items; ++i) {
        rng random(derive(config().seed, static_cast<uint64_t>(920000 + i)));
        const conv1d_call c = random_conv1d(random, 20000);
        if (c.direction == PLAIT_BACKWARD) continue; // its sums have an order of their own
        const conv1d_inputs in = random_inputs(c, conv1d_filling::uniform, random);
        std::optional<conv1d_outcome> first;
        for_each_candidate(c, [&](const candidate &by) {
            if (by.narrowest == "exact") return; // the definition rounds less
            conv1d_outcome out = result_of(c, in, by);
            if (first) CHECK(difference(*first, out) == "");
            if (!first) first = std::move(out);
        });
    }
}

TEST_CASE("conv1d property: two runs have the same bits, dw and dbias too") {
    const int items = config().small ? 20 : config().brief ? 40 : 120;
    for (int i = 0; i < items; ++i) {
        rng random(derive(config().seed, static_cast<uint64_t>(930000 + i)));
        const conv1d_call c = random_conv1d(random, 60000);
        const conv1d_inputs in = random_inputs(c, conv1d_filling::uniform, random);
        for_each_candidate(c, [&](const candidate &by) {
            CHECK(difference(result_of(c, in, by), result_of(c, in, by)) == "");
        });
    }
}

TEST_CASE("conv1d property: the number of threads changes no bit") {
    if (on_device()) return;
    plait_context *raw = nullptr;
    REQUIRE(plait_context_create(&raw, PLAIT_CPU, 0) == PLAIT_OK);
    const context_ptr ctx(raw);
    for (int i = 0; i < (config().brief ? 10 : 60); ++i) {
        rng random(derive(config().seed, static_cast<uint64_t>(940000 + i)));
        const conv1d_call c = random_conv1d(random, 100000);
        const conv1d_inputs in = random_inputs(c, conv1d_filling::uniform, random);
        const desc_ptr desc = desc_of(c);
        for_each_candidate(c, [&](const candidate &by) {
            std::optional<conv1d_outcome> first;
            for (const int threads : {1, 2, 3}) {
                REQUIRE(plait_context_set_threads(ctx.get(), threads) == PLAIT_OK);
                plait_plan *made = nullptr;
                const pref_ptr pref = preferences(by.name);
                REQUIRE(plait_plan_create(&made, ctx.get(), desc.get(), pref.get()) == PLAIT_OK);
                const plan_ptr plan(made);
                conv1d_bound bound(c, desc.get(), plan.get(), in);
                REQUIRE(bound.execute() == PLAIT_OK);
                conv1d_outcome out;
                for (const plait_role role : bound.written()) out.values[role] = bound.values(role);
                if (first) CHECK(difference(*first, out) == "");
                if (!first) first = std::move(out);
            }
        });
    }
}

TEST_CASE("conv1d property: large calls that use all threads are right and repeat") {
    for (const plait_layout layout : layouts)
        for (const plait_direction direction : {PLAIT_FORWARD, PLAIT_BACKWARD}) {
            if (config().small || config().brief) continue;
            conv1d_call c = conv1d(direction, PLAIT_BF16, 2, 70, 519, 4);
            c.layout = layout;
            c.used = {PLAIT_BIAS, PLAIT_STATE_IN, PLAIT_STATE_OUT};
            c.silu = true;
            rng random(config().seed);
            const conv1d_inputs in = random_inputs(c, conv1d_filling::uniform, random);
            expect(c, in, roundoff_of(c));
            for_each_candidate(c, [&](const candidate &by) {
                CHECK(difference(result_of(c, in, by), result_of(c, in, by)) == "");
            });
        }
}

TEST_CASE("conv1d property: SiLU has no NaN for finite arguments, and its limits") {
    const double inf = HUGE_VAL;
    const double points[] = {-88, -100, -1000, -87.5, -104, 88, 100, 1000, 0, inf, NAN, -20, -3e4};
    const int64_t n = static_cast<int64_t>(std::size(points));
    for (const plait_dtype type : floats)
        for (const plait_layout layout : layouts)
            for (const plait_direction direction : {PLAIT_FORWARD, PLAIT_BACKWARD}) {
                conv1d_call c = conv1d(direction, type, 1, 3, n, 1);
                c.layout = layout;
                c.silu = true;
                rng random(config().seed);
                conv1d_inputs in = random_inputs(c, conv1d_filling::uniform, random);
                for (long double &w : in.w.v) w = 1;
                for (long double &d : in.dy.v) d = 1;
                for (int64_t ch = 0; ch < 3; ++ch)
                    for (int64_t t = 0; t < n; ++t) in.x.at(0, ch, t) = points[t];
                for_each_candidate(c, [&](const candidate &by) {
                    const conv1d_outcome out = result_of(c, in, by);
                    const auto &v = out.values.at(direction == PLAIT_FORWARD ? PLAIT_Y : PLAIT_DX);
                    for (size_t e = 0; e < v.size(); ++e) {
                        const double p = points[e % static_cast<size_t>(n)];
                        CAPTURE(p);
                        if (std::isnan(p)) {
                            CHECK(std::isnan(v[e]));
                        } else if (std::isinf(p)) {
                            if (direction == PLAIT_FORWARD) CHECK(v[e] == inf);
                        } else {
                            const auto want =
                                direction == PLAIT_FORWARD ? silu(p) : silu_derivative(p);
                            CHECK(std::fabs(v[e] - want) <=
                                  1e-36 + 2 * half_ulp(type, want) + 4e-6 * std::fabs(want));
                        }
                    }
                });
            }
}

TEST_CASE("conv1d property: an infinite weight reaches only the inputs that it meets") {
    constexpr int64_t length = 150, channels = 9;
    for (const plait_dtype type : floats)
        for (const plait_layout layout : layouts)
            for (const int64_t k : {2, 4, 9})
                for (const int64_t tap : {int64_t{0}, k - 1})
                    for (const bool states : {false, true}) {
                        conv1d_call c = conv1d(PLAIT_BACKWARD, type, 2, channels, length, k);
                        c.layout = layout;
                        if (states) c.used = {PLAIT_STATE_IN};
                        rng random(config().seed);
                        conv1d_inputs in = random_inputs(c, conv1d_filling::uniform, random);
                        for (long double &d : in.dy.v) d = 1;
                        for (int64_t ch = 1; ch < channels; ch += 3) in.w.at(0, ch, tap) = HUGE_VAL;
                        // dx[p] has the term w[tap] dy[p + ahead]: if there is such a token.
                        const int64_t ahead = k - 1 - tap;
                        for_each_candidate(c, [&](const candidate &by) {
                            const conv1d_outcome out = result_of(c, in, by);
                            int64_t wrong = 0;
                            for (const plait_role role : {PLAIT_DX, PLAIT_DSTATE_IN}) {
                                const auto found = out.values.find(role);
                                if (found == out.values.end()) continue;
                                const bool state = role == PLAIT_DSTATE_IN;
                                const int64_t n = state ? k - 1 : length;
                                for (size_t e = 0; e < found->second.size(); ++e) {
                                    const int64_t i = static_cast<int64_t>(e);
                                    const int64_t met = i % n - (state ? n : 0) + ahead;
                                    const bool infinite =
                                        i / n % channels % 3 == 1 && met >= 0 && met < length;
                                    wrong += infinite ? found->second[e] != HUGE_VAL
                                                      : !std::isfinite(found->second[e]);
                                }
                            }
                            CHECK(wrong == 0);
                        });
                    }
}

} // namespace plait::test
