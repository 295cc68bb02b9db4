// What candidates build: facts that hold for every pipeline, and CUDA plans run step by step in
// plain C++ against the definition.
#include "lib/common/half.h"
#include "lib/cuda/wht/block_layout.h"
#include "lib/cuda/wht/cluster_layout.h"
#include "lib/cuda/wht/columns_layout.h"
#include "lib/cuda/wht/l2_layout.h"
#include "lib/cuda/wht/mma16_layout.h"
#include "src/core/text.h"
#include "src/planner/wht_candidates.h"
#include "tests/planner/support.h"

#include <cmath>
#include <cstdlib>
#include <random>

namespace plait::test {

namespace {

template <class Args> Args args_of(const step &s) {
    REQUIRE(s.args.size() == sizeof(Args));
    Args args;
    std::memcpy(&args, s.args.data(), sizeof args);
    return args;
}

// ---- Memory of a plan, as bytes -----------------------------------------------------------------

double load(scalar type, const std::byte *at) {
    uint16_t half;
    float single;
    double wide;
    switch (type) {
    case scalar::f16: std::memcpy(&half, at, 2); return static_cast<double>(f16_to_f32(half));
    case scalar::bf16: std::memcpy(&half, at, 2); return static_cast<double>(bf16_to_f32(half));
    case scalar::f32: std::memcpy(&single, at, 4); return static_cast<double>(single);
    case scalar::f64: std::memcpy(&wide, at, 8); return wide;
    default: FAIL("type"); return 0;
    }
}

void store(scalar type, std::byte *at, double value) {
    uint16_t half;
    float single;
    switch (type) {
    case scalar::f16:
        half = f64_to_f16(value);
        std::memcpy(at, &half, 2);
        return;
    case scalar::bf16:
        half = f64_to_bf16(value);
        std::memcpy(at, &half, 2);
        return;
    case scalar::f32:
        single = static_cast<float>(value);
        std::memcpy(at, &single, 4);
        return;
    case scalar::f64: std::memcpy(at, &value, 8); return;
    default: FAIL("type");
    }
}

void butterflies(std::vector<double> &v) {
    for (size_t h = 1; h < v.size(); h *= 2)
        for (size_t i = 0; i < v.size(); ++i)
            if ((i & h) == 0) {
                const double a = v[i], b = v[i + h];
                v[i] = a + b;
                v[i + h] = a - b;
            }
}

/// A tensor with guard bytes: gaps and what lies around must not change.
struct buffer {
    std::vector<std::byte> bytes;
    buffer() = default;
    explicit buffer(int64_t size) : bytes(static_cast<size_t>(size), std::byte{0x5a}) {}
};

class machine {
public:
    machine(const problem &p, const pipeline &plan) : plan_(plan) {
        x = buffer(p.find(PLAIT_X)->span_bytes());
        y = buffer(p.find(PLAIT_Y)->span_bytes());
        work = buffer(plan.work.bytes());
        in_place = p.wht().alias;
    }

    void run() {
        for (const step &s : plan_.steps) {
            if (s.kernel == "wht.l2_reset") {
                const auto a = args_of<wht_l2_reset_args>(s);
                std::memset(element(s.operands[0], 0, scalar::f32), 0,
                            static_cast<size_t>(4 * a.count));
                continue;
            }
            const std::string variant = s.variant;
            const scalar from = type_of(variant.substr(0, variant.find('.')));
            const std::string rest = variant.substr(variant.find('.') + 1);
            const scalar to = type_of(rest.substr(0, rest.find('.')));
            if (s.kernel == "wht.block")
                rows<wht_block_args>(s, from, to);
            else if (s.kernel == "wht.mma16")
                rows<wht_mma16_args>(s, from, to);
            else if (s.kernel == "wht.cluster")
                rows<wht_cluster_args>(s, from, to);
            else if (s.kernel == "wht.l2")
                l2(s, from);
            else
                columns(s, from, to);
        }
    }

    buffer x, y, work;
    bool in_place = false;

private:
    static scalar type_of(const std::string &name) {
        for (const scalar s : {scalar::f16, scalar::bf16, scalar::f32, scalar::f64})
            if (name == scalar_name(s)) return s;
        FAIL("type " << name);
        return scalar::none;
    }

