// conv1d.ref: the definition in float64, for every problem: forward, backward and update.
//   Work     one (sequence, channel) at a time, in chunks of converted tokens; K operations a tap.
//   Threads  over (sequence, channel); backward over channels, so that dw and dbias are sums of one
//            thread in the order of tokens. The bits do not depend on the number of threads.
//   Numbers  products of two f32 are exact in float64, so that acc + w * x rounds once; with f64
//            tensors a true fma does. One rounding at the store.
#include "lib/cpu/conv1d/conv1d_kernels.h"
#include "lib/cpu/conv1d/ref_args.h"
#include "lib/cpu/conv1d/sequences.h"
#include "lib/cpu/scalars.h"

#include <algorithm>
#include <cmath>
#include <omp.h>

namespace plait::impl::cpu {
namespace {

/// A tensor seen along time, at one row and channel.
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
    void put(int64_t i, double v) const { store_f64(type, base, at + i * step, v); }
};

line read(const conv1d_view &v, const void *base, int64_t row, int64_t c) {
    return {v.type, base, row * v.b + c * v.c, v.t};
}
out_line write(const conv1d_view &v, void *base, int64_t row, int64_t c) {
    return {v.type, base, row * v.b + c * v.c, v.t};
}

/// 1 / (1 + e^-p) without an overflow on either side.
double sigmoid(double p) {
    if (p >= 0) return 1 / (1 + std::exp(-p));
    const double e = std::exp(p);
    return e / (1 + e);
}

struct range {
    int64_t begin, end;
    range(int64_t count, int tid, int team)
        : begin(count / team * tid + std::min<int64_t>(count % team, tid)),
          end(count / team * (tid + 1) + std::min<int64_t>(count % team, tid + 1)) {}
};

/// One sequence of one channel.
class row {
public:
    row(const conv1d_args &args, const conv1d_span &span, int64_t channel)
        : a(args), p(args.problem), s(span), c(channel), length(span.length) {
        if (p.seq_idx.used()) ids = a.seq_idx + s.row * p.seq_idx.b;
        if (p.ring) { // in [0, entries) for every position, also for one that breaks the rules
            head = a.position[s.row] % p.entries;
            if (head < 0) head += p.entries;
        }
    }

    /// xe at a position below 0; `history` entries back at most.
    double before(int64_t at) const {
        if (!p.state_in.used()) return 0;
        const line state = read(p.state_in, a.first_state(), s.state, c);
        if (p.ring) return state[(head + at + p.entries) % p.entries];
        return state[p.entries + at];
    }
    double x(int64_t t) const { return read(p.x, a.x, s.row, c)[s.begin + t]; }
    double xe(int64_t at) const { return at >= 0 ? x(at) : before(at); }

    bool padding(int64_t t) const { return ids != nullptr && ids[t * p.seq_idx.t] < 0; }
    /// Whether token t, which is no padding, sees position `at`.
    bool sees(int64_t t, int64_t at) const {
        if (ids == nullptr) return true;
        if (at < 0) return p.state_in.used() && ids[0] == ids[t * p.seq_idx.t];
        return ids[at * p.seq_idx.t] == ids[t * p.seq_idx.t];
    }
    /// Whether xe[at] is part of the last state.
    bool kept(int64_t at) const {
        return ids == nullptr || length == 0 || (!padding(length - 1) && sees(length - 1, at));
    }

    /// `window[k]` is what tap k meets.
    double pre(int64_t t, const double *w, double bias, const double *window) const {
        double acc = bias;
        for (int64_t k = 0; k < p.width; ++k) {
            if (!sees(t, t - p.history() + k)) continue;
            acc = p.accumulator == scalar::f64 ? std::fma(w[k], window[k], acc)
                                               : acc + w[k] * window[k];
        }
        return acc;
    }

