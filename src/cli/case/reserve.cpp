#include "src/cli/case/reserve.h"

namespace plait::cases {
namespace {

bool in_forward(const token_parts &parts, const std::string &name) {
    for (int role = 0; role < 256; ++role) // gradients follow
        if (const char *known = plait_role_name(static_cast<plait_role>(role));
            known && name == known)
            return role != PLAIT_STATUS || !parts.option("seqs").empty();
    return false;
}

} // namespace

std::string forward_token(const std::string &backward) {
    const token_parts parts = split_token(backward);
    std::string text = "kda.fwd:" + parts.dtype;
    for (const token_axis &a : parts.axes) text += ":" + a.text;
    for (const std::string &o : parts.options) text += ":" + o;
    const std::string uses =
        parts.uses_text([&](const std::string &name) { return in_forward(parts, name); });
    if (!uses.empty()) text += ":" + uses;
    for (const token_role &r : parts.roles)
        if (in_forward(parts, r.name)) text += ":" + r.text;
    return text;
}

void fill_reserve(const plait_context *ctx, device &dev, const std::string &token,
                  const placement &where) {
    const token_parts parts = split_token(token);
    if (parts.family != "kda.bwd" || parts.option("reserve").empty()) return;
    const desc_ptr desc = make_desc(forward_token(token));
    const plan_ptr plan = make_plan(ctx, desc.get(), nullptr);
    const workspace work(dev, plan.get());
    std::vector<buffer> results;
    std::vector<plait_arg> args;
    for (const tensor &t : tensors_of(desc.get())) {
        if (t.writes() && t.role != PLAIT_RESERVE) {
            results.emplace_back(dev, t.span_bytes());
            args.push_back({t.role, results.back().get()});
        } else {
            args.push_back({t.role, where.at(t.role)});
        }
    }
    check(plait_execute(plan.get(), args.data(), static_cast<int>(args.size()), work.get(),
                        work.bytes(), dev.stream()));
    dev.wait();
}

} // namespace plait::cases
