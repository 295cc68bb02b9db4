// Every kernel of kda in every variant at least once, on problems of a few tokens: the run that the
// checkers of memory, races and barriers watch.
#include "tests/support/kda_check.h"

#include <initializer_list>

namespace plait::test {
namespace {

void use(kda_call &c, std::initializer_list<plait_role> roles) {
    c.used.insert(c.used.end(), roles);
}

/// Plain; a layer with states in place; packed sequences with STATUS and, forward, slots;
/// row-padded and off alignment.
kda_call form(plait_direction direction, plait_dtype q, int64_t k, int64_t v, int64_t t,
              int which) {
    kda_call c = kda_layer(direction, q, which == 2 ? 1 : 2, t, 1, 2, k, v);
    c.orientation = which % 2 ? PLAIT_STATE_KV : PLAIT_STATE_VK;
    if (which == 0) {
        c = kda(direction, q, 1, t, 2, 2, k, v);
        c.gate = PLAIT_GATE_SOFTPLUS;
    } else if (which == 1) {
        c.alias = direction == PLAIT_FORWARD;
    } else if (which == 2) {
        c.varlen = {4, t};
        use(c, {PLAIT_STATUS});
        if (direction == PLAIT_FORWARD) c.slots = {6, -1};
        c.types[PLAIT_STATE_IN] = PLAIT_BF16;
    } else {
        for (const plait_role role : c.floating()) {
            c.strides[role] = c.packed(role, 3);
            c.offsets[role] = 1;
        }
    }
    return c;
}

} // namespace

TEST_CASE("kernels: kda, every direction, width, type and form") {
    rng random(derive(config().seed, 73));
    int calls = 0;
    for (const plait_direction direction : {PLAIT_FORWARD, PLAIT_BACKWARD})
        for (const plait_dtype q : {PLAIT_BF16, PLAIT_F16, PLAIT_F32})
            for (const int64_t k : {64, 128, 96, 192, 256, 300})
                for (int which = 0; which < 4; ++which) {
                    // Under a checker a third of the types with each width and form.
                    if (config().small && (static_cast<int>(q) + k + which) % 3 != 0) continue;
                    const int64_t v = k == 96 ? 40 : k < 256 ? k : 12;
                    expect(form(direction, q, k, v, k < 192 ? 37 : 6, which), random);
                    ++calls;
                }
    CHECK(calls > 40);
}

/// Tensor cores need some more tokens, and every width of a scan.
TEST_CASE("kernels: kda backward in chunks at every width") {
    rng random(derive(config().seed, 74));
    for (const int64_t k : {64, 128, 256})
        expect(form(PLAIT_BACKWARD, PLAIT_BF16, k, 64, 66, 1), random);
}

} // namespace plait::test
