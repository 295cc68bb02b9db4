// kda.fwd_recurrent for one token and for a few.
#include "lib/cuda/kda/fwd_recurrent_one.cuh"

#include "lib/cuda/common/kernel_entry.cuh"
#include "lib/cuda/kernel_list.h"

namespace plait::impl::cuda {

kernel_list list_kda_fwd_recurrent_few() {
    constexpr scalar f32 = scalar::f32, bf16 = scalar::bf16;
    static const kernel_entry entries[] = {
        make_kernel_entry<&kda_fwd_recurrent_few<f32, 64, true>>("kda.fwd_recurrent",
                                                                 "few.k64.vk.f32"),
        make_kernel_entry<&kda_fwd_recurrent_few<f32, 64, false>>("kda.fwd_recurrent",
                                                                  "few.k64.kv.f32"),
        make_kernel_entry<&kda_fwd_recurrent_few<bf16, 64, true>>("kda.fwd_recurrent",
                                                                  "few.k64.vk.bf16"),
        make_kernel_entry<&kda_fwd_recurrent_few<bf16, 64, false>>("kda.fwd_recurrent",
                                                                   "few.k64.kv.bf16"),
        make_kernel_entry<&kda_fwd_recurrent_few<f32, 128, true>>("kda.fwd_recurrent",
                                                                  "few.k128.vk.f32"),
        make_kernel_entry<&kda_fwd_recurrent_few<f32, 128, false>>("kda.fwd_recurrent",
                                                                   "few.k128.kv.f32"),
        make_kernel_entry<&kda_fwd_recurrent_few<bf16, 128, true>>("kda.fwd_recurrent",
                                                                   "few.k128.vk.bf16"),
        make_kernel_entry<&kda_fwd_recurrent_few<bf16, 128, false>>("kda.fwd_recurrent",
                                                                    "few.k128.kv.bf16"),
        make_kernel_entry<&kda_fwd_recurrent_one<f32, 64, true>>("kda.fwd_recurrent",
                                                                 "one.k64.vk.f32"),
        make_kernel_entry<&kda_fwd_recurrent_one<f32, 64, false>>("kda.fwd_recurrent",
                                                                  "one.k64.kv.f32"),
        make_kernel_entry<&kda_fwd_recurrent_one<bf16, 64, true>>("kda.fwd_recurrent",
                                                                  "one.k64.vk.bf16"),
        make_kernel_entry<&kda_fwd_recurrent_one<bf16, 64, false>>("kda.fwd_recurrent",
                                                                   "one.k64.kv.bf16"),
        make_kernel_entry<&kda_fwd_recurrent_one<f32, 128, true>>("kda.fwd_recurrent",
                                                                  "one.k128.vk.f32"),
        make_kernel_entry<&kda_fwd_recurrent_one<f32, 128, false>>("kda.fwd_recurrent",
                                                                   "one.k128.kv.f32"),
        make_kernel_entry<&kda_fwd_recurrent_one<bf16, 128, true>>("kda.fwd_recurrent",
                                                                   "one.k128.vk.bf16"),
        make_kernel_entry<&kda_fwd_recurrent_one<bf16, 128, false>>("kda.fwd_recurrent",
                                                                    "one.k128.kv.bf16"),
    };
    return {entries, static_cast<int>(sizeof(entries) / sizeof(entries[0]))};
}

} // namespace plait::impl::cuda
