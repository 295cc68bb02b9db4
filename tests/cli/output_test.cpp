// Files that the program writes: what is replaced, what is written through, what is refused, and
// what is left of a file that was not finished.
#include "src/cli/case/npy.h"
#include "src/cli/case/output.h"
#include "tests/cli/program.h"

#include <csignal>
#include <filesystem>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace cli_test;
namespace cases = plait::cases;
namespace fs = std::filesystem;

namespace {

const std::string run_to = "\"$PLAIT\" run wht:f32:n4 --backend cpu --in x=in.npy --out y=";

void write_input() {
    const float x[4] = {1, 2, 3, 4};
    cases::npy_writer file(scratch("in.npy"), {'f', 4}, {4});
    file.write(x, 4);
    file.commit();
}

/// The file that `run` writes.
std::string result() {
    CHECK(shell(run_to + "result.npy").code == 0);
    return read_file("result.npy");
}

bool left_over() {
    for (const auto &entry : fs::directory_iterator(scratch("")))
        if (contains(entry.path().string(), ".part")) return true;
    return false;
}

void make_fifo(const char *name) {
    fs::remove(scratch(name));
    REQUIRE(mkfifo(scratch(name).c_str(), 0600) == 0);
}

/// Runs a command that writes into `fifo` and gives what came out of it. Without the other side
/// each would wait for ever, so both have an end.
outcome read_from(const std::string &fifo, const std::string &command) {
    const outcome o = shell("timeout 120 cat " + fifo + " >got & timeout 100 " + command +
                            "; c=$?; wait; exit $c");
    INFO(o.err);
    CHECK(o.code == 0);
    CHECK(fs::is_fifo(scratch(fifo)));
    return o;
}

} // namespace

TEST_CASE("pipes are written through") {
    write_input();
    make_fifo("fifo");
    read_from("fifo", run_to + "fifo");
    CHECK(read_file("got") == result());

    write_file("lines.txt",
               "plait-wisdom 1\nwht:f32:n8 | cpu/AVX2/2c/Y | wht.cpu.simd | 1 | 5e-06\n");
    read_from("fifo", "\"$PLAIT\" wisdom merge lines.txt -o fifo");
    CHECK(read_file("got") == read_file("lines.txt"));
    read_from("fifo", "\"$PLAIT\" wisdom make wht:f32:n8 --backend cpu --threads 1 -o fifo");
    CHECK(contains(read_file("got"), "\nwht:f32:n8 | cpu/"));
    read_from("fifo", "\"$PLAIT\" bench wht:f32:n8 --backend cpu --threads 1 --reps 3 --json fifo");
    CHECK(nlohmann::json::parse(read_file("got")).at("token") == "wht:f32:n8");
}

TEST_CASE("links are followed, also one that leads nowhere yet; the mode stays") {
    write_input();
    const std::string expected = result();
    fs::create_directories(scratch("far"));
    for (const char *name : {"far/there.npy", "far/fresh.npy", "link.npy"})
        fs::remove(scratch(name));
    write_file("far/there.npy", "old");
    fs::permissions(scratch("far/there.npy"), fs::perms(0640));
    for (const char *target : {"far/there.npy", "far/fresh.npy"}) {
        INFO(target);
        fs::remove(scratch("link.npy"));
        fs::create_symlink(target, scratch("link.npy"));
        CHECK(shell(run_to + "link.npy").code == 0);
        CHECK(fs::is_symlink(scratch("link.npy")));
        CHECK(!fs::is_symlink(scratch(target)));
        CHECK(read_file(target) == expected);
    }
    CHECK((fs::status(scratch("far/there.npy")).permissions() & fs::perms(0777)) ==
          fs::perms(0640));
    CHECK(!left_over());
}

TEST_CASE("what cannot be replaced is refused before the work") {
    write_input();
    write_file("keep", "kept");
    fs::permissions(scratch("keep"), fs::perms(0444));
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    scratch("socket").copy(address.sun_path, sizeof address.sun_path - 1);
    REQUIRE(bind(fd, reinterpret_cast<const sockaddr *>(&address), sizeof address) == 0);
    const auto refused = [](const std::string &path, const std::string &why) {
        for (const std::vector<std::string> &command : std::vector<std::vector<std::string>>{
                 {"run", "wht:f32:n4", "--backend", "cpu", "--in", "x=in.npy", "--out",
                  "y=" + path},
                 {"wisdom", "make", "wht:f32:n8", "--backend", "cpu", "-o", path},
                 {"wisdom", "merge", "gone.txt", "-o", path},
                 {"bench", "wht:f32:n8", "--backend", "cpu", "--json", path}})
            check_refused(command, 2, path + ": cannot be written: " + why);
    };
    refused("keep", "it is read-only");
    refused("socket", "it is a socket");
    refused(".", "it is a directory");
    close(fd);
    CHECK(read_file("keep") == "kept");
    CHECK(fs::is_socket(scratch("socket")));
    check_refused({"wisdom", "make", "wht:f32:n8", "-o", ""}, 2, "the path is empty");
}

TEST_CASE("a write that fails is code 1 and leaves the old file") {
    const std::string token = "wht:f32:b64:n1024"; // 256 KiB
    const std::vector<float> x(64 * 1024, 1.0f);
    {
        cases::npy_writer file(scratch("big.npy"), {'f', 4}, {64, 1024});
        file.write(x.data(), static_cast<int64_t>(x.size()));
        file.commit();
    }
    write_file("old.npy", "old");
    const outcome o = shell("ulimit -f 16; \"$PLAIT\" run " + token +
                            " --backend cpu --in x=big.npy --out y=old.npy");
    CHECK(o.code == 1);
    CHECK(contains(o.err, "plait: old.npy: cannot be written: "));
    CHECK(read_file("old.npy") == "old");
    CHECK(!left_over());
}

TEST_CASE("a signal leaves nothing behind and ends the process") {
    for (const int number : {SIGHUP, SIGINT, SIGTERM}) {
        const pid_t child = fork();
        REQUIRE(child >= 0);
        if (child == 0) {
            std::signal(number, SIG_DFL); // the test runner has taken it
            cases::remove_unfinished_on_signals();
            cases::output_file file(scratch("signal.npy"));
            if (!left_over()) _exit(3);
            raise(number);
            _exit(4);
        }
        int status = 0;
        REQUIRE(waitpid(child, &status, 0) == child);
        CHECK(WIFSIGNALED(status));
        CHECK(WTERMSIG(status) == number);
        CHECK(!left_over());
    }
    CHECK(!exists("signal.npy"));
}

TEST_CASE("files that are one") {
    fs::create_directories(scratch("d"));
    write_file("d/a", "");
    fs::remove(scratch("l"));
    fs::remove(scratch("n"));
    fs::create_symlink("d/a", scratch("l"));
    fs::create_symlink("d/new", scratch("n"));
    CHECK(cases::same_file(scratch("d/a"), scratch("d/../d/a")));
    CHECK(cases::same_file(scratch("d/a"), scratch("l")));
    CHECK(cases::same_file(scratch("d/new"), scratch("n")));
    CHECK(cases::same_file(scratch("d/new"), scratch("d/./new")));
    CHECK(!cases::same_file(scratch("d/new"), scratch("d/a")));
    CHECK(!cases::same_file(scratch("new"), scratch("d/new")));
    make_fifo("fifo");
    CHECK(!cases::same_file(scratch("fifo"), scratch("fifo")));
}
