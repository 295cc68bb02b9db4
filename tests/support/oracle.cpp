#include "tests/support/oracle.h"

#include <stdexcept>

namespace plait::test {
namespace {

// Quadratic character of a modulo the prime q: 0, +1 for a non-zero square, else -1.
int character(int a, int q) {
    a = ((a % q) + q) % q;
    if (a == 0) return 0;
    for (int s = 1; s < q; ++s)
        if (s * s % q == a) return 1;
    return -1;
}

sign_matrix filled(int order, const std::function<int(int, int)> &entry) {
    sign_matrix m;
    m.order = order;
    m.sign.resize(static_cast<size_t>(order) * static_cast<size_t>(order));
    for (int i = 0; i < order; ++i)
        for (int j = 0; j < order; ++j)
            m.sign[static_cast<size_t>(i * order + j)] = static_cast<int8_t>(entry(i, j));
    return m;
}

sign_matrix paley1(int q) {
    return filled(q + 1, [q](int i, int j) {
        if (i == 0) return j == 0 ? 1 : -1;
        if (j == 0 || i == j) return 1;
        return character(i - j, q);
    });
}

// The conference matrix C(q): symmetric, zero diagonal.
int conference(int q, int i, int j) {
    if (i == j) return 0;
    return i == 0 || j == 0 ? 1 : character(i - j, q);
}

sign_matrix paley2(int q) { // [[C + I, C - I], [C - I, -C - I]]
    const int h = q + 1;
    return filled(2 * h, [q, h](int i, int j) {
        const int c = conference(q, i % h, j % h), one = i % h == j % h;
        if (i < h) return j < h ? c + one : c - one;
        return j < h ? c - one : -c - one;
    });
}

sign_matrix paley2x2(int q) { // blocks of 2 x 2 in the place of each entry of C
    static constexpr int of_zero[2][2] = {{1, -1}, {-1, -1}}, of_one[2][2] = {{1, 1}, {1, -1}};
    return filled(2 * (q + 1), [q](int i, int j) {
        const int c = conference(q, i / 2, j / 2);
        return c == 0 ? of_zero[i % 2][j % 2] : c * of_one[i % 2][j % 2];
    });
}

// Circulants of the four first rows in the Williamson array.
sign_matrix williamson(const std::vector<std::string> &rows) {
    static constexpr int which[4][4] = {{0, 1, 2, 3}, {1, 0, 3, 2}, {2, 3, 0, 1}, {3, 2, 1, 0}};
    static constexpr int sign[4][4] = {
        {1, 1, 1, 1}, {-1, 1, -1, 1}, {-1, 1, 1, -1}, {-1, -1, 1, 1}};
    const int s = static_cast<int>(rows[0].size());
    return filled(4 * s, [&rows, s](int i, int j) {
        const std::string &row = rows[static_cast<size_t>(which[i / s][j / s])];
        const int entry = row[static_cast<size_t>((j % s - i % s + s) % s)] == '+' ? 1 : -1;
        return entry * sign[i / s][j / s];
    });
}

sign_matrix doubled(const sign_matrix &p) { // [[P, P], [P, -P]]
    return filled(2 * p.order, [&p](int i, int j) {
        const int entry = p.at(i % p.order, j % p.order);
        return i >= p.order && j >= p.order ? -entry : entry;
    });
}

sign_matrix regular4() {
    return filled(4, [](int i, int j) { return i + j == 3 ? -1 : 1; });
}

int64_t reversed(int64_t i, int bits) {
    int64_t r = 0;
    for (int b = 0; b < bits; ++b) r |= ((i >> b) & 1) << (bits - 1 - b);
    return r;
}

template <class T> void dense_hadamard(T *v, int64_t n) {
    T y[16];
    for (int64_t k = 0; k < n; ++k) {
        y[k] = T{0};
        for (int64_t j = 0; j < n; ++j) y[k] = hadamard_sign(k, j) > 0 ? y[k] + v[j] : y[k] - v[j];
    }
    for (int64_t k = 0; k < n; ++k) v[k] = y[k];
}

// H_2n = [[H_n, H_n], [H_n, -H_n]].
template <class T> void hadamard(T *v, int64_t n) {
    if (n <= 4) return dense_hadamard(v, n);
    const int64_t h = n / 2;
    hadamard(v, h);
    hadamard(v + h, h);
    for (int64_t j = 0; j < h; ++j) {
        const T a = v[j], b = v[j + h];
        v[j] = a + b;
        v[j + h] = a - b;
    }
}

template <class T> void masked_hadamard(std::vector<T> &v, uint64_t mask) {
    const auto n = static_cast<int64_t>(v.size());
    for (int64_t bit = 1; bit < n; bit *= 2) {
        if (!(mask & static_cast<uint64_t>(bit))) continue;
        for (int64_t j = 0; j < n; ++j) {
            if (j & bit) continue;
            T &a = v[static_cast<size_t>(j)], &b = v[static_cast<size_t>(j + bit)];
            const T sum = a + b;
            b = a - b;
            a = sum;
        }
    }
}

template <class T> void factor_product(std::vector<T> &v, const sign_matrix &m, bool transpose) {
    const int64_t inner = static_cast<int64_t>(v.size()) / m.order;
    std::vector<T> column(static_cast<size_t>(m.order));
    for (int64_t j = 0; j < inner; ++j) {
        for (int i = 0; i < m.order; ++i)
            column[static_cast<size_t>(i)] = v[static_cast<size_t>(i * inner + j)];
        for (int i = 0; i < m.order; ++i) {
            T sum{0};
            for (int c = 0; c < m.order; ++c) {
                const T term = column[static_cast<size_t>(c)];
                sum = (transpose ? m.at(c, i) : m.at(i, c)) > 0 ? sum + term : sum - term;
            }
            v[static_cast<size_t>(i * inner + j)] = sum;
        }
    }
}

} // namespace

bool sign_matrix::symmetric() const {
    for (int i = 0; i < order; ++i)
        for (int j = 0; j < i; ++j)
            if (at(i, j) != at(j, i)) return false;
    return true;
}

sign_matrix factor_matrix(const std::string &name) {
    if (name.empty()) return {};
    if (name == "h12p2") return paley2x2(5);
    if (name == "h12s") return paley1(11);
    if (name == "h20w") return williamson({"+----", "+----", "++--+", "+-++-"});
    if (name == "h28w") return williamson({"+------", "++----+", "+-+--+-", "+--++--"});
    if (name == "h40") return doubled(paley1(19));
    if (name == "h4_regular") return regular4();
    if (name == "h20_paley1") return paley1(19);
    if (name == "h28_paley2") return paley2(13);
    if (name == "h36_paley2") return paley2(17);
    if (name == "h60_paley1") return paley1(59);
    if (name == "h108_paley1") return paley1(107);
    if (name == "h140_paley1") return paley1(139);
    if (name == "h52_will")
        return williamson({"+-+--++++--+-", "+---++++++---", "++-+--++--+-+", "+----+--+----"});
    if (name == "h116_will")
        return williamson({"++--+--+-+++-++++-+++-+--+--+", "++++-++-+---++++++---+-++-+++",
                           "+-+---++--+-++++++-+--++---+-", "+++---++--+-+----+-+--++---++"});
    if (name == "h124_will")
        return williamson({"+--+++-+--+----++----+--+-+++--", "+--+++-+--+----++----+--+-+++--",
                           "+-----+++-+-+--++--+-+-+++-----", "++++++---+-+-++--++-+-+---+++++"});
    if (name == "h156_will")
        return williamson(
            {"+++--+-+-----+--++----++--+-----+-+--++", "++++---+--++----+-+--+-+----++--+---+++",
             "+++--++-+---+-+--+----+--+-+---+-++--++", "+---++-+-+-----+++-++-+++-----+-+-++---"});
    if (name == "h172_will")
        return williamson({"+---++--++++-+-+++-++--++-+++-+-++++--++---",
                           "++-++++++----+-+--++-++-++--+-+----++++++-+",
                           "+++-+-++--+-+-++++-+----+-++++-+-+--++-+-++",
                           "++---++++-+--+--++--------++--+--+-++++---+"});
    throw std::invalid_argument("no factor matrix " + name);
}

const char *factor_name(plait_wht_factor factor) {
    static const char *const names[] = {"",
                                        "h12p2",
                                        "h12s",
                                        "h20w",
                                        "h28w",
                                        "h40",
                                        "h4_regular",
                                        "h20_paley1",
                                        "h28_paley2",
                                        "h36_paley2",
                                        "h52_will",
                                        "h60_paley1",
                                        "h108_paley1",
                                        "h116_will",
                                        "h124_will",
                                        "h140_paley1",
                                        "h156_will",
                                        "h172_will"};
    return names[factor];
}

const sign_matrix &factor_matrix(plait_wht_factor factor) {
    static const std::vector<sign_matrix> all = [] {
        std::vector<sign_matrix> made;
        for (int f = PLAIT_H1; f <= PLAIT_H172_WILLIAMSON; ++f)
            made.push_back(
                factor_matrix(std::string(factor_name(static_cast<plait_wht_factor>(f)))));
        return made;
    }();
    return all[static_cast<size_t>(factor)];
}

int64_t natural_row(plait_wht_order order, int bits, int64_t r) {
    switch (order) {
    case PLAIT_DYADIC: return reversed(r, bits);
    case PLAIT_SEQUENCY: return reversed(r ^ (r >> 1), bits);
    default: return r;
    }
}

template <class T> void transform_line(std::vector<T> &v, const transformed_axis &a) {
    if (a.masked) return masked_hadamard(v, a.mask);
    const sign_matrix &m = factor_matrix(a.factor);
    const auto n = static_cast<int64_t>(v.size());
    const int64_t inner = n / m.order;
    int bits = 0;
    while ((int64_t{1} << bits) < inner) ++bits;
    // The ordered matrix is P H with (P y)[r] = y[natural_row(r)]; its transpose is H P^T.
    std::vector<T> moved;
    if (a.order != PLAIT_NATURAL && a.adjoint) {
        moved.resize(v.size());
        for (int64_t r = 0; r < n; ++r)
            moved[static_cast<size_t>(natural_row(a.order, bits, r))] = v[static_cast<size_t>(r)];
        v = moved;
    }
    for (int i = 0; i < m.order; ++i) hadamard(v.data() + i * inner, inner);
    if (m.order > 1) factor_product(v, m, a.adjoint);
    if (a.order != PLAIT_NATURAL && !a.adjoint) {
        moved.resize(v.size());
        for (int64_t r = 0; r < n; ++r)
            moved[static_cast<size_t>(r)] = v[static_cast<size_t>(natural_row(a.order, bits, r))];
        v = moved;
    }
}

template <class T>
void transform_axis(std::vector<T> &array, const std::vector<int64_t> &extents, int axis,
                    const transformed_axis &a) {
    int64_t outer = 1, inner = 1;
    for (int i = 0; i < axis; ++i) outer *= extents[static_cast<size_t>(i)];
    const int64_t n = extents[static_cast<size_t>(axis)];
    for (size_t i = static_cast<size_t>(axis) + 1; i < extents.size(); ++i) inner *= extents[i];
    std::vector<T> line(static_cast<size_t>(n));
    for (int64_t o = 0; o < outer; ++o)
        for (int64_t i = 0; i < inner; ++i) {
            T *base = array.data() + (o * n * inner + i);
            for (int64_t j = 0; j < n; ++j) line[static_cast<size_t>(j)] = base[j * inner];
            transform_line(line, a);
            for (int64_t j = 0; j < n; ++j) base[j * inner] = line[static_cast<size_t>(j)];
        }
}

template void transform_line(std::vector<double> &, const transformed_axis &);
template void transform_line(std::vector<long double> &, const transformed_axis &);
template void transform_line(std::vector<wide> &, const transformed_axis &);
template void transform_axis(std::vector<double> &, const std::vector<int64_t> &, int,
                             const transformed_axis &);
template void transform_axis(std::vector<long double> &, const std::vector<int64_t> &, int,
                             const transformed_axis &);
template void transform_axis(std::vector<wide> &, const std::vector<int64_t> &, int,
                             const transformed_axis &);

} // namespace plait::test
