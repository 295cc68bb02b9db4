// Random numbers that are the same everywhere (the distributions of the standard library are not).
#pragma once

#include <cstdint>
#include <initializer_list>

namespace plait::test {

class rng {
public:
    explicit rng(uint64_t seed) : state_(seed) {}

    uint64_t next() { // splitmix64
        uint64_t z = state_ += 0x9e3779b97f4a7c15u;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        return z ^ (z >> 31);
    }
    int64_t between(int64_t low, int64_t high) { // both included
        return low + static_cast<int64_t>(next() % static_cast<uint64_t>(high - low + 1));
    }
    double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; } // [0, 1)
    double sign_unit() { return 2 * unit() - 1; }
    bool chance(double p) { return unit() < p; }
    template <class T> T pick(std::initializer_list<T> values) {
        return *(values.begin() + between(0, static_cast<int64_t>(values.size()) - 1));
    }

private:
    uint64_t state_;
};

/// A seed for item `index` of a sweep: items do not depend on those before them.
inline uint64_t derive(uint64_t seed, uint64_t index) {
    rng r(seed ^ (index * 0xd1342543de82ef95u + 0x63641362u));
    return r.next();
}

} // namespace plait::test
