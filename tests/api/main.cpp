#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "tests/api/common.h"

#include <fstream>
#include <sstream>

namespace plait::test {

std::string stored_profile(const std::string &name) {
    std::ifstream file(std::string(PLAIT_SOURCE_DIR "/tests/golden/profiles/") + name + ".txt");
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

void expect_failure(plait_status got, plait_status wanted, const std::string &part,
                    const char *call, const char *file, int line) {
    const std::string sentence = plait_last_error();
    const bool good = got == wanted && contains(sentence, part);
    if (!good)
        ADD_FAIL_CHECK_AT(file, line,
                          call << " gave " << got << ", wanted " << wanted << " and \"" << part
                               << "\" in: " << sentence);
    CHECK(good); // counts
}

void expect_ok(plait_status got, const char *call, const char *file, int line) {
    if (got != PLAIT_OK)
        ADD_FAIL_AT(file, line, call << " gave " << got << ": " << plait_last_error());
    CHECK(got == PLAIT_OK);
}

} // namespace plait::test
