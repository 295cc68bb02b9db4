#include "src/cli/options.h"

#include "src/cli/case/output.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <sstream>

namespace plait::cli {

using cases::check;
using cases::failure;

namespace {

plait_backend backend_of(const options &o) {
    if (o.backend == "cuda") return PLAIT_CUDA;
    if (o.backend == "cpu") return PLAIT_CPU;
    int count = 0;
    check(plait_device_count(PLAIT_CUDA, &count));
    return count > 0 ? PLAIT_CUDA : PLAIT_CPU;
}

cases::pref_ptr make_preferences(const options &o, const std::string &candidates) {
    cases::pref_ptr pref = cases::make_pref(candidates);
    const plait_rigor rigor = o.rigor == "exhaustive" ? PLAIT_EXHAUSTIVE
                              : o.rigor == "measure"  ? PLAIT_MEASURE
                                                      : PLAIT_ESTIMATE;
    check(plait_pref_set_rigor(pref.get(), rigor));
    if (o.wisdom_only) check(plait_pref_set_wisdom_only(pref.get(), 1));
    const plait_math math = o.math == "f32"    ? PLAIT_MATH_F32
                            : o.math == "tf32" ? PLAIT_MATH_TF32
                                               : PLAIT_MATH_DEFAULT;
    check(plait_pref_set_math(pref.get(), math));
    if (o.deterministic) check(plait_pref_set_determinism(pref.get(), PLAIT_RUN_TO_RUN));
    if (o.workspace_limit)
        check(plait_pref_set_workspace_limit(pref.get(), static_cast<size_t>(*o.workspace_limit)));
    if (o.time_limit) check(plait_pref_set_time_limit(pref.get(), *o.time_limit));
    return pref;
}

/// The value of "key value" in a profile, or "".
std::string profile_value(const std::string &profile, const std::string &key) {
    std::istringstream lines(profile);
    for (std::string line; std::getline(lines, line);)
        if (line.compare(0, key.size() + 1, key + " ") == 0) return line.substr(key.size() + 1);
    return "";
}

/// No line of the log while it lives.
struct quiet {
    quiet() {
        plait_set_log(
            0, [](int, const char *, void *) {}, nullptr);
    }
    ~quiet() { plait_set_log(0, nullptr, nullptr); }
};

/// The library prints the fingerprint of a context only as part of other texts. This problem is
/// nobody's: the log is for those that were asked for.
std::string fingerprint_of(const plait_context *ctx) {
    const quiet here;
    const cases::desc_ptr desc = cases::make_desc("wht:f32:n2");
    const std::string text = cases::text_of([&](char *buf, size_t cap, size_t *size) {
        return plait_candidates_print(ctx, desc.get(), nullptr, PLAIT_JSON, buf, cap, size);
    });
    return nlohmann::json::parse(text).at("device").get<std::string>();
}

} // namespace

session::session(const options &o)
    : backend(PLAIT_CPU), threads(0), from_profile(!o.profile.empty()), options_(o) {
    if (from_profile) {
        const std::string profile = read_text(o.profile);
        if (profile.find('\0') != profile.npos) // C would read what stands before it
            throw failure(PLAIT_ERR_INVALID_ARGUMENT,
                          o.profile + ": has a NUL byte; it is no text");
        plait_context *ctx = nullptr;
        try {
            check(plait_context_create_from_profile(&ctx, profile.c_str()));
        } catch (const failure &f) {
            throw failure(f.status, o.profile + ": " + f.what());
        }
        context.reset(ctx);
        // The library prints one blank between key and value; whoever wrote the file may differ.
        const std::string said = profile_value(cases::profile_of(ctx), "backend");
        backend = said == "cuda" ? PLAIT_CUDA : PLAIT_CPU;
        if (o.threads > 0 && backend == PLAIT_CUDA)
            throw failure(PLAIT_ERR_INVALID_ARGUMENT,
                          "--threads is for the CPU backend; " + o.profile + " describes a GPU");
    } else {
        backend = backend_of(o);
        context = cases::make_context(backend, o.device.value_or(0));
    }
    if (o.threads > 0 && backend == PLAIT_CPU)
        check(plait_context_set_threads(context.get(), o.threads));
    for (const std::string &path : o.wisdom) {
        int loaded = 0, skipped = 0;
        const plait_status status =
            plait_wisdom_load_file(context.get(), path.c_str(), &loaded, &skipped);
        if (status != PLAIT_OK) {
            std::string sentence = plait_last_error();
            if (sentence.find(path) == std::string::npos) sentence = path + ": " + sentence;
            throw failure(status, sentence);
        }
    }
    preferences = make_preferences(o, o.candidates);
    fingerprint = fingerprint_of(context.get());
    if (backend == PLAIT_CPU) {
        const std::string said = profile_value(cases::profile_of(context.get()), "threads");
        threads = std::max(1, std::atoi(said.c_str()));
    }
}

cases::pref_ptr session::preferences_for(const std::string &candidates) const {
    return make_preferences(options_, candidates);
}

std::unique_ptr<cases::device> session::open() const {
    if (from_profile)
        throw failure(PLAIT_ERR_NO_DEVICE,
                      options_.profile + " describes a device that is not here; nothing can run");
    return cases::open_device(backend, options_.device.value_or(0), threads);
}

std::string read_text(const std::string &path) {
    struct closer {
        void operator()(std::FILE *file) const { std::fclose(file); }
    };
    const std::unique_ptr<std::FILE, closer> file(std::fopen(path.c_str(), "rb"));
    if (!file) throw failure(PLAIT_ERR_IO, path + ": " + std::strerror(errno));
    std::string text;
    char block[1 << 14];
    for (size_t got = 0; (got = std::fread(block, 1, sizeof block, file.get())) > 0;)
        text.append(block, got);
    if (std::ferror(file.get())) throw failure(PLAIT_ERR_IO, path + ": " + std::strerror(errno));
    return text;
}

void write_text(const std::string &path, const std::string &text) {
    cases::output_file file(path);
    file.write(text.data(), text.size());
    file.commit();
}

void check_writable(const std::string &path) { cases::check_output(path); }

std::vector<std::string> read_suite(const std::string &path) {
    const std::string text = read_text(path);
    if (text.find('\0') != text.npos)
        throw failure(PLAIT_ERR_IO, path + ": has a NUL byte; it is no text");
    const std::string mark = "\xef\xbb\xbf";
    std::istringstream lines(text.compare(0, mark.size(), mark) == 0 ? text.substr(mark.size())
                                                                     : text);
    std::vector<std::string> tokens;
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line.substr(0, line.find('#')));
        for (std::string word; words >> word;) tokens.push_back(word);
    }
    if (tokens.empty()) throw failure(PLAIT_ERR_IO, path + ": holds no tokens");
    return tokens;
}

