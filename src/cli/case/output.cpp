#include "src/cli/case/output.h"

#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace plait::cases {
namespace {

/// Paths that a signal handler removes. It may run at any instruction, so the paths stand in plain
/// arrays and a flag says which are valid.
struct unfinished {
    std::atomic<bool> taken;
    std::atomic<bool> valid;
    char path[PATH_MAX];
};
unfinished open_files[8];
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler reads the flags");

extern "C" void remove_and_end(int signal) {
    for (unfinished &file : open_files)
        if (file.valid.load()) unlink(file.path);
    raise(signal); // SA_RESETHAND has put the default action back
}

/// -1: more files than slots, or a path that no call would take.
int remember(const std::string &path) {
    if (path.size() >= PATH_MAX) return -1;
    for (size_t i = 0; i < sizeof open_files / sizeof *open_files; ++i) {
        if (open_files[i].taken.exchange(true)) continue;
        std::memcpy(open_files[i].path, path.c_str(), path.size() + 1);
        open_files[i].valid.store(true);
        return static_cast<int>(i);
    }
    return -1;
}

std::string folder_of(const std::string &path) {
    const size_t slash = path.rfind('/');
    return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

/// Where a link leads that leads to no file. realpath() takes only what is there.
std::string behind_dangling(std::string path) {
    char text[PATH_MAX];
    for (int links = 0; links < 40; ++links) { // as many as Linux follows
        const ssize_t size = readlink(path.c_str(), text, sizeof text);
        if (size < 0) break;
        const std::string to(text, static_cast<size_t>(size));
        path = !to.empty() && to[0] == '/' ? to : folder_of(path) + "/" + to;
    }
    return path;
}

struct destination {
    std::string path; ///< behind links
    std::string why;  ///< "" or why nothing can be written there
    bool there = false, through = false;
    struct stat facts {};
};

destination find_destination(const std::string &path) {
    destination d;
    d.path = path;
    if (path.empty()) {
        d.why = "the path is empty";
        return d;
    }
    const auto system = [&] { d.why = std::strerror(errno); };
    d.there = stat(path.c_str(), &d.facts) == 0;
    if (!d.there && errno != ENOENT) {
        system();
        return d;
    }
    if (d.there && !S_ISREG(d.facts.st_mode)) {
        d.through = S_ISFIFO(d.facts.st_mode) || S_ISCHR(d.facts.st_mode);
        if (!d.through)
            d.why = S_ISDIR(d.facts.st_mode)    ? "it is a directory"
                    : S_ISSOCK(d.facts.st_mode) ? "it is a socket"
                                                : "it is a block device";
        else if (access(path.c_str(), W_OK) != 0)
            system();
        return d;
    }
    if (d.there) {
        char *const real = realpath(path.c_str(), nullptr);
        if (!real) {
            system();
            return d;
        }
        d.path = real;
        std::free(real);
        // Root may write everything, and still means to keep a file that nobody may write.
        if ((d.facts.st_mode & 0222) == 0 || access(d.path.c_str(), W_OK) != 0) {
            d.why = "it is read-only";
            return d;
        }
    } else {
        d.path = behind_dangling(path);
    }
    if (d.path.back() == '/' || access(folder_of(d.path).c_str(), W_OK | X_OK) != 0) system();
    return d;
}

} // namespace

void check_output(const std::string &path) {
    const destination d = find_destination(path);
    if (!d.why.empty())
        throw failure(PLAIT_ERR_IO,
                      (path.empty() ? "\"\"" : path) + ": cannot be written: " + d.why);
}

bool same_file(const std::string &a, const std::string &b) {
    const destination x = find_destination(a), y = find_destination(b);
    if (x.through || y.through || x.there != y.there) return false;
    if (x.there) return x.facts.st_dev == y.facts.st_dev && x.facts.st_ino == y.facts.st_ino;
    struct stat p {
    }, q{};
    return stat(folder_of(x.path).c_str(), &p) == 0 && stat(folder_of(y.path).c_str(), &q) == 0 &&
           p.st_dev == q.st_dev && p.st_ino == q.st_ino &&
           x.path.substr(x.path.rfind('/') + 1) == y.path.substr(y.path.rfind('/') + 1);
}

output_file::output_file(const std::string &path) : path_(path) {
    const destination d = find_destination(path);
    if (!d.why.empty()) throw write_failure(path + ": cannot be written: " + d.why);
    target_ = d.path;
    if (d.through) {
        const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY);
        file_ = fd >= 0 ? fdopen(fd, "wb") : nullptr;
        if (!file_) fail(errno);
        return;
    }
    open_beside();
    if (!d.there) return;
    // Only root gives files away; the owner before the mode, since it clears parts of it.
    const bool given = fchown(fileno(file_), d.facts.st_uid, d.facts.st_gid) == 0;
    const mode_t mode = d.facts.st_mode & (given ? 07777 : 0777);
    if (fchmod(fileno(file_), mode) != 0) {
        const int code = errno;
        forget();
        fail(code);
    }
}

