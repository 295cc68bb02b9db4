// What the files of the wht table share: the shape that all kernels but wht.ref take, and the three
// functions of each candidate. THE LIST is wht_table.cpp.
#pragma once

#include "src/planner/operands.h"

namespace plait::impl {

/// Rows of n contiguous elements in natural order.
struct wht_rows {
    scalar x, y;
    int64_t n; ///< a power of two
    int log_n;
    int64_t rows;
    int64_t x_stride; ///< elements from row to row; n for a single row
    int64_t y_stride;
    bool alias;
    int x_align, y_align; ///< bytes promised for the bases
    double scale;
    int parts = 0; ///< complex rows as rows of reals: 1, the lowest index bit is not transformed

    bool packed() const { return x_stride == n && y_stride == n; }
    int64_t elements() const { return rows * n; }
    int64_t x_bytes() const { return elements() * scalar_bytes(x); }
    int64_t y_bytes() const { return elements() * scalar_bytes(y); }
    /// Additions of the butterflies, and one product for each element where there is a scale.
    int64_t flops() const { return elements() * (log_n - parts + (scale != 1.0 ? 1 : 0)); }
};

/// What wht.cpu.ref and wht.cuda.composed alone compute, in words; "" for a problem that other
/// candidates may take. The first rule of every other candidate. A candidate that learns one of
/// these looks at it itself.
verdict wht_ref_only(const problem &);

/// "" and the rows, or why the problem is not of this shape. Types are not looked at, and where it
/// is `fused` neither SIGNS, DIAG and the order.
verdict wht_as_rows(const problem &, wht_rows *out, bool fused = false);

/// Complex rows as rows of twice as many real numbers, whose lowest index bit is left alone.
wht_rows wht_as_reals(const wht_rows &);
/// May a kernel make 16-byte accesses to one side of rows?
bool wht_vector_side(int align, int64_t stride, int64_t rows, scalar);
/// Of one pass over rows in tiles of wht.block, `share` of the speed of a copy: `transforms` of
/// each.
cost wht_rows_cost(const wht_rows &, int rows_per_tile, double share, int64_t flops, int transforms,
                   const profile &);
/// "" if SIGNS or a diagonal is one vector for all rows, or why it is not.
verdict wht_shared_vector(const char *name, const wht_problem &, int64_t wht_axis::*stride);

/// An architecture in the list means its code and its PTX, so everything newer runs it too.
verdict wht_cuda_built_for(const profile &);

/// Rules of the CUDA candidates for rows: a CUDA device, rows, floating types, kernels built for
/// the device.
verdict wht_cuda_shared_rules(const problem &, const profile &, wht_rows *out);

/// May the first kernel of a plan be launched before the one ahead of it ends? Where there is
/// little to do. Many rows are better off with an empty device: early blocks crowd some SMs.
bool wht_cuda_starts_early(const step &, const profile &);

verdict wht_cpu_simd_applicable(const problem &, const profile &);
cost wht_cpu_simd_estimate(const problem &, const profile &);
pipeline wht_cpu_simd_build(const problem &, const profile &);

verdict wht_cpu_lines_applicable(const problem &, const profile &);
cost wht_cpu_lines_estimate(const problem &, const profile &);
pipeline wht_cpu_lines_build(const problem &, const profile &);

verdict wht_cpu_ref_applicable(const problem &, const profile &);
cost wht_cpu_ref_estimate(const problem &, const profile &);
pipeline wht_cpu_ref_build(const problem &, const profile &);

verdict wht_cuda_block_applicable(const problem &, const profile &);
cost wht_cuda_block_estimate(const problem &, const profile &);
pipeline wht_cuda_block_build(const problem &, const profile &);

verdict wht_cuda_block_factor_applicable(const problem &, const profile &);
cost wht_cuda_block_factor_estimate(const problem &, const profile &);
pipeline wht_cuda_block_factor_build(const problem &, const profile &);

verdict wht_cuda_diagonal_applicable(const problem &, const profile &);
cost wht_cuda_diagonal_estimate(const problem &, const profile &);
pipeline wht_cuda_diagonal_build(const problem &, const profile &);

verdict wht_cuda_fused_applicable(const problem &, const profile &);
cost wht_cuda_fused_estimate(const problem &, const profile &);
pipeline wht_cuda_fused_build(const problem &, const profile &);

verdict wht_cuda_l2_applicable(const problem &, const profile &);
cost wht_cuda_l2_estimate(const problem &, const profile &);
pipeline wht_cuda_l2_build(const problem &, const profile &);

verdict wht_cuda_cluster_applicable(const problem &, const profile &);
cost wht_cuda_cluster_estimate(const problem &, const profile &);
pipeline wht_cuda_cluster_build(const problem &, const profile &);

verdict wht_cuda_two_pass_shuffle_applicable(const problem &, const profile &);
cost wht_cuda_two_pass_shuffle_estimate(const problem &, const profile &);
pipeline wht_cuda_two_pass_shuffle_build(const problem &, const profile &);

verdict wht_cuda_mma16_applicable(const problem &, const profile &);
cost wht_cuda_mma16_estimate(const problem &, const profile &);
pipeline wht_cuda_mma16_build(const problem &, const profile &);

verdict wht_cuda_kron_tf32_applicable(const problem &, const profile &);
cost wht_cuda_kron_tf32_estimate(const problem &, const profile &);
pipeline wht_cuda_kron_tf32_build(const problem &, const profile &);

verdict wht_cuda_kron_3xtf32_applicable(const problem &, const profile &);
cost wht_cuda_kron_3xtf32_estimate(const problem &, const profile &);
pipeline wht_cuda_kron_3xtf32_build(const problem &, const profile &);

verdict wht_cuda_kron_int8_applicable(const problem &, const profile &);
cost wht_cuda_kron_int8_estimate(const problem &, const profile &);
pipeline wht_cuda_kron_int8_build(const problem &, const profile &);

verdict wht_cuda_two_pass_tiled_applicable(const problem &, const profile &);
cost wht_cuda_two_pass_tiled_estimate(const problem &, const profile &);
pipeline wht_cuda_two_pass_tiled_build(const problem &, const profile &);

verdict wht_cuda_multi_pass_applicable(const problem &, const profile &);
cost wht_cuda_multi_pass_estimate(const problem &, const profile &);
pipeline wht_cuda_multi_pass_build(const problem &, const profile &);

verdict wht_cuda_columns_applicable(const problem &, const profile &);
cost wht_cuda_columns_estimate(const problem &, const profile &);
pipeline wht_cuda_columns_build(const problem &, const profile &);

verdict wht_cuda_any_applicable(const problem &, const profile &);
cost wht_cuda_any_estimate(const problem &, const profile &);
pipeline wht_cuda_any_build(const problem &, const profile &);

verdict wht_cuda_block_e4m3_applicable(const problem &, const profile &);
cost wht_cuda_block_e4m3_estimate(const problem &, const profile &);
pipeline wht_cuda_block_e4m3_build(const problem &, const profile &);

verdict wht_cuda_mma16_e4m3_applicable(const problem &, const profile &);
cost wht_cuda_mma16_e4m3_estimate(const problem &, const profile &);
pipeline wht_cuda_mma16_e4m3_build(const problem &, const profile &);

verdict wht_cuda_mma16_narrow_applicable(const problem &, const profile &);
cost wht_cuda_mma16_narrow_estimate(const problem &, const profile &);
pipeline wht_cuda_mma16_narrow_build(const problem &, const profile &);

verdict wht_cpu_around_applicable(const problem &, const profile &);
cost wht_cpu_around_estimate(const problem &, const profile &);
pipeline wht_cpu_around_build(const problem &, const profile &);

verdict wht_cuda_composed_applicable(const problem &, const profile &);
cost wht_cuda_composed_estimate(const problem &, const profile &);
pipeline wht_cuda_composed_build(const problem &, const profile &);

} // namespace plait::impl
