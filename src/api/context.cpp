// plait_context: one device, its facts and its wisdom.
#include "src/api/guard.h"
#include "src/api/handles.h"
#include "src/core/env.h"
#include "src/core/log.h"

#include <cerrno>
#include <charconv>
#include <unistd.h>

namespace plait::impl {

namespace {

// OpenMP ends the process when it cannot start a team, so numbers that no machine has are refused.
constexpr int max_threads = 4096;

void check_backend(plait_backend backend) {
    if (!backend_name(backend))
        fail(PLAIT_ERR_INVALID_ARGUMENT, "backend=", backend, " is no plait_backend");
}

void check_threads(const char *name, int threads) {
    if (threads < 0 || threads > max_threads)
        fail(PLAIT_ERR_INVALID_ARGUMENT, name, '=', threads, " is not between 0 and ", max_threads);
}

int threads_from_environment() {
    const std::string value = environment("PLAIT_THREADS");
    if (value.empty()) return 0;
    int threads = 0;
    const char *end = value.data() + value.size();
    const auto read = std::from_chars(value.data(), end, threads);
    if (read.ec != std::errc() || read.ptr != end)
        fail(PLAIT_ERR_INVALID_ARGUMENT, "PLAIT_THREADS=", value, " is no number");
    check_threads("PLAIT_THREADS", threads);
    return threads;
}

/// What every context takes from the environment.
void read_environment(plait_context &ctx) {
    ctx.pattern = environment("PLAIT_CANDIDATES");
    if (!ctx.pattern.empty()) {
        try {
            check_pattern(ctx.pattern);
        } catch (const failure &f) {
            fail(f.code(), "PLAIT_CANDIDATES: ", f.what());
        }
    }
    const std::string path = environment("PLAIT_WISDOM");
    if (path.empty()) return;
    if (access(path.c_str(), F_OK) != 0 && errno == ENOENT) { // who saves there comes later
        log_line(PLAIT_LOG_WARN, text("PLAIT_WISDOM=", path, ": there is no such file yet"));
        return;
    }
    try {
        load_wisdom_file(ctx, path.c_str(), nullptr, nullptr);
    } catch (const failure &f) {
        fail(f.code(), "PLAIT_WISDOM: ", f.what());
    }
}

/// The caller's functions.
class callback_memory final : public allocator {
public:
    callback_memory(plait_alloc_fn alloc, plait_free_fn dealloc, void *user)
        : alloc_(alloc), dealloc_(dealloc), user_(user) {}
    void *allocate(size_t bytes, plait_stream stream) override {
        void *ptr = nullptr;
        const plait_status status = alloc_(&ptr, bytes, stream, user_);
        if (status != PLAIT_OK || !ptr)
            fail(PLAIT_ERR_OUT_OF_MEMORY, "the context's allocator has no ", bytes,
                 " bytes: it returned ", status_name(status), ptr ? "" : " and NULL");
        const auto address = reinterpret_cast<uintptr_t>(ptr);
        if (address % PLAIT_WORKSPACE_ALIGNMENT != 0) {
            release(ptr, bytes, stream);
            fail(PLAIT_ERR_WORKSPACE, "the context's allocator returned 0x", hex(address),
                 ", which is not aligned to ", PLAIT_WORKSPACE_ALIGNMENT, " bytes");
        }
        return ptr;
    }
    void release(void *ptr, size_t bytes, plait_stream stream) noexcept override {
        dealloc_(ptr, bytes, stream, user_);
    }

private:
    plait_alloc_fn alloc_;
    plait_free_fn dealloc_;
    void *user_;
};

} // namespace

plait_context *make_context(plait_backend backend, int device) {
    check_backend(backend);
    auto ctx = std::make_unique<plait_context>();
    ctx->device = backend == PLAIT_CPU ? cpu_backend(device, threads_from_environment())
                                       : cuda_backend(device);
    ctx->facts = ctx->device->describe();
    ctx->memory = ctx->device->default_allocator();
    read_environment(*ctx);
    return ctx.release();
}

allocator &memory_of(const std::shared_ptr<allocator> &memory) {
    if (!memory) fail(PLAIT_ERR_NO_DEVICE, "the context was made from a profile and has no memory");
    return *memory;
}

} // namespace plait::impl

using namespace plait::impl;

extern "C" {

plait_status plait_device_count(plait_backend backend, int *count) {
    return guard(__func__, [&] {
        require(count, "count");
        check_backend(backend);
        *count = backend == PLAIT_CPU ? cpu_device_count() : cuda_device_count();
    });
}

plait_status plait_context_create(plait_context **ctx, plait_backend backend, int device) {
    return guard_create(__func__, ctx, "ctx", [&] { return make_context(backend, device); });
}

plait_status plait_context_create_from_profile(plait_context **ctx, const char *profile) {
    return guard_create(__func__, ctx, "ctx", [&] {
        require(profile, "profile");
        auto made = std::make_unique<plait_context>();
        made->facts = profile_from_text(profile);
        read_environment(*made);
        return made.release();
    });
}

plait_status plait_context_profile(const plait_context *ctx, char *buf, size_t cap, size_t *size) {
    return guard(__func__, [&] {
        require(ctx, "ctx");
        text_out(ctx->facts.to_text(), buf, cap, size);
    });
}

plait_status plait_context_set_allocator(plait_context *ctx, plait_alloc_fn alloc,
                                         plait_free_fn dealloc, void *user) {
    return guard(__func__, [&] {
        require(ctx, "ctx");
        if (!alloc != !dealloc)
            fail(PLAIT_ERR_INVALID_ARGUMENT, alloc ? "dealloc" : "alloc",
                 "=NULL: both functions are required, or none for the default");
        memory_of(ctx->memory);
        if (alloc) {
            ctx->memory = std::make_shared<callback_memory>(alloc, dealloc, user);
        } else {
            ctx->memory = ctx->device->default_allocator();
        }
    });
}

plait_status plait_context_set_threads(plait_context *ctx, int threads) {
    return guard(__func__, [&] {
        require(ctx, "ctx");
        check_threads("threads", threads);
        if (ctx->facts.backend != PLAIT_CPU)
            fail(PLAIT_ERR_INVALID_ARGUMENT, "threads=", threads,
                 ": the context is for cuda; threads are for the CPU backend");
        ctx->facts.threads = threads > 0 ? threads : ctx->facts.cores;
    });
}

void plait_context_destroy(plait_context *ctx) { delete ctx; }

} // extern "C"
