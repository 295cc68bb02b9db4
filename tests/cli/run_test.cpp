// plait run: round trips on .npy files, and every file that is wrong.
#include "src/cli/case/dtype.h"
#include "src/cli/case/fill.h"
#include "src/cli/case/npy.h"
#include "tests/cli/program.h"

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

using namespace cli_test;
namespace cases = plait::cases;

namespace {

void write_npy(const std::string &name, cases::npy_type type, const std::vector<int64_t> &shape,
               const void *data) {
    int64_t count = 1;
    for (int64_t e : shape) count *= e;
    cases::npy_writer file(scratch(name), type, shape);
    file.write(data, count);
    file.commit();
}

template <class T> std::vector<T> read_npy(const std::string &name, cases::npy_type type) {
    cases::npy_reader file(scratch(name));
    CHECK(file.type.text() == type.text());
    std::vector<T> data(static_cast<size_t>(file.elements) * type.bytes / sizeof(T));
    file.read(data.data(), file.elements);
    return data;
}

outcome run(const std::string &token, const std::string &in, const std::string &out) {
    return program({"run", token, "--backend", "cpu", "--in", "x=" + in, "--out", "y=" + out});
}

} // namespace

TEST_CASE("there and back for every type") {
    struct type_case {
        plait_dtype dtype;
        const char *name;
    };
    // 1/32 each way makes the transform of length 1024 its own inverse, without rounding in scale.
    for (const type_case c : {type_case{PLAIT_F64, "f64"},
                              {PLAIT_F32, "f32"},
                              {PLAIT_F16, "f16"},
                              {PLAIT_BF16, "bf16"},
                              {PLAIT_C64, "c64"},
                              {PLAIT_C128, "c128"}}) {
        INFO(c.name);
        const int64_t count = 3 * 1024;
        std::vector<unsigned char> x(cases::bytes_for(c.dtype, count));
        cases::fill_random(c.dtype, {}, 0, count, x.data());
        const cases::npy_type type = cases::npy_type_of(c.dtype);
        write_npy("x.npy", type, {3, 1024}, x.data());
        const std::string token = std::string("wht:") + c.name + ":b3:n1024:scale=0.03125";
        const outcome there = run(token, "x.npy", "y.npy");
        INFO(there.err);
        CHECK(there.code == 0);
        CHECK(contains(there.out, "wht.cpu."));
        CHECK(run(token, "y.npy", "back.npy").code == 0);
        const std::vector<unsigned char> back = read_npy<unsigned char>("back.npy", type);
        REQUIRE(back.size() == x.size());
        const size_t parts = static_cast<size_t>(count * cases::parts_of(c.dtype));
        std::vector<double> a(parts), b(parts);
        cases::to_double(c.dtype, x.data(), count, a.data());
        cases::to_double(c.dtype, back.data(), count, b.data());
        double wrong = 0, norm = 0;
        for (size_t i = 0; i < parts; ++i) {
            wrong += (a[i] - b[i]) * (a[i] - b[i]);
            norm += a[i] * a[i];
        }
        CHECK(std::sqrt(wrong / norm) < 25 * cases::unit_roundoff(c.dtype));
        CHECK(std::memcmp(x.data(), read_npy<unsigned char>("y.npy", type).data(), x.size()) != 0);
    }
}

