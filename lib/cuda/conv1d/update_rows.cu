#include "lib/cuda/conv1d/update_vector.cuh"

namespace plait::impl::cuda {

kernel_list list_conv1d_update_rows_f32() {
    return conv1d_update_list<scalar::f32, conv1d_update_state::rows>();
}
kernel_list list_conv1d_update_rows_f16() {
    return conv1d_update_list<scalar::f16, conv1d_update_state::rows>();
}
kernel_list list_conv1d_update_rows_bf16() {
    return conv1d_update_list<scalar::bf16, conv1d_update_state::rows>();
}

} // namespace plait::impl::cuda
