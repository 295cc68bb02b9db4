#include "src/core/status.h"

#include <cstring>

namespace plait::impl {

namespace {
// Fixed size: storing a sentence must work when memory has run out. Longer ones are cut.
thread_local char sentence_of_thread[1024] = "";
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

void set_last_error(const char *sentence) noexcept {
    std::strncpy(sentence_of_thread, sentence, sizeof sentence_of_thread - 1);
    sentence_of_thread[sizeof sentence_of_thread - 1] = '\0';
}

const char *last_error() noexcept { return sentence_of_thread; }

} // namespace plait::impl
