/* plait.h - plans for fast Walsh-Hadamard transforms (wht), causal depthwise 1-D convolution
 * (conv1d) and Kimi Delta Attention (kda), on CUDA devices and on the CPU.
 *
 *   plait_context   one device, its facts and its wisdom
 *   plait_desc      what to compute: shapes, types, options
 *   plait_pref      how hard to plan and within which limits (NULL: defaults)
 *   plait_plan      the answer: kernels, launch parameters, a map of the workspace; immutable
 *   plait_execute   runs a plan on the caller's pointers, workspace and stream
 *   plait_exec      a plan with its own scratch and stream, for one thread: create, run, destroy
 *
 * Rules for every function
 *  - `const` on a handle: threads may share it without a lock. Any other handle argument needs
 *    the caller to order the calls.
 *  - A failing call stores a sentence for plait_last_error(): argument, value, rule.
 *  - A handle written by a failing call is NULL. destroy(NULL) is legal; destroy never fails and
 *    never waits for a device.
 *  - Sizes and strides are int64_t ELEMENTS. Memory is size_t BYTES. int is for flags and counts.
 *  - Extents of zero are legal. With nothing to write a plan has no steps.
 *  - Text out (char *buf, size_t cap, size_t *size): *size receives the length including the
 *    terminator; buf == NULL only asks for it; a buffer that is too small is left untouched and
 *    gives PLAIT_ERR_BUFFER_TOO_SMALL. size may be NULL if buf is not.
 *  - NULL for a required pointer, a number that is no enumerator, and a setter that does not fit
 *    the handle give PLAIT_ERR_INVALID_ARGUMENT and change nothing.
 *  - Environment: PLAIT_LOG, PLAIT_LOG_FILE and PLAIT_CPU_ISA act on the process; PLAIT_WISDOM (a
 *    file, which need not be there yet), PLAIT_CANDIDATES and, for a CPU that is there,
 *    PLAIT_THREADS are read when a context is created. A profile has its own number of threads.
 */
/* Tables are aligned by hand. */
/* clang-format off */
#ifndef PLAIT_H
#define PLAIT_H

#include <stddef.h>
#include <stdint.h>

/* The only place where the version is written; CMake reads it from here. */
#define PLAIT_VERSION_MAJOR 0
#define PLAIT_VERSION_MINOR 1
#define PLAIT_VERSION_PATCH 0
#define PLAIT_VERSION \
    (PLAIT_VERSION_MAJOR * 10000 + PLAIT_VERSION_MINOR * 100 + PLAIT_VERSION_PATCH)

#if defined(PLAIT_STATIC)
#  define PLAIT_API
#elif defined(_WIN32)
#  if defined(PLAIT_BUILDING)
#    define PLAIT_API __declspec(dllexport)
#  else
#    define PLAIT_API __declspec(dllimport)
#  endif
#elif defined(__GNUC__)
#  define PLAIT_API __attribute__((visibility("default")))
#else
#  define PLAIT_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct plait_context plait_context;
typedef struct plait_desc    plait_desc;
typedef struct plait_pref    plait_pref;
typedef struct plait_plan    plait_plan;
typedef struct plait_exec    plait_exec;
typedef void                *plait_stream; /* a cudaStream_t; the CPU backend ignores it */

/* ---- Enumerations: every value is explicit; values are never reused --------------------- */

/* In C any int fits an enum. In C++ it does if the type is fixed: a foreign number is an error that
 * plait reports, not undefined behaviour. */
#if defined(__cplusplus) && __cplusplus >= 201103L
#  define PLAIT_INT : int
#else
#  define PLAIT_INT
#endif

typedef enum plait_status PLAIT_INT {
    PLAIT_OK                   = 0,
    PLAIT_ERR_INVALID_ARGUMENT = 1,  /* one argument is wrong by itself                      */
    PLAIT_ERR_INVALID_DESC     = 2,  /* settings contradict each other                       */
    PLAIT_ERR_NOT_SUPPORTED    = 3,  /* well formed, but no candidate applies                */
    PLAIT_ERR_NO_WISDOM        = 4,  /* wisdom-only planning found no entry                  */
    PLAIT_ERR_WORKSPACE        = 5,  /* missing, too small or misaligned                     */
    PLAIT_ERR_POINTER          = 6,  /* role missing, unknown or doubled; misaligned; alias  */
    PLAIT_ERR_OUT_OF_MEMORY    = 7,
    PLAIT_ERR_NO_DEVICE        = 8,  /* no driver, no such device, context from a profile    */
    PLAIT_ERR_DEVICE           = 9,  /* a CUDA call failed, or another device is current     */
    PLAIT_ERR_CAPTURING        = 10, /* illegal while a stream is being captured             */
    PLAIT_ERR_IO               = 11,
    PLAIT_ERR_VERSION          = 12, /* text written by a newer, incompatible version        */
    PLAIT_ERR_BUFFER_TOO_SMALL = 13,
    PLAIT_ERR_INTERNAL         = 14  /* a bug in plait                                       */
} plait_status;

typedef enum plait_backend PLAIT_INT { PLAIT_CPU = 1, PLAIT_CUDA = 2 } plait_backend;

