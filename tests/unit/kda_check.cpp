// Contradictions of Kimi Delta Attention (INVALID_DESC), and the tensors of those without any.
#include "lib/common/kda_reserve.h"
#include "src/desc/problem.h"
#include "tests/unit/kda_support.h"

using namespace unit;

TEST_CASE("kda: every contradiction has its sentence") {
    struct {
        const char *token;
        const char *sentence;
    } const rows[] = {
        // gates
        {"kda.fwd:f32:b1:t8:h1:k4:v4",
         "the gate is not set; log, softplus and bounded are different functions, and none is the "
         "default (plait_kda_set_gate)"},
        {"kda.fwd:f32:b1:t8:h1:k4:v4:gate=softplus:-a_log",
         "role=a_log is off, and gate=softplus needs it; gate=bounded alone may drop it"},
        {"kda.fwd:f32:b1:t8:h1:k4:v4:gate=log:+a_log",
         "role=a_log is in use, but gate=log takes g as it is (plait_kda_set_gate)"},
        {"kda.bwd:f32:b1:t8:h1:k4:v4:gate=log:+dt_bias", "role=dt_bias is in use, but gate=log"},
        {"kda.fwd:f32:b1:t8:h1:k4:v4:gate=log:a_log.f64",
         "role=a_log has a type but is not in use"},
        // states
        {"kda.fwd:f32:b1:t8:h1:k4:v4:gate=log:+state_in",
         "role=state_in is in use, and the orientation of states is not set: kv or vk, there is no "
         "default (plait_kda_set_state)"},
        {"kda.bwd:f32:b1:t8:h1:k4:v4:gate=log:+state_out",
         "role=state_out is in use, and the orientation"},
        {"kda.bwd:f32:b1:t8:h1:k4:v4:gate=log:state=kv:slots=4.-1:+state_in",
         "slots are for forward, and this is kda.bwd (plait_desc_set_slots)"},
        {"kda.fwd:f32:b1:t8:h1:k4:v4:gate=log:slots=4.-1",
         "slots hold states, and neither state_in nor state_out is in use"},
        // sequences
        {"kda.fwd:f32:b2:t8:h1:k4:v4:gate=log:seqs=2.8",
         "batch=2 does not go with packed sequences, which need batch=1"},
        {"kda.fwd:f32:b1:t8:h1:k4:v4:gate=log:seqs=9223372036854775807.8",
         "sequences=9223372036854775807: their offsets are beyond 64 bits"},
        {"kda.fwd:f32:b1:t8:h1:k4:v4:gate=log:seqs=2.8:cu_seqlens.s2",
         "cu_seqlens: strides[0]=2; numbers of sequences lie side by side, stride 1"},
        {"kda.fwd:f32:b1:t8:h1:k4:v4:gate=log:+status",
         "role=status reports on offsets and slots, and the call has neither"},
        {"kda.bwd:f32:b1:t8:h1:k4:v4:gate=log:+status",
         "nor a reserve that it reads (plait_desc_use)"},
        {"kda.fwd:f32:b1:t8:h1:k4:v4:gate=log:reserve=chunk64:+status",
         "nor a reserve that it reads"},
        // reserve
        {"kda.fwd:f32:b1:t8:h1:k4:v4:gate=log:state=kv:slots=4.-1:reserve=chunk64:+state_in",
         "role=reserve is for a backward, which has no slots (plait_desc_set_slots)"},
        {"kda.fwd:f32:b1:t8:h1:k4:v4:gate=log:reserve=chunk64:reserve.s2",
         "reserve: strides[0]=2; its bytes lie side by side, stride 1"},
        {"kda.bwd:f32:b1:t8:h1:k4:v4:gate=log:reserve=chunk64:reserve.a128",
         "reserve: alignment=128 is less than 256, PLAIT_WORKSPACE_ALIGNMENT"},
        {"kda.fwd:f32:b1:t8:h1:k4:v4:gate=log:reserve.a512",
         "role=reserve has an alignment but is not in use"},
        // gradients
        {"kda.bwd:f32:b1:t8:h1:k4:v4:gate=log:+da_log",
         "role=da_log is in use, but a_log, whose gradient it is, is not (plait_desc_use)"},
        {"kda.bwd:f32:b1:t8:h1:k4:v4:gate=log:+dstate_in",
         "role=dstate_in is in use, but state_in"},
        // strides, alignments, aliases, sizes
        {"kda.fwd:f32:b1:t8:h1:k4:v4:gate=log:o.s32.0.4.1", "o: strides[1]=0 is for tensors that"},
        {"kda.bwd:f32:b1:t8:h2:k4:v4:gate=log:dbeta.s16.2.2", "dbeta: strides[2]=2 does not nest"},
        {"kda.fwd:f32:b1:t8:h1:k4:v4:gate=log:q.a2", "q: alignment=2 is less than f32 needs: 4"},
        {"kda.fwd:f32:b1:t8:h1:k4:v6:gate=log:state=kv:+state_in+state_out:state_out.bf16@state_in",
         "alias=state_out@state_in needs equal element sizes: state_out is bf16, state_in is f32"},
        {"kda.fwd:f32:b4611686018427387904:t2:h1:k1:v1:gate=log", "beyond 64 bits"},
        {"kda.fwd:f64:b1:t1:h1:k1:v1152921504606846976:gate=log",
         "v: 1152921504606846976 elements of f64 are more bytes than 64 bits count"},
    };
    for (const auto &r : rows) {
        INFO(r.token);
        std::unique_ptr<descriptor> desc;
        REQUIRE_NOTHROW(desc = descriptor_from_token(r.token));
        CHECK(desc->token() == r.token);
        expect_failure(PLAIT_ERR_INVALID_DESC, "plait_desc_check: ", [&] { desc->check(); });
        expect_failure(PLAIT_ERR_INVALID_DESC, r.sentence, [&] { desc->check(); });
    }
}

