#include "tests/api/common.h"

#include <set>
#include <thread>

using namespace plait::test;

TEST_CASE("version and build") {
    CHECK(plait_version() == PLAIT_VERSION);
    const std::string info = plait_build_info();
    const std::string version = std::to_string(PLAIT_VERSION_MAJOR) + "." +
                                std::to_string(PLAIT_VERSION_MINOR) + "." +
                                std::to_string(PLAIT_VERSION_PATCH);
    CHECK(contains(info, "plait " + version));
    CHECK(contains(info, "CUDA"));
    CHECK(contains(info, "SCALAR"));
    CHECK_FALSE(contains(info, "\n"));
    CHECK(plait_build_info() == plait_build_info());
}

TEST_CASE("every status has its own name") {
    std::set<std::string> names;
    for (int code = PLAIT_OK; code <= PLAIT_ERR_INTERNAL; ++code)
        names.insert(plait_status_name(static_cast<plait_status>(code)));
    CHECK(names.size() == PLAIT_ERR_INTERNAL + 1);
    CHECK(names.count("no device") == 1);
    REQUIRE(plait_status_name(garbage<plait_status>()) != nullptr);
    CHECK(names.count(plait_status_name(garbage<plait_status>())) == 0);
}

TEST_CASE("role names") {
    CHECK(std::string(plait_role_name(PLAIT_X)) == "x");
    CHECK(std::string(plait_role_name(PLAIT_Y)) == "y");
    CHECK(std::string(plait_role_name(PLAIT_SIGNS)) == "signs");
    CHECK(std::string(plait_role_name(PLAIT_DIAG)) == "diag");
    CHECK(std::string(plait_role_name(PLAIT_OVERFLOW)) == "overflow");
    CHECK(plait_role_name(garbage<plait_role>(0)) == nullptr);
    CHECK(plait_role_name(garbage<plait_role>(15)) == nullptr);
    CHECK(plait_role_name(garbage<plait_role>(-1)) == nullptr);
}

TEST_CASE("the last error belongs to the thread and outlives success") {
    FAILS(plait_desc_from_token(nullptr, "wht:f32:n8"), PLAIT_ERR_INVALID_ARGUMENT,
          "plait_desc_from_token: desc=NULL");
    const std::string mine = plait_last_error();
    std::thread([] {
        CHECK(std::string(plait_last_error()).empty());
        int count = 7;
        FAILS(plait_device_count(garbage<plait_backend>(), &count), PLAIT_ERR_INVALID_ARGUMENT,
              "backend=99");
        CHECK(count == 7);
    }).join();
    int count = 0;
    OK(plait_device_count(PLAIT_CPU, &count));
    CHECK(plait_last_error() == mine);
    CHECK(plait_set_last_error(PLAIT_ERR_IO, "file: not there") == PLAIT_ERR_IO);
    CHECK(std::string(plait_last_error()) == "file: not there");
    FAILS(plait_set_last_error(PLAIT_OK, "fine"), PLAIT_ERR_INVALID_ARGUMENT, "status=0");
    FAILS(plait_set_last_error(static_cast<plait_status>(99), "?"), PLAIT_ERR_INVALID_ARGUMENT,
          "status=99 is no failure");
    FAILS(plait_set_last_error(PLAIT_ERR_IO, nullptr), PLAIT_ERR_INVALID_ARGUMENT, "sentence=NULL");
}

TEST_CASE("device counts never fail for a backend that exists") {
    int count = -1;
    OK(plait_device_count(PLAIT_CPU, &count));
    CHECK(count == 1);
    count = -1;
    OK(plait_device_count(PLAIT_CUDA, &count));
    CHECK(count >= 0);
    FAILS(plait_device_count(PLAIT_CPU, nullptr), PLAIT_ERR_INVALID_ARGUMENT, "count=NULL");
}

namespace {
struct line_log {
    std::vector<std::string> lines;
    std::vector<int> bits;
    static void write(int bit, const char *line, void *user) {
        auto *self = static_cast<line_log *>(user);
        self->bits.push_back(bit);
        self->lines.push_back(line);
    }
    bool has(int bit, const std::string &part) const {
        for (size_t i = 0; i < lines.size(); ++i)
            if (bits[i] == bit && contains(lines[i], part)) return true;
        return false;
    }
};
} // namespace

TEST_CASE("the log gets what was asked for") {
    const context_ptr ctx = cpu_context();
    line_log log;
    FAILS(plait_set_log(1 << 20, line_log::write, &log), PLAIT_ERR_INVALID_ARGUMENT, "bits=");

    OK(plait_set_log(PLAIT_LOG_ERROR, line_log::write, &log));
    const plan_ptr quiet = plan_of(ctx.get(), "wht:f32:n8");
    CHECK(log.lines.empty());
    CHECK(plait_plan_create(nullptr, ctx.get(), nullptr, nullptr) == PLAIT_ERR_INVALID_ARGUMENT);
    REQUIRE(log.lines.size() == 1);
    CHECK(log.has(PLAIT_LOG_ERROR, "plait_plan_create: plan=NULL"));

    log = {};
    OK(plait_set_log(PLAIT_LOG_PLAN | PLAIT_LOG_DISPATCH | PLAIT_LOG_EXEC, line_log::write, &log));
    const plan_ptr plan = plan_of(ctx.get(), "wht:f32:n8");
    CHECK(log.has(PLAIT_LOG_PLAN, candidate_of(plan.get())));
    CHECK(log.has(PLAIT_LOG_DISPATCH, "wht.cpu.ref"));
    CHECK_FALSE(log.has(PLAIT_LOG_EXEC, ""));
    alignas(16) float x[8] = {}, y[8];
    const plait_arg args[] = {{PLAIT_X, x}, {PLAIT_Y, y}};
    OK(plait_execute(plan.get(), args, 2, nullptr, 0, nullptr));
    CHECK(log.has(PLAIT_LOG_EXEC, "wht:f32:n8"));
    for (const std::string &line : log.lines) CHECK_FALSE(contains(line, "\n"));

    OK(plait_set_log(0, nullptr, nullptr));
    const size_t before = log.lines.size();
    const plan_ptr after = plan_of(ctx.get(), "wht:f32:n8");
    CHECK(log.lines.size() == before);
}

TEST_CASE("text out") {
    const desc_ptr desc = desc_of("wht:f32:n8");
    const std::string token = "wht:f32:n8";
    size_t size = 77;
    OK(plait_desc_token(desc.get(), nullptr, 0, &size));
    CHECK(size == token.size() + 1);
    char buf[64];
    std::memset(buf, '#', sizeof buf);
    size = 77;
    FAILS(plait_desc_token(desc.get(), buf, token.size(), &size), PLAIT_ERR_BUFFER_TOO_SMALL,
          "cap=10");
    CHECK(size == token.size() + 1);
    CHECK(buf[0] == '#');
    OK(plait_desc_token(desc.get(), buf, token.size() + 1, &size));
    CHECK(std::string(buf) == token);
    CHECK(buf[token.size() + 1] == '#');
    std::memset(buf, '#', sizeof buf);
    OK(plait_desc_token(desc.get(), buf, sizeof buf, nullptr));
    CHECK(std::string(buf) == token);
    FAILS(plait_desc_token(desc.get(), nullptr, 0, nullptr), PLAIT_ERR_INVALID_ARGUMENT,
          "size=NULL");
}
