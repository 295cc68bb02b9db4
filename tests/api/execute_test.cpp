#include "tests/api/common.h"

#include <algorithm>
#include <sstream>

using namespace plait::test;

namespace {

/// Every role of an integer transform, with room around the tensors.
struct call {
    static constexpr int64_t n = 64;
    context_ptr ctx = cpu_context();
    plan_ptr plan;
    std::vector<int32_t> memory = std::vector<int32_t>(8192, 7);
    aligned_buffer work{0};
    size_t work_bytes = 0;
    int32_t *base = nullptr; ///< 256-byte aligned
    int32_t *x = nullptr;
    int32_t *y = nullptr;
    int32_t *signs = nullptr;
    int32_t *overflow = nullptr;

    explicit call(const char *token = "wht:i32:b2:n64:+signs+overflow") {
        plan = plan_of(ctx.get(), token, reference_pref().get());
        work_bytes = workspace_of(plan.get());
        work = aligned_buffer(work_bytes);
        void *at = memory.data();
        size_t room = memory.size() * 4;
        base = static_cast<int32_t *>(std::align(256, room - 256, at, room));
        x = base;
        y = base + 1024;
        signs = base + 2048;
        overflow = base + 3072;
    }
    std::vector<plait_arg> args() const {
        return {{PLAIT_X, x}, {PLAIT_Y, y}, {PLAIT_SIGNS, signs}, {PLAIT_OVERFLOW, overflow}};
    }
    plait_status run(const std::vector<plait_arg> &list, void *workspace, size_t bytes) const {
        return plait_execute(plan.get(), list.data(), static_cast<int>(list.size()), workspace,
                             bytes, nullptr);
    }
    plait_status run(const std::vector<plait_arg> &list) const {
        return run(list, work.get(), work_bytes);
    }
    bool untouched() const {
        return std::all_of(memory.begin(), memory.end(), [](int32_t v) { return v == 7; });
    }
};

} // namespace

TEST_CASE("execute: roles") {
    call c;
    REQUIRE(c.work_bytes > 0);
    const auto with = [&](size_t index, plait_arg arg) {
        std::vector<plait_arg> list = c.args();
        list[index] = arg;
        return list;
    };
    FAILS(plait_execute(nullptr, nullptr, 0, nullptr, 0, nullptr), PLAIT_ERR_INVALID_ARGUMENT,
          "plan=NULL");
    FAILS(plait_execute(c.plan.get(), nullptr, 4, c.work.get(), c.work_bytes, nullptr),
          PLAIT_ERR_INVALID_ARGUMENT, "args=NULL");
    FAILS(plait_execute(c.plan.get(), c.args().data(), -1, c.work.get(), c.work_bytes, nullptr),
          PLAIT_ERR_INVALID_ARGUMENT, "nargs=-1");
    for (size_t missing = 0; missing < 4; ++missing) {
        std::vector<plait_arg> list = c.args();
        const auto role = static_cast<plait_role>(list[missing].role);
        list.erase(list.begin() + static_cast<std::ptrdiff_t>(missing));
        FAILS(c.run(list), PLAIT_ERR_POINTER,
              std::string("role ") + plait_role_name(role) + " is missing");
        FAILS(c.run(with(missing, {role, nullptr})), PLAIT_ERR_POINTER,
              std::string(plait_role_name(role)) + "=NULL");
    }
    FAILS(c.run({}), PLAIT_ERR_POINTER, "missing");
    FAILS(c.run(with(3, {PLAIT_X, c.x})), PLAIT_ERR_POINTER, "role=x is given twice");
    FAILS(c.run(with(2, {PLAIT_DIAG, c.signs})), PLAIT_ERR_POINTER, "role=diag is not in use");
    for (const int64_t bad : {int64_t{0}, int64_t{15}, int64_t{-1}, int64_t{31}, int64_t{256},
                              int64_t{1} << 33, INT64_MIN, int64_t{PLAIT_X} + (int64_t{1} << 32)})
        FAILS(c.run(with(2, {bad, c.signs})), PLAIT_ERR_POINTER, "role=" + std::to_string(bad));
    std::vector<plait_arg> five = c.args();
    five.push_back({PLAIT_Y, c.y});
    FAILS(c.run(five), PLAIT_ERR_POINTER, "role=y is given twice");
    CHECK(c.untouched());
    OK(c.run(c.args()));
    CHECK_FALSE(c.untouched());
}

