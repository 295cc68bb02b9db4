// One canonical text for each convolution, both ways.
#include "tests/unit/conv1d_support.h"
#include "tests/unit/round_trip.h"

using namespace unit;

namespace {

bool same(const conv1d_view &a, const conv1d_view &b) {
    return a.type == b.type && a.align == b.align && a.b == b.b && a.c == b.c && a.t == b.t;
}

bool same(const conv1d_problem &a, const conv1d_problem &b) {
    const auto flags = [](const conv1d_problem &p) {
        return std::vector<int64_t>{static_cast<int64_t>(p.direction),
                                    p.silu,
                                    p.residual,
                                    p.varlen,
                                    p.ring,
                                    p.pooled,
                                    p.alias,
                                    p.status,
                                    static_cast<int64_t>(p.index),
                                    p.pad,
                                    p.batch,
                                    p.channels,
                                    p.length,
                                    p.width,
                                    p.sequences,
                                    p.max_length,
                                    p.entries,
                                    p.slots,
                                    static_cast<int64_t>(p.accumulator)};
    };
    return flags(a) == flags(b) && same(a.x, b.x) && same(a.y, b.y) && same(a.w, b.w) &&
           same(a.bias, b.bias) && same(a.state_in, b.state_in) && same(a.state_out, b.state_out) &&
           same(a.seq_idx, b.seq_idx) && same(a.dx, b.dx) && same(a.dy, b.dy) && same(a.dw, b.dw) &&
           same(a.dbias, b.dbias) && same(a.dstate_in, b.dstate_in) &&
           same(a.dstate_out, b.dstate_out);
}

bool round_trip(const descriptor &desc) {
    return unit::round_trip(
        desc, [](const problem &a, const problem &b) { return same(a.conv1d(), b.conv1d()); });
}

} // namespace

TEST_CASE("conv1d: random descriptors survive the token") {
    dice d(test_seed() + 7);
    int legal = 0;
    for (int i = 0; i < rounds(8000); ++i) legal += round_trip(any_conv1d(d));
    CHECK(legal >= rounds(100)); // contradictions alone would prove little
}

TEST_CASE("conv1d: the examples are canonical and legal") {
    for (const std::string &token : conv1d_corpus()) {
        INFO(token);
        CHECK(round_trip(*descriptor_from_token(token)));
    }
}

TEST_CASE("conv1d: defaults that are said aloud do not show") {
    for (const plait_direction direction : {PLAIT_FORWARD, PLAIT_BACKWARD, PLAIT_UPDATE}) {
        conv1d_descriptor desc = make_conv1d(direction);
        const std::string token = desc.token();
        desc.set_layout(PLAIT_BCT);
        desc.set_activation(PLAIT_ACT_NONE);
        desc.set_residual(false);
        desc.set_state(PLAIT_STATE_LINEAR, 2);
        desc.use(PLAIT_BIAS, false);
        desc.use(PLAIT_STATUS, false);
        desc.use(PLAIT_X, true);
        desc.set_dtype(PLAIT_X, PLAIT_F32);
        desc.set_dtype(PLAIT_W, PLAIT_F32);
        unit::set_strides(desc, PLAIT_X, {32, 8, 1});
        unit::set_strides(desc, PLAIT_W, {3, 1});
        for (const plait_role role : conv1d_roles(direction))
            if (role == PLAIT_CU_SEQLENS)
                desc.set_alignment(role, 8);
            else
                desc.set_alignment(role, role == PLAIT_SLOTS || role == PLAIT_SEQ_IDX ||
                                                 role == PLAIT_STATUS || role == PLAIT_POSITION
                                             ? 4
                                             : 16);
        if (direction == PLAIT_BACKWARD) {
            desc.use(PLAIT_DX, true);
            desc.set_dtype(PLAIT_DW, PLAIT_F32);
        }
        CHECK(desc.token() == token);
        CHECK_NOTHROW(desc.check());
    }
}

TEST_CASE("conv1d: the types of gradients follow, and so do those that follow X") {
    conv1d_descriptor desc = make_conv1d(PLAIT_BACKWARD);
    desc.use(PLAIT_BIAS, true);
    desc.set_dtype(PLAIT_X, PLAIT_BF16);
    desc.set_dtype(PLAIT_W, PLAIT_F32);
    desc.set_dtype(PLAIT_Y, PLAIT_F16);
    CHECK(desc.token() == "conv1d.bwd:bf16:b2:c4:t8:k3:+bias:y.f16:w.f32");
    for (const tensor &t : desc.tensors()) {
        const bool wide = t.role == PLAIT_W || t.role == PLAIT_DW;
        CHECK(t.dtype == (wide ? PLAIT_F32 : t.role == PLAIT_DY ? PLAIT_F16 : PLAIT_BF16));
    }
}

