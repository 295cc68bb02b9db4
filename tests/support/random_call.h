// Random legal calls.
#pragma once

#include "tests/support/wht_call.h"

namespace plait::test {

/// Any form that a descriptor can take, of at most about 2^log_limit elements; a share of them are
/// the plain rows that fast kernels take, with strides, offsets, types and scales of every kind.
wht_call random_call(rng &random, int log_limit, double plain_share = 0.5);

/// Rows of 2^log_n in one type. Variant 0: packed, several rows; 1: a gap between rows, one element
/// off, in place; 2: odd row count, a scale, gaps that differ for X and Y.
wht_call rows_call(rng &random, plait_dtype type, int log_n, int variant);

/// With filling::integers, are all partial sums exact in the accumulate type, so that the result is
/// the rounded true value?
bool exact_sums(const wht_call &call);

} // namespace plait::test
