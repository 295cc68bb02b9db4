// kda.bwd_chunk: the adjoint in chunks of 16 tokens, in f32, for every problem without f64 tensors.
// With dS the gradient of the state behind a chunk, s, F, A, e, u, q+, k+, kR as in chunk-inl.h:
//   du = A^T do + kR dS,   w_i = du_i - sum_{m>i} beta_m F_mi w_m,   dv = beta w,   dbeta_i = <w_i,
//   e_i> P_ij = s <do_i, u_j>, j <= i;   D_ij = -beta_i <w_i, u_j>, j < i;   E = e^(G_i - G_j) dq_i
//   = s e^G_i S do_i + sum_j P_ij k_j E dk_i = -beta_i e^G_i S w_i + e^(later gates) dS u_i + sum_j
//   D_ij k_j E + sum_m (P_mi q_m + D_mi k_m) E dg_r = sums of products that straddle r: of states,
//   of states with rows, of rows; no subtraction dS = diag(e^G of all) dS + q+^T do - k+^T dv Work
//   one head of q and k at a time, its value heads over all sequences; forward runs first and
//            keeps a state every sqrt(chunks) chunks, where no reserve has one every four; then
//            chunks go from the last to the first.
//   Threads  over heads. The bits do not depend on the number of threads: sums of a_log and dt_bias
//            are those of one thread, in f64 over chunks.
//   Numbers  f32 between load and store; the norm and its adjoint in f64.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lib/cpu/kda/bwd_chunk.cpp"
#include "lib/cpu/simd_targets.h"

#include "lib/cpu/kda/chunk_args.h"
#include "lib/cpu/kda/kda_args.h"
#include "lib/cpu/kda/reserve.h"
#include "lib/cpu/sequences.h"

#include <algorithm>
#include <cmath>
#include <hwy/foreach_target.h> // IWYU pragma: keep
#include <hwy/highway.h>

#include "lib/cpu/kda/chunk-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plait::impl::cpu {
namespace HWY_NAMESPACE {
namespace kda_simd {

struct adjoint_buffers {
    float *dout, *du, *dv;     ///< [C][dim_v]; dv with the sign of what it adds to dS
    float *turned;             ///< [dim_v][C]: u, do or w with tokens side by side
    float *side;               ///< [dim_k][C]
    float *written, *sq, *sk;  ///< [C][dim_k]: dS u, S do, S w
    float *dq, *dk, *dg;       ///< [C][dim_k]
    float *pp, *dd;            ///< [C][C]: P and D
    float *at;                 ///< [dim_k]: <dS, S> of a row of the state
    float *states, *kept, *ds; ///< of some chunks, every so many, and the gradient
    float *sum_q, *sum_k;      ///< [longest][dim_k], over value heads
    double *sums;              ///< [value heads of a head][dim_k + 1]: of dt_bias, then of a_log

    adjoint_buffers(carver &from, const kda_chunk_layout &lay) {
        for (float **rows : {&dout, &du, &dv, &turned}) *rows = from.floats(C * lay.dim_v);
        for (float **rows : {&side, &written, &sq, &sk, &dq, &dk, &dg})
            *rows = from.floats(C * lay.dim_k);
        pp = from.floats(C * C);
        dd = from.floats(C * C);
        at = from.floats(lay.dim_k);
        states = from.floats((lay.group + 1) * lay.state);
        kept = from.floats(lay.marks * lay.state);
        ds = from.floats(lay.state);
        sum_q = from.floats(lay.rows * lay.dim_k);
        sum_k = from.floats(lay.rows * lay.dim_k);
        sums = from.doubles(lay.sums);
    }
};

inline void turn(const float *from, int64_t rows, int64_t columns, float *to) {
    for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j) to[j * rows + i] = from[i * columns + j];
}

class adjoint {
public:
    adjoint(const head &forward, adjoint_buffers &buffers)
        : one(forward), p(forward.p), w(forward.w), b(buffers), K(forward.lay.dim_k),
          V(forward.lay.dim_v) {}

