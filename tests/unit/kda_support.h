// What the unit tests of Kimi Delta Attention share.
#pragma once

#include "src/desc/kda.h"
#include "tests/unit/support.h"

namespace unit {

/// Without a gate it is no legal descriptor.
inline kda_descriptor make_kda(plait_direction direction = PLAIT_FORWARD,
                               plait_dtype dtype = PLAIT_F32) {
    kda_descriptor desc(direction, dtype, 2, 8, 2, 4, 3, 5);
    desc.set_gate(PLAIT_GATE_SOFTPLUS, 0);
    return desc;
}

/// Any descriptor, legal or not, small or absurd.
kda_descriptor any_kda(dice &);

/// The roles that descriptors of a direction have, in use or not.
const std::vector<plait_role> &kda_roles(plait_direction direction);

/// Legal tokens of all kinds.
const std::vector<std::string> &kda_corpus();

} // namespace unit
