// What a transform can have around it, against dense products: factors, narrow inputs, diagonals,
// chosen rows, largest values, histograms, E4M3.
#include "tests/api/common.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <functional>
#include <plait/plait.hpp>
#include <random>

using namespace plait::test;

namespace {

using number = std::complex<double>;
using vec = std::vector<number>;

int natural(int k, int j) { return __builtin_parity(static_cast<unsigned>(k & j)) ? -1 : 1; }

int sequency(int n, int r, int j) {
    int bits = 0, reversed = 0;
    while (1 << bits < n) ++bits;
    const int gray = r ^ (r >> 1);
    for (int b = 0; b < bits; ++b) reversed |= (gray >> b & 1) << (bits - 1 - b);
    return natural(reversed, j);
}

/// sum over j of H[k][j] x[j].
vec product(const std::function<int(int, int)> &h, const vec &x) {
    const int n = static_cast<int>(x.size());
    vec y(x.size());
    for (int k = 0; k < n; ++k)
        for (int j = 0; j < n; ++j)
            y[static_cast<size_t>(k)] += double(h(k, j)) * x[static_cast<size_t>(j)];
    return y;
}

vec times(const vec &d, vec x, bool conjugate = false) {
    for (size_t i = 0; i < x.size(); ++i) x[i] *= conjugate ? std::conj(d[i]) : d[i];
    return x;
}

void run(const std::string &token, const std::vector<plait_arg> &args) {
    INFO(token);
    plait_exec *exec = nullptr;
    OK(plait_exec_create(&exec, PLAIT_CPU, 0, token.c_str(), nullptr));
    OK(plait_exec_run_args(exec, args.data(), static_cast<int>(args.size())));
    plait_exec_destroy(exec);
}

void refused(const std::string &token, const std::string &part) {
    INFO(token);
    FAILS(plait_desc_check(desc_of(token).get()), PLAIT_ERR_INVALID_DESC, part);
}

/// Multiples of 1/8 in [-2, 2]: sums of products are exact.
vec some(std::mt19937 &random, size_t n) {
    vec x(n);
    for (number &v : x) v = {double(random() % 33) / 8 - 2, double(random() % 33) / 8 - 2};
    return x;
}

template <class T> void expect(const std::vector<T> &got, const std::vector<T> &want) {
    REQUIRE(got.size() == want.size());
    for (size_t i = 0; i < got.size(); ++i) {
        INFO(i);
        CHECK(got[i] == want[i]);
    }
}

} // namespace

TEST_CASE("wht: a factor matrix that the caller gives, and its transpose") {
    // Of no Hadamard matrix: it is a product all the same. Row pitch of 32 bits.
    const int m = 3, n = 12;
    const int sign[3][3] = {{1, -1, 1}, {1, 1, -1}, {-1, 1, 1}};
    alignas(16) uint32_t bits[m];
    for (int i = 0; i < m; ++i) {
        bits[i] = 0;
        for (int j = 0; j < m; ++j) bits[i] |= uint32_t{sign[i][j] < 0} << j;
    }
    alignas(16) double x[n], y[n];
    std::mt19937 random(1);
    vec in = some(random, n);
    for (int j = 0; j < n; ++j) x[j] = in[size_t(j)].real(), in[size_t(j)] = x[j];
    for (const bool adjoint : {false, true}) {
        run(std::string("wht:f64:n12.m3") + (adjoint ? ":adj" : "") + ":factor.s32.1",
            {{PLAIT_X, x}, {PLAIT_Y, y}, {PLAIT_FACTOR, bits}});
        const vec want = product(
            [&](int k, int j) {
                return (adjoint ? sign[j / 4][k / 4] : sign[k / 4][j / 4]) * natural(k % 4, j % 4);
            },
            in);
        for (int k = 0; k < n; ++k) CHECK(y[k] == want[size_t(k)].real());
    }
    plait_desc *made = nullptr;
    const int64_t extents[] = {512};
    OK(plait_wht_create(&made, PLAIT_F32, 1, extents));
    const desc_ptr desc(made);
    OK(plait_wht_set_factor_order(made, 0, 256));
    CHECK(token_of(made) == "wht:f32:n512.m256");
    OK(plait_wht_set_factor(made, 0, PLAIT_H1));
    CHECK(token_of(made) == "wht:f32:n512");
    FAILS(plait_wht_set_factor_order(made, 0, 257), PLAIT_ERR_INVALID_ARGUMENT,
          "order=257 is not between 2 and 256");
    FAILS(plait_wht_set_factor_order(made, 1, 4), PLAIT_ERR_INVALID_ARGUMENT, "axis=1");
    refused("wht:f32:n12.m3:n20.m5", "need two matrices, and there is one role=factor");
    refused("wht:f32:n24.m5", "extents[0]=24 is not 5 * 2^k, as factor=m5 needs");
    refused("wht:f32:n12.m3:seq", "order=sequency is for powers of two only, and factor=m3");
    refused("wht:f32:n100",
            "the nearest lengths are 96 (h12p2 h12s) and 104 (h52w); or a matrix of "
            "order 100 of your own (plait_wht_set_factor_order)");
    refused("wht:f32:n344", "factors that fit: h172w");
}

