// One chunk of one value head in f32, compiled once per instruction level. With G the sums of the
// gates of the chunk up to a row, every exponential is that of a sum of gates between two rows,
// added up where it is used: none is above 1, and none is a difference of large numbers.
//
//   q+ = s q e^G,  k+ = k e^G,  kR = k e^(sum of later gates)
//   F_ij = <k_i, k_j e^(G_i - G_j)>, j < i;   A_ij = s <q_i, k_j e^(G_i - G_j)>, j <= i
//   e_i = v_i - (k+ S)_i - sum_{j<i} F_ij u_j,   u_i = beta_i e_i
//   o = q+ S + A u,   S = diag(e^G of all) S + kR^T u
#if defined(PLAIT_LIB_CPU_KDA_CHUNK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#    ifdef PLAIT_LIB_CPU_KDA_CHUNK_INL_H_
#        undef PLAIT_LIB_CPU_KDA_CHUNK_INL_H_
#    else
#        define PLAIT_LIB_CPU_KDA_CHUNK_INL_H_
#    endif

#    include "lib/cpu/kda/chunk_args.h"
#    include "lib/cpu/kda/kda_args.h"
#    include "lib/cpu/kda/reserve.h"
#    include "lib/cpu/scalars.h"
#    include "lib/cpu/sequences.h"

