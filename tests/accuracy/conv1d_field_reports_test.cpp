// Inputs that broke other libraries' causal convolutions, as users reported them: one test for each
// report that concerns this version. The number is the one of the project's list of reports.
//
// Not whole here, because the tensors take many GiB or the point is a device's own:
//   C3, C13, C25, C28  planned here at full size; the offsets beyond 2^31 run in C19 and C26
//   C4                 what this file does with any binary on any device
//   C24, C29           a captured graph: tests/gpu; here the pad rows, and the single launch
#include "tests/support/conv1d_check.h"

#include <cmath>
#include <cstring>

namespace plait::test {
namespace {

const plait_layout layouts[] = {PLAIT_BCT, PLAIT_BTC};

conv1d_call forward(plait_dtype type, plait_layout layout, int64_t batch, int64_t channels,
                    int64_t length, int64_t k, std::vector<plait_role> used = {}) {
    conv1d_call c = conv1d(PLAIT_FORWARD, type, batch, channels, length, k);
    c.layout = layout;
    c.used = std::move(used);
    return c;
}

void exactly(const conv1d_call &c) {
    rng random(config().seed);
    expect_exact(c, random);
}

void closely(conv1d_call c) {
    c.silu = true;
    rng random(config().seed);
    expect_close(c, random);
}

/// Planning alone, also of what no machine here could hold.
plan_ptr plan_on_h200(const conv1d_call &call) {
    const char *text = "plait-profile 1\nbackend cuda\nname test\ncopy_bandwidth 4.2e12\n"
                       "launch_seconds 2e-06\nmemory_bytes 150000000000\ncc_major 9\ncc_minor 0\n"
                       "sms 132\nsmem_per_block 232448\nsmem_per_sm 233472\nthreads_per_sm 2048\n"
                       "registers_per_sm 65536\nl2_bytes 62914560\nf32_per_second 6e13\n"
                       "f64_per_second 3e13\nbuilt 90\n";
    plait_context *raw = nullptr;
    REQUIRE_MESSAGE(plait_context_create_from_profile(&raw, text) == PLAIT_OK, plait_last_error());
    const context_ptr ctx(raw);
    plait_plan *plan = nullptr;
    REQUIRE_MESSAGE(plait_plan_create(&plan, ctx.get(), desc_of(call).get(), nullptr) == PLAIT_OK,
                    plait_last_error());
    return plan_ptr(plan);
}

size_t workspace_of(const plait_plan *plan) {
    size_t bytes = 0;
    REQUIRE(plait_plan_workspace_size(plan, &bytes) == PLAIT_OK);
    return bytes;
}

/// A tensor whose rows of `width` elements lie `pitch` bytes apart; what is between them is never
/// touched, so that tensors of many GiB cost the pages of their rows alone.
class sparse {
public:
    sparse(int64_t rows, int64_t row_bytes, int64_t pitch)
        : rows_(rows), row_(row_bytes), pitch_(pitch),
          block_(target().allocate(static_cast<size_t>((rows - 1) * pitch + row_bytes))) {}
    ~sparse() { target().release(block_); }
    sparse(const sparse &) = delete;
    sparse &operator=(const sparse &) = delete;
    void *data() const { return block_; }
    void put(const bytes &content) {
        for (int64_t r = 0; r < rows_; ++r)
            target().upload(static_cast<char *>(block_) + r * pitch_, content.data() + r * row_,
                            static_cast<size_t>(row_));
    }
    bytes get() const {
        bytes content(static_cast<size_t>(rows_ * row_));
        for (int64_t r = 0; r < rows_; ++r)
            target().download(content.data() + r * row_, static_cast<char *>(block_) + r * pitch_,
                              static_cast<size_t>(row_));
        return content;
    }

private:
    int64_t rows_, row_, pitch_;
    void *block_;
};

bytes image(plait_dtype type, const std::vector<double> &v) {
    bytes b(v.size() * static_cast<size_t>(bytes_of(type)));
    for (size_t i = 0; i < v.size(); ++i) store(type, b.data(), static_cast<int64_t>(i), v[i]);
    return b;
}

} // namespace

TEST_CASE("conv1d report C1: 65536 channels of 4 samples") {
    for (const plait_layout layout : layouts) exactly(forward(PLAIT_BF16, layout, 1, 65536, 4, 2));
    exactly(forward(PLAIT_F32, PLAIT_BCT, 65537, 1, 3, 2)); // and as many rows
}

TEST_CASE("conv1d report C2: ids with lengths around the tiles, no access past them") {
    for (const int64_t length : {63, 65, 127, 129, 257, 4099}) {
        // Of the 10240 channels reported, as many as the oracle can follow; all of them are
        // planned.
        const int64_t channels = on_device() && !config().small && length == 4099 ? 640 : 16;
        for (const plait_layout layout : layouts)
            closely(
                forward(PLAIT_BF16, layout, 1, channels, length, 4, {PLAIT_BIAS, PLAIT_SEQ_IDX}));
    }
}

TEST_CASE("conv1d report C3, C13, C25, C28: sizes beyond 32 bits plan, without a copy of x") {
    conv1d_call big = forward(PLAIT_BF16, PLAIT_BCT, 8, 4096, 262144, 4); // 2^33 elements
    CHECK(workspace_of(plan_on_h200(big).get()) < size_t{1} << 20);
    conv1d_call wide = forward(PLAIT_BF16, PLAIT_BTC, 1, 4096, 4177992, 4);
    CHECK(workspace_of(plan_on_h200(wide).get()) < size_t{1} << 20);
    conv1d_call ids = forward(PLAIT_BF16, PLAIT_BTC, 1, 10240, 4099, 4, {PLAIT_SEQ_IDX}); // C2
    CHECK(workspace_of(plan_on_h200(ids).get()) < size_t{1} << 20);
    conv1d_call view = forward(PLAIT_BF16, PLAIT_BTC, 1, 64, 4096, 4);
    view.strides[PLAIT_X] = {int64_t{1} << 34, int64_t{1} << 22, 1};
    CHECK(workspace_of(plan_on_h200(view).get()) < size_t{1} << 20);
    conv1d_call slice_of = forward(PLAIT_BF16, PLAIT_BTC, 1, 6144, 16384, 4);
    slice_of.strides[PLAIT_X] = {16384 * 12304, 12304, 1};
    CHECK(workspace_of(plan_on_h200(slice_of).get()) < size_t{1} << 20);
    conv1d_call back = slice_of;
    back.direction = PLAIT_BACKWARD;
    CHECK(workspace_of(plan_on_h200(back).get()) < size_t{16384} * 6144);
}

TEST_CASE("conv1d report C4, C17: lengths 32, 1025 and 1026 with 64 channels, no state") {
    for (const plait_layout layout : layouts) {
        closely(forward(PLAIT_BF16, layout, 1, 64, 32, 4));
        for (const int64_t length : {1025, 1026})
            closely(forward(PLAIT_BF16, layout, 1, 64, length, 4));
    }
}

TEST_CASE("conv1d report C5: a device that the build has no kernels for is refused when planning") {
    const char *text = "plait-profile 1\nbackend cuda\nname test\ncopy_bandwidth 1e12\n"
                       "launch_seconds 2e-06\nmemory_bytes 25769803776\ncc_major 9\ncc_minor 0\n"
                       "sms 24\nsmem_per_block 101376\nsmem_per_sm 102400\nthreads_per_sm 1536\n"
                       "registers_per_sm 65536\nl2_bytes 25165824\nf32_per_second 7e12\n"
                       "f64_per_second 1e11\nbuilt 100\n";
    plait_context *raw = nullptr;
    REQUIRE_MESSAGE(plait_context_create_from_profile(&raw, text) == PLAIT_OK, plait_last_error());
    const context_ptr ctx(raw);
    for (const plait_direction direction : {PLAIT_FORWARD, PLAIT_BACKWARD, PLAIT_UPDATE}) {
        const desc_ptr desc = desc_of(conv1d(direction, PLAIT_BF16, 1, 64, 8, 4));
        plait_plan *plan = nullptr;
        CHECK(plait_plan_create(&plan, ctx.get(), desc.get(), nullptr) == PLAIT_ERR_NOT_SUPPORTED);
        CHECK(std::string(plait_last_error()).find("kernels from") != std::string::npos);
    }
}

TEST_CASE("conv1d report C6, C40: ids together with states, forward and backward") {
    for (const plait_layout layout : layouts)
        for (const plait_direction direction : {PLAIT_FORWARD, PLAIT_BACKWARD}) {
            conv1d_call c = forward(PLAIT_F32, layout, 3, 6, 90, 4,
                                    {PLAIT_BIAS, PLAIT_STATE_IN, PLAIT_STATE_OUT, PLAIT_SEQ_IDX});
            c.direction = direction;
            exactly(c);
            closely(c);
        }
}

TEST_CASE("conv1d report C7: dw and dbias of two runs are equal to the bit") {
    for (const plait_layout layout : layouts) {
        conv1d_call c = forward(PLAIT_BF16, layout, 4, 24, 700, 4, {PLAIT_BIAS});
        c.direction = PLAIT_BACKWARD;
        c.types[PLAIT_W] = c.types[PLAIT_BIAS] = PLAIT_F32;
        c.silu = true;
        rng random(config().seed);
        const conv1d_inputs in = random_inputs(c, conv1d_filling::uniform, random);
        for_each_candidate(c, [&](const candidate &by) {
            const conv1d_outcome once = result_of(c, in, by);
            for (int i = 0; i < 3; ++i) CHECK(difference(once, result_of(c, in, by)) == "");
        });
    }
}

TEST_CASE("conv1d report C8, C9, C38: every width is itself") {
    for (const plait_layout layout : layouts)
        for (const int64_t k : {5, 6, 7, 8, 9, 16, 33, 138, 255, 256})
            for (const plait_direction direction : {PLAIT_FORWARD, PLAIT_BACKWARD, PLAIT_UPDATE}) {
                conv1d_call c = forward(PLAIT_BF16, layout, 1, 9,
                                        direction == PLAIT_UPDATE ? 2 : 300, k, {PLAIT_BIAS});
                c.direction = direction;
                for (const plait_role role : floating_roles(c)) // exact results need the room
                    if (role == PLAIT_Y || role >= PLAIT_DX) c.types[role] = PLAIT_F32;
                exactly(c);
            }
}

TEST_CASE("conv1d report C10: f64") {
    for (const plait_layout layout : layouts)
        for (const plait_direction direction : {PLAIT_FORWARD, PLAIT_BACKWARD, PLAIT_UPDATE}) {
            conv1d_call c = forward(PLAIT_F64, layout, 2, 5, 40, 4, {PLAIT_BIAS});
            c.direction = direction;
            closely(c);
        }
}

TEST_CASE("conv1d report C11: the descriptor says the extents of every tensor") {
    const desc_ptr desc =
        desc_of(forward(PLAIT_BF16, PLAIT_BTC, 2, 48, 100, 4, {PLAIT_STATE_IN, PLAIT_STATE_OUT}));
    int count = 0;
    REQUIRE(plait_desc_num_tensors(desc.get(), &count) == PLAIT_OK);
    CHECK(count == 5);
    for (int i = 0; i < count; ++i) {
        plait_role role;
        int rank = 0;
        int64_t e[PLAIT_MAX_RANK];
        REQUIRE(plait_desc_tensor(desc.get(), i, &role, nullptr, nullptr, &rank, e, nullptr) ==
                PLAIT_OK);
        const std::vector<int64_t> got(e, e + rank);
        if (role == PLAIT_W) CHECK(got == std::vector<int64_t>{48, 4});
        if (role == PLAIT_X || role == PLAIT_Y) CHECK(got == std::vector<int64_t>{2, 100, 48});
        if (role == PLAIT_STATE_IN || role == PLAIT_STATE_OUT)
            CHECK(got == std::vector<int64_t>{2, 3, 48});
    }
}

TEST_CASE("conv1d report C12, C45: any pitch and any base, the same result") {
    for (const int64_t pitch : {72, 67, 64 + 128 + 1})
        for (const int64_t shift : {0, 1, 3}) {
            conv1d_call btc = forward(PLAIT_BF16, PLAIT_BTC, 2, 64, 40, 4, {PLAIT_BIAS});
            btc.strides[PLAIT_X] = {40 * pitch, pitch, 1};
            btc.offsets[PLAIT_X] = shift;
            exactly(btc);
            conv1d_call bct = forward(PLAIT_BF16, PLAIT_BCT, 2, 5, 64, 4, {PLAIT_BIAS});
            bct.strides[PLAIT_X] = {5 * pitch, pitch, 1};
            bct.offsets[PLAIT_X] = shift;
            exactly(bct);
        }
}

TEST_CASE("conv1d report C14, C22: prompts shorter than the width") {
    for (const plait_layout layout : layouts)
        for (int64_t length = 0; length <= 4; ++length) {
            exactly(forward(PLAIT_F32, layout, 2, 3, length, 4, {PLAIT_STATE_OUT}));
            exactly(forward(PLAIT_F32, layout, 2, 3, length, 4, {PLAIT_STATE_IN, PLAIT_STATE_OUT}));
            conv1d_call pool =
                forward(PLAIT_F32, layout, 2, 3, length, 4, {PLAIT_STATE_IN, PLAIT_STATE_OUT});
            pool.slots = {7, -1};
            pool.alias = true;
            exactly(pool);
        }
}

TEST_CASE("conv1d report C15, C43: padding on the left, with NaN and gradients in it") {
    for (const plait_layout layout : layouts)
        for (const plait_direction direction : {PLAIT_FORWARD, PLAIT_BACKWARD}) {
            conv1d_call c = forward(PLAIT_F32, layout, 2, 4, 20, 4,
                                    {PLAIT_BIAS, PLAIT_STATE_IN, PLAIT_SEQ_IDX});
            c.direction = direction;
            c.silu = true;
            rng random(config().seed);
            conv1d_inputs in = random_inputs(c, conv1d_filling::uniform, random);
            for (size_t i = 0; i < in.seq_idx.size(); ++i)
                in.seq_idx[i] = i % 20 < 6 + i / 20 ? -1 : 0;
            for (long double &v : in.x.v)
                if (std::isnan(v)) v = 1;
            for (long double &v : in.dy.v)
                if (std::isnan(v)) v = 1;
            expect(c, in, roundoff_of(c)); // finite values at padding count for nothing
            poison_unowned(c, in);
            expect(c, in, roundoff_of(c));
        }
}

TEST_CASE("conv1d report C16: as many outputs as samples, the first sees the past alone") {
    for (const plait_layout layout : layouts) {
        conv1d_call c = forward(PLAIT_F32, layout, 1, 3, 10, 4);
        rng random(config().seed);
        const conv1d_inputs in = random_inputs(c, conv1d_filling::quarters, random);
        for_each_candidate(c, [&](const candidate &by) {
            const conv1d_outcome out = result_of(c, in, by);
            REQUIRE(out.values.at(PLAIT_Y).size() == 30);
            for (int64_t ch = 0; ch < 3; ++ch)
                CHECK(out.values.at(PLAIT_Y)[static_cast<size_t>(10 * ch)] ==
                      static_cast<double>(in.w.at(0, ch, 3) * in.x.at(0, ch, 0)));
        });
    }
}

TEST_CASE("conv1d report C18: the last state straddles what two threads hold") {
    for (const plait_layout layout : layouts)
        for (int64_t length = 60; length <= 70; ++length)
            for (const int64_t k : {4, 8})
                exactly(forward(PLAIT_BF16, layout, 2, 5, length, k, {PLAIT_STATE_OUT}));
}

TEST_CASE("conv1d report C19: slot times stride beyond 2^31") {
    if (config().small || config().exact_buffers) return; // 4 GiB of addresses
    const int64_t stride = (int64_t{1} << 31) + 8;        // elements of two slots; 2 bytes each
    conv1d_call c = forward(PLAIT_BF16, PLAIT_BCT, 1, 2, 6, 4, {PLAIT_STATE_IN, PLAIT_STATE_OUT});
    c.slots = {2, -1};
    c.alias = true;
    c.strides[PLAIT_STATE_IN] = c.strides[PLAIT_STATE_OUT] = {stride, 3, 1};
    for (const plait_direction direction : {PLAIT_FORWARD, PLAIT_UPDATE}) {
        c.direction = direction;
        if (direction == PLAIT_UPDATE) {
            c.used.clear();
            c.alias = false;
            c.strides = {{PLAIT_STATE, {stride, 3, 1}}};
        }
        for_each_candidate(c, [&](const candidate &by) {
            if (target().available() < size_t{6} << 30) return;
            const desc_ptr desc = desc_of(c);
            const plan_ptr plan = plan_by(by.name, desc.get());
            const std::vector<double> ones(12, 1.0), states = {1, 2, 3, 4, 5, 6, 9, 9, 9, 9, 9, 9};
            sparse x(1, 24, 24), y(1, 24, 24), w(1, 16, 16), slot(1, 4, 4), pool(2, 12, stride * 2);
            x.put(image(PLAIT_BF16, ones));
            w.put(image(PLAIT_BF16, {1, 1, 1, 1, 1, 1, 1, 1}));
            pool.put(image(PLAIT_BF16, states));
            bytes one(4);
            store_integer(PLAIT_I32, one.data(), 0, 1);
            slot.put(one);
            guarded work(workspace_of(plan.get()), 0, 0);
            std::vector<plait_arg> args = {{PLAIT_X, x.data()},
                                           {PLAIT_Y, y.data()},
                                           {PLAIT_W, w.data()},
                                           {PLAIT_SLOTS, slot.data()}};
            if (direction == PLAIT_UPDATE)
                args.push_back({PLAIT_STATE, pool.data()});
            else
                args.insert(args.end(),
                            {{PLAIT_STATE_IN, pool.data()}, {PLAIT_STATE_OUT, pool.data()}});
            REQUIRE(plait_execute(plan.get(), args.data(), static_cast<int>(args.size()),
                                  work.data(), work.size(), target().stream()) == PLAIT_OK);
            target().wait();
            CHECK(pool.get() == image(PLAIT_BF16, {1, 2, 3, 4, 5, 6, 1, 1, 1, 1, 1, 1}));
            CHECK(y.get() == image(PLAIT_BF16, {28, 20, 12, 4, 4, 4, 28, 20, 12, 4, 4, 4}));
        });
    }
}

TEST_CASE("conv1d report C20, C35: packed tokens beyond 2^20 and rows beyond 65535 tiles") {
    if (config().small) return;
    conv1d_call c = forward(PLAIT_BF16, PLAIT_BTC, 1, 1, config().brief ? 140000 : 1400000, 4);
    c.varlen = {1000, c.length};
    exactly(c);
    for (const plait_layout layout : layouts)
        exactly(forward(PLAIT_BF16, layout, 1, 3, 131072, 4, {PLAIT_STATE_OUT}));
}

TEST_CASE("conv1d report C21: rejected drafts: an earlier position restores the window") {
    for (const plait_layout layout : layouts) {
        const int64_t k = 4, drafts = 3;
        conv1d_call step = conv1d(PLAIT_UPDATE, PLAIT_BF16, 2, 5, drafts, k);
        step.layout = layout;
        step.ring = step.silu = true;
        step.entries = k - 1 + drafts;
        rng random(config().seed);
        conv1d_inputs in = random_inputs(step, conv1d_filling::uniform, random);
        in.position = {4, 11};
        for_each_candidate(step, [&](const candidate &by) {
            const conv1d_outcome draft = result_of(step, in, by);
            if (!draft.fault.empty()) return;
            for (int accepted = 0; accepted <= 3; ++accepted) {
                conv1d_inputs redo = in; // other samples from the first rejected one on
                std::copy(draft.values.at(PLAIT_STATE).begin(), draft.values.at(PLAIT_STATE).end(),
                          redo.state.v.begin());
                for (int32_t &p : redo.position) p += accepted;
                for (long double &v : redo.x.v) v = rounded(PLAIT_BF16, random.sign_unit());
                conv1d_inputs fresh = redo; // as if only the accepted ones had been fed
                fresh.state = in.state;
                for (int64_t r = 0; r < 2; ++r)
                    for (int64_t ch = 0; ch < 5; ++ch)
                        for (int s = 0; s < accepted; ++s)
                            fresh.state.at(r, ch, (in.position[static_cast<size_t>(r)] + s) % 6) =
                                in.x.at(r, ch, s);
                const conv1d_outcome a = result_of(step, redo, by), b = result_of(step, fresh, by);
                CHECK(a.values.at(PLAIT_Y) == b.values.at(PLAIT_Y));
            }
        });
    }
}

TEST_CASE("conv1d report C23: an f32 state with 16-bit samples is read unrounded") {
    for (const plait_layout layout : layouts) {
        conv1d_call c = forward(PLAIT_BF16, layout, 2, 7, 9, 4, {PLAIT_STATE_IN, PLAIT_STATE_OUT});
        c.types = {{PLAIT_STATE_IN, PLAIT_F32}, {PLAIT_STATE_OUT, PLAIT_F32}, {PLAIT_Y, PLAIT_F32}};
        closely(c);
        conv1d_call u = conv1d(PLAIT_UPDATE, PLAIT_BF16, 2, 7, 1, 4);
        u.layout = layout;
        u.types = {{PLAIT_STATE, PLAIT_F32}, {PLAIT_Y, PLAIT_F32}};
        closely(u);
    }
}

TEST_CASE("conv1d report C24: pad rows give 0 and touch no state") {
    for (const plait_layout layout : layouts)
        for (const int32_t pad : {-1, 0, 3, INT32_MIN}) {
            conv1d_call c = conv1d(PLAIT_UPDATE, PLAIT_BF16, 6, 9, 1, 4);
            c.layout = layout;
            c.slots = {8, pad};
            rng random(config().seed);
            conv1d_inputs in = random_inputs(c, conv1d_filling::quarters, random);
            in.slot = {pad, 5, pad, pad, 7, pad};
            poison_unowned(c, in);
            expect(c, in, 0);
        }
}

TEST_CASE("conv1d report C26: a row pitch of 36864 elements") {
    if (config().small || config().exact_buffers) return;
    const int64_t pitch = 36864, tokens = on_device() ? 58500 : 2000, channels = 8;
    conv1d_call c = forward(PLAIT_BF16, PLAIT_BTC, 1, channels, tokens, 2);
    c.strides[PLAIT_X] = c.strides[PLAIT_Y] = {tokens * pitch, pitch, 1};
    std::vector<double> in(static_cast<size_t>(tokens * channels)), want(in.size());
    for (size_t i = 0; i < in.size(); ++i) {
        in[i] = static_cast<double>(i * 7 % 5);
        want[i] = 2 * in[i] + (i < 8 ? 0 : in[i - 8]);
    }
    for_each_candidate(c, [&](const candidate &by) {
        const auto size = static_cast<size_t>(tokens * pitch * 2);
        if (target().available() < 3 * size) return;
        const plan_ptr plan = plan_by(by.name, desc_of(c).get());
        sparse x(tokens, 16, pitch * 2), y(tokens, 16, pitch * 2), w(1, 32, 32);
        x.put(image(PLAIT_BF16, in));
        std::vector<double> taps;
        for (int ch = 0; ch < 8; ++ch) taps.insert(taps.end(), {1.0, 2.0});
        w.put(image(PLAIT_BF16, taps));
        guarded work(workspace_of(plan.get()), 0, 0);
        const plait_arg args[] = {{PLAIT_X, x.data()}, {PLAIT_Y, y.data()}, {PLAIT_W, w.data()}};
        REQUIRE(plait_execute(plan.get(), args, 3, work.data(), work.size(), target().stream()) ==
                PLAIT_OK);
        target().wait();
        CHECK(y.get() == image(PLAIT_BF16, want));
    });
}

TEST_CASE("conv1d report C27: of a longer linear state the trailing entries are the history") {
    for (const plait_layout layout : layouts)
        for (const plait_direction direction : {PLAIT_FORWARD, PLAIT_UPDATE, PLAIT_BACKWARD}) {
            conv1d_call c = conv1d(direction, PLAIT_F32, 2, 3, 2, 4);
            c.layout = layout;
            c.entries = 7;
            if (direction != PLAIT_UPDATE) c.used = {PLAIT_STATE_IN, PLAIT_STATE_OUT};
            exactly(c);
        }
}

TEST_CASE("conv1d report C29: a forward is one launch, without workspace") {
    for (const plait_layout layout : layouts) {
        const plan_ptr plan = plan_on_h200(forward(PLAIT_BF16, layout, 8, 2048, 2048, 4));
        int64_t steps = 0;
        REQUIRE(plait_plan_get_i64(plan.get(), PLAIT_PLAN_STEPS, &steps) == PLAIT_OK);
        CHECK(steps == 1);
        CHECK(workspace_of(plan.get()) == 0);
    }
}

TEST_CASE("conv1d report C30: a short row hands the gradient of its last state on") {
    for (const plait_layout layout : layouts)
        for (int64_t length = 0; length <= 5; ++length) {
            conv1d_call c =
                forward(PLAIT_F32, layout, 2, 3, length, 5, {PLAIT_STATE_IN, PLAIT_STATE_OUT});
            c.direction = PLAIT_BACKWARD;
            exactly(c);
        }
}

TEST_CASE("conv1d report C31, C32: an expanded gradient, and one that is a slice") {
    for (const plait_layout layout : layouts) {
        conv1d_call c = forward(PLAIT_BF16, layout, 2, 16, 50, 4, {PLAIT_BIAS});
        c.direction = PLAIT_BACKWARD;
        c.types[PLAIT_W] = c.types[PLAIT_BIAS] = PLAIT_F32;
        c.strides[PLAIT_DY] = {0, 0, 0};
        exactly(c);
        c.strides[PLAIT_DY] = c.packed(PLAIT_DY, 2 * (layout == PLAIT_BTC ? 16 : 50));
        c.offsets[PLAIT_DY] = 16;
        exactly(c);
    }
}

TEST_CASE("conv1d report C33: packed sequences in a batch are refused") {
    conv1d_call c = forward(PLAIT_F32, PLAIT_BCT, 2, 4, 16, 4);
    c.varlen = {3, 16};
    desc_ptr desc;
    CHECK(make_desc(c, desc) == PLAIT_ERR_INVALID_DESC);
}

TEST_CASE("conv1d report C34, C36, C39: one plan for any offsets, also of empty sequences") {
    const std::vector<int64_t> many[] = {{0, 0, 0, 2}, {0, 1, 2, 3}, {0, 5, 9, 16},  {0, 0, 16, 16},
                                         {0, 0, 0, 0}, {0, 3, 3, 8}, {0, 16, 16, 16}};
    for (const plait_layout layout : layouts)
        for (const plait_direction direction : {PLAIT_FORWARD, PLAIT_BACKWARD}) {
            conv1d_call c =
                forward(PLAIT_F32, layout, 1, 3, 16, 4, {PLAIT_STATE_IN, PLAIT_STATE_OUT});
            c.direction = direction;
            c.varlen = {3, 16};
            const desc_ptr desc = desc_of(c);
            rng random(config().seed);
            conv1d_inputs in = random_inputs(c, conv1d_filling::quarters, random);
            // NaN was where nothing is for other offsets.
            for (conv1d_array *a : {&in.x, &in.dy})
                for (long double &v : a->v)
                    if (std::isnan(v)) v = 1;
            for_each_candidate(c, [&](const candidate &by) {
                const plan_ptr plan = plan_by(by.name, desc.get());
                conv1d_bound bound(c, desc.get(), plan.get(), in);
                for (const std::vector<int64_t> &cu : many) {
                    in.offsets = cu;
                    bound.put(in);
                    REQUIRE(bound.execute() == PLAIT_OK);
                    conv1d_outcome out;
                    out.fault = bound.damage();
                    CHECK(out.fault == "");
                    for (const plait_role role : bound.written())
                        out.values[role] = bound.values(role);
                    CHECK(judge(c, conv1d_reference(in, 0), out).wrong == "");
                }
            });
        }
}

TEST_CASE("conv1d report C37: the first state is overwritten by the last, long rows") {
    for (const plait_layout layout : layouts) {
        conv1d_call c = forward(PLAIT_BF16, layout, 2, 9, 5003, 4,
                                {PLAIT_BIAS, PLAIT_STATE_IN, PLAIT_STATE_OUT});
        c.alias = true;
        exactly(c);
    }
}

TEST_CASE("conv1d report C41: several samples with a cache, also more than it holds") {
    for (const plait_layout layout : layouts)
        for (const bool ring : {false, true})
            for (int64_t samples = 1; samples <= 9; ++samples) {
                conv1d_call c = conv1d(PLAIT_UPDATE, PLAIT_BF16, 2, 5, samples, 4);
                c.layout = layout;
                c.ring = ring;
                c.entries = 5;
                exactly(c);
            }
}

TEST_CASE("conv1d report C42: channel counts that are no multiple of anything") {
    for (const plait_layout layout : layouts)
        for (const int64_t channels : {1, 3, 33, 100, 127, 129, 257})
            for (const plait_direction direction : {PLAIT_FORWARD, PLAIT_BACKWARD, PLAIT_UPDATE}) {
                conv1d_call c = conv1d(direction, PLAIT_BF16, 2, channels, 5, 4);
                c.layout = layout;
                closely(c);
            }
}

TEST_CASE("conv1d report C44: nothing to compute, and the state is handed through") {
    for (const plait_layout layout : layouts)
        for (const plait_direction direction : {PLAIT_FORWARD, PLAIT_BACKWARD})
            for (const auto &[batch, length] :
                 {std::pair<int64_t, int64_t>{0, 7}, {3, 0}, {0, 0}}) {
                conv1d_call c = conv1d(direction, PLAIT_BF16, batch, 4, length, 4);
                c.layout = layout;
                c.used = {PLAIT_BIAS, PLAIT_STATE_IN, PLAIT_STATE_OUT};
                exactly(c);
            }
}

} // namespace plait::test
