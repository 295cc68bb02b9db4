// The normal form: examples by hand, and random ones against the definition.
#include "lib/common/factor_matrices.h"
#include "src/desc/problem.h"
#include "tests/unit/support.h"

#include <algorithm>
#include <functional>

using namespace unit;

namespace {

/// "n4096.h12p2(x,y,signs,diag)": strides of tensors that are in use.
std::string text_of(const wht_problem &p) {
    std::string out;
    for (int i = 0; i < p.axes; ++i) {
        const wht_axis &a = p.axis[i];
        out += text(out.empty() ? "" : " ", a.transformed ? 'n' : 'b', a.length);
        if (a.factor != wht_factor::h1)
            out += text('.', find_factor(static_cast<plait_wht_factor>(a.factor))->name);
        out += text('(', a.x_stride, ',', a.y_stride);
        if (p.signs) out += text(",s", a.signs_stride);
        if (p.diag != scalar::none) out += text(",d", a.diag_stride);
        out += ')';
    }
    if (p.order == wht_order::sequency) out += " seq";
    if (p.order == wht_order::dyadic) out += " dya";
    if (p.adjoint) out += " adj";
    return out;
}

std::string normal(const std::string &token) {
    return text_of(make_problem(*descriptor_from_token(token)).wht());
}

} // namespace

