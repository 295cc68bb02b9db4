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

} // namespace plait::test
