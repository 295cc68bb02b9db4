#include "tests/support/kda_oracle.h"

#include <cmath>
#include <set>

namespace plait::test {
namespace {

using real = long double;
using column = std::vector<real>;

real sigmoid(real x) { return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x)); }

/// Where a sequence lies: tokens, and the row of its state, -1 without one.
struct place {
    int64_t row = 0, begin = 0, length = 0, state = -1;
    bool live = true;
};

std::vector<place> places_of(const kda_call &c, const kda_inputs &in, int32_t &status) {
    std::vector<place> all;
    std::set<int32_t> taken;
    int64_t highest = 0;
    status = 0;
    for (int64_t n = 0; n < c.sequences(); ++n) {
        place s{n, 0, c.length, n, true};
        bool broken = false;
        if (c.varlen) {
            const int64_t from = in.offsets[static_cast<size_t>(n)];
            const int64_t to = in.offsets[static_cast<size_t>(n) + 1];
            if (from >= 0 && from <= c.length) highest = std::max(highest, from);
            broken = from < highest || from > c.length || to < from || to > c.length ||
                     to - from > c.varlen->second || (n == 0 && from != 0);
            s = {0, from, to - from, n, !broken};
        }
        if (c.slots) {
            const int32_t slot = in.slot[static_cast<size_t>(n)];
            s.state = slot;
            if (!broken && slot == c.slots->second) s.live = false;
            if (!broken && slot != c.slots->second &&
                (slot < 0 || slot >= c.slots->first ||
                 (c.uses(PLAIT_STATUS) && !taken.insert(slot).second)))
                broken = true;
            if (broken) s.live = false;
            if (!s.live) s.state = -1;
        }
        if (broken && status == 0) status = static_cast<int32_t>(n + 1);
        if (!s.live && c.varlen) s.length = 0;
        all.push_back(s);
    }
    return all;
}

/// One sequence and one value head, with everything that each token has.
class chain {
public:
    chain(const kda_call &call, const kda_inputs &inputs, const place &where, int64_t value_head)
        : c(call), in(inputs), s(where), hv(value_head), h(hv / (c.value_heads / c.heads)),
          K(c.dim_k), V(c.dim_v),
          scale(c.scale ? static_cast<real>(*c.scale)
                        : static_cast<real>(K ? 1 / std::sqrt(static_cast<double>(K)) : 1)) {
        rate = c.uses(PLAIT_A_LOG) ? std::exp(in[PLAIT_A_LOG].at(0, 0, hv, 0)) : 1;
    }

    column state(plait_role role) const {
        column S(static_cast<size_t>(K * V), 0);
        if (in.arrays.count(role) == 0 || s.state < 0) return S;
        for (int64_t i = 0; i < K; ++i)
            for (int64_t j = 0; j < V; ++j) S[at(i, j)] = in[role].at(s.state, hv, i, j);
        return S;
    }
    void put_state(const column &S, kda_array &to) const {
        if (s.state < 0) return;
        for (int64_t i = 0; i < K; ++i)
            for (int64_t j = 0; j < V; ++j) to.at(s.state, hv, i, j) = S[at(i, j)];
    }

