// The map of a workspace. Pieces are booked while a pipeline is built, with the steps in which they
// are alive; seal() places them, largest first, at the lowest offset that is free over their steps.
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

class ledger {
public:
    /// Returns the index of the piece. bytes > 0.
    int book(std::string name, int64_t bytes, int first_step, int last_step,
             int64_t align = PLAIT_WORKSPACE_ALIGNMENT);
    void seal();
    int64_t bytes() const { return bytes_; } ///< whole workspace; valid after seal()
    const std::vector<piece> &pieces() const { return pieces_; }

private:
    std::vector<piece> pieces_;
    int64_t bytes_ = 0;
};

} // namespace plait::impl
