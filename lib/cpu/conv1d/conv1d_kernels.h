// The kernels of this folder as the kernel table names them.
#pragma once

namespace plait::impl::cpu {

void conv1d_ref(const void *args, int threads); ///< conv1d.ref: all three directions
void conv1d_fwd_simd(const void *args, int threads);
void conv1d_bwd_simd(const void *args, int threads);
void conv1d_update_simd(const void *args, int threads);

} // namespace plait::impl::cpu
