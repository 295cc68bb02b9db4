// One canonical text for each descriptor, both ways.
#include "tests/unit/round_trip.h"

#include <cstring>

using namespace unit;

namespace {

bool same(const wht_axis &a, const wht_axis &b) {
    return a.length == b.length && a.x_stride == b.x_stride && a.y_stride == b.y_stride &&
           a.signs_stride == b.signs_stride && a.diag_stride == b.diag_stride &&
           a.transformed == b.transformed && a.factor == b.factor;
}

bool same(const wht_problem &a, const wht_problem &b) {
    bool equal = a.x == b.x && a.y == b.y && a.diag == b.diag && a.signs == b.signs &&
                 a.overflow == b.overflow && a.order == b.order && a.adjoint == b.adjoint &&
                 a.alias == b.alias && std::memcmp(&a.scale, &b.scale, sizeof a.scale) == 0 &&
                 a.bound == b.bound && a.x_align == b.x_align && a.y_align == b.y_align &&
                 a.axes == b.axes;
    for (int i = 0; equal && i < a.axes; ++i) equal = same(a.axis[i], b.axis[i]);
    return equal;
}

bool round_trip(const descriptor &desc) {
    return unit::round_trip(
        desc, [](const problem &a, const problem &b) { return same(a.wht(), b.wht()); });
}

} // namespace

TEST_CASE("random descriptors survive the token") {
    dice d(test_seed());
    int legal = 0;
    for (int i = 0; i < rounds(6000); ++i) legal += round_trip(any_descriptor(d));
    for (int i = 0; i < rounds(3000); ++i) legal += round_trip(small_descriptor(d));
    CHECK(legal >= rounds(3000)); // contradictions alone would prove little
}

TEST_CASE("the examples are canonical and legal") {
    for (const std::string &token : corpus()) {
        INFO(token);
        CHECK(round_trip(*descriptor_from_token(token)));
    }
}

TEST_CASE("defaults that are said aloud do not show") {
    wht_descriptor desc = make_wht(PLAIT_C64, {4, 3, 8});
    desc.set_axes(5);
    const std::string token = desc.token();
    CHECK(token == "wht:c64:n4:b3:n8");
    desc.set_axes(5);
    desc.set_factor(0, PLAIT_H1);
    desc.set_order(PLAIT_NATURAL);
    desc.set_adjoint(false);
    desc.set_scale(1.0);
    desc.use(PLAIT_X, true);
    desc.use(PLAIT_Y, true);
    desc.use(PLAIT_SIGNS, false);
    desc.set_dtype(PLAIT_X, PLAIT_C64);
    desc.set_dtype(PLAIT_Y, PLAIT_C64);
    desc.set_dtype(PLAIT_SIGNS, PLAIT_B1);
    desc.set_dtype(PLAIT_DIAG, PLAIT_C64);
    desc.set_dtype(PLAIT_OVERFLOW, PLAIT_I32);
    unit::set_strides(desc, PLAIT_X, {24, 8, 1});
    unit::set_strides(desc, PLAIT_Y, {24, 8, 1});
    unit::set_strides(desc, PLAIT_SIGNS, {8, 0, 1});
    unit::set_strides(desc, PLAIT_DIAG, {8, 0, 1});
    unit::set_strides(desc, PLAIT_OVERFLOW, {1});
    for (const plait_role role : {PLAIT_X, PLAIT_Y, PLAIT_SIGNS, PLAIT_DIAG})
        desc.set_alignment(role, 16);
    desc.set_alignment(PLAIT_OVERFLOW, 4);
    CHECK(desc.token() == token);
    CHECK_NOTHROW(desc.check());
}

TEST_CASE("the type of X can be set later, and Y and DIAG follow") {
    wht_descriptor desc = make_wht(PLAIT_F32, {8});
    desc.use(PLAIT_DIAG, true);
    desc.set_dtype(PLAIT_X, PLAIT_C128);
    CHECK(desc.token() == "wht:c128:n8:+diag");
    for (const tensor &t : desc.tensors()) CHECK(t.dtype == PLAIT_C128);
}