#    include <algorithm>
#    include <cstring>
#    include <hwy/contrib/math/math-inl.h>
#    include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace plait::impl::cpu {
namespace HWY_NAMESPACE {
namespace kda_simd {
namespace hn = hwy::HWY_NAMESPACE;

using tag = hn::ScalableTag<float>;
using vec = hn::Vec<tag>;
constexpr int64_t C = kda_chunk;

HWY_INLINE int64_t lanes() { return static_cast<int64_t>(hn::Lanes(tag())); }
HWY_INLINE vec load(const float *from) { return hn::Load(tag(), from); }
HWY_INLINE void put(vec v, float *to) { hn::Store(v, tag(), to); }
HWY_INLINE vec all(float v) { return hn::Set(tag(), v); }

/// e^-|x| and 1 / (1 + e^-|x|), from which both sides of a sigmoid follow without cancellation.
struct logistic {
    vec value, rest; ///< s and 1 - s
    explicit logistic(vec x) {
        const vec e = hn::Exp(tag(), hn::Neg(hn::Abs(x)));
        const vec large = hn::Div(all(1), hn::Add(all(1), e)), small = hn::Mul(e, large);
        const auto negative = hn::Lt(x, hn::Zero(tag()));
        value = hn::IfThenElse(negative, small, large);
        rest = hn::IfThenElse(negative, large, small);
    }
};

HWY_INLINE vec softplus(vec x) {
    const tag d;
    return hn::Add(hn::Max(x, hn::Zero(d)), hn::Log1p(d, hn::Exp(d, hn::Neg(hn::Abs(x)))));
}

/// e^(sum of terms), the sum to more than f32 has: an exponent of -80 in f32 alone would be known
/// to 4e-6 for each addition.
class exponent {
public:
    exponent() : high_(hn::Zero(tag())), low_(hn::Zero(tag())) {}
    void add(vec term) {
        const vec sum = hn::Add(high_, term), back = hn::Sub(sum, high_);
        low_ = hn::Add(low_, hn::Add(hn::Sub(high_, hn::Sub(sum, back)), hn::Sub(term, back)));
        high_ = sum;
    }
    vec exp() const {
        const vec e = hn::Exp(tag(), high_);
        return hn::MulAdd(e, low_, e);
    }

private:
    vec high_, low_;
};

/// c[r][n] = (keep ? keep[r] * c[r][n] : 0 or c[r][n]) + sum_x a(r, x) b[x][n], eight rows at a
/// time. a(r, x) is a[r * row + x * column]; n is a multiple of kda_chunk_lanes.
struct matrix {
    const float *at;
    int64_t row, column;
};
enum class onto { zero, sum, kept };

template <int R>
HWY_INLINE void product_rows(const matrix &a, int64_t r, const float *b, int64_t ldb, float *c,
                             int64_t ldc, int64_t inner, int64_t n, onto how, const float *keep) {
    for (int64_t j = 0; j < n; j += lanes()) {
        vec sum[R];
        for (int i = 0; i < R; ++i) {
            if (how == onto::zero)
                sum[i] = hn::Zero(tag());
            else if (how == onto::sum)
                sum[i] = load(c + (r + i) * ldc + j);
            else
                sum[i] = hn::Mul(all(keep[r + i]), load(c + (r + i) * ldc + j));
        }
        const float *from = a.at + r * a.row;
        for (int64_t x = 0; x < inner; ++x) {
            const vec v = load(b + x * ldb + j);
            for (int i = 0; i < R; ++i)
                sum[i] = hn::MulAdd(all(from[i * a.row + x * a.column]), v, sum[i]);
        }
        for (int i = 0; i < R; ++i) put(sum[i], c + (r + i) * ldc + j);
    }
}

/// `rows` is a multiple of 8.
inline HWY_NOINLINE void product(const matrix &a, int64_t rows, const float *b, int64_t ldb,
                                 float *c, int64_t ldc, int64_t inner, int64_t n, onto how,
                                 const float *keep = nullptr) {
    for (int64_t r = 0; r < rows; r += 8)
        product_rows<8>(a, r, b, ldb, c, ldc, inner, n, how, keep);
}

/// What a thread takes from its slice, 64-byte aligned.
class carver {
public:
    explicit carver(char *at) : at_(at) {}
    float *floats(int64_t count) { return static_cast<float *>(take(4 * count)); }
    double *doubles(int64_t count) { return static_cast<double *>(take(8 * count)); }

private:
    char *at_;
    void *take(int64_t bytes) {
        char *here = at_;
        at_ += (bytes + 63) / 64 * 64;
        return here;
    }
};

/// The channels of one token and head in f32; f64 tensors have another candidate.
inline void load_row(const kda_view &v, const void *base, int64_t at, int64_t count, float *to) {
    const auto *half = static_cast<const uint16_t *>(base) + at;
    const auto *wide = static_cast<const float *>(base) + at;
    switch (v.type) {
    case scalar::f32:
        for (int64_t i = 0; i < count; ++i) to[i] = wide[i * v.c];
        break;
    case scalar::f16:
        for (int64_t i = 0; i < count; ++i) to[i] = f16_to_f32(half[i * v.c]);
        break;
    default:
        for (int64_t i = 0; i < count; ++i) to[i] = bf16_to_f32(half[i * v.c]);
    }
}

inline void store_row(const kda_view &v, void *base, int64_t at, int64_t count, const float *from) {
    if (!v.used()) return;
    auto *half = static_cast<uint16_t *>(base) + at;
    auto *wide = static_cast<float *>(base) + at;
    switch (v.type) {
    case scalar::f32:
        for (int64_t i = 0; i < count; ++i) wide[i * v.c] = from[i];
        break;
    case scalar::f16:
        for (int64_t i = 0; i < count; ++i) half[i * v.c] = f32_to_f16(from[i]);
        break;
    default:
        for (int64_t i = 0; i < count; ++i) half[i * v.c] = f32_to_bf16(from[i]);
    }
}

inline int64_t place(const kda_view &v, int64_t b, int64_t t, int64_t h) {
    return b * v.b + t * v.t + h * v.h;
}

/// A chunk in rows of padded channels; rows past its end and channels past the last are zero.
struct chunk {
    float *q, *k, *x, *g;   ///< [C][dim_k]; q and k normed; x: what the gate's function is taken of
    float *up, *down;       ///< e^G, and e^(sum of later gates)
    float *qp, *kp, *kr;    ///< [C][dim_k]
    float *v, *e, *u, *out; ///< [C][dim_v]
    float *f, *a;           ///< [C][C]
    float *total;           ///< [dim_k]: e^G of the last row
    float *gates;           ///< [dim_k]: a running sum
    float *beta;            ///< [C]

    void carve(carver &from, const kda_chunk_layout &lay) {
        for (float **rows : {&q, &k, &x, &g, &up, &down, &qp, &kp, &kr})
            *rows = from.floats(C * lay.dim_k);
        for (float **rows : {&v, &e, &u, &out}) *rows = from.floats(C * lay.dim_v);
        f = from.floats(C * C);
        a = from.floats(C * C);
        total = from.floats(lay.dim_k);
        gates = from.floats(lay.dim_k);
        beta = from.floats(C);
    }
};

/// One value head of one sequence.
class head {
public:
    head(const kda_args &args, const kda_chunk_layout &layout, const sequence_table &table,
         int64_t n, int64_t value_head, chunk &buffers)
        : a(args), p(args.problem), lay(layout), s(table.span(n)), w(buffers), hv(value_head),
          h(value_head / p.group()), reserve(args, table.first_piece(n), value_head),
          scale(static_cast<float>(p.scale)), rate(1) {
        if (p.a_log.used())
            rate = static_cast<float>(
                std::exp(load_f64(p.a_log.type, a.a_log, place(p.a_log, 0, 0, hv))));
    }

