#include "src/cli/bench_buffers.h"

#include "src/cli/case/dtype.h"
#include "src/cli/case/inputs.h"

#include <algorithm>

namespace plait::cli {

using cases::buffer;
using cases::device;
using cases::find_tensor;
using cases::tensor;

namespace {

/// Random data is drawn for so many elements and then repeated over the buffer.
constexpr int64_t pattern_elements = (int64_t{1} << 22) + 1;
/// One page of a GPU, and 17 times 256 bytes.
constexpr size_t place_step = (size_t{2} << 20) + 4352;

/// Elements that a step must touch of one channel's state, twice those that it reads and writes.
int64_t state_traffic(const cases::token_parts &parts) {
    const int64_t entries = parts.entries(), history = parts.extent('k') - 1;
    const int64_t samples = parts.extent('t');
    if (parts.option("state").compare(0, 4, "ring") == 0)
        return history + std::min(samples, entries);
    return std::max(history, entries - samples) + entries; // what stays moves up
}

yardstick update_yardstick(const cases::token_parts &parts, const std::vector<tensor> &tensors) {
    size_t bytes = 0;
    for (const tensor &t : tensors)
        if (t.role != PLAIT_STATE) bytes += cases::distinct(t).dense_bytes();
    const tensor &state = *find_tensor(tensors, PLAIT_STATE);
    bytes +=
        cases::bytes_for(state.dtype, parts.extent('b') * parts.extent('c') * state_traffic(parts));
    return {bytes, std::max<size_t>(bytes / 2, 1)};
}

/// Every tensor once, but of a pool only the slots of the call.
yardstick kda_yardstick(const cases::token_parts &parts, const std::vector<tensor> &tensors) {
    const int64_t pool = parts.two("slots").first;
    const int64_t sequences =
        parts.option("seqs").empty() ? parts.extent('b') : parts.two("seqs").first;
    size_t bytes = 0;
    for (const tensor &t : tensors) {
        size_t all = cases::distinct(t).dense_bytes();
        const bool state = t.role == PLAIT_STATE_IN || t.role == PLAIT_STATE_OUT;
        if (state && pool > sequences)
            all = all / static_cast<size_t>(pool) * static_cast<size_t>(sequences);
        bytes += all;
    }
    return {bytes, std::max<size_t>(bytes / 2, 1)};
}

/// X, or what has data to copy where there is none.
const tensor &subject_of(const std::vector<tensor> &tensors) {
    if (const tensor *x = find_tensor(tensors, PLAIT_X)) return *x;
    return *std::max_element(tensors.begin(), tensors.end(), [](const tensor &a, const tensor &b) {
        return a.span_bytes() < b.span_bytes();
    });
}

/// The whole span, gaps too.
void fill_floats(device &dev, const tensor &t, const cases::input &random, void *at) {
    const int64_t span = t.span();
    const int64_t drawn = std::min(span, pattern_elements);
    std::vector<unsigned char> pattern(cases::bytes_for(t.dtype, drawn));
    random.read(0, drawn, pattern.data());
    dev.upload(at, pattern.data(), pattern.size());
    // Doubling on the device: the bus would take longer than the measurement.
    const size_t all = t.span_bytes();
    for (size_t have = pattern.size(); have < all; have *= 2)
        dev.copy(static_cast<char *>(at) + have, at, std::min(have, all - have));
    dev.wait();
}

/// Bits and indices are few: laid out on the host.
void fill_exactly(device &dev, const tensor &t, const cases::input &random, void *at) {
    const tensor data = cases::distinct(t);
    const int64_t count = data.elements();
    std::vector<unsigned char> dense(t.dtype == PLAIT_B1 ? static_cast<size_t>(count)
                                                         : cases::bytes_for(t.dtype, count));
    std::vector<unsigned char> image(t.span_bytes());
    random.read(0, count, dense.data());
    cases::scatter(data, image.data(), 0, count, dense.data());
    dev.upload(at, image.data(), image.size());
}

void fill_tensor(device &dev, const cases::token_parts &parts, const tensor &t, uint64_t seed,
                 void *at) {
    if (t.span() == 0) return;
    const cases::input random(parts, t, {seed, true});
    if (t.dtype == PLAIT_B1 || cases::is_index(t.role))
        fill_exactly(dev, t, random, at);
    else
        fill_floats(dev, t, random, at);
}

/// Repeats `have` bytes of `from` over `bytes`.
void repeat(device &dev, void *to, size_t bytes, const void *from, size_t have) {
    for (size_t done = 0; done < bytes; done += have)
        dev.copy(static_cast<char *>(to) + done, from, std::min(have, bytes - done));
}

/// The result that the copy may overwrite: as large as X.
const tensor *result_of(const std::vector<tensor> &tensors) {
    const tensor *y = find_tensor(tensors, PLAIT_Y);
    return y ? y : find_tensor(tensors, PLAIT_DX);
}

enum class ends { in_place, tensors, own };

ends ends_of(const std::vector<tensor> &tensors, size_t copied) {
    const tensor &x = subject_of(tensors), *y = result_of(tensors);
    if (y && y->alias) return ends::in_place;
    return y && x.span_bytes() >= copied && y->span_bytes() >= copied ? ends::tensors : ends::own;
}

} // namespace

yardstick yardstick_of(const cases::token_parts &parts, const std::vector<tensor> &tensors) {
    if (parts.family == "conv1d.update") return update_yardstick(parts, tensors);
    if (parts.is_kda()) return kda_yardstick(parts, tensors);
    const size_t x = cases::distinct(*find_tensor(tensors, PLAIT_X)).dense_bytes();
    if (parts.family == "conv1d.bwd") {
        size_t bytes = x;
        for (const plait_role role : {PLAIT_DY, PLAIT_DX})
            if (const tensor *t = find_tensor(tensors, role))
                bytes += cases::distinct(*t).dense_bytes();
        return {bytes, x}; // a copy of x, as for the forward call: the floor of r is 1.5
    }
    // A copy reads and writes each byte: half of them is copied.
    const tensor *y = find_tensor(tensors, PLAIT_Y); // none: a spectrum that is not stored
    const size_t bytes = x + (y ? y->dense_bytes() : 0);
    return {bytes, bytes / 2};
}

buffer_set::buffer_set(device &dev, const std::vector<tensor> &tensors, size_t copied)
    : where(dev, tensors, 0, false) {
    switch (ends_of(tensors, copied)) {
    case ends::in_place:
        pristine = buffer(dev, std::max(copied, find_tensor(tensors, PLAIT_X)->span_bytes()));
        from = pristine.get();
        to = where.at(PLAIT_X);
        restores = true;
        break;
    case ends::tensors:
        from = where.at(PLAIT_X);
        to = where.at(result_of(tensors)->role);
        break;
    case ends::own:
        pristine = buffer(dev, copied);
        target = buffer(dev, copied);
        from = pristine.get();
        to = target.get();
    }
}

size_t buffer_set::bytes_needed(const std::vector<tensor> &tensors, size_t copied) {
    const size_t bytes = cases::placement::bytes_needed(tensors);
    switch (ends_of(tensors, copied)) {
    case ends::in_place:
        return bytes + std::max(copied, find_tensor(tensors, PLAIT_X)->span_bytes());
    case ends::own: return bytes + 2 * copied;
    case ends::tensors: break;
    }
    return bytes;
}

void buffer_set::fill(device &dev, const cases::token_parts &parts,
                      const std::vector<tensor> &tensors, uint64_t seed, const buffer_set *first) {
    const auto fill_one = [&](const tensor &t, void *at, const void *same) {
        if (first)
            dev.copy(at, same, t.span_bytes());
        else
            fill_tensor(dev, parts, t, seed, at);
    };
    const tensor &x = subject_of(tensors);
    if (restores) fill_one(x, from, first ? first->from : nullptr);
    for (const tensor &t : tensors) { // outputs too: no page is touched first while timing
        if (t.alias) continue;
        const void *same = nullptr;
        if (first) same = restores && t.role == PLAIT_X ? first->from : first->where.at(t.role);
        fill_one(t, where.at(t.role), same);
    }
    if (target.bytes() > 0 && x.span_bytes() > 0)
        for (void *end : {from, to})
            repeat(dev, end, target.bytes(), where.at(x.role), x.span_bytes());
}

copy_place::copy_place(device &dev, size_t copied, int number, const void *data)
    : source(dev, copied), target(dev, copied + static_cast<size_t>(number) * place_step),
      from(source.get()), to(target.at(static_cast<size_t>(number) * place_step)) {
    dev.copy(from, data, copied);
    dev.copy(to, data, copied);
}

size_t copy_place::bytes_needed(size_t copied, int number) {
    return 2 * copied + static_cast<size_t>(number) * place_step;
}

} // namespace plait::cli
