// What a run prints after doctest's summary: the worst error of each candidate, and counts of what
// was run and of what could not be.
#pragma once

#include <cstdint>
#include <plait/plait.h>
#include <set>
#include <string>

namespace plait::test {

/// Error / bound of one run of one candidate.
void note_ratio(const std::string &candidate, double ratio, const std::string &token,
                uint64_t seed);
void note_count(const std::string &what, int64_t by = 1);
/// The steps of a plan that was executed, "kernel variant" each.
void note_steps(const plait_plan *plan);
std::set<std::string> noted_steps();
void print_report();

} // namespace plait::test
