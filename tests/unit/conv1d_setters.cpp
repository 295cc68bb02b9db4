// What a setter of a convolution refuses by itself: INVALID_ARGUMENT, with the public name.
#include "tests/unit/conv1d_support.h"

#include <functional>

using namespace unit;

namespace {

template <class Enum> Enum unknown(int number) { return static_cast<Enum>(number); }

struct row {
    std::function<void(conv1d_descriptor &)> call;
    const char *sentence;
};

void refuse_all(plait_direction direction, const std::vector<row> &rows) {
    for (const row &r : rows) {
        conv1d_descriptor desc = make_conv1d(direction);
        const std::string token = desc.token();
        expect_failure(PLAIT_ERR_INVALID_ARGUMENT, r.sentence, [&] { r.call(desc); });
        CHECK(desc.token() == token); // a refused call changes nothing
        CHECK_NOTHROW(desc.check());
    }
}

} // namespace

TEST_CASE("conv1d: the constructor refuses what no descriptor can have") {
    struct {
        plait_direction direction;
        plait_dtype dtype;
        int64_t batch, channels, length, width;
        const char *sentence;
    } const rows[] = {
        {unknown<plait_direction>(3), PLAIT_F32, 1, 1, 1, 1, "dir=3 is no plait_direction"},
        {unknown<plait_direction>(-1), PLAIT_F32, 1, 1, 1, 1, "dir=-1 is no plait_direction"},
        {PLAIT_FORWARD, unknown<plait_dtype>(31), 1, 1, 1, 1, "dtype=31 is no plait_dtype"},
        {PLAIT_FORWARD, unknown<plait_dtype>(0), 1, 1, 1, 1, "dtype=0 is no plait_dtype"},
        {PLAIT_BACKWARD, PLAIT_I32, 1, 1, 1, 1,
         "dtype=i32 is no type of x; possible: f16 bf16 f32 f64"},
        {PLAIT_UPDATE, PLAIT_C64, 1, 1, 1, 1, "dtype=c64 is no type of x"},
        {PLAIT_FORWARD, PLAIT_B1, 1, 1, 1, 1, "dtype=b1 is no type of x"},
        {PLAIT_FORWARD, PLAIT_F32, -1, 1, 1, 1, "batch=-1 is less than 0"},
        {PLAIT_FORWARD, PLAIT_F32, 1, -2, 1, 1, "channels=-2 is less than 0"},
        {PLAIT_FORWARD, PLAIT_F32, 1, 1, -3, 1, "length=-3 is less than 0"},
        {PLAIT_FORWARD, PLAIT_F32, 1, 1, 1, 0, "width=0 is less than 1"},
        {PLAIT_FORWARD, PLAIT_F32, 1, 1, 1, INT64_MIN, "width=-9223372036854775808 is less"},
    };
    for (const auto &r : rows)
        expect_failure(
            PLAIT_ERR_INVALID_ARGUMENT, std::string("plait_conv1d_create: ") + r.sentence, [&] {
                conv1d_descriptor(r.direction, r.dtype, r.batch, r.channels, r.length, r.width);
            });
}

