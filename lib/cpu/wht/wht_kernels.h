// The kernels of this folder as the kernel table names them.
#pragma once

namespace plait::impl::cpu {

void wht_inputs(const void *args, int threads);
void wht_lines(const void *args, int threads);
void wht_matrix(const void *args, int threads);
void wht_ref(const void *args, int threads);
void wht_results(const void *args, int threads);
void wht_simd(const void *args, int threads);

} // namespace plait::impl::cpu
