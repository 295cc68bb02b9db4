// Failures inside the runtime are exceptions; src/api turns them into a code and a sentence.
#pragma once

#include "src/core/text.h"

#include <exception>
#include <plait/plait.h>
#include <string>

namespace plait::impl {

class failure : public std::exception {
public:
    failure(plait_status code, std::string sentence)
        : code_(code), sentence_(std::move(sentence)) {}
    plait_status code() const noexcept { return code_; }
    const char *what() const noexcept override { return sentence_.c_str(); }

private:
    plait_status code_;
    std::string sentence_;
};

/// fail(PLAIT_ERR_INVALID_DESC, "scale=", s, " is not finite"): argument, value, rule.
template <class... Parts> [[noreturn]] void fail(plait_status code, const Parts &...parts) {
    throw failure(code, text(parts...));
}

const char *status_name(plait_status status);

/// With its zero: room for a function, a token that was given and the longest canonical one, which
/// must not be cut. Of a longer sentence the end is "...".
constexpr size_t longest_sentence = 6144;

/// Into `to`, which has longest_sentence bytes. Not an allocation: it must work without memory.
void copy_sentence(char *to, const char *first, const char *second) noexcept;

/// The sentence of this thread, kept until the next failure.
void set_last_error(const char *sentence) noexcept;
const char *last_error() noexcept;

} // namespace plait::impl
