#include "src/planner/profile.h"

#include "src/core/status.h"
#include "src/core/tables.h"
#include "src/planner/text_lines.h"

#include <algorithm>
#include <cmath>

namespace plait::impl {

namespace {

constexpr std::string_view header = "plait-profile";
constexpr int version = 1;

enum class least { zero, positive };

// Beyond any device there is, and so far from overflow that the planner's sums need not look.
constexpr double most_memory = 0x1p60;
constexpr double most_cache = 0x1p40;
constexpr double most_shared = 0x1p24;

/// Every key of the text, in order. `Profile` is const for writing.
template <class Profile, class Visit> void each_key(Profile &p, Visit &&visit) {
    visit("name", p.name, least::positive);
    visit("copy_bandwidth", p.copy_bandwidth, least::positive, 1e15);
    visit("launch_seconds", p.launch_seconds, least::zero, 1);
    visit("memory_bytes", p.memory_bytes, least::zero, most_memory);
    if (p.backend == PLAIT_CUDA) {
        visit("cc_major", p.cc_major, least::positive, 99);
        visit("cc_minor", p.cc_minor, least::zero, 9);
        visit("sms", p.sms, least::positive, 65536);
        visit("smem_per_block", p.smem_per_block, least::positive, most_shared);
        visit("smem_per_sm", p.smem_per_sm, least::positive, most_shared);
        visit("threads_per_sm", p.threads_per_sm, least::positive, 65536);
        visit("registers_per_sm", p.registers_per_sm, least::positive, 1 << 24);
        visit("l2_bytes", p.l2_bytes, least::zero, most_cache);
        visit("f32_per_second", p.f32_per_second, least::positive, 1e18);
        visit("f64_per_second", p.f64_per_second, least::positive, 1e18);
        visit("built", p.built, least::zero);
    } else {
        visit("isa", p.isa, least::positive);
        visit("cores", p.cores, least::positive, 65536);
        visit("threads", p.threads, least::positive, 4096);
        visit("l1_bytes", p.l1_bytes, least::positive, most_cache);
        visit("l2_core_bytes", p.l2_core_bytes, least::positive, most_cache);
        visit("l3_bytes", p.l3_bytes, least::zero, most_cache);
    }
}

struct writer {
    std::string &out;

    template <class T> void operator()(const char *key, const T &value, least, double = 0) {
        out += text(key, ' ', value, '\n');
    }
    void operator()(const char *key, const std::vector<int> &list, least) {
        out += key;
        if (list.empty()) out += " none";
        for (const int item : list) out += text(' ', item);
        out += '\n';
    }
};

struct entry {
    std::string_view key, value;
    int line;
    bool used = false;
};

struct reader {
    std::vector<entry> &entries;

    [[noreturn]] static void refuse(const entry &e, std::string_view rule) {
        fail(PLAIT_ERR_INVALID_ARGUMENT, "profile line ", e.line, ": ", e.key, "=", e.value, ' ',
             rule);
    }

    const entry &take(std::string_view key) {
        entry *found = nullptr;
        for (entry &e : entries) {
            if (e.key != key) continue;
            if (found)
                fail(PLAIT_ERR_INVALID_ARGUMENT, "profile line ", e.line, ": ", key,
                     " was given in line ", found->line);
            found = &e;
        }
        if (!found) {
            const int end = entries.empty() ? 1 : entries.back().line;
            fail(PLAIT_ERR_INVALID_ARGUMENT, "profile line ", end, ": the text ends without ", key);
        }
        found->used = true;
        return *found;
    }

