#include "tests/unit/support.h"

#include <algorithm>
#include <cstdlib>
#include <limits>

namespace unit {

uint64_t test_seed() {
    static const uint64_t seed = [] {
        const char *fixed = std::getenv("PLAIT_TEST_SEED");
        const uint64_t value = fixed ? std::strtoull(fixed, nullptr, 10) : std::random_device{}();
        MESSAGE("PLAIT_TEST_SEED=", value);
        return value;
    }();
    return seed;
}

int rounds(int usual) {
    const char *factor = std::getenv("PLAIT_TEST_ROUNDS");
    return usual * (factor ? std::max(1, std::atoi(factor)) : 1);
}

namespace {

const std::vector<plait_dtype> data_types = {PLAIT_F64,  PLAIT_F32, PLAIT_F16, PLAIT_BF16,
                                             PLAIT_C128, PLAIT_C64, PLAIT_I32, PLAIT_I64};
const std::vector<plait_dtype> input_types = {PLAIT_F64, PLAIT_F16, PLAIT_C64, PLAIT_I32,
                                              PLAIT_I8,  PLAIT_I16, PLAIT_B1};
const std::vector<plait_wht_factor> factors = {
    PLAIT_H12_PALEY2, PLAIT_H12_SLOANE, PLAIT_H20_WILLIAMSON, PLAIT_H28_WILLIAMSON,
    PLAIT_H40,        PLAIT_H4_REGULAR, PLAIT_H36_PALEY2};

int64_t any_count(dice &d) {
    switch (d.between(0, 5)) {
    case 0: return d.between(0, 3);
    case 1: return std::numeric_limits<int64_t>::max() - d.between(0, 2);
    case 2: return d.between(0, std::numeric_limits<int64_t>::max());
    case 3: return d.between(0, 1 << 20);
    default: return int64_t{1} << d.between(0, 62);
    }
}

double any_scale(dice &d) {
    const std::vector<double> some = {1.0, 0.5, 1.0 / 3.0, 0.0, -0.0, 1e-300, 5e-324, -1.7e308};
    if (d.one_in(2)) return d.pick(some);
    return static_cast<double>(d.between(-1000000, 1000000)) / 997.0;
}

std::vector<int64_t> any_strides(dice &d, size_t rank) {
    std::vector<int64_t> out(rank);
    for (int64_t &s : out) s = any_count(d);
    return out;
}

} // namespace

wht_descriptor any_descriptor(dice &d) {
    std::vector<int64_t> extents(static_cast<size_t>(d.between(1, PLAIT_MAX_RANK)));
    for (int64_t &e : extents) e = any_count(d);
    wht_descriptor desc = make_wht(d.pick(d.one_in(2) ? data_types : input_types), extents);
    const auto rank = static_cast<int64_t>(extents.size());
    if (d.one_in(2)) desc.set_axes(static_cast<uint32_t>(d.between(0, (1 << rank) - 1)));
    if (d.one_in(4)) desc.set_bits(d.bits() >> d.between(0, 63));
    if (d.one_in(3)) desc.set_factor(static_cast<int>(d.between(0, rank - 1)), d.pick(factors));
    if (d.one_in(4)) desc.set_order(static_cast<plait_wht_order>(d.between(0, 2)));
    if (d.one_in(4)) desc.set_adjoint(true);
    if (d.one_in(2)) desc.set_scale(any_scale(d));
    if (d.one_in(4)) desc.set_bound(any_count(d));
    if (d.one_in(8))
        desc.set_factor_order(static_cast<int>(d.between(0, rank - 1)),
                              static_cast<int>(d.between(2, 256)));
    if (d.one_in(8)) desc.set_rows(any_count(d));
    if (d.one_in(8)) desc.set_group(std::max<int64_t>(any_count(d), 1));
    if (d.one_in(8)) desc.set_histogram({std::max<int64_t>(any_count(d), 1), -any_count(d), 3});
    if (d.one_in(8)) desc.use(PLAIT_AMAX, true);
    if (d.one_in(8)) desc.use(PLAIT_DIAG_MID, true);
    for (const plait_role role : {PLAIT_X, PLAIT_Y, PLAIT_SIGNS, PLAIT_DIAG, PLAIT_OVERFLOW}) {
        if (d.one_in(3)) desc.use(role, role == PLAIT_X || d.one_in(2));
        const size_t shape = role == PLAIT_OVERFLOW ? 1 : extents.size();
        if (d.one_in(4)) set_strides(desc, role, any_strides(d, shape));
        if (d.one_in(4)) desc.set_alignment(role, 1 << d.between(0, 12));
        if (d.one_in(4) && role != PLAIT_SIGNS && role != PLAIT_OVERFLOW) {
            const plait_dtype type = d.pick(data_types);
            if (role != PLAIT_DIAG || (type != PLAIT_I32 && type != PLAIT_I64))
                desc.set_dtype(role, type);
        }
    }
    if (d.one_in(4)) desc.set_alias(PLAIT_Y, PLAIT_X);
    return desc;
}

wht_descriptor small_descriptor(dice &d) {
    const auto rank = static_cast<size_t>(d.between(1, 5));
    const auto axes = static_cast<uint32_t>(d.between(0, (1 << rank) - 1));
    const bool masked = d.one_in(3), ordered = d.one_in(4);
    std::vector<int64_t> extents(rank);
    std::vector<plait_wht_factor> named(rank, PLAIT_H1);
    int64_t elements = 1;
    for (size_t a = 0; a < rank; ++a) {
        const int64_t room = 2000 / elements;
        if (!(axes >> a & 1u)) {
            extents[a] = d.between(1, std::min<int64_t>(room, 5));
        } else {
            extents[a] = int64_t{1} << d.between(0, masked ? 6 : 3);
            while (extents[a] > room) extents[a] /= 2;
            if (!masked && !ordered && d.one_in(4) && extents[a] * 12 <= room) {
                named[a] = d.one_in(2) ? PLAIT_H12_PALEY2 : PLAIT_H12_SLOANE;
                extents[a] *= 12;
            }
        }
        elements *= extents[a];
    }
    const plait_dtype type = d.one_in(2) ? PLAIT_F64 : PLAIT_I64;
    wht_descriptor desc = make_wht(type, extents);
    desc.set_axes(axes);
    for (size_t a = 0; a < rank; ++a) desc.set_factor(static_cast<int>(a), named[a]);
    if (masked && axes != 0 && (axes & (axes - 1)) == 0) {
        for (size_t a = 0; a < rank; ++a)
            if (axes >> a & 1u) desc.set_bits(static_cast<uint64_t>(d.between(0, extents[a] - 1)));
    } else if (ordered) {
        desc.set_order(d.one_in(2) ? PLAIT_SEQUENCY : PLAIT_DYADIC);
    }
    if (d.one_in(2)) desc.set_adjoint(true);

    // Layouts: axes nested in any order, gaps here and there.
    const auto nested = [&](bool gaps) {
        std::vector<size_t> order(rank);
        for (size_t a = 0; a < rank; ++a) order[a] = rank - 1 - a;
        if (d.one_in(3)) {
            for (size_t a = rank; a > 1; --a)
                std::swap(order[a - 1],
                          order[static_cast<size_t>(d.between(0, static_cast<int64_t>(a) - 1))]);
        }
        std::vector<int64_t> strides(rank);
        int64_t next = 1;
        for (const size_t a : order) {
            if (gaps && d.one_in(4)) next += d.between(1, 3);
            strides[a] = next;
            next *= extents[a];
        }
        return strides;
    };
    if (d.one_in(2)) {
        const std::vector<int64_t> strides = nested(d.one_in(2));
        set_strides(desc, PLAIT_X, strides);
        set_strides(desc, PLAIT_Y, d.one_in(2) ? strides : nested(d.one_in(2)));
    }
    if (d.one_in(3)) {
        desc.use(PLAIT_SIGNS, true);
        if (d.one_in(2)) set_strides(desc, PLAIT_SIGNS, nested(true));
    }
    if (type == PLAIT_F64 && d.one_in(3)) {
        desc.use(PLAIT_DIAG, true);
        if (d.one_in(2)) set_strides(desc, PLAIT_DIAG, nested(true));
    }
    return desc;
}

const std::vector<std::string> &corpus() {
    static const std::vector<std::string> tokens = {
        // the examples of the interface
        "wht:bf16:b8192:n4096:scale=0.015625",
        "wht:f32:n1024:b300",
        "wht:f32:b64:n1536.h12p2:y@x",
        "wht:f32:b16:n256:n256:seq",
        "wht:bf16:b4096:b28:n128:+signs:signs.s0.128.1",
        "wht:c64:n1073741824:bits=3ff:y@x",
        "wht:i32:n65536:bound=1:+overflow",
        "wht:f16:b8192:n4096:x.s8192.1.a4:y.f32",
        // LLM rotations
        "wht:f16:b1:n16:scale=0.25",
        "wht:bf16:b64:n28672.h28w:scale=0.0059056:+signs",
        "wht:f16:b64:n10240.h40:adj",
        "wht:bf16:b8:b32:b7:n512:x.s131072.4096.512.1:y.f32",
        // gates and IQP circuits
        "wht:c128:n1048576:bits=80001:scale=0.5:y@x",
        "wht:c64:n17179869184:scale=7.62939453125e-06:+diag:y@x",
        "wht:c64:n1048576:+diag:diag.f32",
        // Pauli decomposition
        "wht:c128:n4096:n4096:scale=5.960464477539063e-08",
        // Boolean functions
        "wht:i64:b255:n1073741824:+overflow:y.i32",
        "wht:i32:n16",
        // correlation attacks
        "wht:f32:n1099511627776",
        "wht:i64:n1099511627776",
        // sketching
        "wht:f64:n16777216:b300:scale=0.000244140625:+signs",
        "wht:f32:n1024:b300:adj:x.s1.1024",
        // vector search
        "wht:f32:b1000:n128:n12.h12p2:scale=0.025515518153991442",
        "wht:f32:b10000:n768.h12s",
        // imaging
        "wht:f32:b100:n64:n64:seq",
        "wht:f64:n512:n512:dya",
        // sparse WHT
        "wht:f64:b100000:n256:x.s300.1.a8",
        // around the transform
        "wht:i8:b4:n24.m12:hist=9.-16.4:-y+amax",
        "wht:b1:n1024:rows=100:+status:rows.i32",
        "wht:bf16:b64:n688.h172w:adj",
        "wht:f32:b8:n4096:scale=0.015625:group=128:+amax+scales:y.e4m3",
        "wht:c64:n1024:+diag+diag_in+diag_mid:y@x:diag_in.f32",
        // edges
        "wht:f32:n1",
        "wht:f32:b0:n8",
        "wht:f32:b8",
        "wht:f32:n2:b1:n2:b1:n2:b1:n2:b1",
    };
    return tokens;
}

} // namespace unit