typedef enum plait_dtype PLAIT_INT {
    PLAIT_F64 = 1, PLAIT_F32 = 2, PLAIT_F16 = 3, PLAIT_BF16 = 4,
    PLAIT_E4M3 = 5,                /* 8 bits, largest 448, one NaN, no Inf; output of wht only */
    PLAIT_C128 = 8, PLAIT_C64 = 9, /* interleaved (re, im) pairs of F64, of F32               */
    PLAIT_I32 = 16, PLAIT_I64 = 17,
    PLAIT_I8 = 18, PLAIT_I16 = 19, /* inputs of wht only                                      */
    PLAIT_B1 = 24                  /* one bit per element: bit i%32 of uint32 word i/32       */
} plait_dtype;

typedef enum plait_direction PLAIT_INT {
    PLAIT_FORWARD = 0, PLAIT_BACKWARD = 1, PLAIT_UPDATE = 2
} plait_direction;

/* A role names one tensor of an operator. PLAIT_D<role> (role + 256) is the gradient of a role. */
typedef enum plait_role PLAIT_INT {
    PLAIT_X = 1, PLAIT_Y = 2, PLAIT_W = 3, PLAIT_BIAS = 4,           /* wht, conv1d           */
    PLAIT_SIGNS = 5, PLAIT_DIAG = 6, PLAIT_OVERFLOW = 7,             /* wht                   */
    PLAIT_FACTOR = 8, PLAIT_ROWS = 9, PLAIT_DIAG_IN = 10, PLAIT_DIAG_MID = 11,
    PLAIT_AMAX = 12, PLAIT_SCALES = 13, PLAIT_HISTOGRAM = 14,
    PLAIT_Q = 16, PLAIT_K = 17, PLAIT_V = 18, PLAIT_G = 19,          /* kda                   */
    PLAIT_BETA = 20, PLAIT_O = 21, PLAIT_A_LOG = 22, PLAIT_DT_BIAS = 23, PLAIT_RESERVE = 24,
    PLAIT_STATE_IN = 32, PLAIT_STATE_OUT = 33,                       /* conv1d, kda           */
    PLAIT_STATE = 34, PLAIT_POSITION = 35,                           /* conv1d update         */
    PLAIT_SLOTS = 36, PLAIT_CU_SEQLENS = 37, PLAIT_SEQ_IDX = 38, PLAIT_STATUS = 39,
    PLAIT_DX = 257, PLAIT_DY = 258, PLAIT_DW = 259, PLAIT_DBIAS = 260,
    PLAIT_DQ = 272, PLAIT_DK = 273, PLAIT_DV = 274, PLAIT_DG = 275,
    PLAIT_DBETA = 276, PLAIT_DO = 277, PLAIT_DA_LOG = 278, PLAIT_DDT_BIAS = 279,
    PLAIT_DSTATE_IN = 288, PLAIT_DSTATE_OUT = 289
} plait_role;

typedef enum plait_access PLAIT_INT {
    PLAIT_READ = 1, PLAIT_WRITE = 2, PLAIT_READ_WRITE = 3
} plait_access;

typedef enum plait_wht_order PLAIT_INT { /* order of the outputs; each matrix is symmetric */
    PLAIT_NATURAL = 0, PLAIT_SEQUENCY = 1, PLAIT_DYADIC = 2
} plait_wht_order;

typedef enum plait_wht_factor PLAIT_INT { /* "H12" is several matrices: each has a name */
    PLAIT_H1 = 0, PLAIT_H12_PALEY2 = 1, PLAIT_H12_SLOANE = 2,
    PLAIT_H20_WILLIAMSON = 3, PLAIT_H28_WILLIAMSON = 4, PLAIT_H40 = 5,
    PLAIT_H4_REGULAR = 6, /* rows +++- ++-+ +-++ -+++ */
    PLAIT_H20_PALEY1 = 7, PLAIT_H28_PALEY2 = 8, PLAIT_H36_PALEY2 = 9,
    PLAIT_H52_WILLIAMSON = 10, PLAIT_H60_PALEY1 = 11, PLAIT_H108_PALEY1 = 12,
    PLAIT_H116_WILLIAMSON = 13, PLAIT_H124_WILLIAMSON = 14, PLAIT_H140_PALEY1 = 15,
    PLAIT_H156_WILLIAMSON = 16, PLAIT_H172_WILLIAMSON = 17
} plait_wht_factor;

typedef enum plait_layout PLAIT_INT { PLAIT_BCT = 0, PLAIT_BTC = 1 } plait_layout;
typedef enum plait_activation PLAIT_INT { PLAIT_ACT_NONE = 0, PLAIT_ACT_SILU = 1 } plait_activation;
typedef enum plait_state_kind PLAIT_INT {
    PLAIT_STATE_LINEAR = 0, PLAIT_STATE_RING = 1
} plait_state_kind;

typedef enum plait_state_layout PLAIT_INT { /* kda; there is no default */
    PLAIT_STATE_KV = 1, PLAIT_STATE_VK = 2
} plait_state_layout;
typedef enum plait_kda_gate PLAIT_INT { /* there is no default */
    PLAIT_GATE_LOG = 0, PLAIT_GATE_SOFTPLUS = 1, PLAIT_GATE_BOUNDED = 2
} plait_kda_gate;

typedef enum plait_rigor PLAIT_INT {
    PLAIT_ESTIMATE = 0, PLAIT_MEASURE = 10, PLAIT_EXHAUSTIVE = 20
} plait_rigor;
typedef enum plait_determinism PLAIT_INT {
    PLAIT_ANY_ORDER = 0, PLAIT_RUN_TO_RUN = 1
} plait_determinism;
typedef enum plait_math PLAIT_INT { /* the narrowest operand that a candidate may use       */
    PLAIT_MATH_DEFAULT = 0, /* as narrow as the narrowest floating tensor of the call       */
    PLAIT_MATH_F32     = 1, /* nothing narrower than F32                                    */
    PLAIT_MATH_TF32    = 2  /* as DEFAULT; also F32 operands may be rounded to TF32         */
} plait_math;
typedef enum plait_format PLAIT_INT { PLAIT_TEXT = 0, PLAIT_JSON = 1 } plait_format;

