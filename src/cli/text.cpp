#include "src/cli/text.h"

#include <cmath>
#include <cstdio>
#include <unistd.h>

namespace plait::cli {

void table::head() const {
    std::vector<std::string> titles;
    for (const column &c : columns_) titles.push_back(c.title);
    row(titles);
}

void table::row(const std::vector<std::string> &cells) const {
    std::string line;
    for (size_t i = 0; i < columns_.size() && i < cells.size(); ++i) {
        const column &c = columns_[i];
        const std::string &cell = cells[i];
        const size_t width = static_cast<size_t>(c.width);
        const std::string pad(cell.size() < width ? width - cell.size() : 0, ' ');
        line += (i ? "  " : "") + (c.left ? cell + pad : pad + cell);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    std::printf("%s\n", line.c_str());
    std::fflush(stdout);
}

std::string number(double value, int digits) {
    char text[40];
    std::snprintf(text, sizeof text, "%.*g", digits, value);
    return text;
}

std::string fixed(double value, int decimals) {
    if (!std::isfinite(value)) return "-";
    char text[64];
    std::snprintf(text, sizeof text, "%.*f", decimals, value);
    return text;
}

std::string readable_seconds(double seconds) {
    if (seconds < 1e-3) return number(seconds * 1e6, 4) + " us";
    if (seconds < 1) return number(seconds * 1e3, 4) + " ms";
    return number(seconds, 4) + " s";
}

progress::progress(std::string what, int64_t total)
    : what_(std::move(what)), total_(total), terminal_(isatty(STDERR_FILENO) == 1),
      begin_(std::chrono::steady_clock::now()), last_(begin_) {}

progress::~progress() {
    if (shown_) std::fprintf(stderr, "\r\033[K"); // the line was for the time of the work only
}

void progress::at(int64_t done) {
    if (!terminal_) return;
    const auto now = std::chrono::steady_clock::now();
    using seconds = std::chrono::duration<double>;
    if (seconds(now - begin_).count() < 1 || (shown_ && seconds(now - last_).count() < 0.1)) return;
    last_ = now;
    shown_ = true;
    const double share = total_ > 0 ? static_cast<double>(done) / static_cast<double>(total_) : 0;
    std::fprintf(stderr, "\r\033[K%s: %.0f %%", what_.c_str(), 100 * share);
    std::fflush(stderr);
}

} // namespace plait::cli
