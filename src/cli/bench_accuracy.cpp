#include "src/cli/bench_accuracy.h"

#include "src/cli/case/check.h"
#include "src/cli/case/dtype.h"

#include <algorithm>

namespace plait::cli {

using cases::device;
using cases::tensor;

namespace {

/// What is recomputed: at most so many parts, and elements if one part is not more.
constexpr int64_t most_parts = 64;
constexpr int64_t most_elements = int64_t{1} << 22;

/// Parts of tensors on a device, through host memory where the host cannot read them.
class reader {
public:
    explicit reader(device &dev) : device_(&dev) {}

    void read(const cases::slice &s, const tensor &whole, const void *base, void *packed) {
        if (device_->host_memory() && images_.count(s.part.role) == 0)
            return cases::gather(s, base, packed);
        // Parts that lie together travel alone; of scattered ones the whole tensor does, once.
        const bool together = s.part.dtype != PLAIT_B1 && s.part.span() <= 2 * s.part.elements();
        if (!together || images_.count(s.part.role) != 0) {
            keep(whole, base);
            return cases::gather(s, images_.at(s.part.role).data(), packed);
        }
        std::vector<unsigned char> span(s.part.span_bytes());
        device_->download(
            span.data(), static_cast<const char *>(base) + cases::bytes_for(s.part.dtype, s.offset),
            span.size());
        cases::gather({s.part, 0}, span.data(), packed);
    }

    /// Remembers a tensor as it is now.
    void keep(const tensor &t, const void *base) {
        std::vector<unsigned char> &image = images_[t.role];
        if (!image.empty() || t.span() == 0) return;
        image.resize(t.span_bytes());
        device_->download(image.data(), base, image.size());
    }

private:
    device *device_;
    std::map<plait_role, std::vector<unsigned char>> images_;
};

} // namespace

double measure_error(const planned &p, const std::string &token, const std::vector<tensor> &tensors,
                     device &dev, buffer_set &set, const std::function<void()> &execute_once) {
    const std::unique_ptr<cases::checker> judge = cases::make_checker(token, tensors, true);
    const int64_t limit =
        std::min(most_parts, most_elements / std::max<int64_t>(judge->elements(), 1));
    const std::vector<int64_t> which = cases::pick_parts(judge->parts(), limit);

    reader before(dev), after(dev);
    if (set.restores) {
        dev.copy(set.to, set.from, cases::find_tensor(tensors, PLAIT_X)->span_bytes());
        dev.wait();
    }
    // States change in place.
    for (const tensor &t : tensors) {
        if (t.access == PLAIT_READ_WRITE) before.keep(t, set.where.at(t.role));
        if (t.role == PLAIT_STATE_OUT && t.alias)
            before.keep(*cases::find_tensor(tensors, t.alias), set.where.at(t.alias));
    }
    execute_once();
    dev.wait();
    const cases::fetch inputs = [&](const cases::slice &s, void *packed) {
        const plait_role role = s.part.role;
        before.read(s, *cases::find_tensor(tensors, role),
                    role == PLAIT_X && set.restores ? set.from : set.where.at(role), packed);
    };
    const cases::fetch outputs = [&](const cases::slice &s, void *packed) {
        after.read(s, *cases::find_tensor(tensors, s.part.role), set.where.at(s.part.role), packed);
    };
    return judge->check(which, p.how, inputs, outputs).values.error;
}

} // namespace plait::cli
