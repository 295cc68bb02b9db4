#include "src/cli/bench.h"

#include "src/cli/bench_accuracy.h"
#include "src/cli/bench_buffers.h"
#include "src/cli/case/reserve.h"
#include "src/cli/memory_check.h"

#include <algorithm>
#include <cmath>

namespace plait::cli {

using cases::device;
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
/// Copies of large buffers are timed between so many places, so many times each, and the fastest is
/// the yardstick.
constexpr int most_places = 4;
constexpr int place_samples = 5;
constexpr int most_apart = 8; // copies of a sample that are timed one by one: large ones

double percentile(std::vector<double> values, double share) {
    std::sort(values.begin(), values.end());
    const double at = share * static_cast<double>(values.size() - 1);
    const size_t low = static_cast<size_t>(at);
    const size_t high = std::min(low + 1, values.size() - 1);
    return values[low] + (at - static_cast<double>(low)) * (values[high] - values[low]);
}

} // namespace

bench_result bench(const planned &p, const std::string &token, const std::vector<tensor> &tensors,
                   device &dev, const bench_options &o, const on_progress &progress) {
    const cases::token_parts parts = cases::split_token(token);
    const auto [bytes, copied] = yardstick_of(parts, tensors);
    bench_result result;
    result.bytes = bytes;
    const size_t copy_bytes = copied; // a structured binding cannot be captured
    if (bytes == 0 || copied == 0)
        throw cases::failure(PLAIT_ERR_INVALID_ARGUMENT, token + ": is empty; nothing to measure");
    cases::check(plait_plan_workspace_size(p.plan.get(), &result.work_bytes));
    cases::check(plait_plan_get_f64(p.plan.get(), PLAIT_PLAN_SECONDS_ESTIMATED, &result.estimate));
    const size_t one = buffer_set::bytes_needed(tensors, copy_bytes);
    need_memory(dev, token, one + result.work_bytes);

    const cases::workspace work(dev, p.plan.get());
    std::vector<std::unique_ptr<buffer_set>> sets;
    const auto add_set = [&] {
        sets.push_back(std::make_unique<buffer_set>(dev, tensors, copy_bytes));
        sets.back()->fill(dev, parts, tensors, o.seed,
                          sets.size() > 1 ? sets.front().get() : nullptr);
        if (sets.size() == 1) cases::fill_reserve(p.context, dev, token, sets.front()->where);
    };
    const auto execute = [&](size_t i) {
        cases::execute(p.plan.get(), sets[i % sets.size()]->where, work, dev.stream());
    };
    const copy_place *place = nullptr; // between the buffers of the sets
    const auto restore = [&](size_t i) {
        const buffer_set &set = *sets[i % sets.size()];
        dev.copy(set.to, set.from, copy_bytes);
    };
    const auto copy = [&](size_t i) {
        if (place)
            dev.copy(place->to, place->from, copy_bytes);
        else
            restore(i);
    };

    add_set();
    const bool in_place = sets[0]->restores;
    restore(0);
    execute(0); // loads kernels
    dev.wait();
    restore(0);
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
    const bool graphs = calls > 1 && dev.backend() == PLAIT_CUDA;
    const auto record = [&](const std::function<void(size_t)> &work) {
        return dev.record([&] {
            for (size_t i = 0; i < static_cast<size_t>(calls); ++i) work(i);
        });
    };
    if (graphs) execute_graph = record(execute);
    // A copy leaves its buffers in cache: the set that is transformed next must be another one.
    const size_t apart = o.latency ? 0 : want / 2;
    bool one_by_one = false;
    const auto sample_copy = [&] {
        if (copy_graph) return dev.seconds([&] { copy_graph->run(); });
        double total = 0;
        for (int i = 0; i < calls; i += one_by_one ? 1 : calls)
            total += dev.seconds([&] {
                for (int k = i; k < (one_by_one ? i + 1 : calls); ++k)
                    copy(turn + apart + static_cast<size_t>(k));
            });
        return total;
    };
    const auto sample_execute = [&] {
        return dev.seconds([&] {
            if (execute_graph) return execute_graph->run();
            for (int i = 0; i < calls; ++i) execute(turn + static_cast<size_t>(i));
        });
    };

    // The yardstick is the fastest copy: between any of the places (sets that rotate lie in many
    // already), and replayed from a graph, issued together or one by one: a large copy behind
    // another may go to a slower engine.
    enum class issue { together, one_by_one, graph };
    std::vector<std::unique_ptr<copy_place>> places; // all alive: each has its own memory
    std::unique_ptr<cases::replay> fastest_graph;
    double fastest = 0;
    size_t best = 0;
    bool fastest_one_by_one = false;
    for (int n = 0; n < (want == 1 ? most_places : 1); ++n) {
        if (n > 0 && copy_place::bytes_needed(copy_bytes, n) > dev.free_bytes() / 4) break;
        places.push_back(n > 0 ? std::make_unique<copy_place>(dev, copy_bytes, n, sets[0]->from)
                               : nullptr);
        place = places.back().get();
        for (const issue how : {issue::together, issue::one_by_one, issue::graph}) {
            if (how == issue::graph && !graphs) continue;
            if (how == issue::one_by_one && (calls == 1 || calls > most_apart)) continue;
            copy_graph = how == issue::graph ? record(copy) : nullptr;
            one_by_one = how == issue::one_by_one;
            std::vector<double> seconds;
            sample_copy(); // the first touch
            for (int i = 0; i < place_samples; ++i) seconds.push_back(sample_copy());
            const double median = percentile(seconds, 0.5);
            if ((n > 0 || how != issue::together) && median >= fastest) continue;
            fastest = median;
            best = static_cast<size_t>(n);
            fastest_one_by_one = one_by_one;
            fastest_graph = std::move(copy_graph);
        }
    }
    result.copy_places = static_cast<int>(places.size());
    copy_graph = std::move(fastest_graph);
    one_by_one = fastest_one_by_one;
    const std::unique_ptr<copy_place> best_place = std::move(places[best]);
    places.clear();
    place = best_place.get();
    const auto restore_all = [&] { // the copy that is timed may run elsewhere
        if (in_place && place)
            for (int i = 0; i < calls; ++i) restore(turn + static_cast<size_t>(i));
    };

    // In turn, so that whatever the machine does meanwhile meets both.
    std::vector<double> times, copies;
    double warm = 0;
    for (int i = 0; warm < warm_up_seconds || i < 3; ++i) {
        warm += sample_copy();
        restore_all();
        warm += sample_execute();
        turn += static_cast<size_t>(calls);
    }
    for (int i = 0; i < o.repetitions; ++i) {
        copies.push_back(sample_copy() / calls);
        restore_all();
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