TEST_CASE("kda: what looks odd and is legal") {
    for (const char *token : {
             "kda.fwd:f32:b0:t8:h1:k4:v4:gate=log",
             "kda.fwd:f32:b1:t0:h1:k4:v4:gate=log:state=kv:+state_in+state_out",
             "kda.fwd:f32:b1:t8:h0:k4:v4:gate=log",
             "kda.bwd:f32:b1:t8:h2:hv0:k4:v4:gate=log",
             "kda.fwd:f32:b1:t8:h1:k0:v4:gate=log",
             "kda.fwd:f32:b1:t8:h1:k4:v4:gate=log:state=vk", // said, and no state
             "kda.fwd:f32:b1:t8:h1:k4:v4:gate=log:seqs=0.0",
             "kda.fwd:f32:b1:t8:h1:k4:v4:gate=log:seqs=3.100",
             "kda.fwd:f32:b1:t8:h1:k4:v4:gate=bounded.-1000:-a_log+dt_bias",
             "kda.fwd:f32:b1:t8:h1:k4:v4:gate=log:scale=0",
             "kda.bwd:f32:b1:t8:h1:k4:v4:gate=log:-dq-dk-dv-dg-dbeta", // nothing to write
             "kda.bwd:f32:b1:t8:h1:k4:v4:gate=log:do.s0.0.0.0",
             "kda.bwd:f32:b1:t8:h1:k4:v4:gate=log:reserve=chunk64:+status:reserve.a4096",
             "kda.fwd:f32:b1:t0:h1:k4:v4:gate=log:seqs=0.0:reserve=chunk64",
         }) {
        INFO(token);
        CHECK_NOTHROW(descriptor_from_token(token)->check());
    }
}

