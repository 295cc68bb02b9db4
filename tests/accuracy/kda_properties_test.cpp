// What holds for Kimi Delta Attention without a reference, most of it bit by bit.
#include "tests/support/kda_check.h"

#include <algorithm>
#include <cmath>
#include <thread>

namespace plait::test {
namespace {

using values = std::vector<double>;

/// Tokens from..to of a token tensor that is packed as [token][rest].
values tokens(const values &all, int64_t length, int64_t from, int64_t to) {
    const auto each = static_cast<int64_t>(all.size()) / std::max<int64_t>(length, 1);
    return {all.begin() + from * each, all.begin() + to * each};
}

bool same(const values &a, const values &b) {
    return a.size() == b.size() &&
           std::equal(a.begin(), a.end(), b.begin(),
                      [](double x, double y) { return std::isnan(x) ? std::isnan(y) : x == y; });
}

bool is_token_role(plait_role role) {
    const int primal = role & 255;
    return primal >= PLAIT_Q && primal <= PLAIT_O;
}

/// Sequence n of a packed call as a call of its own.
kda_inputs sequence_of(const kda_inputs &in, int64_t n) {
    kda_inputs out;
    const auto i = static_cast<size_t>(n);
    for (const auto &[role, a] : in.arrays) {
        if (is_token_role(role)) {
            out.arrays[role] = slice(a, in.offsets[i], in.offsets[i + 1]);
        } else if (a.n[0] > 1 || role >= PLAIT_DSTATE_IN || role == PLAIT_STATE_IN ||
                   role == PLAIT_STATE_OUT) {
            kda_array row({1, a.n[1], a.n[2], a.n[3]});
            const size_t each = row.v.size();
            std::copy_n(a.v.begin() + static_cast<std::ptrdiff_t>(i * each), each, row.v.begin());
            out.arrays[role] = row;
        } else {
            out.arrays[role] = a;
        }
    }
    return out;
}

const std::vector<int64_t> odd_lengths = {0, 1, 15, 16, 17, 0, 63, 64, 65};

kda_call packed_layer(plait_direction direction, plait_dtype type) {
    int64_t sum = 0;
    for (const int64_t n : odd_lengths) sum += n;
    kda_call c = kda_layer(direction, type, 1, sum + 5, 2, 4, 8, 12);
    c.varlen = {static_cast<int64_t>(odd_lengths.size()), 65};
    return c;
}

std::vector<int64_t> offsets_of(const std::vector<int64_t> &lengths) {
    std::vector<int64_t> cu{0};
    for (const int64_t n : lengths) cu.push_back(cu.back() + n);
    return cu;
}

} // namespace

TEST_CASE("kda properties: packed sequences have the bits of separate ones") {
    for (const plait_direction direction : {PLAIT_FORWARD, PLAIT_BACKWARD})
        for (const plait_dtype type : {PLAIT_F32, PLAIT_BF16}) {
            rng random(derive(config().seed, 1000 + static_cast<uint64_t>(type)));
            const kda_call packed = packed_layer(direction, type);
            kda_inputs in = random_inputs(packed, random);
            in.offsets = offsets_of(odd_lengths);
            for (auto &[role, a] : in.arrays)
                for (long double &v : a.v)
                    if (std::isnan(v)) v = 0.25;
            for_each_candidate(packed, [&](const candidate &by) {
                const kda_outcome whole = result_of(packed, in, by);
                for (int64_t n = 0; n < packed.varlen->first; ++n) {
                    CAPTURE(n);
                    const int64_t from = in.offsets[size_t(n)], to = in.offsets[size_t(n) + 1];
                    kda_call one = packed;
                    one.varlen.reset();
                    one.length = to - from;
                    const kda_outcome alone = result_of(one, sequence_of(in, n), by);
                    for (const auto &[role, got] : alone.values) {
                        if (role == PLAIT_DA_LOG || role == PLAIT_DDT_BIAS) continue; // sums
                        CAPTURE(plait_role_name(role));
                        const values &all = whole.values.at(role);
                        if (is_token_role(role)) {
                            CHECK(same(got, tokens(all, packed.length, from, to)));
                        } else {
                            const auto each = static_cast<int64_t>(got.size());
                            CHECK(
                                same(got, {all.begin() + n * each, all.begin() + (n + 1) * each}));
                        }
                    }
                }
                for (const auto &[role, all] : whole.values) {
                    if (!is_token_role(role)) continue;
                    for (const double v :
                         tokens(all, packed.length, in.offsets.back(), packed.length))
                        CHECK(v == 0);
                }
            });
        }
}

TEST_CASE("K1, kda properties: no output depends on later tokens, to the last bit") {
    rng random(derive(config().seed, 2000));
    for (const plait_kda_gate gate : {PLAIT_GATE_LOG, PLAIT_GATE_SOFTPLUS, PLAIT_GATE_BOUNDED}) {
        kda_call c = kda_layer(PLAIT_FORWARD, PLAIT_F32, 2, 80, 1, 2, 16, 8);
        c.gate = gate;
        if (gate != PLAIT_GATE_BOUNDED) c.lower_bound = 0;
        if (gate == PLAIT_GATE_LOG) c.used = {PLAIT_STATE_IN, PLAIT_STATE_OUT};
        const kda_inputs in = random_inputs(c, random);
        for_each_candidate(c, [&](const candidate &by) {
            const kda_outcome whole = result_of(c, in, by);
            for (const int64_t kept : {1, 15, 16, 40, 64, 79}) {
                CAPTURE(kept);
                kda_inputs changed = in;
                for (auto &[role, a] : changed.arrays)
                    if (is_token_role(role))
                        for (int64_t b = 0; b < a.n[0]; ++b)
                            for (int64_t t = kept; t < a.n[1]; ++t)
                                for (int64_t h = 0; h < a.n[2]; ++h)
                                    for (int64_t i = 0; i < a.n[3]; ++i)
                                        a.at(b, t, h, i) = rounded(PLAIT_F32, -30 * random.unit());
                const kda_outcome other = result_of(c, changed, by);
                const int64_t row = c.length * 2 * c.dim_v;
                const values &x = whole.values.at(PLAIT_O), &y = other.values.at(PLAIT_O);
                for (int64_t b = 0; b < 2; ++b)
                    CHECK(same({x.begin() + b * row, x.begin() + b * row + kept * 2 * c.dim_v},
                               {y.begin() + b * row, y.begin() + b * row + kept * 2 * c.dim_v}));
                CHECK(!same(x, y));
            }
        });
    }
}

TEST_CASE("kda properties: two runs and every number of threads give the same bits") {
    for (const plait_direction direction : {PLAIT_FORWARD, PLAIT_BACKWARD}) {
        rng random(derive(config().seed, 3000));
        const kda_call c = kda_layer(direction, PLAIT_BF16, 3, 40, 3, 6, 8, 20);
        const kda_inputs in = random_inputs(c, random);
        for_each_candidate(c, [&](const candidate &by) {
            const kda_outcome first = result_of(c, in, by);
            CHECK(difference(first, result_of(c, in, by)) == "");
            if (on_device()) return;
            for (const int threads : {1, 2, 3, 7}) {
                CHECK(plait_context_set_threads(context(), threads) == PLAIT_OK);
                CHECK(difference(first, result_of(c, in, by)) == "");
            }
            CHECK(plait_context_set_threads(context(), 0) == PLAIT_OK);
        });
    }
}

TEST_CASE("kda properties: a split with the state handed over is the whole") {
    rng random(derive(config().seed, 4000));
    const kda_call whole = kda_layer(PLAIT_FORWARD, PLAIT_F64, 2, 70, 2, 4, 8, 12);
    const kda_inputs in = random_inputs(whole, random);
    for_each_candidate(whole, [&](const candidate &by) {
        const kda_outcome all = result_of(whole, in, by);
        for (const std::vector<int64_t> &cuts :
             {std::vector<int64_t>{0, 33, 70}, {0, 1, 2, 10, 18, 64, 70}}) {
            kda_array state = in[PLAIT_STATE_IN];
            for (size_t x = 0; x + 1 < cuts.size(); ++x) {
                kda_call part = whole;
                part.length = cuts[x + 1] - cuts[x];
                part.alias = true; // decoding in place
                kda_inputs piece = in;
                for (auto &[role, a] : piece.arrays)
                    if (is_token_role(role)) a = slice(a, cuts[x], cuts[x + 1]);
                piece.arrays[PLAIT_STATE_IN] = piece.arrays[PLAIT_STATE_OUT] = state;
                const kda_outcome out = result_of(part, piece, by);
                const values &got = out.values.at(PLAIT_O), &want = all.values.at(PLAIT_O);
                const int64_t each = part.length * 4 * 12, row = whole.length * 4 * 12;
                double worst = 0;
                for (int64_t b = 0; b < 2; ++b)
                    for (int64_t e = 0; e < each; ++e)
                        worst =
                            std::max(worst, std::fabs(got[size_t(b * each + e)] -
                                                      want[size_t(b * row + cuts[x] * 48 + e)]));
                CHECK(worst <= 1e-12);
                const values &last = out.values.at(PLAIT_STATE_OUT);
                state.v.assign(last.begin(), last.end());
            }
            const values &end = all.values.at(PLAIT_STATE_OUT);
            double worst = 0;
            for (size_t e = 0; e < end.size(); ++e)
                worst = std::max(worst, std::fabs(end[e] - static_cast<double>(state.v[e])));
            CHECK(worst <= 1e-12);
        }
    });
}

TEST_CASE("kda properties: results are linear in v and the first state") {
    rng random(derive(config().seed, 5000));
    const kda_call c = kda_layer(PLAIT_FORWARD, PLAIT_F32, 1, 50, 2, 2, 8, 12);
    const kda_inputs in = random_inputs(c, random);
    kda_inputs doubled = in;
    for (const plait_role role : {PLAIT_V, PLAIT_STATE_IN})
        for (long double &v : doubled.arrays.at(role).v) v *= 2;
    for_each_candidate(c, [&](const candidate &by) {
        kda_outcome once = result_of(c, in, by);
        for (auto &[role, all] : once.values)
            for (double &v : all) v *= 2; // exact: no rounding depends on a power of two
        CHECK(difference(once, result_of(c, doubled, by)) == "");
    });
}

TEST_CASE("kda properties: orthonormal keys without decay store and retrieve values") {
    kda_call c = kda(PLAIT_FORWARD, PLAIT_F32, 1, 8, 1, 1, 8, 5);
    c.scale = 1;
    kda_inputs in;
    for (const plait_role role : {PLAIT_Q, PLAIT_K, PLAIT_V, PLAIT_G, PLAIT_BETA})
        in.arrays[role] = kda_array(c.shape(role), role == PLAIT_BETA ? 1 : 0);
    for (int64_t t = 0; t < 8; ++t) {
        in.arrays[PLAIT_K].at(0, t, 0, t) = 1;
        in.arrays[PLAIT_Q].at(0, t, 0, t / 2) = 1; // one that was written before
        for (int64_t j = 0; j < 5; ++j) in.arrays[PLAIT_V].at(0, t, 0, j) = 10 * t + j;
    }
    for_each_candidate(c, [&](const candidate &by) {
        const kda_outcome out = result_of(c, in, by);
        for (int64_t t = 0; t < 8; ++t)
            for (int64_t j = 0; j < 5; ++j)
                CHECK(out.values.at(PLAIT_O)[size_t(t * 5 + j)] == 10.0 * (t / 2) + double(j));
    });
}

TEST_CASE("K11, kda properties: NaN stays in its sequence and head") {
    rng random(derive(config().seed, 6000));
    for (const plait_direction direction : {PLAIT_FORWARD, PLAIT_BACKWARD}) {
        const kda_call c = kda_layer(direction, PLAIT_F32, 2, 20, 2, 4, 8, 6);
        const kda_inputs clean = random_inputs(c, random);
        for (const plait_role role : {PLAIT_Q, PLAIT_V, PLAIT_G, PLAIT_BETA, PLAIT_STATE_IN}) {
            CAPTURE(plait_role_name(role));
            kda_inputs in = clean;
            if (role == PLAIT_STATE_IN)
                in.arrays[role].at(1, 1, 0, 0) = std::nanl("");
            else
                in.arrays[role].at(1, 0, role == PLAIT_Q ? 0 : 1, 0) = std::nanl("");
            for_each_candidate(c, [&](const candidate &by) {
                const kda_outcome a = result_of(c, clean, by), b = result_of(c, in, by);
                for (const auto &[out, x] : a.values) {
                    if (out == PLAIT_DA_LOG || out == PLAIT_DDT_BIAS) continue; // sums over rows
                    CAPTURE(plait_role_name(out));
                    const auto n = c.shape(out);
                    const values &y = b.values.at(out);
                    const bool state = !is_token_role(out);
                    const int64_t heads = state ? n[1] : n[2];
                    for (size_t e = 0; e < x.size(); ++e) {
                        const auto i = static_cast<int64_t>(e);
                        const int64_t row = i / (n[1] * n[2] * n[3]);
                        const int64_t h = state ? i / (n[2] * n[3]) % n[1] : i / n[3] % n[2];
                        // Heads that share the head of q and k with the one that was hit.
                        if (row == 1 && h * 2 < heads) continue;
                        REQUIRE(x[e] == y[e]);
                    }
                }
            });
        }
    }
}

TEST_CASE("kda properties: offsets and slots that break the rules are reported and contained") {
    rng random(derive(config().seed, 7000));
    const std::pair<std::vector<int64_t>, int32_t> broken[] = {
        {{0, 4, 3, 9}, 2},   {{1, 4, 6, 9}, 1}, {{0, 4, 6, 21}, 3}, {{0, -1, 6, 9}, 1},
        {{0, 4, 17, 18}, 2}, {{0, 4, 4, 9}, 0}, {{0, 0, 0, 0}, 0},
    };
    for (const plait_direction direction : {PLAIT_FORWARD, PLAIT_BACKWARD})
        for (const auto &[offsets, status] : broken) {
            kda_call c = kda_layer(direction, PLAIT_F32, 1, 20, 1, 2, 4, 6);
            c.varlen = {3, 12};
            c.used.push_back(PLAIT_STATUS);
            kda_inputs in = random_inputs(c, random);
            for (auto &[role, a] : in.arrays)
                for (long double &v : a.v)
                    if (std::isnan(v)) v = -0.5;
            in.offsets = offsets;
            CHECK(kda_reference(c, in).status == status);
            expect(c, in);
        }
    kda_call pool = kda_layer(PLAIT_FORWARD, PLAIT_F32, 5, 3, 1, 1, 4, 6);
    pool.slots = {4, -1};
    pool.used.push_back(PLAIT_STATUS);
    kda_inputs in = random_inputs(pool, random);
    for (auto &[role, a] : in.arrays)
        for (long double &v : a.v)
            if (std::isnan(v)) v = -0.5;
    for (const auto &[slots, status] :
         {std::pair<std::vector<int32_t>, int32_t>{{3, -1, 0, 2, 1}, 0},
          {{3, 4, 0, 2, 1}, 2},
          {{3, 0, 3, 2, 1}, 3},
          {{-2, 0, 3, 2, 1}, 1}}) {
        in.slot = slots;
        CHECK(kda_reference(pool, in).status == status);
        expect(pool, in);
    }
}

TEST_CASE("K12, kda properties: executes with their own workspaces may overlap") {
    if (on_device()) return;
    rng random(derive(config().seed, 8000));
    const kda_call c = kda_layer(PLAIT_BACKWARD, PLAIT_F32, 2, 30, 2, 4, 8, 6);
    const kda_inputs in = random_inputs(c, random);
    for_each_candidate(c, [&](const candidate &by) {
        const kda_outcome want = result_of(c, in, by);
        std::vector<kda_outcome> got(4);
        std::vector<std::thread> team;
        for (kda_outcome &one : got) team.emplace_back([&] { one = run(c, in, by); });
        for (std::thread &t : team) t.join();
        for (const kda_outcome &one : got) {
            CHECK(one.fault == "");
            CHECK(difference(want, one) == "");
        }
    });
}

} // namespace plait::test
