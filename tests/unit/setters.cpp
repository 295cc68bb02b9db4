// What a setter refuses by itself: INVALID_ARGUMENT, with the public function's name.
#include "tests/unit/support.h"

#include <functional>
#include <limits>

using namespace unit;

namespace {

struct row {
    std::function<void(wht_descriptor &)> call;
    const char *sentence;
};

template <class Enum> Enum unknown(int number) { return static_cast<Enum>(number); }

} // namespace

TEST_CASE("the constructor refuses what no descriptor can have") {
    struct {
        plait_dtype dtype;
        int rank;
        std::vector<int64_t> extents;
        const char *sentence;
    } const rows[] = {
        {unknown<plait_dtype>(31), 1, {8}, "plait_wht_create: dtype=31 is no plait_dtype"},
        {unknown<plait_dtype>(0), 1, {8}, "plait_wht_create: dtype=0 is no plait_dtype"},
        {PLAIT_E4M3, 1, {8}, "plait_wht_create: dtype=e4m3 is no type of x; possible: f16"},
        {PLAIT_F32, 0, {8}, "plait_wht_create: rank=0 is not between 1 and 8"},
        {PLAIT_F32, -1, {8}, "plait_wht_create: rank=-1 is not between 1 and 8"},
        {PLAIT_F32, 9, {1, 1, 1, 1, 1, 1, 1, 1, 1}, "plait_wht_create: rank=9 is not between"},
        {PLAIT_F32, 2, {4, -8}, "plait_wht_create: extents[1]=-8 is negative"},
        {PLAIT_F32, 2, {-1, 8}, "plait_wht_create: extents[0]=-1 is negative"},
        {PLAIT_F32, 1, {}, "plait_wht_create: extents=NULL needs 1 values"},
    };
    for (const auto &r : rows)
        expect_failure(PLAIT_ERR_INVALID_ARGUMENT, r.sentence, [&] {
            wht_descriptor(r.dtype, r.rank, r.extents.empty() ? nullptr : r.extents.data());
        });
}