TEST_CASE("a token that can be understood is answered with its canonical form") {
    struct {
        const char *token;
        const char *canonical;
    } const rows[] = {
        {"wht:f32:n08", "wht:f32:n8"},
        {"wht:f32:n8:bits=07", "wht:f32:n8"},
        {"wht:f32:n8:bits=003", "wht:f32:n8:bits=3"},
        {"wht:f32:n8:scale=1", "wht:f32:n8"},
        {"wht:f32:n8:scale=0.50", "wht:f32:n8:scale=0.5"},
        {"wht:f32:n8:scale=100000000000000000000", "wht:f32:n8:scale=1e+20"},
        {"wht:f32:n8:scale=1e20", "wht:f32:n8:scale=1e+20"},
        {"wht:f32:n8:scale=0.1000000000000000055511151231257827", "wht:f32:n8:scale=0.1"},
        {"wht:f32:n8:adj:seq", "wht:f32:n8:seq:adj"},
        {"wht:f32:b2:adj:n8", "wht:f32:b2:n8:adj"},
        {"wht:f32:n8:y@x:+signs", "wht:f32:n8:+signs:y@x"},
        {"wht:f32:n8:+diag+signs", "wht:f32:n8:+signs+diag"},
        {"wht:f32:n8:+signs:+diag", "wht:f32:n8:+signs+diag"},
        {"wht:f32:n8:-signs", "wht:f32:n8"},
        {"wht:f32:n8:+x", "wht:f32:n8"},
        {"wht:f32:n8:y.f64:x.a4", "wht:f32:n8:x.a4:y.f64"},
        {"wht:f32:n8:x.a4.s2", "wht:f32:n8:x.s2.a4"},
        {"wht:f32:n8:x.s1", "wht:f32:n8"},
        {"wht:f32:n8:x.a16", "wht:f32:n8"},
        {"wht:f32:n8:x.a016", "wht:f32:n8"},
        {"wht:f32:n8:y.f32", "wht:f32:n8"},
        {"wht:f32:n8:x.f64", "wht:f64:n8"},
        {"wht:i32:n8:bound=01", "wht:i32:n8:bound=1"},
    };
    for (const auto &r : rows) {
        expect_failure(PLAIT_ERR_INVALID_ARGUMENT,
                       text("plait_desc_from_token: token=\"", r.token,
                            "\" is not canonical; the canonical form is ", r.canonical),
                       [&] { descriptor_from_token(r.token); });
        CHECK(descriptor_from_token(r.canonical)->token() == r.canonical);
    }
}

