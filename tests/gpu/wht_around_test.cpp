// What stands around the passes of a transform on CUDA (narrow inputs, diagonals, ROWS, AMAX,
// SCALES, HISTOGRAM, FACTOR), on random problems of every form: the results of the definition on
// the CPU.
#include "tests/support/memory.h"
#include "tests/support/report.h"
#include "tests/support/rng.h"
#include "tests/support/runner.h"

#include <cmath>
#include <cstring>
#include <doctest/doctest.h>
#include <memory>

#ifdef PLAIT_TEST_EMULATED
#    include "tests/emulate/orders.h"
#endif

namespace plait::test {
namespace {

/// Bytes of an element, of the types that other tests do not have too; 0 for bits.
int64_t size_of(plait_dtype t) {
    if (t == PLAIT_B1) return 0;
    return t == PLAIT_I8 || t == PLAIT_E4M3 ? 1 : t == PLAIT_I16 ? 2 : bytes_of(t);
}

struct tensor_facts {
    plait_role role;
    plait_access access;
    plait_dtype dtype;
    int rank = 0;
    int64_t extents[PLAIT_MAX_RANK], strides[PLAIT_MAX_RANK];

    int64_t span() const {
        int64_t last = 0;
        for (int a = 0; a < rank; ++a) {
            if (extents[a] == 0) return 0;
            last += (extents[a] - 1) * strides[a];
        }
        return last + 1;
    }
    size_t bytes() const {
        if (dtype == PLAIT_B1) return static_cast<size_t>((span() + 31) / 32 * 4);
        return static_cast<size_t>(span() * size_of(dtype));
    }
};

std::vector<tensor_facts> tensors_of(const plait_desc *desc) {
    int count = 0;
    REQUIRE(plait_desc_num_tensors(desc, &count) == PLAIT_OK);
    std::vector<tensor_facts> all(static_cast<size_t>(count));
    for (int i = 0; i < count; ++i) {
        tensor_facts &t = all[static_cast<size_t>(i)];
        REQUIRE(plait_desc_tensor(desc, i, &t.role, &t.access, &t.dtype, &t.rank, t.extents,
                                  t.strides) == PLAIT_OK);
    }
    return all;
}

enum class content { small, uniform, whole, infinite };

bytes filled(const tensor_facts &t, content how, int64_t places, rng &r) {
    bytes out(t.bytes());
    const auto n = static_cast<int64_t>(out.size());
    if (t.role == PLAIT_ROWS) {
        for (int64_t i = 0; i < t.span(); ++i)
            store_integer(t.dtype, out.data(), i, r.between(r.chance(0.1) ? -1 : 0, places));
    } else if (t.dtype == PLAIT_B1 || how == content::whole || t.dtype == PLAIT_I8) {
        for (std::byte &b : out) b = static_cast<std::byte>(r.next());
    } else if (is_integer(t.dtype) || t.dtype == PLAIT_I16) {
        for (int64_t i = 0; i < t.span(); ++i) {
            const auto v = static_cast<int16_t>(r.between(-9, 9));
            if (t.dtype == PLAIT_I16)
                std::memcpy(out.data() + 2 * i, &v, 2);
            else
                store_integer(t.dtype, out.data(), i, v);
        }
    } else {
        const plait_dtype real = real_of(t.dtype);
        for (int64_t i = 0; i < n / bytes_of(real); ++i)
            store(real, out.data(), i,
                  how == content::uniform ? r.sign_unit() : static_cast<double>(r.between(-2, 2)));
        if (how == content::infinite && t.role == PLAIT_X && n > 0)
            store(real, out.data(), r.between(0, n / bytes_of(real) - 1), INFINITY);
    }
    return out;
}

double e4m3(std::byte b) {
    const int bits = static_cast<int>(b), exponent = bits >> 3 & 15, fraction = bits & 7;
    if ((bits & 0x7f) == 0x7f) return NAN;
    const double size =
        std::ldexp(exponent == 0 ? fraction : 8 + fraction, (exponent == 0 ? 1 : exponent) - 10);
    return bits & 0x80 ? -size : size;
}

/// "" or where an output differs from that of the definition. `u`: of the accumulate type.
std::string differs(const tensor_facts &t, const bytes &got, const bytes &want, double u,
                    double depth) {
    if (is_integer(t.dtype)) return got == want ? "" : "an integer differs";
    const bool eight = t.dtype == PLAIT_E4M3;
    const plait_dtype real = eight ? PLAIT_F32 : real_of(t.dtype);
    const auto n = static_cast<int64_t>(got.size()) / (eight ? 1 : bytes_of(real));
    const auto at = [&](const bytes &b, int64_t i) {
        return eight ? e4m3(b[static_cast<size_t>(i)]) : load(real, b.data(), i);
    };
    double norm = 0, error = 0, stored = 0;
    for (int64_t i = 0; i < n; ++i) {
        const double g = at(got, i), w = at(want, i);
        if (!std::isfinite(w) || !std::isfinite(g)) {
            if (std::isnan(w) ? std::isnan(g) : g == w) continue;
            return "[" + std::to_string(i) + "] is " + std::to_string(g) + ", must be " +
                   std::to_string(w);
        }
        norm += w * w;
        error += (g - w) * (g - w);
        const double step = eight ? std::fmax(0x1p-9, std::fabs(w) / 8) : 2 * half_ulp(real, w);
        if (eight && std::fabs(g - w) > 1.01 * step + 1e-5 * std::fabs(w))
            return "[" + std::to_string(i) + "] is " + std::to_string(g) + ", must be near " +
                   std::to_string(w);
        stored += step * step;
    }
    if (eight) return ""; // a step at a tie of rounding
    const double allowed = depth * u * std::sqrt(norm) + std::sqrt(stored);
    if (error <= allowed * allowed) return "";
    return "error " + std::to_string(std::sqrt(error)) + " of norm " +
           std::to_string(std::sqrt(norm));
}

/// A random descriptor; null where its options contradict each other.
struct random_problem {
    desc_ptr desc;
    int64_t places = 1; ///< of one transform
    int64_t depth = 0;  ///< additions in a row, at most
    content how = content::small;

