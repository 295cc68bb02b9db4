#include "tests/support/runner.h"

#include "tests/support/report.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

namespace plait::test {
namespace {

size_t size_of(const wht_call &c, plait_role role, plait_dtype type) {
    return static_cast<size_t>(c.span(role) * bytes_of(type));
}

size_t workspace_of(const plait_plan *plan) {
    size_t size = 0;
    if (plait_plan_workspace_size(plan, &size) != PLAIT_OK)
        throw std::runtime_error(plait_last_error());
    return size;
}

} // namespace

std::vector<candidate> candidates(const plait_context *ctx, const plait_desc *desc,
                                  plait_math math) {
    const pref_ptr pref = preferences("", math);
    const std::string text = text_of([&](char *b, size_t c, size_t *s) {
        return plait_candidates_print(ctx, desc, pref.get(), PLAIT_JSON, b, c, s);
    });
    std::vector<candidate> all;
    const nlohmann::json whole = nlohmann::json::parse(text);
    for (const auto &row : whole.at("candidates")) {
        candidate c;
        c.name = row.at("candidate");
        c.narrowest = row.at("narrowest");
        if (row.at("verdict") == "no") c.reason = row.at("reason");
        if (c.name == config().skip) continue;
        all.push_back(c);
    }
    return all;
}

std::vector<candidate> applicable(const plait_desc *desc, plait_math math) {
    std::vector<candidate> some;
    for (const candidate &c : candidates(context(), desc, math))
        if (c.applicable()) some.push_back(c);
    return some;
}

double roundoff_of(const candidate &c, const wht_call &call) {
    if (c.narrowest == "stored") {
        double u = roundoff(call.x);
        if (!is_integer(call.y_type())) u = std::max(u, roundoff(call.y_type()));
        return u;
    }
    const double sums = call.accumulates_f64() ? roundoff(PLAIT_F64) : roundoff(PLAIT_F32);
    // Operands of two products, which keep norms, are rounded to 11 bits; the bound counts stages.
    if (c.narrowest == "tf32") return sums + 2 * 0x1p-11 / (call.stages() + call.factor_orders());
    return sums;
}

bool is_exact(const candidate &c, const wht_call &call) {
    if (c.narrowest == "tf32") return false;
    return c.narrowest != "stored" || !(is_sixteen_bit(call.x) || is_sixteen_bit(call.y_type()));
}

pref_ptr preferences(const std::string &pattern, plait_math math) {
    plait_pref *raw = nullptr;
    if (plait_pref_create(&raw) != PLAIT_OK) throw std::runtime_error(plait_last_error());
    pref_ptr pref(raw);
    if (math != PLAIT_MATH_DEFAULT && plait_pref_set_math(raw, math) != PLAIT_OK)
        throw std::runtime_error(plait_last_error());
    if (!pattern.empty() && plait_pref_set_candidates(raw, pattern.c_str()) != PLAIT_OK)
        throw std::runtime_error(plait_last_error());
    return pref;
}

plan_ptr plan_by(const std::string &name, const plait_desc *desc, plait_math math) {
    const pref_ptr pref = preferences(name, math);
    plait_plan *raw = nullptr;
    if (plait_plan_create(&raw, context(), desc, pref.get()) != PLAIT_OK)
        throw std::runtime_error(plait_last_error());
    return plan_ptr(raw);
}

bytes packed_bits(const std::vector<uint8_t> &bits) {
    bytes words((bits.size() + 31) / 32 * 4);
    for (size_t i = 0; i < bits.size(); ++i) {
        if (!bits[i]) continue;
        uint32_t word;
        std::memcpy(&word, words.data() + i / 32 * 4, 4);
        word |= uint32_t{1} << i % 32;
        std::memcpy(words.data() + i / 32 * 4, &word, 4);
    }
    return words;
}

bound_call::bound_call(const wht_call &call, const plait_plan *plan, const wht_data &data)
    : call_(call), plan_(plan), data_(data), before_(),
      x_(data.x.size(), static_cast<size_t>(call.x_offset * bytes_of(call.x)), 0),
      y_(call.alias ? 0 : size_of(call, PLAIT_Y, call.y_type()),
         static_cast<size_t>(call.y_offset * bytes_of(call.y_type())), poison_of(call.y_type())),
      signs_((data.signs.size() + 31) / 32 * 4, 0, 0), diag_(data.diag.size(), 0, 0),
      flag_(call.overflow ? 4 : 0, 0, 0xA5), work_(workspace_of(plan), 0, workspace_fill()) {
    x_.put(data.x);
    if (call.signs) signs_.put(packed_bits(data.signs));
    if (call.diag) diag_.put(data.diag);
    before_ =
        call.alias ? data.x : bytes(y_.size(), static_cast<std::byte>(poison_of(call.y_type())));
    args_ = {{PLAIT_X, x_.data()}, {PLAIT_Y, call.alias ? x_.data() : y_.data()}};
    if (call.signs) args_.push_back({PLAIT_SIGNS, signs_.data()});
    if (call.diag) args_.push_back({PLAIT_DIAG, diag_.data()});
    if (call.overflow) args_.push_back({PLAIT_OVERFLOW, flag_.data()});
    target().wait();
}

plait_status bound_call::execute(plait_stream stream) {
    return plait_execute(plan_, args_.data(), static_cast<int>(args_.size()), work_.data(),
                         work_.size(), stream);
}

void bound_call::put_x(const bytes &x) {
    data_.x = x;
    if (call_.alias) before_ = x;
    x_.put(x);
}

void bound_call::poison() {
    if (!call_.alias) target().fill(y_.data(), poison_of(call_.y_type()), y_.size());
    if (workspace_fill() >= 0) target().fill(work_.data(), workspace_fill(), work_.size());
    target().wait();
}

bytes bound_call::y() { return call_.alias ? x_.get() : y_.get(); }

int32_t bound_call::overflow_flag() {
    int32_t flag = 0;
    const bytes b = flag_.get();
    if (b.size() == 4) std::memcpy(&flag, b.data(), 4);
    return flag;
}

std::string bound_call::damage() {
    const struct {
        const char *name;
        const guarded &buffer;
    } all[] = {{"x", x_},       {"y", y_},           {"signs", signs_},
               {"diag", diag_}, {"overflow", flag_}, {"workspace", work_}};
    for (const auto &b : all) {
        const std::string d = b.buffer.damage();
        if (!d.empty()) return std::string(b.name) + ": " + d;
    }
    if (!call_.alias && x_.get() != data_.x) return "x was written";
    if (call_.signs && signs_.get() != packed_bits(data_.signs)) return "signs were written";
    if (call_.diag && diag_.get() != data_.diag) return "diag was written";
    return gap_damage(call_, y(), before_);
}

outcome run(const wht_call &call, const wht_data &data, const candidate &by, plait_math math) {
    outcome out;
    const desc_ptr desc = desc_of(call);
    const plan_ptr plan = plan_by(by.name, desc.get(), math);
    bound_call bound(call, plan.get(), data);
    if (bound.execute() != PLAIT_OK) {
        out.fault = std::string("execute: ") + plait_last_error();
        return out;
    }
    target().wait();
    if (on_device()) note_steps(plan.get());
    out.y = bound.y();
    if (call.overflow) out.overflow = bound.overflow_flag();
    out.fault = bound.damage();
    return out;
}

} // namespace plait::test
