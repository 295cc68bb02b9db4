// plait_exec: a plan with scratch and stream of its own.
#include "src/api/guard.h"
#include "src/api/handles.h"
#include "src/core/tables.h"

using namespace plait::impl;

namespace {

void *take_scratch(const plait_plan &plan, plait_stream stream) {
    allocator &memory = memory_of(plan.memory);
    return plan.work_bytes() > 0 ? memory.allocate(plan.work_bytes(), stream) : nullptr;
}

void give_scratch(const plait_exec &exec) noexcept {
    if (exec.work) exec.plan->memory->release(exec.work, exec.plan->work_bytes(), exec.stream);
}

/// Takes over the count of `plan`, also when it throws.
plait_exec *make_exec(plait_plan *plan, plait_stream stream) {
    const std::unique_ptr<plait_plan, void (*)(plait_plan *)> owner(plan, plait_plan_destroy);
    auto exec = std::make_unique<plait_exec>(plait_exec{plan, stream, nullptr});
    exec->work = take_scratch(*plan, stream);
    plait_plan_retain(plan);
    return exec.release();
}

void run_in_out(const plait_exec &exec, const void *in, void *out) {
    const plait_arg args[] = {{PLAIT_X, const_cast<void *>(in)}, {PLAIT_Y, out}};
    run_plan(*exec.plan, args, 2, exec.work, exec.plan->work_bytes(), exec.stream);
}

/// `have` elements of `dtype`, below 0 where nobody knows how many.
void check_array(const plait_plan &plan, plait_role role, plait_dtype dtype, int64_t have) {
    const tensor *t = plan.problem.find(role);
    const dtype_row *kind = find_dtype(dtype);
    if (!kind) fail(PLAIT_ERR_INVALID_ARGUMENT, role_name(role), ": ", dtype, " is no plait_dtype");
    if (!t) return; // binding finds the role
    if (dtype != t->dtype)
        fail(PLAIT_ERR_INVALID_ARGUMENT, "the array of ", role_name(role), " is ", kind->name,
             "; the plan has ", dtype_of(t->dtype).name);
    const int64_t needed = t->span_bytes() * 8 / kind->bits;
    if (have >= 0 && have < needed)
        fail(PLAIT_ERR_INVALID_ARGUMENT, "the array of ", role_name(role), " has ", have,
             " elements; the plan needs ", needed);
}

} // namespace

extern "C" {

plait_status plait_exec_create(plait_exec **exec, plait_backend backend, int device,
                               const char *token, plait_stream stream) {
    return guard_create(__func__, exec, "exec", [&] {
        require(token, "token");
        const std::unique_ptr<descriptor> desc = descriptor_from_token(token);
        const std::unique_ptr<plait_context> ctx(make_context(backend, device));
        return make_exec(make_plan(*ctx, *desc, nullptr), stream);
    });
}

plait_status plait_exec_from_plan(plait_exec **exec, const plait_plan *plan, plait_stream stream) {
    return guard_create(__func__, exec, "exec", [&] {
        require(plan, "plan");
        return make_exec(plait_plan_retain(plan), stream);
    });
}

plait_status plait_exec_run(plait_exec *exec, const void *in, void *out) {
    return guard(__func__, [&] {
        require(exec, "exec");
        run_in_out(*exec, in, out);
    });
}

plait_status plait_exec_run_arrays(plait_exec *exec, plait_dtype in_dtype, const void *in,
                                   int64_t in_elements, plait_dtype out_dtype, void *out,
                                   int64_t out_elements) {
    return guard(__func__, [&] {
        require(exec, "exec");
        check_array(*exec->plan, PLAIT_X, in_dtype, in_elements);
        check_array(*exec->plan, PLAIT_Y, out_dtype, out_elements);
        run_in_out(*exec, in, out);
    });
}

plait_status plait_exec_run_args(plait_exec *exec, const plait_arg *args, int nargs) {
    return guard(__func__, [&] {
        require(exec, "exec");
        run_plan(*exec->plan, args, nargs, exec->work, exec->plan->work_bytes(), exec->stream);
    });
}

plait_status plait_exec_set_stream(plait_exec *exec, plait_stream stream) {
    return guard(__func__, [&] {
        require(exec, "exec");
        if (stream == exec->stream) return;
        void *work = take_scratch(*exec->plan, stream); // first: a failure changes nothing
        give_scratch(*exec);
        exec->work = work;
        exec->stream = stream;
    });
}

const plait_plan *plait_exec_plan(const plait_exec *exec) { return exec ? exec->plan : nullptr; }

void plait_exec_destroy(plait_exec *exec) {
    if (!exec) return;
    give_scratch(*exec);
    plait_plan_destroy(exec->plan);
    delete exec;
}

} // extern "C"
