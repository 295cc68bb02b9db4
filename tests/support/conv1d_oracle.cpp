#include "tests/support/conv1d_oracle.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace plait::test {
namespace {

using real = long double;

real logistic(real p) {
    if (p >= 0) return 1 / (1 + std::exp(-p));
    const real e = std::exp(p);
    return e / (1 + e);
}

constexpr int64_t no_id = INT64_MAX; // beyond every int32 id: equal to none

/// One row of x or one packed sequence, and the rows of its states.
struct sequence {
    int64_t row = 0, begin = 0, length = 0; ///< tokens begin .. begin + length of row `row` of x
    int64_t state = 0;                      ///< its row or slot
    bool live = true; ///< a pad row or a bad one has no token and touches no slot
};

/// Which tokens belong to what, and the first breach of the rules.
struct plan {
    std::vector<sequence> all;
    int32_t status = 0;
    void breach(int64_t n) {
        if (status == 0) status = static_cast<int32_t>(n + 1);
    }
};

bool good_offsets(const conv1d_inputs &in, int64_t n) {
    const auto cu = [&](int64_t j) { return in.offsets[static_cast<size_t>(j)]; };
    int64_t reached = 0;
    for (int64_t j = 0; j <= n; ++j)
        if (cu(j) >= 0 && cu(j) <= in.length) reached = std::max(reached, cu(j));
    return cu(n) >= 0 && cu(n) == reached && cu(n) <= cu(n + 1) && cu(n + 1) <= in.length &&
           cu(n + 1) - cu(n) <= in.max_length && (n > 0 || cu(0) == 0);
}

plan divide(const conv1d_inputs &in) {
    plan p;
    std::map<int32_t, int64_t> taken;
    for (int64_t n = 0; n < in.state_rows(); ++n) {
        sequence s;
        s.row = in.varlen ? 0 : n;
        s.length = in.length;
        s.state = n;
        if (in.varlen) {
            if (!good_offsets(in, n)) {
                s.live = false;
                s.length = 0;
                p.breach(n);
            } else {
                s.begin = in.offsets[static_cast<size_t>(n)];
                s.length = in.offsets[static_cast<size_t>(n + 1)] - s.begin;
            }
        }
        if (in.pooled && s.live) {
            const int32_t slot = in.slot[static_cast<size_t>(n)];
            s.state = slot;
            if (slot == in.pad) {
                s.live = false;
            } else if (slot < 0 || slot >= in.slots || (in.status && taken.count(slot))) {
                s.live = false;
                p.breach(n);
            } else {
                taken[slot] = n;
            }
        }
        p.all.push_back(s);
    }
    return p;
}

/// One channel of one sequence: the signal from -entries on, with the ids.
class line {
public:
    line(const conv1d_inputs &in, const sequence &s, int64_t c) : in_(in), s_(s), c_(c) {}

