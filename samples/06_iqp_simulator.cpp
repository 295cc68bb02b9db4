// A simulator of IQP circuits: Hadamard gates on all qubits, a diagonal of phases, Hadamard gates
// again. Amplitudes are planar: one row of real parts, one of imaginary parts. H is real, so both
// rows go through one f32 plan with a batch of two. Several circuits run at once: one immutable
// plan for all, one exec (scratch and stream) for each; on a CPU build one thread for each.
//
//   06_iqp_simulator [QUBITS]        default 16, at most 28
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <plait/plait.h>
#include <thread>
#include <vector>
#ifdef __CUDACC__
#    include <cuda_runtime.h>
#    define HD __host__ __device__
#else
#    define HD
#endif

// Phases are multiples of pi/8: one for each qubit that is 1, one for each pair of them.
struct circuit {
    uint8_t single[32], pair[32][32];
    HD int eighths(uint32_t x) const {
        int sum = 0;
        for (int j = 0; x >> j; ++j)
            if (x >> j & 1) {
                sum += single[j];
                for (int k = 0; k < j; ++k) sum += x >> k & 1 ? pair[j][k] : 0;
            }
        return sum & 15;
    }
    HD void apply(float *re, float *im, uint32_t x) const { // state[x] *= exp(i phase)
        const float angle = 0.39269908f * float(eighths(x)), c = cosf(angle), s = sinf(angle);
        const float a = re[x], b = im[x];
        re[x] = a * c - b * s;
        im[x] = a * s + b * c;
    }
};

static void check(int status, const char *sentence) {
    if (status == 0) return;
    std::fprintf(stderr, "%s\n", sentence);
    std::exit(1);
}
static void check(plait_status status) { check(status, plait_last_error()); }

struct lane { // one circuit on its way
    std::vector<float> state;
    float *data = nullptr; // where the plan works: the vector, or device memory
    plait_stream stream = nullptr;
    plait_exec *exec = nullptr;
};

#ifdef __CUDACC__
static void check(cudaError_t error) { check(error, cudaGetErrorString(error)); }
__global__ void diagonal(circuit c, float *state, uint32_t size) {
    const uint32_t x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x < size) c.apply(state, state + size, x);
}
#endif

// H D H applied to the state. On the GPU this only queues work.
static void simulate(lane &l, const circuit &c, plait_backend backend) {
    const size_t bytes = l.state.size() * sizeof(float);
    const auto size = uint32_t(l.state.size() / 2);
    (void)bytes;
#ifdef __CUDACC__
    if (backend == PLAIT_CUDA) {
        auto stream = static_cast<cudaStream_t>(l.stream);
        check(cudaMemcpyAsync(l.data, l.state.data(), bytes, cudaMemcpyHostToDevice, stream));
        check(plait_exec_run(l.exec, l.data, l.data));
        diagonal<<<(size + 255) / 256, 256, 0, stream>>>(c, l.data, size);
        check(cudaGetLastError());
        check(plait_exec_run(l.exec, l.data, l.data));
        check(cudaMemcpyAsync(l.state.data(), l.data, bytes, cudaMemcpyDeviceToHost, stream));
        return;
    }
#endif
    (void)backend;
    check(plait_exec_run(l.exec, l.data, l.data));
    for (uint32_t x = 0; x < size; ++x) c.apply(l.data, l.data + size, x);
    check(plait_exec_run(l.exec, l.data, l.data));
}

