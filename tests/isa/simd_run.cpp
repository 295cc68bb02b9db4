#include "tests/isa/simd_run.h"

namespace isa_test {

using namespace plait::impl;

std::string rows_call::text() const {
    return std::string(scalar_name(x)) + "->" + scalar_name(y) + " rows " + std::to_string(rows) +
           " n " + std::to_string(n) + " strides " + std::to_string(x_stride) + " " +
           std::to_string(y_stride) + " scale " + std::to_string(scale) +
           (in_place ? " in place" : "") + " shifts " + std::to_string(x_shift) + " " +
           std::to_string(y_shift) + " threads " + std::to_string(threads);
}

void run_simd(const rows_call &c, buffer &x, buffer &y) {
    scratch_space scratch(cpu::wht_simd_scratch_bytes(c.x, c.y, c.n, c.threads));
    const cpu::wht_simd_args args{x.at(),       c.in_place ? x.at() : y.at(),
                                  scratch.at(), c.x,
                                  c.y,          c.rows,
                                  c.n,          c.x_stride,
                                  c.y_stride,   c.scale};
    cpu::find_kernel("wht.simd")(&args, c.threads);
}

std::vector<uint8_t> run_ref(const rows_call &c, const buffer &x, scalar y_type) {
    cpu::wht_ref_args args{};
    wht_problem &p = args.problem;
    p.x = c.x;
    p.y = y_type;
    p.scale = c.scale;
    p.axes = 2;
    p.axis[0] = {c.rows, c.x_stride, c.n, 0, 0, false, wht_factor::h1};
    p.axis[1] = {c.n, 1, 1, 0, 0, true, wht_factor::h1};
    std::vector<uint8_t> y(static_cast<size_t>(c.rows * c.n * scalar_bytes(y_type)));
    scratch_space scratch(cpu::wht_ref_scratch_bytes(p, 1));
    args.x = x.at();
    args.y = y.data();
    args.scratch = scratch.at();
    cpu::find_kernel("wht.ref")(&args, 1);
    return y;
}

} // namespace isa_test
