// wht.cuda.any and wht.cuda.columns through the API, on a device whose kernels are emulated: random
// problems of every form, and those that need several passes.
#include "lib/common/factor_matrices.h"
#include "tests/emulate/orders.h"
#include "tests/support/random_call.h"
#include "tests/support/report.h"
#include "tests/support/runner.h"

#include <doctest/doctest.h>

namespace plait::test {
namespace {

using impl::wht_factor;
using impl::wht_factor_order;

/// `orders`: how many of the ways to run threads.
void check_any(const wht_call &call, filling how, rng &random, int orders,
               const std::string &name = "wht.cuda.any") {
    const desc_ptr desc = desc_of(call);
    const std::string token = token_of(desc.get());
    CAPTURE(token);
    const wht_data data = random_data(call, how, random);
    const expectation ref = reference(call, data);
    const candidate by{name, "f32", ""};
    bytes first;
    for (const emulation::settings &order : walking_orders) {
        if (orders-- == 0) break;
        emulation::current_settings() = order;
        const outcome out = run(call, data, by);
        CHECK(out.fault == "");
        if (first.empty()) first = out.y;
        CHECK_MESSAGE(out.y == first, "the order of threads changes the result");
        if (call.overflow) CHECK((out.overflow != 0) == ref.overflow);
    }
    note_count("emulated plans of " + name);
    if (is_integer(call.x) || (how == filling::integers && exact_sums(call))) {
        CHECK(first_difference(call, ref, first) == "");
        return;
    }
    const double ratio = worst_ratio(call, ref, first, roundoff_of(by, call));
    CHECK(ratio <= 1);
    note_ratio(name, ratio, token, config().seed);
}

} // namespace

TEST_CASE("emulated wht.any: random problems of every form") {
    for (int i = 0; i < 60; ++i) {
        rng random(derive(config().seed, static_cast<uint64_t>(7000 + i)));
        filling how = random.pick({filling::uniform, filling::integers, filling::huge});
        const wht_call call = random_call(random, 9);
        if (how == filling::huge && !is_integer(call.x)) how = filling::integers;
        if (!call.needs_definition()) check_any(call, how, random, 3);
    }
}

TEST_CASE("emulated wht.any: several passes") {
    std::vector<wht_call> calls;
    const auto add = [&](plait_dtype x, std::vector<int64_t> extents) -> wht_call & {
        calls.emplace_back();
        calls.back().x = x;
        calls.back().extents = std::move(extents);
        return calls.back();
    };
    add(PLAIT_F32, {2, 1 << 15}).x_offset = 1; // in Y between passes
    add(PLAIT_C128, {1 << 13}).alias = true;
    add(PLAIT_BF16, {3, 1 << 14}).x_strides = {(1 << 14) + 7, 1}; // in the workspace
    add(PLAIT_C64, {1 << 14}).order = PLAIT_SEQUENCY;
    wht_call &dyadic = add(PLAIT_I32, {2, 1 << 7, 1 << 8});
    dyadic.axes = 6;
    dyadic.order = PLAIT_DYADIC;
    dyadic.alias = true;
    wht_call &columns = add(PLAIT_F64, {3, 1 << 10, 37});
    columns.axes = 2;
    columns.y_strides = {1 << 16, 50, 1};
    wht_call &transposed = add(PLAIT_F32, {1 << 8, 1 << 7});
    transposed.axes = 1;
    transposed.x_strides = {1, 1 << 8};
    wht_call &checked = add(PLAIT_I64, {40 << 9});
    checked.factor = {{0, PLAIT_H40}};
    checked.overflow = checked.signs = true;
    wht_call &inner = add(PLAIT_F32, {1 << 9, 28});
    inner.axes = 3;
    inner.factor = {{1, PLAIT_H28_WILLIAMSON}};
    inner.adjoint = true;
    wht_call &bits = add(PLAIT_C64, {1 << 15});
    bits.bits = 0x5a5d;
    bits.diag = PLAIT_C64;
    bits.alias = true;
    for (size_t i = 0; i < calls.size(); ++i) {
        rng random(derive(config().seed, 7100 + i));
        check_any(calls[i], filling::integers, random, 1 + static_cast<int>(i % 2));
    }
}

TEST_CASE("emulated plans of wht.cuda.block_factor: every matrix") {
    int i = 0;
    for (const plait_wht_factor factor : {PLAIT_H12_PALEY2, PLAIT_H12_SLOANE, PLAIT_H20_WILLIAMSON,
                                          PLAIT_H28_WILLIAMSON, PLAIT_H40})
        for (const int log_k : {0, 1, 3, 5, 6, 9, 10}) {
            const plait_dtype types[] = {PLAIT_F32, PLAIT_F64, PLAIT_F16, PLAIT_BF16};
            wht_call call;
            call.x = types[++i % 4];
            if (call.x == PLAIT_F64 && log_k == 10) call.x = PLAIT_F32;
            const int m = wht_factor_order(static_cast<wht_factor>(factor));
            const int64_t n = int64_t{m} << log_k;
            call.extents = {log_k < 6 ? 2 * (6144 / n) + 3 : 2, n};
            call.factor = {{1, factor}};
            call.adjoint = i % 3 == 0;
            if (i / 4 % 2 == 0) {
                call.scale = 0.5;
                call.x_strides = {n + 1 + i % 3, 1};
                call.y_strides = {n + 4 * (i % 4), 1};
                call.x_offset = i % 4;
            }
            rng random(derive(config().seed, 7400 + static_cast<uint64_t>(i)));
            check_any(call, filling::integers, random, log_k < 6 ? 3 : 2, "wht.cuda.block_factor");
        }
}

TEST_CASE("emulated plans of wht.cuda.fused: signs, diagonals and orders of rows") {
    int i = 0;
    for (const plait_dtype type : {PLAIT_F32, PLAIT_F64, PLAIT_F16, PLAIT_BF16}) {
        const int shortest = bytes_of(type) == 8 ? 1 : bytes_of(type) == 4 ? 2 : 3;
        for (int log_n = shortest; log_n <= (type == PLAIT_F64 ? 14 : 15); ++log_n)
            for (const plait_wht_order order : {PLAIT_NATURAL, PLAIT_SEQUENCY, PLAIT_DYADIC}) {
                rng random(derive(config().seed, 7300 + static_cast<uint64_t>(++i)));
                wht_call call = rows_call(random, type, log_n, i % 3);
                if (log_n > 11) call.extents[0] = 2;
                call.order = order;
                call.signs = i % 4 != 1 || order == PLAIT_NATURAL;
                if (i % 4 >= 2) call.diag = type;
                call.adjoint = i % 5 < 2;
                check_any(call, filling::integers, random, log_n < 13 ? 3 : 2, "wht.cuda.fused");
            }
    }
}

TEST_CASE("emulated plans of wht.cuda.columns: strided axes, masks, complex numbers") {
    std::vector<wht_call> calls;
    const auto add = [&](plait_dtype x, std::vector<int64_t> extents, uint32_t axes,
                         std::optional<uint64_t> bits) -> wht_call & {
        calls.emplace_back();
        calls.back().x = x;
        calls.back().extents = std::move(extents);
        if (axes != 0) calls.back().axes = axes;
        calls.back().bits = bits;
        return calls.back();
    };
    add(PLAIT_F32, {3, 64, 128}, 2, {}).x_strides = {64 * 128 + 4, 128, 1}; // one pass
    add(PLAIT_F64, {1 << 6, 1 << 7}, 1, {}).alias = true;
    add(PLAIT_F16, {2, 1 << 5, 1 << 9}, 2, {}).scale = 0.25;
    add(PLAIT_F32, {1 << 6, 3, 1 << 8}, 4, {}).scale = 0.5; // rows: not taken
    add(PLAIT_F32, {1 << 15}, 0, 0x78ff).alias = true;      // wht.block, columns
    add(PLAIT_F64, {1 << 14}, 0, 0x0f00).x_offset = 1;
    add(PLAIT_C64, {1 << 15}, 0, {}).scale = 0.5; // wht.any, columns
    add(PLAIT_C128, {1 << 14}, 0, 0x2aaa).alias = true;
    add(PLAIT_C64, {2, 1 << 4, 1 << 8}, 2, {});
    add(PLAIT_C64, {1 << 15}, 0, 0x77f0).signs = true;
    wht_call &diag = add(PLAIT_F32, {2, 1 << 14}, 0, {});
    diag.diag = PLAIT_F32;
    diag.adjoint = true;
    wht_call &behind = add(PLAIT_F32, {2, 1 << 14}, 0, {}); // not taken
    behind.diag = PLAIT_F32;
    add(PLAIT_BF16, {1 << 12, 1 << 4}, 1, {}).alias = true; // in one pass, however long
    add(PLAIT_F16, {3, 1 << 11, 1 << 5}, 2, {}).x_offset = 1;
    int ran = 0;
    for (size_t i = 0; i < calls.size(); ++i) {
        const desc_ptr desc = desc_of(calls[i]);
        bool takes = false;
        for (const candidate &c : applicable(desc.get())) takes |= c.name == "wht.cuda.columns";
        CHECK(takes == (i != 3 && i != 11));
        if (!takes) continue;
        rng random(derive(config().seed, 7200 + i));
        check_any(calls[i], filling::integers, random, 2, "wht.cuda.columns");
        ++ran;
    }
    CHECK(ran == 12);
}

} // namespace plait::test