typedef enum plait_plan_attr PLAIT_INT {
    PLAIT_PLAN_STEPS = 1, PLAIT_PLAN_RIGOR = 2, PLAIT_PLAN_FROM_WISDOM = 3,           /* i64 */
    PLAIT_PLAN_BYTES_READ = 16, PLAIT_PLAN_BYTES_WRITTEN = 17, PLAIT_PLAN_FLOPS = 18, /* i64 */
    PLAIT_PLAN_SECONDS_ESTIMATED = 32, /* f64 */
    PLAIT_PLAN_SECONDS_MEASURED  = 33  /* f64; negative when nothing was measured */
} plait_plan_attr;

enum { /* bits for plait_set_log */
    PLAIT_LOG_ERROR = 1, PLAIT_LOG_WARN = 2, PLAIT_LOG_PLAN = 4, PLAIT_LOG_DISPATCH = 8,
    PLAIT_LOG_EXEC = 16
};

#undef PLAIT_INT

#define PLAIT_MAX_RANK 8
#define PLAIT_WORKSPACE_ALIGNMENT 256 /* bytes; also of PLAIT_RESERVE */

/* ---- Version, errors, log ---------------------------------------------------------------- */

PLAIT_API int         plait_version(void);    /* of the loaded library; compare: PLAIT_VERSION */
PLAIT_API const char *plait_build_info(void); /* one line: compiler, CUDA, architectures       */
PLAIT_API const char *plait_status_name(plait_status status); /* "no device"; never NULL       */
PLAIT_API const char *plait_role_name(plait_role role); /* "x", "signs"; NULL if unknown       */
PLAIT_API const char *plait_last_error(void); /* of this thread; success does not clear it     */
/* For bindings of other languages: the sentence of a call that they refuse themselves, stored and
 * logged as that of a failing call. Returns status, which must be a failure. */
PLAIT_API plait_status plait_set_last_error(plait_status status, const char *sentence);

/* Process-wide. fn gets complete lines of the kinds in `bits`, from any thread, and must not call
 * plait. fn == NULL restores what PLAIT_LOG and PLAIT_LOG_FILE say; without them nothing is
 * printed, ever. */
typedef void (*plait_log_fn)(int bit, const char *line, void *user);
PLAIT_API plait_status plait_set_log(int bits, plait_log_fn fn, void *user);

/* ---- Contexts ---------------------------------------------------------------------------- */

/* Without a driver the count is 0 and the call succeeds. The CPU backend has one device, 0. */
PLAIT_API plait_status plait_device_count(plait_backend backend, int *count);
PLAIT_API plait_status plait_context_create(plait_context **ctx, plait_backend backend, int device);

/* A context without a device, from text written by plait_context_profile: it plans, prints and
 * holds wisdom; measuring, executing and allocating give PLAIT_ERR_NO_DEVICE. */
PLAIT_API plait_status plait_context_create_from_profile(plait_context **ctx, const char *profile);
PLAIT_API plait_status plait_context_profile(const plait_context *ctx, char *buf, size_t cap,
                                             size_t *size);

/* Memory for plait_workspace_alloc, execs and measuring. Both NULL: the default, cudaMallocAsync or
 * aligned malloc. alloc returns multiples of PLAIT_WORKSPACE_ALIGNMENT, in any thread that plans;
 * whatever its failure is, plait reports PLAIT_ERR_OUT_OF_MEMORY, and PLAIT_ERR_WORKSPACE for
 * another address. Plans keep the functions that were set when they were made. */
typedef plait_status (*plait_alloc_fn)(void **ptr, size_t bytes, plait_stream stream, void *user);
typedef void         (*plait_free_fn)(void *ptr, size_t bytes, plait_stream stream, void *user);
PLAIT_API plait_status plait_context_set_allocator(plait_context *ctx, plait_alloc_fn alloc,
                                                   plait_free_fn dealloc, void *user);
/* CPU contexts only; 0 = all cores of the process, at most 4096. Later plans copy the number and run
 * on that many threads or on the caller's alone. Where the system refuses a thread (ulimit -u),
 * OpenMP ends the process: ask for no more than there are. */
PLAIT_API plait_status plait_context_set_threads(plait_context *ctx, int threads);
PLAIT_API void         plait_context_destroy(plait_context *ctx); /* its plans stay valid */

