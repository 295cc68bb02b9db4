// Execute allocates nothing: malloc and its relatives are replaced for the whole process, the
// library included, and count while a flag is up. Needs glibc, whose names these are.
#include <cstddef>
#include <cstdio>
#include <cstdlib>
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
void count() {
    if (counting) allocations = allocations + 1;
}
} // namespace

extern "C" {
void *malloc(size_t bytes) { return count(), __libc_malloc(bytes); }
void *calloc(size_t n, size_t bytes) { return count(), __libc_calloc(n, bytes); }
void *realloc(void *ptr, size_t bytes) { return count(), __libc_realloc(ptr, bytes); }
void *memalign(size_t align, size_t bytes) { return count(), __libc_memalign(align, bytes); }
void *aligned_alloc(size_t align, size_t bytes) { return count(), __libc_memalign(align, bytes); }
int posix_memalign(void **ptr, size_t align, size_t bytes) {
    count();
    *ptr = __libc_memalign(align, bytes);
    return *ptr ? 0 : 12;
}
void free(void *ptr) {
    if (ptr) count();
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
    return failures == 0 ? 0 : 1;
}

#else

int main() {
    std::printf("no glibc: nothing to replace\n");
    return 77;
}

#endif