    explicit random_problem(rng &r, int log_limit) {
        const plait_dtype x =
            r.pick({PLAIT_F32, PLAIT_F32, PLAIT_F64, PLAIT_F16, PLAIT_BF16, PLAIT_BF16, PLAIT_C64,
                    PLAIT_C128, PLAIT_I32, PLAIT_I64, PLAIT_I8, PLAIT_I16, PLAIT_B1});
        const bool complex = is_complex(x);
        const bool whole = is_integer(x) || x == PLAIT_I8 || x == PLAIT_I16;
        const bool factor = r.chance(0.3);
        const int order = static_cast<int>(r.pick<int64_t>({2, 3, 12, 20, 33, 64, 100}));
        const auto named = r.pick({PLAIT_H52_WILLIAMSON, PLAIT_H60_PALEY1, PLAIT_H36_PALEY2,
                                   PLAIT_H116_WILLIAMSON, PLAIT_H108_PALEY1});
        const int of_name[] = {52, 60, 108, 116, 124, 140, 156, 172};
        const bool given = r.chance(0.5);
        int64_t m = 1;
        if (factor)
            m = given                       ? order
                : named == PLAIT_H36_PALEY2 ? 36
                                            : of_name[named - PLAIT_H52_WILLIAMSON];
        const int64_t n = m << r.between(0, std::max(0, log_limit - (m > 1 ? 5 : 0)));
        const int64_t b = r.between(1, 1 + (int64_t{1} << log_limit) / n % 64 + 4);
        std::vector<int64_t> extents = {b, n};
        uint32_t axes = 2;
        switch (r.between(0, 4)) {
        case 0: extents = {n, b}, axes = 1; break;
        case 1: extents = {r.between(1, 3), n, r.between(1, 9)}, axes = 2; break;
        case 2: extents = {r.between(1, 2), int64_t{1} << r.between(0, 3), n}, axes = 6; break;
        default: break;
        }
        plait_desc *d = nullptr;
        const int rank = static_cast<int>(extents.size());
        REQUIRE(plait_wht_create(&d, x, rank, extents.data()) == PLAIT_OK);
        desc.reset(d);
        plait_wht_set_axes(d, axes);
        const int axis = axes == 1 ? 0 : axes == 6 ? 2 : 1;
        for (int a = 0; a < rank; ++a)
            if (axes >> a & 1u) places *= extents[static_cast<size_t>(a)];
        depth = 2 * (m + 16);
        for (int64_t k = places; k > 1; k /= 2) depth += 2;
        if (factor && given) plait_wht_set_factor_order(d, axis, order);
        if (factor && !given) plait_wht_set_factor(d, axis, named);
        if (!factor && r.chance(0.25))
            plait_wht_set_order(d, r.pick({PLAIT_SEQUENCY, PLAIT_DYADIC}));
        if (r.chance(0.35)) plait_wht_set_adjoint(d, 1);
        plait_dtype y = x;
        if (whole || x == PLAIT_B1) y = r.pick({PLAIT_I32, PLAIT_I64});
        if (complex) y = r.pick({PLAIT_C64, PLAIT_C128});
        if (!whole && !complex && (x != PLAIT_B1 || r.chance(0.4)))
            y = r.pick({PLAIT_F32, PLAIT_F64, PLAIT_F16, PLAIT_BF16, PLAIT_E4M3, PLAIT_E4M3});
        plait_desc_set_dtype(d, PLAIT_Y, y);
        const bool floats = !is_integer(y);
        if (floats && r.chance(0.6)) plait_wht_set_scale(d, r.pick({0.5, 0.0625, -0.3}));
        if (r.chance(0.3)) plait_desc_use(d, PLAIT_SIGNS, 1);
        if (floats && x != PLAIT_B1)
            for (const plait_role role : {PLAIT_DIAG, PLAIT_DIAG_IN, PLAIT_DIAG_MID}) {
                if (!r.chance(0.3)) continue;
                plait_desc_use(d, role, 1);
                if (complex && r.chance(0.5)) plait_desc_set_dtype(d, role, real_of(x));
                if (r.chance(0.3)) { // values of its own for each transform
                    std::vector<int64_t> s(extents.size(), 1);
                    for (size_t a = s.size(); a-- > 1;) s[a - 1] = s[a] * extents[a];
                    plait_desc_set_strides(d, role, rank, s.data());
                }
            }
        int64_t results = n;
        bool gathers = false;
        if (axes != 6 && r.chance(0.3)) {
            gathers = true;
            results = r.between(1, 2 * n);
            plait_wht_set_rows(d, results);
            plait_desc_set_dtype(d, PLAIT_ROWS, r.pick({PLAIT_I32, PLAIT_I64}));
            if (r.chance(0.5)) plait_desc_use(d, PLAIT_STATUS, 1);
        }
        if (!floats && r.chance(0.4)) plait_desc_use(d, PLAIT_OVERFLOW, 1);
        const bool amax = !complex && r.chance(0.5), bins = !floats && r.chance(0.5);
        const bool scales = y == PLAIT_E4M3 && r.chance(0.6);
        if (amax) plait_desc_use(d, PLAIT_AMAX, 1);
        if (amax && floats && r.chance(0.3)) plait_desc_set_dtype(d, PLAIT_AMAX, PLAIT_F64);
        if (bins)
            plait_wht_set_histogram(d, r.between(1, 80), r.between(-40, 0),
                                    r.pick<int64_t>({1, 2, 3, 7}));
        if (scales) plait_desc_use(d, PLAIT_SCALES, 1);
        if ((amax || scales) && axes != 6 && r.chance(0.5))
            for (const int64_t g : {16, 7, 4, 2})
                if (results % g == 0) {
                    plait_wht_set_group(d, g);
                    break;
                }
        if ((amax || bins) && !scales && r.chance(0.3)) {
            plait_desc_use(d, PLAIT_Y, 0);
        } else if (!gathers && size_of(x) == size_of(y) && r.chance(0.2)) {
            plait_desc_set_alias(d, PLAIT_Y, PLAIT_X);
        } else if (r.chance(0.3) && !gathers) {
            std::vector<int64_t> s(extents.size(), r.between(1, 2));
            for (size_t a = s.size(); a-- > 1;) s[a - 1] = s[a] * extents[a] + r.between(0, 3);
            plait_desc_set_strides(d, r.pick({PLAIT_X, PLAIT_Y}), rank, s.data());
        }
        how = r.pick({content::small, content::uniform, content::infinite});
        if (whole) how = r.pick({content::small, content::whole});
        if (plait_desc_check(d) != PLAIT_OK) desc.reset();
    }
};

/// Tensors of a call, on the host or in the memory under test.
struct call_memory {
    std::vector<std::unique_ptr<guarded>> buffers;
    std::vector<plait_arg> args;
};

plan_ptr plan_on(const plait_context *ctx, const plait_desc *desc, const std::string &name) {
    const pref_ptr pref = preferences(name, PLAIT_MATH_F32);
    plait_plan *raw = nullptr;
    const plait_status s = plait_plan_create(&raw, ctx, desc, pref.get());
    REQUIRE_MESSAGE(s == PLAIT_OK, plait_last_error());
    return plan_ptr(raw);
}

struct checked_call {
    const plait_desc *desc;
    std::vector<tensor_facts> facts;
    std::vector<bytes> before, want;
    std::vector<int> shares; ///< the tensor whose memory it is, or -1

