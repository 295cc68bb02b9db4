#include "tests/api/common.h"

#include <cmath>

using namespace plait::test;

namespace {
constexpr plait_status argument = PLAIT_ERR_INVALID_ARGUMENT;
}

TEST_CASE("wht: create") {
    const int64_t extents[] = {4, 8};
    plait_desc *desc = nullptr;
    FAILS(plait_wht_create(nullptr, PLAIT_F32, 2, extents), argument, "desc=NULL");
    FAILS(plait_wht_create(&desc, garbage<plait_dtype>(), 2, extents), argument, "dtype=99");
    FAILS(plait_wht_create(&desc, PLAIT_E4M3, 2, extents), argument, "e4m3");
    FAILS(plait_wht_create(&desc, PLAIT_F32, 2, nullptr), argument, "extents=NULL");
    FAILS(plait_wht_create(&desc, PLAIT_F32, 0, extents), argument, "rank=0");
    FAILS(plait_wht_create(&desc, PLAIT_F32, PLAIT_MAX_RANK + 1, extents), argument, "rank=9");
    FAILS(plait_wht_create(&desc, PLAIT_F32, -3, extents), argument, "rank=-3");
    const int64_t negative[] = {4, -8};
    FAILS(plait_wht_create(&desc, PLAIT_F32, 2, negative), argument, "extents[1]=-8");
    CHECK(desc == nullptr);
    OK(plait_wht_create(&desc, PLAIT_F32, 2, extents));
    CHECK(token_of(desc) == "wht:f32:b4:n8");
    plait_desc_destroy(desc);
    plait_desc_destroy(nullptr);
}

TEST_CASE("every setter refuses NULL") {
    const int64_t strides[] = {8, 1};
    FAILS(plait_wht_set_axes(nullptr, 1), argument, "plait_wht_set_axes: desc=NULL");
    FAILS(plait_wht_set_bits(nullptr, 1), argument, "plait_wht_set_bits: desc=NULL");
    FAILS(plait_wht_set_factor(nullptr, 0, PLAIT_H40), argument, "desc=NULL");
    FAILS(plait_wht_set_order(nullptr, PLAIT_DYADIC), argument, "desc=NULL");
    FAILS(plait_wht_set_adjoint(nullptr, 1), argument, "desc=NULL");
    FAILS(plait_wht_set_scale(nullptr, 1), argument, "desc=NULL");
    FAILS(plait_wht_set_bound(nullptr, 1), argument, "desc=NULL");
    FAILS(plait_desc_use(nullptr, PLAIT_SIGNS, 1), argument, "desc=NULL");
    FAILS(plait_desc_set_dtype(nullptr, PLAIT_X, PLAIT_F32), argument, "desc=NULL");
    FAILS(plait_desc_set_strides(nullptr, PLAIT_X, 2, strides), argument, "desc=NULL");
    FAILS(plait_desc_set_alignment(nullptr, PLAIT_X, 16), argument, "desc=NULL");
    FAILS(plait_desc_set_alias(nullptr, PLAIT_Y, PLAIT_X), argument, "desc=NULL");
    FAILS(plait_desc_check(nullptr), argument, "desc=NULL");
    int count = 0;
    FAILS(plait_desc_num_tensors(nullptr, &count), argument, "desc=NULL");
    FAILS(plait_desc_tensor(nullptr, 0, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr),
          argument, "desc=NULL");
    FAILS(plait_desc_token(nullptr, nullptr, 0, nullptr), argument, "desc=NULL");
}

