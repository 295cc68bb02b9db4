// plait plan, plait candidates: what the planner chose, and why.
#include "src/cli/commands.h"
#include "src/cli/options.h"

#include <cstdio>
#include <nlohmann/json.hpp>

namespace plait::cli {
namespace {

std::string printed(const session &s, const std::string &token, bool candidates,
                    plait_format format) {
    const cases::desc_ptr desc = cases::make_desc(token);
    if (candidates)
        return cases::text_of([&](char *buf, size_t cap, size_t *size) {
            return plait_candidates_print(s.context.get(), desc.get(), s.preferences.get(), format,
                                          buf, cap, size);
        });
    const cases::plan_ptr plan = cases::make_plan(s.context.get(), desc.get(), s.preferences.get());
    return cases::text_of([&](char *buf, size_t cap, size_t *size) {
        return plait_plan_print(plan.get(), format, buf, cap, size);
    });
}

} // namespace

int run_plan(const plan_arguments &a) {
    int bad = 0;
    const std::vector<std::string> tokens = well_formed(a.tokens, &bad);
    if (tokens.empty()) return bad;
    const session s(a.common);
    bool first = true;
    const int failed = for_each_token(tokens, [&](const std::string &token) {
        std::string text = printed(s, token, a.candidates, a.json ? PLAIT_JSON : PLAIT_TEXT);
        if (a.json) text = nlohmann::ordered_json::parse(text).dump(); // one line
        if (text.empty() || text.back() != '\n') text += '\n';
        std::printf("%s%s", first || a.json ? "" : "\n", text.c_str());
        first = false;
        return 0;
    });
    return bad != 0 ? bad : failed;
}

} // namespace plait::cli
