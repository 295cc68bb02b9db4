// One canonical text for each descriptor of Kimi Delta Attention, both ways; and the normal form.
#include "tests/unit/kda_support.h"
#include "tests/unit/round_trip.h"

#include <cmath>

using namespace unit;

namespace {

std::vector<int64_t> numbers(const kda_view &v) {
    return {static_cast<int64_t>(v.type), v.align, v.b, v.t, v.h, v.c};
}
std::vector<int64_t> numbers(const kda_state_view &v) {
    return {static_cast<int64_t>(v.type), v.align, v.n, v.h, v.k, v.v};
}

/// Everything but the scales.
std::vector<int64_t> numbers(const kda_problem &p) {
    std::vector<int64_t> out = {static_cast<int64_t>(p.direction),
                                static_cast<int64_t>(p.gate),
                                p.norm,
                                p.beta_logit,
                                p.varlen,
                                p.pooled,
                                p.alias,
                                p.status,
                                p.reserve,
                                static_cast<int64_t>(p.index),
                                p.pad,
                                p.batch,
                                p.length,
                                p.heads,
                                p.value_heads,
                                p.dim_k,
                                p.dim_v,
                                p.sequences,
                                p.max_length,
                                p.slots,
                                static_cast<int64_t>(p.accumulator)};
    for (const kda_view *v : {&p.q, &p.k, &p.v, &p.g, &p.beta, &p.o, &p.a_log, &p.dt_bias, &p.dq,
                              &p.dk, &p.dv, &p.dg, &p.dbeta, &p.d_o, &p.da_log, &p.ddt_bias})
        for (const int64_t x : numbers(*v)) out.push_back(x);
    for (const kda_state_view *v : {&p.state_in, &p.state_out, &p.dstate_in, &p.dstate_out})
        for (const int64_t x : numbers(*v)) out.push_back(x);
    return out;
}

bool round_trip(const descriptor &desc) {
    return unit::round_trip(desc, [](const problem &a, const problem &b) {
        const kda_problem &x = a.kda(), &y = b.kda();
        return numbers(x) == numbers(y) && x.lower_bound == y.lower_bound &&
               x.beta_scale == y.beta_scale && x.eps == y.eps && x.scale == y.scale;
    });
}

const kda_view *view_of(const kda_problem &p, plait_role role) {
    switch (role) {
    case PLAIT_Q: return &p.q;
    case PLAIT_K: return &p.k;
    case PLAIT_V: return &p.v;
    case PLAIT_G: return &p.g;
    case PLAIT_BETA: return &p.beta;
    case PLAIT_O: return &p.o;
    case PLAIT_A_LOG: return &p.a_log;
    case PLAIT_DT_BIAS: return &p.dt_bias;
    case PLAIT_DQ: return &p.dq;
    case PLAIT_DK: return &p.dk;
    case PLAIT_DV: return &p.dv;
    case PLAIT_DG: return &p.dg;
    case PLAIT_DBETA: return &p.dbeta;
    case PLAIT_DO: return &p.d_o;
    case PLAIT_DA_LOG: return &p.da_log;
    case PLAIT_DDT_BIAS: return &p.ddt_bias;
    default: return nullptr;
    }
}

const kda_state_view *state_of(const kda_problem &p, plait_role role) {
    switch (role) {
    case PLAIT_STATE_IN: return &p.state_in;
    case PLAIT_STATE_OUT: return &p.state_out;
    case PLAIT_DSTATE_IN: return &p.dstate_in;
    case PLAIT_DSTATE_OUT: return &p.dstate_out;
    default: return nullptr;
    }
}

} // namespace

TEST_CASE("kda: random descriptors survive the token") {
    dice d(test_seed() + 17);
    int legal = 0;
    for (int i = 0; i < rounds(8000); ++i) legal += round_trip(any_kda(d));
    CHECK(legal >= rounds(100)); // contradictions alone would prove little
}

TEST_CASE("kda: the examples are canonical and legal") {
    for (const std::string &token : kda_corpus()) {
        INFO(token);
        CHECK(round_trip(*descriptor_from_token(token)));
    }
}

TEST_CASE("kda: defaults that are said aloud do not show") {
    for (const plait_direction direction : {PLAIT_FORWARD, PLAIT_BACKWARD}) {
        kda_descriptor desc = make_kda(direction);
        const std::string token = desc.token();
        desc.set_beta(false, 1);
        desc.set_qk_norm(false, 3);
        desc.set_scale(1 / std::sqrt(3.0));
        desc.use(PLAIT_A_LOG, true);
        desc.use(PLAIT_DT_BIAS, false);
        desc.set_dtype(PLAIT_Q, PLAIT_F32);
        desc.set_dtype(PLAIT_STATE_IN, PLAIT_F32);
        unit::set_strides(desc, PLAIT_V, {160, 20, 5, 1});
        desc.set_alignment(PLAIT_G, 16);
        CHECK(desc.token() == token);
        CHECK_NOTHROW(desc.check());
    }
}

