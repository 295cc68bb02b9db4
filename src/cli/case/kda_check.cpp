#include "src/cli/case/kda_check.h"

#include "src/cli/case/dtype.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace plait::cases {
namespace {

constexpr size_t none = ~size_t{0};
constexpr double half_relative = 4e-3; ///< of 16-bit operands

/// Which axis counts heads, of q and k or of values.
size_t head_axis(plait_role role) {
    switch (role) {
    case PLAIT_A_LOG:
    case PLAIT_DA_LOG:
    case PLAIT_DT_BIAS:
    case PLAIT_DDT_BIAS: return 0;
    case PLAIT_STATE_IN:
    case PLAIT_STATE_OUT:
    case PLAIT_DSTATE_IN:
    case PLAIT_DSTATE_OUT: return 1;
    case PLAIT_SLOTS:
    case PLAIT_CU_SEQLENS:
    case PLAIT_RESERVE:
    case PLAIT_STATUS: return none;
    default: return 2;
    }
}

bool of_query_heads(plait_role role) {
    return role == PLAIT_Q || role == PLAIT_K || role == PLAIT_DQ || role == PLAIT_DK;
}

/// What a chain of float64, of f32, and of f32 with 16-bit operands may add. A reserve has states
/// as wide as what its forward read.
double relative_of(const std::vector<tensor> &tensors) {
    double narrowest = 0;
    const bool reserve = find_tensor(tensors, PLAIT_RESERVE) != nullptr;
    for (const tensor &t : tensors) {
        if (is_integer(t.dtype) || (reserve && t.role >= PLAIT_DQ)) continue;
        if (t.dtype == PLAIT_F64) return 1e-12;
        narrowest = std::max(narrowest, bytes_of(t.dtype) == 2 ? half_relative : 1e-5);
    }
    return narrowest;
}

double norm_of(const std::vector<double> &values) {
    double squares = 0;
    for (const double v : values)
        if (std::isfinite(v)) squares += v * v;
    return std::sqrt(squares);
}

/// Of f32 with 16-bit operands between passes: the gradients that sum over channels or tokens have
/// the roundings of all terms. They average over as many values as count: (sum w^2)^2 / sum w^4.
double of_stored(plait_role role, double relative, const std::vector<double> &want) {
    if (role == PLAIT_DG) return 5e-3;
    if (role != PLAIT_DBETA && role != PLAIT_DDT_BIAS && role != PLAIT_DA_LOG) return relative;
    double squares = 0, fourths = 0;
    for (const double w : want)
        if (std::isfinite(w)) squares += w * w, fourths += w * w * w * w;
    const double few = fourths > 0 ? std::sqrt(fourths) / squares : 0;
    return (role == PLAIT_DA_LOG ? 1e-2 : 5e-3) * (1 + 3 * few);
}

} // namespace

kda_checker::kda_checker(const std::string &token, const std::vector<tensor> &tensors)
    : parts_(split_token(token)), tensors_(tensors),
      group_(parts_.extent('h') > 0 ? parts_.value_heads() / parts_.extent('h') : 0),
      relative_(relative_of(tensors)), ctx_(make_context(PLAIT_CPU, 0)) {
    const desc_ptr desc = make_desc(reference_token());
    reference_ = tensors_of(desc.get());
    plan_ = make_plan(ctx_.get(), desc.get(), make_pref(parts_.family + ".cpu.ref").get());
}

std::string kda_checker::reference_token() const {
    const auto number = [](int64_t n) { return std::to_string(n); };
    std::string text = parts_.family + ":f64:b" + number(parts_.extent('b')) + ":t" +
                       number(parts_.extent('t')) + ":h1";
    if (group_ != 1) text += ":hv" + number(group_);
    text += ":k" + number(parts_.extent('k')) + ":v" + number(parts_.extent('v'));
    for (const std::string &o : parts_.options)
        if (o.compare(0, 8, "reserve=") != 0) text += ":" + o; // the definition recomputes
    const bool reports = !parts_.option("seqs").empty() || !parts_.option("slots").empty();
    const std::string uses =
        parts_.uses_text([&](const std::string &name) { return name != "status" || reports; });
    if (!uses.empty()) text += ":" + uses;
    const tensor *offsets = find_tensor(tensors_, PLAIT_CU_SEQLENS);
    return offsets && offsets->dtype == PLAIT_I32 ? text + ":cu_seqlens.i32" : text;
}

