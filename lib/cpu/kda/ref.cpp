// kda.ref: the definition in float64, token by token, for every problem: forward and its adjoint.
//   Work     one value head of one sequence at a time; its state is a matrix of doubles. Backward
//            first runs forward and keeps a state every sqrt(length) tokens, or finds one every 64
//            in the reserve, then takes these chunks from the last to the first, with the states of
//            one chunk.
//   Threads  forward over (sequence, value head); backward over heads, so that dq, dk and the sums
//            of a_log and dt_bias are those of one thread, in the order of value heads, sequences
//            and tokens. The bits do not depend on the number of threads.
//   Numbers  float64 throughout; one rounding at the store.
#include "lib/cpu/kda/kda_args.h"
#include "lib/cpu/kda/kda_kernels.h"
#include "lib/cpu/kda/ref_args.h"
#include "lib/cpu/kda/reserve.h"
#include "lib/cpu/scalars.h"
#include "lib/cpu/sequences.h"

#include <algorithm>
#include <cmath>
#include <omp.h>

namespace plait::impl::cpu {
namespace {

/// The channels of one token and head, or of one head of a parameter.
struct line {
    scalar type;
    const void *base;
    int64_t at, step;
    double operator[](int64_t i) const { return load_f64(type, base, at + i * step); }
};
struct out_line {
    scalar type;
    void *base;
    int64_t at, step;
    void put(int64_t i, double v) const {
        if (type != scalar::none) store_f64(type, base, at + i * step, v);
    }
};
line read(const kda_view &v, const void *base, int64_t b, int64_t t, int64_t h) {
    return {v.type, base, b * v.b + t * v.t + h * v.h, v.c};
}
out_line write(const kda_view &v, void *base, int64_t b, int64_t t, int64_t h) {
    return {v.type, base, b * v.b + t * v.t + h * v.h, v.c};
}

/// 1 / (1 + e^-x) without an overflow on either side.
double sigmoid(double x) {
    if (x >= 0) return 1 / (1 + std::exp(-x));
    const double e = std::exp(x);
    return e / (1 + e);
}
double softplus(double x) { return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); }

struct range {
    int64_t begin, end;
    range(int64_t count, int tid, int team)
        : begin(count / team * tid + std::min<int64_t>(count % team, tid)),
          end(count / team * (tid + 1) + std::min<int64_t>(count % team, tid + 1)) {}
};

/// The doubles of one thread.
struct workspace {
    double *q, *k, *x, *g, *decay;   ///< [dim_k]; x: what the gate's function is taken of
    double *v, *e, *u, *o, *du, *dr; ///< [dim_v]; e = v - r; o: S^T q, or scale times its gradient
    double beta = 0;
    double *state;          ///< forward: one; backward: of a chunk, one more than tokens
    double *marks, *dstate; ///< backward
    double *dq, *dk;        ///< backward: [longest][dim_k]
    double *sums;           ///< backward: [group][dim_k + 1], of dt_bias, then of a_log

    workspace(const kda_problem &p, const kda_ref_layout &lay, double *at) {
        const auto take = [&](int64_t count) {
            double *here = at;
            at += count;
            return here;
        };
        for (double **vector : {&q, &k, &x, &g, &decay}) *vector = take(p.dim_k);
        for (double **vector : {&v, &e, &u, &o, &du, &dr}) *vector = take(p.dim_v);
        const bool backward = p.direction == kda_direction::backward;
        state = take((backward ? lay.chunk + 1 : 1) * lay.state);
        if (!backward) return;
        marks = take(lay.marks * lay.state);
        dstate = take(lay.state);
        dq = take(p.longest() * p.dim_k);
        dk = take(p.longest() * p.dim_k);
        sums = take(p.group() * (p.dim_k + 1));
    }
};

/// One value head of one sequence.
class head {
public:
    head(const kda_args &args, const sequence_table &all, int64_t n, int64_t value_head,
         workspace &scratch)
        : a(args), p(args.problem), s(all.span(n)), w(scratch), hv(value_head),
          h(value_head / p.group()), reserve(args, all.first_piece(n), value_head),
          rate(p.a_log.used() ? std::exp(read(p.a_log, a.a_log, 0, 0, hv)[0]) : 1) {}

    void forward() const {
        if (s.live) {
            load_state(p.state_in, a.state_in, w.state);
            for (int64_t t = 0; t < s.length; ++t) {
                if (reserve.written() && t % kda_reserve_rows == 0)
                    reserve.put(t / kda_reserve_rows, w.state, p.dim_v);
                load_token(t);
                advance(w.state, w.state);
                const out_line o = write(p.o, a.o, s.row, s.begin + t, hv);
                for (int64_t j = 0; j < p.dim_v; ++j) o.put(j, p.scale * w.o[j]);
            }
        } else {
            for (int64_t t = 0; t < s.length; ++t)
                for (int64_t j = 0; j < p.dim_v; ++j)
                    write(p.o, a.o, s.row, s.begin + t, hv).put(j, 0);
        }
        store_state(p.state_out, a.state_out, s.live ? w.state : nullptr);
    }