TEST_CASE("kda: tensors are listed as execute expects them") {
    struct want {
        plait_role role;
        plait_access access;
        plait_dtype dtype;
        std::vector<int64_t> extents, strides;
        int alignment;
    };
    const struct {
        const char *token;
        std::vector<want> tensors;
    } rows[] = {
        {"kda.fwd:bf16:b1:t8:h2:hv4:k3:v5:gate=softplus:state=vk:seqs=6.8:slots=9.-1:"
         "+state_in+state_out+status:g.f32:state_out@state_in:cu_seqlens.i32",
         {{PLAIT_Q, PLAIT_READ, PLAIT_BF16, {1, 8, 2, 3}, {48, 6, 3, 1}, 16},
          {PLAIT_K, PLAIT_READ, PLAIT_BF16, {1, 8, 2, 3}, {48, 6, 3, 1}, 16},
          {PLAIT_V, PLAIT_READ, PLAIT_BF16, {1, 8, 4, 5}, {160, 20, 5, 1}, 16},
          {PLAIT_G, PLAIT_READ, PLAIT_F32, {1, 8, 4, 3}, {96, 12, 3, 1}, 16},
          {PLAIT_BETA, PLAIT_READ, PLAIT_BF16, {1, 8, 4}, {32, 4, 1}, 16},
          {PLAIT_O, PLAIT_WRITE, PLAIT_BF16, {1, 8, 4, 5}, {160, 20, 5, 1}, 16},
          {PLAIT_A_LOG, PLAIT_READ, PLAIT_F32, {4}, {1}, 16},
          {PLAIT_STATE_IN, PLAIT_READ, PLAIT_F32, {9, 4, 5, 3}, {60, 15, 3, 1}, 16},
          {PLAIT_STATE_OUT, PLAIT_WRITE, PLAIT_F32, {9, 4, 5, 3}, {60, 15, 3, 1}, 16},
          {PLAIT_SLOTS, PLAIT_READ, PLAIT_I32, {6}, {1}, 4},
          {PLAIT_CU_SEQLENS, PLAIT_READ, PLAIT_I32, {7}, {1}, 4},
          {PLAIT_STATUS, PLAIT_WRITE, PLAIT_I32, {1}, {1}, 4}}},
        // 70 tokens are two chunks; a record of 64 keys has more bytes than a state of 64 x 48.
        {"kda.fwd:bf16:b2:t70:h1:hv2:k64:v48:gate=log:reserve=chunk64",
         {{PLAIT_Q, PLAIT_READ, PLAIT_BF16, {2, 70, 1, 64}, {4480, 64, 64, 1}, 16},
          {PLAIT_K, PLAIT_READ, PLAIT_BF16, {2, 70, 1, 64}, {4480, 64, 64, 1}, 16},
          {PLAIT_V, PLAIT_READ, PLAIT_BF16, {2, 70, 2, 48}, {6720, 96, 48, 1}, 16},
          {PLAIT_G, PLAIT_READ, PLAIT_BF16, {2, 70, 2, 64}, {8960, 128, 64, 1}, 16},
          {PLAIT_BETA, PLAIT_READ, PLAIT_BF16, {2, 70, 2}, {140, 2, 1}, 16},
          {PLAIT_O, PLAIT_WRITE, PLAIT_BF16, {2, 70, 2, 48}, {6720, 96, 48, 1}, 16},
          {PLAIT_RESERVE, PLAIT_WRITE, PLAIT_I8, {256 + 2 * 2 * 2 * 41472}, {1}, 256}}},
        {"kda.bwd:f64:b2:t8:h2:k3:v5:gate=bounded.-5:state=kv:+dt_bias+state_in+state_out-dq",
         {{PLAIT_Q, PLAIT_READ, PLAIT_F64, {2, 8, 2, 3}, {48, 6, 3, 1}, 16},
          {PLAIT_K, PLAIT_READ, PLAIT_F64, {2, 8, 2, 3}, {48, 6, 3, 1}, 16},
          {PLAIT_V, PLAIT_READ, PLAIT_F64, {2, 8, 2, 5}, {80, 10, 5, 1}, 16},
          {PLAIT_G, PLAIT_READ, PLAIT_F64, {2, 8, 2, 3}, {48, 6, 3, 1}, 16},
          {PLAIT_BETA, PLAIT_READ, PLAIT_F64, {2, 8, 2}, {16, 2, 1}, 16},
          {PLAIT_A_LOG, PLAIT_READ, PLAIT_F64, {2}, {1}, 16},
          {PLAIT_DT_BIAS, PLAIT_READ, PLAIT_F64, {2, 3}, {3, 1}, 16},
          {PLAIT_STATE_IN, PLAIT_READ, PLAIT_F64, {2, 2, 3, 5}, {30, 15, 5, 1}, 16},
          {PLAIT_DK, PLAIT_WRITE, PLAIT_F64, {2, 8, 2, 3}, {48, 6, 3, 1}, 16},
          {PLAIT_DV, PLAIT_WRITE, PLAIT_F64, {2, 8, 2, 5}, {80, 10, 5, 1}, 16},
          {PLAIT_DG, PLAIT_WRITE, PLAIT_F64, {2, 8, 2, 3}, {48, 6, 3, 1}, 16},
          {PLAIT_DBETA, PLAIT_WRITE, PLAIT_F64, {2, 8, 2}, {16, 2, 1}, 16},
          {PLAIT_DO, PLAIT_READ, PLAIT_F64, {2, 8, 2, 5}, {80, 10, 5, 1}, 16},
          {PLAIT_DA_LOG, PLAIT_WRITE, PLAIT_F64, {2}, {1}, 16},
          {PLAIT_DDT_BIAS, PLAIT_WRITE, PLAIT_F64, {2, 3}, {3, 1}, 16},
          {PLAIT_DSTATE_IN, PLAIT_WRITE, PLAIT_F64, {2, 2, 3, 5}, {30, 15, 5, 1}, 16},
          {PLAIT_DSTATE_OUT, PLAIT_READ, PLAIT_F64, {2, 2, 3, 5}, {30, 15, 5, 1}, 16}}},
    };
    for (const auto &r : rows) {
        INFO(r.token);
        const auto desc = descriptor_from_token(r.token);
        desc->check();
        const std::vector<tensor> all = desc->tensors();
        REQUIRE(all.size() == r.tensors.size());
        for (size_t i = 0; i < all.size(); ++i) {
            const want &w = r.tensors[i];
            INFO(role_name(w.role));
            CHECK(all[i].role == w.role);
            CHECK(all[i].access == w.access);
            CHECK(all[i].dtype == w.dtype);
            CHECK(all[i].extents == w.extents);
            CHECK(all[i].strides == w.strides);
            CHECK(all[i].alignment == w.alignment);
        }
    }
}

