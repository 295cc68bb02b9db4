// What the pieces of conv1d.bwd_bct share: instantiations, words of a tile, where a warp is on its
// walk, and what of that lies in shared memory.
#pragma once

#include "lib/cuda/common/async_copy.cuh"
#include "lib/cuda/conv1d/bwd_bct_layout.h"
#include "lib/cuda/conv1d/bwd_edge.cuh"

namespace plait::impl::cuda {

inline constexpr unsigned conv1d_all_lanes = 0xffffffffu;

/// An instantiation. Taps beyond the width of the problem, at the front, are skipped if it is not
/// exact.
template <scalar S, int Taps, bool Marked, conv1d_act Act> struct conv1d_bwd_case {
    static constexpr scalar type = S;
    static constexpr int taps = Taps;
    static constexpr bool marked = Marked, exact = Taps <= 4 || Act != conv1d_act::asked;
    static constexpr bool fast = S != scalar::f32;
    static constexpr conv1d_act act = Act;
    using bits = typename stored<S>::bits;
    static constexpr int threads = 32 * conv1d_bwd_bct_warps(Taps);
    static constexpr int log_vec = conv1d_log_vec(S), vec = 1 << log_vec;
    static constexpr int history = Taps - 1;
    static constexpr int per_word = S == scalar::f32 ? 1 : 2;
    /// Words before a lane's own that taps read, and how many are loaded: 1, 2 or 16 bytes each.
    static constexpr int old_words = (history + per_word - 1) / per_word;
    static constexpr int old_loaded = old_words <= 2 ? old_words : (old_words + 3) / 4 * 4;
    /// Bytes of a stage of a warp's ring: x behind the tokens before it, dy.
    static constexpr int halo = conv1d_bwd_bct_halo(Taps, log_vec);
    static constexpr int part = conv1d_bwd_bct_part(Taps, log_vec);
    /// Marks are fields of a token, or bits of tokens at a border.
    static constexpr bool fields = conv1d_bwd_bct_takes_fields(Marked, Taps);
    static constexpr bool borders = Marked && !fields;
    static constexpr int field_bits = conv1d_field_bits(log_vec);
    static constexpr uint32_t live = vec == 8 ? 0x11111111u : 0x01010101u; ///< bits 0 of fields
    static constexpr int group = conv1d_bwd_bct_group; ///< stages that are filled at once
    static constexpr int stage = conv1d_bwd_bct_stage(Taps, log_vec);
    static constexpr int ring = conv1d_bwd_bct_ring(Taps, log_vec);
};

template <class Case> __device__ __forceinline__ void conv1d_widen_word(uint32_t word, float *out) {
    if constexpr (Case::per_word == 2) {
        widen_pair<Case::type>(word, out[0], out[1]);
    } else {
        out[0] = __uint_as_float(word);
    }
}

/// What a tile asks for. Edge: some of its elements are outside of their row. Masked: fields say
/// which taps count, and which elements are in the row. Special: anything else.
enum class conv1d_bct_kind { plain, edge, masked, special };

/// What a lane reads of a tile.
template <class Case> struct conv1d_bct_chunk {
    uint32_t x[4], dy[4];
    uint32_t old[Case::old_loaded]; ///< x before
    uint2 fields;                   ///< kind masked: of the elements, and of those behind them
};

/// Where a warp is on its walk. Number 0 computes, number 1 copies.
template <class Case, int Number> struct conv1d_bct_cursor {
    const typename Case::bits *x, *dy; ///< token 0 of the lane's row
    typename Case::bits *dx;
    int row;  ///< the lane's
    int tile; ///< of all lanes
    int t;    ///< the lane's first token
    int run;  ///< tiles from here on that the warp walks of these rows
    int rest; ///< tiles behind those that it walks of the item
};

/// What a warp needs at the ends of items alone: in shared memory behind its ring.
struct conv1d_bct_ledger {
    int64_t first;      ///< item of the pass
    int64_t channel[2]; ///< of the cursors
    int32_t item[2];    ///< of the cursors, counted from the first
    int32_t items;      ///< of the pass
    int32_t end;        ///< of the warp's share, in tiles of the pass
};
static_assert(sizeof(conv1d_bct_ledger) <= conv1d_bwd_bct_ledger);

/// Tiles of a pass that a warp walks, at most.
__device__ __forceinline__ int conv1d_bct_share(const conv1d_bwd_args &a,
                                                const conv1d_bwd_pass &pass) {
    const int warps = static_cast<int>(blockDim.x / 32);
    return (pass.items * static_cast<int>(a.tiles_per_walk) + warps - 1) / warps;
}

/// Sums of dw and dbias: conv1d_bwd_bct_smem_bytes.
template <class Case> __device__ __forceinline__ float (*conv1d_bct_sums_of())[Case::taps + 1] {
    extern __shared__ __align__(16) char shared[];
    return reinterpret_cast<float(*)[Case::taps + 1]>(shared + blockDim.x / 32 * Case::ring);
}

} // namespace plait::impl::cuda