TEST_CASE("kda: types that follow Q, those that follow it to F64 alone, and gradients") {
    kda_descriptor desc = make_kda(PLAIT_BACKWARD);
    desc.set_state(PLAIT_STATE_KV);
    desc.use(PLAIT_STATE_IN, true);
    desc.set_dtype(PLAIT_Q, PLAIT_BF16);
    desc.set_dtype(PLAIT_G, PLAIT_F32);
    desc.set_dtype(PLAIT_O, PLAIT_F16);
    CHECK(desc.token() ==
          "kda.bwd:bf16:b2:t8:h2:hv4:k3:v5:gate=softplus:state=kv:+state_in:g.f32:o.f16");
    for (const tensor &t : desc.tensors()) {
        INFO(role_name(t.role));
        const int primal = t.role & 255;
        const bool wide = primal == PLAIT_G || primal == PLAIT_A_LOG || primal == PLAIT_STATE_IN;
        CHECK(t.dtype == (wide ? PLAIT_F32 : t.role == PLAIT_DO ? PLAIT_F16 : PLAIT_BF16));
    }
    kda_descriptor exact = make_kda(PLAIT_BACKWARD, PLAIT_F64);
    for (const tensor &t : exact.tensors()) CHECK(t.dtype == PLAIT_F64);
}

TEST_CASE("kda: a token that can be understood is answered with its canonical form") {
    struct {
        const char *token;
        const char *canonical;
    } const rows[] = {
        {"kda.fwd:f32:b02:t8:h1:k4:v4:gate=log", "kda.fwd:f32:b2:t8:h1:k4:v4:gate=log"},
        {"kda.fwd:f32:b2:t8:h1:hv1:k4:v4:gate=log", "kda.fwd:f32:b2:t8:h1:k4:v4:gate=log"},
        {"kda.fwd:f32:b2:t8:h1:k4:v4:gate=bounded.-5.0",
         "kda.fwd:f32:b2:t8:h1:k4:v4:gate=bounded.-5"},
        {"kda.fwd:f32:b2:t8:h1:k4:v4:gate=log:scale=0.5", "kda.fwd:f32:b2:t8:h1:k4:v4:gate=log"},
        {"kda.fwd:f32:b2:t8:h1:k4:v4:norm=1e-06:gate=log",
         "kda.fwd:f32:b2:t8:h1:k4:v4:gate=log:norm=1e-06"},
        {"kda.fwd:f32:b2:t8:h1:k4:v4:gate=log:norm=0.000001",
         "kda.fwd:f32:b2:t8:h1:k4:v4:gate=log:norm=1e-06"},
        {"kda.fwd:f32:b2:t8:h1:k4:v4:gate=softplus:+a_log",
         "kda.fwd:f32:b2:t8:h1:k4:v4:gate=softplus"},
        {"kda.fwd:f32:b2:t8:h1:k4:v4:gate=log:+reserve",
         "kda.fwd:f32:b2:t8:h1:k4:v4:gate=log:reserve=chunk64"},
        {"kda.bwd:f32:b1:t8:h1:k4:v4:gate=log:reserve=chunk64:seqs=2.8:reserve.a256",
         "kda.bwd:f32:b1:t8:h1:k4:v4:gate=log:seqs=2.8:reserve=chunk64"},
        {"kda.fwd:f32:b2:t8:h1:k4:v4:gate=log:q.bf16", "kda.fwd:bf16:b2:t8:h1:k4:v4:gate=log"},
    };
    for (const auto &r : rows) {
        expect_failure(PLAIT_ERR_INVALID_ARGUMENT,
                       text("plait_desc_from_token: token=\"", r.token,
                            "\" is not canonical; the canonical form is ", r.canonical),
                       [&] { descriptor_from_token(r.token); });
        CHECK(descriptor_from_token(r.canonical)->token() == r.canonical);
    }
}

