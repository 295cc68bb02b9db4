#include "src/cli/case/bound_plan.h"

#include "src/cli/case/fill.h"

#include <algorithm>

namespace plait::cases {
namespace {

constexpr size_t granule = 256; ///< what device::allocate() is aligned to

} // namespace

size_t placement::bytes_needed(const std::vector<tensor> &tensors) {
    size_t bytes = 0;
    for (const tensor &t : tensors)
        if (!t.alias || !find_tensor(tensors, t.alias)) bytes += t.span_bytes() + granule;
    return bytes;
}

placement::placement(device &dev, const std::vector<tensor> &tensors, size_t guard, bool shifted)
    : device_(&dev), guard_(guard) {
    for (const tensor &t : tensors) {
        if (t.alias) continue;
        // Exactly the promise and no more: a kernel that assumes more must fail.
        const size_t shift =
            shifted || t.alignment < 16 ? static_cast<size_t>(t.alignment) % granule : 0;
        buffers_.emplace_back(dev, guard + shift + t.span_bytes() + guard + granule);
        pointers_[t.role] = buffers_.back().at(guard + shift);
    }
    for (const tensor &t : tensors)
        if (t.alias) pointers_[t.role] = pointers_.at(t.alias);
    for (const tensor &t : tensors) args_.push_back({t.role, pointers_.at(t.role)});
}

void placement::upload_guarded(plait_role role, const void *image, size_t bytes) {
    device_->upload(static_cast<char *>(at(role)) - guard_, image, bytes);
}

void placement::download_guarded(plait_role role, void *image, size_t bytes) const {
    device_->download(image, static_cast<char *>(at(role)) - guard_, bytes);
}

workspace::workspace(device &dev, const plait_plan *plan) {
    size_t bytes = 0;
    check(plait_plan_workspace_size(plan, &bytes));
    if (bytes == 0) return;
    buffer_ = buffer(dev, bytes);
    const std::vector<unsigned char> poison(std::min<size_t>(bytes, size_t{16} << 20), poison_byte);
    for (size_t done = 0; done < bytes; done += poison.size())
        dev.upload(buffer_.at(done), poison.data(), std::min(poison.size(), bytes - done));
}

void execute(const plait_plan *plan, const placement &where, const workspace &work,
             plait_stream stream) {
    const std::vector<plait_arg> &args = where.args();
    check(plait_execute(plan, args.data(), static_cast<int>(args.size()), work.get(), work.bytes(),
                        stream));
}

} // namespace plait::cases
