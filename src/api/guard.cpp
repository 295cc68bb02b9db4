#include "src/api/guard.h"

#include "src/core/log.h"

#include <cstdio>
#include <cstring>

namespace plait::impl {

plait_status report(const char *function, plait_status code, const char *sentence) noexcept {
    char whole[longest_sentence];
    const bool named = std::strncmp(sentence, "plait_", 6) == 0;
    char begin[64] = "";
    if (!named && *function != '\0') std::snprintf(begin, sizeof begin, "%s: ", function);
    copy_sentence(whole, begin, sentence);
    set_last_error(whole);
    if (log_wants(PLAIT_LOG_ERROR)) {
        try {
            log_line(PLAIT_LOG_ERROR, text(status_name(code), ": ", whole));
        } catch (...) { // no memory for the line: the caller still gets code and sentence
        }
    }
    return code;
}

void text_out(const std::string &what, char *buf, size_t cap, size_t *size) {
    const size_t needed = what.size() + 1;
    if (!buf) require(size, "size");
    if (size) *size = needed;
    if (!buf) return;
    if (cap < needed)
        fail(PLAIT_ERR_BUFFER_TOO_SMALL, "cap=", cap, " is less than the ", needed,
             " bytes of the text");
    std::memcpy(buf, what.c_str(), needed);
}

void check_format(plait_format format) {
    if (format != PLAIT_TEXT && format != PLAIT_JSON)
        fail(PLAIT_ERR_INVALID_ARGUMENT, "format=", format, " is no plait_format");
}

} // namespace plait::impl