TEST_CASE("normal forms of what users need") {
    struct {
        const char *token;
        const char *form;
    } const rows[] = {
        // rows, columns, blocks
        {"wht:bf16:b8192:n4096:scale=0.015625", "b8192(4096,4096) n4096(1,1)"},
        {"wht:f32:n1024:b300", "n1024(300,300) b300(1,1)"},
        {"wht:bf16:b8:b32:b7:n512", "b1792(512,512) n512(1,1)"},
        {"wht:bf16:b4096:b28:n128", "b114688(128,128) n128(1,1)"},
        {"wht:bf16:b4096:b28:n128:+signs", "b114688(128,128,s0) n128(1,1,s1)"},
        {"wht:bf16:b4096:b28:n128:+signs:signs.s0.128.1",
         "b4096(3584,3584,s0) b28(128,128,s128) n128(1,1,s1)"},
        {"wht:bf16:b4096:b28:n128:+signs:signs.s3584.128.1", "b114688(128,128,s128) n128(1,1,s1)"},
        // LLM rotations: a row pitch separates the batch axes of x, not those behind it
        {"wht:f16:b4:b8:n64:x.s1024.64.1", "b4(1024,512) b8(64,64) n64(1,1)"},
        {"wht:f16:b4:b8:n64:x.s1024.128.1", "b32(128,64) n64(1,1)"},
        {"wht:f32:b64:n1536.h12p2:y@x", "b64(1536,1536) n1536.h12p2(1,1)"},
        {"wht:bf16:b64:n28672.h28w:adj", "b64(28672,28672) n28672.h28w(1,1) adj"},
        // gates: masks become axes
        {"wht:c64:n1073741824:bits=3ff:y@x", "b1048576(1024,1024) n1024(1,1)"},
        {"wht:c128:n1048576:bits=80001:scale=0.5", "n2(524288,524288) b262144(2,2) n2(1,1)"},
        {"wht:c64:n16:bits=5", "b2(8,8) n2(4,4) b2(2,2) n2(1,1)"},
        {"wht:c64:n16:bits=0", "b16(1,1)"},
        {"wht:c64:b3:n16:bits=3", "b12(4,4) n4(1,1)"}, // the upper bits join the batch
        {"wht:c64:b3:n16:bits=3:x.s20.1", "b3(20,16) b4(4,4) n4(1,1)"},
        {"wht:c64:n16:b3:bits=c", "n4(12,12) b12(1,1)"},
        {"wht:c64:n17179869184:+diag:y@x", "n17179869184(1,1,d1)"},
        // Pauli decomposition, imaging: packed axes are one, except in other orders
        {"wht:c128:n4096:n4096", "n16777216(1,1)"},
        {"wht:f32:b16:n256:n256", "b16(65536,65536) n65536(1,1)"},
        {"wht:f32:b100:n64:n64:seq", "b100(4096,4096) n64(64,64) n64(1,1) seq"},
        {"wht:f64:n512:n512:dya", "n512(512,512) n512(1,1) dya"},
        {"wht:f32:n4:b3:n8", "n4(24,24) b3(8,8) n8(1,1)"},
        {"wht:f32:n4:n8:x.s16.1", "n4(16,8) n8(1,1)"},
        {"wht:f32:n4:n8:+diag", "n32(1,1,d1)"},
        {"wht:f32:n4:n8:+diag:diag.s0.1", "n4(8,8,d0) n8(1,1,d1)"},
        {"wht:f32:n4:n8:+signs:signs.s16.2", "n32(1,1,s2)"},
        // Boolean functions, correlation, sketching, vector search, sparse
        {"wht:i64:b255:n1073741824:+overflow:y.i32",
         "b255(1073741824,1073741824) n1073741824(1,1)"},
        {"wht:f32:n1099511627776", "n1099511627776(1,1)"},
        {"wht:f64:n16777216:b300:+signs", "n16777216(300,300,s1) b300(1,1,s0)"},
        {"wht:f32:b1000:n128:n12.h12p2", "b1000(1536,1536) n128(12,12) n12.h12p2(1,1)"},
        {"wht:f32:b1000:n12.h12p2:n128", "b1000(1536,1536) n1536.h12p2(1,1)"},
        {"wht:f32:n12.h12p2:n20.h20w", "n12.h12p2(20,20) n20.h20w(1,1)"},
        {"wht:f64:b100000:n256:x.s300.1.a8", "b100000(300,256) n256(1,1)"},
        // the order of axes has no meaning: y's strides order them
        {"wht:f32:n1024:b300:x.s1.1024:y.s1.1024", "b300(1024,1024) n1024(1,1)"},
        {"wht:f32:n1024:b300:x.s1.1024", "n1024(1,300) b300(1024,1)"},
        {"wht:f32:b300:n1024:x.s1.300", "b300(1,1024) n1024(300,1)"},
        {"wht:f32:b4:n8:b2:x.s1.8.4:y.s1.8.4", "n8(8,8) b8(1,1)"},
        // edges
        {"wht:f32:n1", ""},
        {"wht:f32:b1:n1:b1", ""},
        {"wht:f32:b8", "b8(1,1)"},
        {"wht:f32:b8:b4:n1", "b32(1,1)"},
        {"wht:f32:b1:n8:x.s77.1:y.s5.1", "n8(1,1)"},
        {"wht:f32:n2:b1:n2:b1:n2:b1:n2:b1", "n16(1,1)"},
        {"wht:f32:b3:n8:x.s0.1", "b3(0,8) n8(1,1)"},
        {"wht:f32:b3:b5:n8:x.s0.0.1", "b15(0,8) n8(1,1)"},
        {"wht:f32:b0:n8", "b0(0,0)"},
        {"wht:f32:n0:b4", "b0(0,0)"},
        // a merge whose stride test is beyond 64 bits
        {"wht:f32:b2:b2:n8:+signs:signs.s1.4611686018427387904.0",
         "b2(16,16,s1) b2(8,8,s4611686018427387904) n8(1,1,s0)"},
        // symmetric and without diagonals: the adjoint is the transform
        {"wht:f32:n8:adj", "n8(1,1)"},
        {"wht:f32:n8:seq:adj", "n8(1,1) seq"},
        {"wht:f32:n8:bits=3:adj", "b2(4,4) n4(1,1)"},
        {"wht:f32:n12.h12p2:adj", "n12.h12p2(1,1)"},
        {"wht:f32:n12.h12s:adj", "n12.h12s(1,1) adj"},
        {"wht:f32:n8:adj:+signs", "n8(1,1,s1) adj"},
        {"wht:f32:n8:adj:+diag", "n8(1,1,d1) adj"},
    };
    for (const auto &r : rows) {
        INFO(r.token);
        CHECK(normal(r.token) == r.form);
    }
}

TEST_CASE("the example tokens of the whole suite keep at most 8 axes without a mask") {
    for (const std::string &token : corpus()) {
        INFO(token);
        const wht_problem p = make_problem(*descriptor_from_token(token)).wht();
        CHECK(p.axes <= PLAIT_MAX_RANK);
        const auto stride = p.stores ? &wht_axis::y_stride : &wht_axis::x_stride;
        for (int i = 1; i < p.axes; ++i) CHECK(p.axis[i - 1].*stride > p.axis[i].*stride);
    }
}

TEST_CASE("a mask of alternating bits is the longest form") {
    const problem p =
        make_problem(*descriptor_from_token("wht:f16:n1152921504606846976:bits=555555555555555"));
    CHECK(p.wht().axes == 60);
    CHECK(p.wht().axes <= wht_max_axes);
    CHECK(p.wht().axis[0].x_stride == int64_t{1} << 59);
}

