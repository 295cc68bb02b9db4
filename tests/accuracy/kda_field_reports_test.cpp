// Inputs that broke other implementations of gated delta rules, and what must happen here. What
// only a device can show (grids, graphs, speed) is not here.
#include "tests/support/kda_check.h"

#include <algorithm>
#include <cmath>

namespace plait::test {
namespace {

rng seeded(uint64_t item) { return rng(derive(config().seed, 1100000 + item)); }

constexpr plait_direction both[] = {PLAIT_FORWARD, PLAIT_BACKWARD};

void set_gates(const kda_call &c, kda_inputs &in, rng &random, double low, double high) {
    for (long double &v : in.arrays[PLAIT_G].v)
        v = rounded(c.type(PLAIT_G), low + (high - low) * random.unit());
}

/// Every output against the definition, and finite.
void expect_finite(const kda_call &c, const kda_inputs &in) {
    expect(c, in);
    for_each_candidate(c, [&](const candidate &by) {
        for (const auto &[role, all] : result_of(c, in, by).values) {
            CAPTURE(plait_role_name(role));
            CHECK(std::all_of(all.begin(), all.end(), [](double v) { return std::isfinite(v); }));
        }
    });
}

kda_call log_gates(plait_direction direction, plait_dtype type, int64_t length) {
    kda_call c = kda(direction, type, 1, length, 2, 2, 8, 12);
    c.eps = 1e-6;
    c.types[PLAIT_G] = PLAIT_F32;
    c.used = {PLAIT_STATE_IN, PLAIT_STATE_OUT};
    return c;
}

} // namespace

TEST_CASE("K2, K32: a split over ranks, backward: the state's gradient handed back, any length") {
    rng random = seeded(2);
    const kda_call whole = kda_layer(PLAIT_BACKWARD, PLAIT_F64, 1, 45, 2, 4, 6, 10);
    const kda_inputs in = random_inputs(whole, random);
    for_each_candidate(whole, [&](const candidate &by) {
        const kda_outcome all = result_of(whole, in, by);
        kda_call first = whole, forward = whole;
        first.length = forward.length = 19;
        forward.direction = PLAIT_FORWARD;
        kda_call second = whole;
        second.length = 26;
        kda_inputs a = in, b = in;
        for (const plait_role role : {PLAIT_Q, PLAIT_K, PLAIT_V, PLAIT_G, PLAIT_BETA, PLAIT_DO}) {
            a.arrays[role] = slice(in[role], 0, 19);
            b.arrays[role] = slice(in[role], 19, 45);
        }
        a.arrays[PLAIT_STATE_OUT] = kda_array(whole.shape(PLAIT_STATE_OUT));
        b.arrays[PLAIT_STATE_IN] = kda_reference(forward, a).arrays.at(PLAIT_STATE_OUT);
        const kda_outcome late = result_of(second, b, by);
        kda_array handed(whole.shape(PLAIT_STATE_IN));
        const std::vector<double> &d = late.values.at(PLAIT_DSTATE_IN);
        handed.v.assign(d.begin(), d.end());
        a.arrays[PLAIT_DSTATE_OUT] = handed;
        const kda_outcome early = result_of(first, a, by);
        for (const plait_role role : {PLAIT_DQ, PLAIT_DK, PLAIT_DV, PLAIT_DG, PLAIT_DBETA}) {
            CAPTURE(plait_role_name(role));
            std::vector<double> joined = early.values.at(role);
            const std::vector<double> &rest = late.values.at(role);
            joined.insert(joined.end(), rest.begin(), rest.end());
            double worst = 0;
            for (size_t e = 0; e < joined.size(); ++e)
                worst = std::max(worst, std::fabs(joined[e] - all.values.at(role)[e]));
            CHECK(worst <= 1e-11);
        }
        const std::vector<double> &x = early.values.at(PLAIT_DA_LOG);
        for (size_t e = 0; e < x.size(); ++e)
            CHECK(std::fabs(x[e] + late.values.at(PLAIT_DA_LOG)[e] -
                            all.values.at(PLAIT_DA_LOG)[e]) <= 1e-10);
    });
}

TEST_CASE("K3, K19: dimensions of keys and values that are no powers of two, and differ") {
    rng random = seeded(3);
    for (const auto &[k, v] : {std::pair<int64_t, int64_t>{60, 100}, {100, 60}, {64, 64}, {7, 1}})
        for (const plait_direction direction : both)
            expect(kda_layer(direction, PLAIT_BF16, 1, 18, 1, 2, k, v), random);
    CHECK(kda_layer(PLAIT_FORWARD, PLAIT_BF16, 1, 1, 1, 1, 60, 100).shape(PLAIT_STATE_IN)[3] ==
          100);
}

TEST_CASE("K4, K13, K37: gates of any strength, down to -2661 a token") {
    rng random = seeded(4);
    for (const double strongest : {-11.0, -90.0, -400.0, -1000.0, -2661.0})
        for (const plait_direction direction : both) {
            CAPTURE(strongest);
            const kda_call c = log_gates(direction, PLAIT_F32, 70);
            kda_inputs in = random_inputs(c, random);
            set_gates(c, in, random, strongest, 0);
            expect_finite(c, in);
            for (size_t e = 0; e < in.arrays[PLAIT_G].v.size(); e += 3)
                in.arrays[PLAIT_G].v[e] = rounded(PLAIT_F32, strongest); // masks between weak gates
            expect_finite(c, in);
        }
    CHECK(std::exp(-2661.0) == 0);
}

TEST_CASE("K5: grouped value heads; a count that is no multiple is refused") {
    rng random = seeded(5);
    for (const plait_direction direction : both)
        for (const int64_t group : {2, 3, 4})
            expect(kda_layer(direction, PLAIT_F32, 2, 17, 2, 2 * group, 8, 12), random);
    desc_ptr desc;
    CHECK(make_desc(kda(PLAIT_FORWARD, PLAIT_BF16, 1, 1, 4, 6, 8, 8), desc) ==
          PLAIT_ERR_INVALID_ARGUMENT);
    CHECK(std::string(plait_last_error()) ==
          "plait_kda_create: value_heads=6 is not a multiple of heads=4");
}

TEST_CASE("K7, K8: several heads and rows, backward, off their alignment") {
    rng random = seeded(8);
    kda_call c = kda_layer(PLAIT_BACKWARD, PLAIT_BF16, 2, 66, 3, 3, 16, 16);
    expect(c, random);
    for (const plait_role role : c.floating()) c.offsets[role] = 1;
    expect(c, random);
    CHECK(c.offsets.size() > 12);
}

TEST_CASE("K9, K10: the orientation of a state is said, and K differs from V with a first state") {
    for (const plait_direction direction : both) {
        rng one = seeded(9), two = seeded(9);
        kda_call kv = kda_layer(direction, PLAIT_F32, 2, 20, 2, 4, 5, 9), vk = kv;
        kv.orientation = PLAIT_STATE_KV;
        vk.orientation = PLAIT_STATE_VK;
        const kda_inputs a = random_inputs(kv, one), b = random_inputs(vk, two);
        expect(kv, a);
        expect(vk, b);
        for_each_candidate(kv, [&](const candidate &by) {
            CHECK(difference(result_of(kv, a, by), result_of(vk, b, by)) == "");
        });
    }
    plait_desc *raw = nullptr;
    REQUIRE(plait_desc_from_token(&raw, "kda.fwd:f32:b1:t1:h1:k2:v3:gate=log:+state_in") ==
            PLAIT_OK);
    const desc_ptr unsaid(raw);
    CHECK(plait_desc_check(unsaid.get()) == PLAIT_ERR_INVALID_DESC);
    CHECK(std::string(plait_last_error()).find("orientation of states is not set") !=
          std::string::npos);
}

TEST_CASE("K14, K34: softplus gates below -5.5 a token on average; lower bounds below -6") {
    rng random = seeded(14);
    for (const plait_direction direction : both) {
        kda_call c = kda_layer(direction, PLAIT_BF16, 1, 129, 2, 2, 16, 8);
        c.gate = PLAIT_GATE_SOFTPLUS;
        c.lower_bound = 0;
        kda_inputs in = random_inputs(c, random);
        set_gates(c, in, random, 4, 12);
        expect_finite(c, in);
        for (const double bound : {-6.0, -20.0, -300.0}) {
            kda_call bounded = kda_layer(direction, PLAIT_BF16, 1, 70, 1, 1, 16, 8);
            bounded.lower_bound = bound;
            in = random_inputs(bounded, random);
            set_gates(bounded, in, random, -2, 8);
            expect_finite(bounded, in);
        }
    }
    CHECK(std::log1p(std::exp(8.0)) > 5.5);
}

TEST_CASE("K15, K17, K23: gates saturated at the bound, and the gradient of the gate") {
    rng random = seeded(15);
    for (const plait_direction direction : both)
        for (const plait_dtype type : {PLAIT_BF16, PLAIT_F32}) {
            const kda_call c = kda_layer(direction, type, 1, 130, 2, 2, 16, 8);
            kda_inputs in = random_inputs(c, random);
            set_gates(c, in, random, 2, 6);
            expect_finite(c, in);
            set_gates(c, in, random, 20, 40); // the derivative is 1e-9 and below, not 0
            expect_finite(c, in);
        }
    CHECK(1 / (1 + std::exp(-40.0)) == 1); // what 1 - s would make of it
}

TEST_CASE("K18: the gate is named in the token, and none is the default") {
    plait_desc *raw = nullptr;
    REQUIRE(plait_desc_from_token(&raw, "kda.fwd:f32:b1:t1:h1:k2:v3") == PLAIT_OK);
    const desc_ptr unsaid(raw);
    CHECK(plait_desc_check(unsaid.get()) == PLAIT_ERR_INVALID_DESC);
    CHECK(std::string(plait_last_error()).find("the gate is not set") != std::string::npos);
    for (const char *gate : {"log", "softplus", "bounded.-5"}) {
        const std::string token = std::string("kda.fwd:f32:b1:t1:h1:k2:v3:gate=") + gate;
        plait_desc *named = nullptr;
        REQUIRE(plait_desc_from_token(&named, token.c_str()) == PLAIT_OK);
        const desc_ptr desc(named);
        CHECK(plait_desc_check(desc.get()) == PLAIT_OK);
        CHECK(token_of(desc.get()) == token);
    }
}

TEST_CASE("K21, K24, K35: packed sequences, empty ones and ones of a single token") {
    rng random = seeded(21);
    for (const plait_direction direction : both)
        for (const std::vector<int64_t> &cu :
             {std::vector<int64_t>{0, 57, 59, 64}, {0, 0, 5, 5, 6, 6}, {0, 0}, {0, 64, 64, 70}}) {
            kda_call c = kda_layer(direction, PLAIT_BF16, 1, cu.back(), 2, 2, 8, 12);
            c.varlen = {static_cast<int64_t>(cu.size()) - 1, c.length};
            kda_inputs in = random_inputs(c, random);
            for (auto &[role, a] : in.arrays)
                for (long double &v : a.v)
                    if (std::isnan(v)) v = -0.5;
            in.offsets = cu;
            expect_finite(c, in);
            const plait_role from = direction == PLAIT_FORWARD ? PLAIT_STATE_IN : PLAIT_DSTATE_OUT;
            const plait_role to = direction == PLAIT_FORWARD ? PLAIT_STATE_OUT : PLAIT_DSTATE_IN;
            const size_t each = static_cast<size_t>(2 * 8 * 12);
            for_each_candidate(c, [&](const candidate &by) {
                const kda_outcome out = result_of(c, in, by);
                for (size_t n = 0; n + 1 < cu.size(); ++n)
                    for (size_t e = n * each; cu[n] == cu[n + 1] && e < (n + 1) * each; ++e)
                        REQUIRE(out.values.at(to)[e] == static_cast<double>(in[from].v[e]));
            });
        }
}

TEST_CASE("K22: lengths whose tail is 15 of 64, last sequence of a packed batch") {
    rng random = seeded(22);
    kda_call c = kda_layer(PLAIT_BACKWARD, PLAIT_F32, 1, 64 + 79, 1, 1, 8, 12);
    c.varlen = {2, 79};
    kda_inputs in = random_inputs(c, random);
    in.offsets = {0, 64, 143};
    for (auto &[role, a] : in.arrays)
        for (long double &v : a.v)
            if (std::isnan(v)) v = -0.5;
    expect_finite(c, in);
    CHECK(in.offsets.back() == c.length);
}

TEST_CASE("K25: backward twice has the same bits") {
    rng random = seeded(25);
    const kda_call c = kda_layer(PLAIT_BACKWARD, PLAIT_BF16, 2, 65, 2, 6, 8, 12);
    const kda_inputs in = random_inputs(c, random);
    for_each_candidate(c, [&](const candidate &by) {
        CHECK(difference(result_of(c, in, by), result_of(c, in, by)) == "");
    });
}

TEST_CASE("K26: rows with a pitch, and tensors inside larger ones") {
    rng random = seeded(26);
    for (const plait_direction direction : both) {
        kda_call c = kda_layer(direction, PLAIT_F32, 2, 19, 2, 4, 8, 12);
        for (const plait_role role : c.floating()) c.strides[role] = c.packed(role, 5);
        expect(c, random);
        c.strides.clear();
        // q, k and v are columns of one row of a projection: [token][q | k | v].
        const int64_t row = 2 * 2 * 8 + 4 * 12;
        for (const plait_role role : {PLAIT_Q, PLAIT_K}) c.strides[role] = {19 * row, row, 8, 1};
        c.strides[PLAIT_V] = {19 * row, row, 12, 1};
        expect(c, random);
        CHECK(c.steps(PLAIT_V)[1] == row);
    }
}

TEST_CASE("K27: value 4096 and prediction 4098: their difference is formed before any rounding") {
    for (const plait_direction direction : both) {
        kda_call c = kda(direction, PLAIT_BF16, 1, 1, 1, 1, 1, 1);
        c.used = {PLAIT_STATE_IN, PLAIT_STATE_OUT};
        kda_inputs in;
        for (const plait_role role : c.floating())
            if (c.reads(role)) in.arrays[role] = kda_array(c.shape(role), 1);
        in.arrays[PLAIT_STATE_OUT] = kda_array(c.shape(PLAIT_STATE_OUT));
        in.arrays[PLAIT_G] = kda_array(c.shape(PLAIT_G), 0);
        in.arrays[PLAIT_V] = kda_array(c.shape(PLAIT_V), 4096);
        in.arrays[PLAIT_STATE_IN] = kda_array(c.shape(PLAIT_STATE_IN), 4098);
        if (direction == PLAIT_BACKWARD) {
            in.arrays[PLAIT_DO].v[0] = 0;
            in.arrays[PLAIT_DSTATE_OUT].v[0] = 1;
        }
        for_each_candidate(c, [&](const candidate &by) {
            const kda_outcome out = result_of(c, in, by);
            if (direction == PLAIT_FORWARD)
                CHECK(out.values.at(PLAIT_STATE_OUT)[0] == 4096);
            else
                CHECK(out.values.at(PLAIT_DBETA)[0] == -2);
        });
    }
}

TEST_CASE("K28: states above 65504; F16 is no type of a state") {
    rng random = seeded(28);
    for (const plait_dtype type : {PLAIT_F32, PLAIT_BF16}) {
        kda_call c = log_gates(PLAIT_FORWARD, PLAIT_F16, 5);
        c.types[PLAIT_STATE_IN] = c.types[PLAIT_STATE_OUT] = type;
        c.types[PLAIT_O] = PLAIT_F32;
        kda_inputs in = random_inputs(c, random);
        for (long double &v : in.arrays[PLAIT_STATE_IN].v) v = rounded(type, 1e6L * v);
        expect_finite(c, in);
    }
    const desc_ptr desc = desc_of(log_gates(PLAIT_FORWARD, PLAIT_F16, 5));
    CHECK(plait_desc_set_dtype(desc.get(), PLAIT_STATE_OUT, PLAIT_F16) ==
          PLAIT_ERR_INVALID_ARGUMENT);
}

TEST_CASE("K29: beta of a 16-bit logit is not rounded") {
    rng random = seeded(29);
    for (const plait_direction direction : both) {
        kda_call c = kda_layer(direction, PLAIT_F32, 1, 60, 1, 1, 8, 12);
        c.types[PLAIT_BETA] = PLAIT_BF16;
        c.beta_scale = 2;
        expect(c, random);
        CHECK(c.type(PLAIT_BETA) == PLAIT_BF16);
    }
}

TEST_CASE("K30, K31: beta of 0, rows of zeros, decays that underflow: no 0 * Inf") {
    rng random = seeded(30);
    for (const plait_direction direction : both) {
        const kda_call c = log_gates(direction, PLAIT_BF16, 66);
        kda_inputs in = random_inputs(c, random);
        set_gates(c, in, random, -26, -25); // 6.5e-12
        for (size_t e = 0; e < in.arrays[PLAIT_BETA].v.size(); e += 3)
            in.arrays[PLAIT_BETA].v[e] = 0;
        for (const plait_role role : {PLAIT_Q, PLAIT_K})
            for (int64_t i = 0; i < c.dim_k; ++i)
                in.arrays[role].at(0, 4, 0, i) = in.arrays[role].at(0, 65, 1, i) = 0;
        expect_finite(c, in);
        CHECK(in[PLAIT_BETA].v[3] == 0);
    }
}

TEST_CASE("K36: the gradient of dt_bias is a sum of unrounded terms") {
    rng random = seeded(36);
    kda_call c = kda_layer(PLAIT_BACKWARD, PLAIT_BF16, 2, 300, 1, 1, 4, 6);
    expect(c, random);
    c.dropped.push_back(PLAIT_DG); // nothing of it is stored
    expect(c, random);
    CHECK(!c.writes(PLAIT_DG));
}

} // namespace plait::test
