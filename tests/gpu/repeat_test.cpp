// Two runs of a plan have the same bits, a hundred times, by every candidate.
#include "tests/gpu/gpu.h"

namespace plait::test {

TEST_CASE("repeat: every candidate gives the same bits a hundred times") {
    rng random(config().seed);
    std::vector<wht_call> calls = typical_calls();
    // Clusters that walk over rows, blocks that take many tickets.
    for (const plait_dtype type : {PLAIT_F32, PLAIT_BF16})
        calls.push_back(rows_of(type, config().small ? 2 : 20, 1 << 18));
    for (const wht_call &c : calls) {
        const desc_ptr desc = desc_of(c);
        const std::string token = token_of(desc.get());
        CAPTURE(token);
        const wht_data data = random_data(c, filling::uniform, random);
        for (const candidate &by : applicable(desc.get())) {
            CAPTURE(by.name);
            const plan_ptr plan = plan_by(by.name, desc.get());
            bound_call bound(c, plan.get(), data);
            REQUIRE(bound.execute() == PLAIT_OK);
            target().wait();
            const bytes first = bound.y();
            int different = 0;
            for (int i = 1; i < (config().small ? 3 : 100); ++i) {
                bound.poison();
                REQUIRE(bound.execute() == PLAIT_OK);
                target().wait();
                different += bound.y() != first;
            }
            CHECK(different == 0);
        }
    }
}

} // namespace plait::test