    void run(double *sums) const {
        const kda_chunk_layout &lay = one.lay;
        const int64_t length = one.s.length, chunks = (length + C - 1) / C, m = lay.group;
        const auto step = [&](int64_t c, float *state) {
            one.load_tokens(c * C, std::min(C, length - c * C));
            one.solve(state);
            one.advance(state);
        };
        const auto copy = [&](const float *from, float *to) {
            std::copy(from, from + lay.state, to);
        };
        if (!one.reserve.read()) one.load_state(p.state_in, one.a.state_in, b.states);
        for (int64_t c = 0; c < chunks && !one.reserve.read(); ++c) {
            if (c % m == 0) copy(b.states, b.kept + c / m * lay.state);
            if (c / m == (chunks - 1) / m) break; // the last of them are computed below
            step(c, b.states);
        }
        one.load_state(p.dstate_out, one.a.dstate_out, b.ds);
        for (int64_t from = (chunks - 1) / m * m; chunks > 0 && from >= 0; from -= m) {
            const int64_t to = std::min(chunks, from + m);
            if (one.reserve.read())
                get_kept(from / m);
            else
                copy(b.kept + from / m * lay.state, b.states);
            for (int64_t c = from; c + 1 < to; ++c) {
                float *state = b.states + (c - from) * lay.state;
                copy(state, state + lay.state);
                step(c, state + lay.state);
            }
            for (int64_t c = to; c-- > from;)
                chunk_at(c * C, std::min(C, length - c * C), b.states + (c - from) * lay.state,
                         sums);
        }
        one.store_state(p.dstate_in, one.a.dstate_in, b.ds);
    }

private:
    const head &one;
    const kda_problem &p;
    const chunk &w;
    adjoint_buffers &b;
    int64_t K, V;

    void get_kept(int64_t chunk) const {
        std::fill(b.states, b.states + one.lay.state, 0.0f); // what is padded
        one.reserve.get(chunk, b.states, V);
    }

    void chunk_at(int64_t t, int64_t count, const float *state, double *sums) const {
        one.load_tokens(t, count);
        one.solve(state);
        std::fill(b.dout, b.dout + C * V, 0.0f);
        for (int64_t i = 0; i < count; ++i)
            load_row(p.d_o, one.a.d_o, place(p.d_o, one.s.row, one.s.begin + t + i, one.hv),
                     p.dim_v, b.dout + i * V);
        values(t, count);
        products(state);
        channels();
        states();
        store(t, count, sums);
    }

    /// w in b.du, dv, dbeta.
    void values(int64_t t, int64_t count) const {
        product({w.a, 1, C}, C, b.dout, V, b.du, V, C, V, onto::zero);
        product({w.kr, K, 1}, C, b.ds, V, b.du, V, K, V, onto::sum);
        for (int64_t i = C; i-- > 0;) {
            for (int64_t j = 0; j < V; j += lanes()) {
                vec sum = load(b.du + i * V + j);
                for (int64_t m = i + 1; m < C; ++m)
                    sum =
                        hn::NegMulAdd(all(w.beta[m] * w.f[m * C + i]), load(b.du + m * V + j), sum);
                put(sum, b.du + i * V + j);
                put(hn::Mul(all(w.beta[i]), sum), b.dv + i * V + j);
            }
            if (i >= count) continue;
            const int64_t at = one.s.begin + t + i;
            store_row(p.dv, one.a.dv, place(p.dv, one.s.row, at, one.hv), p.dim_v, b.dv + i * V);
            float dbeta = dot(b.du + i * V, w.e + i * V, V);
            if (p.beta_logit) {
                float raw;
                load_row(p.beta, one.a.beta, place(p.beta, one.s.row, at, one.hv), 1, &raw);
                dbeta *= w.beta[i] * hn::GetLane(logistic(all(raw)).rest);
            }
            store_row(p.dbeta, one.a.dbeta, place(p.dbeta, one.s.row, at, one.hv), 1, &dbeta);
        }
    }

