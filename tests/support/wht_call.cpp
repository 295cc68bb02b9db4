#include "tests/support/wht_call.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

namespace plait::test {
namespace {

int log2_of(int64_t n) {
    int k = 0;
    while ((int64_t{1} << k) < n) ++k;
    return k;
}

/// Which transform each logical element belongs to.
std::vector<int64_t> groups(const wht_call &call) {
    std::vector<int64_t> group{0};
    for (int a = 0; a < call.rank(); ++a) {
        const int64_t n = call.extents[static_cast<size_t>(a)];
        const std::vector<int64_t> outer = group;
        group.resize(outer.size() * static_cast<size_t>(n));
        size_t e = 0;
        for (const int64_t g : outer)
            for (int64_t i = 0; i < n; ++i)
                group[e++] = !call.is_transformed(a) ? g * n + i
                             : call.bits ? g * n + (i & ~static_cast<int64_t>(*call.bits))
                                         : g;
    }
    return group;
}

bool fits(plait_dtype type, wide v) {
    const wide half = static_cast<wide>(1) << (8 * bytes_of(type) - 1);
    return v >= -half && v < half;
}

/// x * conj(d) or x * d on dense arrays; complex as pairs.
template <class T>
void multiply(std::vector<T> &v, const std::vector<T> &d, bool complex_data, bool complex_diag,
              bool conjugate) {
    const size_t parts = complex_data ? 2 : 1, dparts = complex_diag ? 2 : 1;
    for (size_t e = 0; e * parts < v.size(); ++e) {
        const T re = d[e * dparts], im = !complex_diag ? T{0}
                                         : conjugate   ? -d[2 * e + 1]
                                                       : d[2 * e + 1];
        if (!complex_data) {
            v[e] *= re;
        } else if (!complex_diag) {
            v[2 * e] *= re;
            v[2 * e + 1] *= re;
        } else {
            const T a = v[2 * e], b = v[2 * e + 1];
            v[2 * e] = a * re - b * im;
            v[2 * e + 1] = a * im + b * re;
        }
    }
}

template <class T> void transform_all(const wht_call &call, std::vector<T> &v, int parts) {
    std::vector<int64_t> extents = call.extents;
    extents.push_back(parts); // the parts of a complex element are one more batch axis
    for (int a = 0; a < call.rank(); ++a) {
        if (!call.is_transformed(a)) continue;
        transformed_axis t;
        t.factor = call.factor_of(a);
        t.order = call.order;
        t.adjoint = call.adjoint;
        t.masked = call.bits.has_value();
        t.mask = call.bits.value_or(0);
        transform_axis(v, extents, a, t);
    }
}

template <class T>
void flip(std::vector<T> &v, const std::vector<int64_t> &at, int parts,
          const std::vector<uint8_t> &signs) {
    for (size_t e = 0; e < at.size(); ++e)
        if (signs[static_cast<size_t>(at[e])])
            for (int p = 0; p < parts; ++p) {
                T &x = v[e * static_cast<size_t>(parts) + static_cast<size_t>(p)];
                x = -x;
            }
}

std::vector<long double> gather(plait_dtype type, const bytes &image,
                                const std::vector<int64_t> &at) {
    const int parts = parts_of(type);
    std::vector<long double> v;
    v.reserve(at.size() * static_cast<size_t>(parts));
    for (int64_t p : at)
        for (int i = 0; i < parts; ++i)
            v.push_back(load(real_of(type), image.data(), p * parts + i));
    return v;
}

} // namespace

bool wht_call::is_transformed(int axis) const {
    const uint32_t mask = axes.value_or(extents.empty() ? 0u : 1u << (extents.size() - 1));
    return mask >> axis & 1u;
}

plait_wht_factor wht_call::factor_of(int axis) const {
    return factor && factor->first == axis ? factor->second : PLAIT_H1;
}

int64_t wht_call::elements() const {
    int64_t n = 1;
    for (int64_t e : extents) n *= e;
    return n;
}

int wht_call::stages() const {
    if (bits) return __builtin_popcountll(*bits);
    int k = 0;
    for (int a = 0; a < rank(); ++a)
        if (is_transformed(a))
            k += log2_of(extents[static_cast<size_t>(a)] / factor_matrix(factor_of(a)).order);
    return k;
}

int wht_call::factor_orders() const { return factor ? factor_matrix(factor->second).order : 1; }

int64_t wht_call::transform() const { return (int64_t{1} << stages()) * factor_orders(); }

std::vector<int64_t> wht_call::packed() const {
    std::vector<int64_t> s(extents.size());
    int64_t step = 1;
    for (size_t a = extents.size(); a-- > 0; step *= extents[a]) s[a] = step;
    return s;
}

std::vector<int64_t> wht_call::strides(plait_role role) const {
    if (role == PLAIT_X) return x_strides.value_or(packed());
    if (role == PLAIT_Y) return y_strides.value_or(packed());
    const auto &given = role == PLAIT_SIGNS ? signs_strides : diag_strides;
    if (given) return *given;
    std::vector<int64_t> s(extents.size());
    int64_t step = 1;
    for (size_t a = extents.size(); a-- > 0;) {
        s[a] = is_transformed(static_cast<int>(a)) ? step : 0;
        if (s[a]) step *= extents[a];
    }
    return s;
}

int64_t wht_call::span(plait_role role) const {
    const std::vector<int64_t> s = strides(role);
    int64_t last = 0;
    for (size_t a = 0; a < extents.size(); ++a) {
        if (extents[a] == 0) return 0;
        last += s[a] * (extents[a] - 1);
    }
    return last + 1;
}

int wht_call::alignment(plait_role role) const {
    const int64_t offset = role == PLAIT_X   ? x_offset * bytes_of(x)
                           : role == PLAIT_Y ? y_offset * bytes_of(y_type())
                                             : 0;
    return offset == 0 ? 16 : static_cast<int>(std::min<int64_t>(16, offset & -offset));
}

bool wht_call::accumulates_f64() const {
    return real_of(x) == PLAIT_F64 || real_of(y_type()) == PLAIT_F64;
}

plait_status make_desc(const wht_call &c, desc_ptr &desc) {
    desc.reset();
    plait_desc *raw = nullptr;
    if (plait_status s = plait_wht_create(&raw, c.x, c.rank(), c.extents.data())) return s;
    desc_ptr made(raw);
    plait_status s = PLAIT_OK;
    const auto set = [&](bool wanted, auto &&call) {
        if (s == PLAIT_OK && wanted) s = call();
    };
    const auto strides = [&](plait_role role, const std::optional<std::vector<int64_t>> &v) {
        set(v.has_value(), [&] {
            return plait_desc_set_strides(raw, role, static_cast<int>(v->size()), v->data());
        });
    };
    set(c.axes.has_value(), [&] { return plait_wht_set_axes(raw, *c.axes); });
    set(c.bits.has_value(), [&] { return plait_wht_set_bits(raw, *c.bits); });
    set(c.factor.has_value(),
        [&] { return plait_wht_set_factor(raw, c.factor->first, c.factor->second); });
    set(c.order != PLAIT_NATURAL, [&] { return plait_wht_set_order(raw, c.order); });
    set(c.adjoint, [&] { return plait_wht_set_adjoint(raw, 1); });
    set(c.scale.has_value(), [&] { return plait_wht_set_scale(raw, *c.scale); });
    set(c.bound.has_value(), [&] { return plait_wht_set_bound(raw, *c.bound); });
    set(c.y.has_value(), [&] { return plait_desc_set_dtype(raw, PLAIT_Y, *c.y); });
    set(c.signs, [&] { return plait_desc_use(raw, PLAIT_SIGNS, 1); });
    set(c.diag.has_value(), [&] { return plait_desc_use(raw, PLAIT_DIAG, 1); });
    set(c.diag.has_value(), [&] { return plait_desc_set_dtype(raw, PLAIT_DIAG, *c.diag); });
    set(c.overflow, [&] { return plait_desc_use(raw, PLAIT_OVERFLOW, 1); });
    strides(PLAIT_X, c.x_strides);
    strides(PLAIT_Y, c.y_strides);
    strides(PLAIT_SIGNS, c.signs_strides);
    strides(PLAIT_DIAG, c.diag_strides);
    for (plait_role role : {PLAIT_X, PLAIT_Y})
        set(c.alignment(role) != 16,
            [&] { return plait_desc_set_alignment(raw, role, c.alignment(role)); });
    set(c.alias, [&] { return plait_desc_set_alias(raw, PLAIT_Y, PLAIT_X); });
    set(true, [&] { return plait_desc_check(raw); });
    if (s == PLAIT_OK) desc = std::move(made);
    return s;
}

desc_ptr desc_of(const wht_call &call) {
    desc_ptr desc;
    if (make_desc(call, desc) != PLAIT_OK) throw std::runtime_error(plait_last_error());
    return desc;
}

std::vector<int64_t> positions(const wht_call &call, plait_role role) {
    const std::vector<int64_t> strides = call.strides(role);
    std::vector<int64_t> at{0};
    at.reserve(static_cast<size_t>(call.elements()));
    if (call.elements() == 0) return {};
    for (size_t a = 0; a < strides.size(); ++a) { // each axis multiplies what the outer ones gave
        const std::vector<int64_t> outer = at;
        at.resize(outer.size() * static_cast<size_t>(call.extents[a]));
        size_t e = 0;
        for (const int64_t base : outer)
            for (int64_t i = 0; i < call.extents[a]; ++i) at[e++] = base + i * strides[a];
    }
    return at;
}

wht_data random_data(const wht_call &c, filling how, rng &random) {
    wht_data d;
    const auto size = static_cast<size_t>(c.span(PLAIT_X) * bytes_of(c.x));
    d.x.assign(size, static_cast<std::byte>(poison_of(c.x)));
    const plait_dtype part = real_of(c.x);
    const int parts = parts_of(c.x);
    // A bound is a promise about the data. Without one, 100 leaves room for any transform here.
    const int64_t limit = c.bound.value_or(is_integer(c.x) ? 100 : 3);
    for (int64_t p : positions(c, PLAIT_X))
        for (int i = 0; i < parts; ++i) {
            const int64_t at = p * parts + i;
            if (is_integer(part))
                store_integer(part, d.x.data(), at,
                              how == filling::huge && !c.bound
                                  ? static_cast<int64_t>(random.next()) >> random.between(0, 40)
                                  : random.between(-limit, limit));
            else
                store(part, d.x.data(), at,
                      how == filling::integers || c.bound
                          ? static_cast<double>(random.between(-limit, limit))
                          : random.sign_unit());
        }
    if (c.signs) {
        d.signs.resize(static_cast<size_t>(c.span(PLAIT_SIGNS)));
        for (uint8_t &s : d.signs) s = static_cast<uint8_t>(random.next() >> 63);
    }
    if (c.diag) {
        const int64_t n = c.span(PLAIT_DIAG) * parts_of(*c.diag);
        d.diag.resize(static_cast<size_t>(c.span(PLAIT_DIAG) * bytes_of(*c.diag)));
        for (int64_t i = 0; i < n; ++i)
            store(real_of(*c.diag), d.diag.data(), i,
                  how == filling::integers ? random.pick({1.0, -1.0, 2.0, -0.5, 0.25})
                                           : random.sign_unit() * 2);
    }
    return d;
}

expectation reference(const wht_call &c, const wht_data &data) {
    expectation out;
    const std::vector<int64_t> at = positions(c, PLAIT_X);
    if (is_integer(c.x)) {
        out.exact.reserve(at.size());
        for (int64_t p : at) out.exact.push_back(load_integer(c.x, data.x.data(), p));
        const auto signs = [&] {
            if (c.signs) flip(out.exact, positions(c, PLAIT_SIGNS), 1, data.signs);
        };
        if (!c.adjoint) signs();
        transform_all(c, out.exact, 1);
        if (c.adjoint) signs();
        out.overflow = std::any_of(out.exact.begin(), out.exact.end(),
                                   [&](wide v) { return !fits(c.y_type(), v); });
        return out;
    }
    const int parts = parts_of(c.x);
    out.value = gather(c.x, data.x, at);
    const auto signs = [&] {
        if (c.signs) flip(out.value, positions(c, PLAIT_SIGNS), parts, data.signs);
    };
    const auto diagonal = [&] {
        if (c.diag)
            multiply(out.value, gather(*c.diag, data.diag, positions(c, PLAIT_DIAG)), parts == 2,
                     is_complex(*c.diag), c.adjoint);
    };
    c.adjoint ? diagonal() : signs();
    transform_all(c, out.value, parts);
    c.adjoint ? signs() : diagonal();
    for (long double &v : out.value) v *= c.scale_value();
    return out;
}

double worst_ratio(const wht_call &c, const expectation &ref, const bytes &y, double u) {
    const plait_dtype part = real_of(c.y_type());
    const int parts = parts_of(c.y_type());
    const std::vector<int64_t> at = positions(c, PLAIT_Y), group = groups(c);
    struct norms {
        long double error = 0, ref = 0, store = 0;
        bool broken = false;
    };
    std::map<int64_t, norms> all;
    norms *n = nullptr;
    int64_t last = -1;
    for (size_t e = 0; e < at.size(); ++e) {
        if (!n || group[e] != last) n = &all[last = group[e]];
        for (int p = 0; p < parts; ++p) {
            const long double want =
                ref.value[e * static_cast<size_t>(parts) + static_cast<size_t>(p)];
            const long double got = load(part, y.data(), at[e] * parts + p);
            if (!std::isfinite(want) || !std::isfinite(got)) {
                // A reference beyond the largest value of the type is stored as Inf.
                const double stored = rounded(part, want);
                n->broken |= std::isnan(stored) ? !std::isnan(got) : !(got == stored);
                continue;
            }
            const long double h = half_ulp(part, want);
            n->error += (got - want) * (got - want);
            n->ref += want * want;
            n->store += h * h;
        }
    }
    // The diagonal is one more product (complex: three more roundings) that k + m does not count.
    const int steps = c.stages() + c.factor_orders() + (c.diag ? (is_complex(*c.diag) ? 3 : 1) : 0);
    // Behind the transform it shrinks results by different factors: an error may stand where the
    // factor is large, and the norm where it is small.
    const int weighed = c.diag && !c.adjoint ? 2 : 1;
    double worst = 0;
    for (const auto &[key, s] : all) {
        (void)key;
        if (s.broken) return HUGE_VAL;
        const long double allowed =
            weighed * steps * static_cast<long double>(u) * std::sqrt(s.ref) + std::sqrt(s.store);
        if (s.error > 0) worst = std::max(worst, static_cast<double>(std::sqrt(s.error) / allowed));
    }
    return worst;
}

std::string first_difference(const wht_call &c, const expectation &ref, const bytes &y) {
    const plait_dtype part = real_of(c.y_type());
    const int parts = parts_of(c.y_type());
    const std::vector<int64_t> at = positions(c, PLAIT_Y);
    const auto say = [](size_t e, const std::string &got, const std::string &want) {
        return "element " + std::to_string(e) + " is " + got + ", must be " + want;
    };
    for (size_t e = 0; e < at.size(); ++e) {
        if (is_integer(part)) {
            char want_bytes[8];
            store_integer(part, want_bytes, 0, static_cast<int64_t>(ref.exact[e]));
            const int64_t want = load_integer(part, want_bytes, 0);
            const int64_t got = load_integer(part, y.data(), at[e]);
            if (got != want) return say(e, std::to_string(got), std::to_string(want));
            continue;
        }
        for (int p = 0; p < parts; ++p) {
            const double want =
                rounded(part, ref.value[e * static_cast<size_t>(parts) + static_cast<size_t>(p)]);
            const double got = load(part, y.data(), at[e] * parts + p);
            if (std::isnan(want) ? !std::isnan(got) : !(got == want))
                return say(e, std::to_string(got), std::to_string(want));
        }
    }
    return "";
}

std::string gap_damage(const wht_call &c, const bytes &y, const bytes &before) {
    if (c.span(PLAIT_Y) == c.elements()) return ""; // no gaps
    std::vector<bool> owned(y.size(), false);
    const auto size = static_cast<size_t>(bytes_of(c.y_type()));
    for (int64_t p : positions(c, PLAIT_Y))
        std::fill_n(owned.begin() + p * static_cast<int64_t>(size), size, true);
    for (size_t i = 0; i < y.size(); ++i)
        if (!owned[i] && y[i] != before[i])
            return "byte " + std::to_string(i) + " between the elements of y was written";
    return "";
}

} // namespace plait::test