int complain(std::string sentence, int code) {
    std::replace(sentence.begin(), sentence.end(), '\n', ' ');
    while (!sentence.empty() && sentence.back() == ' ') sentence.pop_back();
    std::fprintf(stderr, "plait: %s\n", sentence.c_str());
    return code;
}

namespace {

int report(const std::string &token, const failure &f) {
    std::string sentence = f.what();
    if (sentence.find(token) == std::string::npos) sentence = token + ": " + sentence;
    return complain(sentence, exit_code(f));
}

} // namespace

std::vector<std::string> well_formed(const std::vector<std::string> &tokens, int *code) {
    std::vector<std::string> good;
    for (const std::string &token : tokens) {
        try {
            cases::make_desc(token);
            good.push_back(token);
        } catch (const failure &f) {
            const int one = report(token, f);
            if (*code == 0) *code = one;
        }
    }
    return good;
}

int for_each_token(const std::vector<std::string> &tokens,
                   const std::function<int(const std::string &token)> &work) {
    int first = 0;
    for (const std::string &token : tokens) {
        int code = 0;
        try {
            code = work(token);
        } catch (const cases::write_failure &) {
            throw;
        } catch (const failure &f) {
            if (f.status == PLAIT_ERR_NO_DEVICE) throw;
            code = report(token, f);
        }
        if (first == 0) first = code;
    }
    return first;
}

int exit_code(const failure &f) {
    if (dynamic_cast<const cases::write_failure *>(&f)) return 1;
    switch (f.status) {
    case PLAIT_ERR_INVALID_ARGUMENT:
    case PLAIT_ERR_INVALID_DESC:
    case PLAIT_ERR_IO:
    case PLAIT_ERR_VERSION: return 2;
    case PLAIT_ERR_NOT_SUPPORTED:
    case PLAIT_ERR_NO_WISDOM: return 3;
    case PLAIT_ERR_NO_DEVICE: return 77;
    default: return 1;
    }
}

} // namespace plait::cli