    void operator()(const char *key, std::string &value, least) {
        const entry &e = take(key);
        if (e.value.empty()) refuse(e, "is empty");
        value = e.value;
    }
    template <class T> void operator()(const char *key, T &value, least low, double most) {
        const entry &e = take(key);
        if (!number_from(e.value, value)) refuse(e, "is not a number");
        if (!std::isfinite(static_cast<double>(value))) refuse(e, "is not finite");
        if (value < T{0}) refuse(e, "is negative");
        if (low == least::positive && !(value > T{0})) refuse(e, "must be above 0");
        if (static_cast<double>(value) > most) refuse(e, text("is above ", most));
    }
    void operator()(const char *key, std::vector<int> &list, least) {
        const entry &e = take(key);
        list.clear();
        if (e.value == "none") return;
        for (const std::string_view word : split(e.value, ' ')) {
            if (word.empty()) continue;
            int arch = 0;
            if (!number_from(word, arch) || arch <= 0 || arch > 999)
                refuse(e, "is not a list of architectures such as 80 90");
            list.push_back(arch);
        }
        if (list.empty()) refuse(e, "is empty; write none");
    }
};

std::vector<entry> read_entries(std::string_view whole) {
    std::vector<entry> entries;
    int line_number = 0;
    const std::vector<std::string_view> lines = split(whole, '\n');
    for (const std::string_view raw : lines) {
        ++line_number;
        const std::string_view line = trimmed(raw);
        if (line_number == 1) {
            const int found = header_version(line, header);
            if (found == 0)
                fail(PLAIT_ERR_INVALID_ARGUMENT, "profile line 1: the first line must be \"",
                     header, ' ', version, '"');
            if (found > version)
                fail(PLAIT_ERR_VERSION, "profile line 1: version ",
                     trimmed(line.substr(header.size())),
                     " is newer than this library, which reads ", version);
            continue;
        }
        if (line.empty() || line.front() == '#') continue;
        // What is left of a number without its end may still read as one.
        if (line_number == static_cast<int>(lines.size()))
            fail(PLAIT_ERR_INVALID_ARGUMENT, "profile line ", line_number,
                 ": the text ends within this line");
        // Names end up in fingerprints and in JSON.
        for (const char c : line)
            if (c != '\t' && (c < ' ' || c > '~'))
                fail(PLAIT_ERR_INVALID_ARGUMENT, "profile line ", line_number, ": byte 0x",
                     hex(static_cast<unsigned char>(c)), " is not printable ASCII");
        const size_t blank = std::min(line.find(' '), line.size());
        entries.push_back({line.substr(0, blank), trimmed(line.substr(blank)), line_number});
    }
    return entries;
}

/// A fingerprint is one word in a line with '|' between the columns.
std::string one_word(std::string_view name) {
    std::string word;
    for (const char c : name) {
        const bool plain = c > ' ' && c < 127 && c != '|' && c != '/';
        if (plain)
            word += c;
        else if (!word.empty() && word.back() != '_')
            word += '_';
    }
    while (!word.empty() && word.back() == '_') word.pop_back();
    return word.empty() ? "unnamed" : word;
}

} // namespace

bool waits_for_predecessors(const profile &p) {
    return p.backend == PLAIT_CUDA && p.runs_code_from(90);
}

bool profile::runs_code_from(int arch) const {
    const int have = cc_major * 10 + cc_minor;
    for (const int one : built)
        if (one >= arch && one <= have) return true;
    return false;
}

std::string profile::fingerprint() const {
    if (backend == PLAIT_CUDA)
        return text("cuda/", cc_major, '.', cc_minor, '/', sms, "sm/", one_word(name));
    std::string out = text("cpu/", isa, '/', cores, 'c');
    if (threads != cores) out += text('/', threads, 't');
    return text(out, '/', one_word(name));
}

std::string profile::generic_fingerprint() const {
    return backend == PLAIT_CPU ? text("cpu/", isa, "/generic") : "";
}

std::string profile::to_text() const {
    std::string out = text(header, ' ', version, "\nbackend ", backend_name(backend), '\n');
    each_key(*this, writer{out});
    return out;
}

profile profile_from_text(std::string_view whole) {
    std::vector<entry> entries = read_entries(whole);
    reader read{entries};
    profile p;
    const entry &backend = read.take("backend");
    if (backend.value == "cpu")
        p.backend = PLAIT_CPU;
    else if (backend.value == "cuda")
        p.backend = PLAIT_CUDA;
    else
        reader::refuse(backend, "is neither cpu nor cuda");
    // Unknown keys first: a misspelt key is a better sentence than the missing one it stands for.
    // An empty value is read by nobody, so a scratch copy finds the names.
    std::string known;
    each_key(p, [&](const char *key, auto &, least, double = 0) { known += text(' ', key, ' '); });
    for (const entry &e : entries)
        if (!e.used && known.find(text(' ', e.key, ' ')) == std::string::npos)
            fail(PLAIT_ERR_INVALID_ARGUMENT, "profile line ", e.line, ": ", e.key,
                 " is no key of a ", backend.value, " profile");
    each_key(p, read);
    for (const entry &e : entries)
        if (e.key == "isa" && e.value != one_word(e.value))
            reader::refuse(e, "must be one word without '|' and '/'");
        else if (e.key == "smem_per_sm" && p.smem_per_sm < p.smem_per_block)
            reader::refuse(e, text("is below smem_per_block=", p.smem_per_block));
    return p;
}

} // namespace plait::impl
