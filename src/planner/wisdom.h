// Wisdom: measured seconds by (token, device, candidate, revision). Measurements, not decisions.
//
//   plait-wisdom 1
//   <token> | <device> | <candidate> | <revision> | <seconds>
#pragma once

#include "src/planner/candidate.h"

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace plait::impl {

class wisdom {
public:
    struct loaded {
        int loaded = 0;
        int skipped = 0; ///< unknown candidate, other revision, ill-formed line or token
    };
    /// Per line: a torn line, one of an unknown candidate and one with a token that does not parse
    /// are skipped and counted; lines of all devices are kept, find() tells them apart. A newer
    /// header is VERSION, text without the header is INVALID_ARGUMENT with the line number, unless
    /// there is no text at all. All or nothing on a throw. The header may
    /// stand in any line, since `sort -u` merges files. A last line without a newline is torn: what
    /// is left of its number may still read as one.
    loaded load(std::string_view text);
    std::string save() const; ///< header and sorted lines
    void clear();
    /// Keeps the smaller time. A time that is not finite and positive is not recorded.
    void record(const std::string &token, const std::string &fingerprint, const candidate &c,
                double seconds);
    std::optional<double> find(const std::string &token, const std::string &fingerprint,
                               const candidate &c) const;

private:
    struct key {
        std::string token, fingerprint, candidate;
        int revision;
        bool operator<(const key &o) const;
    };
    mutable std::mutex mutex_;
    std::map<key, double> seconds_;
};

} // namespace plait::impl
