// plan, candidates, info: with a device, with a stored profile, as text and as JSON.
#include "tests/cli/program.h"

using namespace cli_test;

TEST_CASE("plan and candidates for a stored profile") {
    const outcome plan = program({"plan", "wht:f32:b65536:n4096", "--profile", profile("h200")});
    CHECK(plan.code == 0);
    CHECK(plan.err.empty());
    CHECK(contains(plan.out, "wht:f32:b65536:n4096"));
    CHECK(contains(plan.out, "wht.cuda.block"));
    const outcome list =
        program({"candidates", "wht:f32:b65536:n4096", "--profile", profile("cpu_avx512_64c")});
    CHECK(list.code == 0);
    CHECK(contains(list.out, "<- chosen"));
    CHECK(contains(list.out, "wht.cpu.ref"));
    CHECK(contains(list.out, "backend cuda; this context is cpu"));
}

TEST_CASE("JSON of plan and candidates") {
    const nlohmann::json plan =
        program({"plan", "wht:f32:b16:n1048576", "--profile", profile("h200"), "--json"}).json();
    CHECK(plan.at("plan") == "wht:f32:b16:n1048576");
    CHECK(plan.at("steps").size() >= 1);
    const nlohmann::json list =
        program({"candidates", "wht:bf16:n64", "--profile", profile("rtx4060"), "--json"}).json();
    CHECK(list.at("problem") == "wht:bf16:n64");
    for (const nlohmann::json &row : list.at("candidates"))
        CHECK((row.at("verdict") == "no") == (row.at("reason") != ""));
}

TEST_CASE("several tokens, preferences") {
    const outcome two = program({"plan", "wht:f32:n8", "wht:f64:n16", "--backend", "cpu"});
    CHECK(two.code == 0);
    CHECK(contains(two.out, "wht:f32:n8"));
    CHECK(contains(two.out, "wht:f64:n16"));
    const outcome ref =
        program({"plan", "wht:f32:n8", "--backend", "cpu", "--candidates", "*.ref", "--threads",
                 "1", "--deterministic", "--math", "f32", "--workspace-limit", "1G"});
    CHECK(ref.code == 0);
    CHECK(contains(ref.out, "wht.cpu.ref"));
}

TEST_CASE("profiles that cannot be read") {
    check_refused({"plan", "wht:f32:n8", "--profile", "nowhere.txt"}, 2, "nowhere.txt");
    write_file("profile.txt", "plait-profile 1\nbackend cpu\nname x\n");
    check_refused({"plan", "wht:f32:n8", "--profile", "profile.txt"}, 2, "profile.txt: ");
    write_file("newer.txt", "plait-profile 99\n");
    check_refused({"plan", "wht:f32:n8", "--profile", "newer.txt"}, 2, "99");
    check_refused({"plan", "wht:f32:n8", "--profile", "."}, 2, "directory");
}

TEST_CASE("info") {
    const outcome text = program({"info", "--backend", "cpu"});
    CHECK(text.code == 0);
    CHECK(contains(text.out, "cpu device 0"));
    const nlohmann::json j = program({"info", "--json"}).json();
    CHECK(j.at("version").is_number_integer());
    CHECK(j.at("build").is_string());
    CHECK(j.at("devices").size() >= 1);
    // A printed profile plans elsewhere.
    const outcome bare = program({"info", "--backend", "cpu", "--profile-text", "--threads", "1"});
    write_file("mine.txt", bare.out);
    const outcome plan = program({"plan", "wht:f32:n1024", "--profile", "mine.txt"});
    CHECK(plan.code == 0);
    CHECK(contains(plan.out, "device  cpu/"));
}
