/* Kimi Delta Attention as a server runs it: prompts of different length are packed behind one
 * another and go through one call (prefill), which leaves the state of every prompt in a slot of a
 * pool; then each new token is one call that reads and replaces these states in place (decode).
 * One call over all tokens of a prompt says the same.
 *
 * Gate, norm of q and k, and the sigmoid of beta are inside: the layer hands over what its linear
 * maps give. The orientation of states has to be said: here [value][key], as pools often are. */
#include <math.h>
#include <plait/plait.h>
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { H = 2, K = 16, V = 24, PROMPTS = 2, SLOTS = 5, TOKENS = 11 + 6, STEPS = 20 };
enum { ALL = 11 + STEPS };

/* The tokens of one prompt, of all packed prompts, or one token of each prompt. Plans rely on 16
 * bytes of alignment unless they are told otherwise. */
struct inputs {
    alignas(16) float q[ALL][H][K];
    alignas(16) float k[ALL][H][K];
    alignas(16) float v[ALL][H][V];
    alignas(16) float g[ALL][H][K];
    alignas(16) float beta[ALL][H];
};

#define LAYER "gate=bounded.-5:beta=logit.1:norm=1e-06:state=vk"

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

/* Token `from` of one to token `to` of another. */
static void copy_token(struct inputs *out, int to, const struct inputs *in, int from) {
    memcpy(out->q[to], in->q[from], sizeof in->q[0]);
    memcpy(out->k[to], in->k[from], sizeof in->k[0]);
    memcpy(out->v[to], in->v[from], sizeof in->v[0]);
    memcpy(out->g[to], in->g[from], sizeof in->g[0]);
    memcpy(out->beta[to], in->beta[from], sizeof in->beta[0]);
}

static alignas(16) float a_log[H], dt_bias[H][K], pool[SLOTS][H][V][K];
static const int64_t offsets[PROMPTS + 1] = {0, 11, TOKENS}; /* 11 tokens, then 6 */
static const int32_t slots[PROMPTS] = {3, 0};

/* The roles that all three calls have in common, then those of one. */
static void run(plait_exec *exec, struct inputs *in, float (*o)[H][V], int count,
                const plait_arg *others) {
    plait_arg args[16] = {{PLAIT_Q, in->q},     {PLAIT_K, in->k},        {PLAIT_V, in->v},
                          {PLAIT_G, in->g},     {PLAIT_BETA, in->beta},  {PLAIT_O, o},
                          {PLAIT_A_LOG, a_log}, {PLAIT_DT_BIAS, dt_bias}};
    for (int i = 0; i < count; ++i) args[8 + i] = others[i];
    check(plait_exec_run_args(exec, args, 8 + count));
}

/* The largest difference beside the largest value. */
static double distance(const float *a, const float *b, size_t count) {
    double largest = 0, worst = 0;
    for (size_t i = 0; i < count; ++i) {
        largest = fmax(largest, fabs(a[i]));
        worst = fmax(worst, fabs((double)a[i] - b[i]));
    }
    return worst / largest;
}

int main(void) {
    static struct inputs prompt[PROMPTS], packed, token;
    static alignas(16) float prefilled[TOKENS][H][V], decoded[PROMPTS][STEPS][H][V];
    static alignas(16) float o[PROMPTS][H][V], whole[ALL][H][V];

    fill(a_log, H, 1);
    fill(dt_bias[0], H * K, 1);
    for (int p = 0; p < PROMPTS; ++p) {
        fill(prompt[p].q[0][0], ALL * H * K, 1);
        fill(prompt[p].k[0][0], ALL * H * K, 1);
        fill(prompt[p].v[0][0], ALL * H * V, 1);
        fill(prompt[p].g[0][0], ALL * H * K, 4);
        fill(prompt[p].beta[0], ALL * H, 3);
        for (int t = 0; t < (int)(offsets[p + 1] - offsets[p]); ++t)
            copy_token(&packed, (int)offsets[p] + t, &prompt[p], t);
    }

    /* Two sequences of at most 11 of the 17 tokens; 5 slots, -1 would be a sequence without one.
     * A prompt starts without history: no state is read, only written. */
    plait_exec *prefill =
        make("kda.fwd:f32:b1:t17:h2:k16:v24:" LAYER ":seqs=2.11:slots=5.-1:+dt_bias+state_out");
    run(prefill, &packed, prefilled, 3,
        (plait_arg[]){{PLAIT_STATE_OUT, pool},
                      {PLAIT_SLOTS, (void *)slots},
                      {PLAIT_CU_SEQLENS, (void *)offsets}});
    plait_exec_destroy(prefill);

    /* Decode: one token for every prompt and step, the states in place. */
    plait_exec *step = make("kda.fwd:f32:b2:t1:h2:k16:v24:" LAYER
                            ":slots=5.-1:+dt_bias+state_in+state_out:state_out@state_in");
    for (int t = 0; t < STEPS; ++t) {
        for (int p = 0; p < PROMPTS; ++p)
            copy_token(&token, p, &prompt[p], (int)(offsets[p + 1] - offsets[p]) + t);
        run(step, &token, o, 3,
            (plait_arg[]){
                {PLAIT_STATE_IN, pool}, {PLAIT_STATE_OUT, pool}, {PLAIT_SLOTS, (void *)slots}});
        for (int p = 0; p < PROMPTS; ++p) memcpy(decoded[p][t], o[p], sizeof o[p]);
    }
    plait_exec_destroy(step);

    /* The same tokens at once. Sums have another order there: equal up to rounding of f32. */
    plait_exec *forward = make("kda.fwd:f32:b1:t31:h2:k16:v24:" LAYER ":+dt_bias");
    int wrong = 0;
    for (int p = 0; p < PROMPTS; ++p) {
        const int length = (int)(offsets[p + 1] - offsets[p]);
        run(forward, &prompt[p], whole, 0, NULL);
        const double first =
            distance(whole[0][0], prefilled[offsets[p]][0], (size_t)length * H * V);
        const double then = distance(whole[length][0], decoded[p][0][0], STEPS * H * V);
        printf("prompt %d: %d tokens at once are within %.1e and %d one by one within %.1e of one "
               "call over all\n",
               p, length, first, STEPS, then);
        wrong += !(first < 1e-5 && then < 1e-5);
    }
    plait_exec_destroy(forward);
    return wrong != 0;
}
