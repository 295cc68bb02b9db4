// Sizes at the edges: one element, nothing, very many rows, very long rows.
#include "tests/support/check.h"
#include "tests/support/random_call.h"

#include <cmath>

namespace plait::test {
namespace {

wht_call rows(plait_dtype type, int64_t count, int64_t n) {
    wht_call c;
    c.x = type;
    c.extents = {count, n};
    return c;
}

const plait_dtype every_type[] = {PLAIT_F32, PLAIT_F64, PLAIT_F16, PLAIT_BF16,
                                  PLAIT_I32, PLAIT_I64, PLAIT_C64, PLAIT_C128};

/// A few impulses: y[k] = sum of a_i (-1)^popcount(k & j_i). Exact in every type, any length.
struct impulses {
    int64_t at[3];
    double weight[3] = {1, -2, 4};

    impulses(rng &random, int64_t n) {
        for (int64_t &j : at) j = random.between(0, n - 1);
    }
    double x(int64_t e) const {
        double v = 0;
        for (int i = 0; i < 3; ++i) v += e == at[i] ? weight[i] : 0;
        return v;
    }
    double y(int64_t k) const {
        double v = 0;
        for (int i = 0; i < 3; ++i) v += weight[i] * hadamard_sign(k, at[i]);
        return v;
    }
};

} // namespace

TEST_CASE("edge: n = 1 is a scaled copy, n = 2 one butterfly") {
    rng random(config().seed);
    for (plait_dtype type : every_type)
        for (int64_t n : {1, 2})
            for (int64_t count : {1, 2, 3, 7, 64, 1000}) {
                wht_call c = rows(type, count, n);
                expect_exact(c, random_data(c, filling::integers, random));
                if (is_integer(type)) continue;
                c.scale = -0.25;
                expect_exact(c, random_data(c, filling::integers, random));
                c.scale = 1 / std::sqrt(2.0);
                expect_close(c, random_data(c, filling::uniform, random));
            }
}

TEST_CASE("edge: an extent of zero makes a plan without steps that takes null pointers") {
    for (plait_dtype type : every_type)
        for (const std::vector<int64_t> &extents :
             {std::vector<int64_t>{0, 64}, {3, 0}, {0}, {0, 0}, {2, 0, 8}}) {
            wht_call c;
            c.x = type;
            c.extents = extents;
            const desc_ptr desc = desc_of(c);
            plait_plan *raw = nullptr;
            REQUIRE(plait_plan_create(&raw, context(), desc.get(), nullptr) == PLAIT_OK);
            const plan_ptr plan(raw);
            int64_t steps = -1;
            CHECK(plait_plan_get_i64(raw, PLAIT_PLAN_STEPS, &steps) == PLAIT_OK);
            CHECK(steps == 0);
            size_t work = 1;
            CHECK(plait_plan_workspace_size(raw, &work) == PLAIT_OK);
            CHECK(work == 0);
            const plait_arg args[] = {{PLAIT_X, nullptr}, {PLAIT_Y, nullptr}};
            CHECK(plait_execute(raw, args, 2, nullptr, 0, target().stream()) == PLAIT_OK);
        }
}

TEST_CASE("edge: odd row counts, and more rows than any grid dimension but the first takes") {
    rng random(config().seed);
    for (plait_dtype type : {PLAIT_F32, PLAIT_F64, PLAIT_F16, PLAIT_BF16}) {
        for (int64_t n : {1, 2, 4, 8, 16, 32, 64})
            for (int64_t count : {65535, 65536, 65537, 70003}) {
                if (config().small && count != 70003) continue;
                if (!on_device() && (count != 70003 || n > 8)) continue;
                const wht_call c = rows(type, count, n);
                expect_exact(c, random_data(c, filling::integers, random));
            }
        // Tails: counts around multiples of what one block takes.
        for (int64_t n : {16, 64, 256})
            for (int64_t count : {1, 3, 5, 15, 17, 31, 33, 127, 129, 255, 257, 8193, 8195}) {
                if ((config().small || !on_device()) && count > 300) continue;
                const wht_call c = rows(type, count, n);
                expect_exact(c, random_data(c, filling::integers, random));
            }
    }
}

TEST_CASE("edge: one long row, from impulses and to impulses") {
    rng random(config().seed);
    int top = on_device() ? 22 : 20; // tests/gpu/kernels_test.cpp has longer ones
    if (config().small) return;
    if (config().brief) top = 18;
    if (config().large) top = 28;
    for (plait_dtype type : {PLAIT_F32, PLAIT_F64, PLAIT_F16, PLAIT_BF16})
        for (int k = 18; k <= top; ++k) {
            const int64_t n = int64_t{1} << k;
            if (static_cast<size_t>(n) * 48 > host_memory().available()) break;
            const impulses points(random, n);
            wht_call c;
            c.x = type;
            c.extents = {n};
            wht_data data;
            data.x.resize(static_cast<size_t>(n * bytes_of(type)));
            for (int64_t j : points.at) store(type, data.x.data(), j, points.x(j));
            // Exact, but for candidates that round to 16 bits between passes.
            const auto right = [&](const bytes &y, const candidate &by, auto &&want) {
                if (y.empty()) return false;
                double error = 0, size = 0, store = 0;
                for (int64_t e = 0; e < n; ++e) {
                    const double w = want(e), d = load(type, y.data(), e) - w;
                    error += d * d;
                    size += w * w;
                    if (is_sixteen_bit(type)) store += half_ulp(type, w) * half_ulp(type, w);
                }
                if (is_exact(by, c)) return error == 0;
                return std::sqrt(error) <=
                       (k + 1) * roundoff_of(by, c) * std::sqrt(size) + std::sqrt(store);
            };
            wht_call back = c; // in place, one element off
            back.scale = std::exp2(-k);
            back.alias = true;
            back.x_offset = back.y_offset = 1;
            wht_data spectrum = data;
            for (int64_t e = 0; e < n; ++e) store(type, spectrum.x.data(), e, points.y(e));
            for_each_candidate(c, [&](const candidate &by) {
                CHECK(right(result_of(c, data, by), by, [&](int64_t e) { return points.y(e); }));
            });
            for_each_candidate(back, [&](const candidate &by) {
                CHECK(right(result_of(back, spectrum, by), by,
                            [&](int64_t e) { return points.x(e); }));
            });
        }
}

TEST_CASE("edge: integers at the ends of their range, behind the signs of an adjoint") {
    // 2^(w-1) does not fit, its negative does, and between the passes nobody knows yet.
    rng random(config().seed);
    for (plait_dtype type : {PLAIT_I32, PLAIT_I64})
        for (int k : {0, 1, 2, 5, 9, config().small || config().brief ? 10 : 18})
            for (bool columns : {false, true}) {
                const int64_t n = int64_t{1} << k, count = k > 10 ? 1 : 3;
                wht_call c = rows(type, count, n);
                if (columns) c.extents = {n, count}, c.axes = 1;
                c.signs = c.adjoint = c.overflow = true;
                const int64_t lowest = type == PLAIT_I32 ? INT32_MIN : INT64_MIN;
                const auto place = [&](int64_t e) { return columns ? e / count : e % n; };
                for (int form = 0; form < 6; ++form) {
                    if (k > 10 && (columns || form < 2)) continue; // several passes: few of them
                    // Sums at the end of the range: one of each transform, or all.
                    const auto x = [&](int64_t e) -> int64_t {
                        if (form < 2) return lowest / n;
                        if (form < 4 && n > 1) return -(lowest / n);
                        return place(e) == n / 2 ? lowest : 0;
                    };
                    wht_data data;
                    data.x.resize(static_cast<size_t>(c.elements() * bytes_of(type)));
                    for (int64_t e = 0; e < c.elements(); ++e)
                        store_integer(type, data.x.data(), e, x(e));
                    data.signs.assign(static_cast<size_t>(n), form % 2 == 1);
                    if (form == 5) // brings every sum of 2^(w-1) back
                        for (int64_t i = 0; i < n; ++i)
                            data.signs[static_cast<size_t>(i)] = hadamard_sign(i, n / 2) < 0;
                    const expectation ref = reference(c, data);
                    note_count(ref.overflow ? "edges: ends of the range, reported"
                                            : "edges: ends of the range, not reported");
                    for_each_candidate(c, [&](const candidate &by) {
                        const outcome out = run(c, data, by);
                        CHECK(out.fault == "");
                        CHECK(first_difference(c, ref, out.y) == "");
                        CHECK((out.overflow != 0) == ref.overflow);
                    });
                }
            }
}

TEST_CASE("edge: a promise of alignment that the pointer breaks is refused, the rest runs") {
    for (plait_dtype type : {PLAIT_F32, PLAIT_F64, PLAIT_F16, PLAIT_BF16}) {
        const wht_call c = rows(type, 4, 64);
        const desc_ptr desc = desc_of(c);
        for (const candidate &by : applicable(desc.get())) {
            const plan_ptr plan = plan_by(by.name, desc.get());
            const auto size = static_cast<size_t>(c.elements() * bytes_of(type));
            guarded x(size + 16, 0, 0), y(size + 16, 0, 0xA5);
            const bytes before = y.get();
            size_t work_bytes = 0;
            REQUIRE(plait_plan_workspace_size(plan.get(), &work_bytes) == PLAIT_OK);
            guarded work(work_bytes, 0, 0);
            const auto off = static_cast<int64_t>(bytes_of(type) % 16);
            for (int which : {0, 1}) {
                const plait_arg args[] = {
                    {PLAIT_X, static_cast<char *>(x.data()) + (which == 0 ? off : 0)},
                    {PLAIT_Y, static_cast<char *>(y.data()) + (which == 1 ? off : 0)}};
                CHECK(plait_execute(plan.get(), args, 2, work.data(), work_bytes,
                                    target().stream()) == PLAIT_ERR_POINTER);
            }
            target().wait();
            CHECK(y.get() == before);
        }
    }
}

TEST_CASE("edge: more than 2^31 elements") {
    // On the device tests/gpu checks this without moving the data to the host.
    if (on_device() || !config().large) {
        note_count("edges: 2^31 elements on the CPU, not without PLAIT_TEST_LARGE=1");
        return;
    }
    const int64_t n = 4, count = (int64_t{1} << 29) + 1;
    if (host_memory().available() < static_cast<size_t>(5 * n * count)) {
        note_count("edges: 2^31 elements, not enough memory");
        return;
    }
    const wht_call c = rows(PLAIT_BF16, count, n);
    const desc_ptr desc = desc_of(c);
    for (const candidate &by : applicable(desc.get())) {
        CAPTURE(by.name);
        const plan_ptr plan = plan_by(by.name, desc.get());
        guarded x(static_cast<size_t>(n * count * 2), 0, 0);
        guarded y(static_cast<size_t>(n * count * 2), 0, 0xFF);
        for (int64_t j = 0; j < n; ++j)
            store(PLAIT_BF16, x.data(), (count - 1) * n + j, static_cast<double>(j + 1));
        const plait_arg args[] = {{PLAIT_X, x.data()}, {PLAIT_Y, y.data()}};
        REQUIRE(plait_execute(plan.get(), args, 2, nullptr, 0, nullptr) == PLAIT_OK);
        const double want[] = {10, -2, -4, 0};
        int64_t wrong = -1;
        for (int64_t e = 0; e < n * count && wrong < 0; ++e)
            if (load(PLAIT_BF16, y.data(), e) != (e < n * (count - 1) ? 0 : want[e % 4])) wrong = e;
        CHECK(wrong == -1);
    }
}

} // namespace plait::test
