// plait wisdom: files of measured times.
#include "src/cli/case/output.h"
#include "src/cli/commands.h"
#include "src/cli/options.h"
#include "src/cli/text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <sstream>
#include <sys/stat.h>

namespace plait::cli {
namespace {

using cases::failure;

const char header[] = "plait-wisdom";
constexpr int known_version = 1;

struct entry {
    std::string key; ///< token | device | candidate | revision
    std::vector<std::string> columns;
    double seconds;
};

struct wisdom_file {
    std::vector<entry> entries;
    int torn = 0; ///< lines that the library would skip on every device
};

std::string trimmed(const std::string &text) {
    const size_t begin = text.find_first_not_of(" \t\r");
    if (begin == std::string::npos) return "";
    return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

/// The whole text is one number, whatever the locale: as the library reads it.
template <class T> bool number_from(const std::string &text, T *value) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
    return error == std::errc() && end == text.data() + text.size();
}

bool read_entry(const std::string &line, entry *e) {
    e->columns.clear();
    for (size_t begin = 0, bar = 0; bar != line.npos; begin = bar + 1) {
        bar = line.find('|', begin);
        e->columns.push_back(trimmed(line.substr(begin, bar == line.npos ? bar : bar - begin)));
    }
    if (e->columns.size() != 5) return false;
    for (const std::string &c : e->columns)
        if (c.empty() ||
            std::any_of(c.begin(), c.end(), [](char x) { return x <= ' ' || x > '~'; }))
            return false;
    if (e->columns[0].find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789:.+-=@_") !=
        std::string::npos)
        return false;
    int revision = 0;
    if (!number_from(e->columns[3], &revision) || !number_from(e->columns[4], &e->seconds) ||
        !std::isfinite(e->seconds) || e->seconds <= 0)
        return false;
    e->key = e->columns[0] + " | " + e->columns[1] + " | " + e->columns[2] + " | " + e->columns[3];
    return true;
}

/// The digits of the line "plait-wisdom 1", or "".
std::string version_in(const std::string &line) {
    const size_t word = sizeof header - 1;
    if (line.compare(0, word, header) != 0 || line.size() == word || line[word] != ' ') return "";
    const std::string digits = trimmed(line.substr(word));
    const bool zero = digits.find_first_not_of('0') == digits.npos;
    return zero || digits.find_first_not_of("0123456789") != digits.npos ? "" : digits;
}

/// As text, not through a context: a context drops the lines of candidates that it does not know.
wisdom_file wisdom_of(const std::string &text, const std::string &path) {
    std::istringstream lines(text);
    wisdom_file file;
    // A file that is made before its first time, as by mktemp, has none.
    bool headed = text.find_first_not_of(" \t\r\n") == text.npos;
    for (std::string line; std::getline(lines, line);) {
        line = trimmed(line);
        if (line.empty() || line[0] == '#') continue;
        if (const std::string digits = version_in(line); !digits.empty()) {
            int version = 0;
            if (!number_from(digits, &version) || version > known_version)
                throw failure(PLAIT_ERR_VERSION, path + ": has version " + digits +
                                                     " of the format; this program reads " +
                                                     std::to_string(known_version));
            headed = true;
            continue;
        }
        entry e;
        // What is left of the number in a line without an end may still read as one.
        const bool whole = !lines.eof();
        if (whole && read_entry(line, &e))
            file.entries.push_back(e);
        else
            ++file.torn;
    }
    if (!headed)
        throw failure(PLAIT_ERR_IO,
                      path + ": is no wisdom file: the line \"plait-wisdom 1\" is missing");
    return file;
}

wisdom_file read_wisdom(const std::string &path) { return wisdom_of(read_text(path), path); }

/// Lines of several files by key, the faster of equal ones.
class merged {
public:
    void add(const wisdom_file &file) {
        for (const entry &e : file.entries) {
            const auto [at, fresh] = best_.emplace(e.key, e);
            if (!fresh && e.seconds < at->second.seconds) at->second = e;
        }
    }
    size_t size() const { return best_.size(); }
    std::string text() const {
        std::string out = std::string(header) + " " + std::to_string(known_version) + "\n";
        for (const auto &[key, e] : best_) out += key + " | " + e.columns[4] + "\n";
        return out;
    }

private:
    std::map<std::string, entry> best_;
};

/// As lines of any CPU with the same instructions: "cpu/AVX3/2c/X" becomes "cpu/AVX3/generic".
void make_generic(wisdom_file &file, const std::string &device) {
    const std::string generic = device.substr(0, device.find('/', 4)) + "/generic";
    std::vector<entry> kept;
    for (entry &e : file.entries) {
        if (e.columns[1] != device) continue;
        e.columns[1] = generic;
        e.key = e.columns[0] + " | " + generic + " | " + e.columns[2] + " | " + e.columns[3];
        kept.push_back(std::move(e));
    }
    file.entries = std::move(kept);
}

/// What stands in the file that is to be written. Another kind of file is refused.
merged written_before(const std::string &path) {
    merged out;
    struct stat facts {};
    if (stat(path.c_str(), &facts) == 0 && S_ISREG(facts.st_mode)) out.add(read_wisdom(path));
    return out;
}

} // namespace

int make_wisdom(const wisdom_arguments &a) {
    std::vector<std::string> tokens = a.tokens;
    if (!a.suite.empty())
        for (std::string &t : read_suite(a.suite)) tokens.push_back(std::move(t));
    if (tokens.empty())
        throw failure(PLAIT_ERR_INVALID_ARGUMENT, "wisdom make: give tokens or --suite FILE");
    if (a.common.rigor == "estimate")
        throw failure(PLAIT_ERR_INVALID_ARGUMENT,
                      "wisdom make: --rigor estimate measures nothing; take measure or exhaustive");
    int bad = 0;
    tokens = well_formed(tokens, &bad);
    if (tokens.empty()) return bad;
    check_writable(a.out);
    written_before(a.out); // another kind of file is refused before the work
    const session s(a.common);
    if (a.generic && s.fingerprint.rfind("cpu/", 0) != 0)
        throw failure(PLAIT_ERR_INVALID_ARGUMENT,
                      "wisdom make: --generic is for the CPU; the device is " + s.fingerprint);
    s.open(); // a profile cannot measure: say so before planning
    const table columns({{"token", 36, true}, {"candidate", 28, true}, {"median", 12}});
    columns.head();
    progress line("measuring", static_cast<int64_t>(tokens.size()));
    int64_t begun = 0, planned = 0;
    const int failed = for_each_token(tokens, [&](const std::string &token) {
        line.at(begun++);
        const cases::plan_ptr plan =
            cases::make_plan(s.context.get(), cases::make_desc(token).get(), s.preferences.get());
        double seconds = 0;
        cases::check(plait_plan_get_f64(plan.get(), PLAIT_PLAN_SECONDS_MEASURED, &seconds));
        ++planned;
        columns.row({token, cases::candidate_of(plan.get()),
                     seconds >= 0 ? readable_seconds(seconds) : "-"});
        return 0;
    });
    const int code = bad != 0 ? bad : failed;
    // What was measured is kept, whatever the other tokens did.
    if (planned == 0) return code;
    const std::string now = cases::text_of([&](char *buf, size_t cap, size_t *size) {
        return plait_wisdom_save(s.context.get(), buf, cap, size);
    });
    // Others may have written while this one measured.
    const cases::file_lock lock(a.out);
    merged lines = written_before(a.out);
    wisdom_file learned = wisdom_of(now, "the context");
    if (a.generic) make_generic(learned, s.fingerprint);
    lines.add(learned);
    write_text(a.out, lines.text());
    return code;
}

int show_wisdom(const wisdom_arguments &a) {
    const std::string &path = a.files.front();
    const wisdom_file file = read_wisdom(path);
    if (a.json) {
        for (const entry &e : file.entries) {
            nlohmann::ordered_json j;
            j["token"] = e.columns[0];
            j["device"] = e.columns[1];
            j["candidate"] = e.columns[2];
            j["revision"] = std::atoi(e.columns[3].c_str());
            j["seconds"] = e.seconds;
            std::printf("%s\n", j.dump().c_str());
        }
    } else {
        const table columns({{"token", 36, true},
                             {"device", 30, true},
                             {"candidate", 28, true},
                             {"rev", 3},
                             {"time", 10}});
        columns.head();
        for (const entry &e : file.entries)
            columns.row({e.columns[0], e.columns[1], e.columns[2], e.columns[3],
                         readable_seconds(e.seconds)});
    }
    if (file.torn)
        std::fprintf(stderr, "plait: %s: %d torn lines were skipped\n", path.c_str(), file.torn);
    return 0;
}

int merge_wisdom(const wisdom_arguments &a) {
    check_writable(a.out);
    const cases::file_lock lock(a.out); // which may be one of the files
    merged lines;
    int torn = 0;
    for (const std::string &path : a.files) {
        const wisdom_file file = read_wisdom(path);
        torn += file.torn;
        lines.add(file);
    }
    write_text(a.out, lines.text());
    std::printf("%zu lines of %zu files in %s", lines.size(), a.files.size(), a.out.c_str());
    if (torn) std::printf(", %d torn lines left out", torn);
    std::printf("\n");
    return 0;
}

} // namespace plait::cli
