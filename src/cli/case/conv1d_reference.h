// Some channels of a convolution in float64, packed as [row][channel][time], by the definition.
#pragma once

#include "src/cli/case/handle.h"
#include "src/cli/case/tensor.h"

#include <map>

namespace plait::cases {

class conv1d_reference {
public:
    /// `sizes`: without the activation, so that with the moduli of all inputs it gives the sums of
    /// the moduli of all terms. `index`: the type of CU_SEQLENS.
    conv1d_reference(const token_parts &parts, bool sizes, plait_dtype index);

    /// "conv1d.fwd:f64:b8:c3:t100:k4:silu:+bias": strides, promises, aliases and types are gone.
    std::string token(int64_t channels) const;
    /// Those of the call for so many channels: F64, or indices.
    const std::vector<tensor> &tensors(int64_t channels);
    /// A buffer for every tensor; read and written as the call says.
    void run(int64_t channels, const std::map<plait_role, void *> &buffers);

private:
    struct prepared {
        plan_ptr plan;
        std::vector<tensor> tensors;
    };
    prepared &for_channels(int64_t channels);

    token_parts parts_;
    bool sizes_;
    plait_dtype index_;
    pref_ptr pref_;
    context_ptr ctx_;
    std::map<int64_t, prepared> prepared_;
};

} // namespace plait::cases
