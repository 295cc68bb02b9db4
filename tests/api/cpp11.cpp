// plait.h in C++11.
#include <cstdio>
#include <plait/plait.h>

int main() {
    alignas(16) float x[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    alignas(16) float y[8] = {};
    plait_exec *exec = nullptr;
    if (plait_exec_create(&exec, PLAIT_CPU, 0, "wht:f32:n8", nullptr) != PLAIT_OK ||
        plait_exec_run(exec, x, y) != PLAIT_OK) {
        std::printf("%s\n", plait_last_error());
        return 1;
    }
    plait_exec_destroy(exec);
    return y[0] == 36 && y[4] == -16 ? 0 : 1;
}