    /// dv, dg, dbeta and dstate_in; adds to w.dq and w.dk, and to `sums` of this value head.
    void backward(const kda_ref_layout &lay, double *sums) const {
        const int64_t chunks = (s.length + lay.chunk - 1) / lay.chunk;
        if (!reserve.read()) load_state(p.state_in, a.state_in, w.state);
        for (int64_t t = 0; t < s.length && !reserve.read(); ++t) {
            if (t % lay.chunk == 0)
                std::copy(w.state, w.state + lay.state, w.marks + t / lay.chunk * lay.state);
            if (t / lay.chunk + 1 == chunks) break;
            load_token(t);
            advance(w.state, w.state);
        }
        load_state(p.dstate_out, a.dstate_out, w.dstate);
        for (int64_t c = chunks; c-- > 0;) {
            const int64_t from = c * lay.chunk, to = std::min(s.length, from + lay.chunk);
            if (reserve.read())
                reserve.get(c, w.state, p.dim_v);
            else
                std::copy(w.marks + c * lay.state, w.marks + (c + 1) * lay.state, w.state);
            for (int64_t t = from; t < to; ++t) {
                load_token(t);
                double *before = w.state + (t - from) * lay.state;
                advance(before, before + lay.state);
            }
            for (int64_t t = to; t-- > from;) {
                load_token(t);
                adjoint(t, w.state + (t - from) * lay.state, lay.state, sums);
            }
        }
        store_state(p.dstate_in, a.dstate_in, w.dstate);
    }

    void clear_gradients() const { store_state(p.dstate_in, a.dstate_in, nullptr); }

private:
    const kda_args &a;
    const kda_problem &p;
    sequence_span s;
    workspace &w;
    int64_t hv, h;
    reserve_states reserve;
    double rate; ///< A of the gate

    void load_token(int64_t t) const {
        const int64_t at = s.begin + t;
        load_row(read(p.q, a.q, s.row, at, h), w.q);
        load_row(read(p.k, a.k, s.row, at, h), w.k);
        const line v = read(p.v, a.v, s.row, at, hv), g = read(p.g, a.g, s.row, at, hv);
        for (int64_t j = 0; j < p.dim_v; ++j) w.v[j] = v[j];
        for (int64_t i = 0; i < p.dim_k; ++i) {
            w.x[i] = g[i];
            if (p.dt_bias.used()) w.x[i] += read(p.dt_bias, a.dt_bias, 0, 0, hv)[i];
            w.g[i] = p.gate == kda_gate::log        ? w.x[i]
                     : p.gate == kda_gate::softplus ? -rate * softplus(w.x[i])
                                                    : p.lower_bound * sigmoid(rate * w.x[i]);
            w.decay[i] = std::exp(w.g[i]);
        }
        w.beta = read(p.beta, a.beta, s.row, at, hv)[0];
        if (p.beta_logit) w.beta = p.beta_scale * sigmoid(w.beta);
    }
    /// q or k, divided by its norm.
    void load_row(const line &from, double *to) const {
        double squares = 0;
        for (int64_t i = 0; i < p.dim_k; ++i) {
            to[i] = from[i];
            squares += to[i] * to[i];
        }
        if (!p.norm) return;
        const double inverse = 1 / std::sqrt(squares + p.eps);
        for (int64_t i = 0; i < p.dim_k; ++i) to[i] *= inverse;
    }

    /// after = S of the loaded token; its update u is left in w.u, v - r in w.e, S^T q in w.o.
    void advance(const double *before, double *after) const {
        const int64_t V = p.dim_v;
        std::fill(w.e, w.e + V, 0.0);
        for (int64_t i = 0; i < p.dim_k; ++i) {
            const double decay = w.decay[i], k = w.k[i];
            for (int64_t j = 0; j < V; ++j) {
                const double kept = decay * before[i * V + j];
                after[i * V + j] = kept;
                w.e[j] += k * kept;
            }
        }
        for (int64_t j = 0; j < V; ++j) {
            w.e[j] = w.v[j] - w.e[j];
            w.u[j] = w.beta * w.e[j];
            w.o[j] = 0;
        }
        for (int64_t i = 0; i < p.dim_k; ++i) {
            const double k = w.k[i], q = w.q[i];
            for (int64_t j = 0; j < V; ++j) {
                after[i * V + j] += k * w.u[j];
                w.o[j] += q * after[i * V + j];
            }
        }
    }

