// What a setter of Kimi Delta Attention refuses by itself: INVALID_ARGUMENT, with the public name.
#include "tests/unit/kda_support.h"

#include <cmath>
#include <functional>
#include <limits>

using namespace unit;

namespace {

template <class Enum> Enum unknown(int number) { return static_cast<Enum>(number); }

constexpr double inf = std::numeric_limits<double>::infinity();
const double nan_value = std::nan("");

struct row {
    std::function<void(kda_descriptor &)> call;
    const char *sentence;
};

void refuse_all(plait_direction direction, const std::vector<row> &rows) {
    for (const row &r : rows) {
        kda_descriptor desc = make_kda(direction);
        const std::string token = desc.token();
        expect_failure(PLAIT_ERR_INVALID_ARGUMENT, r.sentence, [&] { r.call(desc); });
        CHECK(desc.token() == token); // a refused call changes nothing
        CHECK_NOTHROW(desc.check());
    }
}

} // namespace

TEST_CASE("kda: the constructor refuses what no descriptor can have") {
    struct {
        plait_direction direction;
        plait_dtype dtype;
        int64_t batch, length, heads, value_heads, dim_k, dim_v;
        const char *sentence;
    } const rows[] = {
        {unknown<plait_direction>(3), PLAIT_F32, 1, 1, 1, 1, 1, 1, "dir=3 is no plait_direction"},
        {PLAIT_UPDATE, PLAIT_F32, 1, 1, 1, 1, 1, 1,
         "dir=PLAIT_UPDATE is not for kda; decoding is PLAIT_FORWARD of small length"},
        {PLAIT_FORWARD, unknown<plait_dtype>(31), 1, 1, 1, 1, 1, 1, "dtype=31 is no plait_dtype"},
        {PLAIT_BACKWARD, PLAIT_I32, 1, 1, 1, 1, 1, 1,
         "dtype=i32 is no type of q; possible: f16 bf16 f32 f64"},
        {PLAIT_FORWARD, PLAIT_F32, -1, 1, 1, 1, 1, 1, "batch=-1 is less than 0"},
        {PLAIT_FORWARD, PLAIT_F32, 1, -2, 1, 1, 1, 1, "length=-2 is less than 0"},
        {PLAIT_FORWARD, PLAIT_F32, 1, 1, -3, 1, 1, 1, "heads=-3 is less than 0"},
        {PLAIT_FORWARD, PLAIT_F32, 1, 1, 1, -4, 1, 1, "value_heads=-4 is less than 0"},
        {PLAIT_FORWARD, PLAIT_F32, 1, 1, 1, 1, -5, 1, "dim_k=-5 is less than 0"},
        {PLAIT_FORWARD, PLAIT_F32, 1, 1, 1, 1, 1, INT64_MIN, "dim_v=-9223372036854775808 is less"},
        {PLAIT_FORWARD, PLAIT_F32, 1, 1, 4, 6, 1, 1, "value_heads=6 is not a multiple of heads=4"},
        {PLAIT_FORWARD, PLAIT_F32, 1, 1, 4, 2, 1, 1, "value_heads=2 is not a multiple of heads=4"},
        {PLAIT_FORWARD, PLAIT_F32, 1, 1, 0, 2, 1, 1, "value_heads=2 is not a multiple of heads=0"},
    };
    for (const auto &r : rows)
        expect_failure(PLAIT_ERR_INVALID_ARGUMENT, std::string("plait_kda_create: ") + r.sentence,
                       [&] {
                           kda_descriptor(r.direction, r.dtype, r.batch, r.length, r.heads,
                                          r.value_heads, r.dim_k, r.dim_v);
                       });
}

