// main of the test binaries. Arguments beside doctest's: --small, --exact-buffers, --top=K,
// --skip=NAME. Environment: PLAIT_TEST_SEED (a number, or "time"), PLAIT_TEST_LARGE=1.
#define DOCTEST_CONFIG_IMPLEMENT
#include "tests/support/report.h"
#include "tests/support/settings.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <doctest/doctest.h>

// GCC says it with macros, clang with features.
#if defined(__has_feature)
#    define PLAIT_TEST_FEATURE(name) __has_feature(name)
#else
#    define PLAIT_TEST_FEATURE(name) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || PLAIT_TEST_FEATURE(address_sanitizer)
constexpr bool built_with_asan = true;
#else
constexpr bool built_with_asan = false;
#endif
#if defined(__SANITIZE_THREAD__) || PLAIT_TEST_FEATURE(thread_sanitizer)
constexpr bool built_with_tsan = true;
#else
constexpr bool built_with_tsan = false;
#endif

namespace plait::test {

settings &change_config() {
    static settings s;
    return s;
}

const settings &config() { return change_config(); }

plait_context *context() {
    static const context_ptr one = [] {
        plait_context *ctx = nullptr;
        if (plait_context_create(&ctx, config().backend, 0) != PLAIT_OK) {
            std::fprintf(stderr, "no context: %s\n", plait_last_error());
            std::exit(1);
        }
        return context_ptr(ctx);
    }();
    return one.get();
}

} // namespace plait::test

int main(int argc, char **argv) {
    plait::test::settings &s = plait::test::change_config();
#ifdef PLAIT_TEST_CUDA
    s.backend = PLAIT_CUDA;
#endif
    s.exact_buffers = built_with_asan;
    s.brief = built_with_asan || built_with_tsan;
    if (const char *seed = std::getenv("PLAIT_TEST_SEED"))
        s.seed = std::strcmp(seed, "time") == 0 ? static_cast<uint64_t>(std::time(nullptr))
                                                : std::strtoull(seed, nullptr, 0);
    if (const char *large = std::getenv("PLAIT_TEST_LARGE")) s.large = std::strcmp(large, "1") == 0;
    for (int i = 1; i < argc; ++i) {
        if (std::strcmp(argv[i], "--small") == 0) s.small = true;
        if (std::strcmp(argv[i], "--exact-buffers") == 0) s.exact_buffers = true;
        if (std::strncmp(argv[i], "--skip=", 7) == 0) s.skip = argv[i] + 7;
        if (std::strncmp(argv[i], "--top=", 6) == 0) s.top = std::atoi(argv[i] + 6);
    }
    int devices = 0;
    if (plait_device_count(s.backend, &devices) != PLAIT_OK || devices == 0) {
        std::printf("no device for this test\n");
        return 77;
    }
    std::printf("PLAIT_TEST_SEED=%llu%s%s on %s, %s\n", static_cast<unsigned long long>(s.seed),
                s.large ? " large" : "", s.small ? " small" : "",
                s.backend == PLAIT_CUDA ? "cuda" : "cpu", plait_build_info());
    std::fflush(stdout);
    doctest::Context run(argc, argv);
    const int result = run.run();
    plait::test::print_report();
    return result;
}
