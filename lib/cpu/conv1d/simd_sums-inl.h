// The products behind dw and dbias, summed in the accumulate type over one piece; compiled once per
// level.
#if defined(PLAIT_LIB_CPU_CONV1D_SIMD_SUMS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#    ifdef PLAIT_LIB_CPU_CONV1D_SIMD_SUMS_INL_H_
#        undef PLAIT_LIB_CPU_CONV1D_SIMD_SUMS_INL_H_
#    else
#        define PLAIT_LIB_CPU_CONV1D_SIMD_SUMS_INL_H_
#    endif

#    include "lib/cpu/conv1d/simd_taps-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plait::impl::cpu {
namespace HWY_NAMESPACE {
namespace conv1d_simd {
namespace hn = hwy::HWY_NAMESPACE;

/// sums[k * stride] += sum of g[j] * xe[j + k] over j < count, for `taps` values of k from `first`
/// on; with ids only where ids[j + k] is ids[j + history] and no padding.
template <int taps, bool masked, typename T>
HWY_NOINLINE void time_dots(const T *g, const T *xe, int64_t count, int64_t first, int64_t history,
                            const id_of<T> *ids, double *sums, int64_t stride) {
    const tag<T> d;
    const hn::RebindToSigned<tag<T>> di;
    const int64_t n = lanes<T>();
    // Two chains for each tap: a single one would wait for its own additions.
    vec<T> a[taps], b[taps];
    for (int k = 0; k < taps; ++k) a[k] = b[k] = hn::Zero(d);
    const auto term = [&](int64_t j, int k, vec<T> sum) HWY_ATTR {
        const vec<T> more = hn::MulAdd(hn::LoadU(d, g + j), hn::LoadU(d, xe + j + first + k), sum);
        if constexpr (!masked) return more;
        const auto own = hn::LoadU(di, ids + j + history);
        const auto same = hn::And(hn::Eq(hn::LoadU(di, ids + j + first + k), own),
                                  hn::Gt(own, hn::Set(di, no_id)));
        return hn::IfThenElse(hn::RebindMask(d, same), more, sum);
    };
    int64_t j = 0;
    for (; j + 2 * n <= count; j += 2 * n)
        for (int k = 0; k < taps; ++k) {
            a[k] = term(j, k, a[k]);
            b[k] = term(j + n, k, b[k]);
        }
    for (; j < count; j += n) {
        // Behind the end there is anything: select, do not multiply by zero.
        const auto in = hn::FirstN(d, static_cast<size_t>(std::min(count - j, n)));
        for (int k = 0; k < taps; ++k) a[k] = hn::IfThenElse(in, term(j, k, a[k]), a[k]);
    }
    for (int k = 0; k < taps; ++k)
        sums[(first + k) * stride] +=
            static_cast<double>(hn::GetLane(hn::SumOfLanes(d, hn::Add(a[k], b[k]))));
}

/// All taps, and the sum of g itself behind them.
template <bool masked, typename T>
void time_dots(const T *g, const T *xe, int64_t count, int64_t width, const id_of<T> *ids,
               double *sums, int64_t stride) {
    int64_t k = 0;
    for (; k + 4 <= width; k += 4)
        time_dots<4, masked, T>(g, xe, count, k, width - 1, ids, sums, stride);
    for (; k + 2 <= width; k += 2)
        time_dots<2, masked, T>(g, xe, count, k, width - 1, ids, sums, stride);
    for (; k < width; ++k) time_dots<1, masked, T>(g, xe, count, k, width - 1, ids, sums, stride);
    const tag<T> d;
    const int64_t n = lanes<T>();
    vec<T> sum = hn::Zero(d);
    int64_t j = 0;
    for (; j + n <= count; j += n) sum = hn::Add(sum, hn::LoadU(d, g + j));
    double total = static_cast<double>(hn::GetLane(hn::SumOfLanes(d, sum)));
    for (; j < count; ++j) total += static_cast<double>(g[j]);
    sums[width * stride] += total;
}

/// The same across channels, into lines of the accumulate type: sums[k][channel] += sum over rows
/// of g[j] * xe[j + k], for `taps` values of k from `first` on.
template <int taps, bool masked, typename T>
HWY_NOINLINE void channel_dots(const block_shape &s, const T *g, const T *xe, int64_t first,
                               const id_of<T> *ids, T *sums) {
    const tag<T> d;
    for (int64_t c = 0; c < s.used; c += lanes<T>()) {
        vec<T> sum[taps];
        for (int k = 0; k < taps; ++k) sum[k] = hn::LoadU(d, sums + (first + k) * s.stride + c);
        for (int64_t j = 0; j < s.count; ++j) {
            if constexpr (masked)
                if (ids[j + s.own] < 0) continue;
            const vec<T> factor = hn::LoadU(d, g + j * s.stride + c);
            for (int k = 0; k < taps; ++k) {
                if constexpr (masked)
                    if (ids[j + first + k] != ids[j + s.own]) continue;
                sum[k] =
                    hn::MulAdd(factor, hn::LoadU(d, xe + (j + first + k) * s.stride + c), sum[k]);
            }
        }
        for (int k = 0; k < taps; ++k) hn::StoreU(sum[k], d, sums + (first + k) * s.stride + c);
    }
}

/// All taps, and the sum of g itself in line `width`.
template <bool masked, typename T>
void channel_dots(const block_shape &s, const T *g, const T *xe, const id_of<T> *ids, T *sums) {
    int64_t k = 0;
    for (; k + 4 <= s.width; k += 4) channel_dots<4, masked, T>(s, g, xe, k, ids, sums);
    for (; k < s.width; ++k) channel_dots<1, masked, T>(s, g, xe, k, ids, sums);
    const tag<T> d;
    for (int64_t c = 0; c < s.used; c += lanes<T>()) {
        T *line = sums + s.width * s.stride + c;
        vec<T> sum = hn::LoadU(d, line);
        for (int64_t j = 0; j < s.count; ++j)
            sum = hn::Add(sum, hn::LoadU(d, g + j * s.stride + c));
        hn::StoreU(sum, d, line);
    }
}

} // namespace conv1d_simd
} // namespace HWY_NAMESPACE
} // namespace plait::impl::cpu
HWY_AFTER_NAMESPACE();

#endif
