#include "tests/support/report.h"

#include "tests/support/handles.h"

#include <cstdio>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>

namespace plait::test {
namespace {

struct worst {
    double ratio = -1;
    std::string token;
    uint64_t seed = 0;
    int64_t runs = 0;
};

struct tables {
    std::mutex lock;
    std::map<std::string, worst> ratios;
    std::map<std::string, int64_t> counts;
    std::set<std::string> steps;
};

tables &all() {
    static tables t;
    return t;
}

} // namespace

void note_ratio(const std::string &candidate, double ratio, const std::string &token,
                uint64_t seed) {
    const std::lock_guard<std::mutex> hold(all().lock);
    worst &w = all().ratios[candidate];
    ++w.runs;
    if (ratio > w.ratio) w = {ratio, token, seed, w.runs};
}

void note_count(const std::string &what, int64_t by) {
    const std::lock_guard<std::mutex> hold(all().lock);
    all().counts[what] += by;
}

void note_steps(const plait_plan *plan) {
    const std::string text = text_of(
        [&](char *b, size_t c, size_t *s) { return plait_plan_print(plan, PLAIT_JSON, b, c, s); });
    const nlohmann::json whole = nlohmann::json::parse(text);
    const std::lock_guard<std::mutex> hold(all().lock);
    for (const auto &step : whole.at("steps"))
        all().steps.insert(step.at("kernel").get<std::string>() + " " +
                           step.at("variant").get<std::string>());
}

std::set<std::string> noted_steps() {
    const std::lock_guard<std::mutex> hold(all().lock);
    return all().steps;
}

void print_report() {
    const std::lock_guard<std::mutex> hold(all().lock);
    for (const auto &[name, w] : all().ratios)
        std::printf("worst error / bound  %-32s %.3f  in %lld runs  (%s, seed %llu)\n",
                    name.c_str(), w.ratio, static_cast<long long>(w.runs), w.token.c_str(),
                    static_cast<unsigned long long>(w.seed));
    for (const auto &[what, n] : all().counts)
        std::printf("%-52s %lld\n", what.c_str(), static_cast<long long>(n));
}

} // namespace plait::test
