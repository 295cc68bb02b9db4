// The kernels of this folder as the kernel table names them.
#pragma once

namespace plait::impl::cpu {

void kda_fwd_chunk(const void *args, int threads);
void kda_bwd_chunk(const void *args, int threads);
void kda_ref(const void *args, int threads); ///< kda.ref: both directions

} // namespace plait::impl::cpu
