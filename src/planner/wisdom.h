// Wisdom: measured seconds by (token, device, candidate, revision). Measurements, not decisions.
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
        int skipped = 0; ///< unknown candidate, other revision, other device
    };
    /// Per line: a torn or foreign line is skipped and counted; a newer header is VERSION, text
    /// without the header is INVALID_ARGUMENT with the line number. All or nothing on a throw.
    loaded load(std::string_view text, const std::string &fingerprint);
    std::string save() const; ///< header and sorted lines
    void clear();
    void record(const std::string &token, const std::string &fingerprint, const candidate &c,
                double seconds); ///< keeps the smaller time
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
