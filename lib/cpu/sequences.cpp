#include "lib/cpu/sequences.h"

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

int64_t offset_at(scalar index, const void *cu_seqlens, int64_t n) {
    if (index == scalar::i64) return static_cast<const int64_t *>(cu_seqlens)[n];
    return static_cast<const int32_t *>(cu_seqlens)[n];
}

} // namespace

sequence_table::sequence_table(const sequence_rules &rules, const sequence_data &data,
                               void *scratch, int64_t piece)
    : rules_(rules) {
    const auto pieces_of = [&](int64_t length) {
        return std::max<int64_t>(1, length / piece + (length % piece != 0));
    };
    pieces_per_row_ = pieces_of(rules_.length);
    if (!has_sequence_table(rules_)) {
        pieces_ = rules_.sequences * pieces_per_row_;
        if (data.status != nullptr) *data.status = 0;
        return;
    }
    table_ = static_cast<sequence_entry *>(scratch);
    seen_slots seen{reinterpret_cast<int32_t *>(table_ + rules_.sequences),
                    seen_slot_cells(rules_)};
    if (seen.cells > 0) std::memset(seen.cell, 0, static_cast<size_t>(seen.cells) * 4);
    int64_t first_bad = 0;
    int64_t reached = 0; // the largest offset so far that is one
    int64_t owned = 0;   // where the tokens of the last live sequence end
    for (int64_t n = 0; n < rules_.sequences; ++n) {
        sequence_entry e{0, rules_.length, pieces_, 0, 1};
        bool bad = false, pad = false;
        if (rules_.varlen) {
            const int64_t from = offset_at(rules_.index, data.cu_seqlens, n),
                          to = offset_at(rules_.index, data.cu_seqlens, n + 1);
            if (from >= 0 && from <= rules_.length) reached = std::max(reached, from);
            bad = from < 0 || from != reached || to < from || to > rules_.length ||
                  to - from > rules_.max_length || (n == 0 && from != 0);
            e.begin = from;
            e.length = bad ? 0 : to - from;
        }
        if (rules_.pooled && !bad) {
            e.slot = data.slots[n];
            pad = e.slot == rules_.pad;
            bad = !pad && (e.slot < 0 || e.slot >= rules_.slots ||
                           (seen.cells > 0 && !seen.insert(e.slot)));
        }
        if (bad && first_bad == 0) first_bad = n + 1;
        e.live = !bad && !pad;
        if (rules_.varlen && !e.live) {
            e.begin = owned;
            e.length = 0;
        }
        if (rules_.varlen) owned = e.begin + e.length;
        table_[n] = e;
        pieces_ += pieces_of(e.length);
    }
    if (data.status != nullptr)
        *data.status = static_cast<int32_t>(std::min<int64_t>(first_bad, INT32_MAX));
}

int64_t sequence_table::of_piece(int64_t piece) const {
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
