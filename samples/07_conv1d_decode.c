/* The short convolution of a Mamba layer, as a language model runs it: a prompt is convolved in
 * one call (prefill), which leaves a state behind; then each new token is one update of that state
 * (decode). One forward call over all tokens gives the same bits.
 *
 * Rows are [token][channel], the layout of a linear layer's output. Two prompts of different
 * length are packed behind one another, so the prefill knows them by their offsets; their states
 * live in a pool of slots, as a server keeps them, and the decode steps use the same slots. */
#include <plait/plait.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { C = 64, K = 4, PROMPTS = 2, SLOTS = 5, TOKENS = 11 + 6, STEPS = 20, ALL = 11 + STEPS };

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

int main(void) {
    static const int64_t offsets[PROMPTS + 1] = {0, 11, TOKENS}; /* 11 tokens, then 6 */
    static const int32_t slots[PROMPTS] = {3, 0};
    static float w[C][K], bias[C], pool[SLOTS][K - 1][C];
    static float signal[PROMPTS][ALL][C]; /* all tokens of both, prompt and decoded */
    static float packed[TOKENS][C], prefilled[TOKENS][C];
    static float x[PROMPTS][C], y[PROMPTS][C], whole[ALL][C];

    for (int c = 0; c < C; ++c) {
        bias[c] = noise();
        for (int k = 0; k < K; ++k) w[c][k] = noise();
    }
    for (int p = 0; p < PROMPTS; ++p)
        for (int t = 0; t < ALL; ++t)
            for (int c = 0; c < C; ++c) signal[p][t][c] = noise();
    for (int p = 0; p < PROMPTS; ++p)
        memcpy(packed[offsets[p]], signal[p], (size_t)(offsets[p + 1] - offsets[p]) * sizeof x[0]);

    /* Two sequences of at most 11 of the 17 tokens; 5 slots, -1 would be a sequence without one.
     * A prompt starts without history: no state is read, only written. */
    plait_exec *prefill =
        make("conv1d.fwd:f32:b1:t17:c64:k4:silu:seqs=2.11:slots=5.-1:+bias+state_out");
    check(plait_exec_run_args(prefill,
                              (plait_arg[]){{PLAIT_X, packed},
                                            {PLAIT_Y, prefilled},
                                            {PLAIT_W, w},
                                            {PLAIT_BIAS, bias},
                                            {PLAIT_STATE_OUT, pool},
                                            {PLAIT_SLOTS, (void *)slots},
                                            {PLAIT_CU_SEQLENS, (void *)offsets}},
                              7));
    plait_exec_destroy(prefill);

    /* Decode: one token for every prompt and step. The same check as below, token by token. */
    plait_exec *step = make("conv1d.update:f32:b2:t1:c64:k4:silu:slots=5.-1:+bias");
    plait_exec *forward = make("conv1d.fwd:f32:b1:t31:c64:k4:silu:+bias");
    static float decoded[PROMPTS][STEPS][C];
    for (int t = 0; t < STEPS; ++t) {
        for (int p = 0; p < PROMPTS; ++p)
            memcpy(x[p], signal[p][offsets[p + 1] - offsets[p] + t], sizeof x[p]);
        check(plait_exec_run_args(step,
                                  (plait_arg[]){{PLAIT_X, x},
                                                {PLAIT_Y, y},
                                                {PLAIT_W, w},
                                                {PLAIT_BIAS, bias},
                                                {PLAIT_STATE, pool},
                                                {PLAIT_SLOTS, (void *)slots}},
                                  6));
        for (int p = 0; p < PROMPTS; ++p) memcpy(decoded[p][t], y[p], sizeof y[p]);
    }

    int wrong = 0;
    for (int p = 0; p < PROMPTS; ++p) {
        const size_t prompt = (size_t)(offsets[p + 1] - offsets[p]) * sizeof whole[0];
        check(plait_exec_run_args(
            forward,
            (plait_arg[]){{PLAIT_X, signal[p]}, {PLAIT_Y, whole}, {PLAIT_W, w}, {PLAIT_BIAS, bias}},
            4));
        const int same = !memcmp(prefilled[offsets[p]], whole, prompt) &&
                         !memcmp(decoded[p], (char *)whole + prompt, sizeof decoded[p]);
        printf("prompt %d: %d tokens at once and %d one by one %s one call over all\n", p,
               (int)(offsets[p + 1] - offsets[p]), STEPS, same ? "equal" : "DIFFER FROM");
        wrong += !same;
    }
    plait_exec_destroy(step);
    plait_exec_destroy(forward);
    return wrong != 0;
}
