// The sums over taps and the activation, in buffers of accumulators, compiled once per level.
// One order everywhere: acc = bias, then acc = fma(w[k], xe, acc) for k = 0.., activation,
// residual: an element has the same bits wherever it stands and whichever axis the vectors lie
// along. Lines are padded: whole groups of vectors are computed, what is behind the end is not
// used.
#if defined(PLAIT_LIB_CPU_CONV1D_SIMD_TAPS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#    ifdef PLAIT_LIB_CPU_CONV1D_SIMD_TAPS_INL_H_
#        undef PLAIT_LIB_CPU_CONV1D_SIMD_TAPS_INL_H_
#    else
#        define PLAIT_LIB_CPU_CONV1D_SIMD_TAPS_INL_H_
#    endif

#    include "lib/cpu/conv1d/simd_math-inl.h"

#    include <type_traits>

HWY_BEFORE_NAMESPACE();
namespace plait::impl::cpu {
namespace HWY_NAMESPACE {
namespace conv1d_simd {
namespace hn = hwy::HWY_NAMESPACE;

/// Ids as wide as the accumulator, so that a comparison masks it.
template <typename T> using id_of = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
constexpr int no_id = -1; ///< of a position that nobody sees; every negative id is stored as it

/// Vectors that a kernel along time computes together: enough chains of sums to hide the latency
/// of an addition.
constexpr int group = 4;
template <typename T> HWY_INLINE int64_t group_lanes() { return group * lanes<T>(); }

/// What becomes of a sum of taps.
enum class finish {
    none,  ///< forward without activation
    silu,  ///< forward
    slope, ///< backward with SiLU: times the derivative
};

template <finish how, typename T> HWY_INLINE vec<T> finished(vec<T> pre) {
    if constexpr (how == finish::silu) return silu<T>(pre);
    if constexpr (how == finish::slope) return silu_slope<T>(pre);
    return pre;
}

/// Sums of `width` taps. Tap k of output j reads in[j + k], or with `back` in[j + width - 1 - k].
/// `masked`: only where ids agree with the output's own, ids[j + own]; outputs with a negative own
/// id are zero. `add` (may be null) is added, `times` (may be null) multiplies the finished sum.
struct row_shape {
    int64_t count; ///< outputs
    int64_t width;
    bool back;
    int64_t own;
};

template <int fixed, finish how, bool masked, typename T>
HWY_NOINLINE void time_row(const row_shape &s, const T *in, const T *w, T bias, const T *add,
                           const T *times, const id_of<T> *ids, T *out) {
    const tag<T> d;
    const hn::RebindToSigned<tag<T>> di;
    const int64_t width = fixed > 0 ? fixed : s.width;
    const int64_t n = lanes<T>();
    const int64_t first = s.back ? width - 1 : 0, step = s.back ? -1 : 1;
    const vec<T> from_bias = hn::Set(d, bias);
    // Weights of a fixed width stay in registers.
    const vec<T> w0 = hn::Set(d, w[0]), w1 = hn::Set(d, fixed > 1 ? w[1] : T(0));
    const vec<T> w2 = hn::Set(d, fixed > 2 ? w[2] : T(0));
    const vec<T> w3 = hn::Set(d, fixed > 3 ? w[3] : T(0));
    for (int64_t j = 0; j < s.count; j += group * n) {
        const T *at = in + j + first;
        vec<T> a0 = from_bias, a1 = from_bias, a2 = from_bias, a3 = from_bias;
        const auto tap = [&](vec<T> weight, const T *x) HWY_ATTR {
            a0 = hn::MulAdd(weight, hn::LoadU(d, x), a0);
            a1 = hn::MulAdd(weight, hn::LoadU(d, x + n), a1);
            a2 = hn::MulAdd(weight, hn::LoadU(d, x + 2 * n), a2);
            a3 = hn::MulAdd(weight, hn::LoadU(d, x + 3 * n), a3);
        };
        const auto put = [&](int64_t v, vec<T> acc) HWY_ATTR {
            acc = finished<how, T>(acc);
            if (times != nullptr) acc = hn::Mul(hn::LoadU(d, times + j + v * n), acc);
            if (add != nullptr) acc = hn::Add(acc, hn::LoadU(d, add + j + v * n));
            if constexpr (masked) {
                const auto own = hn::LoadU(di, ids + j + v * n + s.own);
                const auto padding = hn::Lt(own, hn::Zero(di));
                acc = hn::IfThenElse(hn::RebindMask(d, padding), hn::Zero(d), acc);
            }
            hn::StoreU(acc, d, out + j + v * n);
        };
        if constexpr (masked) {
            for (int64_t v = 0; v < group; ++v) {
                const auto own = hn::LoadU(di, ids + j + v * n + s.own);
                vec<T> acc = from_bias;
                for (int64_t k = 0; k < width; ++k) {
                    const int64_t place = v * n + first + k * step;
                    const auto same = hn::Eq(hn::LoadU(di, ids + j + place), own);
                    const vec<T> sum =
                        hn::MulAdd(hn::Set(d, w[k]), hn::LoadU(d, in + j + place), acc);
                    acc = hn::IfThenElse(hn::RebindMask(d, same), sum, acc);
                }
                put(v, acc);
            }
        } else {
            if constexpr (fixed > 0) {
                tap(w0, at);
                if constexpr (fixed > 1) tap(w1, at + step);
                if constexpr (fixed > 2) tap(w2, at + 2 * step);
                if constexpr (fixed > 3) tap(w3, at + 3 * step);
            } else {
                for (int64_t k = 0; k < width; ++k) tap(hn::Set(d, w[k]), at + k * step);
            }
            put(0, a0);
            put(1, a1);
            put(2, a2);
            put(3, a3);
        }
    }
}

/// The same for `count` rows of `stride` channels with vectors across channels; w is
/// [tap][channel], bias [channel] (may be null: 0), and tap k of row j reads row j + k or j + width
/// - 1 - k.
struct block_shape {
    int64_t count;
    int64_t width;
    bool back;
    int64_t own;
    int64_t stride; ///< elements from row to row
    int64_t used;   ///< channels; whole vectors are computed
};

template <int fixed, finish how, bool masked, typename T>
HWY_NOINLINE void channel_rows(const block_shape &s, const T *in, const T *w, const T *bias,
                               const T *add, const T *times, const id_of<T> *ids, T *out) {
    const tag<T> d;
    const int64_t width = fixed > 0 ? fixed : s.width;
    const int64_t first = s.back ? width - 1 : 0, step = s.back ? -1 : 1;
    for (int64_t c = 0; c < s.used; c += lanes<T>()) {
        const vec<T> from_bias = bias != nullptr ? hn::LoadU(d, bias + c) : hn::Zero(d);
        const vec<T> w0 = hn::LoadU(d, w + c);
        const vec<T> w1 = fixed > 1 ? hn::LoadU(d, w + s.stride + c) : w0;
        const vec<T> w2 = fixed > 2 ? hn::LoadU(d, w + 2 * s.stride + c) : w0;
        const vec<T> w3 = fixed > 3 ? hn::LoadU(d, w + 3 * s.stride + c) : w0;
        for (int64_t j = 0; j < s.count; ++j) {
            const T *at = in + (j + first) * s.stride + c;
            vec<T> acc = from_bias;
            if constexpr (masked) {
                for (int64_t k = 0; k < width; ++k) {
                    if (ids[j + first + k * step] != ids[j + s.own]) continue;
                    acc = hn::MulAdd(hn::LoadU(d, w + k * s.stride + c),
                                     hn::LoadU(d, at + k * step * s.stride), acc);
                }
            } else if constexpr (fixed > 0) {
                const int64_t next = step * s.stride;
                acc = hn::MulAdd(w0, hn::LoadU(d, at), acc);
                if constexpr (fixed > 1) acc = hn::MulAdd(w1, hn::LoadU(d, at + next), acc);
                if constexpr (fixed > 2) acc = hn::MulAdd(w2, hn::LoadU(d, at + 2 * next), acc);
                if constexpr (fixed > 3) acc = hn::MulAdd(w3, hn::LoadU(d, at + 3 * next), acc);
            } else {
                for (int64_t k = 0; k < width; ++k)
                    acc = hn::MulAdd(hn::LoadU(d, w + k * s.stride + c),
                                     hn::LoadU(d, at + k * step * s.stride), acc);
            }
            acc = finished<how, T>(acc);
            if (times != nullptr) acc = hn::Mul(hn::LoadU(d, times + j * s.stride + c), acc);
            if (add != nullptr) acc = hn::Add(acc, hn::LoadU(d, add + j * s.stride + c));
            if constexpr (masked)
                if (ids[j + s.own] < 0) acc = hn::Zero(d);
            hn::StoreU(acc, d, out + j * s.stride + c);
        }
    }
}

// From run-time widths to the instances above. The fixed widths are those in wide use; float64 and
// masked sums have no fixed ones: they are not bound by the sums.

template <finish how, typename T>
void time_row(const row_shape &s, const T *in, const T *w, T bias, const T *add, const T *times,
              const id_of<T> *ids, T *out) {
    if (ids != nullptr) return time_row<0, how, true, T>(s, in, w, bias, add, times, ids, out);
    if constexpr (sizeof(T) == 4) {
        if (s.width == 4) return time_row<4, how, false, T>(s, in, w, bias, add, times, ids, out);
        if (s.width == 3) return time_row<3, how, false, T>(s, in, w, bias, add, times, ids, out);
        if (s.width == 2) return time_row<2, how, false, T>(s, in, w, bias, add, times, ids, out);
    }
    time_row<0, how, false, T>(s, in, w, bias, add, times, ids, out);
}

template <finish how, typename T>
void channel_rows(const block_shape &s, const T *in, const T *w, const T *bias, const T *add,
                  const T *times, const id_of<T> *ids, T *out) {
    if (ids != nullptr) return channel_rows<0, how, true, T>(s, in, w, bias, add, times, ids, out);
    if constexpr (sizeof(T) == 4) {
        if (s.width == 4)
            return channel_rows<4, how, false, T>(s, in, w, bias, add, times, ids, out);
        if (s.width == 3)
            return channel_rows<3, how, false, T>(s, in, w, bias, add, times, ids, out);
        if (s.width == 2)
            return channel_rows<2, how, false, T>(s, in, w, bias, add, times, ids, out);
    }
    channel_rows<0, how, false, T>(s, in, w, bias, add, times, ids, out);
}

} // namespace conv1d_simd
} // namespace HWY_NAMESPACE
} // namespace plait::impl::cpu
HWY_AFTER_NAMESPACE();

#endif
