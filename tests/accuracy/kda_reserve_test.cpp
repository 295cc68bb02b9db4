// RESERVE: what any forward leaves any backward of the backend can read, and nothing else passes
// for it.
#include "tests/support/kda_check.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

namespace plait::test {
namespace {

/// So few values of all heads that a reserve on a device has records alone.
bool has_few_values(const kda_call &c) { return c.sequences() * c.value_heads * c.dim_v < 6144; }

/// Every backward candidate with the reserve of every forward candidate.
void every_pair(const kda_call &call, const kda_inputs &in) {
    const std::string token = token_of(desc_of(call).get());
    CAPTURE(token);
    const kda_results ref = kda_reference(call, in);
    const std::vector<candidate> writers = candidates_for(forward_of(call)),
                                 readers = candidates_for(call);
    CHECK(!writers.empty());
    CHECK(!readers.empty());
    for (const candidate &writer : writers) {
        CAPTURE(writer.name);
        kda_inputs with = in;
        std::string fault;
        with.reserve = reserve_by(call, in, writer, fault);
        CHECK(fault == "");
        if (!fault.empty()) continue;
        for (const candidate &reader : readers) {
            const kda_outcome out = result_of(call, with, reader);
            if (!out.fault.empty()) continue;
            const candidate by = reader_of(call, reader);
            const kda_verdict v = judge(call, ref, out, by);
            CHECK_MESSAGE(v.wrong == "", reader.name);
            note_ratio(reader.name, v.ratio, token, config().seed);
            note_count("kda reserve: " + writer.name + " to " + reader.name);
            // Records are those that it would have made; states of many heads are from a kernel
            // that makes O beside them.
            if (on_device() && has_few_values(call)) {
                kda_call alone = call;
                alone.reserve = false;
                alone.used.erase(std::remove(alone.used.begin(), alone.used.end(), PLAIT_STATUS),
                                 alone.used.end());
                CHECK(difference(out, result_of(alone, in, reader)) == "");
            }
        }
    }
}

/// Backward of what kernels for chunks take; on the CPU also of everything else.
kda_call random_call(rng &r) {
    const bool chunks = on_device() || r.chance(0.5);
    kda_call c;
    do {
        c = chunks ? random_kda_chunks(r, PLAIT_BACKWARD, 2000000) : random_kda(r, 60000);
    } while (!c.backward());
    c.reserve = true;
    return c;
}

kda_call layer(plait_dtype q) {
    kda_call c = kda_layer(PLAIT_BACKWARD, q, 2, 70, 1, 2, 64, 48);
    c.used.push_back(PLAIT_STATUS);
    c.reserve = true;
    return c;
}

} // namespace

TEST_CASE("kda reserve: every writer with every reader, random problems") {
    const int items = config().small ? 8 : 40;
    for (int i = 0; i < items; ++i) {
        rng random(derive(config().seed, static_cast<uint64_t>(980000 + i)));
        const kda_call c = random_call(random);
        every_pair(c, random_inputs(c, random));
    }
}

TEST_CASE("kda reserve: empty sequences, tails, beta of 0, what lies behind the last sequence") {
    rng random(derive(config().seed, 981000));
    for (const plait_dtype q : {PLAIT_BF16, PLAIT_F32}) {
        if (on_device() && q == PLAIT_F32) continue;
        kda_call c = layer(q);
        c.batch = 1;
        c.length = 280;
        c.varlen = {7, 130};
        c.beta_scale.reset();
        kda_inputs in = random_inputs(c, random);
        in.offsets = {0, 0, 1, 65, 65, 193, 256, 260};
        for (auto &[role, a] : in.arrays)
            for (long double &x : a.v)
                if (std::isnan(x)) x = -0.5;
        for (size_t e = 0; e < in.arrays[PLAIT_BETA].v.size(); e += 3)
            in.arrays[PLAIT_BETA].v[e] = 0;
        every_pair(c, in);
    }
}

TEST_CASE("kda reserve: many heads, with states of chunks too") {
    rng random(derive(config().seed, 981500));
    // 64 keys; 128 keys and blocks of 64 and of 128 values.
    for (const auto &[sequences, k, v] :
         {std::array<int64_t, 3>{100, 64, 64}, {50, 96, 128}, {70, 128, 128}}) {
        kda_call c = kda_layer(PLAIT_BACKWARD, PLAIT_BF16, 1, 240, 1, 1, k, v);
        c.varlen = {sequences, 130};
        c.reserve = true;
        CHECK(!has_few_values(c));
        kda_inputs in = random_inputs(c, random);
        for (auto &[role, a] : in.arrays)
            for (long double &x : a.v)
                if (std::isnan(x)) x = -0.5;
        in.offsets = {0, 130, 130, 131, 196};
        while (in.offsets.size() <= static_cast<size_t>(sequences))
            in.offsets.push_back(std::min<int64_t>(in.offsets.back() + 1, 236));
        every_pair(c, in);
    }
}

TEST_CASE("kda reserve: one of another problem, or of none, is refused") {
    rng random(derive(config().seed, 982000));
    const kda_call c = layer(PLAIT_BF16);
    const kda_inputs in = random_inputs(c, random);
    const candidate writer = candidates_for(forward_of(c)).front();
    std::string fault;
    std::vector<bytes> strangers;
    for (int what = 0; what < 5; ++what) {
        kda_call other = c; // of the same bytes
        if (what == 0) other.scale = 0.5;
        if (what == 1) other.lower_bound = -4;
        if (what == 2) other.eps.reset();
        if (what == 3) other.used = {PLAIT_DT_BIAS, PLAIT_STATE_OUT};
        if (what == 4) other.types[PLAIT_G] = PLAIT_F32;
        strangers.push_back(reserve_by(other, random_inputs(other, random), writer, fault));
        REQUIRE(fault == "");
    }
    strangers.emplace_back(strangers[0].size(), std::byte{0xA5}); // never written
    const bytes own = reserve_by(c, in, writer, fault);
    REQUIRE(fault == "");
    for (size_t word = 0; word < 4; ++word) { // each word of the header counts
        strangers.push_back(own);
        strangers.back()[8 * word] ^= std::byte{1};
    }
    for_each_candidate(c, [&](const candidate &by) {
        for (const bytes &stranger : strangers) {
            kda_inputs with = in;
            with.reserve = stranger;
            REQUIRE(stranger.size() == own.size());
            const kda_outcome out = run(c, with, by);
            if (!on_device()) {
                CHECK(out.fault.find("execute: plait_execute: reserve: ") == 0);
                continue;
            }
            CHECK(out.fault == "");
            CHECK(out.status == -1);
            for (const auto &[role, values] : out.values)
                for (const double x : values) CHECK_MESSAGE(x == 0, plait_role_name(role));
        }
        kda_inputs with = in;
        with.reserve = own;
        const kda_outcome out = result_of(c, with, by);
        CHECK(out.status == 0);
    });
}

TEST_CASE("kda reserve: a forward writes the same results, and the same reserve twice") {
    rng random(derive(config().seed, 983000));
    const kda_call backward = layer(PLAIT_BF16);
    kda_inputs in = random_inputs(backward, random);
    in.arrays[PLAIT_STATE_OUT] = kda_array(backward.shape(PLAIT_STATE_OUT));
    kda_call with = forward_of(backward), without = with;
    without.reserve = false;
    for_each_candidate(with, [&](const candidate &by) {
        CHECK(difference(result_of(with, in, by), result_of(without, in, by)) == "");
        std::string fault;
        CHECK((reserve_by(backward, in, by, fault) == reserve_by(backward, in, by, fault)));
        CHECK(fault == "");
    });
}

} // namespace plait::test