TEST_CASE("wht: narrow integers are widened, bits are (-1)^b") {
    alignas(16) int8_t x8[8] = {-128, 127, 3, -7, 100, -100, 1, 0};
    alignas(16) int16_t x16[8];
    alignas(16) uint32_t bits[1] = {0x5a}; // 0 1 0 1 1 0 1 0
    alignas(16) int32_t y[8];
    alignas(16) int64_t wide[8];
    alignas(16) float real[8];
    int32_t overflow = -1;
    const auto want = [](const std::function<int64_t(int)> &at, int k) {
        int64_t sum = 0;
        for (int j = 0; j < 8; ++j) sum += natural(k, j) * at(j);
        return sum;
    };
    run("wht:i8:n8:+overflow", {{PLAIT_X, x8}, {PLAIT_Y, y}, {PLAIT_OVERFLOW, &overflow}});
    CHECK(overflow == 0);
    for (int k = 0; k < 8; ++k) CHECK(y[k] == want([&](int j) { return x8[j]; }, k));
    for (int j = 0; j < 8; ++j) x16[j] = static_cast<int16_t>(x8[j] * 255);
    run("wht:i16:n8:y.i64", {{PLAIT_X, x16}, {PLAIT_Y, wide}});
    for (int k = 0; k < 8; ++k) CHECK(wide[k] == want([&](int j) { return x16[j]; }, k));
    const auto sign = [&](int j) { return bits[0] >> j & 1u ? -1 : 1; };
    run("wht:b1:n8", {{PLAIT_X, bits}, {PLAIT_Y, y}});
    run("wht:b1:n8:scale=0.5:y.f32", {{PLAIT_X, bits}, {PLAIT_Y, real}});
    run("wht:b1:n8:+overflow:y.i64",
        {{PLAIT_X, bits}, {PLAIT_Y, wide}, {PLAIT_OVERFLOW, &overflow}});
    for (int k = 0; k < 8; ++k) {
        CHECK(y[k] == want(sign, k));
        CHECK(wide[k] == y[k]);
        CHECK(real[k] == 0.5f * static_cast<float>(y[k]));
    }
    // Two rows of 4 in one word, the second from bit 5 on.
    run("wht:b1:b2:n4:x.s5.1", {{PLAIT_X, bits}, {PLAIT_Y, y}});
    CHECK(y[0] == 0); // + - + -
    CHECK(y[1] == 4);
    CHECK(y[4] == 2); // bits 5 6 7 8: 0 1 0 0
    refused("wht:b1:n8:y.c64", "y: dtype=c64 does not go with x=b1");
    refused("wht:b1:n8:scale=0.5",
            "scale=0.5 does not go with integers, which take 1 only; y is i32");
    refused("wht:b1:n8:+overflow:y.f32", "role=overflow is for integers, and y is f32");
    refused("wht:b1:n8:bound=1", "bound=1 is a promise about integers, and x is b1");
    refused("wht:b1:n8:+diag:y.f32:diag.f32", "role=diag needs x to be of a floating or complex");
    refused("wht:i8:n8:y.f32", "y: dtype=f32 does not go with x=i8");
    refused("wht:i8:n8:y@x", "alias=y@x needs equal element sizes: y is i32, x is i8");
}

