// Help, bad arguments, devices that are not there.
#include "tests/cli/program.h"

#include <plait/plait.h>

using namespace cli_test;

TEST_CASE("help of the program and of every command") {
    const outcome all = program({"--help"});
    CHECK(all.code == 0);
    CHECK(all.err.empty());
    CHECK(contains(all.out, "Exit codes: 0 done"));
    const std::vector<std::vector<std::string>> commands = {
        {"info"},           {"plan"},           {"candidates"},     {"run"}, {"verify"}, {"bench"},
        {"wisdom", "make"}, {"wisdom", "show"}, {"wisdom", "merge"}};
    for (std::vector<std::string> command : commands) {
        CHECK(contains(all.out, command[0]));
        command.push_back("--help");
        const outcome o = program(command);
        INFO(command[0]);
        CHECK(o.code == 0);
        CHECK(o.err.empty());
        CHECK(contains(o.out, "Usage:"));
        // Every option says what it is for.
        const bool plans = command.size() == 2 || command[1] == "make";
        CHECK(contains(o.out, "--backend") == plans);
    }
    CHECK(contains(program({"wisdom", "--help"}).out, "merge"));
}

TEST_CASE("the version is that of the library") {
    const outcome o = program({"--version"});
    CHECK(o.code == 0);
    CHECK(o.out == "plait " + std::to_string(PLAIT_VERSION_MAJOR) + "." +
                       std::to_string(PLAIT_VERSION_MINOR) + "." +
                       std::to_string(PLAIT_VERSION_PATCH) + "\n");
}

TEST_CASE("usage errors are code 2 and one sentence") {
    check_refused({}, 2, "subcommand");
    check_refused({"dance"}, 2, "no command \"dance\"");
    check_refused({"wisdom", "lose"}, 2, "no command \"lose\"");
    check_refused({"plan"}, 2, "TOKEN");
    check_refused({"plan", "wht:f32:n8", "--speed", "9"}, 2, "--speed");
    check_refused({"plan", "wht:f32:n8", "--backend", "tpu"}, 2, "tpu");
    check_refused({"plan", "wht:f32:n8", "--rigor", "wild"}, 2, "wild");
    check_refused({"plan", "wht:f32:n8", "--math", "f8"}, 2, "f8");
    check_refused({"plan", "wht:f32:n8", "--threads", "0"}, 2, "threads");
    check_refused({"plan", "wht:f32:n8", "--device", "-1"}, 2, "device");
    check_refused({"plan", "wht:f32:n8", "--workspace-limit", "lots"}, 2, "lots");
    for (const char *bytes : {"-1", "", "99999999999999999999", "18446744073709551615k"})
        check_refused({"plan", "wht:f32:n8", "--workspace-limit", bytes}, 2, "workspace-limit");
    for (const char *seconds : {"0", "-1", "nan", "inf"})
        check_refused({"plan", "wht:f32:n8", "--time-limit", seconds}, 2,
                      std::string("--time-limit: \"") + seconds + "\" is no number above 0");
    check_refused({"verify", "wht:f32:n8", "--sample", "0"}, 2, "is no number above 0");
    check_refused({"plan", "wht:f32:n8", "--threads", "4097"}, 2, "range 1 to 4096");
    for (const char *seed : {"-1", "18446744073709551616", "1e3", "0x1", ""})
        for (const char *command : {"verify", "bench"})
            check_refused({command, "wht:f32:n8", "--seed", seed}, 2, "seed");
    CHECK(program({"verify", "wht:f32:n8", "--backend", "cpu", "--seed", "18446744073709551615"})
              .code == 0);
    for (const char *percent : {"nan", "inf"})
        check_refused({"bench", "wht:f32:n8", "--baseline", "x", "--fail-above", percent}, 2,
                      "fail-above");
    check_refused({"plan", "wht:f32:n8", "--candidates", ",,"}, 2, "empty glob");
    check_refused({"plan", "wht:f32:n8", "--profile", "x", "--backend", "cpu"}, 2, "--profile");
    check_refused({"wisdom"}, 2, "subcommand");
    check_refused({"bench"}, 2, "tokens or --suite");
    check_refused({"bench", "wht:f32:n8", "--reps", "1"}, 2, "reps");
    check_refused({"bench", "wht:f32:n8", "--fail-above", "5"}, 2, "--baseline");
    check_refused({"verify"}, 2, "tokens or --suite");
    check_refused({"info", "--profile-text", "--json"}, 2, "--json");
    check_refused({"plan", "wht:f32:n8:y.a99999999999"}, 2, "bytes=99999999999 of y");
    std::string strides = "wht:f32:b1"; // a canonical form that is given whole
    for (int axis = 0; axis < 7; ++axis) strides += ":n2";
    strides += ":+signs+diag+diag_in+diag_mid";
    for (const char *role : {":x.s", ":y.s", ":signs.s", ":diag.s", ":diag_in.s", ":diag_mid.s"}) {
        strides += role;
        for (int axis = 0; axis < 8; ++axis) strides += (axis ? ".9" : "9") + std::string(17, '0');
    }
    check_refused({"plan", strides + ":scale=1"}, 2, strides);
}

