// plait: plans, runs, checks and measures the transforms of the library from the command line.
#include "src/cli/commands.h"
#include "src/cli/options.h"

#include <cstdio>
#include <exception>
#include <new>

namespace {

std::string version() {
    const int v = plait_version();
    return "plait " + std::to_string(v / 10000) + "." + std::to_string(v / 100 % 100) + "." +
           std::to_string(v % 100);
}

} // namespace

int main(int argc, char **argv) {
    using namespace plait;
    using cli::complain;
    CLI::App program("Plans for fast Walsh-Hadamard transforms on CUDA devices and on the CPU.");
    program.name("plait");
    program.set_version_flag("--version", version());
    program.require_subcommand(1);
    program.footer(
        "A TOKEN names a problem: wht:f32:b8192:n4096 is 8192 transforms of 4096 floats.\n"
        "Exit codes: 0 done, 1 a check or the work failed, 2 usage, 3 not supported, 77 no "
        "device.\n"
        "`plait COMMAND --help` shows the options of a command.");
    cli::actions run;
    cli::add_info(program, run);
    cli::add_plan(program, run);
    cli::add_run(program, run);
    cli::add_verify(program, run);
    cli::add_bench(program, run);
    cli::add_wisdom(program, run);

    // CLI11 would only say that a subcommand is required.
    const CLI::App *level = &program;
    for (int i = 1; i < argc && argv[i][0] != '-' && !level->get_subcommands({}).empty(); ++i) {
        const CLI::App *next = nullptr;
        for (const CLI::App *command : level->get_subcommands({}))
            if (command->get_name() == argv[i]) next = command;
        if (!next)
            return complain(std::string("there is no command \"") + argv[i] + "\"; `" +
                                (level == &program ? "plait" : "plait " + level->get_name()) +
                                " --help` lists them",
                            2);
        level = next;
    }

    try {
        program.parse(argc, argv);
    } catch (const CLI::ParseError &e) {
        if (e.get_exit_code() == 0) return program.exit(e); // --help, --version
        return complain(e.what(), 2);
    }
    try {
        const CLI::App *command = &program;
        while (!command->get_subcommands().empty()) command = command->get_subcommands().front();
        const int code = run.at(command)();
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
