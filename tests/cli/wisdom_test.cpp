// plait wisdom: make, show, merge.
#include "tests/cli/program.h"

#include <algorithm>
#include <chrono>
#include <fcntl.h>
#include <sys/file.h>
#include <thread>
#include <unistd.h>

using namespace cli_test;

TEST_CASE("make, use, show") {
    const outcome made = program({"wisdom", "make", "wht:f32:b4:n64", "wht:f64:n32", "--backend",
                                  "cpu", "--rigor", "exhaustive", "-o", "w.txt"});
    INFO(made.err);
    CHECK(made.code == 0);
    CHECK(contains(made.out, "wht:f32:b4:n64"));
    CHECK(contains(read_file("w.txt"), "plait-wisdom 1\n"));

    const auto lines = program({"wisdom", "show", "w.txt", "--json"}).json_lines();
    REQUIRE(lines.size() >= 3); // both candidates of the first token, one or more of the second
    for (const nlohmann::json &j : lines) {
        CHECK(j.at("seconds").get<double>() > 0);
        CHECK(contains(j.at("device").get<std::string>(), "cpu/"));
    }
    CHECK(contains(program({"wisdom", "show", "w.txt"}).out, "wht.cpu.ref"));

    const outcome used = program(
        {"plan", "wht:f32:b4:n64", "--backend", "cpu", "--wisdom", "w.txt", "--wisdom-only"});
    INFO(used.err);
    CHECK(used.code == 0);
    CHECK(contains(used.out, "wisdom"));
    check_refused(
        {"plan", "wht:f32:b5:n64", "--backend", "cpu", "--wisdom", "w.txt", "--wisdom-only"}, 3,
        "wht:f32:b5:n64");
}

TEST_CASE("make --generic writes times for any CPU with these instructions") {
    const outcome made = program({"wisdom", "make", "wht:f32:b4:n64", "--backend", "cpu", "--rigor",
                                  "exhaustive", "--generic", "-o", "g.txt"});
    INFO(made.err);
    CHECK(made.code == 0);
    const auto lines = program({"wisdom", "show", "g.txt", "--json"}).json_lines();
    REQUIRE(lines.size() >= 2);
    for (const nlohmann::json &j : lines) {
        const auto device = j.at("device").get<std::string>();
        CHECK(contains(device, "/generic"));
        CHECK(std::count(device.begin(), device.end(), '/') == 2);
    }
    const outcome used = program(
        {"plan", "wht:f32:b4:n64", "--backend", "cpu", "--wisdom", "g.txt", "--wisdom-only"});
    INFO(used.err);
    CHECK(used.code == 0);
    CHECK(contains(used.out, "source generic-wisdom"));
    check_refused({"wisdom", "make", "wht:f32:n8", "--profile",
                   PLAIT_SOURCE_DIR "/tests/golden/profiles/h200.txt", "--generic", "-o", "no.txt"},
                  2, "--generic is for the CPU");
}

TEST_CASE("merge keeps the faster of equal lines, and every device") {
    write_file("a.txt", "plait-wisdom 1\n"
                        "wht:f32:n8 | cuda/9.0/132sm/X | wht.cuda.block | 1 | 2e-06\n"
                        "wht:f32:n8 | cpu/AVX2/2c/Y | wht.cpu.simd | 1 | 5e-06\n");
    write_file("b.txt", "plait-wisdom 1\n"
                        "wht:f32:n8 | cuda/9.0/132sm/X | wht.cuda.block | 1 | 1e-06\n"
                        "wht:f32:n8 | cuda/9.0/132sm/X | wht.cuda.block | 2 | 9e-06\n"
                        "torn | line\n");
    const outcome o = program({"wisdom", "merge", "a.txt", "b.txt", "-o", "ab.txt"});
    CHECK(o.code == 0);
    CHECK(contains(o.out, "1 torn"));
    CHECK(read_file("ab.txt") == "plait-wisdom 1\n"
                                 "wht:f32:n8 | cpu/AVX2/2c/Y | wht.cpu.simd | 1 | 5e-06\n"
                                 "wht:f32:n8 | cuda/9.0/132sm/X | wht.cuda.block | 1 | 1e-06\n"
                                 "wht:f32:n8 | cuda/9.0/132sm/X | wht.cuda.block | 2 | 9e-06\n");
    CHECK(program({"wisdom", "merge", "ab.txt", "a.txt", "-o", "again.txt"}).code == 0);
    CHECK(read_file("again.txt") == read_file("ab.txt"));
}