TEST_CASE("values, integers and in place") {
    const float x[4] = {1, 2, 3, 4};
    write_npy("x.npy", {'f', 4}, {4}, x);
    for (const char *token : {"wht:f32:n4", "wht:f32:n4:y@x"}) {
        CHECK(run(token, "x.npy", "y.npy").code == 0);
        CHECK(read_npy<float>("y.npy", {'f', 4}) == std::vector<float>{10, -2, -4, 0});
    }
    // The output may replace the input.
    CHECK(run("wht:f32:n4", "x.npy", "x.npy").code == 0);
    CHECK(read_npy<float>("x.npy", {'f', 4}) == std::vector<float>{10, -2, -4, 0});

    const int32_t f[4] = {INT32_MAX, 1, 0, 0};
    write_npy("f.npy", {'i', 4}, {4}, f);
    const outcome o = program({"run", "wht:i32:n4:+overflow", "--backend", "cpu", "--in", "x=f.npy",
                               "--out", "y=w.npy", "--out", "overflow=flag.npy"});
    INFO(o.err);
    CHECK(o.code == 0);
    CHECK(read_npy<int32_t>("flag.npy", {'i', 4}) == std::vector<int32_t>{1});
    CHECK(read_npy<int32_t>("w.npy", {'i', 4}) ==
          std::vector<int32_t>{INT32_MIN, INT32_MAX - 1, INT32_MIN, INT32_MAX - 1});
}

TEST_CASE("without files it says what it wants, as text or JSON") {
    const outcome text = program({"run", "wht:f32:b2:n4:+signs"});
    CHECK(text.code == 0);
    CHECK(text.out.find("--in") != std::string::npos);
    const outcome o = program({"run", "--json", "wht:f32:b2:n4:+signs"});
    INFO(o.err);
    CHECK(o.code == 0);
    const nlohmann::json j = nlohmann::json::parse(o.out);
    CHECK(j["token"] == "wht:f32:b2:n4:+signs");
    REQUIRE(j["tensors"].size() == 3);
    CHECK(j["tensors"][0]["role"] == "x");
    CHECK(j["tensors"][0]["read"] == true);
    CHECK(j["tensors"][0]["written"] == false);
    CHECK(j["tensors"][0]["dtype"] == "f32");
    CHECK(j["tensors"][0]["shape"] == nlohmann::json({2, 4}));
    CHECK(j["tensors"][2]["role"] == "signs");
}

TEST_CASE("bf16 comes rounded from f4 or as bits in u2") {
    const float x[2] = {1.00390625f, 0}; // 1 + 2^-8: a tie, to the even 1
    write_npy("f.npy", {'f', 4}, {2}, x);
    CHECK(run("wht:bf16:n2", "f.npy", "y.npy").code == 0);
    CHECK(read_npy<uint16_t>("y.npy", {'u', 2}) == std::vector<uint16_t>{0x3f80, 0x3f80});
    const uint16_t bits[2] = {0x3f80, 0x4000}; // 1, 2
    write_npy("u.npy", {'u', 2}, {2}, bits);
    CHECK(run("wht:bf16:n2", "u.npy", "y.npy").code == 0);
    CHECK(read_npy<uint16_t>("y.npy", {'u', 2}) == std::vector<uint16_t>{0x4040, 0xbf80});
}

