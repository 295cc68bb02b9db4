/* Walsh spectra of published S-boxes, straight from their tables.
 *
 * An S-box maps n bits to m bits. Each non-zero mask v picks a component, the Boolean function
 * f_v(x) = parity(v & S(x)). The Walsh transform of its signs,
 *     W_v(u) = sum over x of (-1)^(f_v(x) + parity(u & x)),
 * tells how close f_v is to each linear function. The largest |W| over all v and u is the
 * linearity of the box; its nonlinearity is 2^(n-1) - linearity / 2: the larger, the better it
 * resists linear cryptanalysis. All 2^m - 1 components of a box are one batched plan.
 *
 * All values are integers far below 2^24, so f32 is exact; integer types run on the CPU only.
 * Each spectrum is compared with the sum above, and each nonlinearity with the literature. */
#include <plait/plait.h>
#include <stdio.h>
#include <stdlib.h>
#ifdef PLAIT_HAVE_CUDA
#    include <cuda_runtime.h>
#endif

/* clang-format off */
static const struct sbox {
    const char *name;
    int in, out;      /* bits */
    int des;          /* outer two bits of x pick the row, inner four the column */
    int nonlinearity; /* well-known value */
    const char *table;
} boxes[] = {
    {"AES", 8, 8, 0, 112,
     "637c777bf26b6fc53001672bfed7ab76ca82c97dfa5947f0add4a2af9ca472c0"
     "b7fd9326363ff7cc34a5e5f171d8311504c723c31896059a071280e2eb27b275"
     "09832c1a1b6e5aa0523bd6b329e32f8453d100ed20fcb15b6acbbe394a4c58cf"
     "d0efaafb434d338545f9027f503c9fa851a3408f929d38f5bcb6da2110fff3d2"
     "cd0c13ec5f974417c4a77e3d645d197360814fdc222a908846eeb814de5e0bdb"
     "e0323a0a4906245cc2d3ac629195e479e7c8376d8dd54ea96c56f4ea657aae08"
     "ba78252e1ca6b4c6e8dd741f4bbd8b8a703eb5664803f60e613557b986c11d9e"
     "e1f8981169d98e949b1e87e9ce5528df8ca1890dbfe6426841992d0fb054bb16"},
    {"PRESENT", 4, 4, 0, 4, "c56b90ad3ef84712"},
    {"DES S1", 6, 4, 1, 14, "e4d12fb83a6c59070f74e2d1a6cb953841e8d62bfc973a50fc8249175b3ea06d"},
    {"DES S2", 6, 4, 1, 16, "f18e6b34972dc05a3d47f28ec01a69b50e7ba4d158c6932fd8a13f42b67c05e9"},
    {"DES S3", 6, 4, 1, 16, "a09e63f51dc7b428d709346a285ecbf1d6498f30b12c5ae71ad069874fe3b52c"},
    {"DES S4", 6, 4, 1, 16, "7de3069a1285bc4fd8b56f03472c1ae9a690cb7df13e52843f06a1d8945bc72e"},
    {"DES S5", 6, 4, 1, 12, "2c417ab6853fd0e9eb2c47d150fa3986421bad78f9c5630eb8c71e2d6f09a453"},
    {"DES S6", 6, 4, 1, 18, "c1af92680d34e75baf427c9561de0b389ef528c3704a1db6432c95fabe17608d"},
    {"DES S7", 6, 4, 1, 14, "4b2ef08d3c975a61d0b7491ae35c2f8614bdc37eaf6805926bd814a7950fe23c"},
    {"DES S8", 6, 4, 1, 16, "d2846fb1a93e50c71fd8a374c56b0e927b419ce206adf35821e74a8dfc90356b"},
};
/* clang-format on */

/* S(x) for every x, from the digits of the table. */
static void decode(const struct sbox *box, unsigned *s) {
    for (unsigned x = 0; x < 1u << box->in; ++x) {
        const unsigned at = box->des ? 16 * ((x >> 4 & 2) | (x & 1)) + (x >> 1 & 15) : x;
        char hex[3] = {0};
        for (int i = 0; i < box->out / 4; ++i) hex[i] = box->table[at * (box->out / 4) + i];
        s[x] = (unsigned)strtoul(hex, NULL, 16);
    }
}