TEST_CASE("wht: diagonals before, between and behind, and the adjoint of all") {
    const size_t n = 16;
    std::mt19937 random(3);
    const vec x = some(random, n), before = some(random, n), mid = some(random, n),
              behind = some(random, n);
    vec in = x, din = before, dmid = mid, dout = behind, y(n);
    for (const bool ordered : {false, true})
        for (const bool adjoint : {false, true})
            for (const bool twice : {false, true}) {
                const auto h = [&](int k, int j) {
                    return ordered ? sequency(int(n), k, j) : natural(k, j);
                };
                std::string token = "wht:c128:n16";
                token += ordered ? ":seq" : "";
                token += adjoint ? ":adj" : "";
                token += twice ? ":scale=0.25:+diag+diag_in+diag_mid:x.a8:y.a8"
                               : ":scale=0.25:+diag+diag_in:x.a8:y.a8";
                token += ":diag.a8:diag_in.a8";
                if (twice) token += ":diag_mid.a8";
                std::vector<plait_arg> args = {{PLAIT_X, in.data()},
                                               {PLAIT_Y, y.data()},
                                               {PLAIT_DIAG, dout.data()},
                                               {PLAIT_DIAG_IN, din.data()}};
                if (twice) args.push_back({PLAIT_DIAG_MID, dmid.data()});
                run(token, args);
                vec want = times(adjoint ? behind : before, x, adjoint);
                want = product(h, want); // symmetric: its own transpose
                if (twice) want = product(h, times(mid, want, adjoint));
                want = times(adjoint ? before : behind, want, adjoint);
                for (number &v : want) v *= 0.25;
                INFO(token);
                expect(y, want);
            }
    // A real diagonal of complex data; the input diagonal may be the data, the output may not.
    alignas(16) float real[2] = {2, -1}, data[4] = {1, 2, 3, 4}, out[4];
    run("wht:c64:n2:+diag_in:diag_in.f32",
        {{PLAIT_X, data}, {PLAIT_Y, out}, {PLAIT_DIAG_IN, real}});
    CHECK(out[0] == -1);
    CHECK(out[1] == 0);
    CHECK(out[2] == 5);
    CHECK(out[3] == 8);
    run("wht:f32:n4:+diag_in", {{PLAIT_X, data}, {PLAIT_Y, out}, {PLAIT_DIAG_IN, data}});
    CHECK(out[0] == 30);
    const context_ptr ctx = cpu_context();
    for (const char *role : {"diag", "diag_in", "diag_mid"}) {
        const plan_ptr plan = plan_of(ctx.get(), std::string("wht:f32:n4:+") + role + ":y@x");
        const plait_role number = std::string(role) == "diag"      ? PLAIT_DIAG
                                  : std::string(role) == "diag_in" ? PLAIT_DIAG_IN
                                                                   : PLAIT_DIAG_MID;
        const aligned_buffer work(workspace_of(plan.get()));
        const plait_arg args[] = {{PLAIT_X, data}, {PLAIT_Y, data}, {number, data}};
        FAILS(plait_execute(plan.get(), args, 3, work.get(), workspace_of(plan.get()), nullptr),
              PLAIT_ERR_POINTER, std::string("y and ") + role + " are the same pointer");
    }
    refused("wht:i32:n8:+diag_in", "role=diag_in is not for integers, and x is i32");
    refused("wht:f32:n8:+diag_mid:diag_mid.c64", "diag_mid: dtype=c64 is not x's type f32");
}

