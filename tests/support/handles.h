// Owners for the handles of plait.h.
#pragma once

#include <memory>
#include <plait/plait.h>
#include <stdexcept>
#include <string>

namespace plait::test {

template <auto destroy> struct destroyer {
    template <class T> void operator()(T *handle) const { destroy(handle); }
};

using context_ptr = std::unique_ptr<plait_context, destroyer<plait_context_destroy>>;
using desc_ptr = std::unique_ptr<plait_desc, destroyer<plait_desc_destroy>>;
using pref_ptr = std::unique_ptr<plait_pref, destroyer<plait_pref_destroy>>;
using plan_ptr = std::unique_ptr<plait_plan, destroyer<plait_plan_destroy>>;
using exec_ptr = std::unique_ptr<plait_exec, destroyer<plait_exec_destroy>>;

/// Calls a text-out function twice: for the size, then for the text. Throws with plait's sentence.
template <class F> std::string text_of(F &&call) {
    size_t size = 0;
    if (call(nullptr, 0, &size) != PLAIT_OK) throw std::runtime_error(plait_last_error());
    std::string text(size, '\0');
    if (call(text.data(), text.size(), &size) != PLAIT_OK)
        throw std::runtime_error(plait_last_error());
    text.resize(size - 1);
    return text;
}

inline std::string token_of(const plait_desc *desc) {
    return text_of([&](char *b, size_t c, size_t *s) { return plait_desc_token(desc, b, c, s); });
}

inline std::string candidate_of(const plait_plan *plan) {
    return text_of(
        [&](char *b, size_t c, size_t *s) { return plait_plan_candidate(plan, b, c, s); });
}

} // namespace plait::test
