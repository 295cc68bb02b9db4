// Execute allocates nothing, and an allocation that fails is reported: malloc and its relatives are
// replaced for the whole process, the library included, and count while a flag is up. Needs glibc,
// whose names these are.
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <plait/plait.h>

#if defined(__GLIBC__)

extern "C" {
void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);
void __libc_free(void *);
}

namespace {
// Plain: one thread, and no initialisation order to think of.
volatile long allocations = 0;
volatile bool counting = false;
volatile long failing = 0; // the number of the allocation that fails; 0: none
/// False where this allocation has to fail.
bool count() {
    if (!counting) return true;
    allocations = allocations + 1;
    return allocations != failing;
}
} // namespace

extern "C" {
void *malloc(size_t bytes) { return count() ? __libc_malloc(bytes) : nullptr; }
void *calloc(size_t n, size_t bytes) { return count() ? __libc_calloc(n, bytes) : nullptr; }
void *realloc(void *ptr, size_t bytes) { return count() ? __libc_realloc(ptr, bytes) : nullptr; }
void *memalign(size_t align, size_t bytes) {
    return count() ? __libc_memalign(align, bytes) : nullptr;
}
void *aligned_alloc(size_t align, size_t bytes) { return memalign(align, bytes); }
int posix_memalign(void **ptr, size_t align, size_t bytes) {
    *ptr = memalign(align, bytes);
    return *ptr ? 0 : 12;
}
void free(void *ptr) {
    if (ptr && counting && failing == 0) allocations = allocations + 1;
    __libc_free(ptr);
}
}

