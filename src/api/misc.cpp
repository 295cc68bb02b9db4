// Version, names, errors, log.
#include "src/api/guard.h"
#include "src/backend/backend.h"
#include "src/core/log.h"
#include "src/core/tables.h"

using namespace plait::impl;

namespace {

std::string describe_build() {
#if defined(__clang__)
    const std::string compiler = text("clang ", __clang_major__, '.', __clang_minor__);
#elif defined(__GNUC__)
    const std::string compiler = text("gcc ", __GNUC__, '.', __GNUC_MINOR__);
#else
    const std::string compiler = "unknown compiler";
#endif
    return text("plait ", PLAIT_VERSION_MAJOR, '.', PLAIT_VERSION_MINOR, '.', PLAIT_VERSION_PATCH,
                ", ", compiler, ", ", cuda_build(), ", CPU levels ", cpu_build());
}

} // namespace

extern "C" {

int plait_version(void) { return PLAIT_VERSION; }

const char *plait_build_info(void) {
    static const std::string info = [] {
        std::string line;
        guard("plait_build_info", [&] { line = describe_build(); });
        return line;
    }();
    return info.c_str();
}

const char *plait_status_name(plait_status status) { return status_name(status); }

const char *plait_role_name(plait_role role) { return role_name(role); }

const char *plait_last_error(void) { return last_error(); }

plait_status plait_set_last_error(plait_status status, const char *sentence) {
    const plait_status told = guard(__func__, [&] {
        require(sentence, "sentence");
        if (status <= PLAIT_OK || status > PLAIT_ERR_INTERNAL)
            fail(PLAIT_ERR_INVALID_ARGUMENT, "status=", static_cast<int>(status),
                 " is no failure of plait");
    });
    return told == PLAIT_OK ? report("", status, sentence) : told;
}

plait_status plait_set_log(int bits, plait_log_fn fn, void *user) {
    return guard(__func__, [&] {
        constexpr int all =
            PLAIT_LOG_ERROR | PLAIT_LOG_WARN | PLAIT_LOG_PLAN | PLAIT_LOG_DISPATCH | PLAIT_LOG_EXEC;
        if (bits & ~all) fail(PLAIT_ERR_INVALID_ARGUMENT, "bits=", bits, " has bits beyond ", all);
        set_log(bits, fn, user);
    });
}

} // extern "C"