// Runs all circuits on |00..0> and returns their final states.
static std::vector<lane> run(const std::vector<circuit> &circuits, int qubits, bool report) {
    int devices = 0;
    check(plait_device_count(PLAIT_CUDA, &devices));
    const plait_backend backend = devices > 0 ? PLAIT_CUDA : PLAIT_CPU;
    const int64_t extents[2] = {2, int64_t(1) << qubits};
    plait_context *ctx = nullptr;
    plait_desc *desc = nullptr;
    plait_plan *plan = nullptr;
    check(plait_context_create(&ctx, backend, 0));
    check(plait_wht_create(&desc, PLAIT_F32, 2, extents));
    check(plait_wht_set_scale(desc, std::exp2(-0.5 * qubits))); // unitary
    check(plait_desc_set_alias(desc, PLAIT_Y, PLAIT_X));        // in place
    check(plait_plan_create(&plan, ctx, desc, nullptr));
    char candidate[64];
    check(plait_plan_candidate(plan, candidate, sizeof candidate, nullptr));

    std::vector<lane> lanes(circuits.size());
    for (lane &l : lanes) {
        l.state.assign(size_t(2) << qubits, 0.f);
        l.state[0] = 1;
        l.data = l.state.data();
#ifdef __CUDACC__
        if (backend == PLAIT_CUDA) {
            cudaStream_t stream = nullptr;
            check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
            check(cudaMalloc(&l.data, l.state.size() * sizeof(float)));
            l.stream = stream;
        }
#endif
        check(plait_exec_from_plan(&l.exec, plan, l.stream));
    }
    std::vector<std::thread> threads;
    for (size_t i = 0; i < lanes.size(); ++i)
        threads.emplace_back([&, i] { simulate(lanes[i], circuits[i], backend); });
    for (std::thread &t : threads) t.join();
    for (lane &l : lanes) {
        plait_exec_destroy(l.exec);
#ifdef __CUDACC__
        if (backend == PLAIT_CUDA) {
            check(cudaStreamSynchronize(static_cast<cudaStream_t>(l.stream)));
            check(cudaStreamDestroy(static_cast<cudaStream_t>(l.stream)));
            check(cudaFree(l.data));
        }
#endif
    }
    if (report)
        std::printf("%zu circuits of %d qubits at once on %s by %s\n", lanes.size(), qubits,
                    backend == PLAIT_CUDA ? "the GPU" : "the CPU", candidate);
    plait_plan_destroy(plan);
    plait_desc_destroy(desc);
    plait_context_destroy(ctx);
    return lanes;
}

int main(int argc, char **argv) {
    const int qubits = argc > 1 ? std::atoi(argv[1]) : 16;
    if (qubits < 1 || qubits > 28) return std::fprintf(stderr, "1 to 28 qubits\n"), 2;
    std::vector<circuit> circuits(4);
    uint32_t random = 12345;
    for (circuit &c : circuits)
        for (auto *p = reinterpret_cast<uint8_t *>(&c); p < reinterpret_cast<uint8_t *>(&c + 1);
             ++p)
            *p = uint8_t((random = random * 1664525u + 1013904223u) >> 28);

    // Eight qubits against the sum over all paths: amplitude[k] = 2^-8 sum_x e^(i phase(x))
    // (-1)^(k.x)
    double worst = 0;
    const auto small = run(circuits, 8, false);
    for (size_t i = 0; i < circuits.size(); ++i)
        for (uint32_t k = 0; k < 256; ++k) {
            std::complex<double> sum = 0;
            for (uint32_t x = 0; x < 256; ++x)
                sum += (__builtin_parity(k & x) ? -1. / 256 : 1. / 256) *
                       std::polar(1., 3.14159265358979323846 / 8 * circuits[i].eighths(x));
            const auto &state = small[i].state;
            worst =
                std::fmax(worst, std::abs(sum - std::complex<double>(state[k], state[256 + k])));
        }
    std::printf("8 qubits: largest difference to the sum over all paths %.1e\n", worst);

    bool ok = worst < 1e-6;
    for (const lane &l : run(circuits, qubits, true)) {
        double norm = 0, peak = 0;
        const size_t size = l.state.size() / 2;
        for (size_t x = 0; x < size; ++x) {
            const double p =
                double(l.state[x]) * l.state[x] + double(l.state[size + x]) * l.state[size + x];
            norm += p;
            peak = std::fmax(peak, p);
        }
        std::printf("norm %.7f, most likely outcome %.3g\n", norm, peak);
        ok = ok && std::fabs(norm - 1) < 1e-5;
    }
    std::puts(ok ? "ok" : "WRONG");
    return ok ? 0 : 1;
}
