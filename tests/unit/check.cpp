// Contradictions (INVALID_DESC), and the tensors of descriptors without any.
#include "tests/unit/support.h"

using namespace unit;

TEST_CASE("every contradiction has its sentence") {
    struct {
        const char *token;
        const char *sentence;
    } const rows[] = {
        // lengths
        {"wht:f32:n3", "extents[0]=3 is no power of two, and axis 0 has no factor "
                       "(plait_wht_set_factor); no factor fits, and an odd length has no blocks"},
        {"wht:f32:n6", "extents[0]=6 is no power of two, and axis 0 has no factor "
                       "(plait_wht_set_factor); blocks of 2 as one more batch axis (extents 3, 2)"},
        {"wht:f32:n12", "factors that fit: h12p2 h12s; or blocks of 4"},
        {"wht:f32:b7:n12", "extents[1]=12 is no power of two, and axis 1"},
        {"wht:f32:n3:b4", "extents[0]=3 is no power of two"},
        {"wht:f32:n3:b0", "extents[0]=3 is no power of two"},
        {"wht:f32:n40", "factors that fit: h20w h40 h20p1; or blocks of 8"},
        {"wht:f32:n13696", "blocks of 128 as one more batch axis (extents 107, 128)"},
        {"wht:f32:n10944", "blocks of 64 as one more batch axis (extents 171, 64)"},
        {"wht:f32:n36.h12p2",
         "extents[0]=36 is not 12 * 2^k, as factor=h12p2 needs: 36/12=3 is no "
         "power of two; factors that fit: h36p2; or blocks of 4 as one more batch"},
        {"wht:f32:n60.h12s", "60/12=5 is no power of two"},
        {"wht:f32:n240.h12p2", "240/12=20 is no power of two"},
        {"wht:f32:n25600.h40", "25600/40=640 is no power of two"},
        {"wht:f32:n64.h12s", "extents[0]=64 is not 12 * 2^k, as factor=h12s needs: 12 does not "
                             "divide it; 64 needs no factor"},
        {"wht:f32:n56.h20w", "20 does not divide it; factors that fit: h28w h28p2; or blocks of 8"},
        {"wht:f32:n1.h12s", "12 does not divide it; 1 needs no factor"},
        {"wht:f32:b12.h12s:n8", "factor=h12s stands on axis 0, which is not transformed "
                                "(plait_wht_set_axes)"},
        {"wht:f32:n44",
         "blocks of 4 as one more batch axis (extents 11, 4); the nearest lengths are "
         "40 (h20w h40 h20p1) and 48 (h12p2 h12s); or a matrix of order 44 of your own "
         "(plait_wht_set_factor_order)"},
        {"wht:f32:n9223372036854775807", "the nearest length is 8935141660703064064 (h124w)"},
        {"wht:f32:n3:b2", "an odd length has no blocks; the nearest lengths are 2 and 4"},
        {"wht:f32:n12.m5", "5 does not divide it; factors that fit: h12p2 h12s"},
        {"wht:f32:n36.m12", "extents[0]=36 is not 12 * 2^k, as factor=m12 needs: 36/12=3"},
        {"wht:f32:b12.m12:n8", "factor=m12 stands on axis 0, which is not transformed"},
        {"wht:f32:n12.m12:n40.m20",
         "factor=m20 on axis 1 and factor=m12 on another need two matrices"},
        // orders and masks
        {"wht:f32:n12.h12p2:seq", "order=sequency is for powers of two only, and factor=h12p2"},
        {"wht:f32:n8:n12.h12p2:dya", "order=dyadic is for powers of two only, and factor=h12p2"},
        {"wht:f32:n8:bits=3:seq", "order=sequency does not go with bits=0x3: a mask keeps natural"},
        {"wht:f32:n8:bits=7:dya", "order=dyadic does not go with bits=0x7"},
        {"wht:f32:n8:bits=8", "bits=0x8 has a bit beyond the index of an axis of length 8"},
        {"wht:f32:n8:bits=ffffffffffffffff", "bits=0xffffffffffffffff has a bit beyond the index"},
        {"wht:f32:n1:bits=1", "bits=0x1 has a bit beyond the index of an axis of length 1"},
        {"wht:f32:n8:n8:bits=3", "bits=0x3 needs exactly one transformed axis, and 2 are"},
        {"wht:f32:n4:n8:bits=7", "bits=0x7 needs exactly one transformed axis, and 2 are"},
        {"wht:f32:b8:bits=3", "bits=0x3 needs exactly one transformed axis, and 0 are"},
        {"wht:f32:n24.h12s:bits=1", "bits=0x1 does not go with factor=h12s"},
        // types
        {"wht:f32:n8:y.c64",
         "y: dtype=c64 does not go with x=f32, whose y is f16 bf16 f32 f64 or e4m3"},
        {"wht:i32:n8:y.f32", "y: dtype=f32 does not go with x=i32"},
        {"wht:c64:n8:y.f64", "y: dtype=f64 does not go with x=c64, whose y is c64 or c128"},
        {"wht:f32:n8:y.i32", "y: dtype=i32 does not go with x=f32"},
        {"wht:i32:n8:scale=0.5",
         "scale=0.5 does not go with integers, which take 1 only; x is i32"},
        {"wht:i64:n8:scale=0", "scale=0 does not go with integers"},
        {"wht:i32:n8:+diag", "role=diag is not for integers, and x is i32"},
        {"wht:f32:n8:+diag:diag.f64", "diag: dtype=f64 is not x's type f32"},
        {"wht:f16:n8:+diag:diag.f32", "diag: dtype=f32 is not x's type f16"},
        {"wht:c64:n8:+diag:diag.f64", "diag: dtype=f64 is neither x's type c64 nor its real type "
                                      "f32"},
        {"wht:f32:n8:+diag:diag.c64", "diag: dtype=c64 is not x's type f32"},
        {"wht:f32:n8:+overflow", "role=overflow is for integers, and x is f32"},
        {"wht:c64:n8:bound=1", "bound=1 is a promise about integers, and x is c64"},
        // around the transform: more in tests/api
        {"wht:i8:n8:y.c64", "y: dtype=c64 does not go with x=i8, whose y is i32 or i64"},
        {"wht:f32:n8:rows=3:y@x", "alias=y@x needs equal extents"},
        {"wht:f32:n8:+amax:amax.i64", "amax: dtype=i64 does not go with y=f32"},
        {"wht:i32:n8:+amax:amax.f32", "amax: dtype=f32 does not go with y=i32"},
        {"wht:f32:n8:-y+amax:y@x", "alias=y@x is set, but role=y is not in use"},
        {"wht:i32:b8:hist=2.0.1", "role=histogram needs a transformed axis, and none is"},
        {"wht:f32:n8:bits=3:+scales:y.e4m3", "role=scales does not go with bits=0x3"},
        {"wht:i32:n8:bits=3:hist=2.0.1", "role=histogram does not go with bits=0x3"},
        // settings of what is not there
        {"wht:f32:n8:signs.s0", "role=signs has strides but is not in use (plait_desc_use)"},
        {"wht:c64:n8:diag.f32", "role=diag has a type but is not in use"},
        {"wht:f32:n8:overflow.a16", "role=overflow has an alignment but is not in use"},
        // strides
        {"wht:f32:b3:n4:y.s0.1", "y: strides[0]=0 is for tensors that are only read"},
        {"wht:f32:b3:n4:y.s4.0", "y: strides[1]=0 is for tensors that are only read"},
        {"wht:f32:b2:n4:y.s3.1", "y: strides[0]=3 does not nest: the axes inside it span 4"},
        {"wht:f32:b4:n4:y.s2.2", "does not nest: the axes inside it span 7 elements"},
        {"wht:f32:b2:b2:n4:y.s5.4.1", "y: strides[0]=5 does not nest: the axes inside it span 8"},
        // alignments and aliases
        {"wht:f32:n8:x.a2", "x: alignment=2 is less than f32 needs: 4"},
        {"wht:c128:n8:y.a4", "y: alignment=4 is less than c128 needs: 8"},
        {"wht:f32:n8:+signs:signs.a1", "signs: alignment=1 is less than b1 needs: 4"},
        {"wht:i32:n8:+overflow:overflow.a2", "overflow: alignment=2 is less than i32 needs: 4"},
        {"wht:f16:n8:y.f32@x", "alias=y@x needs equal element sizes: y is f32, x is f16"},
        {"wht:f32:b4:n8:x.s16.1:y@x", "alias=y@x needs equal strides: strides[0] is 8 and 16"},
        {"wht:f32:b4:n8:y.s16.1@x", "alias=y@x needs equal strides: strides[0] is 16 and 8"},
        // sizes beyond 64 bits
        {"wht:f32:b4611686018427387904:n2", "x: extents: the number of elements is beyond 64 bits"},
        {"wht:f32:b4611686018427387904:b0:n2",
         "x: extents: the number of elements is beyond 64 bits"},
        {"wht:f32:b4611686018427387904:n2:x.s0.1:y.s2.1",
         "x: extents: 4611686018427387904 * 2 elements are beyond 64 bits"},
        {"wht:f32:b3:n2:x.s9223372036854775807.1",
         "x: strides: the last element lies beyond 64 bits"},
        {"wht:f32:b2:n2:x.s9223372036854775807.1",
         "x: strides: the last element lies beyond 64 bits"},
        {"wht:f32:b2:n2:b0:x.s9223372036854775807.1.1",
         "x: strides: the last element lies beyond 64 bits"},
        {"wht:f32:n4611686018427387904",
         "x: 4611686018427387904 elements of f32 are more bytes than 64 bits count"},
        {"wht:f16:n2305843009213693952:y.f32",
         "y: 2305843009213693952 elements of f32 are more bytes than 64 bits count"},
        {"wht:c128:b2:n2:y.s1000000000000000000.1", "elements of c128 are more bytes"},
    };
    for (const auto &r : rows) {
        INFO(r.token);
        std::unique_ptr<descriptor> desc;
        REQUIRE_NOTHROW(desc = descriptor_from_token(r.token));
        CHECK(desc->token() == r.token);
        expect_failure(PLAIT_ERR_INVALID_DESC, std::string("plait_desc_check: "),
                       [&] { desc->check(); });
        expect_failure(PLAIT_ERR_INVALID_DESC, r.sentence, [&] { desc->check(); });
    }
}

