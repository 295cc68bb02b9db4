// A Walsh-Hadamard problem with what only some kernels know, as the steps of wht.cuda.composed.
#pragma once

#include "src/planner/wht_any_passes.h"
#include "src/planner/wht_candidates.h"

namespace plait::impl {

/// An axis of the problem; one with a matrix of wht.factor is two: the matrix outside, the bits.
struct wht_index_axis {
    wht_axis axis;    ///< with strides of its own
    int64_t w_stride; ///< among the numbers, which lie packed in the order of the axes
    bool matrix;      ///< of wht.factor: length is its order, axis.factor its name
};

class wht_composer {
public:
    wht_composer(const problem &, const profile &);

    verdict refusal; ///< "" or why there are no steps
    pipeline steps;  ///< sealed
    cost estimate;

private:
    /// Pieces of the workspace, booked when their steps are known.
    enum piece { numbers, largest, dense, chains, pieces };

    void make();
    verdict rules() const;
    void add_resets();
    void add_rows();
    /// X (or the numbers) -> the numbers: wht.factor for every matrix, else wht.widen where needed.
    void add_front(bool second);
    void add_transform(bool second);
    const candidate *best_for(const impl::problem &, cost *price) const;
    void add_finish();
    void add_groups();

    wht_problem inner(bool second) const;
    const char *number_name() const;   ///< variant of the kernels around the passes
    int64_t touched(plait_role) const; ///< bytes of a tensor, 0 where it is not in use
    bool narrow() const;               ///< X is none of the types that the passes load
    bool matrices() const;             ///< some axis has one of wht.factor
    bool widens() const;               ///< the input side is applied before the passes
    bool finishes() const;             ///< something is left behind the passes
    bool meets() const;                ///< two transforms meet in Y
    bool begins_in_y() const;          ///< the input side leaves its numbers in Y
    bool ends_in_y(bool second) const;
    bool in_y() const;        ///< the passes leave the results in Y, where wht.finish reads them
    bool side_in_y() const;   ///< wht.finish applies DIAG_IN of an adjoint there
    int64_t elements() const; ///< of X as a whole transform
    int64_t results() const;
    int64_t kept() const; ///< numbers in the workspace
    int64_t transforms() const;

    operand work(piece, bool written) const;
    operand role(plait_role, bool in_use, bool written = false) const;
    step &add(const char *kernel, const char *variant, const step_args &args,
              std::vector<operand> operands, int64_t tiles);
    void moves(step &, int64_t read, int64_t written, int64_t flops = 0);
    void reset(const operand &, int64_t bytes);
    void book_pieces();

    const problem &problem_;
    const wht_problem &p_;
    const profile &device_;
    scalar w_{};
    std::vector<wht_index_axis> index_;
    bool gather_, scatter_; ///< ROWS, of results or of an adjoint's inputs
    /// The numbers are 2^32 high + low, the halves in i64, one behind the other: sums of i64 that
    /// pass 64 bits, where OVERFLOW speaks of chosen results, or of results behind SIGNS.
    bool halves_;
};

} // namespace plait::impl
