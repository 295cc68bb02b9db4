#include "src/cli/candidates.h"

#include <nlohmann/json.hpp>

namespace plait::cli {

namespace {

cases::rounding rounding_of(const std::string &narrowest) {
    if (narrowest == "stored") return cases::rounding::stored;
    return narrowest == "tf32" ? cases::rounding::tf32 : cases::rounding::sums;
}

} // namespace

std::vector<candidate_row> list_candidates(const session &s, const plait_desc *desc) {
    const std::string text = cases::text_of([&](char *buf, size_t cap, size_t *size) {
        return plait_candidates_print(s.context.get(), desc, s.preferences.get(), PLAIT_JSON, buf,
                                      cap, size);
    });
    const nlohmann::json document = nlohmann::json::parse(text);
    std::vector<candidate_row> rows;
    for (const nlohmann::json &j : document.at("candidates"))
        rows.push_back({j.at("candidate").get<std::string>(),
                        j.at("verdict").get<std::string>() != "no",
                        rounding_of(j.at("narrowest").get<std::string>()),
                        j.at("reason").get<std::string>(), j.at("revision").get<int>()});
    return rows;
}

std::vector<planned> make_plans(const session &s, const plait_desc *desc, bool all) {
    std::vector<planned> plans;
    const std::vector<candidate_row> rows = list_candidates(s, desc);
    if (all)
        for (const candidate_row &row : rows)
            if (row.applies)
                plans.push_back(
                    {cases::make_plan(s.context.get(), desc, s.preferences_for(row.name).get()),
                     row.name, row.how, row.revision, s.context.get()});
    if (!plans.empty()) return plans;
    // Also where nothing applies: the library's sentence says which rule failed.
    planned chosen{cases::make_plan(s.context.get(), desc, s.preferences.get()), "",
                   cases::rounding::sums, 0, s.context.get()};
    chosen.candidate = cases::candidate_of(chosen.plan.get());
    for (const candidate_row &row : rows)
        if (row.name == chosen.candidate) chosen.how = row.how, chosen.revision = row.revision;
    plans.push_back(std::move(chosen));
    return plans;
}

} // namespace plait::cli
