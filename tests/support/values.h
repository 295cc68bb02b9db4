// Element types of tensors: sizes, and conversion of single values. Written for clarity, on its
// own: nothing here is shared with the library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <plait/plait.h>
#include <string>
#include <vector>

namespace plait::test {

bool is_integer(plait_dtype dtype); ///< also I8 and I16
bool is_narrow(plait_dtype dtype);  ///< I8, I16
bool is_complex(plait_dtype dtype);
bool is_sixteen_bit(plait_dtype dtype);
/// F64 of C128, F32 of C64, else the type itself.
plait_dtype real_of(plait_dtype dtype);
int64_t bytes_of(plait_dtype dtype); ///< of one element, both parts of a complex one
int parts_of(plait_dtype dtype);     ///< 2 for complex, else 1
const char *name_of(plait_dtype dtype);
plait_dtype dtype_named(const std::string &name);

/// Value `index` of an array of REAL type `dtype` (for complex elements: count parts).
double load(plait_dtype dtype, const void *base, int64_t index);
int64_t load_integer(plait_dtype dtype, const void *base, int64_t index);
/// Rounds once, to nearest even. Integers: the value modulo 2^width.
void store(plait_dtype dtype, void *base, int64_t index, long double value);
void store_integer(plait_dtype dtype, void *base, int64_t index, int64_t value);

/// `value` as the type would hold it.
double rounded(plait_dtype dtype, long double value);
/// Half the distance between neighbours of the type at `value`; 0 for integers.
double half_ulp(plait_dtype dtype, long double value);
/// Unit roundoff: 2^-53, 2^-24, 2^-11 (F16), 2^-8 (BF16).
double roundoff(plait_dtype dtype);
/// The byte that fills what must not be read or must be overwritten: NaN in every floating type.
int poison_of(plait_dtype dtype);

} // namespace plait::test