TEST_CASE("what does not depend on axes") {
    const problem p = make_problem(
        *descriptor_from_token("wht:c64:n8:scale=-0.125:+signs+diag:x.a8:y.c128.a32:diag.f32"));
    CHECK(p.wht().x == scalar::c64);
    CHECK(p.wht().y == scalar::c128);
    CHECK(p.wht().diag == scalar::f32);
    CHECK(p.wht().signs);
    CHECK_FALSE(p.wht().overflow);
    CHECK_FALSE(p.wht().alias);
    CHECK(p.wht().scale == -0.125);
    CHECK(p.wht().bound == 0);
    CHECK(p.wht().x_align == 8);
    CHECK(p.wht().y_align == 32);
    CHECK_FALSE(p.empty);
    CHECK(p.find(PLAIT_DIAG)->dtype == PLAIT_F32);
    CHECK(p.find(PLAIT_OVERFLOW) == nullptr);

    const problem q = make_problem(*descriptor_from_token("wht:i32:n8:bound=5:+overflow:y@x"));
    CHECK(q.wht().bound == 5);
    CHECK(q.wht().overflow);
    CHECK(q.wht().alias);
    CHECK(q.wht().diag == scalar::none);
    // |x| <= 0 implies |x| <= 1, and 0 stands for no promise.
    CHECK(make_problem(*descriptor_from_token("wht:i32:n8:bound=0")).wht().bound == 1);
    CHECK(make_problem(*descriptor_from_token("wht:i32:n8")).wht().bound == 0);
    CHECK(make_problem(*descriptor_from_token("wht:i32:b0:n8")).empty);
    expect_failure(PLAIT_ERR_INVALID_DESC, "extents[0]=12",
                   [] { make_problem(*descriptor_from_token("wht:i32:n12")); });
}

