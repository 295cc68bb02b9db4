#include <plait/plait.h>
#include <stdio.h>
#include <stdlib.h>

static int fail(void) { return puts(plait_last_error()), 1; }

int main(void) { /* 300 rows of 1024 numbers; scale 1/32 makes the transform its own inverse */
    float *x = malloc(300 * 1024 * sizeof *x), *y = malloc(300 * 1024 * sizeof *y);
    for (int i = 0; i < 300 * 1024; ++i) x[i] = 1 + i % 7;
    plait_exec *wht = NULL;
    if (plait_exec_create(&wht, PLAIT_CPU, 0, "wht:f32:b300:n1024:scale=0.03125", NULL))
        return fail();
    if (plait_exec_run(wht, x, y) || plait_exec_run(wht, y, x)) return fail(); /* there and back */
    printf("%.3f %.3f %.3f\n", x[0], x[1], x[300 * 1024 - 1]);
    plait_exec_destroy(wht);
    return free(x), free(y), 0;
}
