// plait: plans, runs, checks and measures the transforms of the library from the command line.
#include "src/cli/options.h"
#include "src/cli/parser.h"

#include <cstdio>
#include <exception>
#include <new>

int main(int argc, char **argv) {
    using namespace plait;
    using cli::complain;
    try {
        const cli::parsed line = cli::parse(argc, argv);
        if (!line.error.empty()) return complain(line.error, 2);
        std::fputs(line.out.c_str(), stdout);
        const int code = line.command ? line.command() : 0;
        if (std::fflush(stdout) != 0) return complain("stdout: cannot be written", 1);
        return code;
    } catch (const cases::failure &f) {
        return complain(f.what(), cli::exit_code(f.status));
    } catch (const std::bad_alloc &) {
        return complain("not enough host memory", 1);
    } catch (const std::exception &e) {
        return complain(e.what(), 1);
    }
}