    static float dot(const float *x, const float *y, int64_t n) {
        vec sum = hn::Zero(tag());
        for (int64_t j = 0; j < n; j += lanes()) sum = hn::MulAdd(load(x + j), load(y + j), sum);
        return hn::GetLane(hn::SumOfLanes(tag(), sum));
    }

    /// What the chunk's rows make of the states before and behind it, and of one another.
    void products(const float *state) const {
        turn(w.u, C, V, b.turned);
        product({b.dout, V, 1}, C, b.turned, C, b.pp, C, V, C, onto::zero);
        product({b.du, V, 1}, C, b.turned, C, b.dd, C, V, C, onto::zero);
        for (int64_t i = 0; i < C; ++i)
            for (int64_t j = 0; j < C; ++j) {
                b.pp[i * C + j] *= one.scale;
                b.dd[i * C + j] *= -w.beta[i];
            }
        through(b.ds, b.written);
        turn(b.dout, C, V, b.turned);
        through(state, b.sq);
        turn(b.du, C, V, b.turned);
        through(state, b.sk);
        for (int64_t i = 0; i < K; ++i) b.at[i] = dot(b.ds + i * V, state + i * V, V);
    }
    /// to[token][key] = sum over values of state[key][value] * turned[value][token]
    void through(const float *state, float *to) const {
        product({state, V, 1}, K, b.turned, C, b.side, C, V, C, onto::zero);
        turn(b.side, K, C, to);
    }

    /// dq, dk and the gradient of the gates' logarithms, by channels.
    void channels() const {
        const tag d;
        for (int64_t c = 0; c < K; c += lanes()) {
            vec q[C], k[C], g[C], dq[C], dk[C], before[C], behind[C], cross[C];
            for (int64_t i = 0; i < C; ++i) {
                const int64_t at = i * K + c;
                q[i] = load(w.q + at), k[i] = load(w.k + at), g[i] = load(w.g + at);
                const vec up = load(w.up + at), beta = all(-w.beta[i]);
                const vec from_q = hn::Mul(all(one.scale), hn::Mul(up, load(b.sq + at)));
                const vec from_k = hn::Mul(beta, hn::Mul(up, load(b.sk + at)));
                const vec written = hn::Mul(load(w.down + at), load(b.written + at));
                before[i] = hn::MulAdd(q[i], from_q, hn::Mul(k[i], from_k));
                behind[i] = hn::Mul(k[i], written);
                const vec same = all(b.pp[i * C + i]);
                dq[i] = hn::MulAdd(same, k[i], from_q);
                dk[i] = hn::MulAdd(same, q[i], hn::Add(from_k, written));
                cross[i] = hn::Zero(d);
            }
            for (int64_t i = 1; i < C; ++i) {
                vec sum = hn::Zero(d), term[C];
                for (int64_t j = i; j-- > 0;) {
                    sum = hn::Add(sum, g[j + 1]);
                    const vec e = hn::Exp(d, sum), ke = hn::Mul(k[j], e);
                    const vec from_q = all(b.pp[i * C + j]), from_k = all(b.dd[i * C + j]);
                    dq[i] = hn::MulAdd(from_q, ke, dq[i]);
                    dk[i] = hn::MulAdd(from_k, ke, dk[i]);
                    const vec both = hn::MulAdd(from_q, q[i], hn::Mul(from_k, k[i]));
                    dk[j] = hn::MulAdd(both, e, dk[j]);
                    term[j] = hn::Mul(both, ke);
                }
                vec run = hn::Zero(d); // pairs (i, 0..j) straddle the gates j + 1 .. i
                for (int64_t j = 0; j < i; ++j) {
                    run = hn::Add(run, term[j]);
                    cross[j + 1] = hn::Add(cross[j + 1], run);
                }
            }
            vec sum = hn::Mul(load(w.total + c), load(b.at + c));
            for (int64_t i = 0; i < C; ++i) {
                cross[i] = hn::Add(cross[i], sum);
                sum = hn::Add(sum, behind[i]);
            }
            sum = hn::Zero(d);
            for (int64_t i = C; i-- > 0;) {
                sum = hn::Add(sum, before[i]);
                put(hn::Add(cross[i], sum), b.dg + i * K + c);
                put(dq[i], b.dq + i * K + c);
                put(dk[i], b.dk + i * K + c);
            }
        }
    }

