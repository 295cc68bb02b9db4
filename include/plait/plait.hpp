/// plait.hpp - C++17 over plait.h: handles that own, errors that throw, setters that chain.
///
///     plait::exec rotate(PLAIT_CUDA, 0, plait::wht(PLAIT_F32, {8192, 4096}).scale(1. / 64),
///     stream); rotate(x, y);
///
/// Everything of plait.h can be reached: native() gives the C handle, adopt() takes one over. The
/// rules of plait.h hold: `const` objects may be shared by threads. Nothing here is compiled into
/// the library; plait.h stays the only ABI.
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <plait/plait.h>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace plait {

/// What a failing call of plait.h said.
class error : public std::runtime_error {
public:
    error(plait_status code, const std::string &sentence)
        : std::runtime_error(sentence), code_(code) {}
    plait_status code() const noexcept { return code_; }

private:
    plait_status code_;
};

/// For calls of plait.h that a program makes itself.
inline void check(plait_status status) {
    if (status != PLAIT_OK) throw error(status, plait_last_error());
}

namespace detail {

template <auto destroy> struct destroyer {
    template <class T> void operator()(T *handle) const noexcept { destroy(handle); }
};
template <class T, auto destroy> using owner = std::unique_ptr<T, destroyer<destroy>>;

/// C would end the text at its first NUL and take what stands before it.
inline const char *c_text(const std::string &text, const char *name) {
    if (text.find('\0') != text.npos)
        check(plait_set_last_error(PLAIT_ERR_INVALID_ARGUMENT,
                                   (std::string(name) + ": the text has a NUL in it").c_str()));
    return text.c_str();
}

template <class T> constexpr plait_dtype dtype_of() {
    if constexpr (std::is_same_v<T, float>) return PLAIT_F32;
    if constexpr (std::is_same_v<T, double>) return PLAIT_F64;
    if constexpr (std::is_same_v<T, std::complex<float>>) return PLAIT_C64;
    if constexpr (std::is_same_v<T, std::complex<double>>) return PLAIT_C128;
    if constexpr (std::is_same_v<T, std::int8_t>) return PLAIT_I8;
    if constexpr (std::is_same_v<T, std::int16_t>) return PLAIT_I16;
    if constexpr (std::is_same_v<T, std::int32_t>) return PLAIT_I32;
    if constexpr (std::is_same_v<T, std::int64_t>) return PLAIT_I64;
    return plait_dtype{};
}

/// A text-out function: the size first, then the text. Another thread may make it longer in
/// between.
template <class Call> std::string text(Call &&call) {
    for (;;) {
        std::size_t size = 0;
        check(call(nullptr, std::size_t{0}, &size));
        std::string out(size, '\0');
        const plait_status status = call(&out[0], out.size(), &size);
        if (status == PLAIT_ERR_BUFFER_TOO_SMALL) continue;
        check(status);
        out.resize(size - 1);
        return out;
    }
}

} // namespace detail

inline int version() noexcept { return plait_version(); }
inline std::string build_info() { return plait_build_info(); }

inline int device_count(plait_backend backend) {
    int count = 0;
    check(plait_device_count(backend, &count));
    return count;
}

inline void set_log(int bits, plait_log_fn fn, void *user = nullptr) {
    check(plait_set_log(bits, fn, user));
}

/// One argument of execute; inputs are not written.
inline plait_arg arg(plait_role role, const void *ptr) {
    return {static_cast<std::int64_t>(role), const_cast<void *>(ptr)};
}

/// One device, its facts and its wisdom.
class context {
public:
    struct counts {
        int loaded;
        int skipped;
    };

    explicit context(plait_backend backend, int device = 0) {
        plait_context *made = nullptr;
        check(plait_context_create(&made, backend, device));
        handle_.reset(made);
    }
    /// A context without a device: it plans and prints.
    static context from_profile(const std::string &profile) {
        plait_context *made = nullptr;
        check(plait_context_create_from_profile(&made, detail::c_text(profile, "profile")));
        return adopt(made);
    }
    static context adopt(plait_context *handle) { return context(handle); }
    plait_context *native() const noexcept { return handle_.get(); }

    std::string profile() const {
        return detail::text([&](char *buf, std::size_t cap, std::size_t *size) {
            return plait_context_profile(native(), buf, cap, size);
        });
    }
    context &set_allocator(plait_alloc_fn alloc, plait_free_fn dealloc, void *user = nullptr) {
        check(plait_context_set_allocator(native(), alloc, dealloc, user));
        return *this;
    }
    context &set_threads(int threads) {
        check(plait_context_set_threads(native(), threads));
        return *this;
    }

    counts load_wisdom(const std::string &text) {
        counts n{};
        check(plait_wisdom_load(native(), detail::c_text(text, "text"), &n.loaded, &n.skipped));
        return n;
    }
    counts load_wisdom_file(const std::string &path) {
        counts n{};
        check(
            plait_wisdom_load_file(native(), detail::c_text(path, "path"), &n.loaded, &n.skipped));
        return n;
    }
    std::string wisdom() const {
        return detail::text([&](char *buf, std::size_t cap, std::size_t *size) {
            return plait_wisdom_save(native(), buf, cap, size);
        });
    }
    void save_wisdom_file(const std::string &path) const {
        check(plait_wisdom_save_file(native(), detail::c_text(path, "path")));
    }
    void clear_wisdom() noexcept { plait_wisdom_clear(native()); }

private:
    explicit context(plait_context *handle) noexcept : handle_(handle) {}
    detail::owner<plait_context, plait_context_destroy> handle_;
};

/// Scratch from a context's allocator. The context must live longer.
class workspace {
public:
    workspace(const context &ctx, std::size_t bytes, plait_stream stream = nullptr)
        : ctx_(ctx.native()), bytes_(bytes), stream_(stream) {
        check(plait_workspace_alloc(ctx_, bytes, stream, &ptr_));
    }
    workspace(workspace &&other) noexcept
        : ctx_(other.ctx_), ptr_(std::exchange(other.ptr_, nullptr)),
          bytes_(std::exchange(other.bytes_, 0)), stream_(other.stream_) {}
    workspace &operator=(workspace &&other) noexcept {
        std::swap(ctx_, other.ctx_);
        std::swap(ptr_, other.ptr_);
        std::swap(bytes_, other.bytes_);
        std::swap(stream_, other.stream_);
        return *this;
    }
    ~workspace() { plait_workspace_free(ctx_, ptr_, bytes_, stream_); }
    void *get() const noexcept { return ptr_; }
    std::size_t bytes() const noexcept { return bytes_; }

private:
    const plait_context *ctx_;
    void *ptr_ = nullptr;
    std::size_t bytes_;
    plait_stream stream_;
};

/// One tensor as execute expects it.
struct tensor {
    plait_role role;
    plait_access access;
    plait_dtype dtype;
    std::vector<std::int64_t> extents;
    std::vector<std::int64_t> strides; ///< elements; bits for PLAIT_B1
};

/// What to compute. Setters chain on named and on unnamed objects.
class desc {
public:
    static desc from_token(const std::string &token) {
        plait_desc *made = nullptr;
        check(plait_desc_from_token(&made, detail::c_text(token, "token")));
        return adopt(made);
    }
    static desc adopt(plait_desc *handle) { return desc(handle); }
    plait_desc *native() const noexcept { return handle_.get(); }

    // Walsh-Hadamard
    desc &axes(std::uint32_t mask) & { return done(plait_wht_set_axes(native(), mask)); }
    desc &bits(std::uint64_t mask) & { return done(plait_wht_set_bits(native(), mask)); }
    desc &factor(int axis, plait_wht_factor f) & {
        return done(plait_wht_set_factor(native(), axis, f));
    }
    desc &factor_order(int axis, int m) & {
        return done(plait_wht_set_factor_order(native(), axis, m));
    }
    desc &rows(std::int64_t count) & { return done(plait_wht_set_rows(native(), count)); }
    desc &group(std::int64_t length) & { return done(plait_wht_set_group(native(), length)); }
    desc &histogram(std::int64_t bins, std::int64_t first, std::int64_t width) & {
        return done(plait_wht_set_histogram(native(), bins, first, width));
    }
    desc &order(plait_wht_order o) & { return done(plait_wht_set_order(native(), o)); }
    desc &adjoint(bool on = true) & { return done(plait_wht_set_adjoint(native(), on)); }
    desc &scale(double value) & { return done(plait_wht_set_scale(native(), value)); }
    desc &bound(std::int64_t value) & { return done(plait_wht_set_bound(native(), value)); }
    // Causal depthwise convolution
    desc &layout(plait_layout l) & { return done(plait_conv1d_set_layout(native(), l)); }
    desc &activation(plait_activation a) & {
        return done(plait_conv1d_set_activation(native(), a));
    }
    desc &residual(bool on = true) & { return done(plait_conv1d_set_residual(native(), on)); }
    desc &state(plait_state_kind kind, std::int64_t entries) & {
        return done(plait_conv1d_set_state(native(), kind, entries));
    }
    // Kimi Delta Attention
    desc &gate(plait_kda_gate g, double lower_bound = 0) & {
        return done(plait_kda_set_gate(native(), g, lower_bound));
    }
    /// beta = scale * sigmoid(BETA)
    desc &beta_logit(double scale = 1) & { return done(plait_kda_set_beta(native(), 1, scale)); }
    desc &beta_value() & { return done(plait_kda_set_beta(native(), 0, 1)); }
    desc &qk_norm(bool on = true, double eps = 1e-6) & {
        return done(plait_kda_set_qk_norm(native(), on, eps));
    }
    desc &qk_scale(double value) & { return done(plait_kda_set_scale(native(), value)); }
    desc &state(plait_state_layout l) & { return done(plait_kda_set_state(native(), l)); }
    // All families
    desc &use(plait_role role, bool on = true) & {
        return done(plait_desc_use(native(), role, on));
    }
    desc &varlen(std::int64_t sequences, std::int64_t max_length) & {
        return done(plait_desc_set_varlen(native(), sequences, max_length));
    }
    desc &slots(std::int64_t count, std::int32_t pad) & {
        return done(plait_desc_set_slots(native(), count, pad));
    }
    desc &dtype(plait_role role, plait_dtype type) & {
        return done(plait_desc_set_dtype(native(), role, type));
    }
    desc &strides(plait_role role, const std::vector<std::int64_t> &values) & {
        return done(
            plait_desc_set_strides(native(), role, static_cast<int>(values.size()), values.data()));
    }
    desc &alignment(plait_role role, int bytes) & {
        return done(plait_desc_set_alignment(native(), role, bytes));
    }
    desc &alias(plait_role out, plait_role in) & {
        return done(plait_desc_set_alias(native(), out, in));
    }
    /// Y may be X.
    desc &in_place() & { return alias(PLAIT_Y, PLAIT_X); }

    desc &&axes(std::uint32_t mask) && { return std::move(axes(mask)); }
    desc &&bits(std::uint64_t mask) && { return std::move(bits(mask)); }
    desc &&factor(int axis, plait_wht_factor f) && { return std::move(factor(axis, f)); }
    desc &&factor_order(int axis, int m) && { return std::move(factor_order(axis, m)); }
    desc &&rows(std::int64_t count) && { return std::move(rows(count)); }
    desc &&group(std::int64_t length) && { return std::move(group(length)); }
    desc &&histogram(std::int64_t bins, std::int64_t first, std::int64_t width) && {
        return std::move(histogram(bins, first, width));
    }
    desc &&order(plait_wht_order o) && { return std::move(order(o)); }
    desc &&adjoint(bool on = true) && { return std::move(adjoint(on)); }
    desc &&scale(double value) && { return std::move(scale(value)); }
    desc &&bound(std::int64_t value) && { return std::move(bound(value)); }
    desc &&layout(plait_layout l) && { return std::move(layout(l)); }
    desc &&activation(plait_activation a) && { return std::move(activation(a)); }
    desc &&residual(bool on = true) && { return std::move(residual(on)); }
    desc &&state(plait_state_kind kind, std::int64_t entries) && {
        return std::move(state(kind, entries));
    }
    desc &&gate(plait_kda_gate g, double lower_bound = 0) && {
        return std::move(gate(g, lower_bound));
    }
    desc &&beta_logit(double scale = 1) && { return std::move(beta_logit(scale)); }
    desc &&beta_value() && { return std::move(beta_value()); }
    desc &&qk_norm(bool on = true, double eps = 1e-6) && { return std::move(qk_norm(on, eps)); }
    desc &&qk_scale(double value) && { return std::move(qk_scale(value)); }
    desc &&state(plait_state_layout l) && { return std::move(state(l)); }
    desc &&use(plait_role role, bool on = true) && { return std::move(use(role, on)); }
    desc &&varlen(std::int64_t sequences, std::int64_t max_length) && {
        return std::move(varlen(sequences, max_length));
    }
    desc &&slots(std::int64_t count, std::int32_t pad) && { return std::move(slots(count, pad)); }
    desc &&dtype(plait_role role, plait_dtype type) && { return std::move(dtype(role, type)); }
    desc &&strides(plait_role role, const std::vector<std::int64_t> &values) && {
        return std::move(strides(role, values));
    }
    desc &&alignment(plait_role role, int bytes) && { return std::move(alignment(role, bytes)); }
    desc &&alias(plait_role out, plait_role in) && { return std::move(alias(out, in)); }
    desc &&in_place() && { return std::move(in_place()); }

    /// Throws the first contradiction; plans do the same.
    void validate() const { check(plait_desc_check(native())); }
    std::vector<tensor> tensors() const {
        int count = 0;
        check(plait_desc_num_tensors(native(), &count));
        std::vector<tensor> out(static_cast<std::size_t>(count));
        for (int i = 0; i < count; ++i) {
            tensor &t = out[static_cast<std::size_t>(i)];
            std::int64_t extents[PLAIT_MAX_RANK];
            std::int64_t strides[PLAIT_MAX_RANK];
            int rank = 0;
            check(plait_desc_tensor(native(), i, &t.role, &t.access, &t.dtype, &rank, extents,
                                    strides));
            t.extents.assign(extents, extents + rank);
            t.strides.assign(strides, strides + rank);
        }
        return out;
    }
    std::string token() const {
        return detail::text([&](char *buf, std::size_t cap, std::size_t *size) {
            return plait_desc_token(native(), buf, cap, size);
        });
    }

private:
    explicit desc(plait_desc *handle) noexcept : handle_(handle) {}
    desc &done(plait_status status) {
        check(status);
        return *this;
    }
    detail::owner<plait_desc, plait_desc_destroy> handle_;
};

/// Walsh-Hadamard transforms along the last axis; axes() chooses others.
inline desc wht(plait_dtype dtype, const std::vector<std::int64_t> &extents) {
    plait_desc *made = nullptr;
    check(plait_wht_create(&made, dtype, static_cast<int>(extents.size()), extents.data()));
    return desc::adopt(made);
}

/// A causal depthwise convolution of [batch, channels, length]; layout() chooses another order.
inline desc conv1d(plait_direction direction, plait_dtype dtype, std::int64_t batch,
                   std::int64_t channels, std::int64_t length, std::int64_t width) {
    plait_desc *made = nullptr;
    check(plait_conv1d_create(&made, direction, dtype, batch, channels, length, width));
    return desc::adopt(made);
}

/// Kimi Delta Attention of [batch, length, heads, dim]; gate() must follow, and state() where a
/// state is in use.
inline desc kda(plait_direction direction, plait_dtype dtype, std::int64_t batch,
                std::int64_t length, std::int64_t heads, std::int64_t value_heads,
                std::int64_t dim_k, std::int64_t dim_v) {
    plait_desc *made = nullptr;
    check(
        plait_kda_create(&made, direction, dtype, batch, length, heads, value_heads, dim_k, dim_v));
    return desc::adopt(made);
}

/// How hard to plan and within which limits.
class pref {
public:
    pref() {
        plait_pref *made = nullptr;
        check(plait_pref_create(&made));
        handle_.reset(made);
    }
    static pref adopt(plait_pref *handle) { return pref(handle); }
    plait_pref *native() const noexcept { return handle_.get(); }

    pref &rigor(plait_rigor r) & { return done(plait_pref_set_rigor(native(), r)); }
    pref &wisdom_only(bool on = true) & { return done(plait_pref_set_wisdom_only(native(), on)); }
    pref &workspace_limit(std::size_t bytes) & {
        return done(plait_pref_set_workspace_limit(native(), bytes));
    }
    pref &time_limit(double seconds) & {
        return done(plait_pref_set_time_limit(native(), seconds));
    }
    pref &determinism(plait_determinism level) & {
        return done(plait_pref_set_determinism(native(), level));
    }
    pref &math(plait_math m) & { return done(plait_pref_set_math(native(), m)); }
    pref &candidates(const std::string &pattern) & {
        return done(plait_pref_set_candidates(native(), detail::c_text(pattern, "pattern")));
    }

    pref &&rigor(plait_rigor r) && { return std::move(rigor(r)); }
    pref &&wisdom_only(bool on = true) && { return std::move(wisdom_only(on)); }
    pref &&workspace_limit(std::size_t bytes) && { return std::move(workspace_limit(bytes)); }
    pref &&time_limit(double seconds) && { return std::move(time_limit(seconds)); }
    pref &&determinism(plait_determinism level) && { return std::move(determinism(level)); }
    pref &&math(plait_math m) && { return std::move(math(m)); }
    pref &&candidates(const std::string &pattern) && { return std::move(candidates(pattern)); }

private:
    explicit pref(plait_pref *handle) noexcept : handle_(handle) {}
    pref &done(plait_status status) {
        check(status);
        return *this;
    }
    detail::owner<plait_pref, plait_pref_destroy> handle_;
};

/// Immutable; a copy is one more owner of the same plan.
class plan {
public:
    plan(const context &ctx, const desc &what) : plan(make(ctx, what, nullptr)) {}
    plan(const context &ctx, const desc &what, const pref &how)
        : plan(make(ctx, what, how.native())) {}
    /// Takes over one count.
    static plan adopt(plait_plan *handle) { return plan(handle); }
    plan(const plan &other) noexcept : handle_(plait_plan_retain(other.native())) {}
    plan(plan &&) noexcept = default;
    plan &operator=(plan other) noexcept {
        handle_.swap(other.handle_);
        return *this;
    }
    ~plan() = default;
    plait_plan *native() const noexcept { return handle_.get(); }

    std::size_t workspace_size() const {
        std::size_t bytes = 0;
        check(plait_plan_workspace_size(native(), &bytes));
        return bytes;
    }
    std::size_t reserve_size() const {
        std::size_t bytes = 0;
        check(plait_plan_reserve_size(native(), &bytes));
        return bytes;
    }
    std::int64_t get_i64(plait_plan_attr attr) const {
        std::int64_t value = 0;
        check(plait_plan_get_i64(native(), attr, &value));
        return value;
    }
    double get_f64(plait_plan_attr attr) const {
        double value = 0;
        check(plait_plan_get_f64(native(), attr, &value));
        return value;
    }
    std::string candidate() const {
        return detail::text([&](char *buf, std::size_t cap, std::size_t *size) {
            return plait_plan_candidate(native(), buf, cap, size);
        });
    }
    std::string print(plait_format format = PLAIT_TEXT) const {
        return detail::text([&](char *buf, std::size_t cap, std::size_t *size) {
            return plait_plan_print(native(), format, buf, cap, size);
        });
    }
    void execute(std::initializer_list<plait_arg> args, void *work, std::size_t work_bytes,
                 plait_stream stream = nullptr) const {
        check(plait_execute(native(), args.begin(), static_cast<int>(args.size()), work, work_bytes,
                            stream));
    }
    void execute(const std::vector<plait_arg> &args, void *work, std::size_t work_bytes,
                 plait_stream stream = nullptr) const {
        check(plait_execute(native(), args.data(), static_cast<int>(args.size()), work, work_bytes,
                            stream));
    }

private:
    explicit plan(plait_plan *handle) noexcept : handle_(handle) {}
    static plait_plan *make(const context &ctx, const desc &what, const plait_pref *how) {
        plait_plan *made = nullptr;
        check(plait_plan_create(&made, ctx.native(), what.native(), how));
        return made;
    }
    detail::owner<plait_plan, plait_plan_destroy> handle_;
};

/// Every candidate with its verdict.
inline std::string candidates(const context &ctx, const desc &what, const pref &how = pref(),
                              plait_format format = PLAIT_TEXT) {
    return detail::text([&](char *buf, std::size_t cap, std::size_t *size) {
        return plait_candidates_print(ctx.native(), what.native(), how.native(), format, buf, cap,
                                      size);
    });
}

/// A plan with scratch and stream of its own, for one thread at a time: make it, call it.
class exec {
public:
    exec(plait_backend backend, int device, const std::string &token,
         plait_stream stream = nullptr) {
        plait_exec *made = nullptr;
        check(plait_exec_create(&made, backend, device, detail::c_text(token, "token"), stream));
        handle_.reset(made);
    }
    exec(plait_backend backend, int device, const desc &what, plait_stream stream = nullptr)
        : exec(backend, device, what.token(), stream) {}
    explicit exec(const plan &shared, plait_stream stream = nullptr) {
        plait_exec *made = nullptr;
        check(plait_exec_from_plan(&made, shared.native(), stream));
        handle_.reset(made);
    }
    static exec adopt(plait_exec *handle) { return exec(handle); }
    plait_exec *native() const noexcept { return handle_.get(); }

    /// Of X and Y; other roles: run().
    void operator()(const void *in, void *out) { check(plait_exec_run(native(), in, out)); }
    /// The same on the CPU, with types and sizes that must be those of the plan.
    template <class In, class Out>
    void operator()(const std::vector<In> &in, std::vector<Out> &out) {
        static_assert(detail::dtype_of<In>() != 0 && detail::dtype_of<Out>() != 0,
                      "elements that plait has a dtype for");
        check(plait_exec_run_arrays(native(), detail::dtype_of<In>(), in.data(),
                                    static_cast<std::int64_t>(in.size()), detail::dtype_of<Out>(),
                                    out.data(), static_cast<std::int64_t>(out.size())));
    }
    void run(std::initializer_list<plait_arg> args) {
        check(plait_exec_run_args(native(), args.begin(), static_cast<int>(args.size())));
    }
    void run(const std::vector<plait_arg> &args) {
        check(plait_exec_run_args(native(), args.data(), static_cast<int>(args.size())));
    }
    exec &set_stream(plait_stream stream) {
        check(plait_exec_set_stream(native(), stream));
        return *this;
    }
    /// Shared with this exec.
    plait::plan plan() const {
        return plait::plan::adopt(plait_plan_retain(plait_exec_plan(native())));
    }

private:
    explicit exec(plait_exec *handle) noexcept : handle_(handle) {}
    detail::owner<plait_exec, plait_exec_destroy> handle_;
};

} // namespace plait
