// The descriptor of a causal depthwise convolution.
#pragma once

#include "lib/common/conv1d_problem.h"
#include "src/desc/desc.h"

namespace plait::impl {

class conv1d_descriptor final : public descriptor {
public:
    conv1d_descriptor(plait_direction direction, plait_dtype dtype, int64_t batch, int64_t channels,
                      int64_t length, int64_t width);

    void set_layout(plait_layout layout);
    void set_activation(plait_activation activation);
    void set_residual(bool enable);
    void set_state(plait_state_kind kind, int64_t entries);
    void set_varlen(int64_t sequences, int64_t max_length) override;
    void set_slots(int64_t count, int32_t pad) override;

    std::unique_ptr<descriptor> clone() const override;
    const char *family() const override;
    void check() const override;
    std::string token() const override;

    /// The problem in normal form. Valid after check().
    conv1d_problem problem() const;

protected:
    const std::vector<role_facts> &role_table() const override;
    std::vector<int64_t> extents_of(plait_role role) const override;
    uint32_t packed_axes_of(plait_role) const override { return ~uint32_t{0}; }
    plait_dtype default_dtype(plait_role role) const override;
    const char *implied_by(plait_role role) const override;

private:
    struct packing {
        int64_t sequences, max_length;
    };
    struct pool {
        int64_t count;
        int32_t pad;
    };
    int64_t entries() const { return entries_.value_or(width_ - 1); }
    /// Of states that are not pooled.
    int64_t sequences() const { return varlen_ ? varlen_->sequences : batch_; }
    bool any_state() const;
    void check_states() const;
    void check_sequences() const;

    plait_direction direction_;
    plait_dtype dtype_; // of X, by default of every floating tensor
    int64_t batch_, channels_, length_, width_;
    plait_layout layout_ = PLAIT_BCT;
    plait_activation activation_ = PLAIT_ACT_NONE;
    bool residual_ = false;
    plait_state_kind kind_ = PLAIT_STATE_LINEAR;
    std::optional<int64_t> entries_;
    std::optional<packing> varlen_;
    std::optional<pool> slots_;
};

} // namespace plait::impl
