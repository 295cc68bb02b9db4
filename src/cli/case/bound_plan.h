// A plan with the buffers it runs on: tensors on a device, workspace, arguments.
#pragma once

#include "src/cli/case/device.h"
#include "src/cli/case/handle.h"
#include "src/cli/case/tensor.h"

#include <map>

namespace plait::cases {

/// Where each tensor of a problem lives. Tensors that alias share one buffer.
class placement {
public:
    /// Room for every tensor. Each begins `shift(alignment)` bytes behind a multiple of 256 and has
    /// `guard` bytes before and behind it.
    placement(device &dev, const std::vector<tensor> &tensors, size_t guard, bool shifted);

    void *at(plait_role role) const { return pointers_.at(role); }
    const std::vector<plait_arg> &args() const { return args_; }

    // The tensor and its guards, or the tensor alone.
    void upload_guarded(plait_role role, const void *image, size_t bytes);
    void download_guarded(plait_role role, void *image, size_t bytes) const;

    static size_t bytes_needed(const std::vector<tensor> &tensors);

private:
    device *device_;
    size_t guard_;
    std::vector<buffer> buffers_;
    std::map<plait_role, void *> pointers_;
    std::vector<plait_arg> args_;
};

/// Workspace of a plan on a device, filled with poison.
class workspace {
public:
    workspace(device &dev, const plait_plan *plan);
    void *get() const { return buffer_.get(); }
    size_t bytes() const { return buffer_.bytes(); }

private:
    buffer buffer_;
};

void execute(const plait_plan *plan, const placement &where, const workspace &work,
             plait_stream stream);

} // namespace plait::cases