TEST_CASE("a token that makes no sense is refused at its place") {
    struct {
        const char *token;
        const char *sentence;
    } const rows[] = {
        {"", "token=\"\" is empty"},
        {":", "token[0]=\"\" is an empty field"},
        {"wht", "token[0]=\"wht\" ends early: type and axes follow"},
        {"wht:", "token[4]=\"\" is an empty field between two ':' or at an end"},
        {"wht:f32", "token[4]=\"f32\" is not followed by an axis: b<length> or n<length>"},
        {"wht:f32:adj", "token[8]=\"adj\" is no axis: b<length> and n<length> follow the type"},
        {"wht::n8", "token[4]=\"\" is an empty field"},
        {"wht:f32:n8:", "token[11]=\"\" is an empty field"},
        {"wht:f32:n8::adj", "token[11]=\"\" is an empty field"},
        {"fft:f32:n8",
         "token[0]=\"fft\" is no family; families: wht conv1d.fwd conv1d.bwd conv1d.update kda.fwd "
         "kda.bwd"},
        {"wht.fwd:f32:n8", "token[0]=\"wht.fwd\" is no family"},
        {"WHT:f32:n8", "token[0]=0x57 is none of the characters a-z 0-9 : . = + - _ @"},
        {"wht:f32:n8 ", "token[10]=0x20 is none of the characters"},
        {"wht:f32:n8\n", "token[10]=0xa is none of the characters"},
        {"wht:f32:n\xc3\xa4", "token[9]=0xc3 is none of the characters"},
        {"wht:f8:n8", "token[4]=\"f8\" is no type; types: f64 f32 f16 bf16 e4m3 c128 c64 "
                      "i32 i64 i8 i16 b1"},
        {"wht:e4m3:n8", "token[4]=\"e4m3\" is refused: dtype=e4m3 is no type of x"},
        // numbers
        {"wht:f32:n-8", "token[8]=\"n-8\" has a negative length"},
        {"wht:f32:b2:n-8", "token[11]=\"n-8\" has a negative length"},
        {"wht:f32:n8x", "token[9]=\"8x\" is no 64-bit integer"},
        {"wht:f32:n1e3", "token[9]=\"1e3\" is no 64-bit integer"},
        {"wht:f32:n9223372036854775808", "is beyond the range of 64-bit integer"},
        {"wht:f32:n8:bits=", "token[16]=\"\" is no 64-bit hexadecimal number"},
        {"wht:f32:n8:bits=0x7", "token[16]=\"0x7\" is no 64-bit hexadecimal number"},
        {"wht:f32:n8:bits=-1", "token[16]=\"-1\" is no 64-bit hexadecimal number"},
        {"wht:f32:n8:bits=10000000000000000", "is beyond the range of 64-bit hexadecimal"},
        {"wht:f32:n8:scale=", "token[17]=\"\" is no double precision number"},
        {"wht:f32:n8:scale=nan", "token[11]=\"scale=nan\" is refused: scale=nan is not finite"},
        {"wht:f32:n8:scale=-inf", "scale=-inf is not finite"},
        {"wht:f32:n8:scale=1e999", "token[17]=\"1e999\" is beyond the range of double precision"},
        {"wht:f32:n8:scale=+1", "token[17]=\"+1\" is no double precision number"},
        {"wht:f32:n8:scale=1.5.2", "token[17]=\"1.5.2\" is no double precision number"},
        {"wht:i32:n8:bound=-1", "token[11]=\"bound=-1\" is refused: bound=-1 is negative"},
        {"wht:i32:n8:bound=x", "token[17]=\"x\" is no 64-bit integer"},
        // axes and options
        {"wht:f32:n12.h12",
         "token[12]=\"h12\" is no factor; factors: h12p2 h12s h20w h28w h40 h4r"},
        {"wht:f32:n12.m1", "is refused: order=1 is not between 2 and 256"},
        {"wht:f32:n12.m99999999999", "is refused: order=2147483647 is not between 2 and 256"},
        {"wht:f32:n12.m", "token[12]=\"m\" is no factor"},
        {"wht:f32:n12.m12x", "token[13]=\"12x\" is no 64-bit integer"},
        {"wht:f32:n8:rows=-1", "is refused: count=-1 is negative"},
        {"wht:f32:n8:rows=1:rows=1", "is a second rows"},
        {"wht:f32:n8:group=0", "is refused: length=0 is less than 1"},
        {"wht:i32:n8:hist=4.0", "token[16]=\"4.0\" is not three numbers with dots between them"},
        {"wht:i32:n8:hist=0.0.1", "is refused: bins=0 is less than 1"},
        {"wht:f32:n8:+factor",
         "token[12]=\"factor\" is refused: role=factor is turned on by another "
         "setter alone: plait_wht_set_factor_order"},
        {"wht:f32:n12.", "token[12]=\"\" is no factor"},
        {"wht:f32:n12.h12s.h40", "token[12]=\"h12s.h40\" is no factor"},
        {"wht:f32:b1:b1:b1:b1:b1:b1:b1:b1:n8", "token[32]=\"n8\" is one axis more than 8"},
        {"wht:f32:n8:adj:adj", "token[15]=\"adj\" is a second adj"},
        {"wht:f32:n8:seq:dya", "token[15]=\"dya\" is a second order"},
        {"wht:f32:n8:scale=2:scale=2", "token[19]=\"scale=2\" is a second scale"},
        {"wht:f32:n8:bits=1:bits=1", "is a second bits"},
        {"wht:i32:n8:bound=1:bound=1", "is a second bound"},
        {"wht:f32:n8:adj=1", "token[11]=\"adj=1\" is no axis, option or role of wht"},
        {"wht:f32:n8:scale", "token[11]=\"scale\" is no axis, option or role of wht"},
        {"wht:f32:n8:n", "token[11]=\"n\" is no axis, option or role of wht"},
        {"wht:f32:n8:z@x", "token[11]=\"z@x\" is no axis, option or role of wht"},
        // roles
        {"wht:f32:n8:+",
         "token[12]=\"\" is no role: the names of plait_role in lower case, x, state_in"},
        {"wht:f32:n8:+sign", "token[12]=\"sign\" is no role"},
        {"wht:f32:n8:+signs+", "token[18]=\"\" is no role"},
        {"wht:f32:n8:+signs-signs", "token[18]=\"signs\" is turned on or off twice"},
        {"wht:f32:n8:-x", "token[12]=\"x\" is refused: role=x is required"},
        {"wht:f32:n8:x", "token[11]=\"x\" says nothing"},
        {"wht:f32:n8:x.", "token[13]=\"\" is no type, no strides (s8.1) and no alignment (a4)"},
        {"wht:f32:n8:x.s", "token[13]=\"s\" is no type, no strides"},
        {"wht:f32:n8:x.s-1", "token[13]=\"s-1\" is no type, no strides"},
        {"wht:f32:n8:x.8", "token[13]=\"8\" is no type, no strides"},
        {"wht:f32:n8:x.s1.2", "token[13]=\"s1\" is refused: rank=2 is not the rank 1 of x"},
        {"wht:f32:b2:n8:x.s1", "is refused: rank=1 is not the rank 2 of x"},
        {"wht:f32:n8:x.s1.s2", "token[16]=\"s2\" is a second list of strides for one role"},
        {"wht:f32:n8:x.s2.99999999999999999999", "token[16]=\"99999999999999999999\" is beyond"},
        {"wht:f32:n8:x.a3", "token[13]=\"a3\" is refused: bytes=3 of x is no power of two"},
        {"wht:f32:n8:x.a99999999999", "is refused: bytes=99999999999 of x is no power of two"},
        {"wht:f32:n8:x.a4.a4", "token[16]=\"a4\" is a second alignment for one role"},
        {"wht:f32:n8:y.f16.f16", "token[17]=\"f16\" is a second type for one role"},
        {"wht:f32:n8:y.b1", "token[13]=\"b1\" is refused: dtype=b1 is no type of y"},
        {"wht:f32:n8:y@", "token[13]=\"\" is no role"},
        {"wht:f32:n8:y@x@x", "token[13]=\"x@x\" is no role"},
        {"wht:f32:n8:x@y", "token[11]=\"x@y\" is refused: out=x in=y is no pair"},
        {"wht:f32:n8:y.a8:y@x", "token[16]=\"y@x\" is a second field for one role"},
    };
    for (const auto &r : rows) {
        INFO(r.token);
        expect_failure(PLAIT_ERR_INVALID_ARGUMENT, text("plait_desc_from_token: "),
                       [&] { descriptor_from_token(r.token); });
        expect_failure(PLAIT_ERR_INVALID_ARGUMENT, r.sentence,
                       [&] { descriptor_from_token(r.token); });
    }
    expect_failure(PLAIT_ERR_INVALID_ARGUMENT, "token has 1000000 characters, more than 4096",
                   [] { descriptor_from_token(std::string(1000000, 'b')); });
    expect_failure(PLAIT_ERR_INVALID_ARGUMENT, "token[10]=0x0 is none of the characters",
                   [] { descriptor_from_token(std::string_view("wht:f32:n8\0", 11)); });
}

TEST_CASE("every torn token is refused, or is a token of its own") {
    int whole = 0, refusals = 0;
    for (const std::string &token : corpus())
        for (size_t length = 0; length < token.size(); ++length) {
            const std::string torn = token.substr(0, length);
            INFO(torn);
            try {
                const auto desc = descriptor_from_token(torn);
                CHECK(desc->token() == torn);
                ++whole;
            } catch (const failure &problem) {
                CHECK(problem.code() == PLAIT_ERR_INVALID_ARGUMENT);
                CHECK(std::string(problem.what()).rfind("plait_desc_from_token: token", 0) == 0);
                ++refusals;
            }
        }
    CHECK(whole > 50); // fewer digits, or without the last fields
    CHECK(refusals > 300);
}
