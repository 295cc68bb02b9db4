// Which tokens and which state every sequence of a call has. Rows of a batch are sequences too.
// Offsets and slots are data: whatever they hold, the spans below stay inside the tensors.
#pragma once

#include "lib/cpu/sequences_layout.h"

namespace plait::impl::cpu {

/// Tokens [begin, begin + length) of row `row` of the call.
struct sequence_span {
    int64_t row, begin, length;
    int64_t state; ///< row of the state tensors; -1: none is touched
    bool live;     ///< else its outputs are zero and it enters nothing
};

struct sequence_data {
    const void *cu_seqlens;
    const int32_t *slots;
    int32_t *status; ///< null: not in use
};

class sequence_table {
public:
    /// `scratch`: sequence_table_bytes. Reads offsets and slots and writes STATUS; by one thread.
    /// Sequences are cut into pieces of at most `piece` tokens, an empty one is one piece.
    sequence_table(const sequence_rules &, const sequence_data &, void *scratch, int64_t piece);

    int64_t count() const { return rules_.sequences; }
    int64_t pieces() const { return pieces_; }
    sequence_span span(int64_t n) const {
        if (table_ == nullptr) return {n, 0, rules_.length, n, true};
        const sequence_entry &e = table_[n];
        const int64_t state = !rules_.pooled ? n : e.live ? e.slot : -1;
        return {rules_.varlen ? 0 : n, e.begin, e.length, state, e.live != 0};
    }
    /// The sequence of a piece.
    int64_t of_piece(int64_t piece) const;
    int64_t first_piece(int64_t n) const {
        return table_ != nullptr ? table_[n].first_piece : n * pieces_per_row_;
    }

    /// Packed tokens that belong to no live sequence: calls zero(begin, end) for each run of them
    /// within [begin, end).
    template <typename Zero> void gaps(int64_t begin, int64_t end, Zero zero) const {
        int64_t n = 0, last = count(); // the first sequence that ends behind `begin`
        while (n < last) {
            const int64_t middle = n + (last - n) / 2;
            if (table_[middle].begin + table_[middle].length > begin)
                last = middle;
            else
                n = middle + 1;
        }
        for (; n < count() && begin < end; ++n) {
            const int64_t next = table_[n].begin < end ? table_[n].begin : end;
            if (begin < next) zero(begin, next);
            const int64_t after = table_[n].begin + table_[n].length;
            if (after > begin) begin = after;
        }
        if (begin < end) zero(begin, end);
    }

private:
    sequence_rules rules_;
    sequence_entry *table_ = nullptr;
    int64_t pieces_per_row_ = 0;
    int64_t pieces_ = 0;
};

} // namespace plait::impl::cpu
