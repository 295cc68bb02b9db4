// The normal form says what the descriptor says: each element of each tensor has one place.
#include "src/desc/problem.h"
#include "tests/unit/conv1d_support.h"

using namespace unit;

namespace {

const conv1d_view *view_of(const conv1d_problem &p, plait_role role) {
    switch (role) {
    case PLAIT_X: return &p.x;
    case PLAIT_Y: return &p.y;
    case PLAIT_W: return &p.w;
    case PLAIT_BIAS: return &p.bias;
    case PLAIT_STATE:
    case PLAIT_STATE_IN: return &p.state_in;
    case PLAIT_STATE_OUT: return &p.state_out;
    case PLAIT_SEQ_IDX: return &p.seq_idx;
    case PLAIT_DX: return &p.dx;
    case PLAIT_DY: return &p.dy;
    case PLAIT_DW: return &p.dw;
    case PLAIT_DBIAS: return &p.dbias;
    case PLAIT_DSTATE_IN: return &p.dstate_in;
    case PLAIT_DSTATE_OUT: return &p.dstate_out;
    default: return nullptr;
    }
}

/// The tensor's axes by name: "bct" of x in BCT.
std::string axes_of(plait_role role, bool bct) {
    switch (role) {
    case PLAIT_W:
    case PLAIT_DW: return "ct";
    case PLAIT_BIAS:
    case PLAIT_DBIAS: return "c";
    case PLAIT_SEQ_IDX: return "bt";
    default: return bct ? "bct" : "btc";
    }
}

} // namespace

TEST_CASE("conv1d: views are the tensors, whatever the layout") {
    dice d(test_seed() + 8);
    int seen = 0;
    for (int i = 0; i < rounds(8000); ++i) {
        const conv1d_descriptor desc = any_conv1d(d);
        try {
            desc.check();
        } catch (const failure &) {
            continue;
        }
        const std::string token = desc.token();
        INFO(token);
        const problem made = make_problem(desc);
        const conv1d_problem &p = made.conv1d();
        const bool bct = token.find(":c", token.find(":b")) < token.find(":t");
        bool wide = false, writes = false;
        for (const tensor &t : made.tensors) {
            INFO(role_name(t.role));
            writes = writes || ((t.access & PLAIT_WRITE) && t.elements() > 0);
            const conv1d_view *v = view_of(p, t.role);
            if (!v) continue;
            ++seen;
            CHECK(v->used());
            CHECK(static_cast<int>(v->type) == static_cast<int>(t.dtype));
            CHECK(v->align == t.alignment);
            const std::string axes = axes_of(t.role, bct);
            REQUIRE(axes.size() == t.strides.size());
            int64_t b = 0, c = 0, time = 0;
            for (size_t a = 0; a < axes.size(); ++a)
                (axes[a] == 'b' ? b : axes[a] == 'c' ? c : time) = t.strides[a];
            CHECK(v->b == b);
            CHECK(v->c == c);
            CHECK(v->t == time);
            wide = wide || t.dtype == PLAIT_F64;
        }
        CHECK(made.empty == !writes);
        CHECK(p.accumulator == (wide ? scalar::f64 : scalar::f32));
        for (const plait_role role :
             {PLAIT_BIAS, PLAIT_SEQ_IDX, PLAIT_DX, PLAIT_DW, PLAIT_DBIAS, PLAIT_DSTATE_IN})
            CHECK(view_of(p, role)->used() == (made.find(role) != nullptr));
    }
    CHECK(seen >= rounds(400));
}

TEST_CASE("conv1d: the numbers of the normal form") {
    const auto form = [](const char *token) {
        return make_problem(*descriptor_from_token(token)).conv1d();
    };
    conv1d_problem p = form("conv1d.fwd:bf16:b1:t512:c64:k4:silu:residual:state=lin.5:seqs=9.100:"
                            "slots=40.-7:+state_in+state_out+status:state_out@state_in:"
                            "cu_seqlens.i32");
    CHECK(p.direction == conv1d_direction::forward);
    CHECK(p.silu);
    CHECK(p.residual);
    CHECK(p.varlen);
    CHECK(p.pooled);
    CHECK(p.alias);
    CHECK(p.status);
    CHECK_FALSE(p.ring);
    CHECK(p.index == scalar::i32);
    CHECK(p.pad == -7);
    CHECK(p.batch == 1);
    CHECK(p.channels == 64);
    CHECK(p.length == 512);
    CHECK(p.width == 4);
    CHECK(p.history() == 3);
    CHECK(p.entries == 5);
    CHECK(p.sequences == 9);
    CHECK(p.max_length == 100);
    CHECK(p.slots == 40);
    p = form("conv1d.update:f32:b7:c3:t2:k4:state=ring.6");
    CHECK(p.direction == conv1d_direction::update);
    CHECK(p.ring);
    CHECK(p.alias); // one state in both
    CHECK(p.state_in.used());
    CHECK(p.state_out.used());
    CHECK(p.entries == 6);
    CHECK(p.sequences == 7);
    CHECK_FALSE(p.varlen);
    CHECK(p.index == scalar::none);
    p = form("conv1d.bwd:f32:b2:c3:t9:k4:+state_out-dx");
    CHECK(p.direction == conv1d_direction::backward);
    CHECK_FALSE(p.dx.used());
    CHECK_FALSE(p.state_out.used()); // no argument
    CHECK(p.dstate_out.used());
    CHECK(p.max_length == 9);
}
