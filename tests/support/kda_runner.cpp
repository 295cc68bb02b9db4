#include "tests/support/kda_runner.h"

#include "tests/support/report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace plait::test {
namespace {

/// What strong decays leave below this is beyond the normal numbers of f32 on the way.
constexpr long double least = 0x1p-120L;

/// The adjoint of the norm leaves what is not along a row: of few channels 1e-6 of two terms.
long double exact_fence(const kda_call &call, plait_role role) {
    const bool normed = call.eps && (role == PLAIT_DQ || role == PLAIT_DK);
    return normed && call.dim_k < 8 ? 1e-8L : 1e-12L;
}

/// Sums over channels or tokens, and what is not rounded more than once, with 16-bit tensors.
double half_fence(plait_role role) {
    return role == PLAIT_DG || role == PLAIT_DBETA || role == PLAIT_DA_LOG || role == PLAIT_DDT_BIAS
               ? 3e-3
               : 4e-3;
}

/// Of candidates that round between passes: operands of products are bf16, each of which is off by
/// 1.7e-3 (rms). O is a product of two of them, <q, k>, rounded to bf16 itself, with a
/// third: 3.3e-3 of f16 tensors, a little less of bf16 ones, whose undecayed elements are exact.
/// What is a sum of roundings itself averages over as many values as count: (sum w^2)^2 / sum w^4
/// of them.
double stored_fence(plait_role role, const std::vector<long double> &want) {
    if (role == PLAIT_DG) return want.size() < 65536 ? 5e-3 : 4e-3; // few entries scatter
    if (role != PLAIT_DBETA && role != PLAIT_DDT_BIAS && role != PLAIT_DA_LOG) return 4e-3;
    long double squares = 0, fourths = 0;
    for (const long double w : want)
        if (std::isfinite(w)) squares += w * w, fourths += w * w * w * w;
    const auto few = fourths > 0 ? static_cast<double>(std::sqrt(fourths) / squares) : 0.0;
    return (role == PLAIT_DA_LOG ? 1e-2 : 5e-3) * (1 + 3 * few);
}

bool same_value(double a, double b) { return std::isnan(a) ? std::isnan(b) : a == b; }

} // namespace

