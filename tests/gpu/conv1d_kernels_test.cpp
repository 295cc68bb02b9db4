// Every kernel of conv1d in every variant at least once, on problems of a few tiles: the run that
// the checkers of memory, races and barriers watch.
#include "tests/support/conv1d_check.h"

namespace plait::test {
namespace {

/// Plain; states and ids, in place; packed sequences with states in slots; a base off alignment.
conv1d_call variant(conv1d_call c, int which, int64_t width) {
    c.silu = true;
    c.used = {PLAIT_BIAS};
    const bool backward = c.direction == PLAIT_BACKWARD;
    if (c.direction == PLAIT_UPDATE) {
        if (which == 1 || which == 3) {
            c.ring = true;
            c.entries = width + 1;
        }
        if (which == 2) {
            c.slots = {c.batch + 3, -1};
            c.used.push_back(PLAIT_STATUS);
        }
    } else if (which == 1) {
        c.used.insert(c.used.end(), {PLAIT_STATE_IN, PLAIT_STATE_OUT, PLAIT_SEQ_IDX});
        c.alias = !backward;
        c.residual = true;
    } else if (which == 2) {
        c.batch = 1;
        c.varlen = {6, c.length};
        c.used.insert(c.used.end(), {PLAIT_STATE_IN, PLAIT_STATE_OUT, PLAIT_STATUS});
        if (!backward) c.slots = {9, -1};
    }
    return which == 3 ? laid_out(c, c.layout, 3, 1) : c;
}

} // namespace

TEST_CASE("kernels: conv1d, every direction, type, layout and form") {
    rng random(derive(config().seed, 71));
    int calls = 0;
    for (const plait_direction direction : {PLAIT_FORWARD, PLAIT_BACKWARD, PLAIT_UPDATE})
        for (const plait_dtype x : {PLAIT_BF16, PLAIT_F16, PLAIT_F32, PLAIT_F64})
            for (const plait_layout layout : {PLAIT_BCT, PLAIT_BTC})
                for (const int64_t width : {1, 2, 3, 4, 7, 31})
                    for (int which = 0; which < 4; ++which) {
                        // Under a checker half of the types with each width.
                        if (config().small && (static_cast<int>(x) + width) % 2 != 0) continue;
                        const int64_t length = direction == PLAIT_UPDATE ? 1 + which % 2 : 515;
                        conv1d_call c = conv1d(direction, x, 2, 40, length, width);
                        c.layout = layout;
                        c = variant(c, which, width);
                        expect_close(c, random);
                        ++calls;
                    }
    CHECK(calls > 100);
}

/// Kernels of updates start while the one before them ends: they must not read its state too early.
TEST_CASE("kernels: conv1d, updates behind one another without a pause") {
    rng random(derive(config().seed, 72));
    const int rounds = config().small ? 1 : 20;
    for (const plait_dtype x : {PLAIT_BF16, PLAIT_F32})
        for (const plait_layout layout : {PLAIT_BCT, PLAIT_BTC})
            for (const int64_t entries : {3, 7}) {
                conv1d_call c = conv1d(PLAIT_UPDATE, x, 3, config().small ? 64 : 4096, 1, 4);
                c.layout = layout;
                c.entries = entries;
                // As many steps as entries: a sample that one loses is still missing at the end.
                const conv1d_inputs in = random_inputs(c, conv1d_filling::uniform, random);
                conv1d_inputs now = in;
                conv1d_results ref;
                for (int64_t i = 0; i < entries; ++i) {
                    ref = conv1d_reference(now, roundoff_of(c));
                    now.state = ref.state_out.value; // samples, as they are
                }
                const desc_ptr desc = desc_of(c);
                for (const candidate &by : applicable(desc.get())) {
                    CAPTURE(by.name);
                    const plan_ptr plan = plan_by(by.name, desc.get());
                    conv1d_bound bound(c, desc.get(), plan.get(), in);
                    for (int round = 0; round < rounds; ++round) {
                        bound.put(in);
                        for (int64_t i = 0; i < entries; ++i) REQUIRE(bound.execute() == PLAIT_OK);
                        target().wait();
                        conv1d_outcome out;
                        for (const plait_role role : bound.written())
                            out.values[role] = bound.values(role);
                        CHECK(judge(c, ref, out).wrong == "");
                        CHECK(bound.damage() == "");
                    }
                }
            }
}

} // namespace plait::test