void kda_checker::load(buffers &b, int64_t head, const fetch &inputs) const {
    for (const tensor &r : reference_) {
        const tensor &t = *find_tensor(tensors_, r.role);
        std::vector<unsigned char> &to = b[r.role];
        to.assign(r.span_bytes() + 1, 0xff); // NaN; never a null pointer
        const size_t axis = head_axis(t.role);
        if (axis == none) {
            if (t.reads()) inputs({t, 0}, to.data());
            continue;
        }
        // Slots of no row keep what was in them, also in a state that is only written.
        const tensor *before = t.alias ? find_tensor(tensors_, t.alias) : &t;
        const bool kept = t.role == PLAIT_STATE_OUT && !parts_.option("slots").empty();
        if (!t.reads() && !kept) continue;
        const int64_t heads = of_query_heads(t.role) ? 1 : group_;
        for (int64_t i = 0; i < heads; ++i) {
            const slice from = cut(*before, axis, head * heads + i);
            const int64_t n = from.part.elements();
            std::vector<unsigned char> packed(bytes_for(t.dtype, n) + 1);
            std::vector<double> values(static_cast<size_t>(n) + 1);
            inputs(from, packed.data());
            to_double(t.dtype, packed.data(), n, values.data());
            scatter(cut(r, axis, i), to.data(), values.data());
        }
    }
}

void kda_checker::run(buffers &on) const {
    std::vector<plait_arg> args;
    for (const tensor &t : reference_) args.push_back({t.role, on.at(t.role).data()});
    size_t bytes = 0;
    cases::check(plait_plan_workspace_size(plan_.get(), &bytes));
    void *work = nullptr;
    cases::check(plait_workspace_alloc(ctx_.get(), bytes, nullptr, &work));
    const plait_status status = plait_execute(plan_.get(), args.data(),
                                              static_cast<int>(args.size()), work, bytes, nullptr);
    plait_workspace_free(ctx_.get(), work, bytes, nullptr);
    cases::check(status);
}

deviation kda_checker::compare(const buffers &from, const tensor &t, int64_t head, rounding how,
                               const fetch &outputs) const {
    const bool stored = how == rounding::stored && relative_ == half_relative;
    const size_t axis = head_axis(t.role);
    const int64_t heads = of_query_heads(t.role) ? 1 : group_;
    const tensor &r = *find_tensor(reference_, t.role);
    deviation worst;
    for (int64_t i = 0; i < heads; ++i) {
        const slice part = cut(t, axis, head * heads + i);
        const int64_t n = part.part.elements();
        std::vector<unsigned char> got(bytes_for(t.dtype, n) + 1);
        std::vector<double> want(static_cast<size_t>(n) + 1); // never a null pointer
        outputs(part, got.data());
        gather(cut(r, axis, i), from.at(t.role).data(), want.data());
        tolerance tol{relative_, t.dtype, false};
        if (stored) tol.relative = of_stored(t.role, relative_, want);
        // A sum of terms of both signs, as many as dg has: against their size, not that of the sum.
        if (const tensor *dg = find_tensor(reference_, PLAIT_DG); dg && t.role == PLAIT_DA_LOG) {
            const slice terms = cut(*dg, head_axis(PLAIT_DG), i);
            std::vector<double> values(static_cast<size_t>(terms.part.elements()) + 1);
            gather(terms, from.at(PLAIT_DG).data(), values.data());
            tol.least_norm = norm_of(values);
        }
        worst.add(head, compare_floats(tol, got.data(), want.data(), n));
    }
    return worst;
}

check_result kda_checker::check(const std::vector<int64_t> &which, rounding how,
                                const fetch &inputs, const fetch &outputs) {
    check_result result;
    buffers b;
    for (const int64_t head : which) {
        load(b, head, inputs);
        run(b);
        deviation worst;
        for (const tensor &t : tensors_)
            if (t.writes() && !is_integer(t.dtype))
                worst.add(head, compare(b, t, head, how, outputs));
        result.values.add(head, worst);
    }
    if (const tensor *status = find_tensor(tensors_, PLAIT_STATUS); status && !which.empty()) {
        int32_t said = 0, should = 0;
        outputs({*status, 0}, &said);
        if (b.count(PLAIT_STATUS)) // else a reserve alone could be wrong
            std::memcpy(&should, b.at(PLAIT_STATUS).data(), sizeof should);
        if (said != should)
            result.wrong =
                "status is " + std::to_string(said) + ", it should be " + std::to_string(should);
    }
    return result;
}

} // namespace plait::cases
