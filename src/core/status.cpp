#include "src/core/status.h"

#include <cstring>
#include <initializer_list>

namespace plait::impl {

namespace {
// Fixed size: storing a sentence must work when memory has run out.
thread_local char sentence_of_thread[longest_sentence] = "";
} // namespace

const char *status_name(plait_status status) {
    switch (status) {
    case PLAIT_OK: return "ok";
    case PLAIT_ERR_INVALID_ARGUMENT: return "invalid argument";
    case PLAIT_ERR_INVALID_DESC: return "invalid descriptor";
    case PLAIT_ERR_NOT_SUPPORTED: return "not supported";
    case PLAIT_ERR_NO_WISDOM: return "no wisdom";
    case PLAIT_ERR_WORKSPACE: return "workspace";
    case PLAIT_ERR_POINTER: return "pointer";
    case PLAIT_ERR_OUT_OF_MEMORY: return "out of memory";
    case PLAIT_ERR_NO_DEVICE: return "no device";
    case PLAIT_ERR_DEVICE: return "device";
    case PLAIT_ERR_CAPTURING: return "capturing";
    case PLAIT_ERR_IO: return "io";
    case PLAIT_ERR_VERSION: return "version";
    case PLAIT_ERR_BUFFER_TOO_SMALL: return "buffer too small";
    case PLAIT_ERR_INTERNAL: return "internal";
    }
    return "unknown status";
}

void copy_sentence(char *to, const char *first, const char *second) noexcept {
    size_t at = 0;
    for (const char *part : {first, second})
        for (; *part != '\0'; ++part) {
            if (at + 1 == longest_sentence) {
                std::memcpy(to + at - 3, "...", 4);
                return;
            }
            to[at++] = *part;
        }
    to[at] = '\0';
}

void set_last_error(const char *sentence) noexcept {
    copy_sentence(sentence_of_thread, sentence, "");
}

const char *last_error() noexcept { return sentence_of_thread; }

} // namespace plait::impl