    void forward(double *scratch) const {
        const out_line y = write(p.y, a.y, s.row, c);
        if (!s.live) {
            for (int64_t t = 0; t < length; ++t) y.put(s.begin + t, 0);
        } else {
            double *w = scratch, *window = w + p.width;
            const double bias = weights(w);
            for (int64_t k = 0; k < p.history(); ++k) window[k] = before(k - p.history());
            for (int64_t from = 0; from < length; from += conv1d_ref_chunk) {
                const int64_t now = std::min(conv1d_ref_chunk, length - from);
                double *fresh = window + p.history();
                for (int64_t i = 0; i < now; ++i) fresh[i] = x(from + i);
                for (int64_t i = 0; i < now; ++i) {
                    double v = 0;
                    if (!padding(from + i)) {
                        v = pre(from + i, w, bias, window + i);
                        if (p.silu) v *= sigmoid(v);
                        if (p.residual) v += fresh[i];
                    }
                    y.put(s.begin + from + i, v);
                }
                std::copy(window + now, window + now + p.history(), window);
            }
        }
        if (p.state_out.used()) hand_on();
    }

    /// dx and dstate_in; adds to dw[0..width) and returns what dbias gains.
    double backward(double *scratch, double *dw) const {
        double *w = scratch, *window = w + p.width;
        double *g = window + p.width + conv1d_ref_chunk; // history() before the chunk, then it
        const double bias = weights(w);
        const line dy = read(p.dy, a.dy, s.row, c);
        double sum = 0;
        for (int64_t k = 0; k < p.history(); ++k) window[k] = before(k - p.history()), g[k] = 0;
        // Behind the last token g is 0: history() more steps complete the last dx.
        for (int64_t from = 0; from < length + p.history(); from += conv1d_ref_chunk) {
            const int64_t now = std::min(conv1d_ref_chunk, length + p.history() - from);
            for (int64_t i = 0; i < now; ++i) {
                const int64_t t = from + i;
                double *g_now = g + p.history() + i;
                *g_now = 0;
                if (t >= length) continue;
                window[p.history() + i] = x(t);
                if (padding(t)) continue;
                *g_now = dy[s.begin + t];
                if (p.silu) {
                    const double v = pre(t, w, bias, window + i), f = sigmoid(v);
                    *g_now *= f * (1 + v * (1 - f));
                }
                sum += *g_now;
                for (int64_t k = 0; k < p.width; ++k)
                    if (sees(t, t - p.history() + k)) dw[k] += *g_now * window[i + k];
            }
            for (int64_t i = 0; i < now; ++i) {
                const int64_t at = from + i - p.history();
                double v = 0;
                for (int64_t k = 0; k < p.width; ++k) {
                    const int64_t t = at + p.history() - k;
                    if (t >= 0 && t < length && !padding(t) && sees(t, at))
                        v += w[k] * g[i + p.history() - k];
                }
                put_gradient(at, v);
            }
            std::copy(window + now, window + now + p.history(), window);
            std::copy(g + now, g + now + p.history(), g);
        }
        for (int64_t at = -p.entries; at < -p.history(); ++at) put_gradient(at, 0);
        return sum;
    }

    /// The gradients of a sequence that belongs to nothing.
    void clear_gradients() const {
        if (p.dx.used())
            for (int64_t t = 0; t < length; ++t) write(p.dx, a.dx, s.row, c).put(s.begin + t, 0);
        if (p.dstate_in.used())
            for (int64_t i = 0; i < p.entries; ++i)
                write(p.dstate_in, a.dstate_in, s.state, c).put(i, 0);
    }

private:
    const conv1d_args &a;
    const conv1d_problem &p;
    conv1d_span s;
    int64_t c;
    int64_t length;
    const int32_t *ids = nullptr;
    int64_t head = 0;

    double weights(double *w) const {
        const line from = read(p.w, a.w, 0, c);
        for (int64_t k = 0; k < p.width; ++k) w[k] = from[k];
        return p.bias.used() ? load_f64(p.bias.type, a.bias, c * p.bias.c) : 0;
    }

