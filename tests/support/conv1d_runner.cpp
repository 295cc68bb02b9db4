#include "tests/support/conv1d_runner.h"

#include "tests/support/report.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace plait::test {
namespace {

bool same_value(double a, double b) { return std::isnan(a) ? std::isnan(b) : a == b; }

const conv1d_output *result_of(const conv1d_results &ref, plait_role role) {
    switch (role) {
    case PLAIT_Y: return &ref.y;
    case PLAIT_STATE:
    case PLAIT_STATE_OUT: return &ref.state_out;
    case PLAIT_DX: return &ref.dx;
    case PLAIT_DW: return &ref.dw;
    case PLAIT_DBIAS: return &ref.dbias;
    case PLAIT_DSTATE_IN: return &ref.dstate_in;
    default: return nullptr;
    }
}

std::string place(const conv1d_array &a, size_t e) {
    const auto i = static_cast<int64_t>(e);
    return "[" + std::to_string(i / (a.channels * a.time)) + "][" +
           std::to_string(i / a.time % a.channels) + "][" + std::to_string(i % a.time) + "]";
}

} // namespace

conv1d_bound::conv1d_bound(const conv1d_call &call, const plait_desc *desc, const plait_plan *plan,
                           const conv1d_inputs &in)
    : call_(call), plan_(plan) {
    int count = 0;
    plait_desc_num_tensors(desc, &count);
    for (int i = 0; i < count; ++i) {
        tensor t;
        plait_desc_tensor(desc, i, &t.role, &t.access, &t.type, nullptr, nullptr, nullptr);
        const std::vector<int64_t> n = call.shape(t.role), s = call.steps(t.role);
        t.at.reserve(static_cast<size_t>(n[0] * n[1] * n[2]));
        int64_t span = 0;
        for (int64_t r = 0; r < n[0]; ++r)
            for (int64_t c = 0; c < n[1]; ++c)
                for (int64_t p = 0; p < n[2]; ++p) {
                    t.at.push_back(r * s[0] + c * s[1] + p * s[2]);
                    span = std::max(span, t.at.back() + 1);
                }
        if (call.alias && t.role == PLAIT_STATE_OUT) {
            for (const tensor &other : tensors_)
                if (other.role == PLAIT_STATE_IN) t.buffer = other.buffer;
        } else {
            const auto offset = call.offsets.find(t.role);
            const int64_t shift = offset == call.offsets.end() ? 0 : offset->second;
            t.buffer = std::make_shared<guarded>(static_cast<size_t>(span * bytes_of(t.type)),
                                                 static_cast<size_t>(shift * bytes_of(t.type)),
                                                 poison_of(t.type));
        }
        args_.push_back({t.role, t.buffer->data()});
        tensors_.push_back(std::move(t));
    }
    size_t work = 0;
    if (plait_plan_workspace_size(plan, &work) != PLAIT_OK)
        throw std::runtime_error(plait_last_error());
    work_ = std::make_unique<guarded>(work, 0, workspace_fill());
    put(in);
}

bytes conv1d_bound::image_of(const tensor &t, const conv1d_inputs &in) const {
    bytes image(t.buffer->size(), static_cast<std::byte>(poison_of(t.type)));
    const bool has_contents = (t.access & PLAIT_READ) || t.role == PLAIT_STATE_OUT;
    if (!has_contents) return image;
    if (const conv1d_array *a = array_of(in, t.role)) {
        // A NaN of an array that nobody wrote yet is what the poison is.
        for (size_t e = 0; e < t.at.size(); ++e) store(t.type, image.data(), t.at[e], a->v.at(e));
    } else {
        const std::vector<int64_t> v = integers_of(in, t.role);
        for (size_t e = 0; e < t.at.size(); ++e)
            store_integer(t.type, image.data(), t.at[e], v.at(e));
    }
    return image;
}

void conv1d_bound::put(const conv1d_inputs &in) {
    for (tensor &t : tensors_) {
        t.before = image_of(t, in);
        t.buffer->put(t.before);
    }
    if (workspace_fill() >= 0) target().fill(work_->data(), workspace_fill(), work_->size());
    target().wait();
}

plait_status conv1d_bound::execute(plait_stream stream) {
    return plait_execute(plan_, args_.data(), static_cast<int>(args_.size()), work_->data(),
                         work_->size(), stream);
}

const conv1d_bound::tensor *conv1d_bound::find(plait_role role) const {
    for (const tensor &t : tensors_)
        if (t.role == role) return &t;
    return nullptr;
}

std::vector<double> conv1d_bound::values(plait_role role) const {
    std::vector<double> v;
    const tensor *t = find(role);
    if (!t) return v;
    const bytes image = t->buffer->get();
    v.reserve(t->at.size());
    for (const int64_t p : t->at) v.push_back(load(t->type, image.data(), p));
    return v;
}

int32_t conv1d_bound::status_word() const {
    const std::vector<double> v = values(PLAIT_STATUS);
    return v.empty() ? 0 : static_cast<int32_t>(v[0]);
}

std::vector<plait_role> conv1d_bound::written() const {
    std::vector<plait_role> roles;
    for (const tensor &t : tensors_)
        if ((t.access & PLAIT_WRITE) && t.role != PLAIT_STATUS) roles.push_back(t.role);
    return roles;
}

