// What nvcc gives to a kernel, for a C++ compiler: included before a .cu file, whose kernels then
// run on the CPU, thread by thread (emulator.h). Meant for kernels of this repository: what they do
// not use is missing. Inline PTX needs a branch without __CUDACC__.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

// ---- Qualifiers ------------------------------------------------------------------------------

#define __global__
#define __device__
#define __host__
#define __constant__
#define __forceinline__ inline
#define __restrict__ __restrict
#define __grid_constant__
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))
/// All threads of a block run on one thread of the system, so that this is the block's memory;
/// block scope makes it static, `extern` finds the array of the launch, which must be
/// `char shared[]` in plait::impl::cuda.
#define __shared__ thread_local

// ---- Types and built-in variables ------------------------------------------------------------

// clang-format off
struct uint3 { unsigned x, y, z; };
struct dim3 {
    unsigned x, y, z;
    dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {}
};
struct alignas(4) ushort2 { unsigned short x, y; };
struct alignas(8) ushort4 { unsigned short x, y, z, w; };
struct alignas(8) int2 { int x, y; };
struct alignas(16) int4 { int x, y, z, w; };
struct alignas(8) uint2 { unsigned x, y; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
struct alignas(8) float2 { float x, y; };
struct alignas(16) float4 { float x, y, z, w; };
struct alignas(16) double2 { double x, y; };
inline int2 make_int2(int x, int y) { return {x, y}; }
inline int4 make_int4(int x, int y, int z, int w) { return {x, y, z, w}; }
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline double2 make_double2(double x, double y) { return {x, y}; }
// clang-format on

extern uint3 threadIdx, blockIdx; ///< of the thread that runs now
extern dim3 blockDim, gridDim;
constexpr int warpSize = 32;

namespace plait::emulation {

enum class meeting { sync, shuffle, vote };
struct met {
    uint32_t lanes;     ///< that took part
    uint64_t value[32]; ///< what each of them brought
};
/// Waits until the lanes of `mask` that have not exited are here.
const met &meet(meeting kind, uint32_t mask, uint64_t value);
/// Waits until all threads of the block that have not exited are here; how many brought true.
int barrier(bool value);
/// Waits until that many threads of the block are here.
void part_barrier(int id, int threads);
/// The barrier of a cluster in its two halves, the block's number in it, and the place of its own
/// dynamic shared memory in that of another block.
void cluster_arrive();
void cluster_wait();
unsigned cluster_rank();
char *cluster_shared(const void *own, unsigned rank);
/// mbarrier in shared memory; a bulk copy lands at once or when somebody waits for it.
void counter_init(uint64_t *counter, int arrivals);
void counter_expect(uint64_t *counter, uint32_t bytes);
void counter_come(uint64_t *counter, uint32_t bytes);
void counter_wait(uint64_t *counter, unsigned parity);
void bulk_load(void *to, const void *from, uint32_t bytes, uint64_t *counter);
/// settings::until_wait ends the thread here.
void wait_for_predecessor();
/// Ends the launch, which then says this sentence.
[[noreturn]] void fault(const char *what);
unsigned lane();

template <class To, class From> To bits_as(From from) {
    static_assert(sizeof(To) == sizeof(From) && std::is_trivially_copyable_v<From>);
    To to;
    std::memcpy(&to, &from, sizeof to);
    return to;
}

template <class T> void check_aligned(const T *p) {
    if (reinterpret_cast<uintptr_t>(p) % sizeof(T) != 0) fault("an access is not aligned");
}

template <class T> T shuffle(uint32_t mask, T value, int from) {
    static_assert(sizeof(T) <= 8 && std::is_trivially_copyable_v<T>);
    uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    const met &all = meet(meeting::shuffle, mask, bits);
    if (!(all.lanes >> from & 1u)) fault("a shuffle reads a lane that does not take part");
    std::memcpy(&value, &all.value[from], sizeof value);
    return value;
}

/// The lane as `shfl` of PTX finds it: out of the segment of `width` lanes means the own value.
inline int own_unless(bool inside, int from) { return inside ? from : static_cast<int>(lane()); }
inline int segment(int width) { return static_cast<int>(lane()) & ~(width - 1); }

} // namespace plait::emulation

// ---- Threads of a block and of a warp --------------------------------------------------------

inline void __syncthreads() { plait::emulation::barrier(false); }
inline int __syncthreads_count(int v) { return plait::emulation::barrier(v != 0); }
inline int __syncthreads_or(int v) { return __syncthreads_count(v) != 0; }
inline int __syncthreads_and(int v) { return __syncthreads_count(v == 0) == 0; }
inline void __syncwarp(unsigned mask = 0xffffffffu) {
    plait::emulation::meet(plait::emulation::meeting::sync, mask, 0);
}
inline void __threadfence() {}
inline void __threadfence_block() {}

template <class T> T __shfl_sync(unsigned mask, T value, int from, int width = 32) {
    return plait::emulation::shuffle(mask, value,
                                     plait::emulation::segment(width) | (from & (width - 1)));
}
template <class T> T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32) {
    using namespace plait::emulation;
    const int from = static_cast<int>(lane()) ^ bits;
    return shuffle(mask, value, own_unless(from < segment(width) + width, from));
}
template <class T> T __shfl_up_sync(unsigned mask, T value, unsigned by, int width = 32) {
    using namespace plait::emulation;
    const int from = static_cast<int>(lane()) - static_cast<int>(by);
    return shuffle(mask, value, own_unless(from >= segment(width), from));
}
template <class T> T __shfl_down_sync(unsigned mask, T value, unsigned by, int width = 32) {
    using namespace plait::emulation;
    const int from = static_cast<int>(lane()) + static_cast<int>(by);
    return shuffle(mask, value, own_unless(from < segment(width) + width, from));
}
/// The lanes that are here together may be any set with this one.
inline unsigned __activemask() { return 1u << plait::emulation::lane(); }
inline unsigned __ballot_sync(unsigned mask, int vote) {
    using namespace plait::emulation;
    const met &all = meet(meeting::vote, mask, vote != 0);
    unsigned out = 0;
    for (int i = 0; i < 32; ++i)
        if ((all.lanes >> i & 1u) && all.value[i]) out |= 1u << i;
    return out;
}
inline int __any_sync(unsigned mask, int vote) { return __ballot_sync(mask, vote) != 0; }
inline int __all_sync(unsigned mask, int vote) { return __ballot_sync(mask, !vote) == 0; }

