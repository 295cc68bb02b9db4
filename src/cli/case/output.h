// Files that the program writes. A regular file appears whole or not at all: it is written beside
// its target and renamed. Pipes and character devices are written through.
#pragma once

#include "src/cli/case/handle.h"

#include <cstddef>
#include <cstdio>
#include <string>

namespace plait::cases {

/// The work failed, not its arguments: a disk is full, a device is gone.
class write_failure : public failure {
public:
    explicit write_failure(const std::string &sentence) : failure(PLAIT_ERR_IO, sentence) {}
};

/// Throws a plain failure when nothing can be written there: better before the work than after it.
void check_output(const std::string &path);

/// Two names of one regular file, also of one that is not there yet. Never for pipes and devices,
/// which hold nothing that could be lost.
bool same_file(const std::string &a, const std::string &b);

class output_file {
public:
    /// Behind symbolic links; an existing file keeps its mode and, where that is allowed, its
    /// owner.
    explicit output_file(const std::string &path);
    ~output_file(); ///< without commit() nothing is left
    output_file(const output_file &) = delete;
    output_file &operator=(const output_file &) = delete;

    void write(const void *from, size_t bytes);
    void commit();

private:
    [[noreturn]] void fail(int code) const;
    void open_beside();
    void forget();
    std::string path_, target_, temporary_; ///< temporary_: "" when written through
    std::FILE *file_ = nullptr;
    int slot_ = -1;
};

/// Programs that read a file, change it and write it again hold this in between: the others wait.
/// The lock is on a file beside the target, since the target is replaced, and goes with whoever
/// holds it, also by a kill. Where the file system has no locks there is none.
class file_lock {
public:
    explicit file_lock(const std::string &path);
    ~file_lock();
    file_lock(const file_lock &) = delete;
    file_lock &operator=(const file_lock &) = delete;

private:
    std::string name_;
    int fd_ = -1;
};

/// SIGINT, SIGTERM and the like remove what is not committed and then end the process as ever. A
/// file size limit becomes an error of the write.
void remove_unfinished_on_signals();

} // namespace plait::cases
