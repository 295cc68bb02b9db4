// A plan inside a CUDA graph: captured once, replayed with new data.
//
// Executing allocates nothing, waits for nothing and reads nothing back, so it may be captured. A
// graph remembers pointers, not data: fill the same buffers anew and launch it again. The plan is
// made before the capture (planning loads kernels), and its workspace lives as long as the graph.
#include <cstdio>
#include <plait/plait.h>
#ifdef PLAIT_HAVE_CUDA
#    include <cmath>
#    include <cstdlib>
#    include <cuda_runtime.h>
#    include <vector>

static void check(plait_status status) {
    if (status == PLAIT_OK) return;
    std::fprintf(stderr, "%s: %s\n", plait_status_name(status), plait_last_error());
    std::exit(1);
}

static void check(cudaError_t error) {
    if (error == cudaSuccess) return;
    std::fprintf(stderr, "CUDA: %s\n", cudaGetErrorString(error));
    std::exit(1);
}

int main() {
    int devices = 0;
    check(plait_device_count(PLAIT_CUDA, &devices));
    if (devices == 0) {
        std::puts("no CUDA device");
        return 77;
    }
    constexpr int rows = 16, n = 1 << 16;
    constexpr size_t count = size_t(rows) * n, bytes = count * sizeof(float);
    float *x = nullptr, *y = nullptr;
    cudaStream_t stream = nullptr;
    check(cudaMalloc(&x, bytes));
    check(cudaMalloc(&y, bytes));
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));

    // Two transforms in one graph: x to y, and y back to x. 1/256 each way makes them inverse.
    plait_exec *there = nullptr, *back = nullptr;
    const char *token = "wht:f32:b16:n65536:scale=0.00390625";
    check(plait_exec_create(&there, PLAIT_CUDA, 0, token, stream));
    check(plait_exec_from_plan(&back, plait_exec_plan(there), stream)); // shares the plan

    cudaGraph_t graph = nullptr;
    cudaGraphExec_t replay = nullptr;
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    check(plait_exec_run(there, x, y));
    check(plait_exec_run(back, y, x));
    check(cudaStreamEndCapture(stream, &graph));
    check(cudaGraphInstantiate(&replay, graph, 0));

    std::vector<float> in(count), spectrum(count), out(count);
    for (int round = 0; round < 3; ++round) {
        for (int r = 0; r < rows; ++r) // row r is matrix row k: one spike of height 256 at k
            for (int i = 0; i < n; ++i)
                in[size_t(r) * n + i] = __builtin_parity((17 * r + round) & i) ? -1.f : 1.f;
        check(cudaMemcpyAsync(x, in.data(), bytes, cudaMemcpyHostToDevice, stream));
        check(cudaGraphLaunch(replay, stream));
        check(cudaMemcpyAsync(spectrum.data(), y, bytes, cudaMemcpyDeviceToHost, stream));
        check(cudaMemcpyAsync(out.data(), x, bytes, cudaMemcpyDeviceToHost, stream));
        check(cudaStreamSynchronize(stream));
        for (int r = 0; r < rows; ++r)
            for (int i = 0; i < n; ++i) {
                const size_t at = size_t(r) * n + i;
                const float spike = i == 17 * r + round ? 256.f : 0.f;
                if (spectrum[at] != spike || out[at] != in[at]) {
                    std::fprintf(stderr, "round %d, row %d, element %d is wrong\n", round, r, i);
                    return 1;
                }
            }
        std::printf("replay %d: %d spectra right, and back again\n", round, rows);
    }

    check(cudaGraphExecDestroy(replay)); // before the scratch that it uses
    check(cudaGraphDestroy(graph));
    plait_exec_destroy(back);
    plait_exec_destroy(there);
    check(cudaStreamDestroy(stream));
    check(cudaFree(x));
    check(cudaFree(y));
    return 0;
}
#else
int main() {
    std::puts("no CUDA device: this plait was built for the CPU alone");
    return 77;
}
#endif
