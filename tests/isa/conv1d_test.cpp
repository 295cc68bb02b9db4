// The SIMD kernels of conv1d against conv1d.ref, on random calls with every feature, at every
// instruction level; and the bits that must not change: threads, layouts, chunks, decoding.
#include "lib/cpu/conv1d/simd_args.h"
#include "tests/isa/conv1d_call.h"
#include "tests/isa/levels.h"

#include <cmath>
#include <cstring>
#include <doctest/doctest.h>

using namespace isa_test;
using namespace plait::impl;

namespace {

const char *simd_kernel(conv1d_direction d) {
    return d == conv1d_direction::forward    ? "conv1d.fwd_simd"
           : d == conv1d_direction::backward ? "conv1d.bwd_simd"
                                             : "conv1d.update_simd";
}

constexpr conv1d_direction directions[] = {conv1d_direction::forward, conv1d_direction::backward,
                                           conv1d_direction::update};

/// Elements of a whole buffer, gaps included, that differ by more than roundings explain.
int64_t wrong(const conv1d_call &call, const std::string &name, const conv1d_tensor &got,
              const conv1d_tensor &expected) {
    const scalar type = got.view.type;
    const size_t size = static_cast<size_t>(scalar_bytes(type));
    const int64_t elements = static_cast<int64_t>((got.data.bytes.size() - 192) / size);
    // Sums of products of values up to 1; those of dw and dbias have a term for each token.
    const bool sum = name == "dw" || name == "dbias";
    const double terms = static_cast<double>(sum ? call.p.batch * call.p.length : call.p.width);
    const double unit = call.p.accumulator == scalar::f64 ? 1e-13 : 2e-6;
    int64_t count = 0;
    for (int64_t i = 0; i < elements; ++i) {
        const auto *a =
            static_cast<const uint8_t *>(got.data.at()) + i * static_cast<int64_t>(size);
        const auto *b =
            static_cast<const uint8_t *>(expected.data.at()) + i * static_cast<int64_t>(size);
        if (std::memcmp(a, b, size) == 0) continue;
        const double u = get(type, a, 0).real(), v = get(type, b, 0).real();
        if (u == v) continue; // zeros of both signs
        const double tolerance = call.exact ? 0 : unit * (4 + terms) + 2.1 * half_ulp(type, v);
        if (!(std::abs(u - v) <= tolerance)) ++count;
    }
    return count;
}

void compare(const conv1d_call &got, const conv1d_call &expected) {
    CHECK(got.status == expected.status);
    for (const auto &item : got.at)
        CHECK_MESSAGE(wrong(got, item.first, item.second, expected.at.at(item.first)) == 0,
                      item.first);
}

/// Whether two tensors hold the same bits at every place, whatever their strides are.
bool same_bits(const conv1d_tensor &a, const conv1d_tensor &b) {
    const auto size = static_cast<size_t>(scalar_bytes(a.view.type));
    for (int64_t i = 0; i < a.extent[0]; ++i)
        for (int64_t c = 0; c < a.extent[1]; ++c)
            for (int64_t t = 0; t < a.extent[2]; ++t) {
                const auto place = [&](const conv1d_tensor &of) {
                    return static_cast<const uint8_t *>(of.data.at()) +
                           (i * of.view.b + c * of.view.c + t * of.view.t) *
                               static_cast<int64_t>(size);
                };
                if (std::memcmp(place(a), place(b), size) != 0) return false;
            }
    return true;
}

constexpr layout layouts[] = {layout::bct,         layout::btc,       layout::pitched_bct,
                              layout::pitched_btc, layout::scattered, layout::crowded_bct,
                              layout::crowded_btc};

} // namespace

TEST_CASE("conv1d simd: random calls agree with the definition") {
    const uint64_t s = seed("conv1d simd");
    at_every_level([&](const std::string &) {
        rng r(s);
        for (const conv1d_direction d : directions)
            for (int i = 0; i < 120; ++i) {
                conv1d_call call = random_conv1d(r, d);
                call.place(layouts[i % 7]);
                INFO(call.text());
                conv1d_call expected = call;
                expected.run("conv1d.ref", 1);
                call.run(simd_kernel(d), 1 + i % 3);
                compare(call, expected);
            }
    });
}

TEST_CASE("conv1d simd: y across x leaves in runs of a cache line where its rows crowd a cache") {
    for (const int64_t row : {4096, 4100}) { // f32: 16 KiB, and no multiple of 1 KiB
        conv1d_problem p{};
        p.x.type = p.y.type = p.accumulator = scalar::f32;
        p.batch = p.sequences = 1;
        p.channels = p.length = p.max_length = 4096;
        p.width = 4;
        conv1d_view time{scalar::f32, 16, 0, row, 1}, channels{scalar::f32, 16, 0, 1, row};
        const auto turned = [&p](const conv1d_view &x, const conv1d_view &y) {
            p.x = x;
            p.y = y;
            return cpu::conv1d_simd_layout_of(p).turned;
        };
        CHECK(turned(time, channels) == (row == 4096 ? 16 : 0));
        CHECK(turned(channels, time) == (row == 4096 ? 16 : 0));
        CHECK(turned(time, time) == 0);
        CHECK(turned(channels, channels) == 0);
    }
}

