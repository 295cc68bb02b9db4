// wht.cuda.composed: what only some kernels know, around the passes of wht.any.
#include "src/planner/wht_composed.h"

namespace plait::impl {

verdict wht_cuda_composed_applicable(const problem &problem, const profile &device) {
    if (device.backend != PLAIT_CUDA) return "the device is no CUDA device";
    if (problem.empty) return "the problem is empty: there is nothing to run";
    if (wht_ref_only(problem).empty())
        return "it has no option that needs steps around the passes of wht.cuda.any";
    const verdict built = wht_cuda_built_for(device);
    if (!built.empty()) return built;
    const wht_composer composer(problem, device);
    if (!composer.refusal.empty()) return composer.refusal;
    return fits_memory(problem, device, composer.steps.work.bytes());
}

cost wht_cuda_composed_estimate(const problem &problem, const profile &device) {
    return wht_composer(problem, device).estimate;
}

pipeline wht_cuda_composed_build(const problem &problem, const profile &device) {
    return wht_composer(problem, device).steps;
}

} // namespace plait::impl
