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

TEST_CASE("JSON of several tokens is one object per line") {
    for (const char *command : {"plan", "candidates"}) {
        const auto lines =
            program({command, "wht:f32:n8", "wht:f64:n16", "--profile", profile("h200"), "--json"})
                .json_lines();
        REQUIRE(lines.size() == 2);
        CHECK(lines[0] != lines[1]);
    }
}

TEST_CASE("--threads goes with the profile of a CPU") {
    const std::vector<std::string> plan = {"plan", "wht:f32:b4096:n4096", "--profile"};
    std::vector<std::string> cpu = plan, gpu = plan;
    cpu.insert(cpu.end(), {profile("cpu_avx512_64c"), "--threads", "8"});
    const outcome o = program(cpu);
    CHECK(o.code == 0);
    CHECK(contains(o.out, "cpu/AVX3/64c/8t/"));
    gpu.insert(gpu.end(), {profile("h200"), "--threads", "8"});
    check_refused(gpu, 2, "--threads is for the CPU backend");
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
    // What would break a fingerprint or its JSON.
    std::string good = shell("cat '" + profile("cpu_avx512_64c") + "'").out;
    const auto with = [&](const std::string &line) {
        const size_t at = good.find("\n" + line.substr(0, line.find(' ')) + " ") + 1;
        return good.substr(0, at) + line + good.substr(good.find('\n', at));
    };
    for (const auto &[line, part] : std::vector<std::pair<std::string, std::string>>{
             {"isa AVX3 wide", "isa=AVX3 wide must be one word"},
             {"isa AVX3|x", "must be one word"},
             {"isa AVX/3", "must be one word"},
             {"isa AVX\xff", "byte 0xff is not printable ASCII"},
             {"name M\xc3\xbcller", "byte 0xc3 is not printable ASCII"},
             {"name a\x1b[31m", "byte 0x1b is not printable ASCII"}}) {
        INFO(line);
        write_file("odd.txt", with(line));
        for (const char *command : {"plan", "candidates"})
            check_refused({command, "wht:f32:n8", "--profile", "odd.txt", "--json"}, 2, part);
        CHECK(contains(program({"plan", "wht:f32:n8", "--profile", "odd.txt"}).err,
                       "odd.txt: plait_context_create_from_profile: profile line "));
    }
    write_file("odd.txt", with("name M\tx") + "# M\xc3\xbcller\n"); // a comment has any bytes
    CHECK(program({"plan", "wht:f32:n8", "--profile", "odd.txt", "--json"}).code == 0);
}

TEST_CASE("profiles with a NUL, profiles that end within a line") {
    std::string text = shell("cat '" + profile("cpu_avx512_64c") + "'").out;
    write_file("torn.txt", text.substr(0, text.size() - 1));
    check_refused({"plan", "wht:f32:n8", "--profile", "torn.txt"}, 2, "ends within this line");
    write_file("nul.txt", text + std::string(1, '\0') + "threads 7\n");
    check_refused({"plan", "wht:f32:n8", "--profile", "nul.txt"}, 2, "nul.txt: has a NUL byte");
}

TEST_CASE("the log speaks of what was asked for alone") {
    const outcome o = shell("PLAIT_LOG=dispatch,plan $PLAIT plan wht:f32:b3:n64 --backend cpu");
    CHECK(contains(o.err, "dispatch: wht:f32:b3:n64: wht.cpu.simd"));
    CHECK(contains(o.err, "plan: wht:f32:b3:n64"));
    CHECK(!contains(o.err, "wht:f32:n2"));
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
