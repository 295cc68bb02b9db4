// plait_pref: how hard to plan and within which limits.
#include "src/api/guard.h"
#include "src/api/handles.h"

#include <cmath>

using namespace plait::impl;

namespace {

template <class Set> plait_status set(const char *function, plait_pref *pref, Set &&how) noexcept {
    return guard(function, [&] {
        require(pref, "pref");
        how(pref->body);
    });
}

} // namespace

extern "C" {

plait_status plait_pref_create(plait_pref **pref) {
    return guard_create(__func__, pref, "pref", [] { return new plait_pref; });
}

plait_status plait_pref_set_rigor(plait_pref *pref, plait_rigor rigor) {
    return set(__func__, pref, [&](preferences &p) {
        if (!rigor_name(rigor))
            fail(PLAIT_ERR_INVALID_ARGUMENT, "rigor=", rigor, " is no plait_rigor");
        p.rigor = rigor;
    });
}

plait_status plait_pref_set_wisdom_only(plait_pref *pref, int enable) {
    return set(__func__, pref, [&](preferences &p) { p.wisdom_only = enable != 0; });
}

plait_status plait_pref_set_workspace_limit(plait_pref *pref, size_t bytes) {
    return set(__func__, pref, [&](preferences &p) { p.workspace_limit = bytes; });
}

plait_status plait_pref_set_time_limit(plait_pref *pref, double seconds) {
    return set(__func__, pref, [&](preferences &p) {
        if (!std::isfinite(seconds) || !(seconds > 0))
            fail(PLAIT_ERR_INVALID_ARGUMENT, "seconds=", seconds, " is not positive and finite");
        p.time_limit = seconds;
    });
}

plait_status plait_pref_set_determinism(plait_pref *pref, plait_determinism level) {
    return set(__func__, pref, [&](preferences &p) {
        if (level != PLAIT_ANY_ORDER && level != PLAIT_RUN_TO_RUN)
            fail(PLAIT_ERR_INVALID_ARGUMENT, "level=", level, " is no plait_determinism");
        p.determinism = level;
    });
}

plait_status plait_pref_set_math(plait_pref *pref, plait_math math) {
    return set(__func__, pref, [&](preferences &p) {
        if (math != PLAIT_MATH_DEFAULT && math != PLAIT_MATH_F32 && math != PLAIT_MATH_TF32)
            fail(PLAIT_ERR_INVALID_ARGUMENT, "math=", math, " is no plait_math");
        p.math = math;
    });
}

plait_status plait_pref_set_candidates(plait_pref *pref, const char *pattern) {
    return set(__func__, pref, [&](preferences &p) {
        require(pattern, "pattern");
        if (*pattern) check_pattern(pattern);
        p.pattern = pattern;
    });
}

void plait_pref_destroy(plait_pref *pref) { delete pref; }

} // extern "C"
