// What the commands print.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace plait::cli {

/// Columns on stdout: the first is left-aligned, the others to the right. Widths are known
/// beforehand so that each row appears as soon as it is there.
class table {
public:
    struct column {
        std::string title;
        int width;
        bool left = false;
    };
    explicit table(std::vector<column> columns) : columns_(std::move(columns)) {}
    void head() const;
    void row(const std::vector<std::string> &cells) const;

private:
    std::vector<column> columns_;
};

std::string number(double value, int digits = 3); ///< significant digits: "0.0123", "1.23e-09"
std::string fixed(double value, int decimals);    ///< "1.03"; "-" when not finite
std::string readable_seconds(double seconds);     ///< "1.25 ms"

/// A line on stderr that is rewritten while work lasts: only on a terminal, only after a second.
class progress {
public:
    progress(std::string what, int64_t total);
    ~progress();
    void at(int64_t done);
    void what(std::string text) { what_ = std::move(text); }

private:
    std::string what_;
    int64_t total_;
    bool terminal_, shown_ = false;
    std::chrono::steady_clock::time_point begin_, last_;
};

} // namespace plait::cli
