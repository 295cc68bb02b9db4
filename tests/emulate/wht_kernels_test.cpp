// Every instantiation of the wht kernels, in every order, against the definition.
#include "lib/cuda/kernel_table.h"
#include "lib/cuda/wht/block_layout.h"
#include "lib/cuda/wht/cluster_layout.h"
#include "lib/cuda/wht/columns_shuffle_layout.h"
#include "lib/cuda/wht/columns_tiled_layout.h"
#include "lib/cuda/wht/kron_int8_layout.h"
#include "lib/cuda/wht/kron_tf32_layout.h"
#include "lib/cuda/wht/l2_layout.h"
#include "lib/cuda/wht/mma16_layout.h"
#include "tests/emulate/orders.h"
#include "tests/support/report.h"
#include "tests/support/settings.h"
#include "tests/support/wht_call.h"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>

namespace plait::test {
namespace {

using namespace plait::impl;

constexpr scalar types[] = {scalar::f64, scalar::f32, scalar::f16, scalar::bf16};

plait_dtype dtype_of(scalar s) { return static_cast<plait_dtype>(s); }

/// What all launches of a call share but its pointers; `fill(x, y)` makes the arguments.
template <class Fill>
void check_kernel(const char *kernel, const wht_launch &l, int64_t grid, const wht_call &c,
                  const Fill &fill, double more = 0) {
    const std::string name = std::string(kernel) + ' ' + l.variant;
    CAPTURE(name);
    const void *func = cuda::find_kernel(kernel, l.variant);
    REQUIRE(func);
    emulation::launch_shape shape;
    shape.grid[0] = grid;
    shape.block[0] = l.threads;
    shape.shared_bytes = l.smem_bytes;
    if (l.cluster > 1) shape.cluster = l.cluster;

    rng random(derive(config().seed, static_cast<uint64_t>(c.elements())));
    const wht_data data = random_data(c, filling::uniform, random);
    bytes first;
    for (const emulation::settings &how : walking_orders) {
        guarded x(data.x.size(), static_cast<size_t>(c.x_offset * bytes_of(c.x)), -1);
        guarded y(static_cast<size_t>(c.span(PLAIT_Y) * bytes_of(c.y_type())),
                  static_cast<size_t>(c.y_offset * bytes_of(c.y_type())), poison_of(c.y_type()));
        x.put(data.x);
        const bytes before = y.get();
        const auto args = fill(x.data(), y.data());
        REQUIRE(emulation::launch(func, shape, &args, how) == "");
        CHECK(x.damage() == "");
        CHECK(y.damage() == "");
        CHECK(x.get() == data.x);
        CHECK(gap_damage(c, y.get(), before) == "");
        if (first.empty()) first = y.get();
        CHECK_MESSAGE(y.get() == first, "the order of threads changes the result");
    }
    note_count("emulated instantiations");
    if (is_integer(c.x)) {
        CHECK(first_difference(c, reference(c, data), first) == "");
        return;
    }
    const double u = roundoff(c.accumulates_f64() ? PLAIT_F64 : PLAIT_F32) + more;
    const double ratio = worst_ratio(c, reference(c, data), first, u);
    CHECK(ratio <= 1);
    note_ratio(kernel, ratio, name, config().seed);
}

/// `parts`: of complex numbers, 2^log_n real ones to a row.
void check_block(scalar x, scalar y, int log_n, bool vector, int parts = 0) {
    wht_launch l{};
    if (!wht_block_launch(x, y, log_n, vector, &l, parts)) return;
    const int64_t n = int64_t{1} << (log_n - parts);
    // Two tiles, and one that is not full.
    const int64_t rows = l.rows_per_tile == 1 ? 3 : 2 * l.rows_per_tile + l.rows_per_tile / 2 + 1;
    wht_call c;
    c.x = dtype_of(x);
    c.y = dtype_of(y);
    if (parts > 0) {
        c.x = x == scalar::f32 ? PLAIT_C64 : PLAIT_C128;
        c.y = c.x;
    }
    c.extents = {rows, n};
    if (!is_integer(c.x)) c.scale = -0.375;
    if (!vector) {
        c.x_strides = {n + 3, 1};
        c.y_strides = {n + 1, 1};
        c.x_offset = 1;
        c.y_offset = 3;
    } else if (n * scalar_bytes(x) >= 16 && n * scalar_bytes(y) >= 16) {
        c.x_strides = {n + 16, 1};
        c.y_strides = {n + 8, 1};
    }
    check_kernel("wht.block", l, wht_block_grid(l, rows, 132), c, [&](const void *px, void *py) {
        return wht_block_args{px,
                              py,
                              rows,
                              c.strides(PLAIT_X)[0] << parts,
                              c.strides(PLAIT_Y)[0] << parts,
                              c.scale_value()};
    });
}

void check_mma16(scalar type, int log_n, bool vector, bool both = false) {
    wht_launch l{};
    REQUIRE(wht_mma16_launch(type, type, log_n, vector, &l, both));
    const int64_t n = int64_t{1} << log_n;
    // Two tiles, and one that is not full.
    const int64_t rows = l.rows_per_tile == 1 ? 3 : 2 * l.rows_per_tile + l.rows_per_tile / 2 + 1;
    wht_call c;
    c.x = dtype_of(type);
    c.y = dtype_of(type);
    c.extents = {rows, n};
    c.scale = -0.375;
    c.x_strides = {n + (vector ? 16 : 3), 1};
    c.y_strides = {n + (vector ? 8 : 1), 1};
    if (!vector) {
        c.x_offset = 1;
        c.y_offset = 3;
    }
    // two blocks walk over three tiles
    check_kernel(
        "wht.mma16", l, std::min(2, wht_mma16_grid(l, rows, 132)), c,
        [&](const void *px, void *py) {
            return wht_mma16_args{
                px, py, rows, c.strides(PLAIT_X)[0], c.strides(PLAIT_Y)[0], c.scale_value()};
        });
}

/// Two tiles and one that is not full, on two blocks; a single tile where it is a row.
wht_call kron_call(scalar type, int log_n, const wht_launch &l) {
    const int64_t n = int64_t{1} << log_n;
    wht_call c;
    c.x = dtype_of(type);
    c.extents = {l.rows_per_tile == 1 ? 2 : 2 * l.rows_per_tile + 1, n};
    c.x_strides = {n + 16, 1};
    c.y_strides = {n + 8, 1};
    if (type != scalar::i32) c.scale = -0.375;
    return c;
}

void check_kron_tf32(int log_n, int terms) {
    wht_launch l{};
    REQUIRE(wht_kron_tf32_launch(scalar::f32, scalar::f32, log_n, terms, &l));
    const wht_call c = kron_call(scalar::f32, log_n, l);
    // two products of operands with 11 bits
    const double more = terms == 1 ? 2 * 0x1p-11 / (log_n + 1) : 0;
    check_kernel(
        "wht.kron_tf32", l, l.rows_per_tile == 1 ? 1 : 2, c,
        [&](const void *px, void *py) {
            return wht_kron_tf32_args{px,
                                      py,
                                      c.extents[0],
                                      c.strides(PLAIT_X)[0],
                                      c.strides(PLAIT_Y)[0],
                                      c.scale_value()};
        },
        more);
}

void check_kron_int8(scalar type, int log_n, int moduli) {
    wht_launch l{};
    REQUIRE(wht_kron_int8_launch(type, type, log_n, &l));
    wht_call c = kron_call(type, log_n, l);
    c.bound =
        std::min(wht_kron_reach(moduli) >> log_n, int64_t{1} << (type == scalar::f64 ? 53 : 24));
    check_kernel("wht.kron_int8", l, l.rows_per_tile == 1 ? 1 : 2, c,
                 [&](const void *px, void *py) {
                     wht_kron_int8_args a{};
                     a.x = px;
                     a.y = py;
                     a.rows = c.extents[0];
                     a.x_row_stride = c.strides(PLAIT_X)[0];
                     a.y_row_stride = c.strides(PLAIT_Y)[0];
                     a.scale = c.scale_value();
                     a.moduli = moduli;
                     a.whole = wht_kron_whole(moduli);
                     return a;
                 });
}

void check_cluster(scalar x, int log_n) {
    wht_launch l{};
    REQUIRE(wht_cluster_launch(x, log_n, &l));
    const int64_t n = int64_t{1} << log_n, rows = 3;
    wht_call c;
    c.x = dtype_of(x);
    c.extents = {rows, n};
    c.scale = -0.375;
    c.x_strides = {n + 16, 1};
    c.y_strides = {n + 8, 1};
    check_kernel("wht.cluster", l, wht_cluster_grid(l, rows), c, [&](const void *px, void *py) {
        return wht_cluster_args{
            px, py, rows, c.strides(PLAIT_X)[0], c.strides(PLAIT_Y)[0], c.scale_value()};
    });
}

template <class Launch>
void check_columns(const char *kernel, scalar x, scalar y, int log_m, bool vector,
                   const Launch &launch) {
    wht_launch l{};
    int log_inner = 0;
    while (log_inner < 20 && !launch(x, y, log_m, log_inner, vector, &l)) ++log_inner;
    if (log_inner == 20) return;
    const int64_t batch = 2, outer = log_m + log_inner > 14 ? 1 : 2;
    if (log_m + log_inner < 14) launch(x, y, log_m, ++log_inner, vector, &l); // tiles beside tiles
    const int64_t entry = outer << (log_m + log_inner);
    wht_call c;
    c.x = dtype_of(x);
    c.y = dtype_of(y);
    c.extents = {batch, outer, int64_t{1} << log_m, int64_t{1} << log_inner};
    c.axes = 4;
    if (!is_integer(c.x)) c.scale = 0.625;
    c.x_strides = c.y_strides = c.packed();
    c.x_strides->front() = entry + (vector ? 16 : 5);
    c.y_strides->front() = entry + (vector ? 8 : 3);
    if (!vector) c.x_offset = c.y_offset = 1;
    check_kernel(kernel, l, wht_columns_grid(l, batch * outer, log_inner, 132), c,
                 [&](const void *px, void *py) {
                     return wht_columns_args{
                         px,    py,    batch,     c.x_strides->front(), c.y_strides->front(),
                         outer, log_m, log_inner, c.scale_value()};
                 });
}

/// Enough rows that the passes of different rows alternate and slots are used again.
void check_l2(scalar x, int log_n) {
    wht_launch l{};
    if (!wht_l2_launch(x, x, log_n, &l)) return;
    const wht_l2_config config = wht_l2_config_of(x, log_n);
    const int64_t n = int64_t{1} << log_n, rows = log_n < 18 ? 5 : log_n < 20 ? 2 : 1;
    constexpr int64_t resident = 6;
    wht_call c;
    c.x = dtype_of(x);
    c.y = dtype_of(x);
    c.extents = {rows, n};
    c.scale = -0.375;
    c.x_strides = {n + 16, 1};
    c.y_strides = {n + 8, 1};
    const int64_t slots = wht_l2_slots(config, rows, resident);
    std::vector<uint32_t> counters(static_cast<size_t>(wht_l2_counters(rows)));
    std::vector<float> mid(static_cast<size_t>(config.x != config.mid ? slots * n : 0));
    check_kernel("wht.l2", l, resident, c, [&](const void *px, void *py) {
        std::fill(counters.begin(), counters.end(), 0u);
        std::fill(mid.begin(), mid.end(), std::nanf(""));
        wht_l2_args a{};
        a.x = px;
        a.y = py;
        a.counters = counters.data();
        a.mid = mid.data();
        a.x_row_stride = c.strides(PLAIT_X)[0];
        a.y_row_stride = c.strides(PLAIT_Y)[0];
        a.rows = static_cast<int32_t>(rows);
        a.slots = static_cast<int32_t>(slots);
        a.lead = static_cast<int32_t>(wht_l2_lead(config, rows, resident));
        a.scale = c.scale_value();
        return a;
    });
}

} // namespace

TEST_CASE("emulated wht.block: every instantiation") {
    for (const scalar x : types)
        for (const scalar y : types)
            for (int k = 0; k <= 16; ++k)
                for (const bool vector : {true, false}) check_block(x, y, k, vector);
}

/// The same layouts as those of floats: long ones one way or the other.
TEST_CASE("emulated wht.block: integers and complex numbers") {
    for (int k = 0; k <= 16; ++k)
        for (const bool vector : {true, false}) {
            if (k > 11 && vector != (k % 2 == 0)) continue;
            check_block(scalar::i32, scalar::i32, k, vector);
            check_block(scalar::i64, scalar::i64, k, !vector);
            check_block(scalar::f32, scalar::f32, k, vector, 1);
            check_block(scalar::f64, scalar::f64, k, !vector, 1);
        }
}

TEST_CASE("emulated wht.mma16: every instantiation") {
    for (const scalar type : {scalar::f16, scalar::bf16})
        for (int k = 7; k <= 15; ++k)
            for (const bool vector : {true, false}) check_mma16(type, k, vector);
    for (const scalar type : {scalar::f16, scalar::bf16}) check_mma16(type, 15, true, true);
}

TEST_CASE("emulated wht.kron_tf32: one and three terms") {
    for (const int k : {9, 10, 11, 14}) check_kron_tf32(k, 1);
    for (const int k : {9, 12}) check_kron_tf32(k, 3);
}

TEST_CASE("emulated wht.kron_int8: from one modulus to all") {
    for (const scalar type : {scalar::i32, scalar::f32, scalar::f64})
        check_kron_int8(type, 10, wht_kron_moduli_of(type));
    check_kron_int8(scalar::i32, 12, 4);
    check_kron_int8(scalar::f32, 13, 1);
    check_kron_int8(scalar::f64, 11, 2);
}

TEST_CASE("emulated wht.cluster: every instantiation") {
    for (const scalar x : types)
        for (int k = 0; k <= 20; ++k)
            if (wht_cluster_exists(x, k)) check_cluster(x, k);
}

TEST_CASE("emulated wht.columns_tiled: every instantiation") {
    for (const scalar x : types)
        for (const scalar y : types)
            for (int k = 1; k <= 12; ++k)
                for (const bool vector : {true, false})
                    if (wht_columns_tiled_exists(x, y, k, vector))
                        check_columns("wht.columns_tiled", x, y, k, vector,
                                      &wht_columns_tiled_launch);
    for (const int k : {2, 5, 8, 10, 12}) {
        check_columns("wht.columns_tiled", scalar::i32, scalar::i32, k, false,
                      &wht_columns_tiled_launch);
        check_columns("wht.columns_tiled", scalar::i64, scalar::i64, k, false,
                      &wht_columns_tiled_launch);
    }
}

TEST_CASE("emulated wht.l2: every instantiation") {
    for (const scalar x : types)
        for (int log_n = 0; log_n < 24; ++log_n) check_l2(x, log_n);
}

TEST_CASE("emulated wht.columns_shuffle: every instantiation") {
    for (const scalar x : types)
        for (const scalar y : types)
            for (int k = 1; k <= 5; ++k)
                if (wht_columns_shuffle_exists(x, y, k))
                    check_columns("wht.columns_shuffle", x, y, k, true,
                                  &wht_columns_shuffle_launch);
    for (const scalar x : {scalar::i32, scalar::i64})
        check_columns("wht.columns_shuffle", x, x, 4, true, &wht_columns_shuffle_launch);
}

} // namespace plait::test
