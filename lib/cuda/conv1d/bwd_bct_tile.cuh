// A tile of conv1d.bwd_bct in registers: its elements as floats, g, and its products with taps.
#pragma once

#include "lib/cuda/conv1d/bwd_bct_row.cuh"
#include "lib/cuda/conv1d/bwd_math.cuh"

namespace plait::impl::cuda {

/// pre[e] += the taps of element e, oldest first. x[i] is the input i - history tokens after the
/// first element.
template <class Case>
__device__ __forceinline__ void conv1d_bct_taps(const float (&w)[Case::taps],
                                                const float (&x)[Case::vec + Case::history],
                                                int first, float (&pre)[Case::vec]) {
#pragma unroll
    for (int k = 0; k < Case::taps; ++k) {
        if (!Case::exact && k < first) continue;
#pragma unroll
        for (int e = 0; e < Case::vec; ++e) pre[e] = conv1d_fma(w[k], x[e + k], pre[e]);
    }
}

/// dx of the elements: g[i] belongs to the token i after the first.
template <class Case>
__device__ __forceinline__ void conv1d_bct_dx(const float (&w)[Case::taps],
                                              const float (&g)[Case::vec + Case::history],
                                              int first, float (&dx)[Case::vec]) {
#pragma unroll
    for (int j = 0; j < Case::taps; ++j) {
        if (!Case::exact && j > Case::history - first) continue;
#pragma unroll
        for (int e = 0; e < Case::vec; ++e)
            dx[e] = conv1d_fma(w[Case::history - j], g[e + j], dx[e]);
    }
}

/// The elements' terms of dw and dbias, but for those in `borders`.
template <class Case, bool Masked>
__device__ __forceinline__ void conv1d_bct_dw(const float (&x)[Case::vec + Case::history],
                                              const float (&g)[Case::vec + Case::history],
                                              uint32_t borders, int first, float (&dw)[Case::taps],
                                              float &dbias) {
#pragma unroll
    for (int e = 0; e < Case::vec; ++e) {
        if (Masked && (borders >> e & 1u)) continue;
        dbias = conv1d_add(dbias, g[e]);
#pragma unroll
        for (int k = 0; k < Case::taps; ++k) {
            if (!Case::exact && k < first) continue;
            dw[k] = conv1d_fma(g[e], x[e + k], dw[k]);
        }
    }
}

/// Whether the tap of element e that meets the token d before it counts.
template <class Case>
__device__ __forceinline__ bool conv1d_bct_counts(uint32_t fields, int e, int d) {
    return (fields >> (e * Case::field_bits + d) & 1u) != 0;
}

/// Eight bits of fields, those of the elements e .. e + 8 / field_bits - 1: one instruction makes
/// predicates of them, where the compiler sees no more than these at a time.
template <class Case> __device__ __forceinline__ uint32_t conv1d_bct_byte(uint32_t fields, int e) {
    uint32_t byte = fields >> (e * Case::field_bits);
    conv1d_pin(byte);
    return byte;
}

/// conv1d_bct_taps with fields; elements that are not live get anything.
template <class Case>
__device__ __forceinline__ void conv1d_bct_masked_taps(const float (&w)[Case::taps],
                                                       const float (&x)[Case::vec + Case::history],
                                                       uint32_t own, float (&pre)[Case::vec]) {
    constexpr int each = 8 / Case::field_bits;
#pragma unroll
    for (int e = 0; e < Case::vec; e += each) {
        const uint32_t byte = conv1d_bct_byte<Case>(own, e);
#pragma unroll
        for (int k = 0; k < Case::taps; ++k) {
            const int d = Case::history - k;
#pragma unroll
            for (int i = 0; i < each; ++i)
                if (d == 0 || conv1d_bct_counts<Case>(byte, i, d))
                    pre[e + i] = conv1d_fma(w[k], x[e + i + k], pre[e + i]);
        }
    }
}

/// conv1d_bct_dx with fields of the elements and of those behind them.
template <class Case>
__device__ __forceinline__ void
conv1d_bct_masked_dx(const float (&w)[Case::taps], const float (&g)[Case::vec + Case::history],
                     uint32_t own, uint32_t next, float (&dx)[Case::vec]) {
    constexpr int each = 8 / Case::field_bits;
#pragma unroll
    for (int u = 0; u < Case::vec + Case::history; u += each) {
        const uint32_t byte = u < Case::vec ? conv1d_bct_byte<Case>(own, u)
                                            : conv1d_bct_byte<Case>(next, u - Case::vec);
#pragma unroll
        for (int i = 0; i < each; ++i) {
#pragma unroll
            for (int j = 0; j < Case::taps; ++j) {
                const int e = u + i - j;
                if (e >= 0 && e < Case::vec && (j == 0 || conv1d_bct_counts<Case>(byte, i, j)))
                    dx[e] = conv1d_fma(w[Case::history - j], g[u + i], dx[e]);
            }
        }
    }
}

/// conv1d_bct_dw with fields. Dead: some elements are not live; g is 0 there, x may be anything.
template <class Case, bool Dead>
__device__ __forceinline__ void conv1d_bct_masked_dw(const float (&x)[Case::vec + Case::history],
                                                     const float (&g)[Case::vec + Case::history],
                                                     uint32_t own, float (&dw)[Case::taps],
                                                     float &dbias) {
    constexpr int each = 8 / Case::field_bits;
#pragma unroll
    for (int e = 0; e < Case::vec; e += each) {
        const uint32_t byte = conv1d_bct_byte<Case>(own, e);
#pragma unroll
        for (int i = 0; i < each; ++i) {
            dbias = conv1d_add(dbias, g[e + i]); // 0 where it is not live
#pragma unroll
            for (int k = 0; k < Case::taps; ++k)
                if ((!Dead && k == Case::history) ||
                    conv1d_bct_counts<Case>(byte, i, Case::history - k))
                    dw[k] = conv1d_fma(g[e + i], x[e + i + k], dw[k]);
        }
    }
}

/// What a lane keeps over a walk.
template <class Case> struct conv1d_bct_sums {
    static constexpr int near = Case::history < Case::vec ? Case::history : Case::vec;
    float w[Case::taps], dw[Case::taps], bias, dbias;
    float behind[near]; ///< g of the tile behind
    bool finite;        ///< w: else taps that meet nothing at the ends of a row must be skipped
};

/// A tile as floats.
template <class Case> struct conv1d_bct_tile {
    static constexpr int vec = Case::vec, history = Case::history;
    float x[vec + history], dy[vec], g[vec + history];
    uint2 borders;   ///< bits of elements that conv1d.bwd_bct_fix adds to dw; of those of nothing
    uint32_t inside; ///< kind edge: bits of the elements inside the row
    uint2 fields;    ///< kind masked: of the elements, and of those behind them
    bool dead;       ///< some elements of the warp are not live

    template <conv1d_bct_kind Kind>
    __device__ __forceinline__ void widen(const conv1d_bct_row<Case> &way,
                                          const conv1d_bct_chunk<Case> &in,
                                          const conv1d_bct_cursor<Case, 0> &here) {
        constexpr int per_word = Case::per_word;
        float old[Case::old_loaded * per_word];
#pragma unroll
        for (int q = 0; q < Case::old_loaded; ++q)
            conv1d_widen_word<Case>(in.old[q], old + q * per_word);
#pragma unroll
        for (int i = 0; i < history; ++i) x[i] = old[Case::old_loaded * per_word - history + i];
#pragma unroll
        for (int q = 0; q < 4; ++q) {
            conv1d_widen_word<Case>(in.x[q], x + history + q * per_word);
            conv1d_widen_word<Case>(in.dy[q], dy + q * per_word);
        }
        borders = make_uint2(0, 0);
        if constexpr (Kind == conv1d_bct_kind::plain) return;
        if constexpr (Kind == conv1d_bct_kind::masked) {
            fields = in.fields;
            dead = __any_sync(conv1d_all_lanes,
                              static_cast<int>((fields.x & Case::live) != Case::live)) != 0;
            return;
        }
        if constexpr (Kind == conv1d_bct_kind::edge) {
            inside = way.inside(here);
            // zeros were copied behind a row, but what lies in front of it
            if (here.tile == 0 && way.shifted()) {
#pragma unroll
                for (int i = 0; i < vec + history; ++i)
                    x[i] = here.t + i - history >= 0 ? x[i] : 0.0f;
            }
            if (way.a.state_in && !(Case::marked && way.a.marks)) state(way, here);
            return;
        }
        const bool checked = way.checked(here.tile);
        const uint32_t length = static_cast<uint32_t>(way.length_of(here));
        if constexpr (Case::borders) {
            if (way.masked()) borders = way.borders(here);
        }
        if (checked) {
#pragma unroll
            for (int i = 0; i < vec + history; ++i)
                x[i] = static_cast<uint32_t>(here.t + i - history) < length ? x[i] : 0.0f;
#pragma unroll
            for (int e = 0; e < vec; ++e)
                dy[e] = static_cast<uint32_t>(here.t + e) < length ? dy[e] : 0.0f;
        }
        if (way.a.state_in && !(Case::marked && way.a.marks)) state(way, here);
    }

    /// Inputs from the first state of the row.
    __device__ __forceinline__ void state(const conv1d_bct_row<Case> &way,
                                          const conv1d_bct_cursor<Case, 0> &here) {
        if (here.tile != 0 || here.t >= history || way.length_of(here) == 0) return;
        const conv1d_view &v = way.a.vstate_in;
        const int64_t from = conv1d_at(v, here.row, way.channel(), way.a.entries - history);
        const bool shifted = way.shifted();
        constexpr bool unrolled = Case::exact && history <= vec;
        [[maybe_unused]] constexpr int in_flight = unrolled ? history : 1;
#pragma unroll in_flight
        for (int j = way.first; j < history; ++j) {
            const float value = conv1d_load<float>(way.a.state_in, from + j * v.t, v.type);
            if (unrolled && !shifted) {
                x[j] = value;
            } else if (j - here.t < vec + history) { // of token j - history
                conv1d_put(x, j - here.t, value);
            }
        }
    }

    /// g of the lane's own elements.
    template <conv1d_bct_kind Kind>
    __device__ __forceinline__ void gradient(const conv1d_bct_row<Case> &way,
                                             const conv1d_bct_sums<Case> &s,
                                             const conv1d_bct_cursor<Case, 0> &here) {
        const bool silu =
            Case::act == conv1d_act::silu || (Case::act == conv1d_act::asked && way.a.silu);
        if (silu) {
            float pre[vec];
#pragma unroll
            for (int e = 0; e < vec; ++e) pre[e] = s.bias;
            if constexpr (Kind == conv1d_bct_kind::masked) {
                conv1d_bct_masked_taps<Case>(s.w, x, fields.x, pre);
            } else {
                conv1d_bct_taps<Case>(s.w, x, way.first, pre);
            }
            if (Kind == conv1d_bct_kind::special && !s.finite && here.t < history &&
                !way.a.state_in) {
#pragma unroll 1
                for (int e = 0; e < vec; ++e) {
                    float sum = s.bias;
#pragma unroll 1
                    for (int k = way.first; k < Case::taps; ++k)
                        if (here.t + e - history + k >= 0)
                            sum = conv1d_fma(conv1d_pick(s.w, k), conv1d_pick(x, e + k), sum);
                    conv1d_put(pre, e, sum);
                }
            }
#pragma unroll
            for (int e = 0; e < vec; ++e) g[e] = conv1d_silu_gradient<Case::fast>(dy[e], pre[e]);
        } else {
#pragma unroll
            for (int e = 0; e < vec; ++e) g[e] = dy[e];
        }
        if constexpr (Kind == conv1d_bct_kind::plain) return;
        if constexpr (Kind == conv1d_bct_kind::masked) {
            if (!dead) return;
            conv1d_pin(fields.x);
#pragma unroll
            for (int e = 0; e < vec; ++e) {
                g[e] = conv1d_bct_counts<Case>(fields.x, e, 0) ? g[e] : 0.0f;
            }
            return;
        }
        if constexpr (Kind == conv1d_bct_kind::edge) {
#pragma unroll
            for (int e = 0; e < vec; ++e) g[e] = inside >> e & 1u ? g[e] : 0.0f;
            return;
        }
        if (way.checked(here.tile)) {
            const uint32_t length = static_cast<uint32_t>(way.length_of(here));
#pragma unroll
            for (int e = 0; e < vec; ++e)
                g[e] = static_cast<uint32_t>(here.t + e) < length ? g[e] : 0.0f;
        }
    }
};

} // namespace plait::impl::cuda
