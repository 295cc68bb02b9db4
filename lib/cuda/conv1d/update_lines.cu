#include "lib/cuda/conv1d/update_vector.cuh"

namespace plait::impl::cuda {

kernel_list list_conv1d_update_lines_f32() {
    return conv1d_update_list<scalar::f32, conv1d_update_state::lines>();
}
kernel_list list_conv1d_update_lines_f16() {
    return conv1d_update_list<scalar::f16, conv1d_update_state::lines>();
}
kernel_list list_conv1d_update_lines_bf16() {
    return conv1d_update_list<scalar::bf16, conv1d_update_state::lines>();
}

} // namespace plait::impl::cuda
