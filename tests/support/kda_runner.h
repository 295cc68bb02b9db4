// Runs one call of Kimi Delta Attention through one candidate and watches everything that must not
// change.
#pragma once

#include "tests/support/kda_oracle.h"
#include "tests/support/runner.h"

#include <memory>

namespace plait::test {

struct kda_outcome {
    std::map<plait_role, std::vector<double>> values; ///< of the tensors that are written
    int32_t status = 0;
    std::string fault; ///< "" or what execute said, or what it damaged
};

/// Tensors and workspace of a call in the memory under test.
class kda_bound {
public:
    kda_bound(const kda_call &call, const plait_desc *desc, const plait_plan *plan,
              const kda_inputs &in);

    plait_status execute() { return execute(target().stream()); }
    plait_status execute(plait_stream stream);
    /// Other inputs; outputs are poisoned again.
    void put(const kda_inputs &in);
    /// What has been written; waits for the device.
    kda_outcome outcome() const;
    /// The elements of a role in the order of kda_call::shape.
    std::vector<double> values(plait_role role) const;
    /// "" or what was written that is not ours to write; waits for the device.
    std::string damage() const;
    std::vector<plait_role> written() const; ///< floating tensors
    bytes reserve() const;                   ///< all of it; none where it is not in use

private:
    struct tensor {
        plait_role role;
        plait_access access;
        plait_dtype type;
        std::vector<int64_t> at; ///< places of the elements in logical order
        bytes before;
        std::shared_ptr<guarded> buffer; ///< of an alias: the other's
    };
    bytes image_of(const tensor &t, const kda_inputs &in) const;

    const kda_call &call_;
    const plait_plan *plan_;
    std::vector<tensor> tensors_;
    std::unique_ptr<guarded> work_;
    std::vector<plait_arg> args_;
};

/// Candidates that apply; for a call with nothing to write one without a name.
std::vector<candidate> candidates_for(const kda_call &call);

/// Plan, poison, execute, look at everything.
kda_outcome run(const kda_call &call, const kda_inputs &in, const candidate &by);

/// What the forward of a backward call leaves in its reserve by this candidate, whose results are
/// judged too. Empty behind a fault, which `fault` then says.
bytes reserve_by(const kda_call &backward, const kda_inputs &in, const candidate &writer,
                 std::string &fault);
/// How a reader is judged that finds states of a narrower type than its own.
candidate reader_of(const kda_call &backward, const candidate &reader);

struct kda_verdict {
    std::string wrong; ///< "" or the first tensor that is beyond its bound
    double ratio = 0;  ///< the largest error / bound
};

/// float64 candidates: every element within its store's rounding and 1e-12 of the largest of its
/// tensor. Others: the relative RMS of every tensor: 1e-5 for F32; with 16-bit data 4e-3, and 3e-3
/// for gradients of gates, beta and parameters. Candidates whose operands are of 16 bits: 5e-3 for
/// those of beta and DT_BIAS, 1e-2 for that of A_LOG, more where few values count, and against the
/// terms of beta and A_LOG where those are larger than their sums; 4e-3 for DG,
/// 5e-3 for a small one; 4e-3 for all else.
kda_verdict judge(const kda_call &call, const kda_results &ref, const kda_outcome &out,
                  const candidate &by);

/// "" when both have the same values; the sign of a zero aside.
std::string difference(const kda_outcome &a, const kda_outcome &b);

} // namespace plait::test