    real x(int64_t p) const {
        if (p >= 0) return in_.x.at(s_.row, c_, s_.begin + p);
        if (!in_.first_state) return 0;
        if (in_.ring) {
            const int64_t from = in_.position[static_cast<size_t>(s_.row)];
            return in_.state.at(s_.state, c_, wrap(from + p));
        }
        return in_.state.at(s_.state, c_, in_.entries + p);
    }
    int64_t wrap(int64_t i) const { return ((i % in_.entries) + in_.entries) % in_.entries; }
    int64_t id(int64_t p) const {
        if (!in_.ids) return 0;
        if (p >= 0) return in_.seq_idx[static_cast<size_t>(s_.row * in_.length + p)];
        if (in_.length == 0) return 0;
        return in_.first_state ? in_.seq_idx[static_cast<size_t>(s_.row * in_.length)] : no_id;
    }
    bool padding(int64_t t) const { return id(t) < 0; }
    bool sees(int64_t t, int64_t p) const { return !padding(t) && id(p) == id(t); }
    /// Is position p what STATE_OUT stores, rather than 0?
    bool stored(int64_t p) const {
        if (!in_.ids || in_.length == 0) return true;
        return !padding(in_.length - 1) && id(p) == id(in_.length - 1);
    }
    real pre(int64_t t, real &mass) const {
        real sum = in_.bias ? in_.b.at(0, c_, 0) : 0;
        mass = std::fabs(sum);
        for (int64_t k = 0; k < in_.width; ++k) {
            const int64_t p = t - (in_.width - 1) + k;
            if (!sees(t, p)) continue;
            const real term = in_.w.at(0, c_, k) * x(p);
            sum += term;
            mass += std::fabs(term);
        }
        return sum;
    }

private:
    const conv1d_inputs &in_;
    const sequence &s_;
    int64_t c_;
};

struct bounded {
    real value = 0, bound = 0;
};

/// Of SiLU in f32: relative 1e-6, as 16 roundoffs.
constexpr real silu_error = 16;

/// Of its derivative. An exponential of p loses |p| roundoffs in p * log2(e).
real derivative_error(real pre, double u) { return (8 + 2 * std::fabs(pre)) * real(u); }

bounded output_of(const conv1d_inputs &in, const line &l, int64_t t, double u) {
    real mass;
    const real pre = l.pre(t, mass);
    bounded y{pre, real(in.width + 1) * u * mass};
    if (in.silu) {
        y.value = silu(pre);
        // |SiLU'| < 1.1; results below the smallest normal f32 may be flushed
        y.bound = 1.1L * y.bound + silu_error * u * std::fabs(y.value);
        if (u > 0) y.bound += 1e-37L;
    }
    if (in.residual) {
        y.value += l.x(t);
        y.bound += u * (std::fabs(y.value) + y.bound);
    }
    return y;
}

void forward(const conv1d_inputs &in, const plan &p, double u, conv1d_results &out) {
    out.y.value = conv1d_array(in.batch, in.channels, in.length);
    out.y.bound = out.y.value;
    out.state_out.value = in.op == conv1d_op::update ? in.state : in.state_out;
    conv1d_array &state = out.state_out.value;
    for (const sequence &s : p.all)
        for (int64_t c = 0; c < in.channels; ++c) {
            if (!s.live) {
                if (in.op == conv1d_op::forward && in.last_state && !in.pooled)
                    for (int64_t i = 0; i < in.entries; ++i) state.at(s.state, c, i) = 0;
                continue;
            }
            const line l(in, s, c);
            for (int64_t t = 0; t < s.length; ++t) {
                if (l.padding(t)) continue;
                const bounded y = output_of(in, l, t, u);
                out.y.value.at(s.row, c, s.begin + t) = y.value;
                out.y.bound.at(s.row, c, s.begin + t) = y.bound;
            }
            if (in.ring) {
                const int64_t from = in.position[static_cast<size_t>(s.row)];
                for (int64_t t = 0; t < s.length; ++t)
                    state.at(s.state, c, l.wrap(from + t)) = l.x(t);
            } else if (in.op == conv1d_op::update || in.last_state) {
                for (int64_t i = 0; i < in.entries; ++i) {
                    const int64_t at = s.length - in.entries + i;
                    state.at(s.state, c, i) = l.stored(at) ? l.x(at) : 0;
                }
            }
        }
    out.state_out.bound = conv1d_array(state.rows, state.channels, state.time);
}

void backward(const conv1d_inputs &in, const plan &p, double u, conv1d_results &out) {
    const int64_t reach = in.width - 1;
    for (conv1d_output *o : {&out.dx, &out.dw, &out.dbias, &out.dstate_in}) {
        o->value = o == &out.dx      ? conv1d_array(in.batch, in.channels, in.length)
                   : o == &out.dw    ? conv1d_array(1, in.channels, in.width)
                   : o == &out.dbias ? conv1d_array(1, in.channels, 1)
                                     : conv1d_array(in.state_rows(), in.channels,
                                                    in.first_state ? in.entries : 0);
        o->bound = o->value;
    }
    // Sums over all tokens: a tree of blocks loses far less than one roundoff a term; 1e-5 of the
    // sum of magnitudes in f32 is 168 roundoffs.
    const real sum_error = 168 * static_cast<real>(u);
    for (const sequence &s : p.all) {
        if (!s.live) continue;
        for (int64_t c = 0; c < in.channels; ++c) {
            const line l(in, s, c);
            std::vector<bounded> g(static_cast<size_t>(s.length));
            for (int64_t t = 0; t < s.length; ++t) {
                bounded &gt = g[static_cast<size_t>(t)];
                if (l.padding(t)) continue;
                const real dy = in.dy.at(s.row, c, s.begin + t);
                gt.value = dy;
                if (in.silu) {
                    real mass;
                    const real pre = l.pre(t, mass), sig = logistic(pre);
                    gt.value = dy * silu_derivative(pre);
                    // |SiLU''| <= 1/2; the terms of the derivative cancel near p = -1.28
                    const real terms = sig * (1 + std::fabs(pre) * (1 - sig));
                    gt.bound = std::fabs(dy) * (0.5L * real(in.width + 1) * u * mass +
                                                derivative_error(pre, u) * terms);
                    if (u > 0) gt.bound += 1e-37L;
                }
                out.dbias.value.at(0, c, 0) += gt.value;
                out.dbias.bound.at(0, c, 0) += gt.bound + sum_error * std::fabs(gt.value);
                for (int64_t k = 0; k < in.width; ++k) {
                    const int64_t at = t - reach + k;
                    if (!l.sees(t, at)) continue;
                    const real xe = l.x(at);
                    out.dw.value.at(0, c, k) += gt.value * xe;
                    out.dw.bound.at(0, c, k) +=
                        gt.bound * std::fabs(xe) + sum_error * std::fabs(gt.value * xe);
                }
            }
            for (int64_t at = in.first_state ? -in.entries : 0; at < s.length; ++at) {
                real sum = 0, mass = 0, bound = 0;
                for (int64_t k = 0; k < in.width; ++k) {
                    const int64_t t = at + reach - k;
                    if (t < 0 || t >= s.length || !l.sees(t, at)) continue;
                    const bounded &gt = g[static_cast<size_t>(t)];
                    const real w = in.w.at(0, c, k);
                    sum += w * gt.value;
                    mass += std::fabs(w * gt.value);
                    bound += std::fabs(w) * gt.bound;
                }
                const int64_t entry = at - (s.length - in.entries);
                if (in.dlast_state && entry >= 0 && l.stored(at)) {
                    sum += in.dstate_out.at(s.state, c, entry);
                    mass += std::fabs(in.dstate_out.at(s.state, c, entry));
                }
                if (in.residual && at >= 0 && !l.padding(at)) {
                    sum += in.dy.at(s.row, c, s.begin + at);
                    mass += std::fabs(in.dy.at(s.row, c, s.begin + at));
                }
                bound += real(in.width + 2) * u * mass;
                conv1d_output &o = at >= 0 ? out.dx : out.dstate_in;
                const int64_t row = at >= 0 ? s.row : s.state;
                const int64_t time = at >= 0 ? s.begin + at : at + in.entries;
                o.value.at(row, c, time) = sum;
                o.bound.at(row, c, time) = bound;
            }
        }
    }
}

} // namespace

long double silu(long double p) { return p * logistic(p); }

long double silu_derivative(long double p) {
    const real s = logistic(p);
    // p * 0 for p = Inf
    return std::isinf(p) ? (p > 0 ? 1 : 0) : s * (1 + p * (1 - s));
}

conv1d_results conv1d_reference(const conv1d_inputs &in, double u) {
    conv1d_results out;
    const plan p = divide(in);
    out.status = p.status;
    if (in.op == conv1d_op::backward)
        backward(in, p, u, out);
    else
        forward(in, p, u, out);
    return out;
}

} // namespace plait::test