kda_bound::kda_bound(const kda_call &call, const plait_desc *desc, const plait_plan *plan,
                     const kda_inputs &in)
    : call_(call), plan_(plan) {
    int count = 0;
    plait_desc_num_tensors(desc, &count);
    for (int x = 0; x < count; ++x) {
        tensor t;
        plait_desc_tensor(desc, x, &t.role, &t.access, &t.type, nullptr, nullptr, nullptr);
        int64_t span = 0;
        if (t.role == PLAIT_RESERVE) {
            size_t size = 0;
            plait_plan_reserve_size(plan, &size);
            for (span = 0; span < static_cast<int64_t>(size); ++span) t.at.push_back(span);
        }
        const auto n = t.role == PLAIT_RESERVE ? std::array<int64_t, 4>{} : call.shape(t.role);
        const auto s = t.role == PLAIT_RESERVE ? n : call.steps(t.role);
        for (int64_t i = 0; i < n[0]; ++i)
            for (int64_t j = 0; j < n[1]; ++j)
                for (int64_t k = 0; k < n[2]; ++k)
                    for (int64_t l = 0; l < n[3]; ++l) {
                        t.at.push_back(i * s[0] + j * s[1] + k * s[2] + l * s[3]);
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

void kda_bound::put(const kda_inputs &in) {
    for (tensor &t : tensors_) {
        t.before = image_of(t, in);
        t.buffer->put(t.before);
    }
    target().wait();
}

bytes kda_bound::image_of(const tensor &t, const kda_inputs &in) const {
    if (t.role == PLAIT_RESERVE && !in.reserve.empty()) return in.reserve;
    bytes image(t.buffer->size(), static_cast<std::byte>(poison_of(t.type)));
    const auto a = in.arrays.find(t.role);
    if (a != in.arrays.end()) {
        for (size_t e = 0; e < t.at.size(); ++e)
            store(t.type, image.data(), t.at[e], a->second.v.at(e));
    } else if (t.role == PLAIT_CU_SEQLENS || t.role == PLAIT_SLOTS) {
        for (size_t e = 0; e < t.at.size(); ++e)
            store_integer(t.type, image.data(), t.at[e],
                          t.role == PLAIT_SLOTS ? in.slot.at(e) : in.offsets.at(e));
    }
    return image;
}

plait_status kda_bound::execute(plait_stream stream) {
    return plait_execute(plan_, args_.data(), static_cast<int>(args_.size()), work_->data(),
                         work_->size(), stream);
}

std::vector<double> kda_bound::values(plait_role role) const {
    std::vector<double> v;
    for (const tensor &t : tensors_) {
        if (t.role != role) continue;
        const bytes image = t.buffer->get();
        for (const int64_t p : t.at) v.push_back(load(t.type, image.data(), p));
    }
    return v;
}

std::vector<plait_role> kda_bound::written() const {
    std::vector<plait_role> roles;
    for (const tensor &t : tensors_)
        if ((t.access & PLAIT_WRITE) && t.role != PLAIT_STATUS && t.role != PLAIT_RESERVE)
            roles.push_back(t.role);
    return roles;
}

bytes kda_bound::reserve() const {
    target().wait();
    for (const tensor &t : tensors_)
        if (t.role == PLAIT_RESERVE) return t.buffer->get();
    return {};
}

kda_outcome kda_bound::outcome() const {
    kda_outcome out;
    target().wait();
    for (const plait_role role : written()) out.values[role] = values(role);
    const std::vector<double> status = values(PLAIT_STATUS);
    out.status = status.empty() ? 0 : static_cast<int32_t>(status[0]);
    out.fault = damage();
    return out;
}

std::string kda_bound::damage() const {
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

std::vector<candidate> candidates_for(const kda_call &call) {
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

kda_outcome run(const kda_call &call, const kda_inputs &in, const candidate &by) {
    kda_outcome out;
    try {
        const desc_ptr desc = desc_of(call);
        const plan_ptr plan = plan_by(by.name, desc.get());
        kda_bound bound(call, desc.get(), plan.get(), in);
        if (bound.execute() != PLAIT_OK) {
            out.fault = std::string("execute: ") + plait_last_error();
            return out;
        }
        out = bound.outcome();
        if (on_device()) note_steps(plan.get());
    } catch (const std::exception &e) {
        out.fault = e.what();
    }
    return out;
}

bytes reserve_by(const kda_call &backward, const kda_inputs &in, const candidate &writer,
                 std::string &fault) {
    try {
        const kda_call call = forward_of(backward);
        kda_inputs given = in;
        if (call.uses(PLAIT_STATE_OUT))
            given.arrays[PLAIT_STATE_OUT] = kda_array(call.shape(PLAIT_STATE_OUT));
        const desc_ptr desc = desc_of(call);
        const plan_ptr plan = plan_by(writer.name, desc.get());
        kda_bound bound(call, desc.get(), plan.get(), given);
        if (bound.execute() != PLAIT_OK) {
            fault = std::string("execute: ") + plait_last_error();
            return {};
        }
        const kda_outcome out = bound.outcome();
        fault = out.fault;
        if (fault.empty()) fault = judge(call, kda_reference(call, given), out, writer).wrong;
        if (on_device()) note_steps(plan.get());
        return fault.empty() ? bound.reserve() : bytes{};
    } catch (const std::exception &e) {
        fault = e.what();
        return {};
    }
}

candidate reader_of(const kda_call &backward, const candidate &reader) {
    candidate by = reader;
    for (const plait_role role : backward.floating())
        if (role != PLAIT_DO && role != PLAIT_DSTATE_OUT && backward.reads(role) &&
            backward.type(role) == PLAIT_F64)
            return by; // states are f64
    if (by.narrowest == "exact") by.narrowest = "f32";
    return by;
}

kda_verdict judge(const kda_call &call, const kda_results &ref, const kda_outcome &out,
                  const candidate &by) {
    kda_verdict verdict;
    const auto wrong = [&](plait_role role, const char *what, size_t e, double got, double want) {
        char text[160];
        std::snprintf(text, sizeof text, "%s[%zu]: %s %.9g, must be %.9g", plait_role_name(role), e,
                      what, got, want);
        if (verdict.wrong.empty()) verdict.wrong = text;
        verdict.ratio = std::max(verdict.ratio, 2.0);
    };
    bool half = false;
    for (const plait_role role : call.floating()) half = half || is_sixteen_bit(call.type(role));
    const bool exact = by.narrowest == "exact";
    for (const auto &[role, got] : out.values) {
        const auto found = ref.arrays.find(role);
        if (found == ref.arrays.end() || found->second.v.size() != got.size()) {
            verdict.wrong = std::string(plait_role_name(role)) + " has another size";
            return verdict;
        }
        const std::vector<long double> &want = found->second.v;
        const plait_dtype type = call.type(role);
        long double largest = 0, error = 0, size = 0;
        for (const long double v : want)
            if (std::isfinite(v)) largest = std::max(largest, std::fabs(v)), size += v * v;
        for (size_t e = 0; e < got.size(); ++e) {
            const double stored = rounded(type, want[e]);
            if (same_value(stored, got[e])) continue;
            if (!std::isfinite(stored) || !std::isfinite(got[e])) {
                wrong(role, "is", e, got[e], stored);
                continue;
            }
            const long double off = std::fabs(got[e] - want[e]),
                              slack = largest * exact_fence(call, role);
            if (off > least) error += off * off;
            const long double bound = slack + half_ulp(type, std::fabs(want[e]) + slack);
            if (!exact) continue;
            if (bound > 0)
                verdict.ratio = std::max(verdict.ratio, static_cast<double>(off / bound));
            if (!(off <= bound)) wrong(role, "is", e, got[e], static_cast<double>(want[e]));
        }
        if (exact || size == 0) continue;
        // Few sums of many terms of both signs: against the size of their terms.
        if (role == PLAIT_DBETA && by.narrowest == "stored") size = std::max(size, ref.dbeta_terms);
        if (role == PLAIT_DA_LOG && by.narrowest == "stored" && ref.arrays.count(PLAIT_DG)) {
            long double terms = 0;
            for (const long double v : ref.arrays.at(PLAIT_DG).v)
                if (std::isfinite(v)) terms += v * v;
            size = std::max(size, terms);
        }
        const double rms = static_cast<double>(std::sqrt(error / size)),
                     fence = !half                      ? 1e-5
                             : by.narrowest == "stored" ? stored_fence(role, want)
                                                        : half_fence(role);
        verdict.ratio = std::max(verdict.ratio, rms / fence);
        if (!(rms <= fence)) wrong(role, "relative RMS is", 0, rms, fence);
    }
    if (call.uses(PLAIT_STATUS) && out.status != ref.status && verdict.wrong.empty())
        verdict.wrong =
            "status is " + std::to_string(out.status) + ", must be " + std::to_string(ref.status);
    return verdict;
}

std::string difference(const kda_outcome &a, const kda_outcome &b) {
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
