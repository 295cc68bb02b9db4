#include "tests/api/common.h"

#include <cstdio>
#include <fcntl.h>
#include <fstream>
#include <sstream>
#include <sys/stat.h>
#include <unistd.h>

using namespace plait::test;

namespace {

std::string read(const std::string &path) {
    std::ifstream file(path);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

/// A folder of its own, empty at the end.
struct folder {
    std::string path;
    folder() {
        char name[] = "plait_test_XXXXXX";
        REQUIRE(mkdtemp(name) != nullptr);
        path = name;
    }
    ~folder() { rmdir(path.c_str()); }
};

void measure(const plait_context *ctx, const char *token) {
    const pref_ptr pref = new_pref();
    OK(plait_pref_set_rigor(pref.get(), PLAIT_MEASURE));
    OK(plait_pref_set_time_limit(pref.get(), 0.01));
    plan_of(ctx, token, pref.get());
}

} // namespace

TEST_CASE("wisdom: text there and back") {
    const context_ptr ctx = cpu_context();
    CHECK(wisdom_of(ctx.get()) == "plait-wisdom 1\n");
    measure(ctx.get(), "wht:f32:n64");
    const std::string text = wisdom_of(ctx.get());
    CHECK(contains(text, "\nwht:f32:n64 | cpu/"));

    const context_ptr other = cpu_context();
    int loaded = -1;
    int skipped = -1;
    OK(plait_wisdom_load(other.get(), text.c_str(), &loaded, &skipped));
    CHECK(loaded >= 1);
    CHECK(skipped == 0);
    CHECK(wisdom_of(other.get()) == text);
    const std::string foreign =
        text + "wht:f32:n64 | cuda/1.0/1sm/X | wht.cpu.ref | 1 | 1e-3\n" + "wht:f32:n64 | torn\n";
    OK(plait_wisdom_load(other.get(), foreign.c_str(), &loaded, &skipped));
    CHECK(skipped == 1); // the torn one
    CHECK(contains(wisdom_of(other.get()), "cuda/1.0/1sm/X"));
    OK(plait_wisdom_load(other.get(), foreign.c_str(), nullptr, nullptr));
    plait_wisdom_clear(other.get());
    CHECK(wisdom_of(other.get()) == "plait-wisdom 1\n");
    plait_wisdom_clear(nullptr);
}

TEST_CASE("wisdom: loaded first, threads set later") {
    const context_ptr first = cpu_context();
    OK(plait_context_set_threads(first.get(), 3));
    measure(first.get(), "wht:f32:n64");
    const context_ptr second = cpu_context();
    OK(plait_context_set_threads(second.get(), 2));
    OK(plait_wisdom_load(second.get(), wisdom_of(first.get()).c_str(), nullptr, nullptr));
    CHECK(wisdom_of(second.get()) == wisdom_of(first.get()));
    const pref_ptr only = new_pref();
    OK(plait_pref_set_wisdom_only(only.get(), 1));
    const desc_ptr desc = desc_of("wht:f32:n64");
    plait_plan *plan = nullptr;
    FAILS(plait_plan_create(&plan, second.get(), desc.get(), only.get()), PLAIT_ERR_NO_WISDOM,
          "no time");
    OK(plait_context_set_threads(second.get(), 3));
    OK(plait_plan_create(&plan, second.get(), desc.get(), only.get()));
    plait_plan_destroy(plan);
}

TEST_CASE("wisdom: what is refused") {
    constexpr plait_status argument = PLAIT_ERR_INVALID_ARGUMENT;
    const context_ptr ctx = cpu_context();
    int count = 0;
    size_t size = 0;
    FAILS(plait_wisdom_load(nullptr, "plait-wisdom 1\n", &count, &count), argument, "ctx=NULL");
    FAILS(plait_wisdom_load(ctx.get(), nullptr, &count, &count), argument, "text=NULL");
    OK(plait_wisdom_load(ctx.get(), "", &count, &count));
    CHECK(count == 0);
    FAILS(plait_wisdom_load(ctx.get(), "something else\n", &count, &count), argument, "line 1");
    FAILS(plait_wisdom_load(ctx.get(), "plait-wisdom 2\n", &count, &count), PLAIT_ERR_VERSION, "2");
    FAILS(plait_wisdom_load_file(nullptr, "x", &count, &count), argument, "ctx=NULL");
    FAILS(plait_wisdom_load_file(ctx.get(), nullptr, &count, &count), argument, "path=NULL");
    FAILS(plait_wisdom_load_file(ctx.get(), "no/such/file", &count, &count), PLAIT_ERR_IO,
          "path=no/such/file: cannot open");
    FAILS(plait_wisdom_load_file(ctx.get(), ".", &count, &count), PLAIT_ERR_IO, "path=.");
    FAILS(plait_wisdom_save(nullptr, nullptr, 0, &size), argument, "ctx=NULL");
    FAILS(plait_wisdom_save_file(nullptr, "x"), argument, "ctx=NULL");
    FAILS(plait_wisdom_save_file(ctx.get(), nullptr), argument, "path=NULL");
    FAILS(plait_wisdom_save_file(ctx.get(), "no/such/folder/file"), PLAIT_ERR_IO,
          "path=no/such/folder/file");
}

TEST_CASE("wisdom: a token of other characters is skipped, and nothing printed holds it") {
    const context_ptr ctx = cpu_context();
    measure(ctx.get(), "wht:f32:n64");
    const std::string text = wisdom_of(ctx.get());
    const size_t line = text.find("\nwht:") + 1;
    for (const char *token : {"wht:f32:n\xff", "wht:\xc3\xbc:n64", "wht:f32 :n64", "wht:F32:n64"}) {
        std::string odd = text;
        odd.replace(line, 11, token);
        const context_ptr other = cpu_context();
        int loaded = 0;
        int skipped = 0;
        OK(plait_wisdom_load(other.get(), odd.c_str(), &loaded, &skipped));
        CHECK(skipped == 1);
        CHECK(!contains(wisdom_of(other.get()), token));
    }
}

TEST_CASE("wisdom: pipes are written through, links are followed, modes stay") {
    const folder here;
    const context_ptr ctx = cpu_context();
    const auto at = [&](const char *name) { return here.path + "/" + name; };
    REQUIRE(mkfifo(at("fifo").c_str(), 0600) == 0);
    const int end = open(at("fifo").c_str(), O_RDONLY | O_NONBLOCK);
    REQUIRE(end >= 0);
    OK(plait_wisdom_save_file(ctx.get(), at("fifo").c_str()));
    char got[64] = {};
    CHECK(::read(end, got, sizeof got - 1) == 15);
    CHECK(got == std::string("plait-wisdom 1\n"));
    close(end);
    struct stat facts = {};
    REQUIRE(lstat(at("fifo").c_str(), &facts) == 0);
    CHECK(S_ISFIFO(facts.st_mode));

    for (const bool there : {false, true}) {
        if (there) REQUIRE(chmod(at("target").c_str(), 0640) == 0);
        REQUIRE(symlink("target", at("link").c_str()) == 0);
        OK(plait_wisdom_save_file(ctx.get(), at("link").c_str()));
        REQUIRE(lstat(at("link").c_str(), &facts) == 0);
        CHECK(S_ISLNK(facts.st_mode));
        REQUIRE(lstat(at("target").c_str(), &facts) == 0);
        CHECK(S_ISREG(facts.st_mode));
        if (there) CHECK((facts.st_mode & 0777) == 0640);
        CHECK(read(at("target")) == "plait-wisdom 1\n");
        std::remove(at("link").c_str());
    }

    // Links that lead nowhere: in a circle, into a folder that is not there.
    REQUIRE(symlink("round", at("round").c_str()) == 0);
    FAILS(plait_wisdom_save_file(ctx.get(), at("round").c_str()), PLAIT_ERR_IO, "round: cannot");
    REQUIRE(lstat(at("round").c_str(), &facts) == 0);
    CHECK(S_ISLNK(facts.st_mode));
    std::remove(at("round").c_str());
    REQUIRE(symlink("gone/file", at("away").c_str()) == 0);
    FAILS(plait_wisdom_save_file(ctx.get(), at("away").c_str()), PLAIT_ERR_IO,
          "away: it leads to ");
    std::remove(at("away").c_str());

    std::ofstream(at("target")) << "kept";
    REQUIRE(chmod(at("target").c_str(), 0444) == 0);
    FAILS(plait_wisdom_save_file(ctx.get(), at("target").c_str()), PLAIT_ERR_IO, "read-only");
    CHECK(read(at("target")) == "kept");
    std::remove(at("target").c_str());
    std::remove(at("fifo").c_str());
}

TEST_CASE("wisdom: files are replaced in one step") {
    const folder here;
    const std::string path = here.path + "/wisdom";
    const context_ptr ctx = cpu_context();
    OK(plait_wisdom_save_file(ctx.get(), path.c_str()));
    CHECK(read(path) == "plait-wisdom 1\n");
    struct stat before = {};
    REQUIRE(stat(path.c_str(), &before) == 0);
    const int held = before.st_mode & 0777;
    CHECK((held & 0400) != 0);
    measure(ctx.get(), "wht:f32:n64");
    std::ifstream reader(path); // opened before: it must keep reading the old text
    OK(plait_wisdom_save_file(ctx.get(), path.c_str()));
    struct stat after = {};
    REQUIRE(stat(path.c_str(), &after) == 0);
    CHECK(after.st_ino != before.st_ino);
    std::ostringstream old;
    old << reader.rdbuf();
    CHECK(old.str() == "plait-wisdom 1\n");
    CHECK(read(path) == wisdom_of(ctx.get()));

    int loaded = 0;
    const context_ptr other = cpu_context();
    OK(plait_wisdom_load_file(other.get(), path.c_str(), &loaded, nullptr));
    CHECK(loaded >= 1);
    // A folder in its place cannot be replaced; no temporary file stays behind.
    std::remove(path.c_str());
    REQUIRE(mkdir(path.c_str(), 0700) == 0);
    FAILS(plait_wisdom_save_file(ctx.get(), path.c_str()), PLAIT_ERR_IO, "cannot write");
    REQUIRE(rmdir(path.c_str()) == 0);
    CHECK(rmdir(here.path.c_str()) == 0);
}