// ---- Memory: blocks run one after the other, so that plain operations are atomic ---------------

template <class T> T __ldg(const T *p) {
    plait::emulation::check_aligned(p);
    return *p;
}
template <class T> void __stcs(T *p, const T &v) {
    plait::emulation::check_aligned(p);
    *p = v;
}
template <class T> T __ldcs(const T *p) { return __ldg(p); }
template <class T> T __ldcg(const T *p) { return __ldg(p); }
template <class T> T __ldca(const T *p) { return __ldg(p); }
template <class T> void __stcg(T *p, const T &v) { __stcs(p, v); }
template <class T> void __stwb(T *p, const T &v) { __stcs(p, v); }

namespace plait::emulation {
template <class T> struct same { using type = T; };
template <class T, class F> T exchange(T *p, F next) {
    check_aligned(p);
    const T old = *p;
    *p = next(old);
    return old;
}
} // namespace plait::emulation

template <class T> T atomicAdd(T *p, typename plait::emulation::same<T>::type v) {
    return plait::emulation::exchange(p, [v](T old) { return static_cast<T>(old + v); });
}
template <class T> T atomicMax(T *p, typename plait::emulation::same<T>::type v) {
    return plait::emulation::exchange(p, [v](T old) { return old < v ? v : old; });
}
template <class T> T atomicMin(T *p, typename plait::emulation::same<T>::type v) {
    return plait::emulation::exchange(p, [v](T old) { return v < old ? v : old; });
}
template <class T> T atomicOr(T *p, typename plait::emulation::same<T>::type v) {
    return plait::emulation::exchange(p, [v](T old) { return old | v; });
}
template <class T> T atomicExch(T *p, typename plait::emulation::same<T>::type v) {
    return plait::emulation::exchange(p, [v](T) { return v; });
}
template <class T>
T atomicCAS(T *p, typename plait::emulation::same<T>::type expected,
            typename plait::emulation::same<T>::type v) {
    return plait::emulation::exchange(p, [=](T old) { return old == expected ? v : old; });
}

