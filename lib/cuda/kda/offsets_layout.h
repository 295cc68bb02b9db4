// Layout of kda.offsets: who owns which tokens, slot and chunk slots, once offsets and slots that
// break their rules are taken out. One block.
//
//   M_n = max of 0 and the cu[j], j <= n, that lie in [0, tokens]; n is good iff cu[n] == M_n,
//   cu[n] <= cu[n+1] <= tokens, cu[n+1] - cu[n] <= max_length and (n > 0 or cu[0] == 0)
//   A reserve whose header is not the expected one leaves no sequence good.
//   n is live iff it is good and its slot, where there is a pool, is inside, not pad, and (with
//   STATUS) no earlier good sequence has it
#pragma once

#include "lib/cuda/kda/common_layout.h"

namespace plait::impl {

struct kda_offsets_args {
    const void *cu;       ///< [sequences + 1]; null: rows of a batch
    const int32_t *slots; ///< [sequences]; null: no pool
    kda_sequence *table;  ///< [sequences + 1]
    kda_chunk *chunks;    ///< [chunk_slots]; null: nobody needs them
    uint64_t *owners;     ///< [slot_count] scratch to find slots that are used twice, or null
    int32_t *status;      ///< 0, 1 + the first bad sequence, -1: the reserve; or null
    const kda_reserve_header *reserve; ///< that backward reads, or null
    kda_reserve_header expected;
    int64_t sequences, tokens, max_length;
    int64_t slot_count;
    int64_t chunk, chunk_slots; ///< tokens of a chunk, at least 1
    int32_t pad;
    bool wide; ///< cu is i64, else i32
};

constexpr int kda_offsets_threads = 1024;
constexpr int kda_offsets_smem_bytes = 32 * 8; ///< one word for each warp

constexpr kda_launch kda_offsets_launch() {
    return {"all", kda_offsets_threads, 1, kda_offsets_smem_bytes};
}

} // namespace plait::impl