/* ---- Descriptors: Walsh-Hadamard transform -----------------------------------------------
 *
 *   Y = scale * DIAG * H * DIAG_IN * SIGNS * X
 *   adjoint: Y = scale * SIGNS * conj(DIAG_IN) * H^T * conj(DIAG) * X
 *   with DIAG_MID, two transforms: H * DIAG_MID * H and H^T * conj(DIAG_MID) * H^T for H and H^T
 *
 * In natural order and without a named factor H[j][k] = (-1)^popcount(j & k). It is unnormalised,
 * H H = n I; the default scale is 1, and 1 / sqrt(n) makes the transform orthonormal.
 * X and Y have shape extents[rank], row major. H acts along the transformed axes; every other
 * axis is a batch axis (a block-diagonal transform is one more batch axis). A transformed axis
 * has length 2^k, or m * 2^k with a factor of order m, outermost: H = H_m (x) H_2^k.
 * Nothing is ever padded.
 *   X, Y      required (Y may go where AMAX or HISTOGRAM are all that is wanted: plait_desc_use).
 *             F16 BF16 F32 F64 C64 C128 I32 I64; Y may differ from X within {F16 BF16 F32 F64},
 *             {C64 C128}, {I32 I64}. X also I8 I16, whose Y is I32 (default) or I64, and B1: packed
 *             Booleans b, taken as (-1)^b, whose Y is I32 (default) I64 F16 BF16 F32 F64 E4M3; the
 *             strides of X count bits then. Y also E4M3, for floating X: rounded to nearest even,
 *             magnitudes over 448 and Inf become 448, NaN stays
 *   SIGNS     optional, B1: 1 = minus
 *   DIAG, DIAG_IN, DIAG_MID   optional: behind, before, between. X's type or its real type; not
 *             for integers and B1
 *             SIGNS and the diagonals are indexed like X over all of H. Default strides: 0 along
 *             batch axes, packed along transformed axes; other values per group or row:
 *             plait_desc_set_strides. They may be X's memory, never Y's
 *   FACTOR    with plait_wht_set_factor_order: B1 [m, m], 1 = minus
 *   ROWS      with plait_wht_set_rows: I64 or I32 [count]
 *   STATUS    optional, I32 [1], with ROWS: receives 0, or 1 + the number of the first entry of
 *             ROWS that is outside the transform; 0 where an extent is 0
 *   OVERFLOW  optional, I32[1], integer Y only: receives 1 if a result does not fit Y's type,
 *             else 0, also where an extent is 0. Results wrap either way
 *   AMAX      optional: the largest |result| of each transform, or of each group of it
 *             (plait_wht_set_group). X's batch extents, 1 or the number of groups along transformed
 *             axes. Before the rounding to Y's type, F32 or F64 (default where F64 accumulates); a
 *             NaN among the results gives NaN. Integers: I64, of the values that Y has, 2^63 as
 *             2^63 - 1. 0 where there is no result. Not for complex types
 *   SCALES    optional, F32, Y in E4M3 only, shape of AMAX: Y is result / SCALES, rounded. Each is
 *             largest / 448, at least 2^-126; 1 for a group of zeros, and where the largest is NaN
 *             or Inf
 *   HISTOGRAM with plait_wht_set_histogram, I64: X's batch extents, the bins along the last
 *             transformed axis, 1 along the others. Counts of the values that Y has; integer Y only
 * Accumulation is F64 if X or Y is F64 or C128, F32 for the other floating types, the wider of
 * the two for integers; scale is applied there, before the rounding to Y's type. It is the only
 * rounding to 16 bits, except in two-pass plans of 16-bit types under the default math, which also
 * round between the passes: PLAIT_MATH_F32 avoids that. */

PLAIT_API plait_status plait_wht_create(plait_desc **desc, plait_dtype dtype, int rank,
                                        const int64_t *extents);
/* Bit a set: axis a is transformed. Default: the last axis only. */
PLAIT_API plait_status plait_wht_set_axes(plait_desc *desc, uint32_t axes);
/* Only these bits of the index are transformed. One transformed axis of length 2^k, no factor. */
PLAIT_API plait_status plait_wht_set_bits(plait_desc *desc, uint64_t bits);
PLAIT_API plait_status plait_wht_set_factor(plait_desc *desc, int axis, plait_wht_factor factor);
/* The factor of this axis is a matrix of +1 and -1 that the caller passes at execute as FACTOR;
 * 2 <= order <= 256. It is an argument and not a part of the descriptor, so that the token says all
 * of a plan, and one plan serves all matrices of an order. Several axes may share it. Nobody checks
 * that it is a Hadamard matrix; the adjoint takes its transpose, symmetric or not. */
PLAIT_API plait_status plait_wht_set_factor_order(plait_desc *desc, int axis, int order);
/* Applies to every transformed axis. SEQUENCY and DYADIC exclude factors and bits. */
PLAIT_API plait_status plait_wht_set_order(plait_desc *desc, plait_wht_order order);
PLAIT_API plait_status plait_wht_set_adjoint(plait_desc *desc, int enable);
PLAIT_API plait_status plait_wht_set_scale(plait_desc *desc, double scale); /* integers: only 1 */
/* A promise: X holds integers, in any real type, |x| <= bound. Some candidates need it. */
PLAIT_API plait_status plait_wht_set_bound(plait_desc *desc, int64_t bound);
/* Of the one transformed axis Y gets `count` results only: number r is result ROWS[r] of the whole
 * transform (DIAG and the order applied), and 0 where ROWS[r] is none. Y then has extent `count`
 * there. The adjoint reads an X of that extent and adds entry r to place ROWS[r] of zeros, in the
 * order of r, before conj(DIAG) and H^T; entries whose ROWS[r] is none are left out. ROWS is device
 * memory that the host never reads; repetitions are legal. Excludes bits. */
PLAIT_API plait_status plait_wht_set_rows(plait_desc *desc, int64_t count);
/* AMAX and SCALES hold one value for each `length` consecutive results of the one transformed axis
 * (default: one for each transform). The results of an axis must be a multiple of it. */
PLAIT_API plait_status plait_wht_set_group(plait_desc *desc, int64_t length);
/* Bin i counts the results y with first + i * width <= y < first + (i + 1) * width; results outside
 * all bins count nowhere. bins, width >= 1. Turns HISTOGRAM on. */
