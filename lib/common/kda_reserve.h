// RESERVE of kda, layout "chunk64": what a forward keeps for backward. A header, then one entry of
// equal size for each chunk of 64 tokens and value head, [chunk slot][value head]. Chunks never
// straddle sequences; those of live sequences have slots one behind another.
//   CPU   the state at the head of the chunk, [key][value]; f64 where an input is, else f32
//   CUDA  the record of kda.chunk64_prep, lib/cuda/kda/chunk64_layout.h; with many heads, behind
//         all entries, what kda.chunk64_fwd_scan leaves: S at the head of each chunk, then u
// Without chunks it has no bytes. Sizes follow from the descriptor alone: an entry has room for
// either, where both can be.
#pragma once

#include "lib/common/hd.h"
#include "lib/common/kda_problem.h"

#include <cstring>
#include <initializer_list>

namespace plait::impl {

/// Equal in the forward that writes and in the backward that reads, or the reserve is another's.
struct kda_reserve_header {
    uint64_t magic; ///< "plaitkda"
    uint64_t kind;  ///< version of the layout, and which content
    uint64_t bytes; ///< of the whole
    uint64_t key;   ///< of what both descriptors say about the problem

    PLAIT_HD constexpr bool same_as(const kda_reserve_header &o) const {
        return magic == o.magic && kind == o.kind && bytes == o.bytes && key == o.key;
    }
};

/// What entries hold.
enum class kda_reserve_kind : uint32_t { states = 1, records = 2 };

constexpr uint64_t kda_reserve_magic = 0x6164'6b74'6961'6c70; // "plaitkda", little-endian
constexpr uint64_t kda_reserve_version = 1;
constexpr int64_t kda_reserve_head = 256; ///< bytes before the first entry; all is aligned to it
constexpr int64_t kda_reserve_rows = 64;  ///< tokens of a chunk

/// Where records can be: types and extents that kda.bwd.cuda.chunk64 takes.
constexpr bool kda_reserve_has_records(scalar q, scalar k, scalar v, int64_t dim_k, int64_t dim_v) {
    const auto half = [](scalar s) { return s == scalar::f16 || s == scalar::bf16; };
    return half(q) && half(k) && half(v) && dim_k >= 32 && dim_k <= 128 && dim_v >= 16 &&
           dim_v <= 128;
}

/// k+, kR and q+ [64][keys], M and A [64][64] as bf16, gamma [keys] and beta [64] as f32.
constexpr int64_t kda_reserve_record(int64_t dim_k) {
    const int64_t keys = (dim_k + 63) / 64 * 64;
    return 2 * (3 * 64 * keys + 2 * 64 * 64) + 4 * (keys + 64);
}

/// Of a state. Types of gradients do not count: forward does not know them.
constexpr scalar kda_reserve_state_type(const kda_problem &p) {
    for (const kda_view *v : {&p.q, &p.k, &p.v, &p.g, &p.beta, &p.a_log, &p.dt_bias})
        if (v->type == scalar::f64) return scalar::f64;
    return p.state_in.type == scalar::f64 ? scalar::f64 : scalar::f32;
}

/// Bytes of an entry, a multiple of 256; INT64_MAX beyond 64 bits.
constexpr int64_t kda_reserve_entry(scalar q, scalar k, scalar v, scalar state_type, int64_t dim_k,
                                    int64_t dim_v) {
    constexpr int64_t most = int64_t{1} << 29; // of an extent: the product stays within 64 bits
    if (dim_k > most || dim_v > most) return INT64_MAX;
    const int64_t state = dim_k * dim_v * scalar_bytes(state_type);
    const int64_t record =
        kda_reserve_has_records(q, k, v, dim_k, dim_v) ? kda_reserve_record(dim_k) : 0;
    const int64_t bytes = state > record ? state : record;
    return (bytes + kda_reserve_head - 1) / kda_reserve_head * kda_reserve_head;
}

/// Slots for chunks: enough for every division of `length` tokens into sequences.
constexpr int64_t kda_reserve_slots(bool varlen, int64_t sequences, int64_t length) {
    const int64_t each = length / kda_reserve_rows, rest = length % kda_reserve_rows != 0;
    if (varlen) return sequences > INT64_MAX - each ? INT64_MAX : each + sequences;
    return sequences > 0 && each + rest > INT64_MAX / sequences ? INT64_MAX
                                                                : sequences * (each + rest);
}

/// With few heads both scans of backward run at once, so that it takes no longer to walk forward
/// again; from so many values on, which are 96 blocks of 64, states are kept beside records.
constexpr bool kda_reserve_keeps(int64_t sequences, int64_t value_heads, int64_t dim_v) {
    return static_cast<double>(sequences) * static_cast<double>(value_heads) *
               static_cast<double>(dim_v) >=
           6144;
}

struct kda_reserve_shape {
    int64_t entry;       ///< bytes from entry to entry
    int64_t state, rows; ///< bytes of S [values][keys] and of u [values][64], or 0
    int64_t entries;     ///< of the whole, as its bytes INT64_MAX beyond 64 bits
    int64_t bytes;

