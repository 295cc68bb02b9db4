// plait_plan: made once, immutable, shared.
#include "src/api/guard.h"
#include "src/api/handles.h"

namespace plait::impl {

namespace {

preferences effective(const plait_context &ctx, const preferences *pref) {
    preferences out = pref ? *pref : preferences();
    if (out.pattern.empty()) out.pattern = ctx.pattern;
    return out;
}

[[noreturn]] void wrong_attribute(plait_plan_attr attr, const char *other) {
    switch (attr) {
    case PLAIT_PLAN_STEPS:
    case PLAIT_PLAN_RIGOR:
    case PLAIT_PLAN_FROM_WISDOM:
    case PLAIT_PLAN_BYTES_READ:
    case PLAIT_PLAN_BYTES_WRITTEN:
    case PLAIT_PLAN_FLOPS:
    case PLAIT_PLAN_SECONDS_ESTIMATED:
    case PLAIT_PLAN_SECONDS_MEASURED:
        fail(PLAIT_ERR_INVALID_ARGUMENT, "attr=", attr, " is read by ", other);
    }
    fail(PLAIT_ERR_INVALID_ARGUMENT, "attr=", attr, " is no plait_plan_attr");
}

} // namespace

plait_plan *make_plan(const plait_context &ctx, const descriptor &desc, const preferences *pref) {
    auto plan = std::make_unique<plait_plan>();
    plan->device = ctx.device;
    plan->memory = ctx.memory;
    plan->facts = ctx.facts;
    plan->problem = make_problem(desc);
    const preferences wanted = effective(ctx, pref);
    plan->rigor = wanted.rigor;
    plan->choice =
        choose(plan->problem, plan->facts, wanted, ctx.learned, ctx.device.get(), ctx.memory.get());
    const bool no_steps = plan->choice.steps.steps.empty();
    plan->rules = argument_rules(plan->problem.tensors, plan->choice.steps.work.bytes(), no_steps);
    if (ctx.device && !no_steps) plan->ready = ctx.device->prepare(plan->choice.steps);
    return plan.release();
}

} // namespace plait::impl

using namespace plait::impl;

extern "C" {

plait_status plait_plan_create(plait_plan **plan, const plait_context *ctx, const plait_desc *desc,
                               const plait_pref *pref) {
    return guard_create(__func__, plan, "plan", [&] {
        require(ctx, "ctx");
        require(desc, "desc");
        return make_plan(*ctx, *desc->body, pref ? &pref->body : nullptr);
    });
}

plait_plan *plait_plan_retain(const plait_plan *plan) {
    if (!plan) return nullptr;
    plan->owners.fetch_add(1, std::memory_order_relaxed);
    return const_cast<plait_plan *>(plan);
}

void plait_plan_destroy(plait_plan *plan) {
    // The last owner must see what the others did with the plan before it is freed.
    if (plan && plan->owners.fetch_sub(1, std::memory_order_acq_rel) == 1) delete plan;
}

plait_status plait_plan_workspace_size(const plait_plan *plan, size_t *bytes) {
    return guard(__func__, [&] {
        require(plan, "plan");
        require(bytes, "bytes");
        *bytes = plan->work_bytes();
    });
}

plait_status plait_plan_reserve_size(const plait_plan *plan, size_t *bytes) {
    return guard(__func__, [&] {
        require(plan, "plan");
        require(bytes, "bytes");
        const tensor *t = plan->problem.find(PLAIT_RESERVE);
        *bytes = t ? static_cast<size_t>(t->span_bytes()) : 0;
    });
}

plait_status plait_plan_get_i64(const plait_plan *plan, plait_plan_attr attr, int64_t *value) {
    return guard(__func__, [&] {
        require(plan, "plan");
        require(value, "value");
        const pipeline &steps = plan->choice.steps;
        switch (attr) {
        case PLAIT_PLAN_STEPS: *value = static_cast<int64_t>(steps.steps.size()); return;
        case PLAIT_PLAN_RIGOR: *value = plan->rigor; return;
        case PLAIT_PLAN_FROM_WISDOM:
            *value = plan->choice.source == choice_source::wisdom ||
                     plan->choice.source == choice_source::generic;
            return;
        case PLAIT_PLAN_BYTES_READ: *value = steps.bytes_read(); return;
        case PLAIT_PLAN_BYTES_WRITTEN: *value = steps.bytes_written(); return;
        case PLAIT_PLAN_FLOPS: *value = steps.flops(); return;
        default: wrong_attribute(attr, "plait_plan_get_f64");
        }
    });
}

plait_status plait_plan_get_f64(const plait_plan *plan, plait_plan_attr attr, double *value) {
    return guard(__func__, [&] {
        require(plan, "plan");
        require(value, "value");
        switch (attr) {
        case PLAIT_PLAN_SECONDS_ESTIMATED: *value = plan->choice.estimate.seconds; return;
        case PLAIT_PLAN_SECONDS_MEASURED: *value = plan->choice.measured.value_or(-1); return;
        default: wrong_attribute(attr, "plait_plan_get_i64");
        }
    });
}

plait_status plait_plan_candidate(const plait_plan *plan, char *buf, size_t cap, size_t *size) {
    return guard(__func__, [&] {
        require(plan, "plan");
        text_out(plan->choice.what ? plan->choice.what->name : "none", buf, cap, size);
    });
}

plait_status plait_plan_print(const plait_plan *plan, plait_format format, char *buf, size_t cap,
                              size_t *size) {
    return guard(__func__, [&] {
        require(plan, "plan");
        check_format(format);
        text_out(print_plan(plan->problem, plan->facts, plan->rigor, plan->choice, format), buf,
                 cap, size);
    });
}

plait_status plait_candidates_print(const plait_context *ctx, const plait_desc *desc,
                                    const plait_pref *pref, plait_format format, char *buf,
                                    size_t cap, size_t *size) {
    return guard(__func__, [&] {
        require(ctx, "ctx");
        require(desc, "desc");
        check_format(format);
        const problem what = make_problem(*desc->body);
        const preferences wanted = effective(*ctx, pref ? &pref->body : nullptr);
        text_out(print_candidates(what, ctx->facts, rank(what, ctx->facts, wanted, ctx->learned),
                                  format),
                 buf, cap, size);
    });
}

} // extern "C"