    std::byte *element(const operand &o, int64_t index, scalar type) {
        buffer &b = o.from == operand::source::work                        ? work
                    : o.role == PLAIT_Y || (in_place && o.role == PLAIT_X) ? y
                                                                           : x;
        int64_t at = o.offset + index * scalar_bytes(type);
        if (o.from == operand::source::work)
            at += plan_.work.pieces()[static_cast<size_t>(o.piece)].offset;
        if (at < 0 || at + scalar_bytes(type) > static_cast<int64_t>(b.bytes.size()))
            FAIL("byte " << at << " of " << b.bytes.size());
        return b.bytes.data() + at;
    }

    template <class Args> void rows(const step &s, scalar from, scalar to) {
        const auto a = args_of<Args>(s);
        const std::string mark = ".n";
        const int log_n = std::atoi(s.variant.c_str() + s.variant.find(mark) + mark.size());
        std::vector<double> v(size_t{1} << log_n);
        for (int64_t row = 0; row < a.rows; ++row) {
            for (size_t i = 0; i < v.size(); ++i)
                v[i] = load(from, element(s.operands[0],
                                          row * a.x_row_stride + static_cast<int64_t>(i), from));
            butterflies(v);
            for (size_t i = 0; i < v.size(); ++i)
                store(to,
                      element(s.operands[1], row * a.y_row_stride + static_cast<int64_t>(i), to),
                      v[i] * a.scale);
        }
    }

    /// Tile by tile in the order of the tickets, between counters and with the slots of the launch.
    void l2(const step &s, scalar type) {
        const auto a = args_of<wht_l2_args>(s);
        const std::string mark = ".n";
        const int log_n = std::atoi(s.variant.c_str() + s.variant.find(mark) + mark.size());
        const wht_l2_config c = wht_l2_config_of(type, log_n);
        const bool ring = c.mid != c.x;
        for (int64_t i = 0; i < wht_l2_counters(a.rows); ++i)
            CHECK(load(scalar::f32, element(s.operands[2], i, scalar::f32)) == 0);
        const int32_t tiles = a.rows << c.log_m;
        for (int32_t ticket = 0; ticket < 2 * tiles; ++ticket) {
            const wht_l2_job j = wht_l2_job_of(ticket, a.lead, tiles);
            const int64_t row = j.tile >> c.log_m;
            const int64_t first = wht_l2_tile_offset(c, j.pass, j.tile);
            const int64_t mid = ring ? row % a.slots << log_n : row * a.y_row_stride;
            const operand &between = s.operands[ring ? 3 : 1];
            const uint32_t size = 1u << c.log_tile, run = 1u << c.pass[j.pass].log_run;
            std::vector<double> v(size);
            for (uint32_t e = 0; e < size; ++e) {
                const int64_t at = first + wht_l2_offset(c, j.pass, e);
                v[e] = j.pass == 0
                           ? load(type, element(s.operands[0], row * a.x_row_stride + at, type))
                           : load(c.mid, element(between, mid + at, c.mid));
            }
            for (uint32_t h = j.pass == 0 ? 1 : run; h < size; h *= 2)
                for (uint32_t e = 0; e < size; ++e)
                    if ((e & h) == 0) {
                        const double p = v[e], q = v[e + h];
                        v[e] = p + q;
                        v[e + h] = p - q;
                    }
            for (uint32_t e = 0; e < size; ++e) {
                const int64_t at = first + wht_l2_offset(c, j.pass, e);
                if (j.pass == 0)
                    store(c.mid, element(between, mid + at, c.mid), v[e]);
                else
                    store(type, element(s.operands[1], row * a.y_row_stride + at, type),
                          v[e] * a.scale);
            }
        }
    }