TEST_CASE("signs, strides and mixed types") {
    const uint8_t minus[4] = {0, 1, 0, 1};
    const float x[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    write_npy("s.npy", {'b', 1}, {4}, minus);
    write_npy("x.npy", {'f', 4}, {2, 4}, x);
    const std::vector<double> expected = {-2, 10, 0, -4, -2, 26, 0, -4};
    const outcome o = program({"run", "wht:f32:b2:n4:+signs:x.s9.2:y.f64.s5.1", "--backend", "cpu",
                               "--in", "x=x.npy", "--in", "signs=s.npy", "--out", "y=y.npy"});
    INFO(o.err);
    CHECK(o.code == 0);
    CHECK(read_npy<double>("y.npy", {'f', 8}) == expected);
    const uint8_t wrong[4] = {0, 1, 2, 1};
    write_npy("s.npy", {'u', 1}, {4}, wrong);
    check_refused({"run", "wht:f32:b2:n4:+signs", "--backend", "cpu", "--in", "x=x.npy", "--in",
                   "signs=s.npy", "--out", "y=y.npy"},
                  2, "s.npy: holds 2");
}

TEST_CASE("options may stand before the token, and each may be given again") {
    const float x[4] = {1, 2, 3, 4};
    write_npy("x.npy", {'f', 4}, {4}, x);
    write_file("known.txt", "plait-wisdom 1\n");
    const std::vector<std::vector<std::string>> orders = {
        {"run", "--backend", "cpu", "--in", "x=x.npy", "wht:f32:n4", "--out", "y=y.npy"},
        {"run", "--backend", "cpu", "--in=x=x.npy", "--out", "y=y.npy", "wht:f32:n4"},
        {"run", "--in", "x=x.npy", "--out", "y=y.npy", "--backend", "cpu", "--wisdom", "known.txt",
         "--wisdom", "known.txt", "wht:f32:n4"},
        {"verify", "--backend", "cpu", "--in", "x=x.npy", "wht:f32:n4"}};
    for (const std::vector<std::string> &order : orders) {
        const outcome o = program(order);
        INFO(o.err);
        CHECK(o.code == 0);
    }
    CHECK(read_npy<float>("y.npy", {'f', 4}) == std::vector<float>{10, -2, -4, 0});
}

TEST_CASE("a token alone gives the files; JSON reports") {
    const outcome o = program({"run", "wht:bf16:b2:n4:+signs"});
    CHECK(o.code == 0);
    CHECK(contains(o.out, "f4 or u2 (bits)"));
    CHECK(contains(o.out, "(2, 4)"));
    const float x[4] = {1, 2, 3, 4};
    write_npy("x.npy", {'f', 4}, {4}, x);
    const nlohmann::json j = program({"run", "wht:f32:n4", "--backend", "cpu", "--in", "x=x.npy",
                                      "--out", "y=y.npy", "--json"})
                                 .json();
    CHECK(j.at("token") == "wht:f32:n4");
    CHECK(j.at("transform_s").get<double>() >= 0);
    CHECK(j.at("read_bytes") == 16);
}

TEST_CASE("empty batches") {
    write_npy("none.npy", {'f', 4}, {0, 8}, nullptr);
    const outcome o = run("wht:f32:b0:n8", "none.npy", "y.npy");
    INFO(o.err);
    CHECK(o.code == 0);
    CHECK(read_npy<float>("y.npy", {'f', 4}).empty());
}

TEST_CASE("wrong files and roles are refused before anything is written") {
    const float x[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    const double wide[8] = {};
    write_npy("x.npy", {'f', 4}, {2, 4}, x);
    write_npy("wide.npy", {'f', 8}, {2, 4}, wide);
    write_npy("flat.npy", {'f', 4}, {8}, x);
    const std::string whole = read_file("x.npy");
    write_file("torn.npy", whole.substr(0, whole.size() - 3));
    write_file("text.npy", "1 2 3 4\n");
    const auto refused = [](std::vector<std::string> more, const std::string &part) {
        std::vector<std::string> all = {"run", "wht:f32:b2:n4", "--backend", "cpu"};
        all.insert(all.end(), more.begin(), more.end());
        check_refused(all, 2, part);
        CHECK(!exists("no.npy"));
    };
    refused({"--in", "x=gone.npy", "--out", "y=no.npy"}, "gone.npy: No such file");
    refused({"--in", "x=torn.npy", "--out", "y=no.npy"}, "torn.npy is torn");
    refused({"--in", "x=text.npy", "--out", "y=no.npy"}, "text.npy is not a .npy file");
    refused({"--in", "x=wide.npy", "--out", "y=no.npy"}, "holds f8; role x is f32");
    refused({"--in", "x=flat.npy", "--out", "y=no.npy"}, "shape (8,); role x needs (2, 4)");
    refused({"--in", "z=x.npy", "--out", "y=no.npy"}, "no role \"z\"");
    refused({"--in", "x=x.npy", "--out", "x=no.npy"}, "role x is an input");
    refused({"--in", "y=x.npy", "--out", "y=no.npy"}, "role y is an output");
    refused({"--in", "x=x.npy", "--in", "x=x.npy", "--out", "y=no.npy"}, "given twice");
    refused({"--in", "x.npy", "--out", "y=no.npy"}, "role=file.npy");
    refused({"--in", "x=x.npy"}, "no --out");
    refused({"--out", "y=no.npy"}, "no --in x=file.npy");
    refused({"--in", "x=x.npy", "--out", "y=nowhere/no.npy"}, "nowhere/no.npy: cannot be written");
    refused({"--in", "x=.", "--out", "y=no.npy"}, "not a regular file");
    refused({"--in", "x=x.npy", "--out", "y=./x.npy"}, "is the input x.npy");
    CHECK(read_file("x.npy") == whole);
}

TEST_CASE("two outputs have two files") {
    const int32_t f[4] = {1, 2, 3, 4};
    write_npy("f.npy", {'i', 4}, {4}, f);
    CHECK(shell("mkdir -p sub && ln -sf sub/o.npy l.npy").code == 0);
    const auto refused = [](const std::string &a, const std::string &b) {
        check_refused({"run", "wht:i32:n4:+overflow", "--backend", "cpu", "--in", "x=f.npy",
                       "--out", "y=" + a, "--out", "overflow=" + b},
                      2, "is also the file of role y");
        CHECK(!exists("o.npy"));
        CHECK(!exists("sub/o.npy"));
    };
    refused("o.npy", "o.npy");
    refused("o.npy", "./sub/../o.npy");
    refused("sub/o.npy", "l.npy");
}

TEST_CASE("work that is larger than the machine") {
    const std::string token = "wht:f32:b1048576:n1048576"; // 4 TiB
    check_refused({"verify", token, "--backend", "cpu", "--json"}, 3, "tensors and workspace take");
}

TEST_CASE("a team that OpenMP makes smaller than the plan does all of the work") {
    std::vector<float> x(3 * 65536);
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 251) - 125;
    write_npy("team_x.npy", {'f', 4}, {3, 65536}, x.data());
    const std::string call =
        "$PLAIT run wht:f32:b3:n65536 --backend cpu --in x=team_x.npy --out y=";
    CHECK(shell(call + "alone.npy --threads 1").code == 0);
    for (const char *limit : {"1", "2"}) {
        INFO(limit);
        const std::string limited = std::string("OMP_THREAD_LIMIT=") + limit + " ";
        CHECK(shell(limited + call + "limited.npy --threads 5").code == 0);
        CHECK(read_file("limited.npy") == read_file("alone.npy"));
        const outcome verified =
            shell(limited + "$PLAIT verify --backend cpu --all --threads 5 wht:f32:b3:n65536 "
                            "wht:bf16:b7:n131072 wht:i32:b9:n4096:+overflow wht:c64:b2:n16384:seq "
                            "conv1d.fwd:f32:b2:c64:t3000:k4 conv1d.bwd:bf16:b2:t3000:c64:k4");
        INFO(verified.out);
        CHECK(verified.code == 0);
    }
}

TEST_CASE("outputs of an empty problem are written whole") {
    write_npy("none.npy", {'i', 4}, {0, 8}, nullptr);
    const outcome done = program({"run", "wht:i32:b0:n8:+overflow", "--backend", "cpu", "--in",
                                  "x=none.npy", "--out", "y=y0.npy", "--out", "overflow=flag.npy"});
    INFO(done.err);
    CHECK(done.code == 0);
    CHECK(read_npy<int32_t>("flag.npy", {'i', 4}) == std::vector<int32_t>{0});
    CHECK(program({"verify", "wht:i32:b0:n8:+overflow", "--backend", "cpu"}).code == 0);
}

TEST_CASE("a result on stdout is alone there") {
    const float x[8] = {1};
    write_npy("one.npy", {'f', 4}, {8}, x);
    CHECK(run("wht:f32:n8", "one.npy", "flat.npy").code == 0);
    for (const char *json : {"", " --json"}) {
        const outcome o = shell(std::string("$PLAIT run wht:f32:n8 --backend cpu --in x=one.npy "
                                            "--out y=/dev/stdout") +
                                json + " | cat");
        CHECK(o.out == read_file("flat.npy"));
        CHECK(contains(o.err, "wht.cpu.simd"));
    }
}
