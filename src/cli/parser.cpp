#include "src/cli/parser.h"

#include "src/cli/commands.h"

#include <charconv>
#include <CLI/CLI.hpp> // here only: it takes the compiler longer than all of the commands
#include <cmath>
#include <map>
#include <memory>
#include <sstream>

namespace plait::cli {
namespace {

/// What to run when a subcommand was given.
using actions = std::map<const CLI::App *, std::function<int()>>;

/// CLI11 takes "-1" for an unsigned number and the largest for one that is too large.
std::string not_whole(const std::string &text) {
    uint64_t value = 0;
    const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
    if (digits == 0) return "\"" + text + "\" is no whole number";
    if (std::from_chars(text.data(), text.data() + digits, value).ec != std::errc())
        return "\"" + text + "\" is above 2^64 - 1";
    return "";
}

const CLI::Validator whole_number(
    [](std::string &text) {
        const bool digits = text.find_first_not_of("0123456789") == text.npos;
        return digits ? not_whole(text) : "\"" + text + "\" is no whole number";
    },
    "", "whole number");

/// Before a unit: AsSizeValue reads the rest and refuses what overflows with it.
const CLI::Validator whole_size([](std::string &text) { return not_whole(text); }, "", "size");

/// "nan" and "inf" read as numbers.
const CLI::Validator finite_number(
    [](std::string &text) {
        double value = 0;
        return CLI::detail::lexical_cast(text, value) && std::isfinite(value)
                   ? std::string()
                   : "\"" + text + "\" is no finite number";
    },
    "", "finite number");

/// CLI::PositiveNumber prints the largest double with all of its digits.
const CLI::Validator above_zero(
    [](std::string &text) {
        double value = 0;
        return CLI::detail::lexical_cast(text, value) && std::isfinite(value) && value > 0
                   ? std::string()
                   : "\"" + text + "\" is no number above 0";
    },
    "", "number above 0");

/// The grammar in full: plait.h, before plait_desc_token.
const char *const token_help =
    "TOKEN is FAMILY:TYPE:SHAPE[:OPTION]...[:USES][:ROLE]..., in this order, without defaults:\n"
    "  wht            b<length> batch axis, n<length>[.factor] transformed axis, outermost first\n"
    "                 bits=<hex> seq|dya adj scale=<number> bound=<integer> rows=<count>\n"
    "                 group=<length> hist=<bins>.<first>.<width>\n"
    "  conv1d.fwd, conv1d.bwd, conv1d.update\n"
    "                 b<batch>, c<channels>:t<length> or t:c, k<width>; silu residual\n"
    "                 state=lin|ring.<entries> seqs=<count>.<longest> slots=<count>.<pad>\n"
    "  kda.fwd, kda.bwd\n"
    "                 b<batch>, t<length>, h<heads>, hv<value heads> if they differ, k<dim>, "
    "v<dim>\n"
    "                 gate=log|softplus|bounded.<lower bound> beta=logit.<scale> norm=<eps>\n"
    "                 scale=<number> state=kv|vk seqs=<count>.<longest> slots=<count>.<pad>\n"
    "                 reserve=chunk64\n"
    "  USES           +bias+state_out: optional tensors on; -dw: a gradient off\n"
    "  ROLE           name[.type][.s<stride>.<stride>...][.a<bytes>][@name], e.g. y.f32, y@x\n"
    "  wht:bf16:b8192:n4096:scale=0.015625\n"
    "  wht:f32:n1024:b300:y@x\n"
    "  conv1d.fwd:bf16:b8:t2048:c4096:k4:silu:+bias+state_out\n"
    "  kda.fwd:bf16:b1:t8192:h16:k128:v128:gate=bounded.-5:beta=logit.1:norm=1e-06\n"
    "Another order or spelling is refused with the canonical form. In full: plait.h.";

void add_options(CLI::App &command, options &o) {
    const char *group = "Device and planning";
    command.add_option("--backend", o.backend, "cpu or cuda [cuda if a device is there]")
        ->check(CLI::IsMember({"cpu", "cuda"}))
        ->group(group);
    command.add_option("--device", o.device, "number of the device [0]")
        ->check(CLI::Range(0, std::numeric_limits<int>::max()))
        ->type_name("N")
        ->group(group);
    command
        .add_option("--profile", o.profile,
                    "plan for the device that this file describes; nothing can run")
        ->type_name("FILE")
        ->excludes("--backend")
        ->excludes("--device")
        ->group(group);
    command.add_option("--wisdom", o.wisdom, "load measured times; may be given again")
        ->type_name("FILE")
        ->expected(1)
        ->allow_extra_args(false) // or it takes the TOKEN behind it
        ->take_all()
        ->group(group);
    command.add_option("--rigor", o.rigor, "estimate, measure or exhaustive [estimate]")
        ->check(CLI::IsMember({"estimate", "measure", "exhaustive"}))
        ->group(group);
    command.add_flag("--wisdom-only", o.wisdom_only, "fail where wisdom has no time")->group(group);
    command.add_option("--candidates", o.candidates, "list of globs, '-' excludes: 'wht.*,-*.ref'")
        ->type_name("PATTERN")
        ->group(group);
    command
        .add_option("--math", o.math,
                    "narrowest operands between load and store: default, f32 or tf32")
        ->check(CLI::IsMember({"default", "f32", "tf32"}))
        ->group(group);
    command.add_flag("--deterministic", o.deterministic, "same plan and data, same bits")
        ->group(group);
    command.add_option("--workspace-limit", o.workspace_limit, "bytes; k, M, G are powers of 1024")
        ->transform(CLI::AsSizeValue(false))
        ->check(whole_size) // before the transform: the last one added is the first
        ->type_name("BYTES")
        ->group(group);
    command.add_option("--time-limit", o.time_limit, "seconds that measuring may take per plan")
        ->check(above_zero)
        ->type_name("SECONDS")
        ->group(group);
    command
        .add_option("--threads", o.threads,
                    "threads of the CPU backend [all cores]; also with --profile")
        ->check(CLI::Range(1, 4096)) // as plait_context_set_threads
        ->type_name("N")
        ->group(group);
}

void add_info(CLI::App &program, actions &run) {
    CLI::App *command = program.add_subcommand("info", "Build, devices and their profiles");
    auto a = std::make_shared<info_arguments>();
    add_options(*command, a->common);
    command->add_flag("--json", a->json, "as one JSON object");
    command
        ->add_flag("--profile-text", a->profile_text,
                   "only the profile of the chosen device, as --profile reads it")
        ->excludes("--json");
    run[command] = [a] { return run_info(*a); };
}

void add_plan(CLI::App &program, actions &run) {
    const auto add = [&](const char *name, const char *what, bool candidates) {
        CLI::App *command = program.add_subcommand(name, what);
        auto a = std::make_shared<plan_arguments>();
        a->candidates = candidates;
        command->add_option("TOKEN", a->tokens, "the problem, e.g. wht:f32:b8192:n4096")
            ->required();
        add_options(*command, a->common);
        command->add_flag("--json", a->json, "one JSON object per token and line");
        command->footer(token_help);
        run[command] = [a] { return run_plan(*a); };
    };
    add("plan", "Print the plan of a problem: kernels, launches, workspace, bytes", false);
    add("candidates", "Print every candidate with its verdict and its reason", true);
}

void add_run(CLI::App &program, actions &run) {
    CLI::App *command = program.add_subcommand("run", "Transform or convolve NumPy files");
    auto a = std::make_shared<file_arguments>();
    command->add_option("TOKEN", a->token, "the problem; alone it prints the files it wants")
        ->required();
    command->add_option("--in", a->in, "file of an input, e.g. x=signal.npy")
        ->type_name("ROLE=FILE")
        ->expected(1)
        ->allow_extra_args(false) // or it takes the TOKEN behind it
        ->take_all();
    command->add_option("--out", a->out, "file for an output, e.g. y=spectrum.npy")
        ->type_name("ROLE=FILE")
        ->expected(1)
        ->allow_extra_args(false) // or it takes the TOKEN behind it
        ->take_all();
    add_options(*command, a->common);
    command->add_flag("--json", a->json, "report as JSON");
    command->footer(
        "Files are .npy in C order and little endian, with exactly the shape of the\n"
        "role. bf16 is read from f4 (rounded to nearest even) or u2 (its bits) and\n"
        "written as u2; signs are read from u1 or b1, 1 is minus. A role that is read and\n"
        "written, such as state, takes both options. Indices are checked.");
    run[command] = [a] { return run_files(*a); };
}

void add_verify(CLI::App &program, actions &run) {
    CLI::App *command =
        program.add_subcommand("verify", "Compare results with the float64 reference");
    auto a = std::make_shared<verify_arguments>();
    command->add_option("TOKEN", a->tokens, "problems, e.g. wht:bf16:b64:n4096");
    command->add_option("--suite", a->suite, "file with one token per line")->type_name("FILE");
    command->add_flag("--all", a->all, "every candidate that applies, not only the chosen one");
    command->add_option("--in", a->in, "input from a file instead of random numbers")
        ->type_name("ROLE=FILE")
        ->expected(1)
        ->allow_extra_args(false) // or it takes the TOKEN behind it
        ->take_all();
    command->add_option("--seed", a->seed, "of the random numbers [1]")->check(whole_number);
    command
        ->add_option("--sample", a->sample,
                     "transforms, channels or heads to compare [as many as make 2^26\n"
                     "elements]")
        ->check(above_zero)
        ->type_name("N");
    add_options(*command, a->common);
    command->add_flag("--json", a->json, "one JSON object per line");
    command->footer(
        "error: ||y - ref|| / ||ref|| of the worst transform; bound: (k + m) u for length m 2^k\n"
        "plus half an ulp of the stored type; ratio: error / bound. Integers must be equal.\n"
        "conv1d: of the worst channel; the bound follows the sum of the moduli of all terms, and\n"
        "ratio is that of the worst element. States must be equal.\n"
        "kda: of the worst head of q and k, all its results and gradients; the bound is 1e-12 of\n"
        "their norms with F64 tensors, 1e-5 with F32, 4e-3 with 16-bit ones.\n"
        "Buffers begin exactly at the promised alignment and lie between guard bands; a write\n"
        "outside the result or into an input is a failure. Exit code 1 when something is wrong.");
    run[command] = [a] { return run_verify(*a); };
}

void add_bench(CLI::App &program, actions &run) {
    CLI::App *command = program.add_subcommand("bench", "Measure against a copy of the same bytes");
    auto a = std::make_shared<bench_arguments>();
    command->add_option("TOKEN", a->tokens, "problems, e.g. wht:f32:b65536:n4096");
    command->add_option("--suite", a->suite, "file with one token per line")->type_name("FILE");
    CLI::Option *json_option =
        command
            ->add_option("--json", a->json_file,
                         "JSON lines instead of the table, or into FILE beside it, each at once")
            ->type_name("[FILE]")
            ->expected(0, 1 << 20); // run_bench: tokens may follow
    command->add_option("--baseline", a->baseline, "compare with the JSON lines of an earlier run")
        ->type_name("FILE");
    command
        ->add_option("--fail-above", a->worse,
                     "exit code 1 when a median is this many percent above its baseline")
        ->check(finite_number)
        ->type_name("PERCENT")
        ->needs("--baseline");
    command->add_flag("--all-candidates", a->all,
                      "every candidate that applies, not only the chosen one");
    command->add_option("--reps", a->how.repetitions, "samples per problem, at least 3 [30]")
        ->check(CLI::Range(3, 1000000))
        ->type_name("N");
    command->add_flag("--latency", a->how.latency,
                      "small work: warm buffers, calls replayed from a CUDA graph");
    command->add_flag("!--no-accuracy", a->how.accuracy, "leave rel_err out");
    command->add_option("--seed", a->how.seed, "of the random numbers [1]")->check(whole_number);
    add_options(*command, a->common);
    command->footer("r = median / copy, where copy moves the same bytes on the same device in the\n"
                    "same run. Rules: benchmarks/README.md.");
    // The parser is gone when the command runs.
    command->parse_complete_callback(
        [a, json_option] { a->json_wanted = json_option->count() > 0; });
    run[command] = [a] { return run_bench(*a); };
}

void add_wisdom(CLI::App &program, actions &run) {
    CLI::App *command = program.add_subcommand("wisdom", "Files of measured times");
    command->require_subcommand(1);

    CLI::App *make_command = command->add_subcommand("make", "Measure and write a file");
    auto m = std::make_shared<wisdom_arguments>();
    m->common.rigor = "measure";
    make_command->add_option("TOKEN", m->tokens, "problems");
    make_command->add_option("--suite", m->suite, "file with one token per line")
        ->type_name("FILE");
    make_command->add_option("--out,-o", m->out, "file to write")->type_name("FILE")->required();
    make_command->add_flag("--generic", m->generic,
                           "times for every CPU with these instructions, not for this one");
    add_options(*make_command, m->common);
    make_command->footer(
        "--rigor is measure here unless said: the four best by cost. exhaustive\n"
        "measures all. Times loaded with --wisdom, and those in the file when it is\n"
        "written, are kept; of equal lines the faster stays. The times of a token are\n"
        "written whatever the others did.");
    run[make_command] = [m] { return make_wisdom(*m); };

    CLI::App *show_command = command->add_subcommand("show", "Print a file");
    auto w = std::make_shared<wisdom_arguments>();
    show_command->add_option("FILE", w->files, "wisdom file")->required()->expected(1);
    show_command->add_flag("--json", w->json, "one JSON object per line");
    run[show_command] = [w] { return show_wisdom(*w); };

    CLI::App *merge_command =
        command->add_subcommand("merge", "One file of several; of equal lines the faster stays");
    auto g = std::make_shared<wisdom_arguments>();
    merge_command->add_option("FILE", g->files, "wisdom files")->required();
    merge_command->add_option("--out,-o", g->out, "file to write")->type_name("FILE")->required();
    run[merge_command] = [g] { return merge_wisdom(*g); };
}

std::string version() {
    const int v = plait_version();
    return "plait " + std::to_string(v / 10000) + "." + std::to_string(v / 100 % 100) + "." +
           std::to_string(v % 100);
}

} // namespace

parsed parse(int argc, char **argv) {
    CLI::App program(
        "Plans for fast Walsh-Hadamard transforms, causal depthwise convolutions and Kimi Delta\n"
        "Attention on CUDA devices and on the CPU.");
    program.name("plait");
    program.set_version_flag("--version", version());
    program.require_subcommand(1);
    program.footer(
        "A TOKEN names a problem: wht:f32:b8192:n4096 is 8192 transforms of 4096 floats;\n"
        "conv1d.fwd:bf16:b8:c4096:t2048:k4:silu:+bias is 8 rows of 4096 channels, 2048 long.\n"
        "`plait plan --help` shows what a token can say. One that fails does not stop the others:\n"
        "it is reported on stderr, malformed ones first; the exit code is that of the first.\n"
        "Exit codes: 0 done, 1 a check or the work failed, 2 usage, 3 not supported, 77 no "
        "device.\n"
        "`plait COMMAND --help` shows the options of a command.");
    actions run;
    add_info(program, run);
    add_plan(program, run);
    add_run(program, run);
    add_verify(program, run);
    add_bench(program, run);
    add_wisdom(program, run);

    // CLI11 would only say that a subcommand is required.
    const CLI::App *level = &program;
    for (int i = 1; i < argc && argv[i][0] != '-' && !level->get_subcommands({}).empty(); ++i) {
        const CLI::App *next = nullptr;
        for (const CLI::App *command : level->get_subcommands({}))
            if (command->get_name() == argv[i]) next = command;
        if (!next)
            return {nullptr, "",
                    std::string("there is no command \"") + argv[i] + "\"; `" +
                        (level == &program ? "plait" : "plait " + level->get_name()) +
                        " --help` lists them"};
        level = next;
    }

    try {
        program.parse(argc, argv);
    } catch (const CLI::ParseError &e) {
        if (e.get_exit_code() != 0) return {nullptr, "", e.what()};
        std::ostringstream out, err; // --help, --version
        program.exit(e, out, err);
        return {nullptr, out.str(), ""};
    }
    const CLI::App *command = &program;
    while (!command->get_subcommands().empty()) command = command->get_subcommands().front();
    return {run.at(command), "", ""};
}

} // namespace plait::cli