    const kda_args &a;
    const kda_problem &p;
    const kda_chunk_layout &lay;
    sequence_span s;
    chunk &w;
    int64_t hv, h;
    reserve_states reserve;
    float scale, rate;

    /// Tokens [t, t + count) of the sequence.
    void load_tokens(int64_t t, int64_t count) const {
        const int64_t K = lay.dim_k, V = lay.dim_v;
        for (float *rows : {w.q, w.k, w.x}) std::fill(rows, rows + C * K, 0.0f);
        std::fill(w.v, w.v + C * V, 0.0f);
        std::fill(w.beta, w.beta + C, 0.0f);
        for (int64_t i = 0; i < count; ++i) {
            const int64_t at = s.begin + t + i;
            load_row(p.q, a.q, place(p.q, s.row, at, h), p.dim_k, w.q + i * K);
            load_row(p.k, a.k, place(p.k, s.row, at, h), p.dim_k, w.k + i * K);
            load_row(p.v, a.v, place(p.v, s.row, at, hv), p.dim_v, w.v + i * V);
            load_row(p.g, a.g, place(p.g, s.row, at, hv), p.dim_k, w.x + i * K);
            load_row(p.beta, a.beta, place(p.beta, s.row, at, hv), 1, w.beta + i);
            if (p.norm) {
                norm(w.q + i * K);
                norm(w.k + i * K);
            }
            if (p.dt_bias.used())
                for (int64_t c = 0; c < p.dim_k; ++c)
                    w.x[i * K + c] += static_cast<const float *>(
                        a.dt_bias)[place(p.dt_bias, 0, 0, hv) + c * p.dt_bias.c];
            if (p.beta_logit)
                w.beta[i] =
                    static_cast<float>(p.beta_scale) * hn::GetLane(logistic(all(w.beta[i])).value);
        }
        gate(count);
    }

    /// The products of the chunk on the state before it: F, A, e, u.
    void solve(const float *state) const {
        const int64_t V = lay.dim_v;
        decays();
        pairs();
        product({w.kp, lay.dim_k, 1}, C, state, V, w.e, V, lay.dim_k, V, onto::zero);
        for (int64_t i = 0; i < C; ++i)
            for (int64_t j = 0; j < V; j += lanes()) {
                vec rest = hn::Sub(load(w.v + i * V + j), load(w.e + i * V + j));
                for (int64_t m = 0; m < i; ++m)
                    rest = hn::NegMulAdd(all(w.f[i * C + m]), load(w.u + m * V + j), rest);
                put(rest, w.e + i * V + j);
                put(hn::Mul(all(w.beta[i]), rest), w.u + i * V + j);
            }
    }
    /// After solve: the state behind the chunk.
    void advance(float *state) const {
        product({w.kr, 1, lay.dim_k}, lay.dim_k, w.u, lay.dim_v, state, lay.dim_v, C, lay.dim_v,
                onto::kept, w.total);
    }

    /// Zeros without one.
    void load_state(const kda_state_view &v, const void *base, float *to) const {
        std::fill(to, to + lay.state, 0.0f);
        if (!v.used()) return;
        for (int64_t i = 0; i < p.dim_k; ++i)
            for (int64_t j = 0; j < p.dim_v; ++j)
                to[i * lay.dim_v + j] =
                    static_cast<float>(load_f64(v.type, base, state_at(v, i, j)));
    }
    /// null: zeros. Sequences without a row in the pool have none.
    void store_state(const kda_state_view &v, void *base, const float *from) const {
        if (!v.used() || s.state < 0) return;
        for (int64_t i = 0; i < p.dim_k; ++i)
            for (int64_t j = 0; j < p.dim_v; ++j)
                store_f64(v.type, base, state_at(v, i, j),
                          from != nullptr ? from[i * lay.dim_v + j] : 0);
    }

private:
    int64_t state_at(const kda_state_view &v, int64_t i, int64_t j) const {
        return s.state * v.n + hv * v.h + i * v.k + j * v.v;
    }

