// plait verify: what is right passes, given inputs, all candidates, JSON.
#include "src/cli/case/npy.h"
#include "tests/cli/program.h"

using namespace cli_test;

TEST_CASE("every candidate of problems of every kind") {
    const outcome o = program({"verify",
                               "--backend",
                               "cpu",
                               "--all",
                               "wht:f32:b5:n1024",
                               "wht:f64:b3:n256:y@x",
                               "wht:f16:b7:n64:scale=0.125",
                               "wht:bf16:n4096",
                               "wht:f16:b3:n32:y.f32",
                               "wht:f32:n16:b5",
                               "wht:f32:b2:n8:n8:seq",
                               "wht:f32:b2:n24.h12s:adj",
                               "wht:c64:n64:bits=15",
                               "wht:c128:b2:n16:+signs+diag",
                               "wht:i32:b2:n64:+overflow",
                               "wht:i64:n64:y.i32",
                               "wht:f32:b4:n16:x.s40.2:y.s20.1",
                               "wht:f32:b4:n8:+signs:signs.s8.1",
                               "wht:f16:b3:n16:x.a2:y.a2",
                               "wht:f32:b3:n1",
                               "wht:f32:b0:n8"});
    INFO(o.out);
    INFO(o.err);
    CHECK(o.code == 0);
    CHECK(contains(o.out, "wht.cpu.ref"));
    CHECK(contains(o.out, "wht.cpu.simd"));
    CHECK(!contains(o.out, "WRONG"));
}

namespace {

void all_right(std::vector<std::string> tokens) {
    std::vector<std::string> arguments = {"verify", "--backend", "cpu", "--all"};
    arguments.insert(arguments.end(), tokens.begin(), tokens.end());
    const outcome o = program(arguments);
    INFO(o.out);
    INFO(o.err);
    CHECK(o.code == 0);
    CHECK(contains(o.out, "wht.cpu.ref"));
    CHECK(!contains(o.out, "WRONG"));
}

} // namespace

TEST_CASE("what a transform can have around it") {
    all_right({"wht:f32:b3:n48.m12:adj", "wht:f64:b2:n344.h172w:+signs:y.f32",
               "wht:i8:b3:n64:+overflow", "wht:i16:b3:n36.h36p2:y.i64", "wht:b1:b5:n64",
               "wht:b1:n64:b3:y.f16", "wht:f32:b3:n64:rows=20:+status:rows.i32",
               "wht:c64:n64:b3:adj:rows=20:+diag", "wht:i32:b2:n16:adj:rows=7:y.i64",
               "wht:f32:b2:n8:n8:+amax", "wht:f32:b3:n128:group=32:-y+amax",
               "wht:i8:b3:n64:hist=9.-40.10:+amax", "wht:b1:n256:hist=65.-64.2:-y",
               "wht:c128:b2:n32:adj:+diag+diag_in+diag_mid:y@x:diag_in.f64",
               "wht:f64:b3:n32:seq:+diag_in+diag_mid:diag_in.s32.1",
               "wht:f32:b3:n128:scale=0.125:group=32:+amax+scales:y.e4m3",
               "wht:bf16:b3:n64:rows=16:group=8:+scales:y.e4m3", "wht:f16:n64:y.e4m3"});
}

TEST_CASE("a token for every user") {
    const outcome o = program({"verify", "--backend", "cpu", "--all", "--suite",
                               PLAIT_SOURCE_DIR "/tests/cases/wht_users.txt"});
    INFO(o.out);
    INFO(o.err);
    CHECK(o.code == 0);
    CHECK(contains(o.out, "wht.cpu.ref"));
    CHECK(!contains(o.out, "WRONG"));
}

TEST_CASE("JSON lines and seeds") {
    const auto lines = program({"verify", "--backend", "cpu", "--json", "--seed", "7", "--sample",
                                "3", "wht:f32:b100:n64", "wht:i32:n8"})
                           .json_lines();
    REQUIRE(lines.size() == 2);
    CHECK(lines[0].at("token") == "wht:f32:b100:n64");
    CHECK(lines[0].at("compared") == 3);
    CHECK(lines[0].at("seed") == 7);
    CHECK(lines[0].at("ok") == true);
    CHECK(lines[0].at("error").get<double>() > 0);
    CHECK(lines[0].at("ratio").get<double>() < 1);
    CHECK(lines[0].at("error").get<double>() < lines[0].at("bound").get<double>());
    CHECK(lines[1].at("error") == 0);
    const auto other =
        program({"verify", "--backend", "cpu", "--json", "--seed", "8", "wht:f32:b100:n64"})
            .json_lines();
    CHECK(other.at(0).at("error") != lines[0].at("error"));
}

TEST_CASE("given inputs") {
    const float x[4] = {1, 2, 3, 4};
    plait::cases::npy_writer file(scratch("x.npy"), {'f', 4}, {4});
    file.write(x, 4);
    file.commit();
    const outcome o =
        program({"verify", "wht:f32:n4", "--backend", "cpu", "--in", "x=x.npy", "--json"});
    CHECK(o.code == 0);
    CHECK(o.json().at("error") == 0);
    check_refused({"verify", "wht:f32:n8", "--backend", "cpu", "--in", "x=x.npy"}, 2, "needs (8,)");
    check_refused({"verify", "wht:f32:n4", "--backend", "cpu", "--in", "y=x.npy"}, 2, "an output");
    check_refused({"verify", "wht:f32:n4", "wht:f32:n8", "--in", "x=x.npy"}, 2, "one token");
}

TEST_CASE("suites, and one bad token among good ones") {
    write_file("suite.txt", "# two\nwht:f32:n8 wht:f64:n16\n\nwht:f32:n32 # last\n");
    const auto lines =
        program({"verify", "--suite", "suite.txt", "--backend", "cpu", "--json"}).json_lines();
    CHECK(lines.size() == 3);
    const outcome o =
        program({"verify", "wht:f32:n12", "wht:f32:n8", "--backend", "cpu", "--json"});
    CHECK(o.code == 2);
    CHECK(o.json_lines().size() == 1);
    write_file("marked.txt", "\xef\xbb\xbfwht:f32:n8\n");
    CHECK(program({"verify", "--suite", "marked.txt", "--backend", "cpu"}).code == 0);
    write_file("nul.txt", std::string("wht:f32:n8\n\0wht:f32:n16\n", 24));
    check_refused({"verify", "--suite", "nul.txt"}, 2, "nul.txt: has a NUL byte");
    write_file("empty.txt", "# nothing\n");
    check_refused({"verify", "--suite", "empty.txt"}, 2, "holds no tokens");
    check_refused({"verify", "--suite", "gone.txt"}, 2, "gone.txt");
}
