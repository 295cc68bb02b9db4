/* Four rows of eight numbers, transformed and transformed back.
 *
 * The habit of FFTW and cuFFT: create, run as often as wanted, destroy. One line of text, the
 * token, says what to compute: wht : f32 : b4 (four rows) : n8 (of length 8). The transform is its
 * own inverse up to a factor of n, so the way back is the same with scale=1/8.
 *
 * On a GPU nothing changes but PLAIT_CPU to PLAIT_CUDA, and the pointers are device pointers. */
#include <plait/plait.h>
#include <stdio.h>

enum { ROWS = 4, N = 8 };

/* Every call says what went wrong in a sentence that names the argument, its value and the rule. */
static int failed(plait_status status) {
    if (status == PLAIT_OK) return 0;
    fprintf(stderr, "%s: %s\n", plait_status_name(status), plait_last_error());
    return 1;
}

static void print_rows(const char *title, const float *data) {
    printf("%s\n", title);
    for (int r = 0; r < ROWS; ++r) {
        for (int i = 0; i < N; ++i) printf("%6g", data[r * N + i]);
        printf("\n");
    }
}

int main(void) {
    const float x[ROWS * N] = {
        1, 2,  3, 4,  5, 6,  7, 8,  /* a ramp: only 1 and the powers of two answer          */
        1, 0,  0, 0,  0, 0,  0, 0,  /* an impulse: every output is 1                        */
        1, 1,  1, 1,  1, 1,  1, 1,  /* a constant: everything lands in output 0             */
        1, -1, 1, -1, 1, -1, 1, -1, /* row 1 of the matrix: everything lands in output 1    */
    };
    float y[ROWS * N], back[ROWS * N];
    plait_exec *forward = NULL, *inverse = NULL;

    if (failed(plait_exec_create(&forward, PLAIT_CPU, 0, "wht:f32:b4:n8", NULL)) ||
        failed(plait_exec_create(&inverse, PLAIT_CPU, 0, "wht:f32:b4:n8:scale=0.125", NULL)) ||
        failed(plait_exec_run(forward, x, y)) || failed(plait_exec_run(inverse, y, back)))
        return 1;
    plait_exec_destroy(forward);
    plait_exec_destroy(inverse);

    print_rows("x", x);
    print_rows("H x", y);
    for (int i = 0; i < ROWS * N; ++i)
        if (back[i] != x[i]) { /* small integers: exact */
            fprintf(stderr, "element %d came back as %g instead of %g\n", i, back[i], x[i]);
            return 1;
        }
    printf("and back: equal in all %d elements\n", ROWS * N);

    /* What a mistake looks like. */
    if (plait_exec_create(&forward, PLAIT_CPU, 0, "wht:f32:b4:n7", NULL) == PLAIT_OK) return 1;
    printf("n = 7 is refused: %s\n", plait_last_error());
    return 0;
}
