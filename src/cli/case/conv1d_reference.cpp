#include "src/cli/case/conv1d_reference.h"

namespace plait::cases {

conv1d_reference::conv1d_reference(const token_parts &parts, bool sizes, plait_dtype index)
    : parts_(parts), sizes_(sizes), index_(index), pref_(make_pref(parts.family + ".cpu.ref")),
      ctx_(make_context(PLAIT_CPU, 0)) {}

std::string conv1d_reference::token(int64_t channels) const {
    const auto number = [](int64_t n) { return std::to_string(n); };
    std::string text = parts_.family + ":f64:b" + number(parts_.extent('b')) + ":c" +
                       number(channels) + ":t" + number(parts_.extent('t')) + ":k" +
                       number(parts_.extent('k'));
    for (const std::string &o : parts_.options)
        if (!(sizes_ && o == "silu")) text += ":" + o;
    std::string uses;
    for (const std::string &name : parts_.uses) uses += "+" + name;
    for (const std::string &name : parts_.drops) uses += "-" + name;
    if (!uses.empty()) text += ":" + uses;
    return index_ == PLAIT_I32 ? text + ":cu_seqlens.i32" : text;
}

conv1d_reference::prepared &conv1d_reference::for_channels(int64_t channels) {
    prepared &p = prepared_[channels];
    if (p.plan) return p;
    const desc_ptr desc = make_desc(token(channels));
    p.tensors = tensors_of(desc.get());
    p.plan = make_plan(ctx_.get(), desc.get(), pref_.get());
    return p;
}

const std::vector<tensor> &conv1d_reference::tensors(int64_t channels) {
    return for_channels(channels).tensors;
}

void conv1d_reference::run(int64_t channels, const std::map<plait_role, void *> &buffers) {
    const prepared &p = for_channels(channels);
    std::vector<plait_arg> args;
    for (const tensor &t : p.tensors) args.push_back({t.role, buffers.at(t.role)});
    size_t bytes = 0;
    check(plait_plan_workspace_size(p.plan.get(), &bytes));
    void *work = nullptr;
    check(plait_workspace_alloc(ctx_.get(), bytes, nullptr, &work));
    const plait_status status = plait_execute(p.plan.get(), args.data(),
                                              static_cast<int>(args.size()), work, bytes, nullptr);
    plait_workspace_free(ctx_.get(), work, bytes, nullptr);
    check(status);
}

} // namespace plait::cases