    /// The gradient of the state before the chunk.
    void states() const {
        for (int64_t e = 0; e < C * V; e += lanes()) put(hn::Neg(load(b.dv + e)), b.dv + e);
        product({w.qp, 1, K}, K, b.dout, V, b.ds, V, C, V, onto::kept, w.total);
        product({w.kp, 1, K}, K, b.dv, V, b.ds, V, C, V, onto::sum);
    }

    void store(int64_t t, int64_t count, double *sums) const {
        for (int64_t i = 0; i < count; ++i) {
            float *dg = b.dg + i * K, *x = w.x + i * K, *g = w.g + i * K;
            const int64_t row = (t + i) * K;
            double of_a = 0;
            for (int64_t c = 0; c < K; c += lanes()) {
                put(hn::Add(load(b.sum_q + row + c), load(b.dq + i * K + c)), b.sum_q + row + c);
                put(hn::Add(load(b.sum_k + row + c), load(b.dk + i * K + c)), b.sum_k + row + c);
                const vec of_g = load(dg + c), at = load(x + c);
                vec a_term = hn::Zero(tag());
                if (p.gate == kda_gate::softplus) {
                    a_term = hn::Mul(of_g, load(g + c));
                    put(hn::Mul(hn::Mul(all(-one.rate), logistic(at).value), of_g), dg + c);
                } else if (p.gate == kda_gate::bounded) {
                    const logistic s(hn::Mul(all(one.rate), at));
                    const float slope = static_cast<float>(p.lower_bound) * one.rate;
                    const vec dx = hn::Mul(hn::Mul(all(slope), hn::Mul(s.value, s.rest)), of_g);
                    put(dx, dg + c);
                    a_term = hn::Mul(dx, at);
                }
                of_a += hn::GetLane(hn::SumOfLanes(tag(), a_term));
            }
            for (int64_t c = 0; c < p.dim_k; ++c) sums[c] += double{dg[c]};
            sums[p.dim_k] += of_a;
            store_row(p.dg, one.a.dg, place(p.dg, one.s.row, one.s.begin + t + i, one.hv), p.dim_k,
                      dg);
        }
    }
};

/// A row of dq or dk through the adjoint of the norm.
void put_row(const kda_problem &p, const kda_view &from, const void *base, const kda_view &to,
             void *out, const sequence_span &s, int64_t t, int64_t h, const float *dy) {
    if (!to.used()) return;
    const int64_t x = place(from, s.row, s.begin + t, h), dx = place(to, s.row, s.begin + t, h);
    double squares = p.eps, dot = 0;
    for (int64_t i = 0; p.norm && i < p.dim_k; ++i) {
        const double value = load_f64(from.type, base, x + i * from.c);
        squares += value * value;
        dot += value * double{dy[i]};
    }
    const double inverse = p.norm ? 1 / std::sqrt(squares) : 1, along = p.norm ? dot / squares : 0;
    for (int64_t i = 0; i < p.dim_k; ++i) {
        const double value = along == 0 ? 0 : load_f64(from.type, base, x + i * from.c);
        store_f64(to.type, out, dx + i * to.c, inverse * (double{dy[i]} - value * along));
    }
}

void backward(const kda_args &a, const kda_chunk_layout &lay, const sequence_table &table,
              chunk &buffers, adjoint_buffers &b, int64_t h) {
    const kda_problem &p = a.problem;
    const int64_t first = h * p.group(), each = p.dim_k + 1;
    std::fill(b.sums, b.sums + p.group() * each, 0.0);
    for (int64_t n = 0; n < table.count(); ++n) {
        const sequence_span s = table.span(n);
        std::fill(b.sum_q, b.sum_q + s.length * lay.dim_k, 0.0f);
        std::fill(b.sum_k, b.sum_k + s.length * lay.dim_k, 0.0f);
        for (int64_t x = 0; x < p.group(); ++x) {
            const head one(a, lay, table, n, first + x, buffers);
            if (s.live)
                adjoint(one, b).run(b.sums + x * each);
            else
                one.store_state(p.dstate_in, a.dstate_in, nullptr);
        }
        for (int64_t t = 0; t < s.length; ++t) {
            put_row(p, p.q, a.q, p.dq, a.dq, s, t, h, b.sum_q + t * lay.dim_k);
            put_row(p, p.k, a.k, p.dk, a.dk, s, t, h, b.sum_k + t * lay.dim_k);
        }
    }
    for (int64_t x = 0; x < p.group(); ++x) {
        const double *sums = b.sums + x * each;
        for (int64_t i = 0; p.ddt_bias.used() && i < p.dim_k; ++i)
            store_f64(p.ddt_bias.type, a.ddt_bias,
                      place(p.ddt_bias, 0, 0, first + x) + i * p.ddt_bias.c, sums[i]);
        if (p.da_log.used())
            store_f64(p.da_log.type, a.da_log, place(p.da_log, 0, 0, first + x), sums[p.dim_k]);
    }
}

} // namespace kda_simd

