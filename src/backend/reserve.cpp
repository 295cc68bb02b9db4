#include "src/backend/reserve.h"

#include "lib/common/half.h"
#include "lib/common/kda_reserve.h"
#include "src/core/status.h"

#include <algorithm>

namespace plait::impl {

void check_reserve(const problem &of, const void *reserve) {
    const auto *const p = std::get_if<kda_problem>(&of.form);
    if (!p || !p->reserve || p->direction == kda_direction::forward) return;
    kda_reserve_header found;
    std::memcpy(&found, reserve, sizeof found);
    if (found.same_as(kda_reserve_header_of(*p, kda_reserve_kind::states))) return;
    fail(PLAIT_ERR_INVALID_ARGUMENT, "reserve: ",
         found.magic != kda_reserve_magic
             ? "no forward wrote it"
             : "the forward that wrote it had other extents, types or options, or another backend",
         "; this is ", of.token);
}

std::vector<std::byte> measuring_reserve(const problem &of, size_t most) {
    const kda_problem &p = of.kda();
    const kda_reserve_header header = kda_reserve_header_of(p, kda_reserve_kind::records);
    std::vector<std::byte> out(std::min(most, static_cast<size_t>(header.bytes)));
    uint32_t state = 1;
    for (size_t at = 0; at + 2 <= out.size(); at += 2) {
        state = state * 1664525u + 1013904223u;
        const double value = (static_cast<double>(state >> 16) / 32768 - 1) / 64;
        const uint16_t bits = f64_to_bf16(value);
        std::memcpy(out.data() + at, &bits, sizeof bits);
    }
    std::memcpy(out.data(), &header, std::min(out.size(), sizeof header));
    return out;
}

} // namespace plait::impl
