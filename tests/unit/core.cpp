// Sentences, numbers as text, the last error, the log.
#include "src/core/checked.h"
#include "src/core/env.h"
#include "src/core/log.h"
#include "tests/unit/support.h"

#include <cstdlib>
#include <limits>
#include <thread>

using namespace unit;

TEST_CASE("numbers are the shortest text that reads back exactly") {
    CHECK(text(0.1) == "0.1");
    CHECK(text(1.0 / 3.0) == "0.3333333333333333");
    CHECK(text(1e-6) == "1e-06");
    CHECK(text(-0.0) == "-0");
    CHECK(text(1e20) == "1e+20");
    CHECK(text(std::numeric_limits<int64_t>::min()) == "-9223372036854775808");
    CHECK(text("a", 'b', std::string("c"), 1, true, PLAIT_ERR_IO) == "abc1true11");
    CHECK(hex(0) == "0");
    CHECK(hex(0x3ff) == "3ff");
    CHECK(hex(~uint64_t{0}) == "ffffffffffffffff");
}

TEST_CASE("checked arithmetic throws at 64 bits and not before") {
    const int64_t max = std::numeric_limits<int64_t>::max();
    CHECK(checked_add(max - 1, 1, "sum") == max);
    CHECK(checked_mul(max / 2, 2, "product") == max - 1);
    CHECK(try_mul(0, max) == 0);
    CHECK(!try_mul(max, 2));
    CHECK(!try_add(max, 1));
    const auto sentence = [](auto f) -> std::string {
        try {
            f();
        } catch (const failure &problem) {
            CHECK(problem.code() == PLAIT_ERR_INVALID_DESC);
            return problem.what();
        }
        return "";
    };
    CHECK(sentence([&] { checked_mul(max, 2, "bytes"); }) ==
          "bytes: 9223372036854775807 * 2 is beyond 64 bits");
    CHECK(sentence([&] { checked_add(max, 1, "span"); }) ==
          "span: 9223372036854775807 + 1 is beyond 64 bits");
}

TEST_CASE("the last error belongs to a thread and is cut, never lost") {
    set_last_error("mine");
    std::thread([] {
        CHECK(std::string(last_error()).empty());
        set_last_error("theirs");
    }).join();
    CHECK(std::string(last_error()) == "mine");
    set_last_error(std::string(2 * longest_sentence, 'x').c_str());
    const std::string cut = last_error();
    CHECK(cut.size() == longest_sentence - 1);
    CHECK(cut.find_first_not_of('x') == longest_sentence - 4);
    CHECK(cut.substr(longest_sentence - 4) == "...");
}

TEST_CASE("the log gives complete lines to the sink that asked") {
    std::vector<std::string> lines;
    const auto collect = [](int bit, const char *line, void *user) {
        static_cast<std::vector<std::string> *>(user)->push_back(text(bit, ' ', line));
    };
    set_log(PLAIT_LOG_PLAN | PLAIT_LOG_EXEC, collect, &lines);
    CHECK(log_wants(PLAIT_LOG_PLAN));
    CHECK_FALSE(log_wants(PLAIT_LOG_ERROR));
    log_line(PLAIT_LOG_PLAN, "one");
    log_line(PLAIT_LOG_ERROR, "two");
    log_line(PLAIT_LOG_EXEC, "three");
    set_log(0, nullptr, nullptr);
    log_line(PLAIT_LOG_EXEC, "four");
    CHECK(lines == std::vector<std::string>{"4 one", "16 three"});
}

TEST_CASE("an unset variable is an empty one") {
    CHECK(environment("PLAIT_SURELY_NOT_SET").empty());
    setenv("PLAIT_UNIT_TEST", "value", 1);
    CHECK(environment("PLAIT_UNIT_TEST") == "value");
    unsetenv("PLAIT_UNIT_TEST");
}
