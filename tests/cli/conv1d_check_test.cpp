// The judge of convolutions: what the library computes passes, one wrong element anywhere fails.
#include "src/cli/case/check.h"
#include "src/cli/case/conv1d_reference.h"
#include "src/cli/case/dtype.h"
#include "src/cli/case/inputs.h"

#include <cmath>
#include <cstring>
#include <doctest/doctest.h>
#include <limits>

using namespace plait::cases;

namespace {

using images = std::map<plait_role, std::vector<unsigned char>>;

/// A call with dense tensors on the host, computed by the library.
struct computed {
    explicit computed(const std::string &token)
        : desc(make_desc(token)), tensors(tensors_of(desc.get())),
          judge(make_checker(token, tensors)) {
        const token_parts parts = split_token(token);
        const context_ptr ctx = make_context(PLAIT_CPU, 0);
        const plan_ptr plan =
            make_plan(ctx.get(), desc.get(), make_pref(parts.family + ".cpu.ref").get());
        std::vector<plait_arg> args;
        for (const tensor &t : tensors) {
            std::vector<unsigned char> &image = before[t.role];
            image.assign(t.span_bytes() + 16, 0xff);
            if (t.reads()) input(parts, t, {3, false}).read(0, t.elements(), image.data());
        }
        after = before;
        for (const tensor &t : tensors) args.push_back({t.role, after[t.role].data()});
        size_t bytes = 0;
        check(plait_plan_workspace_size(plan.get(), &bytes));
        void *work = nullptr;
        check(plait_workspace_alloc(ctx.get(), bytes, nullptr, &work));
        check(plait_execute(plan.get(), args.data(), static_cast<int>(args.size()), work, bytes,
                            nullptr));
        plait_workspace_free(ctx.get(), work, bytes, nullptr);
    }
    check_result judged() const {
        const auto from = [](const images &all) {
            return [&all](const slice &s, void *packed) {
                gather(s, all.at(s.part.role).data(), packed);
            };
        };
        return judge->check(pick_parts(judge->parts(), judge->parts()), rounding::sums,
                            from(before), from(after));
    }
    /// The ratio with the last element of `role` moved by `by`.
    double off_by(plait_role role, double by) {
        const tensor &t = *find_tensor(tensors, role);
        std::vector<unsigned char> &image = after.at(role);
        const std::vector<unsigned char> right = image;
        unsigned char *last = image.data() + bytes_for(t.dtype, t.span() - 1);
        double value;
        to_double(t.dtype, last, 1, &value);
        value += by;
        from_double(t.dtype, &value, 1, last);
        const deviation d = judged().values;
        image = right;
        CHECK(d.worst == judge->parts() - 1);
        return d.ratio;
    }
    desc_ptr desc;
    std::vector<tensor> tensors;
    std::unique_ptr<checker> judge;
    images before, after;
};

} // namespace

TEST_CASE("the reference of a token") {
    const auto ref = [](const std::string &token, bool sizes, plait_dtype index) {
        return conv1d_reference(split_token(token), sizes, index).token(3);
    };
    const std::string token = "conv1d.bwd:bf16:b1:t90:c64:k4:silu:residual:seqs=5.40:+bias-dx:"
                              "x.s5760.64.1.a2:w.f32:cu_seqlens.i32";
    CHECK(ref(token, false, PLAIT_I32) ==
          "conv1d.bwd:f64:b1:c3:t90:k4:silu:residual:seqs=5.40:+bias-dx:cu_seqlens.i32");
    CHECK(ref(token, true, PLAIT_I64) == "conv1d.bwd:f64:b1:c3:t90:k4:residual:seqs=5.40:+bias-dx");
}

TEST_CASE("right passes, one wrong element fails: forward") {
    computed c("conv1d.fwd:f32:b2:c5:t40:k4:silu:+bias+state_in+state_out");
    const check_result right = c.judged();
    CHECK(right.values.ratio < 1);
    CHECK(right.values.compared == 5);
    CHECK(right.values.error < 1e-7);
    CHECK(right.values.bound < 1e-5);
    CHECK(c.off_by(PLAIT_Y, 1e-4) > 1);
    CHECK(c.off_by(PLAIT_STATE_OUT, 1e-6) > 1); // states are copies: exact
    CHECK(c.off_by(PLAIT_Y, std::nan("")) == std::numeric_limits<double>::infinity());
    CHECK(c.off_by(PLAIT_Y, std::numeric_limits<double>::infinity()) ==
          std::numeric_limits<double>::infinity());
}

TEST_CASE("right passes, one wrong element fails: gradients") {
    computed c("conv1d.bwd:f32:b2:t40:c5:k4:silu:+bias+state_in+state_out");
    CHECK(c.judged().values.ratio < 1);
    CHECK(c.off_by(PLAIT_DX, 1e-4) > 1);
    CHECK(c.off_by(PLAIT_DW, 1e-2) > 1);
    CHECK(c.off_by(PLAIT_DBIAS, 1e-2) > 1);
    CHECK(c.off_by(PLAIT_DSTATE_IN, 1e-4) > 1);
}

TEST_CASE("right passes, one wrong element fails: 16 bits, updates, padding") {
    computed c("conv1d.update:bf16:b3:c4:t1:k4:state=ring.5:slots=6.-1:+bias");
    CHECK(c.judged().values.ratio <= 1);
    CHECK(c.off_by(PLAIT_Y, 0.25) > 1);
    CHECK(c.off_by(PLAIT_STATE, 0.25) > 1); // whether a row uses the last slot or not
    computed padded("conv1d.fwd:f16:b2:c3:t64:k4:+bias+seq_idx");
    CHECK(padded.judged().values.ratio <= 1);
    std::vector<unsigned char> &ids = padded.before.at(PLAIT_SEQ_IDX);
    const int32_t other = 77;
    std::memcpy(ids.data() + bytes_for(PLAIT_I32, 2 * 64 - 1), &other, sizeof other);
    CHECK(padded.judged().values.ratio > 1); // the last token now sees no other
}

TEST_CASE("status") {
    computed c("conv1d.fwd:f32:b1:c2:t30:k2:seqs=3.20:+status");
    CHECK(c.judged().wrong == "");
    c.after.at(PLAIT_STATUS)[0] = 2;
    CHECK(c.judged().wrong == "status is 2, it should be 0");
}
