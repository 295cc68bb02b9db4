// What only a device can show of kda: graphs whose replays have new tokens, offsets and slots, and
// streams at the same time. (Reports K12, K16.)
#include "tests/gpu/gpu.h"
#include "tests/support/kda_check.h"

#include <memory>

namespace plait::test {
namespace {

/// Decode with states in slots, packed tokens forward and backward, a layer backward.
std::vector<kda_call> device_calls() {
    std::vector<kda_call> calls;
    kda_call decode = kda_layer(PLAIT_FORWARD, PLAIT_BF16, 24, 1, 2, 4, 128, 128);
    decode.slots = {40, -1};
    decode.alias = true;
    decode.used.push_back(PLAIT_STATUS);
    calls.push_back(decode);
    for (const plait_direction direction : {PLAIT_FORWARD, PLAIT_BACKWARD}) {
        kda_call packed = kda_layer(direction, PLAIT_BF16, 1, 150, 2, 4, 64, 128);
        packed.varlen = {6, 150};
        packed.used.push_back(PLAIT_STATUS);
        calls.push_back(packed);
    }
    calls.push_back(kda_layer(PLAIT_BACKWARD, PLAIT_F32, 2, 70, 2, 4, 128, 96));
    return calls;
}

} // namespace

TEST_CASE("K16, kda graph: a captured execute gives the new right answer at each replay") {
    rng random(derive(config().seed, 74));
    for (const kda_call &c : device_calls())
        for_each_candidate(c, [&](const candidate &by) {
            const desc_ptr desc = desc_of(c);
            const plan_ptr plan = plan_by(by.name, desc.get());
            kda_bound bound(c, desc.get(), plan.get(), random_inputs(c, random));
            const test_stream stream;
            cudaGraph_t graph = nullptr;
            cudaGraphExec_t exec = nullptr;
            // Global mode refuses every call that could synchronise or allocate.
            REQUIRE_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
            CHECK(bound.execute(static_cast<cudaStream_t>(stream)) == PLAIT_OK);
            REQUIRE_CUDA(cudaStreamEndCapture(stream, &graph));
            REQUIRE_CUDA(cudaGraphInstantiate(&exec, graph, 0));
            for (int replay = 0; replay < 3; ++replay) {
                const kda_inputs in = random_inputs(c, random);
                bound.put(in);
                REQUIRE_CUDA(cudaGraphLaunch(exec, stream));
                stream.wait();
                const kda_outcome out = bound.outcome();
                CHECK(out.fault == "");
                CHECK(judge(c, kda_reference(c, in), out, by).wrong == "");
            }
            REQUIRE_CUDA(cudaGraphExecDestroy(exec));
            REQUIRE_CUDA(cudaGraphDestroy(graph));
        });
}

TEST_CASE("K12, kda streams: two streams with a workspace each run one plan at the same time") {
    rng random(derive(config().seed, 75));
    for (const kda_call &c : device_calls()) {
        if (c.alias) continue; // many turns would go on from each other's states
        for_each_candidate(c, [&](const candidate &by) {
            const desc_ptr desc = desc_of(c);
            const plan_ptr plan = plan_by(by.name, desc.get());
            const test_stream streams[2];
            std::unique_ptr<kda_bound> bound[2];
            kda_outcome alone[2];
            for (int i : {0, 1}) {
                const kda_inputs in = random_inputs(c, random);
                alone[i] = result_of(c, in, by);
                bound[i] = std::make_unique<kda_bound>(c, desc.get(), plan.get(), in);
            }
            for (int turn = 0; turn < 20; ++turn)
                for (int i : {0, 1})
                    CHECK(bound[i]->execute(static_cast<cudaStream_t>(streams[i])) == PLAIT_OK);
            for (int i : {0, 1}) {
                streams[i].wait();
                const kda_outcome out = bound[i]->outcome();
                CHECK(out.fault == "");
                CHECK(difference(alone[i], out) == "");
            }
        });
    }
}

} // namespace plait::test
