// Tokens taken apart, strides walked, random data and guards.
#include "src/cli/case/dtype.h"
#include "src/cli/case/fill.h"
#include "src/cli/case/handle.h"
#include "src/cli/case/tensor.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <doctest/doctest.h>

using namespace plait::cases;

TEST_CASE("the fields of a token") {
    const token_parts p =
        split_token("wht:f16:b8192:n24.h12p2:n8:adj:scale=0.5:+signs+diag:x.s8192.1.2.a4:y.f32@x");
    CHECK(p.family == "wht");
    CHECK(p.dtype == "f16");
    REQUIRE(p.axes.size() == 3);
    CHECK(!p.axes[0].transformed);
    CHECK(p.axes[1].factor_order == 12);
    CHECK(p.axes[1].log2 == 1);
    CHECK(p.transforms() == 8192);
    CHECK(p.length() == 192);
    CHECK(p.stages() == 4);
    CHECK(p.factor_orders() == 12);
    CHECK(p.option("scale") == "0.5");
    CHECK(p.uses == std::vector<std::string>{"signs", "diag"});
    REQUIRE(p.find("x") != nullptr);
    CHECK(p.find("x")->alignment == 4);
    CHECK(p.find("x")->strides == ".s8192.1.2");
    CHECK(p.find("y")->alias == "x");
    CHECK(split_token("wht:c64:n64:bits=15").stages() == 3);
    const token_parts c = split_token("conv1d.bwd:f16:b2:t300:c5:k4:silu:state=lin.6:seqs=17.40:"
                                      "slots=9.-1:+bias+state_in-dw-dx:cu_seqlens.i32");
    CHECK(c.extent('b') == 2);
    CHECK(c.extent('t') == 300);
    CHECK(c.extent('c') == 5);
    CHECK(c.axes[1].letter == 't');
    CHECK(c.flag("silu"));
    CHECK(!c.flag("residual"));
    CHECK(c.entries() == 6);
    CHECK(c.two("seqs") == std::pair<int64_t, int64_t>(17, 40));
    CHECK(c.two("slots") == std::pair<int64_t, int64_t>(9, -1));
    CHECK(c.uses == std::vector<std::string>{"bias", "state_in"});
    CHECK(c.drops == std::vector<std::string>{"dw", "dx"});
    CHECK(split_token("conv1d.fwd:f32:b1:c1:t1:k4").entries() == 3);
}

TEST_CASE("tensors of a descriptor know promise and alias") {
    const desc_ptr desc = make_desc("wht:f16:b3:n16:x.a2:y.a2@x");
    const std::vector<tensor> tensors = tensors_of(desc.get());
    REQUIRE(tensors.size() == 2);
    CHECK(tensors[0].alignment == 2);
    CHECK(tensors[1].alias == PLAIT_X);
    CHECK(tensors[0].dense());
}

