// stdin and stdout as scripts connect them: pipes, a full device, closed.
#include "tests/cli/program.h"

using namespace cli_test;

TEST_CASE("pipes are read to their end") {
    const std::string from = "cat '" + profile("h200") + "' | \"$PLAIT\" plan wht:f32:n8 --profile";
    const outcome plan = shell(from + " /dev/stdin");
    INFO(plan.err);
    CHECK(plan.code == 0);
    CHECK(contains(plan.out, "cuda/9.0"));
    CHECK(contains(shell(": | \"$PLAIT\" plan wht:f32:n8 --profile /dev/stdin").err, "line 1"));
    const outcome suite =
        shell("echo wht:f32:n8 | \"$PLAIT\" verify --backend cpu --json --suite /dev/stdin");
    CHECK(suite.code == 0);
    CHECK(suite.json_lines().size() == 1);
    CHECK(contains(shell("\"$PLAIT\" verify --backend cpu --suite /dev/null").err,
                   "/dev/null: holds no tokens"));
}

TEST_CASE("results that cannot be printed are code 1") {
    write_file("lines.txt", "plait-wisdom 1\nwht:f32:n8 | cpu/Y | c | 1 | 1e-6\n");
    for (const char *command :
         {"--help", "--version", "info", "plan wht:f32:n8 --backend cpu",
          "candidates wht:f32:n8 --backend cpu --json", "run wht:f32:n8",
          "verify wht:f32:n8 wht:f32:n16 --backend cpu",
          "verify wht:f32:n8 wht:f32:n16 --backend cpu --json",
          "bench wht:f32:n8 --backend cpu --reps 3",
          "bench wht:f32:n8 --backend cpu --reps 3 --json", "wisdom show lines.txt"})
        for (const char *where : {" >/dev/full", " >&-"}) {
            INFO(command, where);
            const outcome o = shell("\"$PLAIT\" " + std::string(command) + where);
            CHECK(o.code == 1);
            CHECK(contains(o.err, "plait: stdout: cannot be written"));
        }
    // Nothing to say, nothing lost.
    CHECK(shell("\"$PLAIT\" plan wht:f32:n12 --backend cpu >&-").code == 2);
}

TEST_CASE("files do not land in the place of closed streams") {
    const std::string base = "\"$PLAIT\" bench wht:f32:n8 --backend cpu --reps 3 --json kept.jsonl";
    CHECK(shell(base + " >&-").code == 1);
    CHECK(nlohmann::json::parse(read_file("kept.jsonl")).at("token") == "wht:f32:n8");
    CHECK(shell(base + " 2>&- <&-").code == 0);
}
