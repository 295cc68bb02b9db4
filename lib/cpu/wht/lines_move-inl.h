// How wht.lines fills its tile from X and empties it to Y, compiled once per instruction level:
// a block of lines at a time, with conversion, SIGNS, DIAG and the order of the results.
#if defined(PLAIT_LIB_CPU_WHT_LINES_MOVE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#    ifdef PLAIT_LIB_CPU_WHT_LINES_MOVE_INL_H_
#        undef PLAIT_LIB_CPU_WHT_LINES_MOVE_INL_H_
#    else
#        define PLAIT_LIB_CPU_WHT_LINES_MOVE_INL_H_
#    endif

#    include "lib/common/half.h"
#    include "lib/cpu/wht/lines_args.h"
#    include "lib/cpu/wht/lines_walk.h"

#    include <algorithm>
#    include <limits>
#    include <type_traits>

#    include "lib/cpu/wht/simd_convert-inl.h"
#    include "lib/cpu/wht/simd_registers-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plait::impl::cpu {
namespace HWY_NAMESPACE {
namespace lines {

/// Numbers that are changed outside the tile before they are stored, or
/// in it while they are hot.
constexpr int64_t piece = 1024;

HWY_INLINE void fetch(const char *from, int64_t bytes) {
    for (int64_t i = 0; i < bytes; i += 64) __builtin_prefetch(from + i);
}

/// `soon`: so many numbers are wanted from there before long.
template <typename T>
HWY_INLINE void copy(const T *from, T *to, int64_t count, const T *soon = nullptr) {
    const tag<T> d;
    constexpr int64_t fetched = 64 / int64_t{sizeof(T)}; // a cache line
    int64_t i = 0;
    for (; i + fetched <= count; i += fetched) {
        if (soon) __builtin_prefetch(soon + i);
        for (int64_t j = i; j < i + fetched; j += lanes<T>)
            hn::StoreU(hn::LoadU(d, from + j), d, to + j);
    }
    for (; i + lanes<T> <= count; i += lanes<T>) hn::StoreU(hn::LoadU(d, from + i), d, to + i);
    for (; i < count; ++i) to[i] = from[i];
}

/// Elements that lie `step` numbers apart.
template <typename T>
HWY_INLINE void move_apart(const T *from, int64_t from_step, T *to, int64_t to_step, int64_t count,
                           int parts) {
    if (parts == 1) {
        for (int64_t i = 0; i < count; ++i) to[i * to_step] = from[i * from_step];
        return;
    }
    for (int64_t i = 0; i < count; ++i) {
        const T re = from[i * from_step], im = from[i * from_step + 1];
        to[i * to_step] = re;
        to[i * to_step + 1] = im;
    }
}

// Conversions of `count` real numbers that lie packed.

template <typename T> void load_packed(scalar type, const void *from, T *to, int64_t count) {
    if constexpr (std::is_same_v<T, float>) {
        if (type == scalar::f16 || type == scalar::bf16)
            return convert::load_row(type, from, to, count);
    } else if constexpr (std::is_same_v<T, double>) {
        const uint16_t *h = static_cast<const uint16_t *>(from);
        const float *f = static_cast<const float *>(from);
        if (type == scalar::f16)
            for (int64_t i = 0; i < count; ++i) to[i] = f16_to_f32(h[i]);
        if (type == scalar::bf16)
            for (int64_t i = 0; i < count; ++i) to[i] = bf16_to_f32(h[i]);
        if (type == scalar::f32 || type == scalar::c64)
            for (int64_t i = 0; i < count; ++i) to[i] = f[i];
        if (type != scalar::f64 && type != scalar::c128) return;
    } else if constexpr (std::is_same_v<T, int64_t>) {
        const int32_t *n = static_cast<const int32_t *>(from);
        if (type == scalar::i32) {
            for (int64_t i = 0; i < count; ++i) to[i] = n[i];
            return;
        }
    }
    copy(static_cast<const T *>(from), to, count);
}

template <typename T> void store_packed(scalar type, const T *from, void *to, int64_t count) {
    if constexpr (std::is_same_v<T, float>) {
        if (type == scalar::f16 || type == scalar::bf16)
            return convert::store_row(type, from, to, count);
    } else if constexpr (std::is_same_v<T, double>) {
        uint16_t *h = static_cast<uint16_t *>(to);
        float *f = static_cast<float *>(to);
        if (type == scalar::f16)
            for (int64_t i = 0; i < count; ++i) h[i] = f64_to_f16(from[i]);
        if (type == scalar::bf16)
            for (int64_t i = 0; i < count; ++i) h[i] = f64_to_bf16(from[i]);
        if (type == scalar::f32 || type == scalar::c64)
            for (int64_t i = 0; i < count; ++i) f[i] = static_cast<float>(from[i]);
        if (type != scalar::f64 && type != scalar::c128) return;
    } else if constexpr (std::is_same_v<T, int64_t>) {
        int32_t *n = static_cast<int32_t *>(to);
        if (type == scalar::i32) {
            for (int64_t i = 0; i < count; ++i) n[i] = static_cast<int32_t>(from[i]);
            return;
        }
    }
    copy(from, static_cast<T *>(to), count);
}

/// One number with the sign changed; integers modulo 2^w.
template <typename T> HWY_INLINE T negative(T v) {
    if constexpr (std::is_integral_v<T>)
        return static_cast<T>(0 - static_cast<std::make_unsigned_t<T>>(v));
    else
        return -v;
}

/// Changes signs along `count` elements of `parts` packed numbers. True if the lowest integer had
/// to be negated: its true value does not fit.
template <typename T>
bool apply_signs(T *v, int64_t count, int parts, const uint32_t *words, int64_t bit,
                 int64_t stride) {
    const auto at = [&](int64_t b) { return (words[b >> 5] >> (b & 31) & 1u) != 0; };
    bool lowest = false;
    const auto flip = [&](T &value, bool negate) {
        if constexpr (std::is_integral_v<T>)
            lowest |= negate && value == std::numeric_limits<T>::min();
        value = negate ? negative(value) : value;
    };
    if (stride == 0) {
        if (at(bit))
            for (int64_t i = 0; i < count * parts; ++i) flip(v[i], true);
        return lowest;
    }
    if (stride != 1) {
        for (int64_t i = 0; i < count; ++i, bit += stride)
            for (int p = 0; p < parts; ++p) flip(v[i * parts + p], at(bit));
        return lowest;
    }
    for (int64_t i = 0; i < count;) {
        const int64_t now = std::min<int64_t>(count - i, 32 - (bit & 31));
        const uint32_t word = words[bit >> 5] >> (bit & 31);
        T *part = v + i * parts;
        if (parts == 1)
            for (int j = 0; j < static_cast<int>(now); ++j) flip(part[j], (word >> j & 1u) != 0);
        else
            for (int j = 0; j < 2 * static_cast<int>(now); ++j)
                flip(part[j], (word >> (j / 2) & 1u) != 0);
        i += now;
        bit += now;
    }
    return lowest;
}

/// Multiplies `count` elements by DIAG (or its conjugate) times scale, a product that is rounded
/// once. At most `piece` elements.
template <typename T>
void apply_diag(T *v, int64_t count, int parts, scalar type, const void *base, int64_t at,
                int64_t stride, double scale, bool conj) {
    if constexpr (!std::is_integral_v<T>) {
        const bool same = type == (sizeof(T) == 8 ? scalar::f64 : scalar::f32);
        if (same && parts == 1 && stride == 1 && scale == 1) {
            const T *d = static_cast<const T *>(base) + at;
            for (int64_t i = 0; i < count; ++i) v[i] *= d[i];
            return;
        }
        T real[piece], imaginary[piece];
        if (!wht_lines_coefficients(type, base, at, stride, count, scale, conj, real, imaginary)) {
            if (parts == 1)
                for (int64_t i = 0; i < count; ++i) v[i] *= real[i];
            else
                for (int64_t i = 0; i < 2 * count; ++i) v[i] *= real[i / 2];
            return;
        }
        for (int64_t i = 0; i < count; ++i) {
            const T re = v[2 * i] * real[i] - v[2 * i + 1] * imaginary[i];
            v[2 * i + 1] = v[2 * i] * imaginary[i] + v[2 * i + 1] * real[i];
            v[2 * i] = re;
        }
    }
}

/// Results that stand at `count` places of an ordered axis from `first` on: a permutation of the
/// axis of 2^bits is the exclusive or of what its lower and upper places give.
struct ordering {
    wht_order order;
    int bits, low; ///< the table is for 2^low places
    int32_t table[256];

