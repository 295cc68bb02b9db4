// Layout of conv1d.offsets: who owns which tokens, and which slot, once offsets and slots that
// break their rules are taken out. One block; spans[n] = {begin, end} of sequence n in
// non-decreasing order of begin. end < begin: the sequence is bad and owns nothing. end == begin:
// it is empty.
//
//   M_n = max of 0 and the cu[j], j <= n, that lie in [0, tokens]; n is good iff cu[n] == M_n,
//   cu[n] <= cu[n+1] <= tokens, cu[n+1] - cu[n] <= max_length and (n > 0 or cu[0] == 0)
#pragma once

#include "lib/cuda/conv1d/common_layout.h"

namespace plait::impl {

struct conv1d_span {
    int64_t begin, end;
};

struct conv1d_offsets_args {
    const void *cu;       ///< [sequences + 1]; null: no packed sequences
    const int32_t *slots; ///< [sequences]; null: no pool
    conv1d_span *spans;   ///< [sequences]; written with cu
    int32_t *live_slots;  ///< [sequences]; written with slots: -1 where no slot may be touched
    uint64_t *owners;     ///< [slot_count] scratch to find slots that are used twice, or null
    int32_t *status;      ///< 0, or 1 + the first bad sequence; or null
    int64_t sequences, tokens, max_length;
    int64_t slot_count;
    int32_t pad;
    bool wide; ///< cu is i64, else i32
};

constexpr int conv1d_offsets_threads = 1024;      ///< at most
constexpr int conv1d_offsets_smem_bytes = 32 * 8; ///< one word for each warp

/// A thread a sequence, as far as a block goes: every warp reads the words of all.
constexpr conv1d_launch conv1d_offsets_launch(int64_t sequences) {
    const int64_t warps = conv1d_ceil_div(sequences < 1 ? 1 : sequences, 32);
    const bool all = warps >= conv1d_offsets_threads / 32;
    return {"all", all ? conv1d_offsets_threads : static_cast<int>(warps) * 32, 1,
            conv1d_offsets_smem_bytes};
}

} // namespace plait::impl
