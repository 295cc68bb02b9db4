#include "src/backend/cpu/machine.h"

#include <algorithm>
#include <charconv>
#include <fcntl.h>
#include <new>
#include <sched.h>
#include <string_view>
#include <thread>
#include <unistd.h>

namespace plait::impl::cpu {

namespace {

/// The head of a file of the system, or nothing. Streams would take a failed allocation for a file
/// that cannot be read, and the facts of the machine would change with the memory that is left.
class system_file {
public:
    explicit system_file(const char *path) {
        const int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0) return;
        for (ssize_t got; size_ < sizeof text_; size_ += static_cast<size_t>(got))
            if ((got = read(fd, text_ + size_, sizeof text_ - size_)) <= 0) break;
        close(fd);
    }
    std::string_view text() const { return {text_, size_}; }

private:
    char text_[4096];
    size_t size_ = 0;
};

/// Takes a whole number, and the blanks before it, off the text.
bool take_number(std::string_view &text, int64_t &value) {
    text.remove_prefix(std::min(text.find_first_not_of(" \t\n"), text.size()));
    const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
    if (read.ec != std::errc()) return false;
    text.remove_prefix(static_cast<size_t>(read.ptr - text.data()));
    return true;
}

/// The affinity mask; it grows until the kernel accepts its size.
int affinity_cores() {
    for (int bits = 1024; bits <= 1 << 20; bits *= 2) {
        cpu_set_t *set = CPU_ALLOC(bits);
        if (!set) throw std::bad_alloc();
        const size_t bytes = CPU_ALLOC_SIZE(bits);
        const int rc = sched_getaffinity(0, bytes, set);
        const int count = rc == 0 ? CPU_COUNT_S(bytes, set) : 0;
        CPU_FREE(set);
        if (count > 0) return count;
    }
    return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

/// cgroup v2: "<quota> <period>" in microseconds, or "max <period>". 0: no limit.
int quota_cores() {
    const system_file file("/sys/fs/cgroup/cpu.max");
    std::string_view text = file.text();
    int64_t quota = 0;
    int64_t period = 0;
    if (!take_number(text, quota) || !take_number(text, period) || quota <= 0 || period <= 0)
        return 0;
    return static_cast<int>(std::max<int64_t>(1, (quota + period - 1) / period));
}

/// "32K", "1024K", "36M" as sysfs writes it.
int64_t parse_size(std::string_view text) {
    int64_t value = 0;
    if (!take_number(text, value)) return 0;
    const char unit = text.empty() ? ' ' : text.front();
    return value * (unit == 'K' ? 1024 : unit == 'M' ? 1024 * 1024 : 1);
}

int64_t sysfs_cache(int level) {
    for (char index = '0'; index < '8'; ++index) {
        const std::string folder =
            std::string("/sys/devices/system/cpu/cpu0/cache/index") + index + "/";
        const system_file level_file((folder + "level").c_str());
        const system_file type_file((folder + "type").c_str());
        const system_file size_file((folder + "size").c_str());
        std::string_view text = level_file.text();
        int64_t found = 0;
        if (!take_number(text, found) || found != level) continue;
        if (type_file.text().substr(0, 11) != "Instruction") return parse_size(size_file.text());
    }
    return 0;
}

int64_t cache(int sysconf_name, int level, int64_t otherwise) {
    const long known = sysconf(sysconf_name); // 0 or -1 on systems that only fill in sysfs
    if (known > 0) return known;
    const int64_t listed = sysfs_cache(level);
    return listed > 0 ? listed : otherwise;
}

} // namespace

int cores() {
    const int own = affinity_cores();
    const int quota = quota_cores();
    return quota > 0 ? std::min(own, quota) : own;
}

std::string model_name() {
    const system_file file("/proc/cpuinfo"); // the first core stands at its head
    const std::string_view key = "model name";
    for (std::string_view text = file.text(); !text.empty();) {
        const std::string_view line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(line.size() + 1, text.size()));
        const size_t colon = line.find(':');
        if (line.substr(0, key.size()) != key || colon == line.npos) continue;
        const size_t first = line.find_first_not_of(" \t", colon + 1);
        if (first == line.npos) break;
        return std::string(line.substr(first, line.find_last_not_of(" \t\r") - first + 1));
    }
    return "unknown CPU";
}

int64_t memory_bytes() {
    const long pages = sysconf(_SC_PHYS_PAGES);
    const long page = sysconf(_SC_PAGESIZE);
    return pages > 0 && page > 0 ? static_cast<int64_t>(pages) * page : 0;
}

caches cache_sizes() {
    // The sizes to assume are those of the smallest cores in wide use.
    return {cache(_SC_LEVEL1_DCACHE_SIZE, 1, 32 << 10), cache(_SC_LEVEL2_CACHE_SIZE, 2, 256 << 10),
            cache(_SC_LEVEL3_CACHE_SIZE, 3, 0)};
}

} // namespace plait::impl::cpu