TEST_CASE("conv1d simd: threads and layouts change no bit") {
    const uint64_t s = seed("conv1d simd bits");
    at_every_level([&](const std::string &) {
        rng r(s);
        for (const conv1d_direction d : directions)
            for (int i = 0; i < 40; ++i) {
                conv1d_call base = random_conv1d(r, d);
                base.exact = false;
                base.place(layout::bct);
                conv1d_call team = base, other = base;
                INFO(base.text());
                base.run(simd_kernel(d), 1);
                team.run(simd_kernel(d), 4);
                for (const auto &item : base.at)
                    CHECK_MESSAGE(same_bits(item.second, team.at.at(item.first)), item.first);
                other.place(layouts[1 + i % 6]);
                other.run(simd_kernel(d), 2);
                for (const auto &item : base.at) // dw, dbias: pieces differ in length
                    if (item.first != "dw" && item.first != "dbias")
                        CHECK_MESSAGE(same_bits(item.second, other.at.at(item.first)), item.first);
            }
    });
}

TEST_CASE("conv1d simd: a row in chunks and in decoding steps has the bits of the whole") {
    const uint64_t s = seed("conv1d simd chunks");
    at_every_level([&](const std::string &) {
        rng r(s);
        for (int i = 0; i < 40; ++i) {
            conv1d_call whole;
            conv1d_problem &p = whole.p;
            const scalar kinds[] = {scalar::f32, scalar::bf16, scalar::f16, scalar::f64};
            const scalar type = kinds[i % 4];
            p.silu = i % 3 != 0;
            p.batch = p.sequences = 2;
            p.channels = pick(r, 1, 70);
            p.length = p.max_length = pick(r, 1, 80);
            p.width = i % 2 ? 4 : pick(r, 2, 9);
            p.entries = p.width - 1 + pick(r, 0, 2);
            p.alias = true;
            p.residual = i % 5 == 0;
            p.accumulator = type == scalar::f64 ? scalar::f64 : scalar::f32;
            p.x.type = p.y.type = p.w.type = p.bias.type = p.state_in.type = p.state_out.type =
                type;
            whole.seed = r();
            const layout where = i % 2 ? layout::btc : layout::bct;
            whole.place(where);
            conv1d_call parts = whole;
            INFO(whole.text());
            whole.run("conv1d.fwd_simd", 2);
            // The same tensors, of which a call sees `step` tokens from `from` on.
            const auto run_part = [&](int64_t from, int64_t step, bool update) {
                conv1d_call part = parts;
                part.p.length = part.p.max_length = step;
                if (update) part.p.direction = conv1d_direction::update;
                const int64_t bytes = scalar_bytes(type);
                part.at.at("x").data.offset += from * p.x.t * bytes;
                part.at.at("y").data.offset += from * p.y.t * bytes;
                part.run(update ? "conv1d.update_simd" : "conv1d.fwd_simd", 1);
                parts.at.at("y").data.bytes = part.at.at("y").data.bytes;
                parts.at.at("state_in").data.bytes = part.at.at("state_in").data.bytes;
            };
            // Buffers are copied, not shared: each keeps the place of its first element.
            for (int64_t t = 0; t < p.length;) {
                const int64_t step = std::min<int64_t>(p.length - t, pick(r, 1, 9));
                run_part(t, step, pick(r, 0, 1) == 1);
                t += step;
            }
            CHECK(same_bits(whole.at.at("y"), parts.at.at("y")));
            CHECK(same_bits(whole.at.at("state_in"), parts.at.at("state_in")));
        }
    });
}

TEST_CASE("conv1d simd: SiLU is accurate, and finite for finite sums, in every lane") {
    at_every_level([&](const std::string &) {
        conv1d_call call;
        conv1d_problem &p = call.p;
        p.silu = true;
        p.batch = p.sequences = 1;
        p.channels = 3;
        p.length = p.max_length = 4001;
        p.width = 1;
        p.accumulator = scalar::f32;
        p.x.type = p.y.type = p.w.type = scalar::f32;
        for (const layout where : {layout::bct, layout::btc}) {
            call.place(where);
            const auto place = [&](const conv1d_view &v, int64_t c, int64_t t) {
                return c * v.c + t * v.t;
            };
            const float special[] = {-1000,    -3e38f, 3e38f, -88,   -91,
                                     INFINITY, NAN,    0,     -0.0f, 1e-30f};
            for (int64_t c = 0; c < 3; ++c) {
                put(scalar::f32, call.at.at("w").data.at(), c, 1.0);
                for (int64_t t = 0; t < p.length; ++t)
                    put(scalar::f32, call.at.at("x").data.at(), place(p.x, c, t),
                        t < 10 ? special[t] : (static_cast<double>(t) - 2000) * 0.05 + 0.001 * c);
            }
            call.run("conv1d.fwd_simd", 1);
            int64_t bad = 0;
            for (int64_t c = 0; c < 3; ++c)
                for (int64_t t = 0; t < p.length; ++t) {
                    const double x =
                        get(scalar::f32, call.at.at("x").data.at(), place(p.x, c, t)).real();
                    const double y =
                        get(scalar::f32, call.at.at("y").data.at(), place(p.y, c, t)).real();
                    const double right = x / (1 + std::exp(-x));
                    if (std::isnan(x) || std::isinf(x))
                        bad += !(std::isnan(x) ? std::isnan(y) : y == x);
                    else
                        bad += !(std::abs(y - right) <= 6e-7 * std::abs(right) + 0x1p-149);
                }
            CHECK(bad == 0);
        }
    });
}
