// Between C and C++: exceptions become a code and a sentence here and nowhere else.
#pragma once

#include "src/core/status.h"

#include <new>
#include <plait/plait.h>
#include <string>

namespace plait::impl {

/// Stores "function: sentence" for plait_last_error and logs it; needs no memory for the former.
/// A sentence that names a function already is left as it is, as with no function, "".
plait_status report(const char *function, plait_status code, const char *sentence) noexcept;

template <class Body> plait_status guard(const char *function, Body &&body) noexcept {
    try {
        body();
        return PLAIT_OK;
    } catch (const failure &f) {
        return report(function, f.code(), f.what());
    } catch (const std::bad_alloc &) {
        return report(function, PLAIT_ERR_OUT_OF_MEMORY, "host memory is exhausted");
    } catch (const std::exception &e) {
        return report(function, PLAIT_ERR_INTERNAL, e.what());
    } catch (...) {
        return report(function, PLAIT_ERR_INTERNAL, "an exception of unknown type");
    }
}

/// A required pointer argument.
inline void require(const void *pointer, const char *name) {
    if (!pointer) fail(PLAIT_ERR_INVALID_ARGUMENT, name, "=NULL: a pointer is required");
}

/// For functions that create: the handle is NULL unless `make` returns one.
template <class Handle, class Make>
plait_status guard_create(const char *function, Handle **out, const char *name,
                          Make &&make) noexcept {
    if (out) *out = nullptr;
    return guard(function, [&] {
        require(out, name);
        *out = make();
    });
}

/// The text-out protocol of plait.h.
void text_out(const std::string &what, char *buf, size_t cap, size_t *size);

void check_format(plait_format format);

} // namespace plait::impl
