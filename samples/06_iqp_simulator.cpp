// A simulator of IQP circuits: Hadamard gates on all qubits, a diagonal of phases, Hadamard gates
// again. Amplitudes are planar: one row of real parts, one of imaginary parts. H is real, so both
// rows go through one f32 plan with a batch of two. Several circuits run at once: one immutable
// plan for all, one exec (scratch and stream) for each; on a CPU one thread for each.
//
//   06_iqp_simulator [QUBITS]        1 to 28, default 16
#include <cmath>
#include <complex>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <plait/plait.hpp>
#ifdef __CUDACC__ // in a CUDA build this file is compiled by nvcc
#    define HD __host__ __device__
#else
#    define HD
#endif

// Phases are multiples of pi/8: [j][j] for qubit j being 1, [j][k] for qubits j > k both being 1.
struct circuit {
    unsigned char phase[32][32];
    HD int eighths(unsigned x) const {
        int sum = 0;
        for (int j = 0; x >> j; ++j)
            for (int k = 0; k <= j; ++k) sum += x >> j & x >> k & 1 ? phase[j][k] : 0;
        return sum & 15;
    }
    HD void apply(float *re, float *im, unsigned x) const { // state[x] *= exp(i phase)
        const float angle = 0.39269908f * float(eighths(x)), c = cosf(angle), s = sinf(angle);
        const float a = re[x], b = im[x];
        re[x] = a * c - b * s;
        im[x] = a * s + b * c;
    }
};
using state = std::vector<float>; // 2^qubits real parts, then the imaginary parts

#ifdef __CUDACC__
__global__ void diagonal(circuit c, float *data, unsigned size) {
    const unsigned x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x < size) c.apply(data, data + size, x);
}

static void cuda(cudaError_t error) {
    if (error != cudaSuccess) throw std::runtime_error(cudaGetErrorString(error));
}

// The state goes to the device, through H D H and back; the stream orders it all.
static void on_device(const plait::plan &plan, const circuit &c, state &amplitudes) {
    const unsigned size = unsigned(amplitudes.size() / 2);
    const size_t bytes = amplitudes.size() * sizeof(float);
    cudaStream_t stream = nullptr;
    float *data = nullptr;
    cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    cuda(cudaMalloc(&data, bytes));
    {
        plait::exec hadamard(plan, stream);
        cuda(cudaMemcpyAsync(data, amplitudes.data(), bytes, cudaMemcpyHostToDevice, stream));
        hadamard(data, data);
        diagonal<<<(size + 255) / 256, 256, 0, stream>>>(c, data, size);
        cuda(cudaGetLastError());
        hadamard(data, data);
        cuda(cudaMemcpyAsync(amplitudes.data(), data, bytes, cudaMemcpyDeviceToHost, stream));
    }
    cuda(cudaStreamSynchronize(stream));
    cuda(cudaFree(data));
    cuda(cudaStreamDestroy(stream));
}
#else
static void on_device(const plait::plan &, const circuit &, state &) {}
#endif

static void on_host(const plait::plan &plan, const circuit &c, state &amplitudes) {
    plait::exec hadamard(plan);
    float *data = amplitudes.data();
    const unsigned size = unsigned(amplitudes.size() / 2);
    hadamard(data, data);
    for (unsigned x = 0; x < size; ++x) c.apply(data, data + size, x);
    hadamard(data, data);
}

// All circuits at once, applied to |00..0>.
static std::vector<state> run(const std::vector<circuit> &circuits, int qubits) {
    const bool gpu = plait::device_count(PLAIT_CUDA) > 0;
    const plait::plan plan(plait::context(gpu ? PLAIT_CUDA : PLAIT_CPU), // unitary, in place
                           plait::wht(PLAIT_F32, {2, std::int64_t(1) << qubits})
                               .scale(std::exp2(-0.5 * qubits))
                               .in_place());
    std::printf("%zu circuits of %d qubits at once on the %s by %s\n", circuits.size(), qubits,
                gpu ? "GPU" : "CPU", plan.candidate().c_str());
    std::vector<state> states(circuits.size(), state(size_t(2) << qubits));
    std::vector<std::future<void>> runs;
    for (size_t i = 0; i < circuits.size(); ++i)
        runs.push_back(std::async(std::launch::async, [&, i] {
            states[i][0] = 1;
            (gpu ? on_device : on_host)(plan, circuits[i], states[i]);
        }));
    for (std::future<void> &r : runs) r.get(); // throws what went wrong there
    return states;
}

// amplitude[k] = 1/256 sum over x of exp(i phase(x)) (-1)^(k.x), for 8 qubits
static std::complex<double> path_sum(const circuit &c, unsigned k) {
    std::complex<double> sum = 0;
    for (unsigned x = 0; x < 256; ++x)
        sum += (__builtin_parity(k & x) ? -1. : 1.) * std::polar(1. / 256, M_PI / 8 * c.eighths(x));
    return sum;
}

int main(int argc, char **argv) try {
    const int qubits = argc > 1 ? std::atoi(argv[1]) : 16;
    if (qubits < 1 || qubits > 28) return std::puts("1 to 28 qubits"), 2;
    std::vector<circuit> circuits(4);
    unsigned random = 12345;
    for (circuit &c : circuits)
        for (auto &row : c.phase)
            for (unsigned char &p : row) p = (random = random * 1664525u + 1013904223u) >> 28;

    double worst = 0;
    const std::vector<state> small = run(circuits, 8);
    for (size_t i = 0; i < small.size(); ++i)
        for (unsigned k = 0; k < 256; ++k) {
            const std::complex<double> amplitude(small[i][k], small[i][256 + k]);
            worst = std::fmax(worst, std::abs(path_sum(circuits[i], k) - amplitude));
        }
    std::printf("largest difference to the sum over all paths: %.1e\n", worst);
    bool ok = worst < 1e-6;
    for (const state &s : run(circuits, qubits)) {
        double norm = 0;
        for (float a : s) norm += double(a) * a;
        std::printf("norm %.7f\n", norm);
        ok = ok && std::fabs(norm - 1) < 1e-5;
    }
    return std::puts(ok ? "ok" : "WRONG"), ok ? 0 : 1;
} catch (const std::exception &e) {
    return std::fprintf(stderr, "%s\n", e.what()), 1;
}