    checked_call(const random_problem &p, rng &r) : desc(p.desc.get()), facts(tensors_of(desc)) {
        const std::string token = token_of(desc);
        for (const tensor_facts &t : facts) {
            const bool in_place = t.role == PLAIT_Y && token.find("@x") != token.npos;
            shares.push_back(in_place ? 0 : -1); // X is the first
            before.push_back(t.access == PLAIT_READ ? filled(t, p.how, p.places, r)
                                                    : bytes(t.bytes(), std::byte{0xff}));
        }
        plait_context *raw = nullptr;
        REQUIRE(plait_context_create(&raw, PLAIT_CPU, 0) == PLAIT_OK);
        const context_ptr cpu(raw);
        const plan_ptr plan = plan_on(cpu.get(), desc, "wht.cpu.ref");
        want = before;
        std::vector<plait_arg> args;
        for (size_t i = 0; i < facts.size(); ++i)
            args.push_back({facts[i].role, want[shares[i] < 0 ? i : size_t{0}].data()});
        size_t size = 0;
        REQUIRE(plait_plan_workspace_size(plan.get(), &size) == PLAIT_OK);
        std::vector<std::byte> work(size + 256);
        void *base = work.data() + (256 - reinterpret_cast<uintptr_t>(work.data()) % 256) % 256;
        REQUIRE_MESSAGE(plait_execute(plan.get(), args.data(), static_cast<int>(args.size()), base,
                                      size, nullptr) == PLAIT_OK,
                        plait_last_error());
    }