    /// No table where `axis_bits` is negative.
    ordering(wht_order o, int axis_bits) : order(o), bits(axis_bits) {
        low = bits < 8 ? bits : 8;
        table[0] = 0;
        for (int j = 0; j < low; ++j) {
            // Of bit j alone: the natural row of 2^j; in sequency order the one below moves too.
            const int32_t one = static_cast<int32_t>(natural_row(o, int64_t{1} << j, bits));
            for (int i = 0; i < 1 << j; ++i) table[(1 << j) + i] = table[i] ^ one;
        }
    }
    int64_t upper(int64_t place) const { return natural_row(order, place >> low << low, bits); }
};

template <typename T>
void permuted(const ordering &o, const T *line, int64_t pitch, int parts, int64_t first,
              int64_t count, T *to) {
    for (int64_t i = 0; i < count;) {
        const int64_t in_table = (first + i) & ((int64_t{1} << o.low) - 1);
        const int64_t now = std::min(count - i, (int64_t{1} << o.low) - in_table);
        const int64_t upper = o.upper(first + i);
        const int32_t *table = o.table + in_table;
        if (parts == 1)
            for (int64_t j = 0; j < now; ++j) to[i + j] = line[(table[j] ^ upper) * pitch];
        else
            for (int64_t j = 0; j < now; ++j) {
                const T *from = line + (table[j] ^ upper) * pitch;
                to[2 * (i + j)] = from[0];
                to[2 * (i + j) + 1] = from[1];
            }
        i += now;
    }
}

/// Moves tiles of one pass.
template <typename T> class mover {
public:
    /// `scale` goes with DIAG at the store.
    mover(const wht_lines_args &args, double scale)
        : a(args), diag_scale(scale), load_signs(a.signs && a.signs_first),
          load_diag(a.diag && a.diag_first), store_signs(a.signs && !a.signs_first),
          store_diag(a.diag && !a.diag_first) {}

    /// What does not fit the arithmetic or Y was seen.
    bool overflow = false;

    /// `at`: where the tile begins in X.
    void load(const wht_lines_view &v, const wht_lines_place &at, T *tile) {
        const int x_size = scalar_bytes(a.x_type);
        const char *x = static_cast<const char *>(a.x) + at.memory * x_size;
        const wht_lines_run &line = v.line();
        const bool packed = line.step.tile == a.parts, plain = !load_signs && !load_diag;
        if (packed && plain && line.step.memory == 1 && x_size == same_size()) {
            const T *from = reinterpret_cast<const T *>(x);
            return copy_lines(v, [&](const wht_lines_place &p, const wht_lines_place &soon) {
                copy(from + p.memory * a.parts, tile + p.tile, line.length * a.parts,
                     from + soon.memory * a.parts);
            });
        }
        wht_lines_cursor soon(v);
        for (wht_lines_cursor c(v); c.valid(); c.next()) {
            const wht_lines_place &p = c.place();
            soon.next();
            if (line.step.memory == 1 && line.length <= piece && soon.valid())
                fetch(x + soon.place().memory * x_size, line.length * x_size);
            for (int64_t i = 0; i < line.length; i += piece) {
                const int64_t now = std::min(piece, line.length - i);
                T *row = tile + p.tile + i * line.step.tile;
                const char *from = x + (p.memory + i * line.step.memory) * x_size;
                HWY_ALIGN T aside[2 * piece];
                T *to = packed ? row : aside;
                if (line.step.memory == 1)
                    load_packed<T>(a.x_type, from, to, now * a.parts);
                else
                    load_apart(from, line.step.memory * x_size, now, to);
                if (load_diag)
                    apply_diag(to, now, a.parts, a.diag_type, a.diag,
                               at.diag + p.diag + i * line.step.diag, line.step.diag, 1, true);
                if (load_signs)
                    overflow |=
                        apply_signs(to, now, a.parts, a.signs,
                                    at.signs + p.signs + i * line.step.signs, line.step.signs);
                if (!packed) spread(aside, now, row, line.step.tile);
            }
        }
    }

    /// `at`: where the tile begins in Y. Numbers of the tile may change.
    void store(const wht_lines_view &v, const wht_lines_place &at, T *tile) {
        const int y_size = scalar_bytes(a.y_type);
        char *y = static_cast<char *>(a.y) + at.memory * y_size;
        const wht_lines_run &line = v.line();
        const bool packed = line.step.tile == a.parts && line.bits < 0;
        const bool plain = !store_signs && !store_diag;
        if (packed && plain && line.step.memory == 1 && y_size == same_size()) {
            T *to = reinterpret_cast<T *>(y);
            return copy_lines(v, [&](const wht_lines_place &p, const wht_lines_place &soon) {
                copy(tile + p.tile, to + p.memory * a.parts, line.length * a.parts,
                     to + soon.memory * a.parts);
            });
        }
        const ordering order(v.order, line.bits);
        wht_lines_cursor soon(v);
        for (wht_lines_cursor c(v); c.valid(); c.next()) {
            const wht_lines_place &p = c.place();
            soon.next();
            if (line.step.memory == 1 && line.length <= piece && soon.valid())
                fetch(y + soon.place().memory * y_size, line.length * y_size);
            for (int64_t i = 0; i < line.length; i += piece) {
                const int64_t now = std::min(piece, line.length - i);
                T *row = tile + p.tile;
                HWY_ALIGN T aside[2 * piece];
                T *from = packed ? row + i * a.parts : aside;
                if (line.bits >= 0)
                    permuted(order, row, line.step.tile, a.parts, i, now, aside);
                else if (!packed)
                    gather(row + i * line.step.tile, line.step.tile, now, aside);
                if (store_diag)
                    apply_diag(from, now, a.parts, a.diag_type, a.diag,
                               at.diag + p.diag + i * line.step.diag, line.step.diag, diag_scale,
                               false);
                if (store_signs)
                    overflow |=
                        apply_signs(from, now, a.parts, a.signs,
                                    at.signs + p.signs + i * line.step.signs, line.step.signs);
                if (a.overflow) overflow |= beyond(from, now * a.parts);
                char *to = y + (p.memory + i * line.step.memory) * y_size;
                if (line.step.memory == 1)
                    store_packed<T>(a.y_type, from, to, now * a.parts);
                else
                    store_apart(from, now, to, line.step.memory * y_size);
            }
        }
    }

private:
    const wht_lines_args &a;
    const double diag_scale;
    const bool load_signs, load_diag, store_signs, store_diag;

    /// Lines that are one after the other on pages of their own are asked for ahead of time: no
    /// hardware foresees them.
    template <typename Copy> void copy_lines(const wht_lines_view &v, Copy line) {
        constexpr int64_t distance = 2048; // bytes: what is copied while a page is looked up
        const int64_t bytes = v.line().length * same_size();
        wht_lines_cursor c(v), soon(v);
        for (int64_t i = 0; i < distance && soon.valid(); i += bytes) soon.next();
        for (; c.valid(); c.next()) {
            line(c.place(), soon.valid() ? soon.place() : c.place());
            if (soon.valid()) soon.next();
        }
    }

    /// Bytes of an element that is stored in the type of the arithmetic.
    int same_size() const { return static_cast<int>(sizeof(T)) * a.parts; }

    void load_apart(const char *from, int64_t step, int64_t count, T *to) const {
        if (scalar_bytes(a.x_type) == static_cast<int>(sizeof(T)) * a.parts) {
            const int64_t jump = step / int64_t{sizeof(T)};
            const T *x = reinterpret_cast<const T *>(from);
            return move_apart(x, jump, to, a.parts, count, a.parts);
        }
        for (int64_t i = 0; i < count; ++i)
            load_packed<T>(a.x_type, from + i * step, to + i * a.parts, a.parts);
    }
    void store_apart(const T *from, int64_t count, char *to, int64_t step) const {
        if (scalar_bytes(a.y_type) == static_cast<int>(sizeof(T)) * a.parts) {
            const int64_t jump = step / int64_t{sizeof(T)};
            T *y = reinterpret_cast<T *>(to);
            return move_apart(from, a.parts, y, jump, count, a.parts);
        }
        for (int64_t i = 0; i < count; ++i)
            store_packed<T>(a.y_type, from + i * a.parts, to + i * step, a.parts);
    }
    void spread(const T *from, int64_t count, T *to, int64_t pitch) const {
        move_apart(from, a.parts, to, pitch, count, a.parts);
    }
    void gather(const T *from, int64_t pitch, int64_t count, T *to) const {
        move_apart(from, pitch, to, a.parts, count, a.parts);
    }
    bool beyond(const T *v, int64_t count) const {
        bool any = false;
        if constexpr (std::is_same_v<T, int64_t>)
            if (a.y_type == scalar::i32)
                for (int64_t i = 0; i < count; ++i) any |= v[i] != static_cast<int32_t>(v[i]);
        (void)v;
        (void)count;
        return any;
    }
};

} // namespace lines
} // namespace HWY_NAMESPACE
} // namespace plait::impl::cpu
HWY_AFTER_NAMESPACE();

#endif
