/* plait.h in C99, and the public types where C and C++ could differ. */
#include <plait/plait.h>
#include <stdio.h>

static int failures = 0;

static void expect(int good, const char *what) {
    if (good) return;
    printf("failed: %s: %s\n", what, plait_last_error());
    ++failures;
}

/* An array of negative size would not compile. */
typedef char arg_has_16_bytes[sizeof(plait_arg) == 8 + sizeof(void *) ? 1 : -1];
typedef char enums_are_ints[sizeof(plait_role) == sizeof(int) ? 1 : -1];

int main(void) {
    const float expected[8] = {36, -4, -8, 0, -16, 0, 0, 0};
    float x[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    float y[8] = {0};
    const int64_t extents[2] = {1, 8};
    plait_context *ctx = NULL;
    plait_desc *desc = NULL;
    plait_plan *plan = NULL;
    void *work = NULL;
    size_t bytes = 0;
    int i;
    arg_has_16_bytes a = {0};
    enums_are_ints e = {0};
    expect(plait_version() == PLAIT_VERSION, "version");
    expect(plait_context_create(&ctx, PLAIT_CPU, 0) == PLAIT_OK, "context");
    expect(plait_wht_create(&desc, PLAIT_F32, 2, extents) == PLAIT_OK, "desc");
    expect(plait_desc_set_alignment(desc, PLAIT_X, 4) == PLAIT_OK, "alignment of x");
    expect(plait_desc_set_alignment(desc, PLAIT_Y, 4) == PLAIT_OK, "alignment of y");
    expect(plait_plan_create(&plan, ctx, desc, NULL) == PLAIT_OK, "plan");
    expect(plait_plan_workspace_size(plan, &bytes) == PLAIT_OK, "size");
    expect(plait_workspace_alloc(ctx, bytes, NULL, &work) == PLAIT_OK, "workspace");
    {
        const plait_arg args[2] = {{PLAIT_X, x}, {PLAIT_Y, y}};
        expect(plait_execute(plan, args, 2, work, bytes, NULL) == PLAIT_OK, "execute");
    }
    for (i = 0; i < 8; ++i) expect(y[i] == expected[i], "value");
    expect(plait_desc_use(desc, (plait_role)99, 1) == PLAIT_ERR_INVALID_ARGUMENT, "garbage role");
    plait_workspace_free(ctx, work, bytes, NULL);
    plait_plan_destroy(plan);
    plait_desc_destroy(desc);
    plait_context_destroy(ctx);
    return failures != 0 || a[0] != 0 || e[0] != 0;
}
