// Options that every command shares, and what they make: a context and preferences.
#pragma once

#include "src/cli/case/device.h"
#include "src/cli/case/handle.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace plait::cli {

struct options {
    std::string backend;       ///< "" = cuda if a device is there, else cpu
    std::optional<int> device; ///< none: 0
    std::string profile;
    std::vector<std::string> wisdom;
    std::string rigor = "estimate";
    bool wisdom_only = false;
    std::string candidates;
    std::string math = "default";
    bool deterministic = false;
    std::optional<uint64_t> workspace_limit;
    std::optional<double> time_limit;
    int threads = 0;
};

/// A context as the options want it, with its wisdom loaded.
struct session {
    explicit session(const options &o);
    plait_backend backend;
    cases::context_ptr context;
    cases::pref_ptr preferences;
    std::string fingerprint; ///< "cuda/9.0/132sm/NVIDIA_H200"
    int threads;             ///< of the CPU backend
    bool from_profile;

    /// The same preferences with other candidates.
    cases::pref_ptr preferences_for(const std::string &candidates) const;
    /// Memory and clock; NO_DEVICE where the context came from a profile.
    std::unique_ptr<cases::device> open() const;

private:
    options options_;
};

/// Files, pipes and devices.
std::string read_text(const std::string &path);
void write_text(const std::string &path, const std::string &text);
void check_writable(const std::string &path);

/// Tokens of a suite: one per line; `#` begins a comment. A byte order mark is skipped.
std::vector<std::string> read_suite(const std::string &path);

/// 1 where writing failed: the arguments were right.
int exit_code(const cases::failure &f);

/// One sentence on stderr, whatever line breaks its source had. Returns `code`.
int complain(std::string sentence, int code);

/// The tokens that are some. The others are reported at once, before minutes of work for these;
/// `code` becomes the exit code of the first of them.
std::vector<std::string> well_formed(const std::vector<std::string> &tokens, int *code);

/// Runs `work` for each token. A token that fails is reported and does not stop the others; the
/// result is the first exit code that is not 0. Nothing goes on without a device, or without room
/// for the results.
int for_each_token(const std::vector<std::string> &tokens,
                   const std::function<int(const std::string &token)> &work);

} // namespace plait::cli