// ---- Arithmetic ------------------------------------------------------------------------------

// clang-format off
inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
inline double __fma_rn(double a, double b, double c) { return std::fma(a, b, c); }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __frcp_rn(float a) { return 1.0f / a; }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dmul_rn(double a, double b) { return a * b; }
// the device has 2 or 3 more ulp of error in these
inline float __expf(float a) { return std::exp(a); }
inline float __logf(float a) { return std::log(a); }
inline float __fdividef(float a, float b) { return a / b; }
inline float rsqrtf(float a) { return 1.0f / std::sqrt(a); }

inline float __uint_as_float(unsigned v) { return plait::emulation::bits_as<float>(v); }
inline float __int_as_float(int v) { return plait::emulation::bits_as<float>(v); }
inline unsigned __float_as_uint(float v) { return plait::emulation::bits_as<unsigned>(v); }
inline int __float_as_int(float v) { return plait::emulation::bits_as<int>(v); }
inline double __longlong_as_double(long long v) { return plait::emulation::bits_as<double>(v); }
inline long long __double_as_longlong(double v) { return plait::emulation::bits_as<long long>(v); }
inline int __double2loint(double v) { return static_cast<int>(__double_as_longlong(v)); }
inline int __double2hiint(double v) { return static_cast<int>(__double_as_longlong(v) >> 32); }
inline double __hiloint2double(int high, int low) {
    return plait::emulation::bits_as<double>(
        static_cast<uint64_t>(static_cast<uint32_t>(high)) << 32 | static_cast<uint32_t>(low));
}
inline int __popc(unsigned v) { return __builtin_popcount(v); }
inline int __popcll(unsigned long long v) { return __builtin_popcountll(v); }
inline int __clz(int v) { return v ? __builtin_clz(static_cast<unsigned>(v)) : 32; }
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned by) {
    by &= 31;
    return by == 0 ? low : low >> by | high << (32 - by);
}
inline int __ffs(int v) { return __builtin_ffs(v); }
inline unsigned __umulhi(unsigned a, unsigned b) {
    return static_cast<unsigned>(static_cast<uint64_t>(a) * b >> 32);
}
inline int __mulhi(int a, int b) { return static_cast<int>(static_cast<int64_t>(a) * b >> 32); }
__extension__ typedef unsigned __int128 emulated_uint128;
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return static_cast<unsigned long long>(static_cast<emulated_uint128>(a) * b >> 64);
}
inline int __float2int_rn(float v) { return static_cast<int>(std::nearbyint(v)); }
inline int __double2int_rn(double v) { return static_cast<int>(std::nearbyint(v)); }
inline int min(int a, int b) { return b < a ? b : a; }
inline int max(int a, int b) { return a < b ? b : a; }
inline unsigned min(unsigned a, unsigned b) { return b < a ? b : a; }
inline unsigned max(unsigned a, unsigned b) { return a < b ? b : a; }
inline int64_t min(int64_t a, int64_t b) { return b < a ? b : a; }
inline int64_t max(int64_t a, int64_t b) { return a < b ? b : a; }
inline float min(float a, float b) { return std::fmin(a, b); }
inline float max(float a, float b) { return std::fmax(a, b); }
inline double min(double a, double b) { return std::fmin(a, b); }
inline double max(double a, double b) { return std::fmax(a, b); }
// clang-format on