    column normed(plait_role role, int64_t t) const {
        column x(static_cast<size_t>(K));
        real squares = 0;
        for (int64_t i = 0; i < K; ++i) {
            x[size_t(i)] = in[role].at(s.row, s.begin + t, h, i);
            squares += x[size_t(i)] * x[size_t(i)];
        }
        if (c.eps)
            for (real &v : x) v /= std::sqrt(squares + static_cast<real>(*c.eps));
        return x;
    }
    real gate_input(int64_t t, int64_t i) const {
        const real g = in[PLAIT_G].at(s.row, s.begin + t, hv, i);
        return c.uses(PLAIT_DT_BIAS) ? g + in[PLAIT_DT_BIAS].at(0, 0, hv, i) : g;
    }
    real gate(int64_t t, int64_t i) const {
        const real x = gate_input(t, i);
        switch (c.gate) {
        case PLAIT_GATE_SOFTPLUS:
            return -rate * (x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)));
        case PLAIT_GATE_BOUNDED: return static_cast<real>(c.lower_bound) * sigmoid(rate * x);
        default: return x;
        }
    }
    real beta(int64_t t) const {
        const real b = in[PLAIT_BETA].at(s.row, s.begin + t, hv, 0);
        return c.beta_scale ? static_cast<real>(*c.beta_scale) * sigmoid(b) : b;
    }

    struct token {
        column q, k, decay, e, u, decayed, after; ///< decayed: S', after: S
        real beta;
    };

    /// The recurrence of one token, on the state before it.
    token step(const column &before, int64_t t) const {
        token x;
        x.q = normed(PLAIT_Q, t);
        x.k = normed(PLAIT_K, t);
        x.beta = beta(t);
        x.decayed = before;
        for (int64_t i = 0; i < K; ++i) {
            x.decay.push_back(std::exp(gate(t, i)));
            for (int64_t j = 0; j < V; ++j) x.decayed[at(i, j)] *= x.decay.back();
        }
        for (int64_t j = 0; j < V; ++j) {
            real predicted = 0;
            for (int64_t i = 0; i < K; ++i) predicted += x.decayed[at(i, j)] * x.k[size_t(i)];
            x.e.push_back(in[PLAIT_V].at(s.row, s.begin + t, hv, j) - predicted);
            x.u.push_back(x.beta * x.e.back());
        }
        x.after = x.decayed;
        for (int64_t i = 0; i < K; ++i)
            for (int64_t j = 0; j < V; ++j) x.after[at(i, j)] += x.k[size_t(i)] * x.u[size_t(j)];
        return x;
    }

    void forward(kda_results &out) const {
        column S = state(PLAIT_STATE_IN);
        for (int64_t t = 0; s.live && t < s.length; ++t) {
            const token x = step(S, t);
            S = x.after;
            for (int64_t j = 0; j < V; ++j) {
                real sum = 0;
                for (int64_t i = 0; i < K; ++i) sum += S[at(i, j)] * x.q[size_t(i)];
                out.arrays.at(PLAIT_O).at(s.row, s.begin + t, hv, j) = scale * sum;
            }
        }
        if (!s.live) S.assign(S.size(), 0);
        if (out.arrays.count(PLAIT_STATE_OUT)) put_state(S, out.arrays.at(PLAIT_STATE_OUT));
    }

    /// Adds to `d`, in which DQ and DK are still those behind the norm. Returns the sum of the
    /// squares of what elements of DBETA are sums of.
    real backward(std::map<plait_role, kda_array> &d) const {
        real squares = 0;
        std::vector<token> tokens;
        column S = state(PLAIT_STATE_IN);
        for (int64_t t = 0; t < s.length; ++t) {
            tokens.push_back(step(S, t));
            S = tokens.back().after;
        }
        column D = state(PLAIT_DSTATE_OUT); // of the state behind token t
        for (int64_t t = s.length; t-- > 0;) {
            const token &x = tokens[size_t(t)];
            const int64_t a = s.row, b = s.begin + t;
            column du(size_t(V), 0);
            for (int64_t i = 0; i < K; ++i)
                for (int64_t j = 0; j < V; ++j) {
                    const real dout = in[PLAIT_DO].at(a, b, hv, j);
                    d[PLAIT_DQ].at(a, b, h, i) += scale * x.after[at(i, j)] * dout;
                    D[at(i, j)] += scale * x.q[size_t(i)] * dout;
                    du[size_t(j)] += D[at(i, j)] * x.k[size_t(i)];
                }
            // beta = bs sig(b): beta' = beta (1 - sig(b))
            const real slope = c.beta_scale ? x.beta * sigmoid(-in[PLAIT_BETA].at(a, b, hv, 0)) : 1;
            for (int64_t j = 0; j < V; ++j) {
                const real term = slope * du[size_t(j)] * x.e[size_t(j)];
                d[PLAIT_DBETA].at(a, b, hv, 0) += term;
                squares += term * term;
                d[PLAIT_DV].at(a, b, hv, j) += x.beta * du[size_t(j)];
            }
            for (int64_t i = 0; i < K; ++i) {
                real dk = 0, dg = 0;
                for (int64_t j = 0; j < V; ++j) {
                    const real dr = -x.beta * du[size_t(j)];
                    dk += D[at(i, j)] * x.u[size_t(j)] + x.decayed[at(i, j)] * dr;
                    D[at(i, j)] += x.k[size_t(i)] * dr;
                    dg += D[at(i, j)] * x.decayed[at(i, j)];
                    D[at(i, j)] *= x.decay[size_t(i)];
                }
                d[PLAIT_DK].at(a, b, h, i) += dk;
                gate_backward(d, t, i, dg);
            }
        }
        put_state(D, d[PLAIT_DSTATE_IN]);
        return squares;
    }