namespace {

/// One axis for the oracle: a matrix (null: batch) between strided addresses.
struct plain_axis {
    int64_t length, x, y, signs, diag;
    std::function<int(int64_t, int64_t)> entry;
};

int parity_sign(uint64_t bits) { return __builtin_popcountll(bits) % 2 ? -1 : 1; }

int64_t ordered_row(wht_order order, int64_t row, int64_t n) {
    int64_t gray = order == wht_order::sequency ? row ^ (row >> 1) : row;
    if (order == wht_order::natural) return row;
    int64_t out = 0;
    for (int64_t bit = 1; bit < n; bit *= 2, gray >>= 1) out = out * 2 + (gray & 1);
    return out;
}

std::function<int(int64_t, int64_t)> matrix(int64_t n, wht_factor factor, wht_order order) {
    const int64_t inner = n / wht_factor_order(factor);
    return [=](int64_t k, int64_t j) {
        if (factor == wht_factor::h1)
            return parity_sign(static_cast<uint64_t>(ordered_row(order, k, n) & j));
        return wht_factor_sign(factor, static_cast<int>(k / inner), static_cast<int>(j / inner)) *
               parity_sign(static_cast<uint64_t>(k % inner & j % inner));
    };
}

/// Values that differ from address to address.
int64_t x_at(int64_t address) { return address * 2654435761 % 1009 - 500; }
int64_t sign_at(int64_t bit) { return bit * 40503 % 7 < 3 ? -1 : 1; }
int64_t diag_at(int64_t address) { return address * 7919 % 13 - 6; }

/// Y by address, from the definition: one axis after the other on a dense array of indices.
std::map<int64_t, int64_t> apply_axes(const std::vector<plain_axis> &axes, bool adjoint, bool signs,
                                      bool diag) {
    int64_t count = 1;
    for (const plain_axis &a : axes) count *= a.length;
    std::vector<int64_t> value(static_cast<size_t>(count));
    const auto address = [&](int64_t index, int64_t plain_axis::*stride) {
        int64_t out = 0;
        for (size_t a = axes.size(); a-- > 0; index /= axes[a].length)
            out += index % axes[a].length * axes[a].*stride;
        return out;
    };
    const auto signed_by = [&](int64_t i) {
        return signs ? sign_at(address(i, &plain_axis::signs)) : 1;
    };
    const auto weighted_by = [&](int64_t i) {
        return diag ? diag_at(address(i, &plain_axis::diag)) : 1;
    };
    for (int64_t i = 0; i < count; ++i)
        value[static_cast<size_t>(i)] =
            x_at(address(i, &plain_axis::x)) * (adjoint ? weighted_by(i) : signed_by(i));
    int64_t below = 1;
    for (size_t a = axes.size(); a-- > 0; below *= axes[a].length) {
        if (!axes[a].entry) continue;
        const int64_t n = axes[a].length;
        std::vector<int64_t> next(value.size(), 0);
        for (int64_t i = 0; i < count; ++i) {
            const int64_t k = i / below % n;
            for (int64_t j = 0; j < n; ++j)
                next[static_cast<size_t>(i)] +=
                    (adjoint ? axes[a].entry(j, k) : axes[a].entry(k, j)) *
                    value[static_cast<size_t>(i + (j - k) * below)];
        }
        value = next;
    }
    std::map<int64_t, int64_t> out;
    for (int64_t i = 0; i < count; ++i)
        out[address(i, &plain_axis::y)] =
            value[static_cast<size_t>(i)] * (adjoint ? signed_by(i) : weighted_by(i));
    return out;
}

std::map<int64_t, int64_t> by_normal_form(const wht_problem &p) {
    std::vector<plain_axis> axes;
    for (int i = 0; i < p.axes; ++i) {
        const wht_axis &a = p.axis[i];
        axes.push_back({a.length, a.x_stride, a.y_stride, a.signs_stride, a.diag_stride, nullptr});
        if (a.transformed) axes.back().entry = matrix(a.length, a.factor, p.order);
    }
    return apply_axes(axes, p.adjoint, p.signs, p.diag != scalar::none);
}

/// From the token's words and the tensors, without the normal form.
std::map<int64_t, int64_t> by_descriptor(const descriptor &desc) {
    const std::string token = desc.token();
    std::vector<std::string> fields;
    for (size_t at = 0; at <= token.size();) {
        const size_t end = std::min(token.find(':', at), token.size());
        fields.push_back(token.substr(at, end - at));
        at = end + 1;
    }
    const auto has = [&](const char *word) {
        return std::find(fields.begin(), fields.end(), word) != fields.end();
    };
    const wht_order order = has("seq")   ? wht_order::sequency
                            : has("dya") ? wht_order::dyadic
                                         : wht_order::natural;
    std::map<plait_role, tensor> tensors;
    for (const tensor &t : desc.tensors()) tensors.emplace(t.role, t);
    const bool signs = tensors.count(PLAIT_SIGNS) != 0, diag = tensors.count(PLAIT_DIAG) != 0;
    const tensor &x = tensors.at(PLAIT_X);
    std::vector<plain_axis> axes;
    for (size_t a = 0; a < x.extents.size(); ++a) {
        const std::string &field = fields[a + 2];
        const int64_t n = x.extents[a];
        axes.push_back({n, x.strides[a], tensors.at(PLAIT_Y).strides[a],
                        signs ? tensors.at(PLAIT_SIGNS).strides[a] : 0,
                        diag ? tensors.at(PLAIT_DIAG).strides[a] : 0, nullptr});
        if (field[0] != 'n') continue;
        const size_t dot = field.find('.');
        const auto factor = dot == field.npos
                                ? wht_factor::h1
                                : static_cast<wht_factor>(*factor_from_name(field.substr(dot + 1)));
        axes.back().entry = matrix(n, factor, order);
        for (const std::string &option : fields) {
            if (option.rfind("bits=", 0) != 0) continue;
            const int64_t mask = std::stoll(option.substr(5), nullptr, 16);
            axes.back().entry = [mask](int64_t k, int64_t j) {
                return ((k ^ j) & ~mask) != 0 ? 0
                                              : parity_sign(static_cast<uint64_t>(k & j & mask));
            };
        }
    }
    return apply_axes(axes, has("adj"), signs, diag);
}

} // namespace

TEST_CASE("the normal form means what the descriptor says") {
    dice d(test_seed() + 2);
    int shorter = 0, longer = 0;
    for (int i = 0; i < rounds(400); ++i) {
        const wht_descriptor desc = small_descriptor(d);
        INFO(desc.token());
        REQUIRE_NOTHROW(desc.check());
        const wht_problem p = make_problem(desc).wht();
        INFO(text_of(p));
        CHECK(by_normal_form(p) == by_descriptor(desc));
        const int rank = static_cast<int>(desc.tensors()[0].extents.size());
        shorter += p.axes < rank;
        longer += p.axes > rank;
        // Nothing is left to merge, and every axis has a length.
        for (int a = 0; a < p.axes; ++a) CHECK(p.axis[a].length > 1);
    }
    CHECK(shorter > 0);
    CHECK(longer > 0);
}