TEST_CASE("a last line without an end is torn, and merging does not mend it") {
    const std::string whole = "plait-wisdom 1\n"
                              "wht:f32:n8 | cpu/AVX2/2c/Y | wht.cpu.simd | 1 | 5e-06\n";
    write_file("cut.txt", whole + "wht:f32:n16 | cpu/AVX2/2c/Y | wht.cpu.simd | 1 | 2.5e-0");
    const outcome o = program({"wisdom", "merge", "cut.txt", "cut.txt", "-o", "merged.txt"});
    CHECK(o.code == 0);
    CHECK(contains(o.out, "2 torn lines left out"));
    CHECK(read_file("merged.txt") == whole);
    const outcome shown = program({"wisdom", "show", "cut.txt", "--json"});
    CHECK(shown.json_lines().size() == 1);
    CHECK(contains(shown.err, "1 torn"));
}

TEST_CASE("lines that no library reads are counted") {
    std::string text = "plait-wisdom 1\n";
    for (const char *line :
         {"wht:f32:n\xff | cpu/Y | c | 1 | 1e-6", "WHT | cpu/Y | c | 1 | 1e-6",
          "wht:f32:n8 | cpu/\xc3\xbc | c | 1 | 1e-6", "wht:f32:n8 | cpu/Y | c | one | 1e-6",
          "wht:f32:n8 | cpu/Y | c | 1 | 1e-6 |", "plait-wisdoms 1", "plait-wisdom 0",
          "a | b | c | 1 | 0x1p-9", "a | b | c | 1 | inf", "a | b | c | 1 | -1e-6"})
        text += std::string(line) + "\n";
    write_file("odd.txt", text + "wht:f32:n8 | cpu/Y | c | 1 | 1e-6\n");
    for (const bool json : {false, true}) {
        const outcome o = json ? program({"wisdom", "show", "odd.txt", "--json"})
                               : program({"wisdom", "show", "odd.txt"});
        CHECK(o.code == 0);
        CHECK(contains(o.err, "10 torn lines"));
    }
    CHECK(contains(program({"wisdom", "merge", "odd.txt", "-o", "m.txt"}).out, "1 lines"));
}

TEST_CASE("a token that fails leaves the times of the others") {
    const std::string huge = "wht:f32:b1048576:n1048576"; // 4 TiB
    for (const bool first : {false, true}) {
        const std::string a = first ? huge : "wht:f32:n64", b = first ? "wht:f32:n64" : huge;
        write_file("kept.txt", "");
        const outcome o = program({"wisdom", "make", a, b, "--backend", "cpu", "-o", "kept.txt"});
        CHECK(o.code != 0);
        CHECK(contains(o.err, huge));
        CHECK(contains(read_file("kept.txt"), "\nwht:f32:n64 | cpu/"));
    }
    write_file("kept.txt", "old");
    CHECK(program({"wisdom", "make", huge, "--backend", "cpu", "-o", "kept.txt"}).code != 0);
    CHECK(read_file("kept.txt") == "old");
}

TEST_CASE("make adds to a file that is there, and spares one of another kind") {
    const std::string other = "wht:f32:n8 | cuda/9.0/132sm/X | wht.cuda.block | 1 | 2e-06\n";
    write_file("more.txt", "plait-wisdom 1\n" + other);
    CHECK(program({"wisdom", "make", "wht:f32:n64", "--backend", "cpu", "-o", "more.txt"}).code ==
          0);
    CHECK(contains(read_file("more.txt"), "\nwht:f32:n64 | cpu/"));
    CHECK(contains(read_file("more.txt"), "\n" + other));
    write_file("letter.txt", "dear reader\n");
    check_refused({"wisdom", "make", "wht:f32:n64", "--backend", "cpu", "-o", "letter.txt"}, 2,
                  "letter.txt: is no wisdom file");
    CHECK(read_file("letter.txt") == "dear reader\n");
}