TEST_CASE("every setter refuses wrong arguments and names itself") {
    const double inf = std::numeric_limits<double>::infinity();
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const row rows[] = {
        {[](auto &d) { d.set_axes(4); },
         "plait_wht_set_axes: axes=0x4 names an axis beyond rank 2"},
        {[](auto &d) { d.set_axes(0x80000001u); }, "plait_wht_set_axes: axes=0x80000001 names"},
        {[](auto &d) { d.set_factor(2, PLAIT_H40); },
         "plait_wht_set_factor: axis=2 is not between 0 and 1"},
        {[](auto &d) { d.set_factor(-1, PLAIT_H40); },
         "plait_wht_set_factor: axis=-1 is not between 0 and 1"},
        {[](auto &d) { d.set_factor(1, unknown<plait_wht_factor>(18)); },
         "plait_wht_set_factor: factor=18 is no plait_wht_factor"},
        {[](auto &d) { d.set_order(unknown<plait_wht_order>(3)); },
         "plait_wht_set_order: order=3 is no plait_wht_order"},
        {[=](auto &d) { d.set_scale(nan); }, "plait_wht_set_scale: scale=nan is not finite"},
        {[=](auto &d) { d.set_scale(inf); }, "plait_wht_set_scale: scale=inf is not finite"},
        {[=](auto &d) { d.set_scale(-inf); }, "plait_wht_set_scale: scale=-inf is not finite"},
        {[](auto &d) { d.set_bound(-1); }, "plait_wht_set_bound: bound=-1 is negative"},
        {[](auto &d) { d.use(unknown<plait_role>(15), true); },
         "plait_desc_use: role=15 is no role of wht"},
        {[](auto &d) { d.use(PLAIT_X, false); },
         "plait_desc_use: role=x is required and cannot be turned off"},
        {[](auto &d) { d.set_factor_order(2, 4); },
         "plait_wht_set_factor_order: axis=2 is not between 0 and 1"},
        {[](auto &d) { d.set_factor_order(1, 1); },
         "plait_wht_set_factor_order: order=1 is not between 2 and 256"},
        {[](auto &d) { d.set_rows(-1); }, "plait_wht_set_rows: count=-1 is negative"},
        {[](auto &d) { d.set_group(0); }, "plait_wht_set_group: length=0 is less than 1"},
        {[](auto &d) {
             d.set_histogram({0, 0, 1});
         },
         "plait_wht_set_histogram: bins=0 is less"},
        {[](auto &d) {
             d.set_histogram({1, 0, 0});
         },
         "plait_wht_set_histogram: width=0 is less"},
        {[](auto &d) { d.use(PLAIT_ROWS, true); },
         "plait_desc_use: role=rows is turned on by another setter alone: plait_wht_set_rows"},
        {[](auto &d) { d.set_dtype(unknown<plait_role>(0), PLAIT_F32); },
         "plait_desc_set_dtype: role=0 is no role of wht"},
        {[](auto &d) { d.set_dtype(PLAIT_Y, unknown<plait_dtype>(6)); },
         "plait_desc_set_dtype: dtype=6 is no plait_dtype"},
        {[](auto &d) { d.set_dtype(PLAIT_X, PLAIT_E4M3); },
         "plait_desc_set_dtype: dtype=e4m3 is no type of x; possible: f64 f32 f16 bf16"},
        {[](auto &d) { d.set_dtype(PLAIT_SIGNS, PLAIT_F32); },
         "plait_desc_set_dtype: dtype=f32 is no type of signs; possible: b1"},
        {[](auto &d) { d.set_dtype(PLAIT_OVERFLOW, PLAIT_I64); },
         "plait_desc_set_dtype: dtype=i64 is no type of overflow; possible: i32"},
        {[](auto &d) { d.set_dtype(PLAIT_DIAG, PLAIT_I32); },
         "plait_desc_set_dtype: dtype=i32 is no type of diag"},
        {[](auto &d) {
             unit::set_strides(d, unknown<plait_role>(15), {8, 1});
         },
         "plait_desc_set_strides: role=15 is no role of wht"},
        {[](auto &d) { unit::set_strides(d, PLAIT_X, {8}); },
         "plait_desc_set_strides: rank=1 is not the rank 2 of x"},
        {[](auto &d) {
             unit::set_strides(d, PLAIT_OVERFLOW, {8, 1});
         },
         "plait_desc_set_strides: rank=2 is not the rank 1 of overflow"},
        {[](auto &d) { d.set_strides(PLAIT_X, -1, nullptr); },
         "plait_desc_set_strides: rank=-1 is not the rank 2 of x"},
        {[](auto &d) { d.set_strides(PLAIT_X, 2, nullptr); },
         "plait_desc_set_strides: strides=NULL needs 2 values"},
        {[](auto &d) {
             unit::set_strides(d, PLAIT_Y, {8, -1});
         },
         "plait_desc_set_strides: strides[1]=-1 of y is negative"},
        {[](auto &d) { d.set_alignment(unknown<plait_role>(15), 16); },
         "plait_desc_set_alignment: role=15 is no role of wht"},
        {[](auto &d) { d.set_alignment(PLAIT_X, 0); },
         "plait_desc_set_alignment: bytes=0 of x is no power of two from 1 to 4096"},
        {[](auto &d) { d.set_alignment(PLAIT_X, 24); }, "plait_desc_set_alignment: bytes=24 of x"},
        {[](auto &d) { d.set_alignment(PLAIT_X, -16); }, "plait_desc_set_alignment: bytes=-16"},
        {[](auto &d) { d.set_alignment(PLAIT_X, 8192); }, "plait_desc_set_alignment: bytes=8192"},
        {[](auto &d) { d.set_alias(PLAIT_X, PLAIT_Y); },
         "plait_desc_set_alias: out=x in=y is no pair of an output and an input"},
        {[](auto &d) { d.set_alias(PLAIT_Y, PLAIT_DIAG); },
         "plait_desc_set_alias: out=y in=diag is no pair"},
        {[](auto &d) { d.set_alias(PLAIT_Y, PLAIT_Y); }, "these may: y@x"},
        {[](auto &d) { d.set_alias(unknown<plait_role>(15), PLAIT_X); },
         "plait_desc_set_alias: out=15 is no role of wht"},
        {[](auto &d) { d.set_alias(PLAIT_Y, unknown<plait_role>(0)); },
         "plait_desc_set_alias: in=0 is no role of wht"},
    };
    for (const row &r : rows) {
        wht_descriptor desc = make_wht(PLAIT_F32, {4, 8});
        expect_failure(PLAIT_ERR_INVALID_ARGUMENT, r.sentence, [&] { r.call(desc); });
        // A refused call leaves the descriptor as it was.
        CHECK(desc.token() == "wht:f32:b4:n8");
        CHECK_NOTHROW(desc.check());
    }
}

TEST_CASE("a copy is independent") {
    wht_descriptor desc = make_wht(PLAIT_F32, {4, 8});
    desc.use(PLAIT_SIGNS, true);
    const std::unique_ptr<descriptor> copy = desc.clone();
    desc.set_scale(2.0);
    desc.use(PLAIT_SIGNS, false);
    CHECK(copy->token() == "wht:f32:b4:n8:+signs");
    CHECK(desc.token() == "wht:f32:b4:n8:scale=2");
}
