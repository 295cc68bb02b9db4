// Convolutions through the program: plan, candidates, files, verify, bench, wisdom.
#include "src/cli/case/npy.h"
#include "tests/cli/program.h"

using namespace cli_test;
using plait::cases::npy_reader;
using plait::cases::npy_type;

namespace {

template <class T>
void write_npy(const std::string &name, npy_type type, const std::vector<int64_t> &shape,
               const std::vector<T> &values) {
    plait::cases::npy_writer file(scratch(name), type, shape);
    file.write(values.data(), static_cast<int64_t>(values.size()));
    file.commit();
}

std::vector<float> read_npy(const std::string &name, const std::vector<int64_t> &shape) {
    npy_reader file(scratch(name));
    CHECK(file.shape == shape);
    std::vector<float> values(static_cast<size_t>(file.elements));
    file.read(values.data(), file.elements);
    return values;
}

outcome on_cpu(std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--backend", "cpu"});
    return program(arguments);
}

} // namespace

TEST_CASE("plan and candidates") {
    const outcome plan = on_cpu({"plan", "conv1d.fwd:f32:b2:c8:t64:k4:silu:+bias"});
    INFO(plan.err);
    CHECK(plan.code == 0);
    CHECK(contains(plan.out, "conv1d.fwd"));
    const outcome list = on_cpu({"candidates", "conv1d.bwd:f32:b2:c8:t64:k4:silu:+bias"});
    CHECK(list.code == 0);
    CHECK(contains(list.out, "conv1d.bwd.cpu.ref"));
    check_refused({"plan", "conv1d.fwd:f32:b2:c8:t64:k4:state=lin.2", "--backend", "cpu"}, 2,
                  "entries=2");
    check_refused({"plan", "conv1d.fwd:f32:b2:c8:k4", "--backend", "cpu"}, 2, "conv1d");
}

TEST_CASE("run: forward with states, then a step") {
    write_npy<float>("x.npy", {'f', 4}, {1, 2, 4}, {1, 2, 3, 4, 1, 0, 0, 1});
    write_npy<float>("w.npy", {'f', 4}, {2, 2}, {10, 1, -1, 2});
    write_npy<float>("bias.npy", {'f', 4}, {2}, {100, 0});
    write_npy<float>("s.npy", {'f', 4}, {1, 2, 1}, {5, 7});
    const outcome o = on_cpu({"run", "conv1d.fwd:f32:b1:c2:t4:k2:+bias+state_in+state_out", "--in",
                              "x=x.npy", "--in", "w=w.npy", "--in", "bias=bias.npy", "--in",
                              "state_in=s.npy", "--out", "y=y.npy", "--out", "state_out=s2.npy"});
    INFO(o.err);
    CHECK(o.code == 0);
    CHECK(read_npy("y.npy", {1, 2, 4}) == std::vector<float>{151, 112, 123, 134, -5, -1, 0, 2});
    CHECK(read_npy("s2.npy", {1, 2, 1}) == std::vector<float>{4, 1});

    write_npy<float>("x1.npy", {'f', 4}, {1, 2, 1}, {9, 8});
    const outcome step = on_cpu({"run", "conv1d.update:f32:b1:c2:t1:k2:+bias", "--in", "x=x1.npy",
                                 "--in", "w=w.npy", "--in", "bias=bias.npy", "--in", "state=s2.npy",
                                 "--out", "y=y1.npy", "--out", "state=s3.npy"});
    INFO(step.err);
    CHECK(step.code == 0);
    CHECK(read_npy("y1.npy", {1, 2, 1}) == std::vector<float>{149, 15});
    CHECK(read_npy("s3.npy", {1, 2, 1}) == std::vector<float>{9, 8});
    check_refused({"run", "conv1d.update:f32:b1:c2:t1:k2", "--in", "x=x1.npy", "--in", "w=w.npy",
                   "--out", "y=no.npy"},
                  2, "role state is read and has no --in state=file.npy");
    const outcome wants = program({"run", "conv1d.update:f32:b1:c2:t1:k2:state=ring.3:slots=5.-1"});
    CHECK(contains(wants.out, "--in --out"));
    CHECK(contains(wants.out, "position"));
    CHECK(contains(wants.out, "(5, 2, 3)"));
}

TEST_CASE("run: packed sequences, slots of nobody, indices that break the rules") {
    write_npy<float>("p.npy", {'f', 4}, {1, 1, 6}, {1, 2, 3, 4, 5, 6});
    write_npy<float>("pw.npy", {'f', 4}, {1, 2}, {10, 1});
    write_npy<int64_t>("cu.npy", {'i', 8}, {4}, {0, 2, 2, 5});
    write_npy<int32_t>("slots.npy", {'i', 4}, {3}, {2, 0, -1});
    const auto packed = [](const std::string &offsets, const std::string &slots) {
        return std::vector<std::string>{
            "run",       "conv1d.fwd:f32:b1:c1:t6:k2:seqs=3.4:slots=4.-1:+state_out",
            "--backend", "cpu",
            "--in",      "x=p.npy",
            "--in",      "w=pw.npy",
            "--in",      "cu_seqlens=" + offsets,
            "--in",      "slots=" + slots,
            "--out",     "y=py.npy",
            "--out",     "state_out=ps.npy"};
    };
    const outcome o = program(packed("cu.npy", "slots.npy"));
    INFO(o.err);
    CHECK(o.code == 0);
    // The third sequence has no slot, the last token no sequence.
    CHECK(read_npy("py.npy", {1, 1, 6}) == std::vector<float>{1, 12, 0, 0, 0, 0});
    CHECK(read_npy("ps.npy", {4, 1, 1}) == std::vector<float>{0, 0, 2, 0});

    write_npy<int64_t>("back.npy", {'i', 8}, {4}, {0, 3, 2, 5});
    write_npy<int32_t>("twice.npy", {'i', 4}, {3}, {2, 2, -1});
    check_refused(packed("back.npy", "slots.npy"), 2,
                  "back.npy: cu_seqlens: offset 2, 2, is less than the one before it");
    check_refused(packed("cu.npy", "twice.npy"), 2,
                  "twice.npy: slots: slot 2 of row 1 is that of another row");
    write_npy<int32_t>("ids.npy", {'i', 4}, {3}, {0, 0, 0});
    check_refused(packed("ids.npy", "slots.npy"), 2, "holds i4; role cu_seqlens is i64");
}