TEST_CASE("setters refuse garbage and change nothing") {
    const desc_ptr desc = desc_of("wht:f32:b4:n8");
    plait_desc *d = desc.get();
    const int64_t strides[] = {8, 1};
    const int64_t negative[] = {8, -1};
    FAILS(plait_wht_set_axes(d, 4), argument, "axes=");
    FAILS(plait_wht_set_factor(d, 2, PLAIT_H40), argument, "axis=2");
    FAILS(plait_wht_set_factor(d, -1, PLAIT_H40), argument, "axis=-1");
    FAILS(plait_wht_set_factor(d, 1, garbage<plait_wht_factor>()), argument, "factor=99");
    FAILS(plait_wht_set_order(d, garbage<plait_wht_order>()), argument, "order=99");
    FAILS(plait_wht_set_scale(d, INFINITY), argument, "scale=inf");
    FAILS(plait_wht_set_scale(d, NAN), argument, "scale=");
    FAILS(plait_wht_set_bound(d, -1), argument, "bound=-1");
    FAILS(plait_desc_use(d, garbage<plait_role>(), 1), argument, "role=99");
    FAILS(plait_desc_use(d, PLAIT_X, 0), argument, "role=x");
    FAILS(plait_desc_set_dtype(d, garbage<plait_role>(), PLAIT_F32), argument, "role=99");
    FAILS(plait_desc_set_dtype(d, PLAIT_Y, garbage<plait_dtype>()), argument, "dtype=99");
    FAILS(plait_desc_set_dtype(d, PLAIT_Y, PLAIT_B1), argument, "b1");
    FAILS(plait_desc_set_strides(d, garbage<plait_role>(), 2, strides), argument, "role=99");
    FAILS(plait_desc_set_strides(d, PLAIT_X, 1, strides), argument, "rank=1");
    FAILS(plait_desc_set_strides(d, PLAIT_X, 2, nullptr), argument, "strides=NULL");
    FAILS(plait_desc_set_strides(d, PLAIT_X, 2, negative), argument, "strides[1]=-1");
    FAILS(plait_desc_set_alignment(d, garbage<plait_role>(), 16), argument, "role=99");
    FAILS(plait_desc_set_alignment(d, PLAIT_X, 12), argument, "bytes=12");
    FAILS(plait_desc_set_alignment(d, PLAIT_X, 0), argument, "bytes=0");
    FAILS(plait_desc_set_alignment(d, PLAIT_X, -16), argument, "bytes=-16");
    FAILS(plait_desc_set_alias(d, garbage<plait_role>(), PLAIT_X), argument, "out=99");
    FAILS(plait_desc_set_alias(d, PLAIT_Y, garbage<plait_role>()), argument, "in=99");
    FAILS(plait_desc_set_alias(d, PLAIT_X, PLAIT_Y), argument, "out=x");
    CHECK(token_of(d) == "wht:f32:b4:n8");
}

TEST_CASE("setters and the token say the same") {
    const int64_t extents[] = {4, 64};
    plait_desc *made = nullptr;
    OK(plait_wht_create(&made, PLAIT_F32, 2, extents));
    const desc_ptr desc(made);
    OK(plait_wht_set_axes(desc.get(), 3));
    OK(plait_wht_set_order(desc.get(), PLAIT_SEQUENCY));
    OK(plait_wht_set_adjoint(desc.get(), 5)); // any flag that is not 0
    OK(plait_wht_set_scale(desc.get(), 0.5));
    OK(plait_desc_use(desc.get(), PLAIT_SIGNS, 1));
    OK(plait_desc_set_dtype(desc.get(), PLAIT_Y, PLAIT_F64));
    const int64_t strides[] = {100, 1};
    OK(plait_desc_set_strides(desc.get(), PLAIT_X, 2, strides));
    OK(plait_desc_set_alignment(desc.get(), PLAIT_Y, 8));
    OK(plait_desc_check(desc.get()));
    CHECK(token_of(desc.get()) == "wht:f32:n4:n64:seq:adj:scale=0.5:+signs:x.s100.1:y.f64.a8");
    CHECK(token_of(desc_of(token_of(desc.get())).get()) == token_of(desc.get()));

    const desc_ptr bits = desc_of("wht:f32:n16");
    OK(plait_wht_set_bits(bits.get(), 5));
    OK(plait_desc_set_alias(bits.get(), PLAIT_Y, PLAIT_X));
    CHECK(token_of(bits.get()) == "wht:f32:n16:bits=5:y@x");

    const int64_t twelve[] = {24};
    OK(plait_wht_create(&made, PLAIT_I32, 1, twelve));
    const desc_ptr integer(made);
    OK(plait_wht_set_factor(integer.get(), 0, PLAIT_H12_SLOANE));
    OK(plait_wht_set_bound(integer.get(), 100));
    CHECK(token_of(integer.get()) == "wht:i32:n24.h12s:bound=100");
}