void kda_backward_part(const kda_args &a, const sequence_table &table, const kda_chunk_layout &lay,
                       char *slice, int tid, int team) {
    const kda_problem &p = a.problem;
    kda_simd::carver from(slice);
    kda_simd::chunk buffers;
    buffers.carve(from, lay);
    kda_simd::adjoint_buffers b(from, lay);
    const kda_simd::range values(p.value_heads, tid, team), heads(p.heads, tid, team);
    for (int64_t h = values.begin; h < values.end; ++h) {
        kda_simd::clear_gaps(p, table, p.dv, a.dv, h, p.dim_v);
        kda_simd::clear_gaps(p, table, p.dg, a.dg, h, p.dim_k);
        kda_simd::clear_gaps(p, table, p.dbeta, a.dbeta, h, 1);
    }
    for (int64_t h = heads.begin; h < heads.end; ++h) {
        kda_simd::clear_gaps(p, table, p.dq, a.dq, h, p.dim_k);
        kda_simd::clear_gaps(p, table, p.dk, a.dk, h, p.dim_k);
        kda_simd::backward(a, lay, table, buffers, b, h);
    }
}

} // namespace HWY_NAMESPACE
} // namespace plait::impl::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#    include "lib/cpu/kda/kda_kernels.h"

#    include <omp.h>

namespace plait::impl::cpu {
namespace {

HWY_EXPORT(kda_backward_part);

} // namespace

void kda_bwd_chunk(const void *arguments, int threads) {
    const kda_args &a = *static_cast<const kda_args *>(arguments);
    const kda_chunk_layout lay(a.problem);
    const sequence_table table(kda_rules(a.problem), {a.cu_seqlens, a.slots, a.status}, a.scratch,
                               kda_reserve_piece(a.problem));
    char *scratch = static_cast<char *>(a.scratch) + kda_table_bytes(a.problem);
    const auto part = HWY_DYNAMIC_DISPATCH(kda_backward_part);
    // OpenMP would allocate a team even for one thread.
    if (threads <= 1) return part(a, table, lay, scratch, 0, 1);
#    pragma omp parallel num_threads(threads)
    part(a, table, lay, scratch + lay.slice * omp_get_thread_num(), omp_get_thread_num(),
         omp_get_num_threads());
}

} // namespace plait::impl::cpu
#endif