    /// The outputs of one run by a candidate of the backend under test.
    std::vector<bytes> run(const std::string &name) const {
        const plan_ptr plan = plan_on(context(), desc, name);
        size_t size = 0;
        REQUIRE(plait_plan_workspace_size(plan.get(), &size) == PLAIT_OK);
        guarded work(size, 0, workspace_fill());
        call_memory m;
        for (size_t i = 0; i < facts.size(); ++i) {
            m.buffers.push_back(
                std::make_unique<guarded>(shares[i] < 0 ? before[i].size() : size_t{0}, 0, 0xff));
            if (shares[i] < 0) m.buffers.back()->put(before[i]);
            m.args.push_back({facts[i].role, m.buffers[shares[i] < 0 ? i : size_t{0}]->data()});
        }
        target().wait();
        const plait_status s =
            plait_execute(plan.get(), m.args.data(), static_cast<int>(m.args.size()), work.data(),
                          size, target().stream());
        CHECK_MESSAGE(s == PLAIT_OK, plait_last_error());
        target().wait();
        if (on_device()) note_steps(plan.get());
        CHECK(work.damage() == "");
        std::vector<bytes> out;
        for (size_t i = 0; i < facts.size(); ++i) {
            CHECK(m.buffers[i]->damage() == "");
            out.push_back(m.buffers[shares[i] < 0 ? i : size_t{0}]->get());
            if (facts[i].access == PLAIT_READ && !shared(i)) CHECK(out.back() == before[i]);
        }
        return out;
    }
    bool shared(size_t i) const {
        return std::find(shares.begin(), shares.end(), static_cast<int>(i)) != shares.end();
    }
};

void check_one(uint64_t seed, int log_limit) {
    rng r(seed);
    const random_problem p(r, log_limit);
    if (!p.desc) return note_count("around: contradictions");
    const std::string token = token_of(p.desc.get());
    CAPTURE(token);
    CAPTURE(seed);
    plait_desc *again = nullptr;
    REQUIRE_MESSAGE(plait_desc_from_token(&again, token.c_str()) == PLAIT_OK, plait_last_error());
    const desc_ptr same(again);
    CHECK(token_of(again) == token);
    const std::vector<candidate> all = applicable(p.desc.get());
    // Sums that ROWS leaves out may pass 64 bits, so that nobody knows what OVERFLOW must say.
    const bool unknown = token.rfind("wht:i64", 0) == 0 && token.find(":rows=") != token.npos &&
                         token.find("+overflow") != token.npos;
    CHECK((unknown || !all.empty()));
    const checked_call call(p, r);
    const bool wide = token.find("64") != token.npos || token.find("c128") != token.npos;
    for (const candidate &by : all) {
        CAPTURE(by.name);
        std::vector<bytes> first;
#ifdef PLAIT_TEST_EMULATED
        for (const emulation::settings &order : walking_orders) {
            emulation::current_settings() = order;
#else
        for (int repeat = 0; repeat < 2; ++repeat) {
#endif
            const std::vector<bytes> out = call.run(by.name);
            if (first.empty()) first = out;
            CHECK_MESSAGE(out == first, "the order of threads changes the result");
        }
        note_count("around: runs of " + by.name);
        for (size_t i = 0; i < call.facts.size(); ++i) {
            const tensor_facts &t = call.facts[i];
            if (t.access == PLAIT_READ) continue;
            const std::string name = plait_role_name(t.role);
            const bool f64 = wide && (t.dtype == PLAIT_F64 || t.dtype == PLAIT_C128) &&
                             token.find("amax.f64") == token.npos;
            // The largest of a group is as exact as the norm of its transform.
            const double share = t.role == PLAIT_AMAX || t.role == PLAIT_SCALES
                                     ? std::sqrt(static_cast<double>(p.places))
                                     : 1;
            CHECK_MESSAGE(differs(t, first[i], call.want[call.shares[i] < 0 ? i : size_t{0}],
                                  f64 ? 0x1p-53 : 0x1p-24,
                                  share * static_cast<double>(p.depth)) == "",
                          name);
        }
    }
}

} // namespace

TEST_CASE("around wht: random problems with everything that stands around the passes") {
#ifdef PLAIT_TEST_EMULATED
    const int items = 120;
#else
    const int items = config().small ? 120 : 1000;
#endif
    for (int i = 0; i < items; ++i)
        check_one(derive(config().seed, 400000 + static_cast<uint64_t>(i)), i % 20 == 0 ? 12 : 6);
}

} // namespace plait::test