    void columns(const step &s, scalar from, scalar to) {
        const auto a = args_of<wht_columns_args>(s);
        const int64_t m = int64_t{1} << a.log_m, inner = int64_t{1} << a.log_inner;
        std::vector<double> v(static_cast<size_t>(m));
        for (int64_t b = 0; b < a.batch; ++b)
            for (int64_t o = 0; o < a.outer; ++o)
                for (int64_t i = 0; i < inner; ++i) {
                    const auto at = [&](int64_t k) { return (o * m + k) * inner + i; };
                    for (int64_t k = 0; k < m; ++k)
                        v[static_cast<size_t>(k)] =
                            load(from, element(s.operands[0], b * a.x_batch_stride + at(k), from));
                    butterflies(v);
                    for (int64_t k = 0; k < m; ++k)
                        store(to, element(s.operands[1], b * a.y_batch_stride + at(k), to),
                              v[static_cast<size_t>(k)] * a.scale);
                }
    }

    const pipeline &plan_;
};

/// Runs the candidate's plan; `bound`: relative error in the norm of a row.
void run_and_compare(const std::string &token, const profile &device, const std::string &name,
                     double bound) {
    INFO(token << " " << name);
    const problem p = problem_of(token);
    const candidate &c = candidate_named(name);
    REQUIRE(c.applicable(p, device) == "");
    const pipeline plan = c.build(p, device);
    wht_rows r;
    REQUIRE(wht_as_rows(p, &r) == "");
    machine m(p, plan);
    buffer &input = m.in_place ? m.y : m.x;
    std::mt19937 random(7);
    std::vector<std::vector<double>> expected;
    for (int64_t row = 0; row < r.rows; ++row) {
        std::vector<double> v(static_cast<size_t>(r.n));
        for (int64_t i = 0; i < r.n; ++i) {
            const double value = static_cast<double>(random() % 17) - 8;
            std::byte *at = input.bytes.data() + (row * r.x_stride + i) * scalar_bytes(r.x);
            store(r.x, at, value);
            v[static_cast<size_t>(i)] = load(r.x, at);
        }
        butterflies(v);
        expected.push_back(std::move(v));
    }
    const std::vector<std::byte> before = m.x.bytes;
    const std::vector<std::byte> y_before = m.y.bytes;
    m.run();
    CHECK(m.x.bytes == before);
    double worst = 0;
    for (int64_t row = 0; row < r.rows; ++row) {
        double error = 0, norm = 0;
        for (int64_t i = 0; i < r.n; ++i) {
            const double want =
                expected[static_cast<size_t>(row)][static_cast<size_t>(i)] * r.scale;
            const double got =
                load(r.y, m.y.bytes.data() + (row * r.y_stride + i) * scalar_bytes(r.y));
            error += (got - want) * (got - want);
            norm += want * want;
        }
        worst = std::max(worst, std::sqrt(error / norm));
        // The gap behind the row.
        if (row + 1 < r.rows)
            for (int64_t at = (row * r.y_stride + r.n) * scalar_bytes(r.y);
                 at < (row + 1) * r.y_stride * scalar_bytes(r.y); ++at)
                if (m.y.bytes[static_cast<size_t>(at)] != y_before[static_cast<size_t>(at)])
                    FAIL("byte " << at << " between rows changed");
    }
    CHECK(worst <= bound);
}

/// A device whose blocks are so small that short rows need many passes.
profile small_device(int64_t smem) {
    profile p = profile_named("h200");
    p.name = "small";
    p.smem_per_block = smem;
    return p;
}

} // namespace

TEST_CASE("facts of every pipeline") {
    for (const named_profile &device : profiles())
        for (const std::string &token : corpus()) {
            const problem p = problem_of(token);
            for (const candidate &c : candidates_of("wht")) {
                if (c.backend != device.facts.backend) continue;
                if (!c.applicable(p, device.facts).empty()) continue;
                INFO(token << " " << c.name << " on " << device.name);
                const pipeline plan = c.build(p, device.facts);
                REQUIRE_FALSE(plan.steps.empty());
                CHECK(plan.work.sealed());
                bool reads_x = false, writes_y = false;
                for (const step &s : plan.steps) {
                    CHECK(s.grid >= 1);
                    CHECK(s.grid <= 0x7fffffff);
                    CHECK(s.block >= 1);
                    CHECK((s.bytes_read > 0) ==
                          (s.kernel != "wht.l2_reset" && s.kernel != "wht.clear"));
                    CHECK(s.bytes_written > 0);
                    CHECK(s.operands.size() * sizeof(void *) <= s.args.size());
                    if (c.backend == PLAIT_CUDA) {
                        CHECK(s.block <= 1024);
                        CHECK(s.smem_bytes <= device.facts.smem_per_block);
                        CHECK(s.cluster >= 1);
                        CHECK(s.grid % s.cluster == 0);
                        CHECK_FALSE(s.variant.empty());
                    } else {
                        CHECK(s.block <= device.facts.threads);
                    }
                    for (const operand &o : s.operands) {
                        if (o.from == operand::source::work) {
                            REQUIRE(o.piece >= 0);
                            REQUIRE(o.piece < static_cast<int>(plan.work.pieces().size()));
                            CHECK(o.offset <
                                  plan.work.pieces()[static_cast<size_t>(o.piece)].bytes);
                        }
                        if (o.from == operand::source::role) {
                            REQUIRE(p.find(o.role));
                            CHECK(o.offset < p.find(o.role)->span_bytes());
                            reads_x |= o.role == PLAIT_X && !o.written;
                            writes_y |= o.role == PLAIT_Y && o.written;
                            CHECK_FALSE((o.role == PLAIT_X && o.written));
                        }
                    }
                }
                CHECK(reads_x);
                const tensor *y = p.find(PLAIT_Y);
                CHECK(writes_y == (y != nullptr));
                if (y) CHECK(plan.bytes_written() >= y->elements() * dtype_of(y->dtype).bits / 8);
            }
        }
}

TEST_CASE("CUDA plans compute the transform") {
    const profile &h200 = profile_named("h200");
    const double f32 = 18 * std::ldexp(1.0, -24), f64 = 1e-14;
    run_and_compare("wht:f32:b5:n1024:scale=0.03125", h200, "wht.cuda.block", f32);
    run_and_compare("wht:f32:b5:n1024:x.s1028.1:y.s1030.1", h200, "wht.cuda.block", f32);
    run_and_compare("wht:f32:b7:n1:scale=2:x.s3.1", h200, "wht.cuda.block", f32);
    run_and_compare("wht:bf16:b3:n2048:y.f32", h200, "wht.cuda.block", f32);
    run_and_compare("wht:f32:b3:n65536:scale=0.003:x.s65540.1:y.s65544.1", h200, "wht.cuda.cluster",
                    f32);
    run_and_compare("wht:f64:b2:n131072:y@x", h200, "wht.cuda.cluster", f64);
    for (const char *name :
         {"wht.cuda.two_pass.shuffle", "wht.cuda.two_pass.tiled", "wht.cuda.multi_pass"}) {
        run_and_compare("wht:f32:b2:n131072:scale=0.003", h200, name, f32);
        run_and_compare("wht:f32:b2:n131072:y@x", h200, name, f32);
        run_and_compare("wht:f64:n65536:scale=-7", h200, name, f64);
        run_and_compare("wht:f16:b2:n131072:scale=0.00390625:y.f32", h200, name, f32);
        // More rows than parts of a row, and the other way round.
        run_and_compare("wht:f32:b33:n131072:x.s131076.1:y.s131080.1", h200, name, f32);
        run_and_compare("wht:f32:b2:n524288:x.s524292.1:y.s524292.1@x", h200, name, f32);
    }
    run_and_compare("wht:f32:b3:n131072:x.s131073.1:y.s131075.1", h200, "wht.cuda.two_pass.tiled",
                    f32);
}

TEST_CASE("CUDA plans of 16-bit data round between passes or not") {
    const profile &h200 = profile_named("h200");
    const double f16 = std::ldexp(2.5, -11), bf16 = std::ldexp(2.5, -8); // two roundings
    const double f16_once = std::ldexp(1.0, -11), bf16_once = std::ldexp(1.0, -8);
    for (const char *name : {"wht.cuda.two_pass.shuffle", "wht.cuda.two_pass.tiled"}) {
        run_and_compare("wht:f16:b2:n131072:scale=0.00390625", h200, name, f16);
        // All of this scale early would do; none early would overflow: 2^15 * 8 is beyond f16.
        run_and_compare("wht:f16:b2:n131072:scale=0.0027", h200, name, f16);
        run_and_compare("wht:bf16:b2:n131072:scale=3", h200, name, bf16);
        run_and_compare("wht:bf16:b3:n131072:x.s131080.1:y.s131088.1", h200, name, bf16);
    }
    for (const char *token : {"wht:f16:b2:n131072:scale=0.0027", "wht:f16:n131072:scale=1e-07:y@x"})
        run_and_compare(token, h200, "wht.cuda.multi_pass", f16_once);
    run_and_compare("wht:bf16:b3:n131072:x.s131080.1:y.s131074.1", h200, "wht.cuda.multi_pass",
                    bf16_once);
    run_and_compare("wht:f32:b2:n131072:scale=0.001:y.f16", h200, "wht.cuda.multi_pass", f16_once);
}

TEST_CASE("CUDA plans whose passes meet in the L2 cache") {
    const profile &h200 = profile_named("h200");
    const double f32 = 20 * std::ldexp(1.0, -24);
    run_and_compare("wht:f32:b3:n65536:scale=0.003:x.s65540.1:y.s65544.1", h200, "wht.cuda.l2",
                    f32);
    run_and_compare("wht:f32:b2:n1048576:y@x", h200, "wht.cuda.l2", f32);
    run_and_compare("wht:f32:n4194304:scale=-7", h200, "wht.cuda.l2", f32);
    run_and_compare("wht:f64:b3:n65536:scale=0.1", h200, "wht.cuda.l2", 1e-14);
    run_and_compare("wht:f16:b30:n131072:scale=0.00390625", h200, "wht.cuda.l2",
                    std::ldexp(1.0, -11));
    run_and_compare("wht:bf16:b2:n1048576:scale=3:y@x", h200, "wht.cuda.l2", std::ldexp(1.0, -8));
    // fewer blocks, fewer slots
    profile small = h200;
    small.name = "small";
    small.sms = 2;
    run_and_compare("wht:f16:b9:n131072:scale=0.00390625:y@x", small, "wht.cuda.l2",
                    std::ldexp(1.0, -11));
}

TEST_CASE("CUDA plans of three and more passes") {
    const double f32 = 22 * std::ldexp(1.0, -24);
    const profile small = small_device(1024);
    const pipeline plan =
        candidate_named("wht.cuda.multi_pass").build(problem_of("wht:f32:n4194304"), small);
    CHECK(plan.steps.size() == 4);
    run_and_compare("wht:f32:n4194304:scale=0.1", small, "wht.cuda.multi_pass", f32);
    run_and_compare("wht:f32:b3:n65536:x.s65540.1:y.s65544.1", small, "wht.cuda.multi_pass", f32);
    run_and_compare("wht:bf16:b2:n262144:scale=0.01", small_device(6000), "wht.cuda.multi_pass",
                    std::ldexp(1.0, -8));
}

TEST_CASE("an f16 intermediate overflows only where the result does") {
    // All ones: the first pass makes 2^c, the last 2^log_n times the scale, which is 2^15 here.
    const problem p = problem_of("wht:f16:n1048576:scale=0.03125");
    for (const char *name : {"wht.cuda.two_pass.shuffle", "wht.cuda.two_pass.tiled"}) {
        const pipeline plan = candidate_named(name).build(p, profile_named("h200"));
        machine m(p, plan);
        for (int64_t i = 0; i < 1048576; ++i) store(scalar::f16, m.x.bytes.data() + 2 * i, 1.0);
        m.run();
        CHECK(load(scalar::f16, m.y.bytes.data()) == 32768.0);
        CHECK(load(scalar::f16, m.y.bytes.data() + 2) == 0.0);
    }
    // A scale of zero makes zeros, also where the unscaled values would overflow.
    const problem zero = problem_of("wht:f16:n1048576:scale=0");
    const pipeline plan =
        candidate_named("wht.cuda.two_pass.tiled").build(zero, profile_named("h200"));
    machine m(zero, plan);
    for (int64_t i = 0; i < 1048576; ++i) store(scalar::f16, m.x.bytes.data() + 2 * i, 100.0);
    m.run();
    CHECK(load(scalar::f16, m.y.bytes.data()) == 0.0);
}

} // namespace plait::test