PLAIT_API plait_status plait_wht_set_histogram(plait_desc *desc, int64_t bins, int64_t first,
                                               int64_t width);

/* ---- Descriptors: causal depthwise convolution -------------------------------------------
 *
 *   pre[b,c,t] = bias[c] + sum_k w[c,k] * xe[b,c,t-(width-1)+k],      y = activation(pre) [+ x]
 *
 * xe is x preceded by STATE_IN, or by zeros. Tap width-1 meets the current sample.
 *   X, Y      [batch, channels, length] (BCT) or [batch, length, channels] (BTC);
 *             F16 BF16 F32 F64
 *   W         [channels, width];   BIAS [channels], optional
 *   STATE_IN, STATE_OUT   optional, forward and backward: the last s raw inputs, newest last,
 *             [n, channels, s] (BCT) or [n, s, channels] (BTC); n is the number of sequences, or
 *             of slots
 *   SEQ_IDX   optional, I32 [batch, length]: a tap counts iff its id equals the current id;
 *             a negative id is padding. STATE_IN has the id of the row's first token; entries of
 *             STATE_OUT with another id than the last token's are zero. Not together with varlen
 *             or update
 *   STATUS    optional, I32 [1], with varlen or slots: receives 0, or 1 + the number of the first
 *             sequence whose offsets, or row whose slot, break the rules of set_varlen, set_slots.
 *             Such a sequence or row belongs to nothing (below); the others are computed
 *   backward  takes the calls of its forward. Reads X, W, BIAS, STATE_IN, DY, DSTATE_OUT; writes
 *             DX, DW, DBIAS, DSTATE_IN. The gradient of every input in use is written, that of
 *             every output in use is read; plait_desc_use(D..., 0) drops one
 *   update    X and Y hold `length` new samples per row; STATE [n, ...] is read and written;
 *             POSITION, I32 [batch], is required by a ring state
 * Accumulation is F64 if any floating tensor is F64, else F32: acc = bias, then fma(w[k], xe, acc)
 * for k = 0.., on every path but the definition's (conv1d.*.cpu.ref, chosen for widths over 256
 * alone: F64): chunks, updates and layouts give the same bits on one device, and on the CPU at one
 * instruction level; below AVX2 fma rounds twice. DW and DBIAS are sums over rows in an order that
 * the plan fixes: layouts and promised alignments may differ in it, runs and addresses do not.
 * Optional tensors start off (plait_desc_use). Types are X's, of indices I32, of CU_SEQLENS I64.
 *
 * A Mamba layer (width 4, SiLU, bias) over its prompt, then token by token:
 *   prefill   conv1d.fwd:bf16:b8:c4096:t2048:k4:silu:+bias+state_out
 *   decode    conv1d.update:bf16:b8:c4096:t1:k4:silu:+bias        STATE is what STATE_OUT was
 *   the next chunk: +bias+state_in+state_out, in place with :state_out@state_in
 * Frameworks keep a state [batch, channels, width], one entry more than taps need: with BCT and
 * :state=lin.4 on both descriptors it is used where it lies. */

PLAIT_API plait_status plait_conv1d_create(plait_desc **desc, plait_direction dir,
                                           plait_dtype dtype, int64_t batch, int64_t channels,
                                           int64_t length, int64_t width);
/* Packed shapes of X, Y, the states and their gradients. Default BCT. */
PLAIT_API plait_status plait_conv1d_set_layout(plait_desc *desc, plait_layout layout);
PLAIT_API plait_status plait_conv1d_set_activation(plait_desc *desc, plait_activation act);
/* Adds x to y behind the activation, before the rounding; backward adds dy to dx. */
PLAIT_API plait_status plait_conv1d_set_residual(plait_desc *desc, int enable);
/* entries >= width-1, the default. LINEAR: the last width-1 entries are read; the state becomes
 * the last `entries` samples of (state, x). RING, update only: sample s of row r is stored in
 * entry (POSITION[r] + s) mod entries; history is what precedes POSITION[r], read before any
 * store; POSITION is not advanced. */
PLAIT_API plait_status plait_conv1d_set_state(plait_desc *desc, plait_state_kind kind,
                                              int64_t entries);

/* ---- Descriptors: Kimi Delta Attention ---------------------------------------------------
 *
 * Per sequence and value head, with S in R^(dim_k x dim_v), for each token in this order:
 *   S' = diag(exp g) S;    u = beta (v - S'^T k);    S = S' + k u^T;    o = scale S^T q
 *
 *   Q, K      [batch, length, heads, dim_k]; value head j uses head j / (value_heads / heads)
 *   V, O      [batch, length, value_heads, dim_v]
 *   G         [batch, length, value_heads, dim_k];   BETA [batch, length, value_heads]
 *             Q, K, V, G, BETA, O: F16 BF16 F32 F64, by default Q's type; G is often F32
 *   A_LOG     [value_heads];   DT_BIAS [value_heads, dim_k], optional: of the gate. F32 or F64
 *   STATE_IN, STATE_OUT   optional: [n, value_heads, dim_k, dim_v] (KV) or [n, value_heads, dim_v,
 *             dim_k] (VK); n is the number of sequences, or of slots. BF16 F32 F64, not F16:
 *             entries pass 65504. Without STATE_IN the first state is zero
 *             Parameters and states are F32 by default, F64 where Q is
 *   STATUS    optional, I32 [1], with varlen or slots: as for conv1d; in a backward that reads a
 *             RESERVE also -1: the reserve is not of this problem
 *   RESERVE   optional, I8 [plait_plan_reserve_size]: forward writes what it computes of chunks of
 *             64 tokens, backward reads it instead of computing it again. Any backward candidate
 *             that reads one reads that of any forward candidate of its backend, for the same
 *             tensors; extents, types and options must be the same, which a header in it says:
 *             else CUDA writes zeros to all outputs and -1 to STATUS, and the CPU's execute fails.
 *             Without, backward recomputes. Not with slots; aligned to PLAIT_WORKSPACE_ALIGNMENT
 *   backward  takes the calls of its forward. Reads the inputs, DO, DSTATE_OUT; writes DQ DK DV DG
 *             DBETA and, where their roles are in use, DA_LOG DDT_BIAS DSTATE_IN: gradients of the
 *             tensors as they are given, before norm, gate and sigmoid. DQ and DK are sums over the
 *             value heads of a head, DA_LOG and DDT_BIAS over all tokens, in one fixed order
 * A state in use needs its orientation, and every descriptor its gate: the wrong one of either is
 * garbage that looks like a result, so neither has a default, and the token names both.
 * Decoding is a forward of small length with both states, often STATE_OUT@STATE_IN and slots. No
 * output depends on a later token, to the last bit. */

