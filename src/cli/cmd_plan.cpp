// plait plan, plait candidates: what the planner chose, and why.
#include "src/cli/commands.h"
#include "src/cli/options.h"

#include <cstdio>

namespace plait::cli {
namespace {

struct arguments {
    options common;
    std::vector<std::string> tokens;
    bool json = false;
};

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

int print(const arguments &a, bool candidates) {
    const session s(a.common);
    bool first = true;
    for (const std::string &token : a.tokens) {
        std::string text = printed(s, token, candidates, a.json ? PLAIT_JSON : PLAIT_TEXT);
        if (text.empty() || text.back() != '\n') text += '\n';
        std::printf("%s%s", first || a.json ? "" : "\n", text.c_str());
        first = false;
    }
    return 0;
}

} // namespace

void add_plan(CLI::App &program, actions &run) {
    const auto add = [&](const char *name, const char *what, bool candidates) {
        CLI::App *command = program.add_subcommand(name, what);
        auto a = std::make_shared<arguments>();
        command->add_option("TOKEN", a->tokens, "the problem, e.g. wht:f32:b8192:n4096")
            ->required();
        add_options(*command, a->common);
        command->add_flag("--json", a->json, "as JSON");
        run[command] = [a, candidates] { return print(*a, candidates); };
    };
    add("plan", "Print the plan of a problem: kernels, launches, workspace, bytes", false);
    add("candidates", "Print every candidate with its verdict and its reason", true);
}

} // namespace plait::cli
