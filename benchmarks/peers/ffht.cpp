// wht on the CPU beside FFHT, in one process on one thread: a copy, FFHT and plait take turns over
// the same rows, in place, 2^22 elements in all or one transform where n is larger.
//
//   g++ -O2 -std=c++17 benchmarks/peers/ffht.cpp -Iinclude -Lbuild/cpu/src -lplait -ldl -o ffht
//   LD_LIBRARY_PATH=build/cpu/src ./ffht libffht.so >> benchmarks/results/<device>/ffht_peers.jsonl
//
// libffht.so: FFHT's fht.c as a shared library (fht_float and fht_double). r = median / median of a
// copy; `ratio` = plait / FFHT, the median over the turns. FFHT has no batches: its rows are a
// loop.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <functional>
#include <nlohmann/json.hpp>
#include <plait/plait.hpp>
#include <random>
#include <vector>

namespace {

double median(std::vector<double> v) {
    std::sort(v.begin(), v.end());
    return v[v.size() / 2];
}

double time_us(const std::function<void()> &work) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin)
        .count();
}

template <class T> struct buffer {
    explicit buffer(size_t count)
        : data(static_cast<T *>(
              std::aligned_alloc(4096, (count * sizeof(T) + 4095) & ~size_t{4095}))) {
        if (data == nullptr) throw std::bad_alloc();
    }
    ~buffer() { std::free(data); }
    buffer(const buffer &) = delete;
    T *data;
};

template <class T>
void compare(const plait::context &ctx, const char *version, plait_dtype type, int k,
             int (*fht)(T *, int)) {
    const int64_t n = int64_t{1} << k, rows = std::max<int64_t>(1, (int64_t{1} << 22) / n);
    const size_t total = static_cast<size_t>(n * rows), bytes = total * sizeof(T);
    buffer<T> source(total), work(total), other(total);
    std::mt19937_64 random(static_cast<uint64_t>(k));
    std::uniform_real_distribution<T> uniform(-1, 1);
    for (size_t i = 0; i < total; ++i) source.data[i] = uniform(random);

    const plait::desc problem = plait::desc::from_token(
        "wht:" + std::string(type == PLAIT_F32 ? "f32" : "f64") +
        (rows > 1 ? ":b" + std::to_string(rows) : "") + ":n" + std::to_string(n) + ":y@x");
    const plait::plan plan(ctx, problem);
    plait::exec exec(plan);
    const auto restore = [&] { std::memcpy(work.data, source.data, bytes); };
    const auto ours = [&] {
        exec.run({plait::arg(PLAIT_X, work.data), plait::arg(PLAIT_Y, work.data)});
    };
    const auto theirs = [&] {
        for (int64_t row = 0; row < rows; ++row) fht(work.data + row * n, k);
    };

    // The same numbers first: a fast wrong answer is no figure.
    restore();
    theirs();
    std::memcpy(other.data, work.data, bytes);
    restore();
    ours();
    double error = 0, norm = 0;
    for (size_t i = 0; i < total; ++i) {
        const double difference = double(work.data[i]) - double(other.data[i]);
        error += difference * difference;
        norm += double(other.data[i]) * double(other.data[i]);
    }

    std::vector<double> copy_us, fht_us, plait_us, ratio;
    const int turns = total > (size_t{1} << 24) ? 9 : 41;
    for (int turn = -2; turn < turns; ++turn) {
        const double c = time_us([&] { std::memcpy(other.data, source.data, bytes); });
        restore();
        const double f = time_us(theirs);
        restore();
        const double p = time_us(ours);
        if (turn < 0) continue;
        copy_us.push_back(c), fht_us.push_back(f), plait_us.push_back(p), ratio.push_back(p / f);
    }
    const double copied = median(copy_us);
    const auto shown = nlohmann::json::parse(plan.print(PLAIT_JSON));
    const auto line = [&](const std::string &candidate, double us, const char *of) {
        nlohmann::ordered_json record = {{"token", problem.token()},
                                         {"candidate", candidate},
                                         {"version", of},
                                         {"device", shown["device"]},
                                         {"median_us", us},
                                         {"copy_us", copied},
                                         {"r", us / copied},
                                         {"threads", 1}};
        if (of != version) { // of both, beside plait's own
            record["ratio"] = median(ratio);
            record["difference"] = std::sqrt(error / norm);
        }
        std::printf("%s\n", record.dump().c_str());
    };
    line("ffht", median(fht_us), version);
    line(plan.candidate(), median(plait_us), std::to_string(plait_version()).c_str());
    std::fprintf(stderr, "f%d 2^%-2d  copy %9.1f us  FFHT %9.1f  plait %9.1f  plait/FFHT %.3f\n",
                 int(8 * sizeof(T)), k, copied, median(fht_us), median(plait_us), median(ratio));
}

} // namespace

int main(int argc, char **argv) {
    if (argc < 2) return std::fprintf(stderr, "usage: ffht LIBFFHT.so [VERSION]\n"), 2;
    void *library = dlopen(argv[1], RTLD_NOW);
    if (library == nullptr) return std::fprintf(stderr, "ffht: %s\n", dlerror()), 2;
    const auto f32 = reinterpret_cast<int (*)(float *, int)>(dlsym(library, "fht_float"));
    const auto f64 = reinterpret_cast<int (*)(double *, int)>(dlsym(library, "fht_double"));
    if (!f32 || !f64) return std::fprintf(stderr, "ffht: no fht_float, fht_double there\n"), 2;
    const char *version = argc > 2 ? argv[2] : "unknown";
    try {
        plait::context ctx(PLAIT_CPU);
        ctx.set_threads(1);
        for (int k = 1; k <= 26; ++k) compare<float>(ctx, version, PLAIT_F32, k, f32);
        for (int k = 1; k <= 26; ++k) compare<double>(ctx, version, PLAIT_F64, k, f64);
    } catch (const std::exception &e) {
        return std::fprintf(stderr, "ffht: %s\n", e.what()), 1;
    }
}
