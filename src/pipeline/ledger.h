// The map of a workspace. Pieces are booked while a pipeline is built, with the steps in which they
// are alive; seal() places them, largest first, at the lowest offset that is free over their steps.
// The same bookings give the same map: it is part of golden plans.
#pragma once

#include <cstdint>
#include <plait/plait.h>
#include <string>
#include <vector>

namespace plait::impl {

struct piece {
    std::string name;
    int64_t bytes;
    int first_step; ///< first and last step that touch it
    int last_step;
    int64_t align;
    int64_t offset = -1; ///< valid after seal()
};

/// Misuse (nothing to book, steps backwards, booking after seal) is a bug of a candidate: INTERNAL.
class ledger {
public:
    /// Returns the index of the piece. bytes > 0; align: a power of two that divides
    /// PLAIT_WORKSPACE_ALIGNMENT, which is all that a caller's workspace promises.
    int book(std::string name, int64_t bytes, int first_step, int last_step,
             int64_t align = PLAIT_WORKSPACE_ALIGNMENT);
    void seal();
    bool sealed() const { return sealed_; }
    int64_t bytes() const; ///< whole workspace; valid after seal()
    const std::vector<piece> &pieces() const { return pieces_; }

private:
    std::vector<piece> pieces_;
    int64_t bytes_ = 0;
    bool sealed_ = false;
};

} // namespace plait::impl
