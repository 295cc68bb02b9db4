#include "tests/planner/support.h"

namespace plait::test {

TEST_CASE("patterns: globs, the last match wins") {
    const char *tiled = "wht.cuda.two_pass.tiled";
    CHECK(pattern_admits("", tiled));
    CHECK(pattern_admits("*", tiled));
    CHECK(pattern_admits(tiled, tiled));
    CHECK(pattern_admits("wht.cuda.*", tiled));
    CHECK(pattern_admits("*tiled", tiled));
    CHECK(pattern_admits("*two*til*", tiled));
    CHECK(pattern_admits("wht.????.two_pass.*", tiled));
    CHECK_FALSE(pattern_admits("wht.???.two_pass.*", tiled));
    CHECK_FALSE(pattern_admits("wht.cuda", tiled));
    CHECK_FALSE(pattern_admits("wht.cpu.*", tiled));
    // Without a positive glob everything is admitted at first.
    CHECK(pattern_admits("-wht.cpu.*", tiled));
    CHECK_FALSE(pattern_admits("-*.two_pass.*", tiled));
    // With one, nothing is.
    CHECK_FALSE(pattern_admits("wht.cpu.*,-*.ref", tiled));
    CHECK(pattern_admits("-*,wht.cuda.*", tiled));
    CHECK_FALSE(pattern_admits("wht.cuda.*,-*.two_pass.*", tiled));
    CHECK(pattern_admits("wht.cuda.*,-*.two_pass.*,*.tiled", tiled));
    CHECK(pattern_admits("*a*a*a*d", tiled) == false);
    CHECK(pattern_admits("**tiled**", tiled));
}

TEST_CASE("patterns: nonsense is refused") {
    for (const char *good : {"", "*", "-*", "wht.cuda.*,-*.two_pass.*", "a?b_9"})
        CHECK_NOTHROW(check_pattern(good));
    for (const char *empty : {",", "a,", ",a", "-", "a,-,b", "a,,b"}) {
        INFO(empty);
        CHECK(contains(sentence_of(PLAIT_ERR_INVALID_ARGUMENT, [&] { check_pattern(empty); }),
                       "empty glob"));
    }
    for (const char *wrong : {"a b", "WHT.*", "--a", "[ab]", "a;b", "wht:f32", "a\nb"}) {
        INFO(wrong);
        CHECK(contains(sentence_of(PLAIT_ERR_INVALID_ARGUMENT, [&] { check_pattern(wrong); }),
                       "cannot stand in a glob"));
    }
}

} // namespace plait::test