TEST_CASE("what looks odd and is legal") {
    for (const char *token : {
             "wht:f32:n0",
             "wht:f32:n0:bits=3",
             "wht:f32:n0.h12s",
             "wht:f32:b0:n8",
             "wht:f32:b0:n8:y.s0.1",             // an empty axis has no stride
             "wht:f32:b1:n8:y.s0.1",             // neither has an axis of length 1
             "wht:f32:b1:n8:y.s3.1",             //
             "wht:f32:b1:n8:x.s5.1:y@x",         //
             "wht:f32:n1",                       // a scaled copy
             "wht:f32:b8",                       // no transformed axis: a scaled copy
             "wht:f32:n8:bits=0",                // an empty mask: a scaled copy
             "wht:f32:b4:n8:x.s0.0",             // read-only: one element everywhere
             "wht:f32:n4:b2:y.s1.4",             // a transposed view
             "wht:f32:n8:x.a4:y.a4",             //
             "wht:c64:n8:x.a4:y.a4",             // a pair of f32 is aligned as f32
             "wht:f32:n8:scale=0",               //
             "wht:f32:n8:scale=-0",              //
             "wht:i32:n8:bound=0",               //
             "wht:f64:n8:bound=3",               //
             "wht:i32:n8:y.i64",                 //
             "wht:f64:n8:y.bf16",                //
             "wht:c128:n8:+diag:y.c64:diag.f64", //
             "wht:bf16:n8:y.f16@x",              // equal element sizes
         }) {
        INFO(token);
        const std::unique_ptr<descriptor> desc = descriptor_from_token(token);
        CHECK_NOTHROW(desc->check());
    }
}

