#include "src/pipeline/ledger.h"

#include "src/core/checked.h"
#include "src/core/status.h"

#include <algorithm>
#include <numeric>

namespace plait::impl {

namespace {

bool alive_together(const piece &a, const piece &b) {
    return a.first_step <= b.last_step && b.first_step <= a.last_step;
}

int64_t round_up(int64_t value, int64_t align) {
    return checked_add(value, align - 1, "workspace bytes") / align * align;
}

} // namespace

int ledger::book(std::string name, int64_t bytes, int first_step, int last_step, int64_t align) {
    if (sealed_) fail(PLAIT_ERR_INTERNAL, "ledger: ", name, " is booked after seal");
    if (bytes <= 0) fail(PLAIT_ERR_INTERNAL, "ledger: ", name, " books ", bytes, " bytes");
    if (first_step < 0 || last_step < first_step)
        fail(PLAIT_ERR_INTERNAL, "ledger: ", name, " lives in steps ", first_step, " to ",
             last_step);
    if (align <= 0 || (align & (align - 1)) != 0 || align > PLAIT_WORKSPACE_ALIGNMENT)
        fail(PLAIT_ERR_INTERNAL, "ledger: ", name, " has the alignment ", align);
    pieces_.push_back({std::move(name), bytes, first_step, last_step, align});
    return static_cast<int>(pieces_.size()) - 1;
}

void ledger::seal() {
    if (sealed_) fail(PLAIT_ERR_INTERNAL, "ledger: sealed twice");
    std::vector<size_t> order(pieces_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return pieces_[a].bytes > pieces_[b].bytes; });

    std::vector<const piece *> placed; // by rising offset
    for (const size_t index : order) {
        piece &p = pieces_[index];
        int64_t offset = 0;
        for (const piece *other : placed) {
            if (!alive_together(p, *other)) continue;
            if (p.bytes <= other->offset - offset) break; // fits into the gap before `other`
            offset = std::max(offset, round_up(other->offset + other->bytes, p.align));
        }
        p.offset = offset;
        bytes_ = std::max(bytes_, checked_add(offset, p.bytes, "workspace bytes"));
        placed.insert(
            std::upper_bound(placed.begin(), placed.end(), &p,
                             [](const piece *a, const piece *b) { return a->offset < b->offset; }),
            &p);
    }
    sealed_ = true;
}

int64_t ledger::bytes() const {
    if (!sealed_ && !pieces_.empty())
        fail(PLAIT_ERR_INTERNAL, "ledger: its size is asked for before seal");
    return bytes_;
}

} // namespace plait::impl
