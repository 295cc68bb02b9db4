// Untyped element access for tests: buffers are bytes, a scalar says what they hold.
#pragma once

#include "lib/common/scalar.h"

#include <complex>
#include <cstdint>
#include <random>
#include <vector>

namespace isa_test {

using plait::impl::scalar;
using rng = std::mt19937_64;

/// Prints the seed; PLAIT_TEST_SEED repeats a run.
uint64_t seed(const char *test);

int64_t pick(rng &r, int64_t lo, int64_t hi); ///< both ends included

bool is_integer(scalar s);
bool is_complex(scalar s);

std::complex<double> get(scalar s, const void *base, int64_t i);
int64_t get_int(scalar s, const void *base, int64_t i);
void put(scalar s, void *base, int64_t i, std::complex<double> v);
void put_int(scalar s, void *base, int64_t i, int64_t v);

/// A random element: floats normal with an occasional large or small exponent, integers of the
/// whole range or, with `small`, in -8..8 (floats too).
void put_random(scalar s, void *base, int64_t i, rng &r, bool small);

/// Half the distance between neighbours of the stored type at v.
double half_ulp(scalar s, double v);

/// Bytes whose first element sits at an address that is `shift` elements off a cache line.
struct buffer {
    buffer(scalar s, int64_t elements, int64_t shift, uint8_t fill);
    void *at() { return bytes.data() + offset; }
    const void *at() const { return bytes.data() + offset; }
    std::vector<uint8_t> bytes;
    int64_t offset;
};

} // namespace isa_test
