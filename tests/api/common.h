// What every test of the C API uses.
#pragma once

#include "tests/support/handles.h"

#include <cstdlib>
#include <cstring>
#include <doctest/doctest.h>
#include <plait/plait.h>
#include <string>
#include <vector>

namespace plait::test {

inline bool contains(const std::string &text, const std::string &part) {
    return text.find(part) != std::string::npos;
}

/// A value that no enumerator has, as a C caller would pass it.
template <class Enum> Enum garbage(int value = 99) {
    Enum out;
    static_assert(sizeof out == sizeof value);
    std::memcpy(&out, &value, sizeof out);
    return out;
}

// Functions under the macros: a thousand expanded assertions would take minutes to compile.
void expect_failure(plait_status got, plait_status wanted, const std::string &part,
                    const char *call, const char *file, int line);
void expect_ok(plait_status got, const char *call, const char *file, int line);

/// The call fails with this code, and the sentence has this part.
#define FAILS(call, code, part)                                                                    \
    ::plait::test::expect_failure(call, code, part, #call, __FILE__, __LINE__)
/// The test ends here if it does not.
#define OK(call) ::plait::test::expect_ok(call, #call, __FILE__, __LINE__)

inline context_ptr cpu_context() {
    plait_context *ctx = nullptr;
    OK(plait_context_create(&ctx, PLAIT_CPU, 0));
    return context_ptr(ctx);
}

inline desc_ptr desc_of(const std::string &token) {
    plait_desc *desc = nullptr;
    OK(plait_desc_from_token(&desc, token.c_str()));
    return desc_ptr(desc);
}

inline plan_ptr plan_of(const plait_context *ctx, const std::string &token,
                        const plait_pref *pref = nullptr) {
    plait_plan *plan = nullptr;
    OK(plait_plan_create(&plan, ctx, desc_of(token).get(), pref));
    return plan_ptr(plan);
}

inline pref_ptr new_pref() {
    plait_pref *pref = nullptr;
    OK(plait_pref_create(&pref));
    return pref_ptr(pref);
}

inline std::string print_of(const plait_plan *plan, plait_format format = PLAIT_TEXT) {
    return text_of(
        [&](char *b, size_t c, size_t *s) { return plait_plan_print(plan, format, b, c, s); });
}

inline std::string profile_of(const plait_context *ctx) {
    return text_of(
        [&](char *b, size_t c, size_t *s) { return plait_context_profile(ctx, b, c, s); });
}

inline std::string wisdom_of(const plait_context *ctx) {
    return text_of([&](char *b, size_t c, size_t *s) { return plait_wisdom_save(ctx, b, c, s); });
}

inline size_t workspace_of(const plait_plan *plan) {
    size_t bytes = 0;
    OK(plait_plan_workspace_size(plan, &bytes));
    return bytes;
}

/// Preferences that take the float64 definition, which needs a workspace.
inline pref_ptr reference_pref() {
    pref_ptr pref = new_pref();
    OK(plait_pref_set_candidates(pref.get(), "wht.cpu.ref"));
    return pref;
}

/// A profile of a device that need not be there.
std::string stored_profile(const std::string &name);

/// An environment variable for one scope.
class environment_variable {
public:
    environment_variable(const char *name, const std::string &value) : name_(name) {
        if (const char *old = std::getenv(name)) old_ = old, had_ = true;
        setenv(name, value.c_str(), 1);
    }
    ~environment_variable() { had_ ? setenv(name_, old_.c_str(), 1) : unsetenv(name_); }
    environment_variable(const environment_variable &) = delete;
    environment_variable &operator=(const environment_variable &) = delete;

private:
    const char *name_;
    std::string old_;
    bool had_ = false;
};

/// 256-byte aligned host memory, as a workspace needs it.
class aligned_buffer {
public:
    explicit aligned_buffer(size_t bytes) : storage_(bytes + 512) {
        const auto at = reinterpret_cast<uintptr_t>(storage_.data());
        base_ = storage_.data() + (256 - at % 256) % 256;
    }
    unsigned char *get() const { return base_; }

private:
    std::vector<unsigned char> storage_;
    unsigned char *base_;
};

} // namespace plait::test
