// Every kernel that a plan can choose, in every variant, at least once: the run that the checkers
// of memory, races and barriers watch.
#include "lib/cuda/wht/any_layout.h"
#include "lib/cuda/wht/around_layout.h"
#include "lib/cuda/wht/block_factor_layout.h"
#include "lib/cuda/wht/block_layout.h"
#include "lib/cuda/wht/cluster_layout.h"
#include "lib/cuda/wht/columns_shuffle_layout.h"
#include "lib/cuda/wht/columns_tiled_layout.h"
#include "lib/cuda/wht/diagonal_layout.h"
#include "lib/cuda/wht/kron_int8_layout.h"
#include "lib/cuda/wht/kron_tf32_layout.h"
#include "lib/cuda/wht/l2_layout.h"
#include "lib/cuda/wht/mma16_e4m3_layout.h"
#include "lib/cuda/wht/mma16_narrow_layout.h"
#include "tests/gpu/rows_runner.h"
#include "tests/support/random_call.h"
#include "tests/support/report.h"

#include <cstdio>
#include <set>

namespace plait::test {
namespace {

/// Packed and aligned; one element off with a gap between rows, in place; odd gaps, out of place.
wht_call variant(plait_dtype x, plait_dtype y, int64_t count, int64_t n, int which) {
    wht_call c = rows_of(x, count, n);
    if (y != x) c.y = y;
    if (which == 1) {
        c.x_offset = c.y_offset = 1;
        c.x_strides = c.y_strides = std::vector<int64_t>{n + 3, 1};
        c.alias = bytes_of(x) == bytes_of(y);
    }
    if (which == 2) {
        c.x_strides = std::vector<int64_t>{n + 16, 1};
        c.y_strides = std::vector<int64_t>{n + 32, 1};
    }
    return c;
}

/// Twice by this candidate, against the definition.
void check_by(const char *name, const wht_call &c, plait_math math, rng &random) {
    const desc_ptr desc = desc_of(c);
    const std::string token = token_of(desc.get());
    CAPTURE(token);
    const wht_data data = random_data(c, filling::uniform, random);
    for (const candidate &by : applicable(desc.get(), math)) {
        if (by.name != name) continue;
        const outcome out = run(c, data, by, math);
        CHECK(out.fault == "");
        CHECK(run(c, data, by, math).y == out.y);
        const expectation ref = reference(c, data);
        if (is_integer(c.x)) {
            CHECK(first_difference(c, ref, out.y) == "");
            return;
        }
        const double ratio = worst_ratio(c, ref, out.y, roundoff_of(by, c));
        CHECK(ratio <= 1);
        note_ratio(name, ratio, token, config().seed);
        return;
    }
    FAIL_CHECK(name << " does not apply");
}

void rows_of_every_length(std::initializer_list<plait_dtype> types) {
    impulse_rows rows;
    rows.seed = config().seed;
    for (plait_dtype x : types)
        for (plait_dtype y : is_sixteen_bit(x) ? std::vector<plait_dtype>{x, PLAIT_F32}
                                               : std::vector<plait_dtype>{x}) {
            for (int k = 0; k <= config().top; ++k)
                for (int which = 0; which < 3; ++which) {
                    // Short rows of 16 bits widen on the CPU alone.
                    if (y != x && k < 10) continue;
                    // Under a checker each kernel once is enough, and long rows take long.
                    if (config().small && k > 20 && (which != k % 2 || y != x)) continue;
                    const int64_t n = int64_t{1} << k;
                    // An odd number of rows, around what a block takes of short ones.
                    const int64_t count = k <= 6 ? 1027 : k <= 12 ? 37 : k <= 20 ? 3 : 1;
                    const wht_call c = variant(x, y, count, n, which);
                    std::vector<image> ways = {image::impulses, image::spectrum};
                    if (config().small) ways = {which == 1 ? image::spectrum : image::impulses};
                    CHECK(run_ways(c, rows, PLAIT_MATH_DEFAULT, ways) > 0);
                }
        }
}

} // namespace

TEST_CASE("kernels: rows as matrix products, TF32 and residues") {
    using namespace plait::impl;
    rng random(config().seed);
    for (int k = 9; k <= 14; ++k)
        for (const int which : {0, 2}) {
            const wht_call c = variant(PLAIT_F32, PLAIT_F32, 5, int64_t{1} << k, which);
            check_by("wht.cuda.kron_tf32", c, PLAIT_MATH_TF32, random);
            check_by("wht.cuda.kron_3xtf32", c, PLAIT_MATH_F32, random);
            if (k < 10) continue;
            for (const plait_dtype type : {PLAIT_I32, PLAIT_F32, PLAIT_F64}) {
                wht_call whole = variant(type, type, 5, int64_t{1} << k, which);
                const int most = wht_kron_moduli_of(static_cast<scalar>(type));
                for (int moduli = config().small ? most : 1; moduli <= most; ++moduli) {
                    whole.bound = wht_kron_reach(moduli) >> k;
                    if (*whole.bound > 0)
                        check_by("wht.cuda.kron_int8", whole, PLAIT_MATH_DEFAULT, random);
                }
            }
        }
}

TEST_CASE("kernels: rows of every length, F32, aligned and not, in and out of place") {
    rows_of_every_length({PLAIT_F32});
}

TEST_CASE("kernels: rows of every length, F64, aligned and not, in and out of place") {
    rows_of_every_length({PLAIT_F64});
}

TEST_CASE("kernels: rows of every length, F16, aligned and not, in and out of place") {
    rows_of_every_length({PLAIT_F16});
}

TEST_CASE("kernels: rows of every length, BF16, aligned and not, in and out of place") {
    rows_of_every_length({PLAIT_BF16});
}

TEST_CASE("kernels: 16-bit rows of 2^15, more than a device has multiprocessors") {
    rng random(config().seed);
    for (const plait_dtype type : {PLAIT_F16, PLAIT_BF16})
        check_by("wht.cuda.mma16", variant(type, type, 200, 1 << 15, 0), PLAIT_MATH_F32, random);
}

TEST_CASE("kernels: rows of integers and of complex numbers") {
    rng random(config().seed);
    for (const plait_dtype type : {PLAIT_I32, PLAIT_I64, PLAIT_C64, PLAIT_C128}) {
        const int longest = bytes_of(type) == 4 ? 16 : bytes_of(type) == 8 ? 15 : 14;
        for (int k = 0; k <= longest; ++k)
            for (int which = 0; which < 3; ++which)
                check_by("wht.cuda.block",
                         variant(type, type, k <= 6 ? 1027 : 5, int64_t{1} << k, which),
                         PLAIT_MATH_DEFAULT, random);
        for (int k = longest + 1; k <= longest + 3; ++k)
            check_by("wht.cuda.two_pass.tiled", variant(type, type, 2, int64_t{1} << k, k % 2),
                     PLAIT_MATH_DEFAULT, random);
    }
}

TEST_CASE("kernels: rows with signs, a diagonal, an order or a factor") {
    using namespace plait::impl;
    rng random(config().seed);
    for (const plait_dtype type : device_types) {
        for (int k = 1; k <= 15; ++k) {
            if (!wht_fused_exists(static_cast<scalar>(type), k)) continue;
            wht_call c = rows_of(type, k <= 6 ? 1027 : 37, int64_t{1} << k);
            for (const plait_wht_order order : {PLAIT_NATURAL, PLAIT_SEQUENCY, PLAIT_DYADIC}) {
                c.order = order;
                c.adjoint = (k + order) % 2 == 1;
                c.signs = order != PLAIT_SEQUENCY;
                c.diag.reset();
                if (order != PLAIT_DYADIC) c.diag = type;
                check_by("wht.cuda.fused", c, PLAIT_MATH_DEFAULT, random);
            }
        }
        for (const plait_wht_factor f : {PLAIT_H12_PALEY2, PLAIT_H12_SLOANE, PLAIT_H20_WILLIAMSON,
                                         PLAIT_H28_WILLIAMSON, PLAIT_H40})
            for (const int k : {0, 3, 8, 10}) {
                const auto factor = static_cast<wht_factor>(f);
                wht_launch l{}; // 40 * 2^10 in f64 are more than a block holds
                if (!wht_block_factor_launch(static_cast<scalar>(type), factor, false, k, &l) ||
                    l.smem_bytes > 232448)
                    continue;
                wht_call c = rows_of(type, 37, int64_t{wht_factor_order(factor)} << k);
                c.factor = {1, f};
                for (const bool adjoint : {false, true}) {
                    c.adjoint = adjoint;
                    check_by("wht.cuda.block_factor", c, PLAIT_MATH_DEFAULT, random);
                }
            }
    }
}

TEST_CASE("kernels: which of the compiled ones ran") {
    using namespace plait::impl;
    std::set<std::string> compiled;
    const scalar types[] = {scalar::f32,  scalar::f64, scalar::f16,
                            scalar::bf16, scalar::i32, scalar::i64};
    wht_launch l{};
    for (scalar x : types)
        for (scalar y : types)
            for (int k = 0; k <= 22; ++k)
                for (bool vector : {false, true}) {
                    if (x == y && wht_cluster_exists(x, k)) {
                        wht_cluster_launch(x, k, &l);
                        compiled.insert(std::string("wht.cluster ") + l.variant);
                    }
                    for (const int terms : {1, 3})
                        if (wht_kron_tf32_launch(x, y, k, terms, &l))
                            compiled.insert(std::string("wht.kron_tf32 ") + l.variant);
                    if (wht_kron_int8_launch(x, y, k, &l))
                        compiled.insert(std::string("wht.kron_int8 ") + l.variant);
                    if (wht_l2_launch(x, y, k, &l))
                        compiled.insert(std::string("wht.l2 ") + l.variant);
                    for (const bool both : {false, true})
                        if (wht_mma16_launch(x, y, k, vector, &l, both))
                            compiled.insert(std::string("wht.mma16 ") + l.variant);
                    for (const bool ordered : {false, true})
                        if (x == y && wht_fused_launch(x, k, ordered, &l))
                            compiled.insert(std::string("wht.fused ") + l.variant);
                    for (const int parts : {0, 1})
                        for (const bool mid : {false, true})
                            if (x == y && wht_diagonal_launch(x, k, parts, mid, &l))
                                compiled.insert(std::string("wht.diagonal ") + l.variant);
                    for (int f = 1; f <= PLAIT_H40 && x == y; ++f)
                        for (const bool adjoint : {false, true})
                            if (wht_block_factor_launch(x, static_cast<wht_factor>(f), adjoint, k,
                                                        &l))
                                compiled.insert(std::string("wht.block_factor ") + l.variant);
                    if (wht_block_e4m3_launch(x, k, &l))
                        compiled.insert(std::string("wht.block_e4m3 ") + l.variant);
                    if (wht_mma16_e4m3_launch(x, k, false, &l))
                        compiled.insert(std::string("wht.mma16_e4m3 ") + l.variant);
                    for (const int parts : {0, 1})
                        if (wht_block_launch(x, y, k, vector, &l, parts))
                            compiled.insert(std::string("wht.block ") + l.variant);
                    if (wht_columns_shuffle_launch(x, y, k, 40, vector, &l))
                        compiled.insert(std::string("wht.columns_shuffle ") + l.variant);
                    if (wht_columns_tiled_launch(x, y, k, 40, vector, &l))
                        compiled.insert(std::string("wht.columns_tiled ") + l.variant);
                }
    for (const scalar x : {scalar::b1, scalar::i8})
        for (int k = 0; k < 17; ++k)
            if (wht_launch l; wht_mma16_narrow_launch(x, k, 0, &l))
                compiled.insert(std::string("wht.mma16_narrow ") + l.variant);
    compiled.insert("wht.l2_reset u32");
    for (const char *one :
         {"wht.groups any", "wht.clear i64", "wht.chains i64", "wht.rows_status i32"})
        compiled.insert(one);
    for (const char *number : {"f32", "f64", "c64", "c128", "integer"})
        for (const char *kernel : {"wht.widen ", "wht.finish "})
            compiled.insert(std::string(kernel) + number);
    for (int n = 0; n < wht_any_numbers; ++n)
        for (const char *kernel : {"wht.any ", "wht.factor "})
            compiled.insert(std::string(kernel) +
                            wht_any_number_name(static_cast<wht_any_number>(n)));
    const std::set<std::string> ran = noted_steps();
    int missing = 0;
    for (const std::string &one : compiled)
        if (!ran.count(one)) {
            std::printf("kernel not chosen by any plan here: %s\n", one.c_str());
            ++missing;
        }
    std::printf("kernels run: %zu of %zu compiled\n",
                compiled.size() - static_cast<size_t>(missing), compiled.size());
    if (config().top >= 20) CHECK(ran.size() > 100); // the run above was not cut short
    int convolutions = 0;
    for (const std::string &one : ran) {
        const bool wht = one.rfind("wht.", 0) == 0;
        if (wht) CHECK_MESSAGE(compiled.count(one) == 1, one);
        convolutions += !wht;
    }
    std::printf("kernels run: %d of conv1d\n", convolutions);
}

} // namespace plait::test
