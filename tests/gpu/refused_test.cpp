// Launches that the device refuses, and callers in another situation than most.
#include "tests/gpu/gpu.h"

#include <cstdlib>
#include <dlfcn.h>
#include <unistd.h>

namespace plait::test {

TEST_CASE("refused: another device is current") {
    int devices = 0;
    REQUIRE_CUDA(cudaGetDeviceCount(&devices));
    if (devices < 2) {
        note_count("refused: one device only, no other to make current");
        return;
    }
    const wht_call c = rows_of(PLAIT_F32, 8, 4096);
    rng random(config().seed);
    const wht_data data = random_data(c, filling::integers, random);
    const plan_ptr plan = plan_by("wht.cuda.*", desc_of(c).get());
    bound_call bound(c, plan.get(), data);
    const bytes before = bound.y();
    REQUIRE_CUDA(cudaSetDevice(1));
    CHECK(bound.execute() == PLAIT_ERR_DEVICE);
    REQUIRE_CUDA(cudaSetDevice(0));
    target().wait();
    CHECK(bound.y() == before);
    CHECK(bound.execute() == PLAIT_OK);
    target().wait();
}

TEST_CASE("refused: a device that does not exist") {
    int devices = 0;
    REQUIRE_CUDA(cudaGetDeviceCount(&devices));
    plait_context *ctx = nullptr;
    CHECK(plait_context_create(&ctx, PLAIT_CUDA, devices) == PLAIT_ERR_NO_DEVICE);
    CHECK(ctx == nullptr);
}

// Runs in a process of its own: nothing works on the device afterwards.
TEST_CASE("child: execute on a lost device" * doctest::skip(true)) {
    const wht_call c = rows_of(PLAIT_F32, 8, 4096);
    const plan_ptr plan = plan_by("wht.cuda.*", desc_of(c).get());
    void *x = nullptr, *y = nullptr;
    REQUIRE_CUDA(cudaMalloc(&x, 8 * 4096 * 4));
    REQUIRE_CUDA(cudaMalloc(&y, 8 * 4096 * 4));
    device_trap(nullptr);
    (void)cudaDeviceSynchronize(); // from here on every call fails
    const plait_arg args[] = {{PLAIT_X, x}, {PLAIT_Y, y}};
    CHECK(plait_execute(plan.get(), args, 2, nullptr, 0, nullptr) == PLAIT_ERR_DEVICE);
    CHECK(std::string(plait_last_error()).find("wht.block") != std::string::npos);
}

TEST_CASE("refused: a launch on a lost device is an error of that execute, with the step's name") {
    if (config().small) return; // a checker would report the trap
    char self[4096] = {};
    REQUIRE(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
    const std::string command =
        "'" + std::string(self) + "' --no-skip -tc='child: execute on a lost device' > /dev/null";
    CHECK(std::system(command.c_str()) == 0);
}

TEST_CASE("caller: a stream and memory of a shared CUDA runtime") {
    void *library = nullptr;
    for (const char *name :
         {"libcudart.so.13", "libcudart.so", "/usr/local/cuda/lib64/libcudart.so.13",
          "/usr/local/cuda/lib64/libcudart.so"})
        if (!library) library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        note_count("caller: no shared CUDA runtime on this machine, not run");
        return;
    }
    const auto find = [&](const char *name, auto *type) {
        void *symbol = dlsym(library, name);
        REQUIRE_MESSAGE(symbol, name);
        return reinterpret_cast<decltype(type)>(symbol);
    };
    const auto alloc = find("cudaMalloc", static_cast<cudaError_t (*)(void **, size_t)>(nullptr));
    const auto release = find("cudaFree", static_cast<cudaError_t (*)(void *)>(nullptr));
    const auto create = find("cudaStreamCreateWithFlags",
                             static_cast<cudaError_t (*)(cudaStream_t *, unsigned)>(nullptr));
    const auto destroy =
        find("cudaStreamDestroy", static_cast<cudaError_t (*)(cudaStream_t)>(nullptr));
    const auto wait =
        find("cudaStreamSynchronize", static_cast<cudaError_t (*)(cudaStream_t)>(nullptr));
    const auto copy = find(
        "cudaMemcpyAsync",
        static_cast<cudaError_t (*)(void *, const void *, size_t, cudaMemcpyKind, cudaStream_t)>(
            nullptr));
    const wht_call c = rows_of(PLAIT_F32, 16, 2048);
    rng random(config().seed);
    const wht_data data = random_data(c, filling::integers, random);
    const plan_ptr plan = plan_by("wht.cuda.*", desc_of(c).get());
    cudaStream_t stream = nullptr;
    void *x = nullptr, *y = nullptr;
    REQUIRE(create(&stream, cudaStreamNonBlocking) == cudaSuccess);
    REQUIRE(alloc(&x, data.x.size()) == cudaSuccess);
    REQUIRE(alloc(&y, data.x.size()) == cudaSuccess);
    REQUIRE(copy(x, data.x.data(), data.x.size(), cudaMemcpyHostToDevice, stream) == cudaSuccess);
    const plait_arg args[] = {{PLAIT_X, x}, {PLAIT_Y, y}};
    CHECK(plait_execute(plan.get(), args, 2, nullptr, 0, stream) == PLAIT_OK);
    bytes result(data.x.size());
    REQUIRE(copy(result.data(), y, result.size(), cudaMemcpyDeviceToHost, stream) == cudaSuccess);
    REQUIRE(wait(stream) == cudaSuccess);
    CHECK(first_difference(c, reference(c, data), result) == "");
    REQUIRE(release(x) == cudaSuccess);
    REQUIRE(release(y) == cudaSuccess);
    REQUIRE(destroy(stream) == cudaSuccess);
}

} // namespace plait::test