PLAIT_API plait_status plait_kda_create(plait_desc **desc, plait_direction dir, plait_dtype dtype,
                                        int64_t batch, int64_t length, int64_t heads,
                                        int64_t value_heads, int64_t dim_k, int64_t dim_v);
/* Required. LOG: g = G, a natural logarithm, finite and <= 0. With A = exp(A_LOG), x = G + DT_BIAS
 * SOFTPLUS: g = -A softplus(x); BOUNDED: g = lower_bound sigmoid(A x), lower_bound < 0 (pass 0 for
 * the others). A_LOG is in use with both; BOUNDED may drop it (plait_desc_use): A = 1. */
PLAIT_API plait_status plait_kda_set_gate(plait_desc *desc, plait_kda_gate gate,
                                          double lower_bound);
/* is_logit: beta = scale * sigmoid(BETA), scale > 0. Otherwise beta = BETA, and scale must be 1:
 * the default. */
PLAIT_API plait_status plait_kda_set_beta(plait_desc *desc, int is_logit, double scale);
/* q and k are divided by sqrt(sum of squares + eps) first, eps > 0. Default: off. */
PLAIT_API plait_status plait_kda_set_qk_norm(plait_desc *desc, int enable, double eps);
PLAIT_API plait_status plait_kda_set_scale(plait_desc *desc, double scale); /* dim_k^(-1/2) */
/* Required as soon as a state or its gradient is in use. */
PLAIT_API plait_status plait_kda_set_state(plait_desc *desc, plait_state_layout layout);

/* ---- Descriptors: all families -----------------------------------------------------------
 * Setters check one argument by itself; plait_desc_check finds contradictions. A setter that does
 * not fit the family gives PLAIT_ERR_INVALID_ARGUMENT.
 * One rule for everything that belongs to nothing (tokens past the last offset, tokens with a
 * negative id, rows with the pad slot): its outputs and gradients are written as zero, it touches
 * no slot and enters no sum. */

/* Optional tensors on or off; gradients, kda's A_LOG and wht's Y off. */
PLAIT_API plait_status plait_desc_use(plait_desc *desc, plait_role role, int use);
/* Packed sequences: batch is 1, length is the capacity in tokens. CU_SEQLENS[sequences + 1], I64 or
 * (plait_desc_set_dtype) I32, is device memory that the host never reads: non-decreasing, first 0,
 * last <= length, no sequence longer than max_length. Empty sequences are legal. Not for wht and
 * updates. */
PLAIT_API plait_status plait_desc_set_varlen(plait_desc *desc, int64_t sequences,
                                             int64_t max_length);
/* States live in a pool of `count` slots: row (or packed sequence) r uses slot SLOTS[r], I32,
 * distinct among live rows; `pad` marks rows without a slot. conv1d forward and update, and kda
 * forward; backward refuses slots. */
PLAIT_API plait_status plait_desc_set_slots(plait_desc *desc, int64_t count, int32_t pad);
PLAIT_API plait_status plait_desc_set_dtype(plait_desc *desc, plait_role role, plait_dtype dtype);
/* One for each extent of the role, outermost first, >= 0. Those of a written tensor nest: none is 0,
 * and each is at least the span of the axes of smaller ones, where the extent is above 1. SLOTS,
 * CU_SEQLENS and POSITION are packed. Any other strides only select another candidate. */
PLAIT_API plait_status plait_desc_set_strides(plait_desc *desc, plait_role role, int rank,
                                              const int64_t *strides);
/* A promise about the pointer: a power of two, default 16 bytes (OVERFLOW, STATUS, AMAX,
 * SCALES, HISTOGRAM and tensors of indices: their element's size; RESERVE: 256). Execute checks. */
PLAIT_API plait_status plait_desc_set_alignment(plait_desc *desc, plait_role role, int bytes);
/* Permits the same pointer for both: Y@X (wht), STATE_OUT@STATE_IN. Their extents, strides and
 * element sizes must be equal. Partial overlap is never legal. */
PLAIT_API plait_status plait_desc_set_alias(plait_desc *desc, plait_role out, plait_role in);