TEST_CASE("execute: alignment names role, promise and setter") {
    call c;
    std::vector<plait_arg> list = c.args();
    list[1].ptr = c.y + 1;
    FAILS(c.run(list), PLAIT_ERR_POINTER, "y=0x");
    FAILS(c.run(list), PLAIT_ERR_POINTER, "16 bytes");
    FAILS(c.run(list), PLAIT_ERR_POINTER, "plait_desc_set_alignment");
    list = c.args();
    list[3].ptr = reinterpret_cast<char *>(c.overflow) + 2;
    FAILS(c.run(list), PLAIT_ERR_POINTER, "overflow=0x");
    CHECK(c.untouched());

    call low("wht:i32:b2:n64:+signs+overflow:x.a4:y.a4");
    list = low.args();
    list[0].ptr = low.x + 1;
    list[1].ptr = low.y + 3;
    OK(low.run(list));
    call high("wht:i32:b2:n64:+signs+overflow:y.a256");
    list = high.args();
    list[1].ptr = high.y + 32;
    FAILS(high.run(list), PLAIT_ERR_POINTER, "256 bytes");
    CHECK(high.untouched());
}

TEST_CASE("execute: aliases and overlap") {
    call c;
    const auto with = [](const call &of, size_t index, void *ptr) {
        std::vector<plait_arg> list = of.args();
        list[index].ptr = ptr;
        return list;
    };
    FAILS(c.run(with(c, 1, c.x)), PLAIT_ERR_POINTER, "plait_desc_set_alias");
    FAILS(c.run(with(c, 1, c.x)), PLAIT_ERR_POINTER, "y and x are the same pointer");
    FAILS(c.run(with(c, 1, c.x + 4)), PLAIT_ERR_POINTER, "y overlaps x");
    FAILS(c.run(with(c, 1, c.x + 124)), PLAIT_ERR_POINTER, "y overlaps x");
    for (const ptrdiff_t distance : {4, -4}) { // addresses in the order of the names
        const auto at = [](const void *p) {
            std::ostringstream hex;
            hex << "0x" << std::hex << reinterpret_cast<uintptr_t>(p);
            return hex.str();
        };
        int32_t *const y = c.x + distance;
        const std::string both = "y overlaps x: " + at(y) + " and " + at(c.x) + " are closer";
        FAILS(c.run(with(c, 1, y)), PLAIT_ERR_POINTER, both);
    }
    FAILS(c.run(with(c, 1, c.signs - 124)), PLAIT_ERR_POINTER, "y overlaps signs");
    FAILS(c.run(with(c, 3, c.x + 5)), PLAIT_ERR_POINTER, "overflow overlaps x");
    FAILS(c.run(with(c, 3, c.signs)), PLAIT_ERR_POINTER, "same pointer");
    FAILS(c.run(with(c, 3, c.y + 127)), PLAIT_ERR_POINTER, "y overlaps overflow");
    CHECK(c.untouched());
    OK(c.run(with(c, 1, c.x + 128))); // touching is fine
    OK(c.run(with(c, 2, c.x)));       // two inputs may share memory
    OK(c.run(with(c, 3, c.x + 128)));

    call in_place("wht:i32:b2:n64:+signs+overflow:y@x");
    OK(in_place.run(with(in_place, 1, in_place.x)));
    OK(in_place.run(in_place.args()));
    in_place.memory.assign(in_place.memory.size(), 7);
    FAILS(in_place.run(with(in_place, 1, in_place.x + 4)), PLAIT_ERR_POINTER, "y overlaps x");
    CHECK(in_place.untouched());
}

