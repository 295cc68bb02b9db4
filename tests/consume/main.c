/* The smallest user: one transform of 8 numbers, with the answer known. */
#include <plait/plait.h>
#include <stdio.h>

int main(void) {
    const float x[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    const float expected[8] = {36, -4, -8, 0, -16, 0, 0, 0};
    float y[8] = {0};
    plait_exec *exec = NULL;
    if (plait_version() != PLAIT_VERSION) {
        printf("header %d, library %d\n", PLAIT_VERSION, plait_version());
        return 1;
    }
    if (plait_exec_create(&exec, PLAIT_CPU, 0, "wht:f32:n8", NULL) != PLAIT_OK ||
        plait_exec_run(exec, x, y) != PLAIT_OK) {
        printf("%s\n", plait_last_error());
        return 1;
    }
    plait_exec_destroy(exec);
    for (int i = 0; i < 8; ++i)
        if (y[i] != expected[i]) {
            printf("y[%d] = %g, expected %g\n", i, y[i], expected[i]);
            return 1;
        }
    printf("C: ok\n");
    return 0;
}
