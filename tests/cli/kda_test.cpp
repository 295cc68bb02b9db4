// Kimi Delta Attention through the program: plan, candidates, files, verify, bench.
#include "src/cli/case/inputs.h"
#include "src/cli/case/npy.h"
#include "tests/cli/program.h"

#include <algorithm>
#include <cmath>

using namespace cli_test;
using plait::cases::npy_reader;
using plait::cases::npy_type;
using plait::cases::split_token;
using plait::cases::token_parts;

namespace {

void write_npy(const std::string &name, const std::vector<int64_t> &shape,
               const std::vector<float> &values) {
    plait::cases::npy_writer file(scratch(name), npy_type{'f', 4}, shape);
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

TEST_CASE("kda: tokens come apart") {
    const token_parts p = split_token("kda.bwd:bf16:b2:t300:h2:hv6:k64:v128:gate=bounded.-5:"
                                      "beta=logit.1:state=vk:+dt_bias-da_log:g.f32:v.a2");
    CHECK(p.is_kda());
    CHECK(p.extent('b') == 2);
    CHECK(p.extent('t') == 300);
    CHECK(p.extent('h') == 2);
    CHECK(p.value_heads() == 6);
    CHECK(p.extent('k') == 64);
    CHECK(p.extent('v') == 128);
    CHECK(p.option("gate") == "bounded.-5");
    CHECK(p.used("dt_bias"));
    CHECK(p.drops == std::vector<std::string>{"da_log"});
    REQUIRE(p.roles.size() == 2);
    CHECK(p.roles[1].alignment == 2);
    CHECK(split_token("kda.fwd:f32:b1:t1:h3:k4:v5:gate=log").value_heads() == 3);
}

TEST_CASE("kda: plan and candidates") {
    const char *token = "kda.fwd:bf16:b1:t64:h2:k16:v32:gate=log";
    const outcome plan = on_cpu({"plan", token});
    INFO(plan.err);
    CHECK(plan.code == 0);
    CHECK(contains(plan.out, "kda.fwd_chunk"));
    const outcome list = on_cpu({"candidates", token});
    CHECK(list.code == 0);
    CHECK(contains(list.out, "kda.fwd.cpu.ref"));
    check_refused({"plan", "kda.fwd:bf16:b1:t64:h2:k16:v32", "--backend", "cpu"}, 2,
                  "the gate is not set");
    check_refused({"plan", "kda.bwd:f64:b1:t64:h2:k16:v32:gate=log", "--profile",
                   PLAIT_SOURCE_DIR "/tests/golden/profiles/h200.txt"},
                  3, "q is f64; the arithmetic of kda on CUDA is f32");
}

TEST_CASE("kda: run, with the last state") {
    write_npy("kq.npy", {1, 2, 1, 1}, {1, 1});
    write_npy("kv.npy", {1, 2, 1, 1}, {4, 6});
    write_npy("kg.npy", {1, 2, 1, 1}, {0, 0});
    write_npy("kbeta.npy", {1, 2, 1}, {0.5f, 0.5f});
    const outcome o =
        on_cpu({"run", "kda.fwd:f32:b1:t2:h1:k1:v1:gate=log:scale=2:state=vk:+state_out", "--in",
                "q=kq.npy", "--in", "k=kq.npy", "--in", "v=kv.npy", "--in", "g=kg.npy", "--in",
                "beta=kbeta.npy", "--out", "o=ko.npy", "--out", "state_out=ks.npy"});
    INFO(o.err);
    CHECK(o.code == 0);
    CHECK(read_npy("ko.npy", {1, 2, 1, 1}) == std::vector<float>{4, 8});
    CHECK(read_npy("ks.npy", {1, 1, 1, 1}) == std::vector<float>{4});
    const outcome wants =
        program({"run", "kda.bwd:bf16:b1:t2:h1:k3:v5:gate=softplus:state=vk:+state_in"});
    CHECK(contains(wants.out, "dstate_in"));
    CHECK(contains(wants.out, "(1, 1, 5, 3)"));
    CHECK(contains(wants.out, "da_log"));
}

TEST_CASE("kda: run, a forward and its backward through a reserve in a file") {
    write_npy("rq.npy", {1, 2, 1, 1}, {1, 1});
    write_npy("rv.npy", {1, 2, 1, 1}, {4, 6});
    write_npy("rg.npy", {1, 2, 1, 1}, {0, 0});
    write_npy("rbeta.npy", {1, 2, 1}, {0.5f, 0.5f});
    const std::vector<std::string> inputs = {"--in", "q=rq.npy",      "--in", "k=rq.npy",
                                             "--in", "v=rv.npy",      "--in", "g=rg.npy",
                                             "--in", "beta=rbeta.npy"};
    const auto run = [&](const std::string &token, std::vector<std::string> more) {
        std::vector<std::string> all = {"run", token};
        all.insert(all.end(), inputs.begin(), inputs.end());
        all.insert(all.end(), more.begin(), more.end());
        return on_cpu(all);
    };
    const std::string forward = "kda.fwd:f32:b1:t2:h1:k1:v1:gate=log:reserve=chunk64",
                      shape = "b1:t2:h1:k1:v1:gate=log";
    const outcome wrote = run(forward, {"--out", "o=ro.npy", "--out", "reserve=rr.npy"});
    INFO(wrote.err);
    CHECK(wrote.code == 0);
    CHECK(npy_reader(scratch("rr.npy")).shape == std::vector<int64_t>{512});
    const outcome read =
        run("kda.bwd:f32:" + shape + ":reserve=chunk64",
            {"--in", "do=rv.npy", "--in", "reserve=rr.npy", "--out", "dq=rdq.npy"});
    INFO(read.err);
    CHECK(read.code == 0);
    const outcome alone =
        run("kda.bwd:f32:" + shape, {"--in", "do=rv.npy", "--out", "dq=rdq2.npy"});
    CHECK(alone.code == 0);
    CHECK(read_npy("rdq.npy", {1, 2, 1, 1}) == read_npy("rdq2.npy", {1, 2, 1, 1}));
    const outcome other =
        run("kda.bwd:f32:" + shape + ":scale=2:reserve=chunk64",
            {"--in", "do=rv.npy", "--in", "reserve=rr.npy", "--out", "dq=rdq.npy"});
    CHECK(other.code != 0);
    CHECK(contains(other.err, "the forward that wrote it had other extents, types or options"));
}

TEST_CASE("kda: random inputs keep states small") {
    const std::string token = "kda.fwd:f32:b1:t500:h2:k16:v8:gate=log";
    const plait::cases::desc_ptr desc = plait::cases::make_desc(token);
    const std::vector<plait::cases::tensor> tensors = plait::cases::tensors_of(desc.get());
    const auto drawn = [&](plait_role role) {
        const plait::cases::tensor &t = *plait::cases::find_tensor(tensors, role);
        std::vector<float> values(static_cast<size_t>(t.elements()));
        plait::cases::input(split_token(token), t, {1, false}).read(0, t.elements(), values.data());
        return values;
    };
    for (const float g : drawn(PLAIT_G)) REQUIRE(g <= 0);
    for (const float beta : drawn(PLAIT_BETA)) {
        REQUIRE(beta >= 0);
        REQUIRE(beta <= 1);
    }
    for (const float k : drawn(PLAIT_K)) REQUIRE(std::fabs(k) <= 0.25f);
    float least = 0;
    for (const float v : drawn(PLAIT_V)) least = std::min(least, v);
    CHECK(least < -0.9f);
}

TEST_CASE("kda: verify, every candidate of problems of every kind") {
    const outcome o = on_cpu(
        {"verify", "--all", "kda.fwd:f32:b2:t33:h2:k8:v12:gate=log",
         "kda.fwd:bf16:b1:t70:h2:hv6:k16:v8:gate=bounded.-5:beta=logit.1:norm=1e-06:state=vk:"
         "+dt_bias+state_in+state_out",
         "kda.fwd:f64:b2:t9:h1:hv3:k5:v7:gate=softplus:beta=logit.2:norm=1e-06",
         "kda.fwd:f16:b1:t200:h2:k8:v4:gate=log:state=kv:seqs=9.60:slots=12.3:"
         "+state_in+state_out+status:state_out@state_in",
         "kda.fwd:f32:b0:t9:h1:k4:v4:gate=log",
         "kda.bwd:f32:b2:t40:h2:hv4:k8:v12:gate=softplus:beta=logit.1:norm=1e-06:state=vk:"
         "+dt_bias+state_in+state_out",
         "kda.bwd:bf16:b1:t90:h2:k8:v4:gate=bounded.-5:seqs=9.30:-a_log-dv:cu_seqlens.i32",
         "kda.bwd:bf16:b1:t20:h2:k8:v4:gate=log:q.s640.32.16.1:g.f32:dg.bf16",
         "kda.fwd:bf16:b1:t130:h2:k8:v4:gate=log:state=kv:reserve=chunk64:+state_out",
         "kda.bwd:f32:b2:t70:h1:hv2:k8:v12:gate=softplus:norm=1e-06:state=vk:reserve=chunk64:"
         "+dt_bias+state_in+state_out+status-dv:v.a4:g.f64:dq.f64",
         "kda.bwd:bf16:b1:t90:h2:k32:v16:gate=bounded.-5:seqs=9.30:reserve=chunk64:-a_log+status-"
         "dv:"
         "cu_seqlens.i32"});
    INFO(o.out);
    INFO(o.err);
    CHECK(o.code == 0);
    for (const char *name : {"kda.fwd.cpu.ref", "kda.bwd.cpu.ref"}) CHECK(contains(o.out, name));
    CHECK(!contains(o.out, "WRONG"));
    const nlohmann::json j =
        on_cpu({"verify", "--json", "--sample", "2", "kda.fwd:f32:b2:t33:h5:k8:v12:gate=log"})
            .json();
    CHECK(j.at("compared") == 2);
    CHECK(j.at("ok") == true);
    CHECK(j.at("error").get<double>() > 0);
}

TEST_CASE("kda: bench counts every tensor once, of a pool the slots of the call") {
    const outcome o =
        on_cpu({"bench", "--json", "--threads", "1", "--reps", "3",
                "kda.fwd:f32:b2:t64:h2:k8:v16:gate=log", "kda.bwd:f32:b2:t64:h2:k8:v16:gate=log",
                "kda.fwd:f32:b4:t1:h2:k8:v16:gate=log:state=kv:slots=100.-1:+state_in+state_out:"
                "state_out@state_in",
                "kda.bwd:f32:b2:t64:h2:k8:v16:gate=log:reserve=chunk64"});
    INFO(o.err);
    CHECK(o.code == 0);
    const std::vector<nlohmann::json> lines = o.json_lines();
    REQUIRE(lines.size() == 4);
    const int rows = 2 * 64 * 2; // batch, tokens, heads
    const int inputs = rows * (3 * 8 + 16 + 1) * 4;
    CHECK(lines[0].at("bytes") == inputs + rows * 16 * 4);
    CHECK(lines[1].at("bytes") == 2 * inputs + rows * 16 * 4);
    CHECK(lines[2].at("bytes") ==
          4 * 2 * (3 * 8 + 2 * 16 + 1) * 4 + 2 * 4 * 2 * 8 * 16 * 4 + 4 * 4);
    CHECK(lines[3].at("bytes") == lines[1].at("bytes").get<int>() + 256 + 2 * 2 * 8 * 16 * 4);
    for (const nlohmann::json &j : lines) CHECK(j.at("rel_err").get<double>() < 1e-5);
}