TEST_CASE("tensors are listed as execute expects them") {
    const auto desc =
        descriptor_from_token("wht:c64:n4:b3:n8:+signs+diag:x.s100.9.1.a8:y.c128:diag.f32.s0.8.1");
    desc->check();
    const std::vector<tensor> all = desc->tensors();
    REQUIRE(all.size() == 4);
    using list = std::vector<int64_t>;
    CHECK(all[0].role == PLAIT_X);
    CHECK(all[0].access == PLAIT_READ);
    CHECK(all[0].dtype == PLAIT_C64);
    CHECK(all[0].extents == list{4, 3, 8});
    CHECK(all[0].strides == list{100, 9, 1});
    CHECK(all[0].alignment == 8);
    CHECK(all[0].elements() == 96);
    CHECK(all[0].span() == 3 * 100 + 2 * 9 + 7 + 1);
    CHECK(all[0].span_bytes() == 8 * all[0].span());
    CHECK_FALSE(all[0].dense());
    CHECK(all[1].role == PLAIT_Y);
    CHECK(all[1].access == PLAIT_WRITE);
    CHECK(all[1].dtype == PLAIT_C128);
    CHECK(all[1].strides == list{24, 8, 1});
    CHECK(all[1].alignment == 16);
    CHECK(all[1].alias == plait_role{});
    CHECK(all[1].dense());
    CHECK(all[2].role == PLAIT_SIGNS);
    CHECK(all[2].access == PLAIT_READ);
    CHECK(all[2].dtype == PLAIT_B1);
    CHECK(all[2].extents == list{4, 3, 8});
    CHECK(all[2].strides == list{8, 0, 1}); // packed over the transformed axes
    CHECK(all[2].span_bytes() == 4);        // 32 bits
    CHECK(all[3].role == PLAIT_DIAG);
    CHECK(all[3].dtype == PLAIT_F32);
    CHECK(all[3].strides == list{0, 8, 1});

    const auto integers = descriptor_from_token("wht:i64:b33:n1:+signs+overflow:y@x:signs.s1.0");
    const std::vector<tensor> some = integers->tensors();
    REQUIRE(some.size() == 4);
    CHECK(some[0].alias == plait_role{});
    CHECK(some[1].alias == PLAIT_X);
    CHECK(some[2].span_bytes() == 8); // 33 bits are two words
    CHECK(some[3].role == PLAIT_OVERFLOW);
    CHECK(some[3].access == PLAIT_WRITE);
    CHECK(some[3].dtype == PLAIT_I32);
    CHECK(some[3].extents == list{1});
    CHECK(some[3].strides == list{1});
    CHECK(some[3].alignment == 4);

    const auto empty = descriptor_from_token("wht:f32:b0:n8")->tensors();
    CHECK(empty[0].span_bytes() == 0);
    CHECK(empty[0].elements() == 0);
    CHECK(empty[0].strides == list{8, 1});
}

TEST_CASE("a mask of all bits is legal and says nothing") {
    wht_descriptor desc = make_wht(PLAIT_F32, {8});
    desc.set_bits(7);
    CHECK_NOTHROW(desc.check());
    CHECK(desc.token() == "wht:f32:n8");
}
