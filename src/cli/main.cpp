// plait: plans, runs, checks and measures the transforms of the library from the command line.
#include "src/cli/case/output.h"
#include "src/cli/options.h"
#include "src/cli/parser.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <fcntl.h>
#include <new>

namespace {

/// A closed stdout or stderr would be the next file that is opened, and results would go there.
/// Read only, these take the place and still fail when they are written.
void keep_standard_streams() {
    for (int fd = 0; fd <= 2; ++fd)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF) open("/dev/null", O_RDONLY);
}

/// Results that went nowhere are a failure, whichever line of them it was.
int finish(int code) {
    const bool flushed = std::fflush(stdout) == 0;
    const int reason = errno;
    if (flushed && !std::ferror(stdout)) return code;
    return plait::cli::complain(std::string("stdout: cannot be written") +
                                    (flushed ? "" : std::string(": ") + std::strerror(reason)),
                                1);
}

} // namespace

int main(int argc, char **argv) {
    using namespace plait;
    using cli::complain;
    keep_standard_streams();
    cases::remove_unfinished_on_signals();
    try {
        const cli::parsed line = cli::parse(argc, argv);
        if (!line.error.empty()) return complain(line.error, 2);
        std::fputs(line.out.c_str(), stdout);
        return finish(line.command ? line.command() : 0);
    } catch (const cases::failure &f) {
        return complain(f.what(), cli::exit_code(f));
    } catch (const std::bad_alloc &) {
        return complain("not enough host memory", 1);
    } catch (const std::exception &e) {
        return complain(e.what(), 1);
    }
}
