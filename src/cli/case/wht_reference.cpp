#include "src/cli/case/wht_reference.h"

#include "src/cli/case/bound_plan.h"

#include <algorithm>

namespace plait::cases {

wht_reference::wht_reference(const std::string &token, const std::string &candidates)
    : parts_(split_token(token)), batches_(true), overflow_(false),
      pref_(make_pref(candidates.empty() ? parts_.family + ".cpu.ref" : candidates)),
      ctx_(make_context(PLAIT_CPU, 0)) {
    const token_role *y = parts_.find("y");
    const bool real_bits = y && !y->dtype.empty() && y->dtype[0] != 'i'; // of b1, whose y is i32
    const char kind = parts_.dtype == "b1" && !real_bits ? 'i' : parts_.dtype[0];
    dtype_ = kind == 'i' ? "i64" : kind == 'c' ? "c128" : "f64";
    const auto around = [](const std::string &option) {
        return option.rfind("rows=", 0) == 0 || option.rfind("group=", 0) == 0 ||
               option.rfind("hist=", 0) == 0;
    };
    for (const std::string &o : parts_.options)
        if (!around(o)) options_ += ":" + o;
    for (const std::string &name : parts_.uses) {
        if (name == "amax" || name == "scales" || name == "status") continue;
        uses_ += "+" + name;
        overflow_ = overflow_ || name == "overflow";
    }
    // Strides of signs and diagonals are the way to give each transform its own.
    for (const token_role &r : parts_.roles)
        if ((r.name == "signs" || r.name.rfind("diag", 0) == 0) && !r.strides.empty())
            batches_ = false;
}

std::string wht_reference::token(int64_t count) const {
    std::string text = parts_.family + ":" + dtype_;
    if (count != 1) text += ":b" + std::to_string(count);
    for (const token_axis &a : parts_.axes)
        if (a.transformed) text += ":" + a.text;
    return text + options_ + (uses_.empty() ? "" : ":" + uses_);
}

int32_t wht_reference::run(int64_t count, const void *x, const std::vector<plait_arg> &others,
                           void *y) {
    plan_ptr &plan = plans_[count];
    if (!plan) plan = make_plan(ctx_.get(), make_desc(token(count)).get(), pref_.get());
    int32_t overflow = 0;
    std::vector<plait_arg> args = {{PLAIT_X, const_cast<void *>(x)}, {PLAIT_Y, y}}; // x: only read
    args.insert(args.end(), others.begin(), others.end());
    if (overflow_) args.push_back({PLAIT_OVERFLOW, &overflow});
    size_t bytes = 0;
    check(plait_plan_workspace_size(plan.get(), &bytes));
    void *work = nullptr;
    check(plait_workspace_alloc(ctx_.get(), bytes, nullptr, &work));
    const plait_status status =
        plait_execute(plan.get(), args.data(), static_cast<int>(args.size()), work, bytes, nullptr);
    plait_workspace_free(ctx_.get(), work, bytes, nullptr);
    check(status);
    return overflow;
}

} // namespace plait::cases
