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

/// Vectors that are computed together: enough chains of sums to hide the latency of an addition.
constexpr int group = 4;
template <typename T> using vectors = pack<T, group>;
template <typename T> HWY_INLINE int64_t group_lanes() { return group * lanes<T>(); }

/// What becomes of a sum of taps.
enum class finish {
    none,   ///< forward without activation
    silu,   ///< forward
    silu16, ///< forward, where y has 16 bits
    slope,  ///< backward with SiLU: the derivative
};

/// Applies it, multiplies by `times` and adds `add` (both may be null), and stores.
template <finish how, typename T>
HWY_INLINE void put(vectors<T> acc, const T *times, const T *add, T *out) {
    const tag<T> d;
    const int64_t n = lanes<T>();
    if constexpr (how == finish::silu) acc = silu<false, T, group>(acc);
    if constexpr (how == finish::silu16) acc = silu<true, T, group>(acc);
    if constexpr (how == finish::slope) acc = silu_slope<T, group>(acc);
    if (times != nullptr)
        for (int v = 0; v < group; ++v) acc.v[v] = hn::Mul(hn::LoadU(d, times + v * n), acc.v[v]);
    if (add != nullptr)
        for (int v = 0; v < group; ++v) acc.v[v] = hn::Add(acc.v[v], hn::LoadU(d, add + v * n));
    for (int v = 0; v < group; ++v) hn::StoreU(acc.v[v], d, out + v * n);
}

/// Outputs along time: out[j] for j < count. Tap k reads in[j + k], or with `back`
/// in[j + width - 1 - k]; with ids only where they agree with the output's own, ids[j + own], and
/// an output with a negative own id is zero.
struct row_shape {
    int64_t count;
    int64_t width;
    bool back;
    int64_t own;
};

template <int fixed, finish how, typename T>
HWY_NOINLINE void time_row(const row_shape &s, const T *in, const T *w, T bias, const T *add,
                           const T *times, T *out) {
    const tag<T> d;
    const int64_t width = fixed > 0 ? fixed : s.width, n = lanes<T>();
    const int64_t first = s.back ? width - 1 : 0, step = s.back ? -1 : 1;
    for (int64_t j = 0; j < s.count; j += group * n) {
        vectors<T> acc;
        for (int v = 0; v < group; ++v) acc.v[v] = hn::Set(d, bias);
        for (int64_t k = 0; k < width; ++k) {
            const vec<T> weight = hn::Set(d, w[k]);
            const T *x = in + j + first + k * step;
            for (int v = 0; v < group; ++v)
                acc.v[v] = hn::MulAdd(weight, hn::LoadU(d, x + v * n), acc.v[v]);
        }
        put<how, T>(acc, times != nullptr ? times + j : nullptr, add != nullptr ? add + j : nullptr,
                    out + j);
    }
}

template <finish how, typename T>
HWY_NOINLINE void time_row_masked(const row_shape &s, const T *in, const T *w, T bias, const T *add,
                                  const T *times, const id_of<T> *ids, T *out) {
    const tag<T> d;
    const hn::RebindToSigned<tag<T>> di;
    const int64_t first = s.back ? s.width - 1 : 0, step = s.back ? -1 : 1, n = lanes<T>();
    for (int64_t j = 0; j < s.count; j += group * n) {
        vectors<T> acc;
        for (int v = 0; v < group; ++v) {
            const auto own = hn::LoadU(di, ids + j + v * n + s.own);
            acc.v[v] = hn::Set(d, bias);
            for (int64_t k = 0; k < s.width; ++k) {
                const int64_t place = j + v * n + first + k * step;
                const auto same = hn::Eq(hn::LoadU(di, ids + place), own);
                const vec<T> sum = hn::MulAdd(hn::Set(d, w[k]), hn::LoadU(d, in + place), acc.v[v]);
                acc.v[v] = hn::IfThenElse(hn::RebindMask(d, same), sum, acc.v[v]);
            }
        }
        put<how, T>(acc, times != nullptr ? times + j : nullptr, add != nullptr ? add + j : nullptr,
                    out + j);
        for (int v = 0; v < group; ++v) {
            const auto own = hn::LoadU(di, ids + j + v * n + s.own);
            const auto padding = hn::RebindMask(d, hn::Lt(own, hn::Zero(di)));
            const vec<T> value = hn::LoadU(d, out + j + v * n);
            hn::StoreU(hn::IfThenElse(padding, hn::Zero(d), value), d, out + j + v * n);
        }
    }
}

/// The same for `count` rows with vectors across channels: w is [tap][channel], bias [channel], and
/// tap k of row j reads in[j + k] or in[j + width - 1 - k]: rows lie anywhere.
struct block_shape {
    int64_t count;
    int64_t width;
    bool back;
    int64_t own;
    int64_t stride; ///< of all rows but those of `in`, whole groups of vectors
    int64_t used;   ///< channels; whole groups are computed
};

template <int fixed, finish how, bool masked, typename T>
HWY_NOINLINE void channel_rows(const block_shape &s, const T *const *in, const T *w, const T *bias,
                               const T *add, const T *times, const id_of<T> *ids, T *out) {
    const tag<T> d;
    const int64_t width = fixed > 0 ? fixed : s.width, n = lanes<T>();
    const int64_t first = s.back ? width - 1 : 0, step = s.back ? -1 : 1;
    for (int64_t c = 0; c < s.used; c += group * n)
        for (int64_t j = 0; j < s.count; ++j) {
            const int64_t here = j * s.stride + c;
            vectors<T> acc;
            for (int v = 0; v < group; ++v) acc.v[v] = hn::LoadU(d, bias + c + v * n);
            for (int64_t k = 0; k < width; ++k) {
                if constexpr (masked)
                    if (ids[j + first + k * step] != ids[j + s.own]) continue;
                const T *x = in[j + first + k * step] + c;
                const T *weight = w + k * s.stride + c;
                for (int v = 0; v < group; ++v)
                    acc.v[v] =
                        hn::MulAdd(hn::LoadU(d, weight + v * n), hn::LoadU(d, x + v * n), acc.v[v]);
            }
            put<how, T>(acc, times != nullptr ? times + here : nullptr,
                        add != nullptr ? add + here : nullptr, out + here);
            if constexpr (masked)
                if (ids[j + s.own] < 0)
                    for (int v = 0; v < group; ++v) hn::StoreU(hn::Zero(d), d, out + here + v * n);
        }
}

// From run-time widths to the instances above. The fixed widths are those in wide use; float64 and
// masked sums have no fixed ones: they are not bound by the sums.

template <finish how, typename T>
void time_row(const row_shape &s, const T *in, const T *w, T bias, const T *add, const T *times,
              const id_of<T> *ids, T *out) {
    if (ids != nullptr) return time_row_masked<how, T>(s, in, w, bias, add, times, ids, out);
    if constexpr (sizeof(T) == 4) {
        if (s.width == 4) return time_row<4, how, T>(s, in, w, bias, add, times, out);
        if (s.width == 3) return time_row<3, how, T>(s, in, w, bias, add, times, out);
        if (s.width == 2) return time_row<2, how, T>(s, in, w, bias, add, times, out);
    }
    time_row<0, how, T>(s, in, w, bias, add, times, out);
}

template <finish how, typename T>
void channel_rows(const block_shape &s, const T *const *in, const T *w, const T *bias, const T *add,
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
