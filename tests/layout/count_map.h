// How often each of n places is named: a map of threads to places takes every one exactly once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace plait_test {

struct count_map {
    explicit count_map(int64_t n) : seen(static_cast<size_t>(n), 0) {}
    void mark(int64_t i) {
        if (i < 0 || i >= static_cast<int64_t>(seen.size()))
            outside = true;
        else
            ++seen[static_cast<size_t>(i)];
    }
    bool each_once() const {
        if (outside) return false;
        for (const int s : seen)
            if (s != 1) return false;
        return true;
    }
    std::vector<int> seen;
    bool outside = false;
};

} // namespace plait_test