    /// Token t, loaded, whose states before and after lie behind one another. w.dstate is the
    /// gradient of the state behind it, then of the one before it.
    void adjoint(int64_t t, double *before, int64_t state, double *sums) const {
        const int64_t V = p.dim_v, at = s.begin + t;
        double *after = before + state, *dq = w.dq + t * p.dim_k, *dk = w.dk + t * p.dim_k;
        advance(before, after); // the same bits again, and w.e and w.u
        const line d_o = read(p.d_o, a.d_o, s.row, at, hv);
        for (int64_t j = 0; j < V; ++j) {
            w.o[j] = p.scale * d_o[j];
            w.du[j] = 0;
        }
        for (int64_t i = 0; i < p.dim_k; ++i) {
            const double q = w.q[i], k = w.k[i];
            double *d = w.dstate + i * V, sum = 0;
            for (int64_t j = 0; j < V; ++j) {
                sum += after[i * V + j] * w.o[j];
                d[j] += q * w.o[j];
                w.du[j] += k * d[j];
            }
            dq[i] += sum;
        }
        const out_line dv = write(p.dv, a.dv, s.row, at, hv);
        double dbeta = 0;
        for (int64_t j = 0; j < V; ++j) {
            dbeta += w.du[j] * w.e[j];
            dv.put(j, w.beta * w.du[j]);
            w.dr[j] = -w.beta * w.du[j];
        }
        put_dbeta(at, dbeta);
        for (int64_t i = 0; i < p.dim_k; ++i) {
            const double k = w.k[i], decay = w.decay[i];
            double *d = w.dstate + i * V, written = 0, read_back = 0, dg = 0;
            for (int64_t j = 0; j < V; ++j) {
                const double kept = decay * before[i * V + j];
                written += d[j] * w.u[j];
                read_back += kept * w.dr[j];
                d[j] += k * w.dr[j];
                dg += d[j] * kept;
                d[j] *= decay;
            }
            dk[i] += written + read_back;
            put_dg(at, i, dg, sums);
        }
    }

    /// From the gradient of the logarithm of the decay to those of what it was computed from.
    void put_dg(int64_t at, int64_t i, double dg, double *sums) const {
        const double x = w.x[i];
        double dx = dg;
        if (p.gate == kda_gate::softplus) {
            dx = -rate * sigmoid(x) * dg;
            sums[p.dim_k] += dg * w.g[i];
        } else if (p.gate == kda_gate::bounded) {
            const double f = sigmoid(rate * x) * sigmoid(-rate * x); // no 1 - s near a bound
            dx = p.lower_bound * rate * f * dg;
            sums[p.dim_k] += dx * x;
        }
        sums[i] += dx;
        write(p.dg, a.dg, s.row, at, hv).put(i, dx);
    }
    void put_dbeta(int64_t at, double dbeta) const {
        if (p.beta_logit) {
            const double b = read(p.beta, a.beta, s.row, at, hv)[0];
            dbeta *= p.beta_scale * sigmoid(b) * sigmoid(-b);
        }
        write(p.dbeta, a.dbeta, s.row, at, hv).put(0, dbeta);
    }

    /// Zeros without one.
    void load_state(const kda_state_view &v, const void *base, double *to) const {
        for (int64_t i = 0; i < p.dim_k; ++i)
            for (int64_t j = 0; j < p.dim_v; ++j)
                to[i * p.dim_v + j] =
                    v.used() ? load_f64(v.type, base, s.state * v.n + hv * v.h + i * v.k + j * v.v)
                             : 0;
    }
    /// null: zeros. Sequences without a row in the pool have none.
    void store_state(const kda_state_view &v, void *base, const double *from) const {
        if (!v.used() || s.state < 0) return;
        for (int64_t i = 0; i < p.dim_k; ++i)
            for (int64_t j = 0; j < p.dim_v; ++j)
                store_f64(v.type, base, s.state * v.n + hv * v.h + i * v.k + j * v.v,
                          from != nullptr ? from[i * p.dim_v + j] : 0);
    }
};

/// One head of q and k over all sequences: the gradients of its value heads, then its own.
class gradients {
public:
    gradients(const kda_args &args, const kda_ref_layout &layout, workspace &scratch, int64_t head)
        : a(args), p(args.problem), lay(layout), w(scratch), h(head) {}

