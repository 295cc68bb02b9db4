// What the unit tests of convolutions share.
#pragma once

#include "src/desc/conv1d.h"
#include "tests/unit/support.h"

namespace unit {

inline conv1d_descriptor make_conv1d(plait_direction direction = PLAIT_FORWARD,
                                     plait_dtype dtype = PLAIT_F32) {
    return {direction, dtype, 2, 4, 8, 3};
}

/// Any descriptor, legal or not, small or absurd.
conv1d_descriptor any_conv1d(dice &);

/// The roles that descriptors of a direction have, in use or not.
const std::vector<plait_role> &conv1d_roles(plait_direction direction);

/// Legal tokens of all kinds.
const std::vector<std::string> &conv1d_corpus();

} // namespace unit