/* Memory that the host and the device of the backend can both reach, for as long as we run. */
static float *allocate(plait_backend backend, size_t bytes) {
#ifdef PLAIT_HAVE_CUDA
    void *p = NULL;
    if (backend == PLAIT_CUDA) return cudaMallocManaged(&p, bytes, cudaMemAttachGlobal) ? NULL : p;
#endif
    return backend == PLAIT_CPU ? malloc(bytes) : NULL;
}

/* W = H X for all components at once. Non-zero: it failed, and said why. */
static int transform(const char *token, plait_backend backend, const float *x, float *w,
                     char kernel[64]) {
    plait_exec *exec = NULL;
    int bad = plait_exec_create(&exec, backend, 0, token, NULL) != PLAIT_OK ||
              plait_plan_candidate(plait_exec_plan(exec), kernel, 64, NULL) != PLAIT_OK ||
              plait_exec_run(exec, x, w) != PLAIT_OK;
    if (bad) fprintf(stderr, "%s: %s\n", token, plait_last_error());
#ifdef PLAIT_HAVE_CUDA /* the host waits before it reads */
    if (backend == PLAIT_CUDA) bad |= cudaDeviceSynchronize() != cudaSuccess;
#endif
    plait_exec_destroy(exec);
    return bad;
}

static int analyse(const struct sbox *box, plait_backend backend, float *x, float *w) {
    const int n = 1 << box->in, components = (1 << box->out) - 1;
    unsigned s[256];
    char token[64], kernel[64] = "";
    int linearity = 0, best_v = 0, best_u = 0, wrong = 0;

    decode(box, s);
    for (int v = 1; v <= components; ++v)
        for (int i = 0; i < n; ++i) x[(v - 1) * n + i] = __builtin_parity(v & s[i]) ? -1.f : 1.f;
    snprintf(token, sizeof token, "wht:f32:b%d:n%d", components, n);
    if (transform(token, backend, x, w, kernel)) return 1;

    for (int v = 1; v <= components; ++v)
        for (int u = 0; u < n; ++u) {
            int direct = 0;
            for (int i = 0; i < n; ++i)
                direct += __builtin_parity(v & s[i]) ^ __builtin_parity(u & i) ? -1 : 1;
            wrong += w[(v - 1) * n + u] != (float)direct;
            if (abs(direct) > linearity) linearity = abs(direct), best_v = v, best_u = u;
        }
    const int nonlinearity = n / 2 - linearity / 2;
    const int bad = wrong || nonlinearity != box->nonlinearity;
    printf("%-8s %d to %d %11d %8d   %02x, %02x %13d %10d  %-13s %s\n", box->name, box->in,
           box->out, components, linearity, best_v, best_u, nonlinearity, box->nonlinearity, kernel,
           bad ? "WRONG" : "ok");
    if (wrong) fprintf(stderr, "%s: %d values differ from the direct sum\n", box->name, wrong);
    return bad;
}

int main(void) {
    int devices = 0, bad = 0;
    if (plait_device_count(PLAIT_CUDA, &devices) != PLAIT_OK) devices = 0;
    const plait_backend backend = devices > 0 ? PLAIT_CUDA : PLAIT_CPU;
    static float *x, *w; /* of the largest box */
    x = allocate(backend, 255 * 256 * sizeof *x);
    w = allocate(backend, 255 * 256 * sizeof *w);
    if (!x || !w) return perror("memory"), 1;
    printf("S-box      bits  components  max |W|     v, u  nonlinearity  published  kernel\n");
    for (size_t i = 0; i < sizeof boxes / sizeof boxes[0]; ++i)
        bad += analyse(&boxes[i], backend, x, w);
    puts(bad ? "WRONG" : "every value equals the direct sum, every nonlinearity the published one");
    return bad != 0;
}
