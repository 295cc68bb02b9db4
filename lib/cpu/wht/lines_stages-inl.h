// The arithmetic of wht.lines on a dense tile, compiled once per instruction level: stages between
// the lanes of a vector, between vectors at a distance, and factor matrices. A tile is work for a
// list of operations in ascending distance; those that fit L1 run over one block after the other.
#if defined(PLAIT_LIB_CPU_WHT_LINES_STAGES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#    ifdef PLAIT_LIB_CPU_WHT_LINES_STAGES_INL_H_
#        undef PLAIT_LIB_CPU_WHT_LINES_STAGES_INL_H_
#    else
#        define PLAIT_LIB_CPU_WHT_LINES_STAGES_INL_H_
#    endif

#    include "lib/cpu/wht/lines_args.h"
#    include "lib/cpu/wht/lines_factor.h"

#    include "lib/cpu/wht/simd_registers-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plait::impl::cpu {
namespace HWY_NAMESPACE {
namespace lines {

/// Sums and differences as they are; integers modulo 2^w.
template <typename T> struct plain_sums {
    using type = T;
    static constexpr bool checked = false;

    template <int bit> HWY_INLINE vec<T> lanes_stage(const lane_signs<T> &s, vec<T> v) {
        return butterfly_lanes<bit, T>(s, v);
    }
    HWY_INLINE void pair(vec<T> &a, vec<T> &b) {
        const vec<T> sum = hn::Add(a, b);
        b = hn::Sub(a, b);
        a = sum;
    }
    HWY_INLINE vec<T> product(vec<T> sum, vec<T>, vec<T>) { return sum; }
    bool overflow() const { return false; }
};

/// Integers modulo 2^w that remember in their sign bits whether any sum did not fit.
template <typename T> struct checked_sums {
    using type = T;
    static constexpr bool checked = true;
    static constexpr int half = sizeof(T) * 4;
    vec<T> seen;

    HWY_INLINE checked_sums() : seen(hn::Zero(tag<T>())) {}

    template <int bit> HWY_INLINE vec<T> lanes_stage(const lane_signs<T> &s, vec<T> v) {
#    if HWY_TARGET != HWY_SCALAR
        const vec<T> r = butterfly_lanes<bit, T>(s, v);
        const vec<T> other = partner<bit, T>(v);
        // other + v where the mask is 0, other - v where it is -1.
        const vec<T> alike = hn::Xor(hn::Xor(other, v), s.of[bit]);
        seen = hn::Or(seen, hn::AndNot(alike, hn::Xor(other, r)));
        return r;
#    else
        (void)s;
        return v;
#    endif
    }
    HWY_INLINE void pair(vec<T> &a, vec<T> &b) {
        const vec<T> sum = hn::Add(a, b), difference = hn::Sub(a, b);
        const vec<T> unlike = hn::Xor(a, b);
        seen = hn::Or(seen, hn::AndNot(unlike, hn::Xor(a, sum)));
        seen = hn::Or(seen, hn::And(unlike, hn::Xor(a, difference)));
        a = sum;
        b = difference;
    }
    /// A finished product from the products of the upper and lower halves, of which neither can
    /// overflow: partial sums may leave the range.
    HWY_INLINE vec<T> product(vec<T>, vec<T> upper, vec<T> lower) {
        const vec<T> carried = hn::Add(upper, hn::ShiftRight<half>(lower));
        const vec<T> kept = hn::ShiftLeft<half>(carried);
        seen = hn::Or(seen, hn::Xor(hn::ShiftRight<half>(kept), carried));
        const vec<T> mask = hn::Set(tag<T>(), static_cast<T>((int64_t{1} << half) - 1));
        return hn::Or(kept, hn::And(lower, mask));
    }
    bool overflow() const {
        const tag<T> d;
        return !hn::AllFalse(d, hn::Lt(seen, hn::Zero(d)));
    }
};

// Stages over a register tile of simd_registers, with these sums.

template <int bit, typename Sums, typename T>
HWY_INLINE void lane_stage(Sums &sums, const lane_signs<T> &s, registers<T, 0> &r) {
    r.v = sums.template lanes_stage<bit>(s, r.v);
}
template <int bit, typename Sums, typename T, int bits>
HWY_INLINE void lane_stage(Sums &sums, const lane_signs<T> &s, registers<T, bits> &r) {
    lane_stage<bit>(sums, s, r.lo);
    lane_stage<bit>(sums, s, r.hi);
}

/// The stages of the lane bits in `mask`.
template <int bit = 0, typename Sums, typename T, int bits>
HWY_INLINE void lane_stages(Sums &sums, const lane_signs<T> &s, int mask, registers<T, bits> &r) {
    if constexpr (bit < lane_bits<T>) {
        if (mask >> bit & 1) lane_stage<bit>(sums, s, r);
        lane_stages<bit + 1>(sums, s, mask, r);
    }
}

template <typename Sums, typename T>
HWY_INLINE void combine(Sums &sums, registers<T, 0> &a, registers<T, 0> &b) {
    sums.pair(a.v, b.v);
}
template <typename Sums, typename T, int bits>
HWY_INLINE void combine(Sums &sums, registers<T, bits> &a, registers<T, bits> &b) {
    combine(sums, a.lo, b.lo);
    combine(sums, a.hi, b.hi);
}
template <int level, typename Sums, typename T, int bits>
HWY_INLINE void stage(Sums &sums, registers<T, bits> &r) {
    if constexpr (level == bits - 1) {
        combine(sums, r.lo, r.hi);
    } else {
        stage<level>(sums, r.lo);
        stage<level>(sums, r.hi);
    }
}
/// All stages between the vectors, ascending.
template <int level = 0, typename Sums, typename T, int bits>
HWY_INLINE void stages(Sums &sums, registers<T, bits> &r) {
    if constexpr (level < bits) {
        stage<level>(sums, r);
        stages<level + 1>(sums, r);
    }
}

/// One operation on a tile: lane bits and `bits` stages of neighbouring vectors (h == 0), or `bits`
/// stages at distance h, or a factor matrix at distance h.
struct operation {
    int bits, lane_mask;
    int64_t h;
    const wht_lines_codes *factor;
};

template <typename T> int64_t span_of(const operation &o) {
    if (o.factor) return o.h * o.factor->order;
    return (o.h == 0 ? lanes<T> : o.h) << o.bits;
}

template <typename T, typename Sums, int bits>
void groups(Sums &all, int lane_mask, const T *src, T *dst, int64_t total, T scale) {
    constexpr bool scaled = !std::is_integral_v<T>;
    const lane_signs<T> signs;
    const vec<T> factor = hn::Set(tag<T>(), scale);
    Sums sums = all;
    for (int64_t i = 0; i < total; i += lanes<T> << bits) {
        registers<T, bits> r;
        r.read(src + i, lanes<T>);
        lane_stages(sums, signs, lane_mask, r);
        stages(sums, r);
        r.template store<scaled>(dst + i, lanes<T>, factor);
    }
    all = sums;
}

template <typename T, typename Sums, int bits>
void distant(Sums &all, int64_t h, const T *src, T *dst, int64_t total, T scale) {
    constexpr bool scaled = !std::is_integral_v<T>;
    const vec<T> factor = hn::Set(tag<T>(), scale);
    Sums sums = all;
    for (int64_t i = 0; i < total; i += h << bits)
        for (int64_t j = i; j < i + h; j += lanes<T>) {
            registers<T, bits> r;
            r.read(src + j, h);
            stages(sums, r);
            r.template store<scaled>(dst + j, h, factor);
        }
    all = sums;
}

/// The 16 signed sums of each group of four vectors.
template <typename T> HWY_NOINLINE void signed_sums(const T *src, int64_t h, int order, T *table) {
    const tag<T> d;
    for (int g = 0; g < order / 4; ++g, src += 4 * h, table += 16 * lanes<T>) {
        const vec<T> a = hn::LoadU(d, src), b = hn::LoadU(d, src + h);
        const vec<T> c = hn::LoadU(d, src + 2 * h), e = hn::LoadU(d, src + 3 * h);
        const vec<T> low[4] = {hn::Add(a, b), hn::Sub(b, a), hn::Sub(a, b), hn::Sub(hn::Neg(a), b)};
        const vec<T> high[4] = {hn::Add(c, e), hn::Sub(e, c), hn::Sub(c, e),
                                hn::Sub(hn::Neg(c), e)};
        for (int s = 0; s < 16; ++s)
            hn::Store(hn::Add(low[s % 4], high[s / 4]), d, table + s * lanes<T>);
    }
}

template <typename T>
HWY_INLINE vec<T> output(const wht_lines_codes &f, int k, const T *HWY_RESTRICT table) {
    const tag<T> d;
    vec<T> sum = hn::Load(d, table + f.code[k][0] * lanes<T>);
    for (int g = 1; g < f.order / 4; ++g)
        sum = hn::Add(sum, hn::Load(d, table + f.code[k][g] * lanes<T>));
    return sum;
}

template <typename T, typename Sums>
void factor(Sums &all, const wht_lines_codes &f, int64_t h, const T *src, T *dst, int64_t total,
            T scale) {
    constexpr int64_t room = wht_factor_max_order * 4 * lanes<T>;
    HWY_ALIGN T table[room];
    const tag<T> d;
    for (int64_t i = 0; i < total; i += h * f.order)
        for (int64_t j = i; j < i + h; j += lanes<T>) {
            if constexpr (Sums::checked) {
                constexpr int half = Sums::half;
                HWY_ALIGN T upper[room], halves[wht_factor_max_order * lanes<T>];
                const vec<T> mask = hn::Set(d, static_cast<T>((int64_t{1} << half) - 1));
                for (int k = 0; k < f.order; ++k)
                    hn::Store(hn::ShiftRight<half>(hn::LoadU(d, src + j + k * h)), d,
                              halves + k * lanes<T>);
                signed_sums<T>(halves, lanes<T>, f.order, upper);
                for (int k = 0; k < f.order; ++k)
                    hn::Store(hn::And(hn::LoadU(d, src + j + k * h), mask), d,
                              halves + k * lanes<T>);
                signed_sums<T>(halves, lanes<T>, f.order, table);
                for (int k = 0; k < f.order; ++k) {
                    const vec<T> low = output<T>(f, k, table);
                    hn::StoreU(all.product(low, output<T>(f, k, upper), low), d, dst + j + k * h);
                }
            } else {
                signed_sums<T>(src + j, h, f.order, table);
                for (int k = 0; k < f.order; ++k) {
                    vec<T> sum = output<T>(f, k, table);
                    if constexpr (!std::is_integral_v<T>) sum = hn::Mul(sum, hn::Set(d, scale));
                    hn::StoreU(sum, d, dst + j + k * h);
                }
            }
        }
}

template <typename T, typename Sums, int bits = 0>
void operate(Sums &sums, const operation &o, const T *src, T *dst, int64_t total, T scale) {
    if (o.factor) return factor<T>(sums, *o.factor, o.h, src, dst, total, scale);
    if (o.bits == bits) {
        if (bits == 0 || o.h == 0)
            return groups<T, Sums, bits>(sums, o.lane_mask, src, dst, total, scale);
        if constexpr (bits > 0) return distant<T, Sums, bits>(sums, o.h, src, dst, total, scale);
    }
    if constexpr (bits < 3) operate<T, Sums, bits + 1>(sums, o, src, dst, total, scale);
}

constexpr int most_operations = 64;

/// What is to be done to a tile, in ascending distance.
template <typename T> struct operations {
    operation list[most_operations];
    int count = 0;

    explicit operations(const wht_lines_args &a) {
        int lane_mask = 0;
        for (int i = 0; i < a.tile_axes; ++i)
            if (a.tile[i].kind == wht_lines_kind::bits)
                for (int64_t h = a.tile[i].pitch; h < a.tile[i].pitch * a.tile[i].length; h *= 2)
                    if (h < lanes<T>) lane_mask |= 1 << log2_floor(h);
        if (lane_mask != 0) list[count++] = {0, lane_mask, 0, nullptr};
        for (int i = 0; i < a.tile_axes; ++i) {
            const wht_lines_tile_axis &t = a.tile[i];
            if (t.kind == wht_lines_kind::bits) add_bits(t.pitch, t.pitch * t.length);
            if (t.kind == wht_lines_kind::factor)
                list[count++] = {0, 0, t.pitch, &wht_lines_codes_of(t.factor, a.adjoint)};
        }
        if (count == 0) list[count++] = {0, 0, 0, nullptr}; // a copy
    }

    /// Over `total` elements; the first operation reads src. The last multiplies by `scale`.
    template <typename Sums>
    void run(Sums &sums, const T *src, T *dst, int64_t total, T scale) const {
        constexpr int64_t most = wht_lines_l1_bytes / int64_t{sizeof(T)};
        int inner = 0;
        int64_t block = lanes<T>;
        while (inner < count && span_of<T>(list[inner]) <= most) block = span_of<T>(list[inner++]);
        block *= most / block;
        if (inner < 2) inner = 0; // nothing to gain from blocks
        for (int64_t at = 0; inner > 0 && at < total; at += block) {
            const int64_t now = total - at < block ? total - at : block;
            for (int i = 0; i < inner; ++i)
                operate<T>(sums, list[i], (i == 0 ? src : dst) + at, dst + at, now,
                           i == count - 1 ? scale : T(1));
        }
        for (int i = inner; i < count; ++i)
            operate<T>(sums, list[i], i == 0 ? src : dst, dst, total,
                       i == count - 1 ? scale : T(1));
    }

private:
    static int log2_floor(int64_t n) {
        int b = 0;
        while (n >> (b + 1)) ++b;
        return b;
    }

    void add_bits(int64_t h, int64_t end) {
        if (h < lanes<T>) h = lanes<T>;
        if (h >= end) return;
        int left = log2_floor(end / h);
        // Neighbouring vectors join the lane stages.
        if (h == lanes<T> && (count == 0 || (count == 1 && list[0].h == 0))) {
            const int now = left == 4 ? 2 : left < 3 ? left : 3;
            if (count == 0) list[count++] = {0, 0, 0, nullptr};
            list[0].bits = now;
            h <<= now;
            left -= now;
        }
        while (left > 0) {
            const int sweeps = (left + 2) / 3;
            const int now = left / sweeps;
            list[count++] = {now, 0, h, nullptr};
            h <<= now;
            left -= now;
        }
    }
};

} // namespace lines
} // namespace HWY_NAMESPACE
} // namespace plait::impl::cpu
HWY_AFTER_NAMESPACE();

#endif