namespace {

int failures = 0;

void expect(bool good, const char *what) {
    if (good) return;
    std::printf("failed: %s; %s\n", what, plait_last_error());
    ++failures;
}

/// Runs a token, with one candidate, often; the first run may warm up the thread pool.
void run(const char *token, const char *candidate, int threads) {
    static float x[4096], y[4096];
    alignas(256) static unsigned char work[1 << 20];
    plait_context *ctx = nullptr;
    plait_desc *desc = nullptr;
    plait_pref *pref = nullptr;
    plait_plan *plan = nullptr;
    size_t bytes = 0;
    expect(plait_context_create(&ctx, PLAIT_CPU, 0) == PLAIT_OK, "context");
    expect(plait_context_set_threads(ctx, threads) == PLAIT_OK, "threads");
    expect(plait_desc_from_token(&desc, token) == PLAIT_OK, token);
    expect(plait_pref_create(&pref) == PLAIT_OK, "pref");
    expect(plait_pref_set_candidates(pref, candidate) == PLAIT_OK, candidate);
    expect(plait_plan_create(&plan, ctx, desc, pref) == PLAIT_OK, "plan");
    expect(plait_plan_workspace_size(plan, &bytes) == PLAIT_OK && bytes <= sizeof work, "size");
    const plait_arg args[] = {{PLAIT_X, x}, {PLAIT_Y, y}};
    x[0] = 1;
    expect(plait_execute(plan, args, 2, work, sizeof work, nullptr) == PLAIT_OK, "first run");
    long wrong = 0;
    allocations = 0;
    counting = true;
    for (int i = 0; i < 20; ++i)
        wrong += plait_execute(plan, args, 2, work, sizeof work, nullptr) != PLAIT_OK;
    counting = false;
    std::printf("%s %s threads=%d: %ld allocations in 20 runs\n", token, candidate, threads,
                allocations);
    expect(wrong == 0, "runs");
    expect(y[1023] == 1, "result");
    expect(allocations == 0, "execute must not allocate");
    plait_plan_destroy(plan);
    plait_pref_destroy(pref);
    plait_desc_destroy(desc);
    plait_context_destroy(ctx);
}

/// Two plans by turns: OpenMP must keep its threads.
void alternate(const char *small, const char *large, int threads) {
    static float x[1 << 18], y[1 << 18];
    plait_context *ctx = nullptr;
    plait_exec *execs[2] = {};
    expect(plait_context_create(&ctx, PLAIT_CPU, 0) == PLAIT_OK, "context");
    expect(plait_context_set_threads(ctx, threads) == PLAIT_OK, "threads");
    for (int i = 0; i < 2; ++i) {
        plait_desc *desc = nullptr;
        plait_plan *plan = nullptr;
        expect(plait_desc_from_token(&desc, i ? large : small) == PLAIT_OK, "token");
        expect(plait_plan_create(&plan, ctx, desc, nullptr) == PLAIT_OK, "plan");
        expect(plait_exec_from_plan(&execs[i], plan, nullptr) == PLAIT_OK, "exec");
        expect(plait_exec_run(execs[i], x, y) == PLAIT_OK, "first run");
        plait_plan_destroy(plan);
        plait_desc_destroy(desc);
    }
    // OpenMP takes a new record for a team now and then, when a thread was slow to leave the last
    // one. What executes, or threads that start anew, would allocate is there in every round.
    long wrong = 0, least = -1;
    for (int round = 0; round < 5 && least != 0; ++round) {
        allocations = 0;
        counting = true;
        for (int i = 0; i < 20; ++i) wrong += plait_exec_run(execs[i % 2], x, y) != PLAIT_OK;
        counting = false;
        if (least < 0 || allocations < least) least = allocations;
    }
    std::printf("%s and %s threads=%d: %ld allocations in 20 runs\n", small, large, threads, least);
    expect(wrong == 0, "runs");
    expect(least == 0, "execute must not allocate between plans");
    for (plait_exec *exec : execs) plait_exec_destroy(exec);
    plait_context_destroy(ctx);
}

/// A context either has the facts that it has with all memory, or is not made.
void fail_each_allocation_of_a_context() {
    static char whole[1 << 12], got[1 << 12];
    plait_context *ctx = nullptr;
    size_t size = 0;
    expect(plait_context_create(&ctx, PLAIT_CPU, 0) == PLAIT_OK, "context");
    expect(plait_context_profile(ctx, whole, sizeof whole, &size) == PLAIT_OK, "profile");
    plait_context_destroy(ctx);
    int refused = 0;
    for (failing = 1;; failing = failing + 1) {
        allocations = 0;
        counting = true;
        const plait_status status = plait_context_create(&ctx, PLAIT_CPU, 0);
        counting = false;
        if (status == PLAIT_OK) {
            const bool reached = allocations >= failing;
            expect(plait_context_profile(ctx, got, sizeof got, &size) == PLAIT_OK, "profile");
            expect(std::strcmp(whole, got) == 0, "the same facts");
            plait_context_destroy(ctx);
            if (!reached) break;
        } else {
            ++refused;
            expect(status == PLAIT_ERR_OUT_OF_MEMORY, "out of memory");
            expect(ctx == nullptr, "no context");
        }
    }
    failing = 0;
    expect(refused > 0, "some allocation failed");
    std::printf("context: %d allocations failed\n", refused);
}

/// Printed plans and candidates: a failure is reported, and does not end the process.
void fail_each_allocation_of_a_text(plait_format format) {
    static char text[1 << 14];
    plait_context *ctx = nullptr;
    plait_desc *desc = nullptr;
    plait_plan *plan = nullptr;
    size_t size = 0;
    expect(plait_context_create(&ctx, PLAIT_CPU, 0) == PLAIT_OK, "context");
    expect(plait_desc_from_token(&desc, "wht:f32:b4:n64:+signs") == PLAIT_OK, "token");
    expect(plait_plan_create(&plan, ctx, desc, nullptr) == PLAIT_OK, "plan");
    for (const bool all : {false, true}) {
        int refused = 0;
        bool reached = true;
        for (failing = 1; reached; failing = failing + 1) {
            allocations = 0;
            counting = true;
            const plait_status status =
                all ? plait_candidates_print(ctx, desc, nullptr, format, text, sizeof text, &size)
                    : plait_plan_print(plan, format, text, sizeof text, &size);
            counting = false;
            reached = allocations >= failing;
            refused += status == PLAIT_ERR_OUT_OF_MEMORY;
            expect(status == PLAIT_OK || status == PLAIT_ERR_OUT_OF_MEMORY, "out of memory");
            expect(reached || status == PLAIT_OK, "text");
        }
        failing = 0;
        expect(refused > 0, "some allocation failed");
    }
    plait_plan_destroy(plan);
    plait_desc_destroy(desc);
    plait_context_destroy(ctx);
}

} // namespace

int main() {
    counting = true;
    free(malloc(1)); // the replacement itself must be seen
    counting = false;
    expect(allocations == 2, "counting");
    plait_desc *desc = nullptr;
    allocations = 0;
    counting = true;
    plait_desc_from_token(&desc, "wht:f32:n8");
    counting = false;
    expect(allocations > 0, "the library's allocations are counted too");
    plait_desc_destroy(desc);
    for (const int threads : {1, 2})
        for (const char *candidate : {"wht.cpu.simd", "wht.cpu.ref"})
            run("wht:f32:b4:n1024", candidate, threads);
    alternate("wht:f32:b24:n1024", "wht:f32:b256:n1024", 8);
    alternate("wht:f32:b16:n1024", "wht:f32:b1:n1024", 2);
    alternate("wht:f32:b40:n1024", "wht:bf16:b200:n1024:y.f32", 3);
    fail_each_allocation_of_a_context();
    for (const plait_format format : {PLAIT_TEXT, PLAIT_JSON})
        fail_each_allocation_of_a_text(format);
    return failures == 0 ? 0 : 1;
}

#else

int main() {
    std::printf("no glibc: nothing to replace\n");
    return 77;
}

#endif
