// plait_execute and the memory for it.
#include "src/api/guard.h"
#include "src/api/handles.h"
#include "src/backend/reserve.h"
#include "src/core/log.h"

namespace plait::impl {

void run_plan(const plait_plan &plan, const plait_arg *args, int nargs, void *workspace,
              size_t workspace_bytes, plait_stream stream) {
    if (!plan.device) fail(PLAIT_ERR_NO_DEVICE, "the plan was made for a profile and cannot run");
    prepared::bindings pointers;
    plan.rules.bind(args, nargs, workspace, workspace_bytes, pointers);
    if (plan.ready) {
        plan.device->check_current();
        if (plan.device->kind() == PLAIT_CPU) check_reserve(plan.problem, pointers[PLAIT_RESERVE]);
        plan.ready->launch(pointers, stream);
    }
    if (log_wants(PLAIT_LOG_EXEC))
        log_line(PLAIT_LOG_EXEC,
                 text("execute ", plan.problem.token, " steps=", plan.choice.steps.steps.size(),
                      " workspace=", plan.work_bytes()));
}

} // namespace plait::impl

using namespace plait::impl;

extern "C" {

plait_status plait_execute(const plait_plan *plan, const plait_arg *args, int nargs,
                           void *workspace, size_t workspace_bytes, plait_stream stream) {
    return guard(__func__, [&] {
        require(plan, "plan");
        run_plan(*plan, args, nargs, workspace, workspace_bytes, stream);
    });
}

plait_status plait_workspace_alloc(const plait_context *ctx, size_t bytes, plait_stream stream,
                                   void **ptr) {
    if (ptr) *ptr = nullptr;
    return guard(__func__, [&] {
        require(ctx, "ctx");
        require(ptr, "ptr");
        allocator &memory = memory_of(ctx->memory);
        if (bytes > 0) *ptr = memory.allocate(bytes, stream);
    });
}

void plait_workspace_free(const plait_context *ctx, void *ptr, size_t bytes, plait_stream stream) {
    if (ctx && ctx->memory && ptr) ctx->memory->release(ptr, bytes, stream);
}

} // extern "C"