    void run(const sequence_table &all) const {
        const int64_t first = h * p.group();
        std::fill(w.sums, w.sums + p.group() * (p.dim_k + 1), 0.0);
        for (int64_t n = 0; n < all.count(); ++n) {
            const sequence_span s = all.span(n);
            std::fill(w.dq, w.dq + s.length * p.dim_k, 0.0);
            std::fill(w.dk, w.dk + s.length * p.dim_k, 0.0);
            for (int64_t x = 0; x < p.group(); ++x) {
                const head one(a, all, n, first + x, w);
                if (s.live)
                    one.backward(lay, w.sums + x * (p.dim_k + 1));
                else
                    one.clear_gradients();
            }
            for (int64_t t = 0; t < s.length; ++t) {
                put_row(p.q, a.q, p.dq, a.dq, s, t, w.dq + t * p.dim_k);
                put_row(p.k, a.k, p.dk, a.dk, s, t, w.dk + t * p.dim_k);
            }
        }
        for (int64_t x = 0; x < p.group(); ++x) {
            const double *sums = w.sums + x * (p.dim_k + 1);
            for (int64_t i = 0; i < p.dim_k; ++i)
                write(p.ddt_bias, a.ddt_bias, 0, 0, first + x).put(i, sums[i]);
            write(p.da_log, a.da_log, 0, 0, first + x).put(0, sums[p.dim_k]);
        }
    }

private:
    const kda_args &a;
    const kda_problem &p;
    const kda_ref_layout &lay;
    workspace &w;
    int64_t h;

    /// A row of dq or dk through the adjoint of the norm.
    void put_row(const kda_view &from, const void *base, const kda_view &to, void *out,
                 const sequence_span &s, int64_t t, const double *dy) const {
        const line x = read(from, base, s.row, s.begin + t, h);
        const out_line dx = write(to, out, s.row, s.begin + t, h);
        double squares = p.eps, dot = 0, inverse = 1;
        if (p.norm) {
            for (int64_t i = 0; i < p.dim_k; ++i) squares += x[i] * x[i], dot += x[i] * dy[i];
            inverse = 1 / std::sqrt(squares);
        }
        const double along = p.norm ? dot * inverse * inverse : 0;
        for (int64_t i = 0; i < p.dim_k; ++i) dx.put(i, inverse * (dy[i] - x[i] * along));
    }
};

/// Packed tokens of no sequence are zero.
void clear_gaps(const kda_problem &p, const sequence_table &all, const kda_view &v, void *base,
                int64_t h, int64_t channels) {
    if (!p.varlen || !v.used()) return;
    all.gaps(0, p.length, [&](int64_t begin, int64_t end) {
        for (int64_t t = begin; t < end; ++t)
            for (int64_t i = 0; i < channels; ++i) write(v, base, 0, t, h).put(i, 0);
    });
}

void run(const kda_args &a, const sequence_table &all, const kda_ref_layout &lay, double *scratch,
         int tid, int team) {
    const kda_problem &p = a.problem;
    workspace w(p, lay, scratch + lay.slice * tid);
    const range values(p.value_heads, tid, team);
    for (int64_t h = values.begin; h < values.end; ++h) {
        clear_gaps(p, all, p.o, a.o, h, p.dim_v);
        clear_gaps(p, all, p.dv, a.dv, h, p.dim_v);
        clear_gaps(p, all, p.dg, a.dg, h, p.dim_k);
        clear_gaps(p, all, p.dbeta, a.dbeta, h, 1);
    }
    if (p.direction == kda_direction::forward) {
        if (p.value_heads == 0) return;
        const range items(all.count() * p.value_heads, tid, team);
        for (int64_t i = items.begin; i < items.end; ++i)
            head(a, all, i / p.value_heads, i % p.value_heads, w).forward();
        return;
    }
    const range heads(p.heads, tid, team);
    for (int64_t h = heads.begin; h < heads.end; ++h) {
        clear_gaps(p, all, p.dq, a.dq, h, p.dim_k);
        clear_gaps(p, all, p.dk, a.dk, h, p.dim_k);
        gradients(a, lay, w, h).run(all);
    }
}

} // namespace

void kda_ref(const void *arguments, int threads) {
    const kda_args &a = *static_cast<const kda_args *>(arguments);
    const sequence_table all(kda_rules(a.problem), {a.cu_seqlens, a.slots, a.status}, a.scratch,
                             kda_reserve_piece(a.problem));
    put_reserve_header(a);
    const kda_ref_layout lay(a.problem);
    double *scratch =
        reinterpret_cast<double *>(static_cast<char *>(a.scratch) + kda_table_bytes(a.problem));
    // OpenMP would allocate a team even for one thread.
    if (threads <= 1) return run(a, all, lay, scratch, 0, 1);
#pragma omp parallel num_threads(threads)
    run(a, all, lay, scratch, omp_get_thread_num(), omp_get_num_threads());
}

} // namespace plait::impl::cpu