/* The whole validation, which plait_plan_create runs first: the first contradiction in words. */
PLAIT_API plait_status plait_desc_check(const plait_desc *desc);
PLAIT_API plait_status plait_desc_num_tensors(const plait_desc *desc, int *count);
/* Tensor `index` as execute expects it, sorted by role. extents and strides hold PLAIT_MAX_RANK
 * values; each pointer after `index` may be NULL. */
PLAIT_API plait_status plait_desc_tensor(const plait_desc *desc, int index, plait_role *role,
                                         plait_access *access, plait_dtype *dtype, int *rank,
                                         int64_t *extents, int64_t *strides);
/* The token: one line that says all of a descriptor; equal descriptors have equal tokens.
 *   token   family:dtype:shape[:option]...[:uses][:role]...     in this order, defaults left out
 *   family  wht  conv1d.fwd  conv1d.bwd  conv1d.update  kda.fwd  kda.bwd
 *   dtype   of X (kda: of Q): f16 bf16 f32 f64 c64 c128 i32 i64; wht: also i8 i16 b1
 *   shape   wht: axes, outermost first: b<length> batch, n<length> transformed, n1536.h12p2 with a
 *           factor (h12p2 h12s h20w h28w h40 h4r h20p1 h28p2 h36p2 h52w h60p1 h108p1 h116w h124w
 *           h140p1 h156w h172w), n1536.m12 with one of order 12 that the caller gives
 *           conv1d: b<batch>, then c<channels>:t<length> (BCT) or t:c (BTC), then k<width>
 *           kda: b<batch>:t<length>:h<heads>, hv<value_heads> if that differs, k<dim_k>:v<dim_v>
 *   option  wht: bits=<hex>  seq or dya  adj  scale=<number>  bound=<integer>  rows=<count>
 *           group=<length>  hist=<bins>.<first>.<width>
 *           conv1d: silu  residual  state=lin.<entries> or state=ring.<entries>
 *           seqs=<sequences>.<max_length>  slots=<count>.<pad>
 *           kda: gate=log or gate=softplus or gate=bounded.<lower_bound>  beta=logit.<scale>
 *           norm=<eps>  scale=<number>  state=kv or state=vk  seqs=  slots=  reserve=chunk64
 *   uses    one field, by role number: +name turns an optional tensor on, -name one off: a
 *           gradient, a_log, wht's y
 *   role    by role number: name[.<dtype>][.s<stride>.<stride>...][.a<alignment>][@<in>], the last
 *           permits the same pointer. Names: the enumerators in lower case, x, state_in
 * Numbers are the shortest decimals that read back exactly. from_token takes this canonical form
 * alone; refusing another order or spelling, its sentence says the canonical form. What a problem
 * needs and a token does not say (the gate of kda), setters may add: plait_desc_check asks for it.
 *   wht:f32:n1024:b300       wht:f16:b64:n4096:scale=0.015625:y.f32      wht:c64:n1024:bits=3f:y@x
 *   conv1d.bwd:f32:b2:c64:t100:k3:+bias-dbias        conv1d.fwd:bf16:b1:t4096:c64:k4:seqs=17.512
 *   kda.fwd:bf16:b1:t8192:h16:k128:v128:gate=bounded.-5:beta=logit.1:norm=1e-06:state=vk */
PLAIT_API plait_status plait_desc_token(const plait_desc *desc, char *buf, size_t cap,
                                        size_t *size);
PLAIT_API plait_status plait_desc_from_token(plait_desc **desc, const char *token);
PLAIT_API void         plait_desc_destroy(plait_desc *desc);

/* ---- Preferences: they filter and rank candidates, and change results only by rounding ---- */

PLAIT_API plait_status plait_pref_create(plait_pref **pref);
PLAIT_API plait_status plait_pref_set_rigor(plait_pref *pref, plait_rigor rigor);
PLAIT_API plait_status plait_pref_set_wisdom_only(plait_pref *pref, int enable);
PLAIT_API plait_status plait_pref_set_workspace_limit(plait_pref *pref, size_t bytes);
/* Ends measuring with the best so far; at least one candidate is timed. */
PLAIT_API plait_status plait_pref_set_time_limit(plait_pref *pref, double seconds);
PLAIT_API plait_status plait_pref_set_determinism(plait_pref *pref, plait_determinism level);
PLAIT_API plait_status plait_pref_set_math(plait_pref *pref, plait_math math);
/* Comma list of globs, the last match wins; '-' excludes: "wht.*,-*.two_pass.*". "", the default:
 * what PLAIT_CANDIDATES says, else no filter. */
PLAIT_API plait_status plait_pref_set_candidates(plait_pref *pref, const char *pattern);
PLAIT_API void         plait_pref_destroy(plait_pref *pref);

/* ---- Plans: they copy what they need from context, descriptor and preferences -------------- */

PLAIT_API plait_status plait_plan_create(plait_plan **plan, const plait_context *ctx,
                                         const plait_desc *desc, const plait_pref *pref);
PLAIT_API plait_plan  *plait_plan_retain(const plait_plan *plan); /* one more owner, same plan */
PLAIT_API void         plait_plan_destroy(plait_plan *plan); /* legal while its work still runs */
/* Exact and final; 0 is possible, and then NULL is accepted by execute. */
PLAIT_API plait_status plait_plan_workspace_size(const plait_plan *plan, size_t *bytes);
/* Bytes of RESERVE, which follow from the descriptor alone; 0 where it is not in use. */
PLAIT_API plait_status plait_plan_reserve_size(const plait_plan *plan, size_t *bytes);
PLAIT_API plait_status plait_plan_get_i64(const plait_plan *plan, plait_plan_attr attr,
                                          int64_t *value);
