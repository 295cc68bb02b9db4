#include "lib/cpu/conv1d/sequences.h"

#include <algorithm>
#include <cstring>

namespace plait::impl::cpu {
namespace {

/// Slots in use.
struct seen_slots {
    int32_t *cell; ///< slot + 1 as unsigned, 0: free
    int64_t cells;

    /// False if `slot` was there before.
    bool insert(int32_t slot) {
        const int32_t key = static_cast<int32_t>(static_cast<uint32_t>(slot) + 1u);
        // Fibonacci hashing: slots are often consecutive or multiples of a power of two.
        const uint64_t hash = static_cast<uint64_t>(slot) * 0x9e3779b97f4a7c15u;
        for (int64_t i = static_cast<int64_t>(hash >> 32) & (cells - 1);;
             i = (i + 1) & (cells - 1)) {
            if (cell[i] == key) return false;
            if (cell[i] != 0) continue;
            cell[i] = key;
            return true;
        }
    }
};

int64_t offset_at(const conv1d_args &a, int64_t n) {
    if (a.problem.index == scalar::i64) return static_cast<const int64_t *>(a.cu_seqlens)[n];
    return static_cast<const int32_t *>(a.cu_seqlens)[n];
}

} // namespace

conv1d_sequences::conv1d_sequences(const conv1d_args &a, void *scratch, int64_t piece)
    : p_(a.problem) {
    const auto pieces_of = [&](int64_t length) {
        return std::max<int64_t>(1, length / piece + (length % piece != 0));
    };
    pieces_per_row_ = pieces_of(p_.length);
    if (!conv1d_has_table(p_)) {
        pieces_ = p_.sequences * pieces_per_row_;
        if (a.status != nullptr) *a.status = 0;
        return;
    }
    table_ = static_cast<conv1d_entry *>(scratch);
    seen_slots seen{reinterpret_cast<int32_t *>(table_ + p_.sequences), conv1d_seen_cells(p_)};
    if (seen.cells > 0) std::memset(seen.cell, 0, static_cast<size_t>(seen.cells) * 4);
    int64_t first_bad = 0;
    int64_t reached = 0; // the largest offset so far that is one
    int64_t owned = 0;   // where the tokens of the last live sequence end
    for (int64_t n = 0; n < p_.sequences; ++n) {
        conv1d_entry e{0, p_.length, pieces_, 0, 1};
        bool bad = false, pad = false;
        if (p_.varlen) {
            const int64_t from = offset_at(a, n), to = offset_at(a, n + 1);
            if (from >= 0 && from <= p_.length) reached = std::max(reached, from);
            bad = from < 0 || from != reached || to < from || to > p_.length ||
                  to - from > p_.max_length || (n == 0 && from != 0);
            e.begin = from;
            e.length = bad ? 0 : to - from;
        }
        if (p_.pooled && !bad) {
            e.slot = a.slots[n];
            pad = e.slot == p_.pad;
            bad = !pad &&
                  (e.slot < 0 || e.slot >= p_.slots || (seen.cells > 0 && !seen.insert(e.slot)));
        }
        if (bad && first_bad == 0) first_bad = n + 1;
        e.live = !bad && !pad;
        if (p_.varlen && !e.live) {
            e.begin = owned;
            e.length = 0;
        }
        if (p_.varlen) owned = e.begin + e.length;
        table_[n] = e;
        pieces_ += pieces_of(e.length);
    }
    if (a.status != nullptr)
        *a.status = static_cast<int32_t>(std::min<int64_t>(first_bad, INT32_MAX));
}

int64_t conv1d_sequences::of_piece(int64_t piece) const {
    if (table_ == nullptr) return piece / pieces_per_row_;
    int64_t low = 0, high = count() - 1; // the last sequence whose first piece is not behind
    while (low < high) {
        const int64_t middle = low + (high - low + 1) / 2;
        if (table_[middle].first_piece <= piece)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

} // namespace plait::impl::cpu