TEST_CASE("kda: the size of a reserve follows from extents and types, and does not overflow") {
    const auto bytes = [](const std::string &token) {
        const auto desc = descriptor_from_token(token);
        desc->check();
        for (const tensor &t : desc->tensors())
            if (t.role == PLAIT_RESERVE) return t.span_bytes();
        return int64_t{-1};
    };
    // An entry: k+, kR, q+ of 64 x 128, M and A of 64 x 64 in 16 bits, gamma and beta in 32.
    const int64_t record = 2 * (3 * 64 * 128 + 2 * 64 * 64) + 4 * (128 + 64);
    // With many heads also S of 128 x 128 and u of 128 x 64.
    const int64_t kept = 2 * (128 * 128 + 128 * 64);
    CHECK(bytes("kda.fwd:bf16:b1:t8192:h96:k128:v128:gate=log:reserve=chunk64") ==
          256 + 128 * 96 * (record + kept));
    CHECK(bytes("kda.fwd:bf16:b1:t8192:h16:k128:v128:gate=log:reserve=chunk64") ==
          256 + 128 * 16 * record);
    CHECK(bytes("kda.bwd:f16:b1:t8192:h48:hv96:k128:v128:gate=log:reserve=chunk64:g.f32") ==
          256 + 128 * 96 * (record + kept));
    CHECK(bytes("kda.bwd:bf16:b1:t200:h2:k128:v128:gate=log:seqs=5.200:reserve=chunk64") ==
          256 + (3 + 5) * 2 * record);
    // States: f32, or f64 where an input is; whole multiples of 256.
    CHECK(bytes("kda.fwd:f32:b3:t65:h2:k64:v32:gate=log:reserve=chunk64") ==
          256 + 3 * 2 * 2 * 64 * 32 * 4);
    CHECK(bytes("kda.fwd:f64:b1:t64:h1:k3:v5:gate=log:reserve=chunk64") == 256 + 256);
    CHECK(bytes("kda.bwd:f32:b1:t64:h1:k16:v16:gate=log:reserve=chunk64:dq.f64") ==
          256 + 16 * 16 * 4);
    CHECK(bytes("kda.bwd:f32:b1:t64:h1:k16:v16:gate=softplus:reserve=chunk64:a_log.f64") ==
          256 + 16 * 16 * 8);
    CHECK(bytes("kda.fwd:bf16:b1:t1:h1:k256:v256:gate=log:reserve=chunk64") == 256 + 256 * 256 * 4);
    CHECK(bytes("kda.fwd:f32:b1:t0:h1:k4:v4:gate=log:reserve=chunk64") == 0);
    for (const char *token :
         {"kda.fwd:f32:b1:t4611686018427387904:h1:k1:v1:gate=log:reserve=chunk64",
          "kda.fwd:f32:b1:t1:h1:k1073741824:v1:gate=log:reserve=chunk64",
          "kda.fwd:f32:b1:t1:h4611686018427387904:k1:v1:gate=log:reserve=chunk64",
          "kda.fwd:f32:b1:t1:h1:k1:v1:gate=log:seqs=9223372036854775806.1:reserve=chunk64"})
        CHECK(descriptor_from_token(token)->tensors().size() > 0); // neither a trap nor a throw
}