TEST_CASE("execute: column ranges of one matrix are legal, their overlap is not") {
    call c("wht:i32:b4:n64:+signs+overflow:x.s256.1:y.s256.1");
    std::vector<plait_arg> list = c.args();
    c.signs = c.base + 4096;
    c.overflow = c.base + 4100;
    list = c.args();
    for (const int64_t column : {60, 4, 252, 200})
        if (column == 60 || column == 4) {
            list[1].ptr = c.x + column;
            FAILS(c.run(list), PLAIT_ERR_POINTER, "y overlaps x");
        } else {
            list[1].ptr = c.x + column; // row r of y reaches into row r + 1 of x
            if (column == 200) FAILS(c.run(list), PLAIT_ERR_POINTER, "y overlaps x");
            if (column == 252) FAILS(c.run(list), PLAIT_ERR_POINTER, "y overlaps x");
        }
    CHECK(c.untouched());
    for (const int64_t column : {64, 128, 192}) {
        list[1].ptr = c.x + column;
        OK(c.run(list));
    }
    list[1].ptr = c.x + 3 * 256 + 64; // beside the last row only
    OK(c.run(list));
    list[0].ptr = c.x + 64;
    list[1].ptr = c.x;
    OK(c.run(list));
}

TEST_CASE("execute: workspace") {
    call c;
    FAILS(c.run(c.args(), nullptr, 0), PLAIT_ERR_WORKSPACE,
          "needs " + std::to_string(c.work_bytes));
    FAILS(c.run(c.args(), nullptr, c.work_bytes), PLAIT_ERR_WORKSPACE, "workspace=NULL");
    FAILS(c.run(c.args(), c.work.get(), c.work_bytes - 1), PLAIT_ERR_WORKSPACE,
          "workspace_bytes=" + std::to_string(c.work_bytes - 1));
    FAILS(c.run(c.args(), c.work.get() + 128, c.work_bytes), PLAIT_ERR_WORKSPACE, "256 bytes");
    FAILS(c.run(c.args(), c.y, c.work_bytes), PLAIT_ERR_WORKSPACE, "overlaps y");
    FAILS(c.run(c.args(), c.x, c.work_bytes), PLAIT_ERR_WORKSPACE, "overlaps x");
    CHECK(c.untouched());
    const aligned_buffer larger(2 * c.work_bytes);
    OK(c.run(c.args(), larger.get(), 2 * c.work_bytes));
}

