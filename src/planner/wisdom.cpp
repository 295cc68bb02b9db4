#include "src/planner/wisdom.h"

#include "src/core/status.h"
#include "src/desc/desc.h"
#include "src/planner/text_lines.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace plait::impl {

namespace {

constexpr std::string_view header = "plait-wisdom";
constexpr int version = 1;

bool is_time(double seconds) { return std::isfinite(seconds) && seconds > 0; }

/// Nothing else is ever looked up, and tokens come back in JSON.
bool is_token(std::string_view token) {
    try {
        return descriptor_from_token(token) != nullptr;
    } catch (const failure &) {
        return false;
    }
}

bool known(std::string_view token, std::string_view name, int revision) {
    const std::string family(token.substr(0, token.find(':')));
    for (const candidate &c : candidates_of(family))
        if (name == c.name) return revision == c.revision;
    return false;
}

/// A device in a line is one word.
bool is_word(std::string_view word) {
    const auto plain = [](char c) { return c > ' ' && c <= '~'; };
    return !word.empty() && std::all_of(word.begin(), word.end(), plain);
}

/// Throws unless some line is the header of a version that this library reads, and no line that of
/// a newer one: which lines follow which header is lost when files are merged. A text of blanks, as
/// of a file that is made before its first time, has no times yet.
void check_header(const std::vector<std::string_view> &lines) {
    bool headed = std::all_of(lines.begin(), lines.end(),
                              [](std::string_view line) { return trimmed(line).empty(); });
    for (size_t i = 0; i < lines.size(); ++i) {
        const int found = header_version(lines[i], header);
        if (found > version)
            fail(PLAIT_ERR_VERSION, "wisdom line ", i + 1, ": version ",
                 trimmed(trimmed(lines[i]).substr(header.size())),
                 " is newer than this library, which reads ", version);
        headed = headed || found != 0;
    }
    if (!headed)
        fail(PLAIT_ERR_INVALID_ARGUMENT, "wisdom line 1: the first line must be \"", header, ' ',
             version, '"');
}

} // namespace

bool wisdom::key::operator<(const key &o) const {
    return std::tie(token, fingerprint, candidate, revision) <
           std::tie(o.token, o.fingerprint, o.candidate, o.revision);
}

wisdom::loaded wisdom::load(std::string_view whole) {
    const std::vector<std::string_view> lines = split(whole, '\n');
    check_header(lines);
    loaded count;
    std::map<key, double> found;
    for (size_t i = 0; i < lines.size(); ++i) {
        const std::string_view line = trimmed(lines[i]);
        if (line.empty() || line.front() == '#' || header_version(line, header) != 0) continue;
        const bool torn = i + 1 == lines.size();
        const std::vector<std::string_view> column = split(line, '|');
        int revision = 0;
        double seconds = 0;
        if (torn || column.size() != 5 || !number_from(trimmed(column[3]), revision) ||
            !number_from(trimmed(column[4]), seconds) || !is_time(seconds) ||
            !is_word(trimmed(column[1])) ||
            !known(trimmed(column[0]), trimmed(column[2]), revision) ||
            !is_token(trimmed(column[0]))) {
            ++count.skipped;
            continue;
        }
        key k{std::string(trimmed(column[0])), std::string(trimmed(column[1])),
              std::string(trimmed(column[2])), revision};
        const auto [at, fresh] = found.emplace(std::move(k), seconds);
        if (!fresh && seconds < at->second) at->second = seconds;
        ++count.loaded;
    }

    const std::lock_guard<std::mutex> lock(mutex_);
    for (const auto &[k, seconds] : found) {
        const auto [at, fresh] = seconds_.emplace(k, seconds);
        if (!fresh && seconds < at->second) at->second = seconds;
    }
    return count;
}

std::string wisdom::save() const {
    std::string out = text(header, ' ', version, '\n');
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const auto &[k, seconds] : seconds_)
        out += text(k.token, " | ", k.fingerprint, " | ", k.candidate, " | ", k.revision, " | ",
                    seconds, '\n');
    return out;
}

void wisdom::clear() {
    const std::lock_guard<std::mutex> lock(mutex_);
    seconds_.clear();
}

void wisdom::record(const std::string &token, const std::string &fingerprint, const candidate &c,
                    double seconds) {
    if (!is_time(seconds)) return;
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto [at, fresh] = seconds_.emplace(key{token, fingerprint, c.name, c.revision}, seconds);
    if (!fresh && seconds < at->second) at->second = seconds;
}

std::optional<double> wisdom::find(const std::string &token, const std::string &fingerprint,
                                   const candidate &c) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (seconds_.empty()) return std::nullopt;
    const auto at = seconds_.find(key{token, fingerprint, c.name, c.revision});
    if (at == seconds_.end()) return std::nullopt;
    return at->second;
}

} // namespace plait::impl
