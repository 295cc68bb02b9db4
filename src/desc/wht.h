// The Walsh-Hadamard descriptor.
#pragma once

#include "lib/common/wht_problem.h"
#include "src/desc/desc.h"

namespace plait::impl {

/// Bin i counts first + i * width <= y < first + (i + 1) * width.
struct wht_bins {
    int64_t count, first, width;
};

class wht_descriptor final : public descriptor {
public:
    wht_descriptor(plait_dtype dtype, int rank, const int64_t *extents);

    void set_axes(uint32_t axes);
    void set_bits(uint64_t bits);
    void set_factor(int axis, plait_wht_factor factor);
    void set_factor_order(int axis, int order);
    void set_order(plait_wht_order order);
    void set_adjoint(bool enable);
    void set_scale(double scale);
    void set_bound(int64_t bound);
    void set_rows(int64_t count);
    void set_group(int64_t length);
    void set_histogram(const wht_bins &bins);

    std::unique_ptr<descriptor> clone() const override;
    const char *family() const override { return "wht"; }
    void check() const override;
    std::string token() const override;

    /// The problem in normal form. Valid after check().
    wht_problem problem() const;
    /// Some extent is 0.
    bool empty() const;

protected:
    const std::vector<role_facts> &role_table() const override;
    std::vector<int64_t> extents_of(plait_role role) const override;
    uint32_t packed_axes_of(plait_role role) const override;
    plait_dtype default_dtype(plait_role role) const override;
    const char *implied_by(plait_role role) const override;

private:
    bool transformed(size_t axis) const { return (axes_ >> axis & 1u) != 0; }
    void check_types() const;
    void check_diagonals() const;
    void check_results() const;
    void check_lengths() const;
    void check_options() const;
    /// The mask says no more than its absence would.
    bool bits_are_default() const;
    /// Order of the factor of an axis, 1 without one; its name for tokens, "" without one.
    int factor_order(size_t axis) const;
    std::string factor_name(size_t axis) const;
    int given_order() const; ///< of the matrix that the caller gives; 0: none
    std::vector<size_t> transformed_axes() const;
    /// Extents of Y (of X in an adjoint) with the axis that ROWS replaces.
    std::vector<int64_t> gathered_extents() const;
    /// Extents of AMAX and SCALES.
    std::vector<int64_t> group_extents() const;
    void add_options(wht_problem &p, const std::vector<tensor> &all) const;

    plait_dtype dtype_; // of X, by default of Y and DIAG
    std::vector<int64_t> extents_;
    uint32_t axes_;
    std::optional<uint64_t> bits_;
    std::vector<plait_wht_factor> factors_; // one per axis
    std::vector<int> given_;                // one per axis: the order of the caller's matrix, or 0
    plait_wht_order order_ = PLAIT_NATURAL;
    bool adjoint_ = false;
    double scale_ = 1.0;
    std::optional<int64_t> bound_, rows_, group_;
    std::optional<wht_bins> bins_;
};

} // namespace plait::impl
