#include "src/core/log.h"

#include "src/core/env.h"
#include "src/core/status.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <mutex>
#include <new>

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

/// What the environment asks for and cannot have goes to stderr, where it would be looked for.
void complain(const std::string &sentence) {
    const std::string line = text("plait: ", sentence, '\n');
    std::fwrite(line.data(), 1, line.size(), stderr);
}

int bits_from_environment() {
    const std::string list = environment("PLAIT_LOG");
    int bits = 0;
    for (size_t at = 0; at <= list.size();) {
        const size_t comma = std::min(list.find(',', at), list.size());
        const std::string word = list.substr(at, comma - at);
        const auto *row = std::find_if(std::begin(names), std::end(names),
                                       [&](const name_of_bit &r) { return word == r.name; });
        if (row != std::end(names))
            bits |= row->bit;
        else if (!word.empty())
            complain(text("PLAIT_LOG=", list, ": \"", word,
                          "\" is none of error, warn, plan, dispatch, exec"));
        at = comma + 1;
    }
    return bits;
}

struct sink {
    std::mutex mutex;
    std::atomic<int> bits{0};
    plait_log_fn fn = nullptr;
    void *user = nullptr;
    int from_environment; ///< bits; read and judged once
    bool lost_file = false;

    sink() : from_environment(bits_from_environment()) { bits = from_environment; }

    /// stderr instead of a file that cannot be written, and why, once.
    std::FILE *open() {
        const std::string path = environment("PLAIT_LOG_FILE");
        std::FILE *file = path.empty() || lost_file ? nullptr : std::fopen(path.c_str(), "ae");
        if (!file && !path.empty() && !lost_file) {
            lost_file = true;
            complain(text("PLAIT_LOG_FILE=", path, ": cannot be written: ", std::strerror(errno),
                          "; the log goes to stderr"));
        }
        return file ? file : stderr;
    }
};

// Never destroyed: a thread may log while static objects go away. Not from the heap: what is left
// of it when memory runs out is for the sentence about that.
sink &the_sink() {
    alignas(sink) static unsigned char place[sizeof(sink)];
    static sink *instance = new (place) sink;
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
        std::FILE *file = s.open();
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
    s.bits = fn ? bits : s.from_environment;
}

} // namespace plait::impl
