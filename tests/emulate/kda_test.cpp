// Plans of kda on emulated kernels in every order of threads, and the table of sequences.
#include "lib/cuda/kda/offsets_layout.h"
#include "lib/cuda/kernel_table.h"
#include "tests/emulate/orders.h"
#include "tests/support/kda_check.h"

#include <algorithm>
#include <cmath>

namespace plait::test {
namespace {

/// All orders give the same bits, and the right ones.
void check_orders(const kda_call &call, rng &random) {
    const kda_inputs in = random_inputs(call, random);
    const kda_results ref = kda_reference(call, in);
    for_each_candidate(call, [&](const candidate &by) {
        kda_outcome first;
        for (const emulation::settings &order : walking_orders) {
            emulation::current_settings() = order;
            const kda_outcome out = result_of(call, in, by);
            emulation::current_settings() = {};
            if (!out.fault.empty()) return; // result_of has reported it
            if (first.values.empty()) first = out;
            CHECK(difference(first, out) == "");
        }
        CHECK(judge(call, ref, first, by).wrong == "");
        note_count("emulated plans of " + by.name);
    });
}

struct table {
    std::vector<impl::kda_sequence> sequences;
    std::vector<impl::kda_chunk> chunks;
    int32_t status = -1;
};

/// kda.offsets for packed sequences, by the emulator.
table table_of(const std::vector<int64_t> &cu, const std::vector<int32_t> &slots, int64_t tokens,
               int64_t longest, int64_t pool, int64_t chunk) {
    table out;
    const auto count = static_cast<int64_t>(cu.size()) - 1;
    out.sequences.resize(static_cast<size_t>(count + 1));
    out.chunks.resize(static_cast<size_t>(tokens / chunk + count));
    std::vector<uint64_t> owners(static_cast<size_t>(pool));
    impl::kda_offsets_args a{};
    a.cu = cu.data();
    a.slots = pool > 0 ? slots.data() : nullptr;
    a.table = out.sequences.data();
    a.chunks = out.chunks.data();
    a.owners = pool > 0 ? owners.data() : nullptr;
    a.status = &out.status;
    a.sequences = count;
    a.tokens = tokens;
    a.max_length = longest;
    a.slot_count = pool;
    a.chunk = chunk;
    a.chunk_slots = static_cast<int64_t>(out.chunks.size());
    a.pad = -1;
    a.wide = true;
    const impl::kda_launch l = impl::kda_offsets_launch();
    emulation::launch_shape shape;
    shape.grid[0] = l.grid;
    shape.block[0] = l.threads;
    shape.shared_bytes = l.smem_bytes;
    CHECK(emulation::launch(impl::cuda::find_kernel("kda.offsets", l.variant), shape, &a, {}) ==
          "");
    return out;
}

/// The definition in words of offsets_layout.h.
table expected_table(const std::vector<int64_t> &cu, const std::vector<int32_t> &slots,
                     int64_t tokens, int64_t longest, int64_t pool, int64_t chunk) {
    table out;
    out.status = 0;
    int64_t reached = 0, owned = 0;
    std::vector<int32_t> taken;
    const size_t count = cu.size() - 1;
    for (size_t n = 0; n < count; ++n) {
        if (cu[n] >= 0 && cu[n] <= tokens) reached = std::max(reached, cu[n]);
        bool good = cu[n] == reached && cu[n] <= cu[n + 1] && cu[n + 1] <= tokens &&
                    cu[n + 1] - cu[n] <= longest && (n > 0 || cu[0] == 0);
        bool pad = false;
        if (good && pool > 0) {
            pad = slots[n] == -1;
            good = pad || (slots[n] >= 0 && slots[n] < pool &&
                           std::count(taken.begin(), taken.end(), slots[n]) == 0);
            if (good && !pad) taken.push_back(slots[n]);
        }
        if (!good && out.status == 0) out.status = static_cast<int32_t>(n) + 1;
        const bool live = good && !pad;
        impl::kda_sequence e{owned, 0, owned, static_cast<int64_t>(out.chunks.size()), -1, 0};
        if (live) {
            e = {cu[n], cu[n + 1] - cu[n], owned, e.first_chunk, pool > 0 ? slots[n] : -1, 1};
            owned = cu[n + 1];
        }
        for (int64_t c = 0; c < e.length; c += chunk)
            out.chunks.push_back({static_cast<int64_t>(n), e.begin + c});
        out.sequences.push_back(e);
    }
    out.sequences.push_back({tokens, 0, owned, static_cast<int64_t>(out.chunks.size()), -1, 0});
    REQUIRE(out.chunks.size() <= static_cast<size_t>(tokens / chunk) + count);
    out.chunks.resize(static_cast<size_t>(tokens / chunk) + count, {-1, 0});
    return out;
}

} // namespace

TEST_CASE("emulated kda: forward in every order of threads, more keys than a tile, few columns") {
    rng random(derive(config().seed, 10));
    for (const auto &[k, v, t] : {std::array<int64_t, 3>{64, 64, 19},
                                  {128, 40, 9},
                                  {100, 8, 5},
                                  {192, 12, 5},
                                  {256, 20, 4},
                                  {300, 130, 3},
                                  {128, 64, 6},
                                  {128, 32, 5},
                                  {64, 64, 2},
                                  {64, 32, 3},
                                  {128, 64, 1},
                                  {128, 32, 1},
                                  {64, 32, 1}}) {
        kda_call c = kda_layer(PLAIT_FORWARD, PLAIT_BF16, 1, t, 1, 2, k, v);
        c.orientation = k % 8 == 0 && k != 192 && v != 32 ? PLAIT_STATE_KV : PLAIT_STATE_VK;
        check_orders(c, random);
        c.varlen = {3, t};
        c.slots = {5, -1};
        c.used.push_back(PLAIT_STATUS);
        c.types[PLAIT_STATE_IN] = c.types[PLAIT_STATE_OUT] = PLAIT_BF16;
        check_orders(c, random);
    }
}

TEST_CASE("emulated kda: chunks of 64 tokens in every order of threads") {
    rng random(derive(config().seed, 11));
    for (const auto &[k, v, t] :
         {std::array<int64_t, 3>{128, 32, 200}, {64, 80, 129}, {100, 9, 16}, {160, 24, 63}}) {
        kda_call c = kda_layer(PLAIT_FORWARD, k == 64 ? PLAIT_F16 : PLAIT_BF16, 1, t, 1, 1, k, v);
        if (k == 64) c.gate = PLAIT_GATE_SOFTPLUS, c.lower_bound = 0;
        check_orders(c, random);
    }
    // So many blocks that each has 32 values, by pairs or not; one order, as it is much.
    emulation::current_settings() = walking_orders[2];
    for (const int64_t sequences : {5, 9}) {
        kda_call many = kda_layer(PLAIT_FORWARD, PLAIT_BF16, 1, 71, 1, 1, 72, 250);
        many.varlen = {sequences, sequences == 5 ? 66 : 17};
        const kda_inputs in = random_inputs(many, random);
        const kda_results ref = kda_reference(many, in);
        for_each_candidate(many, [&](const candidate &by) {
            if (by.name != "kda.fwd.cuda.chunk64") return;
            CHECK(judge(many, ref, result_of(many, in, by), by).wrong == "");
            note_count("emulated plans of " + by.name);
        });
    }
    emulation::current_settings() = {};
}

TEST_CASE("emulated kda: chunks of 64 tokens with gates at their bound, of -5 and below") {
    rng random(derive(config().seed, 14));
    for (const double bound : {-5.0, -12.5})
        for (const int period : {1, 2, 9}) { // so many tokens from one at the bound to the next
            kda_call c = kda_layer(PLAIT_FORWARD, PLAIT_BF16, 1, 79, 1, 1, 128, 16);
            c.lower_bound = bound;
            kda_inputs in = random_inputs(c, random);
            kda_array &g = in.arrays.at(PLAIT_G);
            for (int64_t t = 0; t < c.length; ++t)
                for (int64_t i = 0; i < 128; ++i)
                    g.at(0, t, 0, i) = (t + i) % period == 0 ? 100 : -100;
            const kda_results ref = kda_reference(c, in);
            int found = 0;
            for_each_candidate(c, [&](const candidate &by) {
                if (by.name != "kda.fwd.cuda.chunk64") return;
                ++found;
                CHECK(judge(c, ref, result_of(c, in, by), by).wrong == "");
            });
            CHECK(found == 1);
        }
}

TEST_CASE(
    "emulated kda: backward in every order of threads, with tails, segments and packed tokens") {
    rng random(derive(config().seed, 30));
    for (const auto &[k, v, t] : {std::array<int64_t, 3>{64, 36, 19},
                                  {128, 72, 11},
                                  {100, 8, 40},
                                  {192, 12, 5},
                                  {256, 20, 5},
                                  {300, 35, 4}}) {
        kda_call c = kda_layer(PLAIT_BACKWARD, PLAIT_BF16, 1, t, 1, 2, k, v);
        c.gate = k % 3 ? PLAIT_GATE_BOUNDED : PLAIT_GATE_SOFTPLUS;
        if (c.gate == PLAIT_GATE_SOFTPLUS) c.lower_bound = 0;
        c.orientation = k % 8 == 0 && k != 192 ? PLAIT_STATE_KV : PLAIT_STATE_VK;
        check_orders(c, random);
        c.varlen = {3, t};
        c.used.push_back(PLAIT_STATUS);
        check_orders(c, random);
    }
}

TEST_CASE(
    "emulated kda: chunks of packed sequences are those of separate ones, none sees later tokens") {
    rng random(derive(config().seed, 12));
    kda_call one = kda_layer(PLAIT_FORWARD, PLAIT_BF16, 1, 65, 1, 2, 64, 16);
    kda_call packed = one;
    packed.length = 20 + 65 + 6;
    packed.varlen = {3, 65};
    kda_inputs in = random_inputs(packed, random);
    in.offsets = {0, 20, 20, 85};
    kda_inputs alone;
    for (auto &[role, a] : in.arrays) {
        for (long double &x : a.v)
            if (std::isnan(x)) x = 0.25;
        const bool token = a.n[0] == 1 && a.n[1] == packed.length;
        alone.arrays[role] = token ? slice(a, 20, 85) : a;
        if (a.n[0] != 3) continue;
        kda_array row({1, a.n[1], a.n[2], a.n[3]});
        std::copy_n(a.v.end() - static_cast<std::ptrdiff_t>(row.v.size()), row.v.size(),
                    row.v.begin());
        alone.arrays[role] = row;
    }
    kda_inputs changed = alone;
    for (auto &[role, a] : changed.arrays)
        if (a.n[1] == 65)
            for (int64_t t = 40; t < 65; ++t)
                for (int64_t h = 0; h < a.n[2]; ++h)
                    for (int64_t i = 0; i < a.n[3]; ++i) a.at(0, t, h, i) = -30 * random.unit();
    int found = 0;
    for (const candidate &by : candidates_for(one)) {
        if (by.name != "kda.fwd.cuda.chunk64") continue;
        ++found;
        const auto whole = result_of(packed, in, by).values.at(PLAIT_O);
        const auto single = result_of(one, alone, by).values.at(PLAIT_O);
        const auto other = result_of(one, changed, by).values.at(PLAIT_O);
        constexpr int64_t row = 2 * 16;
        CHECK(std::equal(single.begin(), single.end(), whole.begin() + 20 * row));
        CHECK(std::equal(single.begin(), single.begin() + 40 * row, other.begin()));
        CHECK(!std::equal(single.begin(), single.end(), other.begin()));
    }
    CHECK(found == 1);
}

TEST_CASE("emulated kda: backward by chunks of 64 tokens in every order of threads") {
    rng random(derive(config().seed, 13));
    for (const auto &[k, v, t] : {std::array<int64_t, 3>{64, 40, 65}, {100, 16, 66}}) {
        kda_call c = kda_layer(PLAIT_BACKWARD, k == 64 ? PLAIT_BF16 : PLAIT_F16, 1, t, 1, 2, k, v);
        if (k == 100) c.gate = PLAIT_GATE_SOFTPLUS, c.lower_bound = 0, c.beta_scale.reset();
        if (k == 100) c.varlen = {3, t};
        check_orders(c, random);
    }
}

TEST_CASE("emulated kda: the table of sequences for any offsets and slots") {
    rng random(derive(config().seed, 20));
    for (int i = 0; i < 30; ++i) {
        const int64_t count = i == 0 ? 0 : i < 3 ? 1100 : random.between(1, 12);
        const int64_t tokens = random.pick<int64_t>({0, 1, 50, 3000}),
                      chunk = random.between(1, 64);
        std::vector<int64_t> cu{0};
        std::vector<int32_t> slots;
        for (int64_t n = 0; n < count; ++n) {
            cu.push_back(std::min(tokens, cu.back() + random.between(0, 2 * tokens / count)));
            slots.push_back(static_cast<int32_t>(random.between(-1, 2 * count)));
        }
        for (int x = 0; i % 2 && x < 2; ++x)
            cu[static_cast<size_t>(random.between(0, count))] =
                random.pick<int64_t>({-1, 0, 7, tokens, tokens + 1, INT64_MIN, INT64_MAX});
        const int64_t longest = i % 5 ? tokens : tokens / 2, pool = i % 3 ? 2 * count : 0;
        const table got = table_of(cu, slots, tokens, longest, pool, chunk);
        const table want = expected_table(cu, slots, tokens, longest, pool, chunk);
        CHECK(got.status == want.status);
        for (size_t n = 0; n < want.sequences.size(); ++n) {
            const impl::kda_sequence &a = got.sequences[n], &b = want.sequences[n];
            CHECK(a.begin == b.begin);
            CHECK(a.length == b.length);
            CHECK(a.gap == b.gap);
            CHECK(a.first_chunk == b.first_chunk);
            CHECK(a.slot == b.slot);
            CHECK(a.live == b.live);
        }
        for (size_t n = 0; n < want.chunks.size(); ++n) {
            CHECK(got.chunks[n].sequence == want.chunks[n].sequence);
            CHECK(got.chunks[n].first == want.chunks[n].first);
        }
    }
}

} // namespace plait::test
