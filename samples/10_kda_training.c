/* Training steps of a layer of Kimi Delta Attention. A teacher and a student see the same q, k, v
 * and differ in the parameters of their gate; the student learns the teacher's by gradient descent:
 * forward, gradient of the loss by o, backward, step. Forward leaves a reserve, so that backward
 * need not compute the states again. The first gradient is also held against a difference of the
 * loss along a direction. */
#include <math.h>
#include <plait/plait.h>
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>

enum { T = 48, H = 2, K = 16, V = 16, STEPS = 30, OUTPUTS = T * H * V };

static void check(plait_status status) {
    if (status == PLAIT_OK) return;
    fprintf(stderr, "%s: %s\n", plait_status_name(status), plait_last_error());
    exit(1);
}

static plait_exec *make(const char *token) {
    plait_exec *exec = NULL;
    check(plait_exec_create(&exec, PLAIT_CPU, 0, token, NULL));
    return exec;
}

static float noise(void) { /* in (-1, 1) */
    static unsigned state = 1;
    state = state * 1664525u + 1013904223u;
    return (float)(state >> 8) / (1 << 23) - 1;
}

static void fill(float *values, size_t count, float size) {
    for (size_t i = 0; i < count; ++i) values[i] = size * noise();
}

/* What is learned. Plans rely on 16 bytes of alignment unless they are told otherwise. */
struct parameters {
    alignas(16) float dt_bias[H][K];
    alignas(16) float a_log[H];
};

static alignas(16) float q[T][H][K], k[T][H][K], v[T][H][V], g[T][H][K], beta[T][H],
    target[OUTPUTS];

static void *reserve; /* of the last forward */

static void forward(plait_exec *layer, struct parameters *with, float *o) {
    check(plait_exec_run_args(layer,
                              (plait_arg[]){{PLAIT_Q, q},
                                            {PLAIT_K, k},
                                            {PLAIT_V, v},
                                            {PLAIT_G, g},
                                            {PLAIT_BETA, beta},
                                            {PLAIT_O, o},
                                            {PLAIT_A_LOG, with->a_log},
                                            {PLAIT_DT_BIAS, with->dt_bias},
                                            {PLAIT_RESERVE, reserve}},
                              9));
}

/* Half the squared distance to the target; its gradient by o. */
static double loss_of(const float *o, float *d_o) {
    double sum = 0;
    for (int i = 0; i < OUTPUTS; ++i) {
        d_o[i] = o[i] - target[i];
        sum += 0.5 * d_o[i] * d_o[i];
    }
    return sum;
}

/* with + size * direction */
static struct parameters moved(struct parameters with, const struct parameters *direction,
                               float size) {
    for (int h = 0; h < H; ++h) {
        for (int i = 0; i < K; ++i) with.dt_bias[h][i] += size * direction->dt_bias[h][i];
        with.a_log[h] += size * direction->a_log[h];
    }
    return with;
}

static double dot(const struct parameters *a, const struct parameters *b) {
    double sum = 0;
    for (int h = 0; h < H; ++h) {
        for (int i = 0; i < K; ++i) sum += a->dt_bias[h][i] * b->dt_bias[h][i];
        sum += a->a_log[h] * b->a_log[h];
    }
    return sum;
}

static void draw(struct parameters *p) {
    for (int h = 0; h < H; ++h) fill(p->dt_bias[h], K, 1);
    fill(p->a_log, H, 1);
}

int main(void) {
    static alignas(16) float o[OUTPUTS], d_o[OUTPUTS];
    struct parameters teacher, student, gradient, direction;
    fill(q[0][0], T * H * K, 1);
    fill(k[0][0], T * H * K, 1);
    fill(v[0][0], T * H * V, 1);
    fill(g[0][0], T * H * K, 1);
    fill(beta[0], T * H, 2);
    draw(&teacher);
    draw(&student);
    draw(&direction);

    /* Backward takes the inputs of forward again; of its gradients only two are asked for. */
    plait_exec *layer =
        make("kda.fwd:f32:b1:t48:h2:k16:v16:gate=softplus:beta=logit.1:norm=1e-06:reserve=chunk64:"
             "+dt_bias");
    plait_exec *adjoint =
        make("kda.bwd:f32:b1:t48:h2:k16:v16:gate=softplus:beta=logit.1:norm=1e-06:reserve=chunk64:"
             "+dt_bias-dq-dk-dv-dg-dbeta");
    size_t bytes;
    check(plait_plan_reserve_size(plait_exec_plan(layer), &bytes));
    if (posix_memalign(&reserve, PLAIT_WORKSPACE_ALIGNMENT, bytes)) return 1;
    forward(layer, &teacher, target);

    double first = 0, last = 0, along = 0;
    for (int step = 0; step < STEPS; ++step) {
        forward(layer, &student, o);
        last = loss_of(o, d_o);
        check(plait_exec_run_args(adjoint,
                                  (plait_arg[]){{PLAIT_Q, q},
                                                {PLAIT_K, k},
                                                {PLAIT_V, v},
                                                {PLAIT_G, g},
                                                {PLAIT_BETA, beta},
                                                {PLAIT_A_LOG, student.a_log},
                                                {PLAIT_DT_BIAS, student.dt_bias},
                                                {PLAIT_RESERVE, reserve},
                                                {PLAIT_DO, d_o},
                                                {PLAIT_DA_LOG, gradient.a_log},
                                                {PLAIT_DDT_BIAS, gradient.dt_bias}},
                                  11));
        if (step == 0) {
            struct parameters ahead = moved(student, &direction, 0.01f);
            struct parameters behind = moved(student, &direction, -0.01f);
            static alignas(16) float other[OUTPUTS], unused[OUTPUTS];
            forward(layer, &ahead, other);
            const double up = loss_of(other, unused);
            forward(layer, &behind, other);
            const double slope = (up - loss_of(other, unused)) / 0.02;
            along = dot(&gradient, &direction);
            printf("along a direction the loss changes by %.5g, the gradient says %.5g\n", slope,
                   along);
            first = last;
            along = fabs(along - slope) / fabs(slope);
        }
        student = moved(student, &gradient, -8.0f);
    }
    printf("after %d steps of gradient descent the loss is %.3g; it was %.3g\n", STEPS, last,
           first);
    plait_exec_destroy(layer);
    plait_exec_destroy(adjoint);
    free(reserve);
    return !(along < 1e-2 && last < 0.2 * first);
}
