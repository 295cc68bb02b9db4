// Runs one convolution through one candidate and watches everything that must not change.
#pragma once

#include "tests/support/conv1d_call.h"
#include "tests/support/runner.h"

#include <memory>

namespace plait::test {

/// Tensors and workspace of a call in the memory under test.
class conv1d_bound {
public:
    conv1d_bound(const conv1d_call &call, const plait_desc *desc, const plait_plan *plan,
                 const conv1d_inputs &in);

    plait_status execute(plait_stream stream);
    plait_status execute() { return execute(target().stream()); }
    /// New contents for the inputs, poison for the outputs and the workspace.
    void put(const conv1d_inputs &in);
    /// The elements of a role in the order [row][channel][time].
    std::vector<double> values(plait_role role) const;
    int32_t status_word() const;
    /// "" or what was written that is not ours to write; waits for the device.
    std::string damage() const;
    std::vector<plait_role> written() const;
    std::vector<plait_arg> &args() { return args_; }
    void *workspace() const { return work_->data(); }
    size_t workspace_bytes() const { return work_->size(); }

private:
    struct tensor {
        plait_role role;
        plait_access access;
        plait_dtype type;
        std::vector<int64_t> at; ///< places of the elements in logical order
        bytes before;
        std::shared_ptr<guarded> buffer; ///< of an alias: the other's
    };
    const tensor *find(plait_role role) const;
    bytes image_of(const tensor &t, const conv1d_inputs &in) const;

    const conv1d_call &call_;
    const plait_plan *plan_;
    std::vector<tensor> tensors_;
    std::unique_ptr<guarded> work_;
    std::vector<plait_arg> args_;
};

struct conv1d_outcome {
    std::map<plait_role, std::vector<double>> values; ///< of the tensors that are written
    int32_t status = 0;
    std::string fault; ///< "" or what execute said, or what it damaged
};

/// Candidates that apply; for a call with nothing to write one without a name.
std::vector<candidate> candidates_for(const conv1d_call &call);

/// Plan, poison, execute, look at everything.
conv1d_outcome run(const conv1d_call &call, const conv1d_inputs &in, const candidate &by);

struct conv1d_verdict {
    std::string wrong; ///< "" or the first element beyond its bound
    double ratio = 0;  ///< the largest error / bound
};

/// An element whose bound is 0 must be the rounded reference.
conv1d_verdict judge(const conv1d_call &call, const conv1d_results &ref, const conv1d_outcome &out);

/// "" when both have the same values; the sign of a zero aside.
std::string difference(const conv1d_outcome &a, const conv1d_outcome &b);

} // namespace plait::test