    void norm(float *row) const {
        double squares = p.eps;
        for (int64_t i = 0; i < p.dim_k; ++i) squares += double{row[i]} * row[i];
        const double inverse = 1 / std::sqrt(squares);
        for (int64_t i = 0; i < p.dim_k; ++i) row[i] = static_cast<float>(row[i] * inverse);
    }

    void gate(int64_t count) const {
        const int64_t K = lay.dim_k;
        std::fill(w.g, w.g + C * K, 0.0f);
        for (int64_t i = 0; i < count; ++i) {
            for (int64_t c = 0; c < K; c += lanes()) {
                const vec x = load(w.x + i * K + c);
                vec g = x;
                if (p.gate == kda_gate::softplus) g = hn::Mul(all(-rate), softplus(x));
                if (p.gate == kda_gate::bounded)
                    g = hn::Mul(all(static_cast<float>(p.lower_bound)),
                                logistic(hn::Mul(all(rate), x)).value);
                put(g, w.g + i * K + c);
            }
            std::fill(w.g + i * K + p.dim_k, w.g + (i + 1) * K, 0.0f);
        }
    }

    void decays() const {
        const int64_t K = lay.dim_k;
        for (int64_t c = 0; c < K; c += lanes()) {
            exponent sum;
            for (int64_t i = 0; i < C; ++i) {
                sum.add(load(w.g + i * K + c));
                const vec e = sum.exp();
                put(e, w.up + i * K + c);
                put(hn::Mul(hn::Mul(all(scale), load(w.q + i * K + c)), e), w.qp + i * K + c);
                put(hn::Mul(load(w.k + i * K + c), e), w.kp + i * K + c);
                if (i == C - 1) put(e, w.total + c);
            }
            exponent later;
            for (int64_t i = C; i-- > 0;) {
                const vec e = later.exp();
                put(e, w.down + i * K + c);
                put(hn::Mul(load(w.k + i * K + c), e), w.kr + i * K + c);
                later.add(load(w.g + i * K + c));
            }
        }
    }

    void pairs() const {
        const int64_t K = lay.dim_k;
        const tag d;
        std::fill(w.f, w.f + C * C, 0.0f);
        std::fill(w.a, w.a + C * C, 0.0f);
        for (int64_t i = 0; i < C; ++i) {
            std::fill(w.gates, w.gates + K, 0.0f);
            for (int64_t j = i + 1; j-- > 0;) {
                vec f = hn::Zero(d), q = hn::Zero(d);
                for (int64_t c = 0; c < K; c += lanes()) {
                    const vec sum = load(w.gates + c);
                    const vec k = hn::Mul(load(w.k + j * K + c), hn::Exp(d, sum));
                    f = hn::MulAdd(load(w.k + i * K + c), k, f);
                    q = hn::MulAdd(load(w.q + i * K + c), k, q);
                    put(hn::Add(sum, load(w.g + j * K + c)), w.gates + c);
                }
                if (j < i) w.f[i * C + j] = hn::GetLane(hn::SumOfLanes(d, f));
                w.a[i * C + j] = scale * hn::GetLane(hn::SumOfLanes(d, q));
            }
        }
    }
};

/// Packed tokens of no sequence are zero.
inline void clear_gaps(const kda_problem &p, const sequence_table &table, const kda_view &v,
                       void *base, int64_t h, int64_t channels) {
    if (!p.varlen || !v.used()) return;
    table.gaps(0, p.length, [&](int64_t begin, int64_t end) {
        for (int64_t t = begin; t < end; ++t)
            for (int64_t i = 0; i < channels; ++i)
                store_f64(v.type, base, place(v, 0, t, h) + i * v.c, 0);
    });
}

struct range {
    int64_t begin, end;
    range(int64_t count, int tid, int team)
        : begin(count / team * tid + std::min<int64_t>(count % team, tid)),
          end(count / team * (tid + 1) + std::min<int64_t>(count % team, tid + 1)) {}
};

} // namespace kda_simd
} // namespace HWY_NAMESPACE
} // namespace plait::impl::cpu
HWY_AFTER_NAMESPACE();

#endif
