// What the unit tests share: refusals, and random numbers that can be replayed.
#pragma once

#include "src/core/status.h"
#include "src/desc/wht.h"

#include <cstdint>
#include <doctest/doctest.h>
#include <random>
#include <string>
#include <vector>

namespace unit {

using namespace plait::impl;

/// PLAIT_TEST_SEED, or one that differs from run to run and is printed.
uint64_t test_seed();

/// PLAIT_TEST_ROUNDS multiplies the length of random tests.
int rounds(int usual);

class dice {
public:
    explicit dice(uint64_t seed) : engine_(seed) {}
    /// first <= result <= last
    int64_t between(int64_t first, int64_t last) {
        return std::uniform_int_distribution<int64_t>(first, last)(engine_);
    }
    bool one_in(int n) { return between(1, n) == 1; }
    template <class T> const T &pick(const std::vector<T> &from) {
        return from[static_cast<size_t>(between(0, static_cast<int64_t>(from.size()) - 1))];
    }
    uint64_t bits() { return engine_(); }

private:
    std::mt19937_64 engine_;
};

/// f must be refused with this code and a sentence that contains `part`.
template <class F> void expect_failure(plait_status code, const std::string &part, const F &f) {
    INFO("expected: ", part);
    try {
        f();
    } catch (const failure &problem) {
        const std::string sentence = problem.what();
        INFO("sentence: ", sentence);
        CHECK(problem.code() == code);
        CHECK(sentence.find(part) != std::string::npos);
        CHECK(sentence.rfind("plait_", 0) == 0);
        return;
    }
    FAIL_CHECK("was accepted");
}

inline wht_descriptor make_wht(plait_dtype dtype, const std::vector<int64_t> &extents) {
    return {dtype, static_cast<int>(extents.size()), extents.data()};
}

inline void set_strides(descriptor &desc, plait_role role, const std::vector<int64_t> &strides) {
    desc.set_strides(role, static_cast<int>(strides.size()), strides.data());
}

/// Any descriptor, legal or not, small or absurd.
wht_descriptor any_descriptor(dice &);
/// Passes check() and has at most a few thousand elements.
wht_descriptor small_descriptor(dice &);

/// Tokens of all kinds: the examples of the interface and the rows of "who needs what".
const std::vector<std::string> &corpus();

} // namespace unit
