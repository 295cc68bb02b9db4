// The kernels of this folder as the kernel table names them: wht.lines, wht.ref, wht.simd.
#pragma once

namespace plait::impl::cpu {

void wht_lines(const void *args, int threads);
void wht_ref(const void *args, int threads);
void wht_simd(const void *args, int threads);

} // namespace plait::impl::cpu