std::string conv1d_bound::damage() const {
    target().wait();
    const std::string work = work_->damage();
    if (!work.empty()) return "workspace: " + work;
    for (const tensor &t : tensors_) {
        const std::string name = plait_role_name(t.role);
        const std::string band = t.buffer->damage();
        if (!band.empty()) return name + ": " + band;
        const bytes now = t.buffer->get();
        if (now == t.before) continue;
        const bool shared = call_.alias && t.role == PLAIT_STATE_IN;
        if (!(t.access & PLAIT_WRITE) && !shared) return name + " was written";
        if (shared) continue; // STATE_OUT has the same memory
        const auto size = static_cast<size_t>(bytes_of(t.type));
        std::vector<bool> owned(now.size(), false);
        for (const int64_t p : t.at)
            std::fill_n(owned.begin() + p * static_cast<int64_t>(size), size, true);
        for (size_t i = 0; i < now.size(); ++i)
            if (!owned[i] && now[i] != t.before[i])
                return "byte " + std::to_string(i) + " between the elements of " + name +
                       " was written";
    }
    return "";
}

std::vector<candidate> candidates_for(const conv1d_call &call) {
    const desc_ptr desc = desc_of(call);
    plait_plan *raw = nullptr;
    // The default plan says whether there are steps at all.
    if (plait_plan_create(&raw, context(), desc.get(), nullptr) == PLAIT_OK) {
        const plan_ptr plan(raw);
        int64_t steps = 0;
        plait_plan_get_i64(raw, PLAIT_PLAN_STEPS, &steps);
        if (steps == 0) return {{"", "exact", ""}};
    }
    return applicable(desc.get());
}

conv1d_outcome run(const conv1d_call &call, const conv1d_inputs &in, const candidate &by) {
    conv1d_outcome out;
    try {
        const desc_ptr desc = desc_of(call);
        const plan_ptr plan = plan_by(by.name, desc.get());
        conv1d_bound bound(call, desc.get(), plan.get(), in);
        if (bound.execute() != PLAIT_OK) {
            out.fault = std::string("execute: ") + plait_last_error();
            return out;
        }
        target().wait();
        if (on_device()) note_steps(plan.get());
        for (const plait_role role : bound.written()) out.values[role] = bound.values(role);
        out.status = bound.status_word();
        out.fault = bound.damage();
    } catch (const std::exception &e) {
        out.fault = e.what();
    }
    return out;
}

conv1d_verdict judge(const conv1d_call &call, const conv1d_results &ref,
                     const conv1d_outcome &out) {
    conv1d_verdict verdict;
    const auto wrong = [&](plait_role role, const conv1d_array &a, size_t e, double got,
                           double want) {
        char text[160];
        std::snprintf(text, sizeof text, "%s%s is %.9g, must be %.9g", plait_role_name(role),
                      place(a, e).c_str(), got, want);
        if (verdict.wrong.empty()) verdict.wrong = text;
    };
    for (const auto &[role, got] : out.values) {
        const conv1d_output *want = result_of(ref, role);
        if (!want || want->value.v.size() != got.size()) {
            verdict.wrong = std::string(plait_role_name(role)) + " has another size";
            return verdict;
        }
        const plait_dtype type = call.type(role);
        // A 16-bit activation may be one more half unit off, from approximate instructions.
        const bool approximate = role == PLAIT_Y && call.silu && is_sixteen_bit(type);
        for (size_t e = 0; e < got.size(); ++e) {
            const long double value = want->value.v[e], bound = want->bound.v[e];
            const double stored = rounded(type, value);
            if (same_value(stored, got[e])) continue;
            if (bound == 0 || !std::isfinite(stored) || !std::isfinite(got[e])) {
                wrong(role, want->value, e, got[e], stored);
                verdict.ratio = HUGE_VAL;
                continue;
            }
            const long double half = half_ulp(type, std::fabs(value) + bound);
            const auto ratio = static_cast<double>(std::fabs(got[e] - value) /
                                                   (bound + half * (approximate ? 2 : 1)));
            verdict.ratio = std::max(verdict.ratio, ratio);
            if (!(ratio <= 1)) wrong(role, want->value, e, got[e], static_cast<double>(value));
        }
    }
    if (call.uses(PLAIT_STATUS) && out.status != ref.status && verdict.wrong.empty())
        verdict.wrong =
            "status is " + std::to_string(out.status) + ", must be " + std::to_string(ref.status);
    return verdict;
}

std::string difference(const conv1d_outcome &a, const conv1d_outcome &b) {
    if (a.values.size() != b.values.size()) return "other tensors";
    for (const auto &[role, v] : a.values) {
        const std::vector<double> &w = b.values.at(role);
        if (v.size() != w.size()) return std::string(plait_role_name(role)) + " has another size";
        for (size_t e = 0; e < v.size(); ++e)
            if (!same_value(v[e], w[e]))
                return std::string(plait_role_name(role)) + "[" + std::to_string(e) + "] is " +
                       std::to_string(v[e]) + " and " + std::to_string(w[e]);
    }
    return "";
}

} // namespace plait::test
