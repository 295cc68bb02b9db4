#include "tests/gpu/device_rows.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdexcept>

namespace plait::test {
namespace {

void require(cudaError_t status, const char *what) {
    if (status != cudaSuccess)
        throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(status));
}

__device__ double to_double(float v) { return v; }
__device__ double to_double(double v) { return v; }
__device__ double to_double(__half v) { return __half2float(v); }
__device__ double to_double(__nv_bfloat16 v) { return __bfloat162float(v); }
__device__ void from_double(float &to, double v) { to = static_cast<float>(v); }
__device__ void from_double(double &to, double v) { to = v; }
__device__ void from_double(__half &to, double v) { to = __float2half(static_cast<float>(v)); }
__device__ void from_double(__nv_bfloat16 &to, double v) {
    to = __float2bfloat16(static_cast<float>(v));
}

__device__ int64_t position(const impulse_rows &what, int64_t row, int i, int64_t n) {
    if (!what.hashed) return what.at[i];
    uint64_t z = what.seed + static_cast<uint64_t>(row * impulse_rows::most + i + 1) *
                                 0x9e3779b97f4a7c15u; // splitmix64
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return static_cast<int64_t>((z ^ (z >> 31)) & static_cast<uint64_t>(n - 1));
}

__device__ double value(const impulse_rows &what, image which, int64_t row, int64_t e, int64_t n) {
    if (what.only_row >= 0 && row != what.only_row) return 0;
    double sum = 0;
#pragma unroll // all four, so that the arrays stay in parameter space
    for (int i = 0; i < impulse_rows::most; ++i) {
        const int64_t p = position(what, row, i, n);
        if (which == image::impulses)
            sum += p == e ? what.weight[i] : 0;
        else
            sum += __popcll(static_cast<unsigned long long>(p & e)) & 1 ? -what.weight[i]
                                                                        : what.weight[i];
    }
    return sum;
}

template <class T>
__global__ void fill(T *data, int64_t rows, int64_t n, int64_t pitch, impulse_rows what,
                     image which, double scale) {
    const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
    for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < rows * n;
         i += step) {
        const int64_t row = i / n, e = i & (n - 1);
        from_double(data[row * pitch + e], scale * value(what, which, row, e, n));
    }
}

template <class T>
__global__ void check(const T *data, int64_t rows, int64_t n, int64_t pitch, impulse_rows what,
                      image which, double scale, double tolerance, unsigned long long *wrong,
                      unsigned long long *first) {
    const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
    for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < rows * n;
         i += step) {
        const int64_t row = i / n, e = i & (n - 1);
        const double want = scale * value(what, which, row, e, n);
        if (fabs(to_double(data[row * pitch + e]) - want) <= tolerance) continue;
        atomicAdd(wrong, 1ull);
        atomicMin(first, static_cast<unsigned long long>(i));
    }
}

__global__ void spin(long long cycles) {
    const long long start = clock64();
    while (clock64() - start < cycles) {
    }
}

__global__ void trap() { __trap(); }

template <class F> void by_type(plait_dtype type, F &&f) {
    switch (type) {
    case PLAIT_F32: return f(static_cast<float *>(nullptr));
    case PLAIT_F64: return f(static_cast<double *>(nullptr));
    case PLAIT_F16: return f(static_cast<__half *>(nullptr));
    case PLAIT_BF16: return f(static_cast<__nv_bfloat16 *>(nullptr));
    default: throw std::logic_error("not on the device");
    }
}

constexpr int blocks = 132 * 16, threads = 256;

} // namespace

void device_fill(const device_matrix &m, const impulse_rows &what, image which, double scale,
                 plait_stream stream) {
    by_type(m.type, [&](auto *type) {
        fill<<<blocks, threads, 0, static_cast<cudaStream_t>(stream)>>>(
            static_cast<decltype(type)>(m.data), m.rows, m.n, m.pitch, what, which, scale);
    });
    require(cudaGetLastError(), "fill");
}

device_count device_check(const device_matrix &m, const impulse_rows &what, image which,
                          double scale, double tolerance, plait_stream stream) {
    const auto s = static_cast<cudaStream_t>(stream);
    unsigned long long *counters = nullptr;
    require(cudaMalloc(&counters, 16), "counters");
    const unsigned long long start[2] = {0, ~0ull};
    unsigned long long result[2] = {};
    require(cudaMemcpyAsync(counters, start, 16, cudaMemcpyHostToDevice, s), "counters");
    by_type(m.type, [&](auto *type) {
        check<<<blocks, threads, 0, s>>>(static_cast<decltype(type)>(m.data), m.rows, m.n, m.pitch,
                                         what, which, scale, tolerance, counters, counters + 1);
    });
    require(cudaGetLastError(), "check");
    require(cudaMemcpyAsync(result, counters, 16, cudaMemcpyDeviceToHost, s), "counters");
    require(cudaStreamSynchronize(s), "check");
    require(cudaFree(counters), "counters");
    return {static_cast<int64_t>(result[0]), result[0] ? static_cast<int64_t>(result[1]) : -1};
}

static long long cycles_of(double seconds) {
    int khz = 0;
    require(cudaDeviceGetAttribute(&khz, cudaDevAttrClockRate, 0), "clock rate");
    return static_cast<long long>(seconds * 1e3 * (khz > 0 ? khz : 1500000));
}

void device_delay(double seconds, plait_stream stream) {
    spin<<<1, 1, 0, static_cast<cudaStream_t>(stream)>>>(cycles_of(seconds));
    require(cudaGetLastError(), "delay");
}

void device_occupy(int free, double seconds, plait_stream stream) {
    int sms = 0, bytes = 0;
    require(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0), "occupy");
    require(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0), "occupy");
    require(cudaFuncSetAttribute(spin, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
            "occupy");
    spin<<<sms - free, 1, static_cast<size_t>(bytes), static_cast<cudaStream_t>(stream)>>>(
        cycles_of(seconds));
    require(cudaGetLastError(), "occupy");
}

void device_trap(plait_stream stream) { trap<<<1, 1, 0, static_cast<cudaStream_t>(stream)>>>(); }

} // namespace plait::test
