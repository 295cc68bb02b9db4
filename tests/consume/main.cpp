// The same transform as in main.c, through the C++ wrapper.
#include <cstdio>
#include <plait/plait.hpp>

int main() {
    const float x[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    const float expected[8] = {36, -4, -8, 0, -16, 0, 0, 0};
    float y[8] = {};
    try {
        plait::exec wht(PLAIT_CPU, 0, plait::wht(PLAIT_F32, {8}));
        wht(x, y);
    } catch (const plait::error &e) {
        std::printf("%s\n", e.what());
        return 1;
    }
    for (int i = 0; i < 8; ++i)
        if (y[i] != expected[i]) {
            std::printf("y[%d] = %g, expected %g\n", i, y[i], expected[i]);
            return 1;
        }
    std::puts("C++: ok");
    return 0;
}
