// The descriptor of Kimi Delta Attention.
#pragma once

#include "lib/common/kda_problem.h"
#include "src/desc/desc.h"

namespace plait::impl {

class kda_descriptor final : public descriptor {
public:
    kda_descriptor(plait_direction direction, plait_dtype dtype, int64_t batch, int64_t length,
                   int64_t heads, int64_t value_heads, int64_t dim_k, int64_t dim_v);

    void set_gate(plait_kda_gate gate, double lower_bound);
    void set_beta(bool is_logit, double scale);
    void set_qk_norm(bool enable, double eps);
    void set_scale(double scale);
    void set_state(plait_state_layout layout);
    void set_varlen(int64_t sequences, int64_t max_length) override;
    void set_slots(int64_t count, int32_t pad) override;

    std::unique_ptr<descriptor> clone() const override;
    const char *family() const override;
    void check() const override;
    std::string token() const override;

    /// The problem in normal form. Valid after check().
    kda_problem problem() const;

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
    /// Of states that are not pooled.
    int64_t sequences() const { return varlen_ ? varlen_->sequences : batch_; }
    int64_t reserve_bytes() const;
    double default_scale() const;
    double scale() const { return scale_.value_or(default_scale()); }
    void check_gate() const;
    void check_states() const;
    void check_sequences() const;
    void check_reserve() const;

    plait_direction direction_;
    plait_dtype dtype_; // of Q, by default of K, V, G, BETA and O
    int64_t batch_, length_, heads_, value_heads_, dim_k_, dim_v_;
    std::optional<plait_kda_gate> gate_;
    double lower_bound_ = 0;
    bool beta_logit_ = false;
    double beta_scale_ = 1;
    std::optional<double> eps_; // of the norm of q and k, while it is on
    std::optional<double> scale_;
    std::optional<plait_state_layout> orientation_;
    std::optional<packing> varlen_;
    std::optional<pool> slots_;
};

} // namespace plait::impl