TEST_CASE("wht: chosen rows, and what the adjoint makes of them") {
    const int n = 8, count = 5;
    alignas(16) float x[2 * n], y[2 * count];
    for (int j = 0; j < 2 * n; ++j) x[j] = static_cast<float>(j * j % 13);
    int64_t rows[count] = {6, 0, 8, 6, -1};
    int32_t narrow[count] = {6, 0, 5, 6, 1}, status = -1;
    run("wht:f32:b2:n8:seq:rows=5:+status",
        {{PLAIT_X, x}, {PLAIT_Y, y}, {PLAIT_ROWS, rows}, {PLAIT_STATUS, &status}});
    CHECK(status == 3);
    for (int b = 0; b < 2; ++b)
        for (int r = 0; r < count; ++r) {
            double want = 0;
            for (int j = 0; j < n; ++j)
                if (rows[r] >= 0 && rows[r] < n)
                    want += sequency(n, static_cast<int>(rows[r]), j) * double(x[b * n + j]);
            INFO(b, " ", r);
            CHECK(y[b * count + r] == want);
        }
    run("wht:f32:b2:n8:rows=5:+status:rows.i32",
        {{PLAIT_X, x}, {PLAIT_Y, y}, {PLAIT_ROWS, narrow}, {PLAIT_STATUS, &status}});
    CHECK(status == 0);
    CHECK(y[2] == x[0] - x[1] + x[2] - x[3] - x[4] + x[5] - x[6] + x[7]);
    // Without a transform no entry of ROWS is outside of one.
    for (const char *token : {"wht:f32:b0:n8:rows=5:+status", "wht:f32:b2:n0:adj:rows=5:+status"}) {
        status = -1;
        run(token, {{PLAIT_X, x}, {PLAIT_Y, y}, {PLAIT_ROWS, rows}, {PLAIT_STATUS, &status}});
        INFO(token);
        CHECK(status == 0);
    }
    // Columns: the transformed axis is the outer one.
    alignas(16) float columns[2 * n], few[2 * count];
    for (int j = 0; j < n; ++j)
        for (int b = 0; b < 2; ++b) columns[j * 2 + b] = x[b * n + j];
    run("wht:f32:n8:b2:rows=5:rows.i32",
        {{PLAIT_X, columns}, {PLAIT_Y, few}, {PLAIT_ROWS, narrow}});
    for (int r = 0; r < count; ++r)
        for (int b = 0; b < 2; ++b) CHECK(few[r * 2 + b] == y[b * count + r]);
    // The adjoint adds what comes twice and leaves out what belongs nowhere.
    alignas(16) float back[n], some_x[count] = {1, 2, 4, 8, 16};
    run("wht:f32:n8:adj:rows=5", {{PLAIT_X, some_x}, {PLAIT_Y, back}, {PLAIT_ROWS, rows}});
    for (int j = 0; j < n; ++j) CHECK(back[j] == natural(6, j) * 9 + 2);
    plait_desc *made = nullptr;
    const int64_t extents[] = {4, 8};
    OK(plait_wht_create(&made, PLAIT_F32, 2, extents));
    const desc_ptr desc(made);
    FAILS(plait_wht_set_rows(made, -1), PLAIT_ERR_INVALID_ARGUMENT, "count=-1 is negative");
    OK(plait_wht_set_rows(made, 3));
    int64_t y_extents[PLAIT_MAX_RANK];
    OK(plait_desc_tensor(made, 1, nullptr, nullptr, nullptr, nullptr, y_extents, nullptr));
    CHECK(y_extents[1] == 3);
    CHECK(token_of(made) == "wht:f32:b4:n8:rows=3");
    refused("wht:f32:n8:n8:rows=3", "rows=3 needs exactly one transformed axis, and 2 are");
    refused("wht:f32:n8:bits=3:rows=3", "rows=3 does not go with bits=0x3");
    refused("wht:f32:n8:+status", "role=status is in use without role=rows");
    refused("wht:f32:n8:rows=4:y@x", "alias=y@x needs equal extents");
}

TEST_CASE("wht: the largest and the histogram, with and without Y") {
    // Inner product mod 2 on 4 bits is bent: all values are +-4.
    alignas(16) uint32_t bits[1] = {0};
    for (unsigned v = 0; v < 16; ++v)
        bits[0] |= ((((v >> 3) & (v >> 1)) ^ ((v >> 2) & v)) & 1u) << v;
    int64_t largest[2] = {-1, -1}, counts[16];
    run("wht:b1:n16:hist=9.-16.4:-y+amax",
        {{PLAIT_X, bits}, {PLAIT_AMAX, largest}, {PLAIT_HISTOGRAM, counts}});
    CHECK(largest[0] == 4);
    for (int b = 0; b < 9; ++b) CHECK(counts[b] == (b == 3 ? 6 : b == 5 ? 10 : 0));
    // Two functions of 3 bits, a constant and a linear one; a histogram that misses 8.
    alignas(16) int8_t x[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, -1, 1, -1, 1, -1, 1, -1};
    alignas(16) int32_t y[16];
    run("wht:i8:b2:n8:hist=8.0.1:+amax",
        {{PLAIT_X, x}, {PLAIT_Y, y}, {PLAIT_AMAX, largest}, {PLAIT_HISTOGRAM, counts}});
    CHECK(y[0] == 8);
    CHECK(y[9] == 8);
    CHECK(largest[0] == 8);
    CHECK(largest[1] == 8);
    CHECK(counts[0] == 7);
    // Groups of floats; a NaN stays in its transform.
    alignas(16) float f[8] = {1, 2, 3, 4, 1, std::nanf(""), 0, 0}, tops[4];
    run("wht:f32:b2:n4:group=2:-y+amax", {{PLAIT_X, f}, {PLAIT_AMAX, tops}});
    CHECK(tops[0] == 10);
    CHECK(tops[1] == 4);
    CHECK(std::isnan(tops[2]));
    CHECK(std::isnan(tops[3]));
    // Nothing to look at: 0.
    run("wht:f32:b2:n0:+amax", {{PLAIT_X, nullptr}, {PLAIT_Y, nullptr}, {PLAIT_AMAX, tops}});
    CHECK(tops[0] == 0);
    CHECK(tops[1] == 0);
    plait_desc *made = nullptr;
    const int64_t extents[] = {8};
    OK(plait_wht_create(&made, PLAIT_I32, 1, extents));
    const desc_ptr desc(made);
    FAILS(plait_desc_use(made, PLAIT_HISTOGRAM, 1), PLAIT_ERR_INVALID_ARGUMENT,
          "plait_wht_set_histogram");
    FAILS(plait_wht_set_histogram(made, 0, 0, 1), PLAIT_ERR_INVALID_ARGUMENT, "bins=0");
    FAILS(plait_wht_set_histogram(made, 1, 0, 0), PLAIT_ERR_INVALID_ARGUMENT, "width=0");
    OK(plait_wht_set_histogram(made, 17, -8, 1));
    CHECK(token_of(made) == "wht:i32:n8:hist=17.-8.1");
    FAILS(plait_wht_set_group(made, 0), PLAIT_ERR_INVALID_ARGUMENT, "length=0 is less than 1");
    OK(plait_wht_set_group(made, 4));
    refused("wht:f32:n8:-y", "role=y is not in use, and neither is amax nor histogram");
    refused("wht:f32:n8:hist=4.0.1", "role=histogram counts integers, and y is f32");
    refused("wht:c64:n8:+amax", "role=amax is for real types and integers, and x is c64");
    refused("wht:f32:n8:bits=3:+amax", "role=amax does not go with bits=0x3");
    refused("wht:f32:n8:group=3:+amax", "group=3 does not divide the 8 results along axis 0");
    refused("wht:f32:n8:group=4", "group=4 is set, but neither amax nor scales is in use");
    refused("wht:f32:n8:n8:group=4:+amax", "group=4 needs exactly one transformed axis");
    refused("wht:i64:n8:hist=2.0.9223372036854775807", "the last bin ends beyond 64 bits");
}