TEST_CASE("conv1d: every setter refuses wrong arguments and names itself") {
    refuse_all(
        PLAIT_FORWARD,
        {
            {[](auto &d) { d.set_layout(unknown<plait_layout>(2)); },
             "plait_conv1d_set_layout: layout=2 is no plait_layout"},
            {[](auto &d) { d.set_activation(unknown<plait_activation>(2)); },
             "plait_conv1d_set_activation: act=2 is no plait_activation"},
            {[](auto &d) { d.set_state(unknown<plait_state_kind>(2), 4); },
             "plait_conv1d_set_state: kind=2 is no plait_state_kind"},
            {[](auto &d) { d.set_state(PLAIT_STATE_LINEAR, -1); },
             "plait_conv1d_set_state: entries=-1 is negative"},
            {[](auto &d) { d.set_varlen(-1, 4); },
             "plait_desc_set_varlen: sequences=-1 is negative"},
            {[](auto &d) { d.set_varlen(1, -4); },
             "plait_desc_set_varlen: max_length=-4 is negative"},
            {[](auto &d) { d.set_slots(-1, 0); }, "plait_desc_set_slots: count=-1 is not between"},
            {[](auto &d) { d.set_slots(int64_t{INT32_MAX} + 1, 0); },
             "plait_desc_set_slots: count=2147483648 is not between 0 and 2147483647"},
            {[](auto &d) { d.use(PLAIT_SIGNS, true); },
             "plait_desc_use: role=signs is no role of conv1d.fwd"},
            {[](auto &d) { d.use(PLAIT_STATE, true); },
             "plait_desc_use: role=state is no role of conv1d.fwd"},
            {[](auto &d) { d.use(PLAIT_DX, true); },
             "plait_desc_use: role=dx is no role of conv1d.fwd"},
            {[](auto &d) { d.use(PLAIT_W, false); },
             "plait_desc_use: role=w is required and cannot be turned off"},
            {[](auto &d) { d.use(PLAIT_SLOTS, true); },
             "plait_desc_use: role=slots is turned on by another setter alone: "
             "plait_desc_set_slots"},
            {[](auto &d) { d.use(PLAIT_CU_SEQLENS, true); },
             "role=cu_seqlens is turned on by another setter alone: plait_desc_set_varlen"},
            {[](auto &d) { d.set_dtype(PLAIT_X, PLAIT_I32); },
             "plait_desc_set_dtype: dtype=i32 is no type of x; possible: f64 f32 f16 bf16"},
            {[](auto &d) { d.set_dtype(PLAIT_SEQ_IDX, PLAIT_I64); },
             "plait_desc_set_dtype: dtype=i64 is no type of seq_idx; possible: i32"},
            {[](auto &d) { d.set_dtype(PLAIT_CU_SEQLENS, PLAIT_F32); },
             "dtype=f32 is no type of cu_seqlens; possible: i32 i64"},
            {[](auto &d) {
                 unit::set_strides(d, PLAIT_X, {8, 1});
             },
             "plait_desc_set_strides: rank=2 is not the rank 3 of x"},
            {[](auto &d) { unit::set_strides(d, PLAIT_W, {1}); },
             "plait_desc_set_strides: rank=1 is not the rank 2 of w"},
            {[](auto &d) {
                 unit::set_strides(d, PLAIT_Y, {32, 8, -1});
             },
             "plait_desc_set_strides: strides[2]=-1 of y is negative"},
            {[](auto &d) { d.set_alignment(PLAIT_STATE_IN, 3); },
             "plait_desc_set_alignment: bytes=3 of state_in is no power of two"},
            {[](auto &d) { d.set_alias(PLAIT_Y, PLAIT_X); },
             "plait_desc_set_alias: out=y in=x is no pair of an output and an input that may share "
             "a pointer; these may: state_out@state_in"},
            {[](auto &d) { d.set_alias(PLAIT_STATE_IN, PLAIT_STATE_OUT); },
             "plait_desc_set_alias: out=state_in in=state_out is no pair"},
        });
}

TEST_CASE("conv1d: roles of one direction are refused by the others") {
    refuse_all(
        PLAIT_BACKWARD,
        {
            {[](auto &d) { d.use(PLAIT_SLOTS, true); }, "role=slots is no role of conv1d.bwd"},
            {[](auto &d) { d.use(PLAIT_DY, false); }, "role=dy is required"},
            {[](auto &d) { d.use(PLAIT_POSITION, true); }, "no role of conv1d.bwd"},
        });
    refuse_all(PLAIT_UPDATE,
               {
                   {[](auto &d) { d.use(PLAIT_SEQ_IDX, true); }, "no role of conv1d.update"},
                   {[](auto &d) { d.use(PLAIT_STATE_IN, true); }, "no role of conv1d.update"},
                   {[](auto &d) { d.use(PLAIT_CU_SEQLENS, true); }, "no role of conv1d.update"},
                   {[](auto &d) { d.use(PLAIT_STATE, false); }, "role=state is required"},
                   {[](auto &d) { d.use(PLAIT_POSITION, true); },
                    "role=position is turned on by another setter alone: plait_conv1d_set_state "
                    "with PLAIT_STATE_RING"},
                   {[](auto &d) { d.set_alias(PLAIT_STATE_OUT, PLAIT_STATE_IN); },
                    "no role of conv1d.update"},
               });
}

TEST_CASE("conv1d: what is implied may be said again, and a copy is independent") {
    conv1d_descriptor desc = make_conv1d();
    desc.set_slots(4, -1);
    desc.use(PLAIT_SLOTS, true);
    desc.use(PLAIT_STATE_IN, true);
    const std::unique_ptr<descriptor> copy = desc.clone();
    desc.set_residual(true);
    desc.use(PLAIT_STATE_IN, false);
    CHECK(copy->token() == "conv1d.fwd:f32:b2:c4:t8:k3:slots=4.-1:+state_in");
    CHECK(desc.token() == "conv1d.fwd:f32:b2:c4:t8:k3:residual:slots=4.-1");
}

TEST_CASE("wht has no packed sequences and no pools") {
    wht_descriptor desc = make_wht(PLAIT_F32, {8});
    expect_failure(PLAIT_ERR_INVALID_ARGUMENT, "plait_desc_set_varlen: wht has no packed sequences",
                   [&] { desc.set_varlen(1, 1); });
    expect_failure(PLAIT_ERR_INVALID_ARGUMENT, "plait_desc_set_slots: wht has no pool of states",
                   [&] { desc.set_slots(1, 1); });
}
