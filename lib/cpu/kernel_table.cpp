#include "lib/cpu/kernel_table.h"

#include "lib/cpu/conv1d/conv1d_kernels.h"
#include "lib/cpu/kda/kda_kernels.h"
#include "lib/cpu/wht/wht_kernels.h"

#include <cstring>

namespace plait::impl::cpu {
namespace {

struct entry {
    const char *name;
    kernel_fn run;
};

constexpr entry table[] = {
    {"conv1d.ref", conv1d_ref},
    {"conv1d.fwd_simd", conv1d_fwd_simd},
    {"conv1d.bwd_simd", conv1d_bwd_simd},
    {"conv1d.update_simd", conv1d_update_simd},
    {"kda.bwd_chunk", kda_bwd_chunk},
    {"kda.fwd_chunk", kda_fwd_chunk},
    {"kda.ref", kda_ref},
    {"wht.inputs", wht_inputs},
    {"wht.lines", wht_lines},
    {"wht.matrix", wht_matrix},
    {"wht.ref", wht_ref},
    {"wht.results", wht_results},
    {"wht.simd", wht_simd},
};

} // namespace

kernel_fn find_kernel(const char *kernel) {
    for (const entry &e : table)
        if (std::strcmp(e.name, kernel) == 0) return e.run;
    return nullptr;
}

} // namespace plait::impl::cpu