    /// The last state; it may be the first one: entry i depends on none below i.
    void hand_on() const {
        if (s.state < 0) return;
        const out_line state = write(p.state_out, a.last_state(), s.state, c);
        if (p.ring) {
            for (int64_t t = std::max<int64_t>(0, length - p.entries); t < length; ++t)
                state.put((head + t % p.entries) % p.entries, x(t));
            return;
        }
        for (int64_t i = 0; i < p.entries; ++i) {
            const int64_t at = length - p.entries + i;
            state.put(i, s.live && kept(at) ? xe(at) : 0);
        }
    }

    void put_gradient(int64_t at, double v) const {
        if (p.dstate_out.used() && at >= length - p.entries && kept(at))
            v += read(p.dstate_out, a.dstate_out, s.state, c)[at - (length - p.entries)];
        if (at >= 0) {
            if (!p.dx.used()) return;
            if (p.residual && !padding(at)) v += read(p.dy, a.dy, s.row, c)[s.begin + at];
            write(p.dx, a.dx, s.row, c).put(s.begin + at, v);
        } else if (p.dstate_in.used()) {
            write(p.dstate_in, a.dstate_in, s.state, c).put(at + p.entries, v);
        }
    }
};

/// Packed tokens of no sequence are zero.
void clear_gaps(const conv1d_problem &p, const conv1d_sequences &all, const conv1d_view &v,
                void *base, int64_t c) {
    if (!p.varlen || !v.used()) return;
    const out_line out = write(v, base, 0, c);
    all.gaps(0, p.length, [&](int64_t begin, int64_t end) {
        for (int64_t t = begin; t < end; ++t) out.put(t, 0);
    });
}

void run(const conv1d_args &a, const conv1d_sequences &all, double *scratch, int tid, int team) {
    const conv1d_problem &p = a.problem;
    const range channels(p.channels, tid, team);
    double *own = scratch + conv1d_ref_slice(p) * tid;
    if (p.direction != conv1d_direction::backward) {
        for (int64_t c = channels.begin; c < channels.end; ++c) clear_gaps(p, all, p.y, a.y, c);
        if (p.channels == 0) return;
        const range rows(all.count() * p.channels, tid, team);
        for (int64_t i = rows.begin; i < rows.end; ++i)
            row(a, all.span(i / p.channels), i % p.channels).forward(own);
        return;
    }
    for (int64_t c = channels.begin; c < channels.end; ++c) {
        clear_gaps(p, all, p.dx, a.dx, c);
        double *dw = own + conv1d_ref_slice(p) - 8 - p.width;
        std::fill(dw, dw + p.width, 0.0);
        double dbias = 0;
        for (int64_t n = 0; n < all.count(); ++n) {
            const conv1d_span s = all.span(n);
            const row r(a, s, c);
            if (s.live)
                dbias += r.backward(own, dw);
            else
                r.clear_gradients();
        }
        if (p.dw.used())
            for (int64_t k = 0; k < p.width; ++k) write(p.dw, a.dw, 0, c).put(k, dw[k]);
        if (p.dbias.used()) store_f64(p.dbias.type, a.dbias, c * p.dbias.c, dbias);
    }
}

} // namespace

void conv1d_ref(const void *arguments, int threads) {
    const conv1d_args &a = *static_cast<const conv1d_args *>(arguments);
    const conv1d_sequences all(a, a.scratch, INT64_MAX);
    double *scratch =
        reinterpret_cast<double *>(static_cast<char *>(a.scratch) + conv1d_table_bytes(a.problem));
    // OpenMP would allocate a team even for one thread.
    if (threads <= 1) return run(a, all, scratch, 0, 1);
#pragma omp parallel num_threads(threads)
    run(a, all, scratch, omp_get_thread_num(), omp_get_num_threads());
}

} // namespace plait::impl::cpu
