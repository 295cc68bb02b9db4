// Contradictions of convolutions (INVALID_DESC), and the tensors of those without any.
#include "tests/unit/conv1d_support.h"

using namespace unit;

TEST_CASE("conv1d: every contradiction has its sentence") {
    struct {
        const char *token;
        const char *sentence;
    } const rows[] = {
        // states
        {"conv1d.fwd:f32:b1:c4:t8:k4:state=lin.2",
         "entries=2 of the state are fewer than the width-1=3 samples that taps reach back "
         "(plait_conv1d_set_state)"},
        {"conv1d.update:f32:b1:c4:t1:k4:state=ring.2", "entries=2 of the state are fewer"},
        {"conv1d.fwd:f32:b1:c4:t8:k4:state=ring.4",
         "a ring state is for updates, and this is conv1d.fwd (plait_conv1d_set_state)"},
        {"conv1d.bwd:f32:b1:c4:t8:k4:state=ring.4", "and this is conv1d.bwd"},
        {"conv1d.update:f32:b1:c4:t1:k1:state=ring.0", "entries=0 make no ring"},
        {"conv1d.bwd:f32:b1:c4:t8:k4:slots=4.-1:+state_in",
         "slots are for forward and update, and this is conv1d.bwd (plait_desc_set_slots)"},
        {"conv1d.fwd:f32:b1:c4:t8:k4:slots=4.-1",
         "slots hold states, and neither state_in nor state_out is in use"},
        // sequences
        {"conv1d.update:f32:b1:c4:t8:k4:seqs=2.8",
         "packed sequences are not for updates (plait_desc_set_varlen)"},
        {"conv1d.fwd:f32:b2:c4:t8:k4:seqs=2.8",
         "batch=2 does not go with packed sequences, which need batch=1"},
        {"conv1d.fwd:f32:b0:c4:t8:k4:seqs=2.8", "batch=0 does not go with packed sequences"},
        {"conv1d.fwd:f32:b1:c4:t8:k4:seqs=9223372036854775807.8",
         "sequences=9223372036854775807: their offsets are beyond 64 bits"},
        {"conv1d.fwd:f32:b1:c4:t8:k4:seqs=2.8:+seq_idx",
         "role=seq_idx does not go with packed sequences"},
        {"conv1d.fwd:f32:b1:c4:t8:k4:seqs=2.8:cu_seqlens.s2",
         "cu_seqlens: strides[0]=2; numbers of rows and sequences lie side by side, stride 1"},
        {"conv1d.fwd:f32:b1:c4:t8:k4:slots=4.-1:+state_in:slots.s0", "slots: strides[0]=0"},
        {"conv1d.update:f32:b1:c4:t1:k4:state=ring.3:position.s2", "position: strides[0]=2"},
        {"conv1d.fwd:f32:b1:c4:t8:k4:+status",
         "role=status reports on offsets and slots, and the call has neither"},
        // gradients and roles that are not in use
        {"conv1d.bwd:f32:b1:c4:t8:k4:+dbias",
         "role=dbias is in use, but bias, whose gradient it is, is not (plait_desc_use)"},
        {"conv1d.bwd:f32:b1:c4:t8:k4:+dstate_in", "role=dstate_in is in use, but state_in"},
        {"conv1d.bwd:f32:b1:c4:t8:k4:+dstate_out", "role=dstate_out is in use, but state_out"},
        {"conv1d.fwd:f32:b1:c4:t8:k4:bias.f64", "role=bias has a type but is not in use"},
        {"conv1d.fwd:f32:b1:c4:t8:k4:state_in.s12.3.2", "role=state_in has strides but is not"},
        {"conv1d.bwd:f32:b1:c4:t8:k4:-dx:dx.a32", "role=dx has an alignment but is not in use"},
        {"conv1d.fwd:f32:b1:c4:t8:k4:cu_seqlens.i32", "role=cu_seqlens has a type but is not"},
        // strides, alignments, aliases
        {"conv1d.fwd:f32:b1:c4:t8:k4:y.s32.0.1", "y: strides[1]=0 is for tensors that are only"},
        {"conv1d.fwd:f32:b2:c4:t8:k4:y.s32.4.1", "y: strides[1]=4 does not nest: the axes inside"},
        {"conv1d.update:f32:b2:c4:t1:k4:state.s12.2.1", "state: strides[1]=2 does not nest"},
        {"conv1d.bwd:f32:b2:c4:t8:k4:dw.s0.1",
         "dw: strides[0]=0 is for tensors that are only read"},
        {"conv1d.fwd:f32:b1:c4:t8:k4:x.a2", "x: alignment=2 is less than f32 needs: 4"},
        {"conv1d.fwd:f32:b1:c4:t8:k4:seqs=2.8:cu_seqlens.a4", "cu_seqlens: alignment=4 is less"},
        {"conv1d.fwd:f32:b1:c4:t8:k4:+state_in+state_out:state_out.f64@state_in",
         "alias=state_out@state_in needs equal element sizes: state_out is f64, state_in is f32"},
        {"conv1d.fwd:f32:b2:c4:t8:k4:+state_in+state_out:state_out.s24.3.1@state_in",
         "alias=state_out@state_in needs equal strides: strides[0] is 24 and 12"},
        // sizes
        {"conv1d.fwd:f32:b4611686018427387904:c2:t1:k1", "beyond 64 bits"},
        {"conv1d.fwd:f32:b1:c2:t8:k9223372036854775807", "w: extents: the number of elements"},
        {"conv1d.fwd:f64:b1:c1:t1152921504606846976:k1",
         "x: 1152921504606846976 elements of f64 are more bytes than 64 bits count"},
        {"conv1d.fwd:f32:b2:c1:t2:k1:x.s9223372036854775807.1.1",
         "x: strides: the last element lies beyond 64 bits"},
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

TEST_CASE("conv1d: what looks odd and is legal") {
    for (const char *token : {
             "conv1d.fwd:f32:b0:c4:t8:k4", "conv1d.fwd:f32:b1:c0:t8:k4",
             "conv1d.fwd:f32:b1:c4:t0:k4:+state_in+state_out",
             "conv1d.fwd:f32:b1:c4:t2:k99",           // wider than the row
             "conv1d.fwd:f32:b1:c4:t8:k1:+state_in",  // a state without entries
             "conv1d.fwd:f32:b1:c4:t8:k4:seqs=0.0",   // no sequences: all is spare
             "conv1d.fwd:f32:b1:c4:t8:k4:seqs=3.100", // longer than the capacity: no matter
             "conv1d.fwd:f32:b1:c4:t8:k4:slots=0.0:+state_in",
             "conv1d.fwd:f32:b2:c4:t8:k4:x.s0.0.0",  // read-only: one element everywhere
             "conv1d.fwd:f32:b2:c4:t8:k4:x.s8.1.1",  // windows
             "conv1d.fwd:f32:b1:c4:t8:k4:y.s0.8.1",  // a batch of one has no stride
             "conv1d.bwd:f32:b1:c4:t8:k4:-dx-dw",    // nothing to write
             "conv1d.bwd:f32:b1:c4:t8:k4:dy.s0.0.0", //
             "conv1d.fwd:f16:b1:c4:t8:k4:+state_in+state_out:state_out.bf16@state_in",
             "conv1d.update:f32:b1:c4:t8:k1:state=ring.1", "conv1d.update:f32:b1:c4:t8:k1",
             "conv1d.update:bf16:b1:c4:t9:k4:state=ring.3", // more samples than entries
         }) {
        INFO(token);
        CHECK_NOTHROW(descriptor_from_token(token)->check());
    }
}

TEST_CASE("conv1d: tensors are listed as execute expects them") {
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
        {"conv1d.fwd:bf16:b2:t8:c4:k3:+bias+state_in+state_out+seq_idx:w.f32:state_out@state_in",
         {{PLAIT_X, PLAIT_READ, PLAIT_BF16, {2, 8, 4}, {32, 4, 1}, 16},
          {PLAIT_Y, PLAIT_WRITE, PLAIT_BF16, {2, 8, 4}, {32, 4, 1}, 16},
          {PLAIT_W, PLAIT_READ, PLAIT_F32, {4, 3}, {3, 1}, 16},
          {PLAIT_BIAS, PLAIT_READ, PLAIT_BF16, {4}, {1}, 16},
          {PLAIT_STATE_IN, PLAIT_READ, PLAIT_BF16, {2, 2, 4}, {8, 4, 1}, 16},
          {PLAIT_STATE_OUT, PLAIT_WRITE, PLAIT_BF16, {2, 2, 4}, {8, 4, 1}, 16},
          {PLAIT_SEQ_IDX, PLAIT_READ, PLAIT_I32, {2, 8}, {8, 1}, 4}}},
        {"conv1d.fwd:f32:b1:c4:t8:k3:seqs=5.8:slots=9.-1:+state_out+status",
         {{PLAIT_X, PLAIT_READ, PLAIT_F32, {1, 4, 8}, {32, 8, 1}, 16},
          {PLAIT_Y, PLAIT_WRITE, PLAIT_F32, {1, 4, 8}, {32, 8, 1}, 16},
          {PLAIT_W, PLAIT_READ, PLAIT_F32, {4, 3}, {3, 1}, 16},
          {PLAIT_STATE_OUT, PLAIT_WRITE, PLAIT_F32, {9, 4, 2}, {8, 2, 1}, 16},
          {PLAIT_SLOTS, PLAIT_READ, PLAIT_I32, {5}, {1}, 4},
          {PLAIT_CU_SEQLENS, PLAIT_READ, PLAIT_I64, {6}, {1}, 8},
          {PLAIT_STATUS, PLAIT_WRITE, PLAIT_I32, {1}, {1}, 4}}},
        {"conv1d.bwd:bf16:b2:c4:t8:k3:+bias+state_in+state_out-dstate_in:w.f32:dx.s64.16.2",
         {{PLAIT_X, PLAIT_READ, PLAIT_BF16, {2, 4, 8}, {32, 8, 1}, 16},
          {PLAIT_W, PLAIT_READ, PLAIT_F32, {4, 3}, {3, 1}, 16},
          {PLAIT_BIAS, PLAIT_READ, PLAIT_BF16, {4}, {1}, 16},
          {PLAIT_STATE_IN, PLAIT_READ, PLAIT_BF16, {2, 4, 2}, {8, 2, 1}, 16},
          {PLAIT_DX, PLAIT_WRITE, PLAIT_BF16, {2, 4, 8}, {64, 16, 2}, 16},
          {PLAIT_DY, PLAIT_READ, PLAIT_BF16, {2, 4, 8}, {32, 8, 1}, 16},
          {PLAIT_DW, PLAIT_WRITE, PLAIT_F32, {4, 3}, {3, 1}, 16},
          {PLAIT_DBIAS, PLAIT_WRITE, PLAIT_BF16, {4}, {1}, 16},
          {PLAIT_DSTATE_OUT, PLAIT_READ, PLAIT_BF16, {2, 4, 2}, {8, 2, 1}, 16}}},
        {"conv1d.update:f16:b2:t1:c4:k3:state=ring.5:slots=7.0:+status:state.f32",
         {{PLAIT_X, PLAIT_READ, PLAIT_F16, {2, 1, 4}, {4, 4, 1}, 16},
          {PLAIT_Y, PLAIT_WRITE, PLAIT_F16, {2, 1, 4}, {4, 4, 1}, 16},
          {PLAIT_W, PLAIT_READ, PLAIT_F16, {4, 3}, {3, 1}, 16},
          {PLAIT_STATE, PLAIT_READ_WRITE, PLAIT_F32, {7, 5, 4}, {20, 4, 1}, 16},
          {PLAIT_POSITION, PLAIT_READ, PLAIT_I32, {2}, {1}, 4},
          {PLAIT_SLOTS, PLAIT_READ, PLAIT_I32, {2}, {1}, 4},
          {PLAIT_STATUS, PLAIT_WRITE, PLAIT_I32, {1}, {1}, 4}}},
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

TEST_CASE("conv1d: gradients come and go with the roles that they belong to") {
    conv1d_descriptor desc = make_conv1d(PLAIT_BACKWARD);
    CHECK(desc.tensors().size() == 5); // x w dx dy dw
    desc.use(PLAIT_BIAS, true);
    CHECK(desc.tensors().size() == 7);
    desc.use(PLAIT_STATE_OUT, true); // no argument itself, its gradient is
    CHECK(desc.tensors().size() == 8);
    desc.use(PLAIT_DBIAS, false);
    desc.use(PLAIT_BIAS, false);
    CHECK(desc.tensors().size() == 6);
    CHECK_NOTHROW(desc.check());
    desc.use(PLAIT_DW, false);
    desc.use(PLAIT_DW, true);
    CHECK(desc.tensors().size() == 6);
}
