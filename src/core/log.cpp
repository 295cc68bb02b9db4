#include "src/core/log.h"

#include "src/core/env.h"
#include "src/core/status.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <mutex>

namespace plait::impl {

namespace {

struct name_of_bit {
    int bit;
    const char *name;
};
constexpr name_of_bit names[] = {
    {PLAIT_LOG_ERROR, "error"},       {PLAIT_LOG_WARN, "warn"}, {PLAIT_LOG_PLAN, "plan"},
    {PLAIT_LOG_DISPATCH, "dispatch"}, {PLAIT_LOG_EXEC, "exec"},
};

int bits_from_list(const std::string &list) {
    int bits = 0;
    for (size_t at = 0; at <= list.size();) {
        const size_t comma = std::min(list.find(',', at), list.size());
        const std::string word = list.substr(at, comma - at);
        for (const name_of_bit &row : names)
            if (word == row.name) bits |= row.bit;
        at = comma + 1;
    }
    return bits;
}

struct sink {
    std::mutex mutex;
    std::atomic<int> bits{0};
    plait_log_fn fn = nullptr;
    void *user = nullptr;

    sink() { bits = bits_from_list(environment("PLAIT_LOG")); }
};

// Never destroyed: a thread may log while static objects go away.
sink &the_sink() {
    static sink *instance = new sink;
    return *instance;
}

const char *name_of(int bit) {
    for (const name_of_bit &row : names)
        if (row.bit == bit) return row.name;
    return "log";
}

} // namespace

bool log_wants(int bit) noexcept {
    return (the_sink().bits.load(std::memory_order_relaxed) & bit) != 0;
}

void log_line(int bit, const std::string &line) noexcept {
    if (!log_wants(bit)) return;
    sink &s = the_sink();
    try {
        const std::lock_guard<std::mutex> lock(s.mutex);
        if (s.fn) {
            s.fn(bit, line.c_str(), s.user);
            return;
        }
        const std::string whole = text("plait: ", name_of(bit), ": ", line, '\n');
        const std::string path = environment("PLAIT_LOG_FILE");
        std::FILE *file = path.empty() ? stderr : std::fopen(path.c_str(), "a");
        if (!file) return;
        std::fwrite(whole.data(), 1, whole.size(), file);
        if (file != stderr) std::fclose(file);
    } catch (...) { // a log must never change what the library does
    }
}

void set_log(int bits, plait_log_fn fn, void *user) {
    sink &s = the_sink();
    const std::lock_guard<std::mutex> lock(s.mutex);
    s.fn = fn;
    s.user = user;
    s.bits = fn ? bits : bits_from_list(environment("PLAIT_LOG"));
}

} // namespace plait::impl