TEST_CASE("bad tokens are code 2 in every command, with the library's sentence") {
    for (const char *command : {"plan", "candidates", "run", "verify", "bench"}) {
        check_refused({command, "wht:f32:n12", "--backend", "cpu"}, 2, "12");
        check_refused({command, "wht", "--backend", "cpu"}, 2, "wht");
        check_refused({command, "fft:f32:n8", "--backend", "cpu"}, 2, "fft");
        check_refused({command, "wht:f32:n8:scale=1", "--backend", "cpu"}, 2, "canonical");
    }
    check_refused({"wisdom", "make", "wht:f32:n12", "-o", "w.txt", "--backend", "cpu"}, 2, "12");
    CHECK(!exists("w.txt"));
}

TEST_CASE("a token that fails does not stop the others, and its code is the program's") {
    // One that is no token, one that nothing takes, one that is well.
    const std::string bad = "wht:f32:n12", none = "wht:f32:b1048576:n1048576", good = "wht:f32:n8";
    const std::vector<std::vector<std::string>> commands = {
        {"plan"},
        {"verify"},
        {"bench", "--reps", "3", "--no-accuracy"},
        {"wisdom", "make", "-o", "several.txt"}};
    for (std::vector<std::string> command : commands) {
        command.insert(command.end(), {"--backend", "cpu", none, good, bad});
        const outcome o = program(command);
        INFO(command[0]);
        INFO(o.err);
        CHECK(o.code == 2);
        CHECK(contains(o.out, good));
        CHECK(contains(o.err, bad));
        CHECK(contains(o.err, none));
    }
    const outcome listed = program({"candidates", "--backend", "cpu", bad, good});
    CHECK(listed.code == 2);
    CHECK(contains(listed.out, good));
    CHECK(program({"plan", "--backend", "cpu", none, good}).code == 3);
}

TEST_CASE("no device is code 77") {
    int count = 0;
    REQUIRE(plait_device_count(PLAIT_CUDA, &count) == PLAIT_OK);
    const std::string number = std::to_string(count); // one past the last
    for (const char *command : {"plan", "candidates", "verify", "bench"})
        check_refused({command, "wht:f32:n8", "--backend", "cuda", "--device", number}, 77,
                      "device");
    check_refused({"plan", "wht:f32:n8", "--backend", "cpu", "--device", "1"}, 77, "device");
    check_refused({"info", "--device", "12345"}, 77, "no device 12345");
    check_refused({"info", "--backend", "cpu", "--device", "1"}, 77, "no device 1");
    if (count == 0) check_refused({"info", "--backend", "cuda"}, 77, "cuda");
    // A profile plans and prints; it cannot run.
    check_refused({"verify", "wht:f32:n8", "--profile", profile("h200")}, 77, "profile");
    check_refused({"bench", "wht:f32:n8", "--profile", profile("h200")}, 77, "profile");
    check_refused({"wisdom", "make", "wht:f32:n8", "-o", "w.txt", "--profile", profile("h200")}, 77,
                  "profile");
}

TEST_CASE("nothing applies is code 3 and names the nearest candidate") {
    check_refused({"plan", "wht:f32:n8", "--backend", "cpu", "--candidates", "wht.cuda.*"}, 3,
                  "no candidate applies");
    check_refused({"verify", "wht:f32:n8", "--backend", "cpu", "--candidates", "wht.cuda.*"}, 3,
                  "wht:f32:n8");
    check_refused({"plan", "wht:f32:n8", "--backend", "cpu", "--wisdom-only"}, 3, "wisdom");
}
