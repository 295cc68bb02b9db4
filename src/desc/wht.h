// The Walsh-Hadamard descriptor.
#pragma once

#include "lib/common/wht_problem.h"
#include "src/desc/desc.h"

namespace plait::impl {

class wht_descriptor final : public descriptor {
public:
    wht_descriptor(plait_dtype dtype, int rank, const int64_t *extents);

    void set_axes(uint32_t axes);
    void set_bits(uint64_t bits);
    void set_factor(int axis, plait_wht_factor factor);
    void set_order(plait_wht_order order);
    void set_adjoint(bool enable);
    void set_scale(double scale);
    void set_bound(int64_t bound);

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

private:
    bool transformed(size_t axis) const { return (axes_ >> axis & 1u) != 0; }
    void check_types() const;
    void check_lengths() const;
    void check_options() const;
    /// The mask says no more than its absence would.
    bool bits_are_default() const;

    plait_dtype dtype_; // of X, by default of Y and DIAG
    std::vector<int64_t> extents_;
    uint32_t axes_;
    std::optional<uint64_t> bits_;
    std::vector<plait_wht_factor> factors_; // one per axis
    plait_wht_order order_ = PLAIT_NATURAL;
    bool adjoint_ = false;
    double scale_ = 1.0;
    std::optional<int64_t> bound_;
};

} // namespace plait::impl
