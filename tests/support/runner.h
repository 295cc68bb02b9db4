// Runs one call through one candidate and watches everything that must not change.
#pragma once

#include "tests/support/settings.h"
#include "tests/support/wht_call.h"

namespace plait::test {

/// A candidate as plait_candidates_print lists it.
struct candidate {
    std::string name;
    std::string narrowest; ///< "exact", "f64", "f32", "stored", "tf32"
    std::string reason;    ///< why not; empty when applicable
    bool applicable() const { return reason.empty(); }
};

/// Every candidate of the family with its verdict, for the backend of `ctx`.
std::vector<candidate> candidates(const plait_context *ctx, const plait_desc *desc,
                                  plait_math math);
/// Those of the backend under test that apply.
std::vector<candidate> applicable(const plait_desc *desc, plait_math math = PLAIT_MATH_DEFAULT);

/// The unit roundoff that the accuracy bound of this candidate uses for this call.
double roundoff_of(const candidate &c, const wht_call &call);
/// Are its results exact where all partial sums are?
bool is_exact(const candidate &c, const wht_call &call);

pref_ptr preferences(const std::string &pattern, plait_math math = PLAIT_MATH_DEFAULT);
/// A plan by this candidate and no other. Throws with plait's sentence.
plan_ptr plan_by(const std::string &name, const plait_desc *desc,
                 plait_math math = PLAIT_MATH_DEFAULT);

/// SIGNS as plait reads them: bit i % 32 of word i / 32.
bytes packed_bits(const std::vector<uint8_t> &bits);

/// Tensors and workspace of a call in the memory under test.
class bound_call {
public:
    bound_call(const wht_call &call, const plait_plan *plan, const wht_data &data);

    plait_status execute(plait_stream stream);
    plait_status execute() { return execute(target().stream()); }
    void put_x(const bytes &x);
    /// Fills Y and the workspace with poison (in place: Y is X, the workspace alone).
    void poison();
    bytes y();
    int32_t overflow_flag();
    /// "" or what was written that is not ours to write; waits for the device.
    std::string damage();
    const std::vector<plait_arg> &args() const { return args_; }
    void *workspace() const { return work_.data(); }
    size_t workspace_bytes() const { return work_.size(); }

private:
    const wht_call &call_;
    const plait_plan *plan_;
    wht_data data_;
    bytes before_; // Y's image before execute
    guarded x_, y_, signs_, diag_, flag_, work_;
    std::vector<plait_arg> args_;
};

struct outcome {
    bytes y;
    int32_t overflow = 0;
    std::string fault; ///< "" or what execute said, or what it damaged
};

/// Plan, poison, execute, look at everything. In place when the call has the alias.
outcome run(const wht_call &call, const wht_data &data, const candidate &by,
            plait_math math = PLAIT_MATH_DEFAULT);

} // namespace plait::test