    // Behind the header entries; behind these all S, then all u.
    constexpr int64_t states_at() const { return kda_reserve_head + entries * entry; }
    constexpr int64_t rows_at() const { return states_at() + entries * state; }
};

constexpr kda_reserve_shape kda_reserve_shape_of(bool records, int64_t entry, int64_t dim_k,
                                                 int64_t dim_v, int64_t sequences, int64_t slots,
                                                 int64_t value_heads) {
    kda_reserve_shape s{entry, 0, 0, INT64_MAX, INT64_MAX};
    if (records && kda_reserve_keeps(sequences, value_heads, dim_v)) {
        const int64_t values = (dim_v + 63) / 64 * 64;
        s.state = 2 * values * ((dim_k + 63) / 64 * 64);
        s.rows = 2 * values * kda_reserve_rows;
    }
    if (slots > 0 && value_heads > INT64_MAX / slots) return s;
    const int64_t each = entry == INT64_MAX ? entry : entry + s.state + s.rows;
    const int64_t entries = slots * value_heads;
    if (entries > 0 && each > (INT64_MAX - kda_reserve_head) / entries) return s;
    s.entries = entries;
    s.bytes = entries > 0 && each > 0 ? kda_reserve_head + entries * each : 0;
    return s;
}

constexpr kda_reserve_shape kda_reserve_shape_of(const kda_problem &p) {
    return kda_reserve_shape_of(
        kda_reserve_has_records(p.q.type, p.k.type, p.v.type, p.dim_k, p.dim_v),
        kda_reserve_entry(p.q.type, p.k.type, p.v.type, kda_reserve_state_type(p), p.dim_k,
                          p.dim_v),
        p.dim_k, p.dim_v, p.sequences, kda_reserve_slots(p.varlen, p.sequences, p.length),
        p.value_heads);
}

/// What the header of this problem's reserve must be. The key is of what the reserve's content
/// depends on, as far as a descriptor says it; places and alignments of tensors are not in it.
inline kda_reserve_header kda_reserve_header_of(const kda_problem &p, kda_reserve_kind kind) {
    uint64_t key = 0;
    const auto whole = [&key](int64_t value) { // splitmix64 of what came before and this
        uint64_t z = (key ^ static_cast<uint64_t>(value)) + 0x9e3779b97f4a7c15u;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        key = z ^ (z >> 31);
    };
    const auto number = [&whole](double value) {
        int64_t bits;
        std::memcpy(&bits, &value, sizeof bits);
        whole(bits);
    };
    for (const int64_t extent : {p.batch, p.length, p.heads, p.value_heads, p.dim_k, p.dim_v,
                                 p.sequences, p.max_length, int64_t{p.varlen}})
        whole(extent);
    for (const kda_view *v : {&p.q, &p.k, &p.v, &p.g, &p.beta, &p.a_log, &p.dt_bias})
        whole(static_cast<int64_t>(v->type));
    whole(static_cast<int64_t>(p.state_in.type));
    whole(static_cast<int64_t>(p.gate));
    whole(int64_t{p.norm});
    whole(int64_t{p.beta_logit});
    for (const double x : {p.lower_bound, p.beta_scale, p.eps, p.scale}) number(x);
    return {kda_reserve_magic, kda_reserve_version << 32 | static_cast<uint64_t>(kind),
            static_cast<uint64_t>(kda_reserve_shape_of(p).bytes), key};
}

} // namespace plait::impl
