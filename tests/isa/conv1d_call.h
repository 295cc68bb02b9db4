// A random call of conv1d in normal form, for bare kernels. Values depend on the seed and on the
// place in [row][channel][time] alone: calls that differ in layout hold the same data.
#pragma once

#include "lib/cpu/conv1d/conv1d_args.h"
#include "tests/isa/typed.h"

#include <map>
#include <string>

namespace isa_test {

using plait::impl::conv1d_direction;
using plait::impl::conv1d_problem;
using plait::impl::conv1d_view;

/// crowded: y alone, in rows that lie multiples of 1 KiB apart, across all other tensors.
enum class layout { bct, btc, pitched_bct, pitched_btc, scattered, crowded_bct, crowded_btc };

struct conv1d_tensor {
    conv1d_view view;
    int64_t extent[3]; ///< row, channel, time
    buffer data;
};

struct conv1d_call {
    conv1d_problem p{};
    bool exact = false; ///< small integers: every sum is exact
    uint64_t seed = 0;
    std::vector<int64_t> offsets;            ///< CU_SEQLENS
    std::vector<int32_t> ids, slots, heads;  ///< SEQ_IDX, SLOTS, POSITION
    std::map<std::string, conv1d_tensor> at; ///< "x", "state_out", ...

    /// Allocates and fills every tensor that `p` uses; outputs hold a pattern.
    void place(layout where);
    /// Runs a kernel with scratch that begins and ends with a pattern, and checks the pattern.
    void run(const std::string &kernel, int threads);
    std::string text() const;
    int32_t status = -1;

private:
    void add(const char *name, conv1d_view *view, int64_t rows, int64_t channels, int64_t time,
             layout where, bool input);
};

/// Every feature at random. Types, extents, states, offsets and slots, also such as break the
/// rules.
conv1d_call random_conv1d(rng &r, conv1d_direction direction);

} // namespace isa_test