PLAIT_API plait_status plait_plan_get_f64(const plait_plan *plan, plait_plan_attr attr,
                                          double *value);
/* "wht.cuda.block"; "none" for a plan without steps. */
PLAIT_API plait_status plait_plan_candidate(const plait_plan *plan, char *buf, size_t cap,
                                            size_t *size);
PLAIT_API plait_status plait_plan_print(const plait_plan *plan, plait_format format, char *buf,
                                        size_t cap, size_t *size);
/* Every candidate of the family with its verdict: chosen, applicable, or the rule it failed. */
PLAIT_API plait_status plait_candidates_print(const plait_context *ctx, const plait_desc *desc,
                                              const plait_pref *pref, plait_format format,
                                              char *buf, size_t cap, size_t *size);

/* ---- Execution ---------------------------------------------------------------------------
 * CUDA: asynchronous on `stream`, legal during capture; the plan's device must be current. No
 * allocation, no synchronisation, no read of device memory by the host. CPU: synchronous; the first
 * execute of a thread lets OpenMP start the others of its team, and nothing is allocated after it
 * while all parallel regions of that thread ask for the same number of threads.
 * All arguments are checked before anything is launched: only a launch that CUDA refuses can fail
 * with a part of the work done. Executes that may overlap in time need different workspaces; there
 * is no other rule about concurrency. A forked child must not execute on several CPU threads once
 * its parent has: OpenMP's team does not survive fork.
 * CUDA graphs: create plans and execs before the capture, since creating them allocates. A graph
 * holds the pointers of its capture: tensors and workspace (or exec) must outlive it, the plan need
 * not. Launches of one graph, or of several with one workspace, share it and must not overlap. */

typedef struct plait_arg { /* frozen for ever */
    int64_t role;          /* a plait_role */
    void   *ptr;           /* device or host memory, by backend; inputs are not written */
} plait_arg;

PLAIT_API plait_status plait_execute(const plait_plan *plan, const plait_arg *args, int nargs,
                                     void *workspace, size_t workspace_bytes,
                                     plait_stream stream);
/* 0 bytes: *ptr is NULL. Free with the same size, before the allocator changes. */
PLAIT_API plait_status plait_workspace_alloc(const plait_context *ctx, size_t bytes,
                                             plait_stream stream, void **ptr);
PLAIT_API void         plait_workspace_free(const plait_context *ctx, void *ptr, size_t bytes,
                                            plait_stream stream);

/* ---- Exec: the habit of FFTW and cuFFT -----------------------------------------------------
 * A plan, scratch of its own from the context's allocator, and a stream. The plan may be shared
 * with any number of other execs; an exec itself belongs to one thread at a time. */

/* Context, descriptor, plan with default preferences, scratch: everything from one token. With
 * other preferences, or for many execs of one plan: plait_exec_from_plan. */
PLAIT_API plait_status plait_exec_create(plait_exec **exec, plait_backend backend, int device,
                                         const char *token, plait_stream stream);
PLAIT_API plait_status plait_exec_from_plan(plait_exec **exec, const plait_plan *plan,
                                            plait_stream stream);
/* One input and one output: PLAIT_X and PLAIT_Y. in == out needs the alias in the descriptor. */
PLAIT_API plait_status plait_exec_run(plait_exec *exec, const void *in, void *out);
/* The same for arrays that know what they are, as those of other languages do: refused where the
 * tensor has another dtype, or spans more elements. elements < 0: not known. */
PLAIT_API plait_status plait_exec_run_arrays(plait_exec *exec, plait_dtype in_dtype, const void *in,
                                             int64_t in_elements, plait_dtype out_dtype,
                                             void *out, int64_t out_elements);
PLAIT_API plait_status plait_exec_run_args(plait_exec *exec, const plait_arg *args, int nargs);
/* Gives the scratch back on the old stream and takes new scratch on the new one: no wait. Not
 * while the scratch is part of a captured graph that will still be replayed. */
PLAIT_API plait_status plait_exec_set_stream(plait_exec *exec, plait_stream stream);
/* Borrowed: valid as long as the exec; plait_plan_retain keeps it longer. */
PLAIT_API const plait_plan *plait_exec_plan(const plait_exec *exec);
/* Stream-ordered: legal while its work still runs. Not while a captured graph that will still be
 * launched has the scratch in it. */
PLAIT_API void plait_exec_destroy(plait_exec *exec);

/* ---- Wisdom: measured times, as text. `loaded` and `skipped` may be NULL -------------------
 * Lines of all devices are kept and looked up by the context's device when a plan is made. A CPU that
 * has no time of its own takes the order of those of "cpu/<instructions>/generic". Lines of unknown
 * candidates and revisions and torn lines are skipped and counted, never an error.
 * save_file replaces the file in one step: readers see the old text or the new. */

PLAIT_API plait_status plait_wisdom_load(plait_context *ctx, const char *text, int *loaded,
                                         int *skipped);
PLAIT_API plait_status plait_wisdom_load_file(plait_context *ctx, const char *path, int *loaded,
                                              int *skipped);
PLAIT_API plait_status plait_wisdom_save(const plait_context *ctx, char *buf, size_t cap,
                                         size_t *size);
PLAIT_API plait_status plait_wisdom_save_file(const plait_context *ctx, const char *path);
PLAIT_API void         plait_wisdom_clear(plait_context *ctx);

#ifdef __cplusplus
}
#endif
#endif /* PLAIT_H */
