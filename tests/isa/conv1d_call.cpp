#include "tests/isa/conv1d_call.h"

#include "lib/cpu/conv1d/ref_args.h"
#include "lib/cpu/conv1d/simd_args.h"
#include "lib/cpu/kernel_table.h"

#include <algorithm>
#include <doctest/doctest.h>
#include <sstream>

namespace isa_test {

namespace cpu = plait::impl::cpu;

namespace {

constexpr uint8_t pattern = 0x5a;

/// Strides of [row][channel][time] for a layout, in elements, and the elements they reach.
int64_t lay_out(layout where, const int64_t *extent, conv1d_view *v) {
    const int64_t c = extent[1], t = extent[2], kib = 1024 / scalar_bytes(v->type);
    const auto up = [kib](int64_t n) { return (n + kib - 1) / kib * kib; };
    switch (where) {
    case layout::bct: *v = {v->type, 1, c * t, t, 1}; break;
    case layout::btc: *v = {v->type, 1, c * t, 1, c}; break;
    case layout::pitched_bct: *v = {v->type, 1, (c + 1) * (t + 3), t + 3, 1}; break;
    case layout::pitched_btc: *v = {v->type, 1, (t + 2) * (c + 5), 1, c + 5}; break;
    case layout::scattered: *v = {v->type, 1, 2 * c * (t + 1), 2 * (t + 1), 2}; break;
    case layout::crowded_bct: *v = {v->type, 1, c * up(t), up(t), 1}; break;
    case layout::crowded_btc: *v = {v->type, 1, t * up(c), 1, up(c)}; break;
    }
    return extent[0] * v->b + c * v->c + t * v->t + 1;
}

double value_at(uint64_t seed, const char *name, int64_t b, int64_t c, int64_t t, bool exact) {
    uint64_t h = seed;
    for (const char *s = name; *s; ++s) h = (h ^ static_cast<uint64_t>(*s)) * 0x100000001b3u;
    for (const int64_t i : {b, c, t}) {
        h = (h ^ static_cast<uint64_t>(i)) * 0x9e3779b97f4a7c15u;
        h ^= h >> 29;
    }
    if (exact) return static_cast<double>(static_cast<int64_t>(h % 9) - 4);
    return static_cast<double>(static_cast<int64_t>(h >> 11)) * 0x1p-52 - 1;
}

} // namespace

void conv1d_call::add(const char *name, conv1d_view *view, int64_t rows, int64_t channels,
                      int64_t time, layout where, bool input) {
    if (!view->used()) return;
    const int64_t extent[3] = {rows, channels, time};
    const int64_t elements = lay_out(where, extent, view);
    conv1d_tensor t{*view, {rows, channels, time}, buffer(view->type, elements, 1, pattern)};
    if (input)
        for (int64_t b = 0; b < rows; ++b)
            for (int64_t c = 0; c < channels; ++c)
                for (int64_t i = 0; i < time; ++i)
                    put(view->type, t.data.at(), b * view->b + c * view->c + i * view->t,
                        value_at(seed, name, b, c, i, exact));
    at.emplace(name, std::move(t));
}

void conv1d_call::place(layout of_y) {
    at.clear();
    const layout where = of_y == layout::crowded_bct   ? layout::btc
                         : of_y == layout::crowded_btc ? layout::bct
                                                       : of_y;
    const int64_t states = p.pooled ? p.slots : p.sequences;
    const bool update = p.direction == conv1d_direction::update;
    add("x", &p.x, p.batch, p.channels, p.length, where, true);
    add("y", &p.y, p.batch, p.channels, p.length, of_y, false);
    add("w", &p.w, 1, p.channels, p.width, layout::bct, true);
    add("bias", &p.bias, 1, p.channels, 1, layout::bct, true);
    add("state_in", &p.state_in, states, p.channels, p.entries, where, true);
    if (p.alias) { // also an update: the state is both
        p.state_out = p.state_in;
    } else {
        add("state_out", &p.state_out, states, p.channels, p.entries, where, false);
    }
    add("dx", &p.dx, p.batch, p.channels, p.length, where, false);
    add("dy", &p.dy, p.batch, p.channels, p.length, where, true);
    add("dw", &p.dw, 1, p.channels, p.width, layout::bct, false);
    add("dbias", &p.dbias, 1, p.channels, 1, layout::bct, false);
    add("dstate_in", &p.dstate_in, states, p.channels, p.entries, where, false);
    add("dstate_out", &p.dstate_out, states, p.channels, p.entries, where, true);
    CHECK(update == (p.direction == conv1d_direction::update));
}

void conv1d_call::run(const std::string &kernel, int threads) {
    const auto of = [&](const char *name) -> void * {
        const auto found = at.find(name);
        return found == at.end() ? nullptr : found->second.data.at();
    };
    const int64_t bytes = kernel == "conv1d.ref" ? cpu::conv1d_ref_scratch_bytes(p, threads)
                                                 : cpu::conv1d_simd_layout_of(p).bytes(threads);
    REQUIRE(bytes < int64_t{1} << 30);
    buffer scratch(scalar::f64, bytes / 8 + 9, 0, pattern);
    cpu::conv1d_args a{};
    a.x = of("x");
    a.y = of("y");
    a.w = of("w");
    a.bias = of("bias");
    const bool update = p.direction == conv1d_direction::update;
    if (update)
        a.state = of("state_in");
    else {
        a.state_in = of("state_in");
        if (p.state_out.used()) a.state_out = of(p.alias ? "state_in" : "state_out");
    }
    a.position = p.ring ? heads.data() : nullptr;
    a.slots = p.pooled ? slots.data() : nullptr;
    std::vector<int32_t> narrow(offsets.begin(), offsets.end());
    if (p.varlen)
        a.cu_seqlens =
            p.index == scalar::i64 ? static_cast<const void *>(offsets.data()) : narrow.data();
    a.seq_idx = p.seq_idx.used() ? ids.data() : nullptr;
    a.status = p.status ? &status : nullptr;
    a.dx = of("dx");
    a.dy = of("dy");
    a.dw = of("dw");
    a.dbias = of("dbias");
    a.dstate_in = of("dstate_in");
    a.dstate_out = of("dstate_out");
    a.scratch = scratch.at();
    a.problem = p;
    a.stream = seed % 2 == 0;
    cpu::find_kernel(kernel.c_str())(&a, threads);
    const auto *end = static_cast<const uint8_t *>(scratch.at()) + bytes;
    CHECK(std::count(end, end + 64, pattern) == 64);
}

std::string conv1d_call::text() const {
    std::ostringstream s;
    s << "seed " << seed << " direction " << static_cast<int>(p.direction) << " b" << p.batch
      << " c" << p.channels << " t" << p.length << " k" << p.width << " entries " << p.entries
      << " x " << scalar_name(p.x.type) << " y " << scalar_name(p.y.type) << " w "
      << scalar_name(p.w.type) << " strides " << p.x.b << ' ' << p.x.c << ' ' << p.x.t
      << (p.silu ? " silu" : "") << (p.residual ? " residual" : "") << (p.varlen ? " varlen" : "")
      << (p.ring ? " ring" : "") << (p.pooled ? " pooled" : "") << (p.alias ? " alias" : "")
      << (p.status ? " status" : "") << (p.seq_idx.used() ? " seq_idx" : "")
      << (p.state_in.used() ? " state_in" : "") << (p.state_out.used() ? " state_out" : "");
    return s.str();
}

conv1d_call random_conv1d(rng &r, conv1d_direction direction) {
    conv1d_call call;
    conv1d_problem &p = call.p;
    const auto chance = [&](int percent) { return pick(r, 0, 99) < percent; };
    const bool backward = direction == conv1d_direction::backward;
    const bool update = direction == conv1d_direction::update;
    call.seed = r();
    call.exact = chance(60);
    p.direction = direction;
    p.silu = !call.exact && chance(75);
    p.residual = chance(30);
    p.varlen = !update && chance(30);
    p.batch = p.varlen ? 1 : pick(r, 0, 3);
    p.channels = chance(20) ? pick(r, 60, 140) : pick(r, 0, 20);
    p.length = update       ? pick(r, 0, 6)
               : chance(15) ? pick(r, 1000, p.channels > 30 ? 1100 : 4200)
                            : pick(r, 0, 90);
    p.width = chance(60) ? pick(r, 2, 4) : chance(80) ? pick(r, 1, 12) : pick(r, 13, 256);
    p.entries = p.width - 1 + (chance(30) ? pick(r, 1, 9) : 0);
    p.ring = update && p.entries > 0 && chance(50);
    p.pooled = !backward && chance(40);
    p.sequences = p.varlen ? pick(r, 0, 6) : p.batch;
    p.max_length = p.length;
    p.index = p.varlen ? (chance(50) ? scalar::i64 : scalar::i32) : scalar::none;
    p.pad = chance(50) ? -1 : 1000;
    p.slots = p.pooled ? p.sequences + pick(r, 1, 3) : 0;
    p.status = (p.varlen || p.pooled) && chance(50);

    const scalar kinds[] = {scalar::f32, scalar::f32, scalar::bf16, scalar::f16, scalar::f64};
    const scalar x = kinds[pick(r, 0, 4)];
    const auto kind = [&] { return chance(80) ? x : kinds[pick(r, 0, 4)]; };
    const auto use = [&](conv1d_view &v, bool used) { v.type = used ? kind() : scalar::none; };
    p.x.type = x;
    use(p.y, !backward);
    use(p.w, true);
    use(p.bias, chance(60));
    use(p.state_in, update || chance(50));
    use(p.state_out, !backward && !update && (chance(60) || (p.pooled && !p.state_in.used())));
    p.alias = update || (p.state_in.used() && p.state_out.used() && chance(40));
    if (p.alias) p.state_out.type = p.state_in.type;
    p.seq_idx.type = !p.varlen && !update && chance(35) ? scalar::i32 : scalar::none;
    use(p.dx, backward && chance(90));
    use(p.dy, backward);
    use(p.dw, backward && chance(90));
    use(p.dbias, backward && p.bias.used() && chance(90));
    use(p.dstate_in, backward && p.state_in.used() && chance(90));
    use(p.dstate_out, backward && chance(50));
    p.accumulator = scalar::f32;
    for (const conv1d_view *v : {&p.x, &p.y, &p.w, &p.bias, &p.state_in, &p.state_out, &p.dx, &p.dy,
                                 &p.dw, &p.dbias, &p.dstate_in, &p.dstate_out})
        if (v->type == scalar::f64) p.accumulator = scalar::f64;

    if (p.varlen) {
        for (int64_t n = 0; n <= p.sequences; ++n) call.offsets.push_back(pick(r, 0, p.length));
        std::sort(call.offsets.begin(), call.offsets.end());
        if (chance(80)) call.offsets[0] = 0;
        if (chance(20)) call.offsets[pick(r, 0, p.sequences)] = pick(r, -5, p.length + 5);
        if (chance(20)) p.max_length = pick(r, 0, p.length);
    }
    std::vector<int32_t> pool;
    for (int32_t i = 0; i < p.slots; ++i) pool.push_back(i);
    std::shuffle(pool.begin(), pool.end(), r);
    for (int64_t n = 0; p.pooled && n < p.sequences; ++n) {
        call.slots.push_back(chance(20) ? p.pad : pool[static_cast<size_t>(n)]);
        // Two live rows with one slot are defined only where STATUS is asked for.
        if (p.status && n > 0 && chance(20)) call.slots[n] = call.slots[pick(r, 0, n - 1)];
        if (chance(10)) call.slots[n] = static_cast<int32_t>(p.slots + pick(r, 0, 5));
    }
    for (int64_t n = 0; p.ring && n < p.batch; ++n)
        call.heads.push_back(static_cast<int32_t>(chance(20) ? INT32_MAX : pick(r, -3, 50)));
    if (p.seq_idx.used()) {
        p.seq_idx.b = p.length;
        p.seq_idx.t = 1;
        int32_t id = 0;
        for (int64_t i = 0; i < p.batch * p.length; ++i) {
            if (chance(p.length > 500 ? 1 : 25)) id = static_cast<int32_t>(pick(r, -2, 3));
            call.ids.push_back(id);
        }
    }
    return call;
}

} // namespace isa_test