TEST_CASE("kda: every setter refuses wrong arguments and names itself") {
    refuse_all(
        PLAIT_FORWARD,
        {
            {[](auto &d) { d.set_gate(unknown<plait_kda_gate>(3), 0); },
             "plait_kda_set_gate: gate=3 is no plait_kda_gate"},
            {[](auto &d) { d.set_gate(PLAIT_GATE_BOUNDED, 0); },
             "plait_kda_set_gate: lower_bound=0 is not finite and below 0, which "
             "PLAIT_GATE_BOUNDED needs"},
            {[](auto &d) { d.set_gate(PLAIT_GATE_BOUNDED, 5); }, "lower_bound=5 is not finite"},
            {[](auto &d) { d.set_gate(PLAIT_GATE_BOUNDED, -inf); }, "lower_bound=-inf is not"},
            {[](auto &d) { d.set_gate(PLAIT_GATE_BOUNDED, nan_value); }, "lower_bound=nan is not"},
            {[](auto &d) { d.set_gate(PLAIT_GATE_LOG, -5); },
             "plait_kda_set_gate: lower_bound=-5 is for PLAIT_GATE_BOUNDED alone; pass 0"},
            {[](auto &d) { d.set_gate(PLAIT_GATE_SOFTPLUS, nan_value); },
             "lower_bound=nan is for PLAIT_GATE_BOUNDED alone"},
            {[](auto &d) { d.set_beta(true, 0); },
             "plait_kda_set_beta: scale=0 is not finite and above 0"},
            {[](auto &d) { d.set_beta(true, -1); }, "plait_kda_set_beta: scale=-1 is not finite"},
            {[](auto &d) { d.set_beta(true, inf); }, "plait_kda_set_beta: scale=inf is not finite"},
            {[](auto &d) { d.set_beta(false, 2); },
             "plait_kda_set_beta: scale=2 is for logits alone; with is_logit=0 pass 1"},
            {[](auto &d) { d.set_qk_norm(true, 0); },
             "plait_kda_set_qk_norm: eps=0 is not finite and above 0"},
            {[](auto &d) { d.set_qk_norm(true, nan_value); }, "plait_kda_set_qk_norm: eps=nan"},
            {[](auto &d) { d.set_scale(inf); }, "plait_kda_set_scale: scale=inf is not finite"},
            {[](auto &d) { d.set_state(unknown<plait_state_layout>(0)); },
             "plait_kda_set_state: layout=0 is no plait_state_layout"},
            {[](auto &d) { d.set_varlen(-1, 4); },
             "plait_desc_set_varlen: sequences=-1 is negative"},
            {[](auto &d) { d.set_varlen(1, -4); },
             "plait_desc_set_varlen: max_length=-4 is negative"},
            {[](auto &d) { d.set_slots(int64_t{INT32_MAX} + 1, 0); },
             "plait_desc_set_slots: count=2147483648 is not between 0 and 2147483647"},
            {[](auto &d) { d.use(PLAIT_X, true); }, "plait_desc_use: role=x is no role of kda.fwd"},
            {[](auto &d) { d.use(PLAIT_SEQ_IDX, true); }, "role=seq_idx is no role of kda.fwd"},
            {[](auto &d) { d.use(PLAIT_DQ, true); }, "role=dq is no role of kda.fwd"},
            {[](auto &d) { d.use(PLAIT_BETA, false); },
             "plait_desc_use: role=beta is required and cannot be turned off"},
            {[](auto &d) { d.use(PLAIT_SLOTS, true); },
             "role=slots is turned on by another setter alone: plait_desc_set_slots"},
            {[](auto &d) { d.set_dtype(PLAIT_STATE_IN, PLAIT_F16); },
             "plait_desc_set_dtype: dtype=f16 is no type of state_in; possible: f64 f32 bf16"},
            {[](auto &d) { d.set_dtype(PLAIT_A_LOG, PLAIT_BF16); },
             "plait_desc_set_dtype: dtype=bf16 is no type of a_log; possible: f64 f32"},
            {[](auto &d) { d.set_dtype(PLAIT_G, PLAIT_I32); },
             "dtype=i32 is no type of g; possible: f64 f32 f16 bf16"},
            {[](auto &d) { unit::set_strides(d, PLAIT_BETA, {1}); },
             "plait_desc_set_strides: rank=1 is not the rank 3 of beta"},
            {[](auto &d) { d.set_alias(PLAIT_O, PLAIT_V); },
             "plait_desc_set_alias: out=o in=v is no pair of an output and an input that may share "
             "a pointer; these may: state_out@state_in"},
        });
    refuse_all(PLAIT_BACKWARD,
               {
                   {[](auto &d) { d.use(PLAIT_DO, false); }, "role=do is required"},
                   {[](auto &d) { d.use(PLAIT_SLOTS, true); }, "role=slots is no role of kda.bwd"},
                   {[](auto &d) { d.set_dtype(PLAIT_DSTATE_IN, PLAIT_F16); },
                    "dtype=f16 is no type of dstate_in; possible: f64 f32 bf16"},
               });
}

TEST_CASE("kda: a_log follows the gate until plait_desc_use says otherwise") {
    kda_descriptor desc(PLAIT_BACKWARD, PLAIT_F32, 1, 8, 2, 2, 3, 5);
    const auto listed = [&](plait_role role) {
        for (const tensor &t : desc.tensors())
            if (t.role == role) return true;
        return false;
    };
    CHECK_FALSE(listed(PLAIT_A_LOG));
    desc.set_gate(PLAIT_GATE_BOUNDED, -5);
    CHECK(listed(PLAIT_A_LOG));
    CHECK(listed(PLAIT_DA_LOG));
    desc.use(PLAIT_A_LOG, false);
    CHECK_FALSE(listed(PLAIT_A_LOG));
    CHECK_FALSE(listed(PLAIT_DA_LOG));
    CHECK_NOTHROW(desc.check());
    CHECK(desc.token() == "kda.bwd:f32:b1:t8:h2:k3:v5:gate=bounded.-5:-a_log");
    desc.use(PLAIT_A_LOG, true);
    CHECK(desc.token() == "kda.bwd:f32:b1:t8:h2:k3:v5:gate=bounded.-5");
    desc.use(PLAIT_DA_LOG, false);
    CHECK_FALSE(listed(PLAIT_DA_LOG));
    CHECK(desc.token() == "kda.bwd:f32:b1:t8:h2:k3:v5:gate=bounded.-5:-da_log");
}