TEST_CASE("kda: a token that makes no sense is refused at its place") {
    struct {
        const char *token;
        const char *sentence;
    } const rows[] = {
        {"kda:f32:b1:t1:h1:k1:v1", "token[0]=\"kda\" is no family"},
        {"kda.update:f32:b1:t1:h1:k1:v1", "token[0]=\"kda.update\" is no family"},
        {"kda.fwd:f32:b1:t1:h1:k1", "token[0]=\"kda.fwd\" ends early: type and sizes follow, "
                                    "kda.fwd:bf16:b1:t8192:h16:k128:v128"},
        {"kda.fwd:f8:b1:t1:h1:k1:v1", "token[8]=\"f8\" is no type"},
        {"kda.fwd:i32:b1:t1:h1:k1:v1", "token[8]=\"i32\" is refused: dtype=i32 is no type of q"},
        {"kda.fwd:f32:b1:h1:t1:k1:v1", "token[15]=\"h1\" is not t<number>"},
        {"kda.fwd:f32:b1:t1:h1:v1:k1", "token[21]=\"v1\" is not k<number>"},
        {"kda.fwd:f32:b1:t1:h2:hv3:k1:v1",
         "is refused: value_heads=3 is not a multiple of heads=2"},
        {"kda.fwd:f32:b1:t1:h2:hv4:k1", "ends early"},
        {"kda.fwd:f32:b1:t1:h1:k1:v", "is not v<number>"},
        {"kda.fwd:f32:b1:t1:h1:k1:v1:gate=hard",
         "is no gate: log, softplus or bounded.<lower bound>"},
        {"kda.fwd:f32:b1:t1:h1:k1:v1:gate=bounded.5", "is refused: lower_bound=5 is not finite"},
        {"kda.fwd:f32:b1:t1:h1:k1:v1:gate=bounded.", "is no double precision number"},
        {"kda.fwd:f32:b1:t1:h1:k1:v1:gate=log:gate=log", "is a second option of one kind"},
        {"kda.fwd:f32:b1:t1:h1:k1:v1:beta=2", "is not logit.<scale>"},
        {"kda.fwd:f32:b1:t1:h1:k1:v1:beta=logit.0", "is refused: scale=0 is not finite and above"},
        {"kda.fwd:f32:b1:t1:h1:k1:v1:norm=0", "is refused: eps=0 is not finite and above 0"},
        {"kda.fwd:f32:b1:t1:h1:k1:v1:state=kk", "is no orientation of states: kv or vk"},
        {"kda.fwd:f32:b1:t1:h1:k1:v1:seqs=3", "is not two numbers with a dot between them"},
        {"kda.fwd:f32:b1:t1:h1:k1:v1:slots=3.99999999999", "has a pad slot beyond 32 bits"},
        {"kda.fwd:f32:b1:t1:h1:k1:v1:reserve=chunk16", "is no layout of a reserve: chunk64"},
        {"kda.fwd:f32:b1:t1:h1:k1:v1:reserve=chunk64:reserve=chunk64",
         "is a second option of one kind"},
        {"kda.fwd:f32:b1:t1:h1:k1:v1:reserve=chunk64:reserve.f32",
         "is refused: dtype=f32 is no type of reserve; possible: i8"},
        {"kda.fwd:f32:b1:t1:h1:k1:v1:silu", "is no option or role of kda.fwd"},
        {"kda.fwd:f32:b1:t1:h1:k1:v1:+bias", "is refused: role=bias is no role of kda.fwd"},
    };
    for (const auto &r : rows) {
        INFO(r.token);
        expect_failure(PLAIT_ERR_INVALID_ARGUMENT, r.sentence,
                       [&] { descriptor_from_token(r.token); });
    }
}

TEST_CASE("kda: views are the tensors, whatever the orientation of states") {
    dice d(test_seed() + 18);
    int seen = 0;
    for (int i = 0; i < rounds(8000); ++i) {
        const kda_descriptor desc = any_kda(d);
        if (!outcome(desc).empty()) continue;
        const std::string token = desc.token();
        INFO(token);
        const problem made = make_problem(desc);
        const kda_problem &p = made.kda();
        const bool value_first = token.find(":state=vk") != token.npos;
        bool writes = false, wide = false;
        for (const tensor &t : made.tensors) {
            INFO(role_name(t.role));
            writes = writes || ((t.access & PLAIT_WRITE) && t.elements() > 0);
            wide = wide || t.dtype == PLAIT_F64;
            const std::vector<int64_t> &s = t.strides;
            const auto type = static_cast<int64_t>(t.dtype);
            if (const kda_state_view *v = state_of(p, t.role)) {
                CHECK(numbers(*v) == std::vector<int64_t>{type, t.alignment, s[0], s[1],
                                                          s[value_first ? 3 : 2],
                                                          s[value_first ? 2 : 3]});
                CHECK(t.extents[value_first ? 3 : 2] == p.dim_k);
                CHECK(t.extents[value_first ? 2 : 3] == p.dim_v);
            } else if (const kda_view *view = view_of(p, t.role)) {
                std::vector<int64_t> want = {type, t.alignment, 0, 0, 0, 0};
                if (s.size() == 1) want[4] = s[0];
                if (s.size() == 2) want[4] = s[0], want[5] = s[1];
                for (size_t a = 0; s.size() > 2 && a < s.size(); ++a) want[2 + a] = s[a];
                CHECK(numbers(*view) == want);
            }
            ++seen;
        }
        CHECK(made.empty == !writes);
        CHECK((p.accumulator == scalar::f64) == wide);
        CHECK(p.group() * p.heads == p.value_heads);
        CHECK(p.longest() <= p.length);
    }
    CHECK(seen > rounds(500));
}