TEST_CASE("what others write while it measures is kept") {
    write_file("race.txt", "");
    // Held as by another program that is about to write.
    const int lock = open(scratch("race.txt.lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    REQUIRE(lock >= 0);
    REQUIRE(flock(lock, LOCK_EX) == 0);
    outcome made{};
    std::thread maker([&] {
        made = program({"wisdom", "make", "wht:f32:n64", "--backend", "cpu", "-o", "race.txt"});
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    const std::string other = "wht:f32:n8 | cuda/9.0/132sm/X | wht.cuda.block | 1 | 2e-06\n";
    write_file("race.txt", "plait-wisdom 1\n" + other);
    close(lock);
    maker.join();
    INFO(made.err);
    CHECK(made.code == 0);
    CHECK(contains(read_file("race.txt"), "\nwht:f32:n64 | cpu/"));
    CHECK(contains(read_file("race.txt"), "\n" + other));
    CHECK(!exists("race.txt.lock"));
}

TEST_CASE("files without a line yet") {
    write_file("none.txt", "");
    CHECK(program({"wisdom", "show", "none.txt"}).code == 0);
    CHECK(program({"wisdom", "merge", "none.txt", "-o", "still.txt"}).code == 0);
    CHECK(read_file("still.txt") == "plait-wisdom 1\n");
    CHECK(shell("PLAIT_WISDOM=none.txt $PLAIT plan wht:f32:n64 --backend cpu").code == 0);
}

TEST_CASE("wisdom of the environment and threads of the command line") {
    CHECK(program({"wisdom", "make", "wht:f32:n64", "--backend", "cpu", "--threads", "3", "-o",
                   "three.txt"})
              .code == 0);
    const std::string plan = "PLAIT_WISDOM=three.txt $PLAIT plan wht:f32:n64 --backend cpu "
                             "--wisdom-only --threads ";
    CHECK(shell(plan + "3").code == 0);
    CHECK(shell(plan + "2").code == 3);
}

TEST_CASE("what is no wisdom") {
    write_file("text.txt", "hello\n");
    write_file("newer.txt", "plait-wisdom 9\n");
    check_refused({"wisdom", "show", "text.txt"}, 2, "text.txt: is no wisdom file");
    check_refused({"wisdom", "show", "newer.txt"}, 2, "version 9");
    write_file("newest.txt", "plait-wisdom 1\nplait-wisdom 99999999999999999999\n");
    check_refused({"wisdom", "show", "newest.txt"}, 2, "version 99999999999999999999");
    check_refused({"wisdom", "show", "gone.txt"}, 2, "gone.txt");
    check_refused({"wisdom", "merge", "newer.txt", "-o", "no.txt"}, 2, "version 9");
    check_refused({"wisdom", "merge", "-o", "no.txt"}, 2, "FILE");
    check_refused({"wisdom", "make", "wht:f32:n8", "--rigor", "estimate", "-o", "no.txt"}, 2,
                  "measures nothing");
    check_refused({"wisdom", "make", "-o", "no.txt"}, 2, "tokens or --suite");
    check_refused({"plan", "wht:f32:n8", "--backend", "cpu", "--wisdom", "newer.txt"}, 2,
                  "newer.txt");
    check_refused({"plan", "wht:f32:n8", "--backend", "cpu", "--wisdom", "gone.txt"}, 2,
                  "gone.txt");
    check_refused({"wisdom", "make", "wht:f32:n8", "--backend", "cpu", "-o", "nowhere/w.txt"}, 2,
                  "nowhere/w.txt");
    CHECK(!exists("no.txt"));
}