TEST_CASE("execute: a plan without workspace takes any") {
    const context_ptr ctx = cpu_context();
    const plan_ptr plan = plan_of(ctx.get(), "wht:f32:n8");
    if (workspace_of(plan.get()) != 0) return;
    alignas(16) float x[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    alignas(16) float y[8];
    const plait_arg args[] = {{PLAIT_X, x}, {PLAIT_Y, y}};
    const float expected[8] = {36, -4, -8, 0, -16, 0, 0, 0};
    for (char *workspace : {static_cast<char *>(nullptr), reinterpret_cast<char *>(x) + 1}) {
        std::fill(y, y + 8, 0.0f);
        OK(plait_execute(plan.get(), args, 2, workspace, 1, nullptr));
        CHECK(std::equal(y, y + 8, expected));
    }
}

TEST_CASE("exec: from a token, run, share the plan, go away") {
    constexpr plait_status argument = PLAIT_ERR_INVALID_ARGUMENT;
    plait_exec *made = nullptr;
    FAILS(plait_exec_create(nullptr, PLAIT_CPU, 0, "wht:f32:n8", nullptr), argument, "exec=NULL");
    FAILS(plait_exec_create(&made, garbage<plait_backend>(), 0, "wht:f32:n8", nullptr), argument,
          "backend=99");
    FAILS(plait_exec_create(&made, PLAIT_CPU, 3, "wht:f32:n8", nullptr), PLAIT_ERR_NO_DEVICE,
          "device=3");
    FAILS(plait_exec_create(&made, PLAIT_CPU, 0, nullptr, nullptr), argument, "token=NULL");
    FAILS(plait_exec_create(&made, PLAIT_CPU, 0, "wht:f32:x8", nullptr), argument, "x8");
    FAILS(plait_exec_create(&made, PLAIT_CPU, 0, "wht:f32:n12", nullptr), PLAIT_ERR_INVALID_DESC,
          "12");
    CHECK(made == nullptr);
    FAILS(plait_exec_from_plan(nullptr, nullptr, nullptr), argument, "exec=NULL");
    FAILS(plait_exec_from_plan(&made, nullptr, nullptr), argument, "plan=NULL");
    FAILS(plait_exec_run(nullptr, nullptr, nullptr), argument, "exec=NULL");
    FAILS(plait_exec_run_args(nullptr, nullptr, 0), argument, "exec=NULL");
    FAILS(plait_exec_run_arrays(nullptr, PLAIT_F32, nullptr, 0, PLAIT_F32, nullptr, 0), argument,
          "exec=NULL");
    FAILS(plait_exec_set_stream(nullptr, nullptr), argument, "exec=NULL");
    CHECK(plait_exec_plan(nullptr) == nullptr);
    plait_exec_destroy(nullptr);

    OK(plait_exec_create(&made, PLAIT_CPU, 0, "wht:f32:n8:y@x", nullptr));
    exec_ptr first(made);
    plait_exec *twin = nullptr;
    OK(plait_exec_from_plan(&twin, plait_exec_plan(first.get()), nullptr));
    const exec_ptr second(twin);
    CHECK(plait_exec_plan(second.get()) == plait_exec_plan(first.get()));
    first.reset();

    alignas(16) float x[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    alignas(16) float y[8] = {};
    const float expected[8] = {36, -4, -8, 0, -16, 0, 0, 0};
    OK(plait_exec_run(second.get(), x, y));
    CHECK(std::equal(y, y + 8, expected));
    FAILS(plait_exec_run(second.get(), x, nullptr), PLAIT_ERR_POINTER, "y=NULL");
    FAILS(plait_exec_run(second.get(), nullptr, y), PLAIT_ERR_POINTER, "x=NULL");
    std::fill(y, y + 8, 0.0f);
    const plait_arg args[] = {{PLAIT_Y, y}, {PLAIT_X, x}};
    OK(plait_exec_run_args(second.get(), args, 2));
    CHECK(std::equal(y, y + 8, expected));
    FAILS(plait_exec_run_args(second.get(), args, 1), PLAIT_ERR_POINTER, "x is missing");
    FAILS(plait_exec_run_args(second.get(), nullptr, 2), argument, "args=NULL");
    std::fill(y, y + 8, 0.0f);
    const auto arrays = [&](plait_dtype in, int64_t have, plait_dtype out, int64_t room) {
        return plait_exec_run_arrays(second.get(), in, x, have, out, y, room);
    };
    FAILS(arrays(PLAIT_F64, 8, PLAIT_F32, 8), argument, "array of x is f64; the plan has f32");
    FAILS(arrays(PLAIT_F32, 8, PLAIT_I32, 8), argument, "array of y is i32; the plan has f32");
    FAILS(arrays(PLAIT_F32, 7, PLAIT_F32, 8), argument, "x has 7 elements; the plan needs 8");
    FAILS(arrays(PLAIT_F32, 8, PLAIT_F32, 0), argument, "y has 0 elements; the plan needs 8");
    FAILS(arrays(static_cast<plait_dtype>(99), 8, PLAIT_F32, 8), argument, "99 is no plait_dtype");
    CHECK(y[0] == 0);
    OK(arrays(PLAIT_F32, 8, PLAIT_F32, -1));
    CHECK(std::equal(y, y + 8, expected));
    OK(plait_exec_set_stream(second.get(), &made)); // the CPU backend ignores streams
    OK(plait_exec_run(second.get(), x, x));
    CHECK(std::equal(x, x + 8, expected));
}

TEST_CASE("exec: scratch moves with the stream, and a failure changes nothing") {
    struct memory {
        std::vector<plait_stream> taken;
        std::vector<plait_stream> given;
        bool refuse = false;
        static plait_status take(void **ptr, size_t bytes, plait_stream stream, void *user) {
            auto *self = static_cast<memory *>(user);
            if (self->refuse) return PLAIT_ERR_OUT_OF_MEMORY;
            self->taken.push_back(stream);
            return posix_memalign(ptr, 256, bytes) == 0 ? PLAIT_OK : PLAIT_ERR_OUT_OF_MEMORY;
        }
        static void give(void *ptr, size_t, plait_stream stream, void *user) {
            static_cast<memory *>(user)->given.push_back(stream);
            std::free(ptr);
        }
    } used;
    int streams[2];
    const context_ptr ctx = cpu_context();
    OK(plait_context_set_allocator(ctx.get(), memory::take, memory::give, &used));
    const plan_ptr plan = plan_of(ctx.get(), "wht:f32:n8", reference_pref().get());
    REQUIRE(workspace_of(plan.get()) > 0);
    plait_exec *made = nullptr;
    OK(plait_exec_from_plan(&made, plan.get(), &streams[0]));
    exec_ptr exec(made);
    OK(plait_exec_set_stream(exec.get(), &streams[0]));
    CHECK(used.taken.size() == 1);
    OK(plait_exec_set_stream(exec.get(), &streams[1]));
    CHECK(used.taken == std::vector<plait_stream>{&streams[0], &streams[1]});
    CHECK(used.given == std::vector<plait_stream>{&streams[0]});
    used.refuse = true;
    FAILS(plait_exec_set_stream(exec.get(), nullptr), PLAIT_ERR_OUT_OF_MEMORY, "allocator");
    alignas(16) float x[8] = {1}, y[8] = {};
    OK(plait_exec_run(exec.get(), x, y));
    CHECK(y[7] == 1);
    exec.reset();
    CHECK(used.given == std::vector<plait_stream>{&streams[0], &streams[1]});
}

TEST_CASE("execute: tensors with gaps that share bytes in spite of different strides") {
    call c("wht:i32:b4:n64:+signs+overflow:y.s65.1.a4"); // x packed, y with a pitch
    std::vector<plait_arg> list = c.args();
    list[1].ptr = c.x + 1;
    FAILS(c.run(list), PLAIT_ERR_POINTER, "y overlaps x");
    list[1].ptr = c.x + 255;
    FAILS(c.run(list), PLAIT_ERR_POINTER, "y overlaps x");
    CHECK(c.untouched());
    list[1].ptr = c.x + 256; // behind the last element
    OK(c.run(list));

    // One element in 300 of x, one in 301 of y: they meet in row 2 or nowhere.
    call apart("wht:i32:b4:n1:+signs+overflow:x.s300.1.a4:y.s301.1.a4");
    list = apart.args();
    list[0].ptr = apart.x + 4;
    list[1].ptr = apart.x + 2;
    FAILS(apart.run(list), PLAIT_ERR_POINTER, "y overlaps x");
    CHECK(apart.untouched());
    list[1].ptr = apart.x + 5;
    OK(apart.run(list));

    // The flag in an element of y, and in a gap of it.
    call flag("wht:i32:b2:n4:+signs+overflow:x.s8.1:y.s8.1");
    list = flag.args();
    list[3].ptr = flag.y + 1;
    FAILS(flag.run(list), PLAIT_ERR_POINTER, "y overlaps overflow");
    list[3].ptr = flag.y + 5;
    OK(flag.run(list));
}

TEST_CASE("execute: tensors that interleave with different pitches") {
    struct interleaved {
        const char *token;
        size_t floats, legal, wrong; ///< room; where y begins behind x
    };
    for (const interleaved &c :
         {interleaved{"wht:f32:b200000:n1:x.s6.1.a4:y.s9.1.a4", 1800004, 1, 3},
          {"wht:f32:b100000:n8:x.s32.1:y.s48.1", 4800064, 8, 4},
          {"wht:f32:b100000:n8:x.s32.1:y.s48.1", 4800064, 8, 16}}) {
        INFO(c.token);
        const context_ptr ctx = cpu_context();
        const plan_ptr plan = plan_of(ctx.get(), c.token);
        std::vector<float> memory(c.floats + 64);
        const auto at = reinterpret_cast<uintptr_t>(memory.data());
        float *x = memory.data() + (64 - at % 64) % 64 / 4;
        plait_arg args[] = {{PLAIT_X, x}, {PLAIT_Y, x + c.wrong}};
        FAILS(plait_execute(plan.get(), args, 2, nullptr, 0, nullptr), PLAIT_ERR_POINTER,
              "y overlaps x");
        args[1].ptr = x + c.legal;
        OK(plait_execute(plan.get(), args, 2, nullptr, 0, nullptr));
    }
}

TEST_CASE("execute: a workspace inside a tensor is legal in its gaps alone") {
    call c("wht:i32:b2:n64:+signs+overflow:y.s4096.1");
    REQUIRE(c.work_bytes > 0);
    REQUIRE(c.work_bytes <= 2048); // or the gap would not hold it beside the other tensors
    for (const size_t element : {size_t{0}, size_t{4096}, 4160 - c.work_bytes / 4})
        FAILS(c.run(c.args(), c.y + element / 64 * 64, c.work_bytes), PLAIT_ERR_WORKSPACE,
              "overlaps y");
    CHECK(c.untouched());
    OK(c.run(c.args(), c.y + 64, c.work_bytes));
}
