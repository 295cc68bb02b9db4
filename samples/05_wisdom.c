/* Measure once, remember, reuse: wisdom.
 *
 * Estimating takes microseconds and is the default. Measuring times the candidates on this
 * machine; the times can be saved as text and loaded by the next process, which then plans as well
 * as the one that measured, without running anything. */
#include <plait/plait.h>
#include <stdio.h>
#include <stdlib.h>

static void check(plait_status status) {
    if (status == PLAIT_OK) return;
    fprintf(stderr, "%s: %s\n", plait_status_name(status), plait_last_error());
    exit(1);
}

static void describe(const char *how, const plait_plan *plan) {
    char candidate[128];
    int64_t from_wisdom = 0;
    double estimated = 0, measured = 0;
    check(plait_plan_candidate(plan, candidate, sizeof candidate, NULL));
    check(plait_plan_get_i64(plan, PLAIT_PLAN_FROM_WISDOM, &from_wisdom));
    check(plait_plan_get_f64(plan, PLAIT_PLAN_SECONDS_ESTIMATED, &estimated));
    check(plait_plan_get_f64(plan, PLAIT_PLAN_SECONDS_MEASURED, &measured));
    printf("%-12s %-14s estimated %8.1f us", how, candidate, estimated * 1e6);
    if (measured >= 0) printf(", measured %8.1f us", measured * 1e6);
    printf("%s\n", from_wisdom ? ", from wisdom" : "");
}

int main(int argc, char **argv) {
    const char *path = argc > 1 ? argv[1] : "sample.wisdom";
    const int64_t extents[2] = {64, 4096};
    plait_context *ctx = NULL, *later = NULL;
    plait_desc *desc = NULL;
    plait_pref *pref = NULL;
    plait_plan *plan = NULL;
    int loaded = 0, skipped = 0;
    int64_t from_wisdom = 0;

    check(plait_context_create(&ctx, PLAIT_CPU, 0));
    check(plait_wht_create(&desc, PLAIT_F32, 2, extents)); /* 64 rows of 4096 */
    check(plait_plan_create(&plan, ctx, desc, NULL));
    describe("estimate:", plan);
    plait_plan_destroy(plan);

    check(plait_pref_create(&pref));
    check(plait_pref_set_rigor(pref, PLAIT_MEASURE));
    check(plait_pref_set_time_limit(pref, 2.0)); /* seconds; then the best so far */
    check(plait_plan_create(&plan, ctx, desc, pref));
    describe("measure:", plan);
    plait_plan_destroy(plan);
    check(plait_wisdom_save_file(ctx, path));

    /* Another process, another day. wisdom_only refuses to guess. */
    check(plait_context_create(&later, PLAIT_CPU, 0));
    plait_wisdom_clear(later);
    check(plait_pref_set_wisdom_only(pref, 1));
    if (plait_plan_create(&plan, later, desc, pref) != PLAIT_ERR_NO_WISDOM) return 1;
    printf("before:      %s\n", plait_last_error());
    check(plait_wisdom_load_file(later, path, &loaded, &skipped));
    printf("%s: %d measurements loaded, %d skipped\n", path, loaded, skipped);
    check(plait_plan_create(&plan, later, desc, pref));
    describe("afterwards:", plan);
    check(plait_plan_get_i64(plan, PLAIT_PLAN_FROM_WISDOM, &from_wisdom));

    plait_plan_destroy(plan);
    plait_pref_destroy(pref);
    plait_desc_destroy(desc);
    plait_context_destroy(later);
    plait_context_destroy(ctx);
    return from_wisdom != 1;
}