TEST_CASE("contradictions are found by check, and by all that run it") {
    const int64_t extents[] = {4, 12};
    plait_desc *made = nullptr;
    OK(plait_wht_create(&made, PLAIT_F32, 2, extents));
    const desc_ptr desc(made);
    const context_ptr ctx = cpu_context();
    FAILS(plait_desc_check(desc.get()), PLAIT_ERR_INVALID_DESC, "12");
    int count = -1;
    FAILS(plait_desc_num_tensors(desc.get(), &count), PLAIT_ERR_INVALID_DESC, "12");
    CHECK(count == -1);
    size_t size = 0;
    FAILS(plait_desc_token(desc.get(), nullptr, 0, &size), PLAIT_ERR_INVALID_DESC, "12");
    FAILS(plait_desc_tensor(desc.get(), 0, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr),
          PLAIT_ERR_INVALID_DESC, "12");
    plait_plan *plan = nullptr;
    FAILS(plait_plan_create(&plan, ctx.get(), desc.get(), nullptr), PLAIT_ERR_INVALID_DESC, "12");
    CHECK(plan == nullptr);
    FAILS(plait_candidates_print(ctx.get(), desc.get(), nullptr, PLAIT_TEXT, nullptr, 0, &size),
          PLAIT_ERR_INVALID_DESC, "12");

    const int64_t huge[] = {int64_t{1} << 40, int64_t{1} << 40};
    OK(plait_wht_create(&made, PLAIT_F32, 2, huge));
    FAILS(plait_desc_check(desc_ptr(made).get()), PLAIT_ERR_INVALID_DESC, "64 bits");
}

TEST_CASE("tensors as execute expects them") {
    const desc_ptr desc = desc_of("wht:i32:b3:n8:+signs+overflow:x.s16.1");
    int count = 0;
    OK(plait_desc_num_tensors(desc.get(), &count));
    REQUIRE(count == 4);
    FAILS(plait_desc_num_tensors(desc.get(), nullptr), PLAIT_ERR_INVALID_ARGUMENT, "count=NULL");

    plait_role role;
    plait_access access;
    plait_dtype dtype;
    int rank = 0;
    int64_t extents[PLAIT_MAX_RANK];
    int64_t strides[PLAIT_MAX_RANK];
    const auto get = [&](int index) {
        OK(plait_desc_tensor(desc.get(), index, &role, &access, &dtype, &rank, extents, strides));
    };
    get(0);
    CHECK(role == PLAIT_X);
    CHECK(access == PLAIT_READ);
    CHECK(dtype == PLAIT_I32);
    CHECK(rank == 2);
    CHECK((extents[0] == 3 && extents[1] == 8));
    CHECK((strides[0] == 16 && strides[1] == 1));
    get(1);
    CHECK(role == PLAIT_Y);
    CHECK(access == PLAIT_WRITE);
    CHECK((strides[0] == 8 && strides[1] == 1));
    get(2);
    CHECK(role == PLAIT_SIGNS);
    CHECK(dtype == PLAIT_B1);
    CHECK((strides[0] == 0 && strides[1] == 1));
    get(3);
    CHECK(role == PLAIT_OVERFLOW);
    CHECK(access == PLAIT_WRITE);
    CHECK((rank == 1 && extents[0] == 1));
    OK(plait_desc_tensor(desc.get(), 3, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr));
    for (const int index : {-1, 4, 1000})
        FAILS(plait_desc_tensor(desc.get(), index, &role, nullptr, nullptr, nullptr, nullptr,
                                nullptr),
              PLAIT_ERR_INVALID_ARGUMENT, "index=" + std::to_string(index));
}

TEST_CASE("tokens: torn and foreign text") {
    plait_desc *desc = nullptr;
    FAILS(plait_desc_from_token(nullptr, "wht:f32:n8"), argument, "desc=NULL");
    FAILS(plait_desc_from_token(&desc, nullptr), argument, "token=NULL");
    const std::string whole = "wht:f16:b4:n64:scale=0.5:+signs:x.s100.1.a4:y.f32";
    OK(plait_desc_from_token(&desc, whole.c_str()));
    CHECK(token_of(desc) == whole);
    plait_desc_destroy(desc);
    for (const char *bad : {"", ":", "wht", "wht:", "wht:f32", "dct:f32:n8", "wht:f99:n8",
                            "wht:f32:n8:", "wht:f32:n8 ", "wht:f32:n-8",
                            "wht:f32:n8:scale=", "wht:f32:n8:scale=1e999",
                            "wht:f32:n99999999999999999999", "wht:f32:n8:y@z", "WHT:F32:N8"}) {
        INFO(bad);
        desc = reinterpret_cast<plait_desc *>(&desc);
        const plait_status status = plait_desc_from_token(&desc, bad);
        CHECK(status == PLAIT_ERR_INVALID_ARGUMENT);
        CHECK(desc == nullptr);
        CHECK(std::strlen(plait_last_error()) > 10);
    }
}