private:
    const kda_call &c;
    const kda_inputs &in;
    place s;
    int64_t hv, h, K, V;
    real scale, rate;

    size_t at(int64_t i, int64_t j) const { return static_cast<size_t>(i * V + j); }

    void gate_backward(std::map<plait_role, kda_array> &d, int64_t t, int64_t i, real dg) const {
        const real x = gate_input(t, i);
        real dx = dg;
        if (c.gate == PLAIT_GATE_SOFTPLUS) {
            dx = -rate * sigmoid(x) * dg;
            d[PLAIT_DA_LOG].at(0, 0, hv, 0) += dg * gate(t, i);
        }
        if (c.gate == PLAIT_GATE_BOUNDED) {
            const real y = sigmoid(rate * x);
            dx = static_cast<real>(c.lower_bound) * rate * y * sigmoid(-rate * x) * dg;
            d[PLAIT_DA_LOG].at(0, 0, hv, 0) += dx * x;
        }
        d[PLAIT_DG].at(s.row, s.begin + t, hv, i) += dx;
        d[PLAIT_DDT_BIAS].at(0, 0, hv, i) += dx;
    }
};

/// y = x / |x|: dx = (dy - y <dy, y>) / |x|, at every token, also those of no sequence, where dy =
/// 0.
void norm_backward(const kda_call &c, const kda_array &x, kda_array &d) {
    if (!c.eps) return;
    for (int64_t b = 0; b < c.batch; ++b)
        for (int64_t t = 0; t < c.length; ++t)
            for (int64_t h = 0; h < c.heads; ++h) {
                real squares = static_cast<real>(*c.eps), dot = 0;
                bool any = false;
                for (int64_t i = 0; i < c.dim_k; ++i) {
                    any = any || d.at(b, t, h, i) != 0;
                    squares += x.at(b, t, h, i) * x.at(b, t, h, i);
                    dot += x.at(b, t, h, i) * d.at(b, t, h, i);
                }
                if (!any) continue;
                for (int64_t i = 0; i < c.dim_k; ++i)
                    d.at(b, t, h, i) =
                        (d.at(b, t, h, i) - x.at(b, t, h, i) * dot / squares) / std::sqrt(squares);
            }
}

} // namespace

kda_results kda_reference(const kda_call &c, const kda_inputs &in) {
    kda_results out;
    std::map<plait_role, kda_array> d;
    const std::vector<place> all = places_of(c, in, out.status);
    if (!c.backward()) {
        out.arrays[PLAIT_O] = kda_array(c.shape(PLAIT_O));
        // Slots of no sequence keep what they hold.
        if (c.uses(PLAIT_STATE_OUT)) out.arrays[PLAIT_STATE_OUT] = in[PLAIT_STATE_OUT];
    } else {
        for (const plait_role role : {PLAIT_DQ, PLAIT_DK, PLAIT_DV, PLAIT_DG, PLAIT_DBETA,
                                      PLAIT_DA_LOG, PLAIT_DDT_BIAS, PLAIT_DSTATE_IN})
            d[role] = kda_array(c.shape(role));
    }
    for (const place &s : all)
        for (int64_t hv = 0; hv < c.value_heads; ++hv) {
            const chain one(c, in, s, hv);
            if (!c.backward())
                one.forward(out);
            else if (s.live)
                out.dbeta_terms += one.backward(d);
        }
    if (c.backward()) {
        norm_backward(c, in[PLAIT_Q], d[PLAIT_DQ]);
        norm_backward(c, in[PLAIT_K], d[PLAIT_DK]);
        for (auto &[role, a] : d)
            if (c.writes(role)) out.arrays[role] = a;
    }
    return out;
}

} // namespace plait::test
