// Owners of the handles of plait.h, and the one exception of the program and its tests.
#pragma once

#include <memory>
#include <plait/plait.h>
#include <stdexcept>
#include <string>

namespace plait::cases {

/// What went wrong: a status of plait.h and one sentence.
class failure : public std::runtime_error {
public:
    failure(plait_status status, const std::string &sentence)
        : std::runtime_error(sentence), status(status) {}
    plait_status status;
};

/// Throws the library's last sentence unless `status` is PLAIT_OK.
void check(plait_status status);

template <auto Destroy> struct destroyer {
    template <class T> void operator()(T *handle) const noexcept { Destroy(handle); }
};
using context_ptr = std::unique_ptr<plait_context, destroyer<plait_context_destroy>>;
using desc_ptr = std::unique_ptr<plait_desc, destroyer<plait_desc_destroy>>;
using pref_ptr = std::unique_ptr<plait_pref, destroyer<plait_pref_destroy>>;
using plan_ptr = std::unique_ptr<plait_plan, destroyer<plait_plan_destroy>>;

desc_ptr make_desc(const std::string &token);
context_ptr make_context(plait_backend backend, int device);
plan_ptr make_plan(const plait_context *ctx, const plait_desc *desc, const plait_pref *pref);
pref_ptr make_pref(const std::string &candidates = "");

/// The two calls of the text-out protocol. `write(buf, cap, size)` calls the library.
template <class Write> std::string text_of(Write write) {
    size_t size = 0;
    check(write(static_cast<char *>(nullptr), size_t{0}, &size));
    std::string text(size, '\0');
    check(write(text.data(), text.size(), &size));
    text.resize(size > 0 ? size - 1 : 0);
    return text;
}

std::string token_of(const plait_desc *desc);
std::string candidate_of(const plait_plan *plan);
std::string profile_of(const plait_context *ctx);

} // namespace plait::cases