TEST_CASE("kda: the header of a reserve is that of the problem, in both directions") {
    const auto key = [](const char *token) {
        return kda_reserve_header_of(make_problem(*descriptor_from_token(token)).kda(),
                                     kda_reserve_kind::states);
    };
    const char *const own = "kda.fwd:bf16:b1:t70:h2:k64:v48:gate=bounded.-5:state=vk:seqs=3.70:"
                            "reserve=chunk64:+state_in";
    // What a backward may say otherwise: gradients, orientation, places, STATUS, types of results.
    for (const char *same :
         {"kda.bwd:bf16:b1:t70:h2:k64:v48:gate=bounded.-5:state=vk:seqs=3.70:"
          "reserve=chunk64:+state_in",
          "kda.bwd:bf16:b1:t70:h2:k64:v48:gate=bounded.-5:state=kv:seqs=3.70:"
          "reserve=chunk64:+state_in+state_out+status-dq:q.s10240.144.72.1:o.f32:"
          "cu_seqlens.i32"})
        CHECK(key(own).same_as(key(same)));
    for (const char *other :
         {"kda.fwd:f16:b1:t70:h2:k64:v48:gate=bounded.-5:state=vk:seqs=3.70:reserve=chunk64:+state_"
          "in",
          "kda.bwd:bf16:b1:t71:h2:k64:v48:gate=bounded.-5:state=vk:seqs=3.70:reserve=chunk64:+"
          "state_in",
          "kda.bwd:bf16:b1:t70:h2:k48:v64:gate=bounded.-5:state=vk:seqs=3.70:reserve=chunk64:+"
          "state_in",
          "kda.bwd:bf16:b1:t70:h1:hv2:k64:v48:gate=bounded.-5:state=vk:seqs=3.70:reserve=chunk64:"
          "+state_in",
          "kda.bwd:bf16:b1:t70:h2:k64:v48:gate=softplus:state=vk:seqs=3.70:reserve=chunk64:+state_"
          "in",
          "kda.bwd:bf16:b1:t70:h2:k64:v48:gate=bounded.-4:state=vk:seqs=3.70:reserve=chunk64:+"
          "state_in",
          "kda.bwd:bf16:b1:t70:h2:k64:v48:gate=bounded.-5:beta=logit.1:state=vk:seqs=3.70:"
          "reserve=chunk64:+state_in",
          "kda.bwd:bf16:b1:t70:h2:k64:v48:gate=bounded.-5:norm=1e-06:state=vk:seqs=3.70:"
          "reserve=chunk64:+state_in",
          "kda.bwd:bf16:b1:t70:h2:k64:v48:gate=bounded.-5:scale=2:state=vk:seqs=3.70:reserve="
          "chunk64:"
          "+state_in",
          "kda.bwd:bf16:b1:t70:h2:k64:v48:gate=bounded.-5:seqs=3.70:reserve=chunk64",
          "kda.bwd:bf16:b1:t70:h2:k64:v48:gate=bounded.-5:state=vk:seqs=4.70:reserve=chunk64:+"
          "state_in",
          "kda.bwd:bf16:b1:t70:h2:k64:v48:gate=bounded.-5:state=vk:seqs=3.60:reserve=chunk64:+"
          "state_in",
          "kda.bwd:bf16:b1:t70:h2:k64:v48:gate=bounded.-5:state=vk:reserve=chunk64:+state_in",
          "kda.bwd:bf16:b1:t70:h2:k64:v48:gate=bounded.-5:state=vk:seqs=3.70:reserve=chunk64:"
          "-a_log+state_in",
          "kda.bwd:bf16:b1:t70:h2:k64:v48:gate=bounded.-5:state=vk:seqs=3.70:reserve=chunk64:"
          "+dt_bias+state_in",
          "kda.bwd:bf16:b1:t70:h2:k64:v48:gate=bounded.-5:state=vk:seqs=3.70:reserve=chunk64:"
          "+state_in:g.f32"}) {
        INFO(other);
        CHECK(!key(own).same_as(key(other)));
    }
    const kda_problem p = make_problem(*descriptor_from_token(own)).kda();
    CHECK(!key(own).same_as(kda_reserve_header_of(p, kda_reserve_kind::records)));
}
