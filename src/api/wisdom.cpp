// Wisdom as text and as files.
#include "src/api/guard.h"
#include "src/api/handles.h"

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <sys/stat.h>
#include <unistd.h>

namespace plait::impl {

namespace {

struct closer {
    void operator()(std::FILE *file) const { std::fclose(file); }
};
using file_ptr = std::unique_ptr<std::FILE, closer>;

[[noreturn]] void fail_io(const char *what, std::string_view path) {
    fail(PLAIT_ERR_IO, "path=", path, ": ", what, ": ", std::strerror(errno));
}

std::string read_file(const char *path) {
    const file_ptr file(std::fopen(path, "rb"));
    if (!file) fail_io("cannot open", path);
    std::string out;
    char block[1 << 14];
    for (size_t got = 0; (got = std::fread(block, 1, sizeof block, file.get())) > 0;)
        out.append(block, got);
    if (std::ferror(file.get())) fail_io("cannot read", path);
    return out;
}

/// The file that `path` means behind symbolic links, also one that is not there yet.
std::string behind_links(const std::string &path) {
    struct freer {
        void operator()(char *text) const { std::free(text); }
    };
    if (const std::unique_ptr<char, freer> real{realpath(path.c_str(), nullptr)}) return real.get();
    std::string at = path; // realpath takes only what is there
    char to[PATH_MAX];
    for (int links = 0;; ++links) {
        const ssize_t size = readlink(at.c_str(), to, sizeof to);
        if (size < 0) return at;
        if (links == 40) { // as many as Linux follows
            errno = ELOOP;
            fail_io("cannot write", path);
        }
        const std::string_view target(to, static_cast<size_t>(size));
        const size_t folder = target.substr(0, 1) == "/" ? 0 : at.rfind('/') + 1;
        at = at.substr(0, folder).append(target);
    }
}

/// Pipes and character devices are not replaced.
void write_through(const std::string &path, const std::string &what) {
    file_ptr file(std::fopen(path.c_str(), "wbe"));
    if (!file) fail_io("cannot write", path);
    const bool written = std::fwrite(what.data(), 1, what.size(), file.get()) == what.size() &&
                         std::fflush(file.get()) == 0;
    if (!written || std::fclose(file.release()) != 0) fail_io("cannot write", path);
}

/// A file of its own next to `path`, with the permissions that the caller's umask gives; null with
/// errno where there can be none.
file_ptr open_beside(const std::string &path, std::string &name) {
    for (int attempt = 0; attempt < 100; ++attempt) {
        name = text(path, ".tmp", getpid(), '.', attempt);
        const int fd = open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0) {
            file_ptr file(fdopen(fd, "wb"));
            if (file) return file;
            const int reason = errno;
            close(fd);
            unlink(name.c_str());
            errno = reason;
            break;
        }
        if (errno != EEXIST) break;
    }
    return nullptr;
}

/// Readers see the old file or the new one, never a part. An existing file keeps its mode.
void write_file(const std::string &path, const std::string &what) {
    struct stat facts = {};
    const bool there = stat(path.c_str(), &facts) == 0;
    if (!there && errno != ENOENT) fail_io("cannot write", path);
    if (there && (S_ISFIFO(facts.st_mode) || S_ISCHR(facts.st_mode)))
        return write_through(path, what);
    if (there && S_ISDIR(facts.st_mode)) {
        errno = EISDIR;
        fail_io("cannot write", path);
    }
    if (there && !S_ISREG(facts.st_mode))
        fail(PLAIT_ERR_IO, "path=", path,
             ": cannot write: it is no regular file, pipe or character device");
    // Root may write everything, and still means to keep a file that nobody may write.
    if (there && ((facts.st_mode & 0222) == 0 || access(path.c_str(), W_OK) != 0))
        fail(PLAIT_ERR_IO, "path=", path, ": cannot write: it is read-only");
    const std::string target = behind_links(path);
    std::string name;
    file_ptr file = open_beside(target, name);
    if (!file && target == path) fail_io("cannot create a file beside it", path);
    if (!file)
        fail_io(text("it leads to ", target, ", cannot create a file beside that").c_str(), path);
    const bool ready = !there || fchmod(fileno(file.get()), facts.st_mode & 0777) == 0;
    const bool written = ready &&
                         std::fwrite(what.data(), 1, what.size(), file.get()) == what.size() &&
                         std::fflush(file.get()) == 0;
    const bool closed = std::fclose(file.release()) == 0;
    if (written && closed && std::rename(name.c_str(), target.c_str()) == 0) return;
    const int reason = errno;
    unlink(name.c_str());
    errno = reason;
    fail_io("cannot write", path);
}

void load(const plait_context &ctx, std::string_view text, int *loaded, int *skipped) {
    const wisdom::loaded count = ctx.learned.load(text);
    if (loaded) *loaded = count.loaded;
    if (skipped) *skipped = count.skipped;
}

} // namespace

void load_wisdom_file(const plait_context &ctx, const char *path, int *loaded, int *skipped) {
    const std::string what = read_file(path);
    try {
        load(ctx, what, loaded, skipped);
    } catch (const failure &f) {
        fail(f.code(), "path=", path, ": ", f.what());
    }
}

} // namespace plait::impl

using namespace plait::impl;

extern "C" {

plait_status plait_wisdom_load(plait_context *ctx, const char *text, int *loaded, int *skipped) {
    return guard(__func__, [&] {
        require(ctx, "ctx");
        require(text, "text");
        load(*ctx, text, loaded, skipped);
    });
}

plait_status plait_wisdom_load_file(plait_context *ctx, const char *path, int *loaded,
                                    int *skipped) {
    return guard(__func__, [&] {
        require(ctx, "ctx");
        require(path, "path");
        load_wisdom_file(*ctx, path, loaded, skipped);
    });
}

plait_status plait_wisdom_save(const plait_context *ctx, char *buf, size_t cap, size_t *size) {
    return guard(__func__, [&] {
        require(ctx, "ctx");
        text_out(ctx->learned.save(), buf, cap, size);
    });
}

plait_status plait_wisdom_save_file(const plait_context *ctx, const char *path) {
    return guard(__func__, [&] {
        require(ctx, "ctx");
        require(path, "path");
        write_file(path, ctx->learned.save());
    });
}

void plait_wisdom_clear(plait_context *ctx) {
    if (ctx) ctx->learned.clear();
}

} // extern "C"
