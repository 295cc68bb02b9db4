#include "lib/cpu/isa.h"

#include "lib/cpu/simd_targets.h"

#include <cstdint>
#include <cstring>
#include <hwy/highway.h>

namespace plait::impl::cpu {
namespace {

/// One bit per target; the better target has the lower bit.
constexpr int64_t compiled = HWY_TARGETS;

struct level_list {
    const char *names[64] = {};
    level_list() {
        int count = 0;
        for (int64_t left = compiled; left != 0; left &= left - 1)
            names[count++] = hwy::TargetName(left & -left);
    }
};

const level_list &levels() {
    static const level_list list;
    return list;
}

int64_t find(const char *name) {
    for (int64_t left = compiled; left != 0; left &= left - 1)
        if (std::strcmp(hwy::TargetName(left & -left), name) == 0) return left & -left;
    return 0;
}

/// What the machine offers; read once, before any restriction can hide a part of it.
int64_t machine() {
    static const int64_t mask = hwy::SupportedTargets();
    return mask;
}

} // namespace

const char *isa_name() {
    machine();
    const int64_t usable = hwy::SupportedTargets() & compiled;
    return hwy::TargetName(usable != 0 ? usable & -usable : HWY_STATIC_TARGET);
}

const char *const *isa_compiled() { return levels().names; }

bool isa_supported(const char *name) {
    const int64_t bit = find(name);
    return bit != 0 && ((machine() & bit) != 0 || bit == HWY_STATIC_TARGET);
}

bool isa_restrict(const char *name) {
    if (name == nullptr) {
        hwy::SetSupportedTargetsForTest(0);
    } else {
        if (!isa_supported(name)) return false;
        // The level itself and the lesser ones, which have the higher bits.
        hwy::SetSupportedTargetsForTest((machine() | HWY_STATIC_TARGET) & ~(find(name) - 1));
    }
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    return true;
}

} // namespace plait::impl::cpu
