#include "src/backend/cpu/machine.h"

#include <algorithm>
#include <fstream>
#include <sched.h>
#include <sstream>
#include <thread>
#include <unistd.h>
#include <vector>

namespace plait::impl::cpu {

namespace {

/// The affinity mask; it grows until the kernel accepts its size.
int affinity_cores() {
    for (int bits = 1024; bits <= 1 << 20; bits *= 2) {
        cpu_set_t *set = CPU_ALLOC(bits);
        if (!set) break;
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
    std::ifstream file("/sys/fs/cgroup/cpu.max");
    long long quota = 0;
    long long period = 0;
    if (!(file >> quota >> period) || quota <= 0 || period <= 0) return 0;
    return static_cast<int>(std::max(1LL, (quota + period - 1) / period));
}

/// "32K", "1024K", "36M" as sysfs writes it.
int64_t parse_size(const std::string &word) {
    std::istringstream in(word);
    int64_t value = 0;
    char unit = 0;
    if (!(in >> value)) return 0;
    in >> unit;
    return value * (unit == 'K' ? 1024 : unit == 'M' ? 1024 * 1024 : 1);
}

int64_t sysfs_cache(int level) {
    for (int index = 0; index < 8; ++index) {
        const std::string folder =
            "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) + "/";
        std::ifstream level_file(folder + "level");
        std::ifstream type_file(folder + "type");
        std::ifstream size_file(folder + "size");
        int found = 0;
        std::string type;
        std::string size;
        if (!(level_file >> found) || !(type_file >> type) || !(size_file >> size)) continue;
        if (found == level && type != "Instruction") return parse_size(size);
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
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);) {
        const size_t colon = line.find(':');
        if (line.rfind("model name", 0) != 0 || colon == std::string::npos) continue;
        const size_t first = line.find_first_not_of(" \t", colon + 1);
        if (first == std::string::npos) break;
        return line.substr(first, line.find_last_not_of(" \t\r") - first + 1);
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
