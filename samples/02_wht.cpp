// The C++17 wrapper: handles that own, setters that chain, errors that throw.
//
// A batch of vectors is rotated by a random Hadamard rotation, Y = H S X / sqrt(n), as it is done
// before quantising: S flips signs at random, and what was one large entry becomes many small
// ones. The rotation is orthogonal: norms stay, and the adjoint undoes it.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <plait/plait.hpp>
#include <random>
#include <vector>

namespace {

constexpr std::int64_t rows = 256, n = 4096;

float largest(const std::vector<float> &v) {
    float m = 0;
    for (float x : v) m = std::max(m, std::fabs(x));
    return m;
}

int rotate() {
    // One vector in sixteen has an outlier that would ruin a common scale.
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    std::vector<float> x(rows * n), y(rows * n), back(rows * n);
    for (float &v : x) v = normal(random);
    for (std::int64_t r = 0; r < rows; r += 16) x[r * n + r] = 1000;
    std::vector<std::uint32_t> signs(n / 32); // one bit for each column, the same for all rows
    for (std::uint32_t &word : signs) word = random();

    const plait::context ctx(PLAIT_CPU);
    const plait::desc forward =
        plait::wht(PLAIT_F32, {rows, n}).scale(1 / std::sqrt(double(n))).use(PLAIT_SIGNS);
    plait::desc adjoint = plait::desc::from_token(forward.token());
    adjoint.adjoint();

    // A plan is immutable and shared; an exec adds scratch and a stream for one thread.
    const plait::plan plan(ctx, forward);
    plait::exec there(plan), undo(plait::plan(ctx, adjoint));
    there.run({plait::arg(PLAIT_X, x.data()), plait::arg(PLAIT_Y, y.data()),
               plait::arg(PLAIT_SIGNS, signs.data())});
    undo.run({plait::arg(PLAIT_X, y.data()), plait::arg(PLAIT_Y, back.data()),
              plait::arg(PLAIT_SIGNS, signs.data())});

    float error = 0;
    for (std::size_t i = 0; i < x.size(); ++i) error = std::max(error, std::fabs(back[i] - x[i]));
    std::printf("%s", plan.print().c_str());
    std::printf("largest entry before %.1f, after %.1f; undone with an error of %.1e\n", largest(x),
                largest(y), error);
    return largest(y) < 30 && error < 1e-3f ? 0 : 1;
}

} // namespace

int main() {
    try {
        if (rotate() != 0) return 1;
        // Every failure is a sentence: argument, value, rule.
        plait::wht(PLAIT_F32, {rows, n}).scale(NAN);
    } catch (const plait::error &e) {
        std::printf("refused (%s): %s\n", plait_status_name(e.code()), e.what());
        return e.code() == PLAIT_ERR_INVALID_ARGUMENT ? 0 : 1;
    }
    return 1;
}
