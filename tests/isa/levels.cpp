#include "tests/isa/levels.h"

#include "lib/cpu/isa.h"

#include <doctest/doctest.h>

namespace isa_test {

namespace cpu = plait::impl::cpu;

void at_every_level(const std::function<void(const std::string &)> &body) {
    int ran = 0;
    for (const char *const *name = cpu::isa_compiled(); *name != nullptr; ++name) {
        if (!cpu::isa_supported(*name)) continue;
        REQUIRE(cpu::isa_restrict(*name));
        REQUIRE(std::string(cpu::isa_name()) == *name);
        INFO("level ", std::string(*name));
        body(*name);
        ++ran;
    }
    REQUIRE(cpu::isa_restrict(nullptr));
    REQUIRE(ran > 0);
}

TEST_CASE("levels: the best supported one is active, unknown names are refused") {
    const std::string best = cpu::isa_name();
    bool first = true;
    for (const char *const *name = cpu::isa_compiled(); *name != nullptr; ++name) {
        if (first && cpu::isa_supported(*name)) {
            CHECK(best == *name);
            first = false;
        }
    }
    CHECK_FALSE(first);
    CHECK_FALSE(cpu::isa_supported("no such level"));
    CHECK_FALSE(cpu::isa_restrict("no such level"));
    CHECK(best == cpu::isa_name());
    at_every_level([](const std::string &) {});
    CHECK(best == cpu::isa_name());
}

} // namespace isa_test
