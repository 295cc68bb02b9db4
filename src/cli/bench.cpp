#include "src/cli/bench.h"

#include "src/cli/case/bound_plan.h"
#include "src/cli/case/checker.h"
#include "src/cli/case/dtype.h"
#include "src/cli/case/fill.h"
#include "src/cli/memory_check.h"

#include <algorithm>
#include <cmath>

namespace plait::cli {

using cases::buffer;
using cases::device;
using cases::placement;
using cases::tensor;

namespace {

/// A sample shorter than this is made of several calls, or launches and clocks would be measured.
constexpr double shortest_sample = 300e-6;
constexpr int most_calls = 512;
/// Buffers of a cold measurement together, in sizes of the shared cache.
constexpr size_t cold_caches = 2;
constexpr int most_sets = 64;
/// The clocks of a GPU need this long under load to settle.
constexpr double warm_up_seconds = 0.1;
/// What is recomputed in float64: at most so many transforms, and elements if one is not more.
constexpr int64_t accuracy_transforms = 64;
constexpr int64_t accuracy_elements = int64_t{1} << 22;
/// Random data is drawn for so many elements and then repeated over the buffer.
constexpr int64_t pattern_elements = (int64_t{1} << 22) + 1;

double percentile(std::vector<double> values, double share) {
    std::sort(values.begin(), values.end());
    const double at = share * static_cast<double>(values.size() - 1);
    const size_t low = static_cast<size_t>(at);
    const size_t high = std::min(low + 1, values.size() - 1);
    return values[low] + (at - static_cast<double>(low)) * (values[high] - values[low]);
}

/// Fills the whole span, gaps too, with random elements.
void fill_span(device &dev, const tensor &t, uint64_t seed, void *at) {
    const int64_t span = t.span();
    if (span == 0) return;
    cases::fill_options fill;
    fill.seed = seed;
    fill.integer_limit = 1000;
    if (t.dtype == PLAIT_B1) {
        std::vector<uint8_t> flags(static_cast<size_t>(span));
        cases::fill_random(t.dtype, fill, 0, span, flags.data());
        tensor all = t;
        all.extents = {span};
        all.strides = {1};
        std::vector<uint32_t> words(cases::bytes_for(t.dtype, span) / 4);
        cases::scatter(all, words.data(), 0, span, flags.data());
        dev.upload(at, words.data(), words.size() * 4);
        return;
    }
    const int64_t drawn = std::min(span, pattern_elements);
    std::vector<unsigned char> pattern(cases::bytes_for(t.dtype, drawn));
    cases::fill_random(t.dtype, fill, 0, drawn, pattern.data());
    dev.upload(at, pattern.data(), pattern.size());
    // Doubling on the device: the bus would take longer than the measurement.
    const size_t all = t.span_bytes();
    for (size_t have = pattern.size(); have < all; have *= 2)
        dev.copy(static_cast<char *>(at) + have, at, std::min(have, all - have));
    dev.wait();
}

/// Repeats `have` bytes of `from` over `bytes`.
void repeat(device &dev, void *to, size_t bytes, const void *from, size_t have) {
    for (size_t done = 0; done < bytes; done += have)
        dev.copy(static_cast<char *>(to) + done, from, std::min(have, bytes - done));
}

/// One set of buffers: the tensors, and what the copy of the same bytes needs beside them.
struct buffer_set {
    buffer_set(device &dev, const std::vector<tensor> &tensors, size_t copy_bytes)
        : where(dev, tensors, 0, false) {
        const tensor &x = *cases::find_tensor(tensors, PLAIT_X);
        const tensor &y = *cases::find_tensor(tensors, PLAIT_Y);
        if (y.alias) {
            // The copy also puts the input back, which each transform in place destroys.
            pristine = buffer(dev, std::max(copy_bytes, x.span_bytes()));
            from = pristine.get();
            to = where.at(PLAIT_X);
            restores = true;
        } else if (x.span_bytes() >= copy_bytes && y.span_bytes() >= copy_bytes) {
            from = where.at(PLAIT_X);
            to = where.at(PLAIT_Y);
        } else { // types of different width
            pristine = buffer(dev, copy_bytes);
            target = buffer(dev, copy_bytes);
            from = pristine.get();
            to = target.get();
        }
    }
    placement where;
    buffer pristine, target;
    void *from = nullptr;
    void *to = nullptr;
    bool restores = false;
};

/// Bytes of a set, as the constructor of buffer_set allocates them.
size_t set_bytes(const std::vector<tensor> &tensors, size_t copy_bytes) {
    const tensor &x = *cases::find_tensor(tensors, PLAIT_X);
    const tensor &y = *cases::find_tensor(tensors, PLAIT_Y);
    size_t bytes = placement::bytes_needed(tensors);
    if (y.alias)
        bytes += std::max(copy_bytes, x.span_bytes());
    else if (x.span_bytes() < copy_bytes || y.span_bytes() < copy_bytes)
        bytes += 2 * copy_bytes;
    return bytes;
}

double measure_error(const planned &p, const std::string &token, const std::vector<tensor> &tensors,
                     device &dev, buffer_set &set, const std::function<void()> &execute_once) {
    const cases::token_parts parts = cases::split_token(token);
    const tensor &x = *cases::find_tensor(tensors, PLAIT_X);
    const tensor &y = *cases::find_tensor(tensors, PLAIT_Y);
    // The definition in float64 is slow for huge transforms. The fast float64 kernel is as good a
    // judge of anything that accumulates in F32, and it is proved against the definition.
    const bool huge = parts.length() > int64_t{1} << 22 && cases::real_of(x.dtype) != PLAIT_F64 &&
                      cases::real_of(y.dtype) != PLAIT_F64;
    cases::reference ref(token, huge ? parts.family + ".cpu.*" : "");
    const int64_t limit =
        std::min(accuracy_transforms, accuracy_elements / std::max<int64_t>(parts.length(), 1));
    const std::vector<int64_t> which = cases::pick_transforms(parts.transforms(), limit);
    if (set.restores) {
        dev.copy(set.to, set.from, x.span_bytes());
        dev.wait();
    }
    execute_once();
    dev.wait();
    const auto from_device = [&](const void *base, const tensor &t, int64_t offset,
                                 int64_t elements, void *to) {
        dev.download(to, static_cast<const char *>(base) + cases::bytes_for(t.dtype, offset),
                     cases::bytes_for(t.dtype, elements));
    };
    const cases::fetch inputs = [&](const tensor &t, int64_t offset, int64_t elements, void *to) {
        from_device(t.role == PLAIT_X && set.restores ? set.from : set.where.at(t.role), t, offset,
                    elements, to);
    };
    const cases::fetch outputs = [&](const tensor &t, int64_t offset, int64_t elements, void *to) {
        from_device(set.where.at(t.role), t, offset, elements, to);
    };
    return cases::check_transforms(token, tensors, which, ref, p.narrow, inputs, outputs)
        .values.error;
}

} // namespace

bench_result bench(const planned &p, const std::string &token, const std::vector<tensor> &tensors,
                   device &dev, const bench_options &o, const on_progress &progress) {
    const tensor &x = *cases::find_tensor(tensors, PLAIT_X);
    const tensor &y = *cases::find_tensor(tensors, PLAIT_Y);
    bench_result result;
    result.bytes = cases::distinct(x).dense_bytes() + y.dense_bytes();
    if (result.bytes == 0)
        throw cases::failure(PLAIT_ERR_INVALID_ARGUMENT, token + ": is empty; nothing to measure");
    // A copy reads and writes each byte: half of them is copied.
    const size_t copy_bytes = std::max<size_t>(result.bytes / 2, 1);
    cases::check(plait_plan_workspace_size(p.plan.get(), &result.work_bytes));
    cases::check(plait_plan_get_f64(p.plan.get(), PLAIT_PLAN_SECONDS_ESTIMATED, &result.estimate));
    const size_t one = set_bytes(tensors, copy_bytes);
    need_memory(dev, token, one + result.work_bytes);

    const cases::workspace work(dev, p.plan.get());
    std::vector<std::unique_ptr<buffer_set>> sets;
    const auto add_set = [&] {
        sets.push_back(std::make_unique<buffer_set>(dev, tensors, copy_bytes));
        buffer_set &set = *sets.back();
        const buffer_set &first = *sets.front();
        const auto fill = [&](const tensor &t, void *to, const void *same) {
            if (sets.size() == 1)
                fill_span(dev, t, o.seed * 64 + static_cast<uint64_t>(t.role), to);
            else
                dev.copy(to, same, t.span_bytes());
        };
        if (set.restores) fill(x, set.from, first.from);
        for (const tensor &t : tensors) { // outputs too: no page is touched first while timing
            if (t.alias) continue;
            const bool restored = set.restores && t.role == PLAIT_X;
            fill(t, set.where.at(t.role), restored ? first.from : first.where.at(t.role));
        }
        if (set.target.bytes() > 0)
            for (void *to : {set.from, set.to})
                repeat(dev, to, copy_bytes, set.where.at(PLAIT_X), x.span_bytes());
    };
    const auto execute = [&](size_t i) {
        cases::execute(p.plan.get(), sets[i % sets.size()]->where, work, dev.stream());
    };
    const auto copy = [&](size_t i) {
        const buffer_set &set = *sets[i % sets.size()];
        dev.copy(set.to, set.from, copy_bytes);
    };

    add_set();
    const bool in_place = sets[0]->restores;
    copy(0);
    execute(0); // loads kernels
    dev.wait();
    copy(0);
    double once = dev.seconds([&] { execute(0); });
    for (int i = 0; i < 2; ++i) once = std::min(once, dev.seconds([&] { execute(0); }));

    const size_t cache = dev.cache_bytes();
    size_t want = 1;
    if (!o.latency) want = std::min<size_t>(most_sets, cold_caches * cache / one + 1);
    int calls = once < shortest_sample || o.latency
                    ? static_cast<int>(std::ceil(shortest_sample / std::max(once, 1e-7)))
                    : 1;
    calls = std::clamp(calls, 1, most_calls);
    if (in_place) { // each call of a sample needs a fresh input
        if (o.latency)
            calls = static_cast<int>(
                std::clamp<size_t>(cache / 2 / one, 1, static_cast<size_t>(calls)));
        want = std::max(want, static_cast<size_t>(std::min(calls, most_sets)));
        calls = std::min(calls, static_cast<int>(want));
    }
    // Rotation is worth no more than a quarter of the memory that is free.
    while (want > 1 && (want - 1) * one > dev.free_bytes() / 4) want /= 2;
    if (in_place) calls = std::min(calls, static_cast<int>(want));
    while (sets.size() < want) add_set();
    result.calls_per_sample = calls;
    result.buffer_sets = static_cast<int>(want);

    // Each sample goes on in the rotation where the last one stopped. A graph has its buffers
    // inside, so that it always covers whole turns.
    if (calls > 1 && want > 1 && dev.backend() == PLAIT_CUDA && !in_place)
        calls = static_cast<int>((static_cast<size_t>(calls) + want - 1) / want * want);
    result.calls_per_sample = calls;
    size_t turn = 0;
    std::unique_ptr<cases::replay> execute_graph, copy_graph;
    if (calls > 1 && dev.backend() == PLAIT_CUDA) {
        const size_t n = static_cast<size_t>(calls);
        execute_graph = dev.record([&] {
            for (size_t i = 0; i < n; ++i) execute(i);
        });
        copy_graph = dev.record([&] {
            for (size_t i = 0; i < n; ++i) copy(i);
        });
    }
    // A copy leaves its buffers in cache: the set that is transformed next must be another one.
    const size_t apart = o.latency ? 0 : want / 2;
    const auto sample_copy = [&] {
        return dev.seconds([&] {
            if (copy_graph) return copy_graph->run();
            for (int i = 0; i < calls; ++i) copy(turn + apart + static_cast<size_t>(i));
        });
    };
    const auto sample_execute = [&] {
        return dev.seconds([&] {
            if (execute_graph) return execute_graph->run();
            for (int i = 0; i < calls; ++i) execute(turn + static_cast<size_t>(i));
        });
    };

    // In turn, so that whatever the machine does meanwhile meets both.
    std::vector<double> times, copies;
    double warm = 0;
    for (int i = 0; warm < warm_up_seconds || i < 3; ++i) {
        warm += sample_copy() + sample_execute();
        turn += static_cast<size_t>(calls);
    }
    for (int i = 0; i < o.repetitions; ++i) {
        copies.push_back(sample_copy() / calls);
        times.push_back(sample_execute() / calls);
        turn += static_cast<size_t>(calls);
        progress(static_cast<double>(i + 1) / o.repetitions);
    }
    result.repetitions = o.repetitions;
    result.median = percentile(times, 0.5);
    result.minimum = *std::min_element(times.begin(), times.end());
    result.spread = (percentile(times, 0.9) - percentile(times, 0.1)) / result.median;
    result.copy = percentile(copies, 0.5);
    if (o.accuracy)
        result.relative_error =
            measure_error(p, token, tensors, dev, *sets[0], [&] { execute(0); });
    return result;
}

} // namespace plait::cli