TEST_CASE("wht: E4M3, with a scale for each group") {
    // n = 1: every value is its own transform.
    alignas(16) float v[12] = {0,    1,      448,  464,      1e9f,      -480,
                               17.f, 0.018f, 19.f, 0x1p-10f, 0x1.8p-9f, std::nanf("")};
    alignas(16) uint8_t y[16];
    run("wht:f32:b12:n1:y.e4m3", {{PLAIT_X, v}, {PLAIT_Y, y}});
    const int want[] = {0x00, 0x38, 0x7e, 0x7e, 0x7e, 0xfe, 0x58, 0x09, 0x5a, 0x00, 0x02, 0x7f};
    for (int i = 0; i < 12; ++i) {
        INFO(i);
        CHECK(int(y[i]) == want[i]);
    }
    // Two groups: one with 896 as its largest, one of zeros.
    alignas(16) float x[4] = {448, 448, 448, 448};
    float scales[2], tops[4];
    run("wht:f32:n4:scale=0.5:group=2:+amax+scales:y.e4m3",
        {{PLAIT_X, x}, {PLAIT_Y, y}, {PLAIT_AMAX, tops}, {PLAIT_SCALES, scales}});
    CHECK(tops[0] == 896);
    CHECK(tops[1] == 0);
    CHECK(scales[0] == 2);
    CHECK(scales[1] == 1); // of zeros
    CHECK(int(y[0]) == 0x7e);
    CHECK(int(y[1]) == 0);
    CHECK(int(y[2]) == 0);
    x[0] = std::numeric_limits<float>::infinity();
    run("wht:f32:b4:n1:+scales:y.e4m3", {{PLAIT_X, x}, {PLAIT_Y, y}, {PLAIT_SCALES, tops}});
    CHECK(tops[0] == 1);
    CHECK(int(y[0]) == 0x7e);
    CHECK(tops[1] == 1);
    CHECK(int(y[1]) == 0x7e);
    refused("wht:f32:n8:+scales", "role=scales is for a y of type e4m3, and y is f32");
    refused("wht:f32:n8:-y+amax+scales",
            "role=scales is for a y of type e4m3, and y is not in use");
    refused("wht:c64:n8:y.e4m3", "y: dtype=e4m3 does not go with x=c64");
    refused("wht:i32:n8:y.e4m3", "y: dtype=e4m3 does not go with x=i32");
}

TEST_CASE("wht: the setters chain in C++") {
    CHECK(plait::wht(PLAIT_F32, {4, 24})
              .factor_order(1, 12)
              .rows(7)
              .group(7)
              .use(PLAIT_AMAX)
              .token() == "wht:f32:b4:n24.m12:rows=7:group=7:+amax");
    plait::desc d = plait::wht(PLAIT_I16, {64});
    d.histogram(3, -1, 2).factor_order(0, 4).rows(2).group(2).use(PLAIT_AMAX);
    CHECK(d.token() == "wht:i16:n64.m4:rows=2:group=2:hist=3.-1.2:+amax");
    CHECK(plait::wht(PLAIT_B1, {64}).histogram(3, 0, 1).token() == "wht:b1:n64:hist=3.0.1");
}