TEST_CASE("conv1d: a token that can be understood is answered with its canonical form") {
    struct {
        const char *token;
        const char *canonical;
    } const rows[] = {
        {"conv1d.fwd:f32:b02:c4:t8:k4", "conv1d.fwd:f32:b2:c4:t8:k4"},
        {"conv1d.fwd:f32:b2:c4:t8:k4:state=lin.3", "conv1d.fwd:f32:b2:c4:t8:k4"},
        {"conv1d.fwd:f32:b2:c4:t8:k4:residual:silu", "conv1d.fwd:f32:b2:c4:t8:k4:silu:residual"},
        {"conv1d.fwd:f32:b1:c4:t8:k4:+bias:seqs=2.8", "conv1d.fwd:f32:b1:c4:t8:k4:seqs=2.8:+bias"},
        {"conv1d.fwd:f32:b2:c4:t8:k4:+state_in+bias", "conv1d.fwd:f32:b2:c4:t8:k4:+bias+state_in"},
        {"conv1d.fwd:f32:b2:c4:t8:k4:-bias", "conv1d.fwd:f32:b2:c4:t8:k4"},
        {"conv1d.bwd:f32:b2:c4:t8:k4:+dx", "conv1d.bwd:f32:b2:c4:t8:k4"},
        {"conv1d.fwd:f32:b2:c4:t8:k4:x.bf16", "conv1d.fwd:bf16:b2:c4:t8:k4"},
        {"conv1d.fwd:f32:b2:c4:t8:k4:x.s32.8.1", "conv1d.fwd:f32:b2:c4:t8:k4"},
        {"conv1d.fwd:f32:b1:c4:t8:k4:seqs=2.8:cu_seqlens.a8",
         "conv1d.fwd:f32:b1:c4:t8:k4:seqs=2.8"},
        {"conv1d.fwd:f32:b2:c4:t8:k4:slots=4.-01:+state_in",
         "conv1d.fwd:f32:b2:c4:t8:k4:slots=4.-1:+state_in"},
    };
    for (const auto &r : rows) {
        expect_failure(PLAIT_ERR_INVALID_ARGUMENT,
                       text("plait_desc_from_token: token=\"", r.token,
                            "\" is not canonical; the canonical form is ", r.canonical),
                       [&] { descriptor_from_token(r.token); });
        CHECK(descriptor_from_token(r.canonical)->token() == r.canonical);
    }
}

TEST_CASE("conv1d: a token that makes no sense is refused at its place") {
    struct {
        const char *token;
        const char *sentence;
    } const rows[] = {
        {"conv1d:f32:b1:c1:t1:k1", "token[0]=\"conv1d\" is no family; families: wht conv1d.fwd "
                                   "conv1d.bwd conv1d.update kda.fwd "
                                   "kda.bwd"},
        {"conv1d.fwd", "token[0]=\"conv1d.fwd\" ends early: type and sizes follow, "
                       "conv1d.fwd:bf16:b4:c64:t2048:k4"},
        {"conv1d.fwd:f32:b1:c1:t1", "ends early"},
        {"conv1d.fwd:f8:b1:c1:t1:k1", "token[11]=\"f8\" is no type"},
        {"conv1d.fwd:i32:b1:c1:t1:k1", "token[11]=\"i32\" is refused: dtype=i32 is no type of x"},
        {"conv1d.fwd:f32:n1:c1:t1:k1", "token[15]=\"n1\" is not b<number>: b, then c and t in the "
                                       "order of the layout, then k follow the type"},
        {"conv1d.fwd:f32:b1:c1:c1:k1", "token[21]=\"c1\" is not t<number>"},
        {"conv1d.fwd:f32:b1:t1:t1:k1", "token[21]=\"t1\" is not c<number>"},
        {"conv1d.fwd:f32:b1:c1:t1:n1", "token[24]=\"n1\" is not k<number>"},
        {"conv1d.fwd:f32:b:c1:t1:k1", "token[15]=\"b\" is not b<number>"},
        {"conv1d.fwd:f32:b1x:c1:t1:k1", "token[16]=\"1x\" is no 64-bit integer"},
        {"conv1d.fwd:f32:b1:c1:t1:k0", "token[24]=\"k0\" is less than 1"},
        {"conv1d.fwd:f32:b-1:c1:t1:k1", "token[15]=\"b-1\" is less than 0"},
        {"conv1d.fwd:f32:b1:c1:t1:k1:relu",
         "token[27]=\"relu\" is no option or role of conv1d.fwd"},
        {"conv1d.fwd:f32:b1:c1:t1:k1:silu=1", "is no option or role of conv1d.fwd"},
        {"conv1d.fwd:f32:b1:c1:t1:k1:silu:silu", "is a second option of one kind"},
        {"conv1d.fwd:f32:b1:c1:t1:k1:state=4", "token[33]=\"4\" is no state: lin.<entries> or "},
        {"conv1d.fwd:f32:b1:c1:t1:k1:state=lin.", "is no 64-bit integer"},
        {"conv1d.fwd:f32:b1:c1:t1:k1:state=lin.-1", "entries=-1 is negative"},
        {"conv1d.fwd:f32:b1:c1:t1:k1:seqs=4", "token[32]=\"4\" is not two numbers with a dot"},
        {"conv1d.fwd:f32:b1:c1:t1:k1:seqs=4.5.6", "is not two numbers with a dot between them"},
        {"conv1d.fwd:f32:b1:c1:t1:k1:seqs=-4.5", "sequences=-4 is negative"},
        {"conv1d.fwd:f32:b1:c1:t1:k1:slots=4.2147483648", "has a pad slot beyond 32 bits"},
        {"conv1d.fwd:f32:b1:c1:t1:k1:slots=2147483648.0", "count=2147483648 is not between 0 and"},
        {"conv1d.fwd:f32:b1:c1:t1:k1:+dx", "is refused: role=dx is no role of conv1d.fwd"},
        {"conv1d.fwd:f32:b1:c1:t1:k1:-x", "role=x is required and cannot be turned off"},
        {"conv1d.fwd:f32:b1:c1:t1:k1:+slots", "is turned on by another setter alone"},
        {"conv1d.update:f32:b1:c1:t1:k1:+seq_idx", "role=seq_idx is no role of conv1d.update"},
        {"conv1d.fwd:f32:b1:c1:t1:k1:y@x", "out=y in=x is no pair"},
        {"conv1d.fwd:f32:b1:c1:t1:k1:x.s1", "rank=1 is not the rank 3 of x"},
    };
    for (const auto &r : rows) {
        INFO(r.token);
        expect_failure(PLAIT_ERR_INVALID_ARGUMENT, r.sentence,
                       [&] { descriptor_from_token(r.token); });
    }
}
