#include "lib/cuda/kernel_table.h"
#include "src/backend/binding.h"
#include "src/backend/cuda/check.h"
#include "src/backend/cuda/cuda_device.h"

#include <algorithm>

namespace plait::impl::cuda {

namespace {

class cuda_prepared final : public prepared {
public:
    cuda_prepared(const pipeline &what, int device) {
        const device_scope current(device);
        for (const step &s : what.steps) launches_.push_back(load(s, what.work, device));
    }

    void launch(const bindings &pointers, plait_stream stream) const override {
        for (const one &l : launches_) {
            bound_step::blob args;
            l.what.fill(args, pointers);
            void *parameters[] = {args.bytes};
            const cudaError_t error = launch_one(l, parameters, static_cast<cudaStream_t>(stream));
            if (error != cudaSuccess) fail_cuda(error, text("step ", l.name));
        }
    }

private:
    struct one {
        const void *func;
        dim3 grid;
        dim3 block;
        size_t smem;
        unsigned cluster;
        bool programmatic;
        std::string name; ///< kernel and variant
        bound_step what;
    };

    static one load(const step &s, const ledger &work, int device) {
        const std::string name = text(s.kernel, ' ', s.variant);
        const void *func = find_kernel(s.kernel.c_str(), s.variant.c_str());
        if (!func) fail(PLAIT_ERR_NOT_SUPPORTED, "this build has no CUDA kernel ", name);
        if (s.grid < 1 || s.grid > 0x7fffffff)
            fail(PLAIT_ERR_INTERNAL, "step ", name, ": grid=", s.grid);

        // Also loads the kernel's module now: with lazy loading the first launch would do it, and
        // that is not legal everywhere a launch is.
        cudaFuncAttributes has;
        check(cudaFuncGetAttributes(&has, func), text("kernel ", name));
        if (s.block > has.maxThreadsPerBlock)
            fail(PLAIT_ERR_INTERNAL, "step ", name, ": block=", s.block, " is above ",
                 has.maxThreadsPerBlock);
        if (s.smem_bytes > 0) {
            // The limit belongs to the function, not to this plan: always the largest, or two
            // plans with one kernel would take it from each other.
            int most = 0;
            check(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device),
                  "cudaDeviceGetAttribute");
            most -= static_cast<int>(has.sharedSizeBytes);
            if (s.smem_bytes > most)
                fail(PLAIT_ERR_INTERNAL, "step ", name, ": smem=", s.smem_bytes, " is above ",
                     most);
            check(cudaFuncSetAttribute(func, cudaFuncAttributeMaxDynamicSharedMemorySize, most),
                  text("shared memory of kernel ", name));
        }
        one out = {func, dim3(static_cast<unsigned>(s.grid)), dim3(static_cast<unsigned>(s.block)),
                   static_cast<size_t>(s.smem_bytes), static_cast<unsigned>(s.cluster),
                   // Code for older devices has no instruction to wait with.
                   (s.programmatic || s.beside) && has.binaryVersion >= 90 && has.ptxVersion >= 90,
                   name, bound_step(s, work)};
        if (s.cluster > 1) {
            const unsigned most = clusters_at_a_time(out) * out.cluster;
            if (s.resident && out.grid.x > most) out.grid.x = most;
        }
        return out;
    }

    /// The blocks of a cluster run at the same time or not at all; fails where there is no place
    /// for them. How many places there are only the driver knows.
    static unsigned clusters_at_a_time(const one &l) {
        // More than 8 blocks in a cluster are not portable and need to be asked for.
        if (l.cluster > 8)
            check(cudaFuncSetAttribute(l.func, cudaFuncAttributeNonPortableClusterSizeAllowed, 1),
                  text("cluster size of kernel ", l.name));
        cudaLaunchAttribute attributes[most_attributes];
        const cudaLaunchConfig_t config = config_of(l, nullptr, attributes);
        int most = 0;
        check(cudaOccupancyMaxActiveClusters(&most, l.func, &config),
              text("clusters of kernel ", l.name));
        if (most < 1)
            fail(PLAIT_ERR_NOT_SUPPORTED, "step ", l.name, ": no place on the device for ",
                 l.cluster, " blocks of ", l.smem, " bytes of shared memory at a time");
        return static_cast<unsigned>(most);
    }

    static constexpr int most_attributes = 2;

    /// `attributes` must live as long as the result.
    static cudaLaunchConfig_t config_of(const one &l, cudaStream_t stream,
                                        cudaLaunchAttribute (&attributes)[most_attributes]) {
        cudaLaunchConfig_t config{};
        config.gridDim = l.grid;
        config.blockDim = l.block;
        config.dynamicSmemBytes = l.smem;
        config.stream = stream;
        config.attrs = attributes;
        if (l.cluster > 1) {
            cudaLaunchAttribute &a = attributes[config.numAttrs++];
            a.id = cudaLaunchAttributeClusterDimension;
            a.val.clusterDim.x = l.cluster;
            a.val.clusterDim.y = a.val.clusterDim.z = 1;
        }
        if (l.programmatic) {
            cudaLaunchAttribute &a = attributes[config.numAttrs++];
            a.id = cudaLaunchAttributeProgrammaticStreamSerialization;
            a.val.programmaticStreamSerializationAllowed = 1;
        }
        return config;
    }

    static cudaError_t launch_one(const one &l, void **parameters, cudaStream_t stream) {
        if (l.cluster == 1 && !l.programmatic)
            return cudaLaunchKernel(l.func, l.grid, l.block, parameters, l.smem, stream);
        cudaLaunchAttribute attributes[most_attributes];
        const cudaLaunchConfig_t config = config_of(l, stream, attributes);
        return cudaLaunchKernelExC(&config, l.func, parameters);
    }

    std::vector<one> launches_;
};

} // namespace

std::shared_ptr<const prepared> prepare(const pipeline &what, int device) {
    return std::make_shared<cuda_prepared>(what, device);
}

} // namespace plait::impl::cuda