output_file::~output_file() { forget(); }

void output_file::open_beside() {
    int code = EEXIST;
    for (int attempt = 0; attempt < 100 && code == EEXIST; ++attempt) {
        temporary_ = target_ + ".part" + std::to_string(getpid());
        if (attempt > 0) temporary_ += "." + std::to_string(attempt);
        const int fd = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0) {
            code = errno;
            continue;
        }
        slot_ = remember(temporary_);
        file_ = fdopen(fd, "wb");
        if (file_) return;
        code = errno;
        close(fd);
        forget();
    }
    fail(code);
}

void output_file::forget() {
    if (file_) std::fclose(file_);
    file_ = nullptr;
    if (!temporary_.empty()) unlink(temporary_.c_str());
    temporary_.clear();
    if (slot_ < 0) return;
    open_files[slot_].valid.store(false);
    open_files[slot_].taken.store(false);
    slot_ = -1;
}

void output_file::fail(int code) const {
    throw write_failure(path_ + ": cannot be written: " + std::strerror(code));
}

void output_file::write(const void *from, size_t bytes) {
    if (bytes > 0 && std::fwrite(from, 1, bytes, file_) != bytes) fail(errno);
}

void output_file::commit() {
    std::FILE *const file = file_;
    file_ = nullptr;
    int code = std::fclose(file) == 0 ? 0 : errno;
    if (code == 0 && !temporary_.empty()) {
        if (std::rename(temporary_.c_str(), target_.c_str()) == 0)
            temporary_.clear();
        else
            code = errno;
    }
    forget();
    if (code != 0) fail(code);
}

file_lock::file_lock(const std::string &path) {
    const destination d = find_destination(path);
    if (!d.why.empty() || d.through) return; // whoever writes there says so
    name_ = d.path + ".lock";
    for (;;) {
        fd_ = open(name_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
        if (fd_ < 0) return;
        int done = 0;
        do done = flock(fd_, LOCK_EX);
        while (done != 0 && errno == EINTR);
        // The one before may have removed the file that this lock is on.
        struct stat held {
        }, named{};
        const bool same = fstat(fd_, &held) == 0 && stat(name_.c_str(), &named) == 0 &&
                          held.st_dev == named.st_dev && held.st_ino == named.st_ino;
        if (done != 0 || same) return;
        close(fd_);
    }
}

file_lock::~file_lock() {
    if (fd_ < 0) return;
    unlink(name_.c_str()); // while it is held: who waits for it sees that it is gone
    close(fd_);
}

void remove_unfinished_on_signals() {
    for (const int number : {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE, SIGXCPU}) {
        struct sigaction now {};
        // Who ignores a signal for this program, as nohup does, keeps it ignored.
        if (sigaction(number, nullptr, &now) != 0 || now.sa_handler != SIG_DFL) continue;
        now.sa_handler = remove_and_end;
        now.sa_flags = static_cast<int>(SA_RESETHAND);
        sigemptyset(&now.sa_mask);
        sigaction(number, &now, nullptr);
    }
    std::signal(SIGXFSZ, SIG_IGN);
}

} // namespace plait::cases
