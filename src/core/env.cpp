#include "src/core/env.h"

#include <cstdlib>

namespace plait::impl {

std::string environment(const char *name) {
    const char *value = std::getenv(name);
    return value ? value : "";
}

} // namespace plait::impl