TEST_CASE("gather and scatter agree with the index formula from any start") {
    tensor t{};
    t.dtype = PLAIT_I32;
    t.extents = {3, 4, 5};
    t.strides = {50, 11, 2};
    std::vector<int32_t> memory(static_cast<size_t>(t.span()));
    CHECK(t.span() == 2 * 50 + 3 * 11 + 4 * 2 + 1);
    for (size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<int32_t>(i);
    for (const int64_t first : {0, 1, 7, 23}) {
        std::vector<int32_t> dense(static_cast<size_t>(60 - first), -1);
        gather(t, memory.data(), first, 60 - first, dense.data());
        int wrong = 0;
        for (int64_t i = first; i < 60; ++i)
            wrong +=
                dense[static_cast<size_t>(i - first)] != i / 20 * 50 + i / 5 % 4 * 11 + i % 5 * 2;
        CHECK(wrong == 0);
        std::vector<int32_t> copy(memory.size(), -1);
        scatter(t, copy.data(), first, 60 - first, dense.data());
        int written = 0;
        for (size_t i = 0; i < copy.size(); ++i) {
            written += copy[i] != -1;
            wrong += copy[i] != -1 && copy[i] != memory[i];
        }
        CHECK(wrong == 0);
        CHECK(written == 60 - first);
    }
}

TEST_CASE("cuts: one index of one axis, bits too") {
    tensor t{};
    t.dtype = PLAIT_I32;
    t.extents = {2, 3, 4};
    t.strides = {100, 10, 1};
    std::vector<int32_t> memory(200), dense(8);
    for (size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<int32_t>(i);
    const slice s = cut(t, 1, 2);
    CHECK(s.part.extents == std::vector<int64_t>{2, 4});
    gather(s, memory.data(), dense.data());
    CHECK(dense == std::vector<int32_t>{20, 21, 22, 23, 120, 121, 122, 123});
    std::vector<int32_t> back(200);
    scatter(s, back.data(), dense.data());
    CHECK(back[23] == 23);
    CHECK(back[24] == 0);
    t.dtype = PLAIT_B1;
    std::vector<uint32_t> words(7);
    std::vector<uint8_t> flags = {0, 1, 0, 1, 1, 0, 0, 1}, same(8);
    const slice bits = cut(t, 1, 2);
    scatter(bits, words.data(), flags.data());
    CHECK(words[0] == (1u << 21 | 1u << 23));
    CHECK(words[3] == (1u << (120 - 96) | 1u << (123 - 96)));
    gather(bits, words.data(), same.data());
    CHECK(same == flags);
}

TEST_CASE("bits are packed by 32") {
    tensor t{};
    t.dtype = PLAIT_B1;
    t.extents = {2, 20};
    t.strides = {40, 1};
    std::vector<uint32_t> words(bytes_for(PLAIT_B1, t.span()) / 4, 0);
    std::vector<uint8_t> flags(40, 0);
    flags[3] = flags[25] = 1; // bits 3 and 40 + 5
    scatter(t, words.data(), 0, 40, flags.data());
    CHECK(words[0] == 8u);
    CHECK(words[1] == 1u << 13);
    std::vector<uint8_t> back(40, 9);
    gather(t, words.data(), 0, 40, back.data());
    CHECK(back == flags);
}

TEST_CASE("the part of one transform") {
    const std::vector<token_axis> axes = split_token("wht:f32:n4:b3:n2").axes;
    tensor t{};
    t.dtype = PLAIT_F32;
    t.extents = {4, 3, 2};
    t.strides = {100, 10, 1};
    const slice s = transform_slice(t, axes, 2);
    CHECK(s.offset == 20);
    CHECK(s.part.extents == std::vector<int64_t>{4, 2});
    CHECK(s.part.strides == std::vector<int64_t>{100, 1});
}

TEST_CASE("random data: reproducible, independent of chunks, in range, exact") {
    for (const plait_dtype dtype :
         {PLAIT_F64, PLAIT_F32, PLAIT_F16, PLAIT_BF16, PLAIT_C64, PLAIT_I32, PLAIT_I64}) {
        INFO(dtype_name(dtype));
        fill_options fill;
        fill.integer_limit = 50;
        const size_t size = bytes_of(dtype);
        std::vector<unsigned char> whole(1000 * size), parts(1000 * size);
        fill_random(dtype, fill, 0, 1000, whole.data());
        fill_random(dtype, fill, 0, 333, parts.data());
        fill_random(dtype, fill, 333, 667, parts.data() + 333 * size);
        CHECK(whole == parts);
        fill.seed = 2;
        fill_random(dtype, fill, 0, 1000, parts.data());
        CHECK(whole != parts);
        double low = 0, high = 0, limit = 1;
        if (is_integer(dtype)) {
            std::vector<int64_t> v(1000);
            to_int64(dtype, whole.data(), 1000, v.data());
            for (int64_t x : v) {
                low = std::min(low, static_cast<double>(x));
                high = std::max(high, static_cast<double>(x));
            }
            limit = 50;
        } else {
            std::vector<double> v(2000);
            to_double(dtype, whole.data(), 1000, v.data());
            for (double x : v) {
                low = std::min(low, x);
                high = std::max(high, x);
            }
        }
        CHECK(low >= -limit);
        CHECK(low < -0.9 * limit);
        CHECK(high <= limit);
        CHECK(high > 0.9 * limit);
    }
}

TEST_CASE("guards and gaps tell what was overwritten") {
    tensor t{};
    t.name = "y";
    t.dtype = PLAIT_F32;
    t.extents = {2, 4};
    t.strides = {6, 1};
    guarded_image image(t.span_bytes());
    const float values[8] = {};
    scatter(t, image.data(), 0, 8, values);
    CHECK(image.untouched(t) == "");
    auto damaged = [&](int64_t offset) {
        guarded_image copy = image;
        static_cast<unsigned char *>(copy.data())[offset] = 0;
        return copy.untouched(t);
    };
    CHECK(damaged(-1) == "1 bytes before y was overwritten");
    CHECK(damaged(4 * 4) == "a gap of y at byte 16 was overwritten");
    CHECK(damaged(static_cast<int64_t>(t.span_bytes())) == "1 bytes behind y was overwritten");
}
