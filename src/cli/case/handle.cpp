#include "src/cli/case/handle.h"

namespace plait::cases {

void check(plait_status status) {
    if (status != PLAIT_OK) throw failure(status, plait_last_error());
}

desc_ptr make_desc(const std::string &token) {
    plait_desc *desc = nullptr;
    check(plait_desc_from_token(&desc, token.c_str()));
    desc_ptr owner(desc);
    check(plait_desc_check(desc));
    return owner;
}

context_ptr make_context(plait_backend backend, int device) {
    plait_context *ctx = nullptr;
    check(plait_context_create(&ctx, backend, device));
    return context_ptr(ctx);
}

plan_ptr make_plan(const plait_context *ctx, const plait_desc *desc, const plait_pref *pref) {
    plait_plan *plan = nullptr;
    check(plait_plan_create(&plan, ctx, desc, pref));
    return plan_ptr(plan);
}

pref_ptr make_pref(const std::string &candidates) {
    plait_pref *pref = nullptr;
    check(plait_pref_create(&pref));
    pref_ptr owner(pref);
    if (!candidates.empty()) check(plait_pref_set_candidates(pref, candidates.c_str()));
    return owner;
}

std::string token_of(const plait_desc *desc) {
    return text_of([&](char *buf, size_t cap, size_t *size) {
        return plait_desc_token(desc, buf, cap, size);
    });
}

std::string candidate_of(const plait_plan *plan) {
    return text_of([&](char *buf, size_t cap, size_t *size) {
        return plait_plan_candidate(plan, buf, cap, size);
    });
}

std::string profile_of(const plait_context *ctx) {
    return text_of([&](char *buf, size_t cap, size_t *size) {
        return plait_context_profile(ctx, buf, cap, size);
    });
}

} // namespace plait::cases
