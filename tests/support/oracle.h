// The definition, written from the formulas alone: dense products for short lengths, plain
// recursion above, extended precision or 128-bit integers.
//   forward  y[k] = scale * diag[k] * sum_j H[k][j] * s[j] * x[j],   H[k][j] = (-1)^popcount(k & j)
//   adjoint  y[j] = scale * s[j] * sum_k H[k][j] * conj(diag[k]) * x[k]
// with H = H_m (x) H_2^k for a factor of order m, and rows permuted by the order.
#pragma once

#include <cstdint>
#include <functional>
#include <plait/plait.h>
#include <string>
#include <vector>

namespace plait::test {

__extension__ using wide = __int128;

/// A factor matrix, row major, entries +1 and -1, by its generator. Every name of the definition,
/// also those that plait.h does not have.
struct sign_matrix {
    int order = 1;
    std::vector<int8_t> sign{1};
    int at(int i, int j) const { return sign[static_cast<size_t>(i * order + j)]; }
    bool symmetric() const;
};
sign_matrix factor_matrix(const std::string &name); ///< "h12p2"; throws for an unknown name
const sign_matrix &factor_matrix(plait_wht_factor factor);
const char *factor_name(plait_wht_factor factor); ///< "" for H1

/// The natural row that stands in row r of the ordered matrix of 2^bits.
int64_t natural_row(plait_wht_order order, int bits, int64_t r);

/// Entry (k, j) of the natural matrix.
inline int hadamard_sign(int64_t k, int64_t j) {
    return __builtin_parityll(static_cast<unsigned long long>(k & j)) ? -1 : 1;
}

/// One axis of a dense array.
struct transformed_axis {
    plait_wht_factor factor = PLAIT_H1;
    plait_wht_order order = PLAIT_NATURAL;
    bool adjoint = false;
    bool masked = false;
    uint64_t mask = 0; ///< with `masked`: only these bits
};

/// In place over the line v of any length m * 2^k.
template <class T> void transform_line(std::vector<T> &v, const transformed_axis &a);

/// In place over axis `axis` of the dense row-major array.
template <class T>
void transform_axis(std::vector<T> &array, const std::vector<int64_t> &extents, int axis,
                    const transformed_axis &a);

} // namespace plait::test