TEST_CASE("verify: every candidate of problems of every kind") {
    const outcome o =
        on_cpu({"verify", "--all", "conv1d.fwd:f32:b2:c5:t33:k4",
                "conv1d.fwd:bf16:b2:t70:c24:k4:silu:+bias",
                "conv1d.fwd:f16:b3:c4:t21:k4:silu:residual:+state_in+state_out",
                "conv1d.fwd:f64:b2:c3:t65:k7:silu:+state_in+state_out+seq_idx",
                "conv1d.fwd:f32:b1:t200:c6:k4:seqs=17.30:+state_out",
                "conv1d.fwd:bf16:b1:c6:t200:k4:seqs=17.30:slots=20.3:"
                "+state_in+state_out+status:state_out@state_in",
                "conv1d.fwd:f32:b2:c3:t40:k4:x.s200.50.1.a4:y.bf16", "conv1d.fwd:f32:b0:c3:t4:k4",
                "conv1d.bwd:f32:b2:c5:t40:k4:silu:+bias+state_in+state_out",
                "conv1d.bwd:bf16:b1:t90:c5:k3:seqs=9.30:-dw",
                "conv1d.bwd:f16:b2:c5:t40:k4:silu:residual:+bias+seq_idx:w.f32",
                "conv1d.update:f32:b5:c9:t1:k4:silu:+bias",
                "conv1d.update:bf16:b5:t3:c9:k4:state=ring.8:slots=9.-1"});
    INFO(o.out);
    INFO(o.err);
    CHECK(o.code == 0);
    for (const char *name : {"conv1d.fwd.cpu.ref", "conv1d.bwd.cpu.ref", "conv1d.update.cpu.ref"})
        CHECK(contains(o.out, name));
    CHECK(!contains(o.out, "WRONG"));
    const nlohmann::json j = on_cpu({"verify", "--json", "--sample", "3", "--seed", "9",
                                     "conv1d.fwd:f32:b2:c50:t33:k4:silu"})
                                 .json();
    CHECK(j.at("compared") == 3);
    CHECK(j.at("ok") == true);
    CHECK(j.at("error").get<double>() > 0);
    CHECK(j.at("ratio").get<double>() < 1);
}

TEST_CASE("bench: bytes and yardstick of each direction") {
    const std::vector<std::string> tokens = {"conv1d.fwd:f32:b4:c16:t64:k4:silu:+bias",
                                             "conv1d.bwd:f32:b4:c16:t64:k4:silu:+bias",
                                             "conv1d.update:bf16:b4:c16:t1:k4:+bias",
                                             "conv1d.update:f32:b4:c16:t1:k4:state=ring.7:+bias"};
    std::vector<std::string> all = {"bench", "--json", "--threads", "1", "--reps", "3"};
    all.insert(all.end(), tokens.begin(), tokens.end());
    const outcome o = on_cpu(all);
    INFO(o.err);
    CHECK(o.code == 0);
    const std::vector<nlohmann::json> lines = o.json_lines();
    REQUIRE(lines.size() == 4);
    const int x = 4 * 16 * 64 * 4;
    CHECK(lines[0].at("bytes") == 2 * x);
    CHECK(lines[1].at("bytes") == 3 * x);
    // x and y, taps and biases; 3 entries read and 3 written, or 3 read and 1 written.
    CHECK(lines[2].at("bytes") == (2 * 4 * 16 + 16 * 4 + 16 + 4 * 16 * 6) * 2);
    CHECK(lines[3].at("bytes") == (2 * 4 * 16 + 16 * 4 + 16 + 4 * 16 * 4 + 4) * 4);
    for (const nlohmann::json &j : lines) {
        CHECK(j.at("r").get<double>() > 0);
        CHECK(j.at("places").get<int>() >= 1);
        CHECK(j.at("rel_err").get<double>() < 1e-2);
    }
}

TEST_CASE("wisdom") {
    const std::string token = "conv1d.fwd:f32:b2:c8:t64:k4:silu:+bias";
    CHECK(on_cpu({"wisdom", "make", token, "--out", "conv.wisdom"}).code == 0);
    CHECK(contains(program({"wisdom", "show", "conv.wisdom"}).out, token));
    const outcome o = on_cpu({"plan", token, "--wisdom", "conv.wisdom", "--wisdom-only"});
    CHECK(o.code == 0);
    CHECK(contains(o.out, "conv1d.fwd.cpu."));
}
