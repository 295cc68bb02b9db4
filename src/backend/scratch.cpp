#include "src/backend/scratch.h"

#include "lib/common/half.h"
#include "src/backend/reserve.h"
#include "src/core/status.h"

#include <algorithm>
#include <cmath>

namespace plait::impl {

namespace {

/// splitmix64: enough for data that must only not be all zero or all equal.
uint64_t next(uint64_t &state) {
    uint64_t z = (state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

double unit(uint64_t &state) { return static_cast<double>(next(state) >> 11) * 0x1p-52 - 1.0; }

template <class T, class Make>
void fill_with(void *to, size_t bytes, uint64_t &state, const Make &make) {
    T *out = static_cast<T *>(to);
    for (size_t i = 0; i < bytes / sizeof(T); ++i) out[i] = make(state);
}

bool same_layout(const tensor &a, const tensor &b) {
    return a.extents == b.extents && a.strides == b.strides;
}

const tensor *may_share(const tensor &out, const std::vector<tensor> &all) {
    if (out.access == PLAIT_READ || out.alias == 0) return nullptr;
    for (const tensor &t : all)
        if (t.role == out.alias && same_layout(out, t)) return &t;
    return nullptr;
}

} // namespace

scratch::scratch(const std::vector<tensor> &tensors, size_t work_bytes, allocator &memory,
                 plait_stream stream) {
    std::vector<const tensor *> waiting;
    // Inputs first: an output that finds no room needs to know where its input is.
    for (const bool inputs : {true, false})
        for (const tensor &t : tensors) {
            if ((t.access == PLAIT_READ) != inputs) continue;
            const size_t bytes = static_cast<size_t>(t.span_bytes());
            void *&ptr = pointers[t.role];
            try {
                memory_.emplace_back(memory, bytes, stream);
                ptr = memory_.back().get();
                buffers.push_back({&t, ptr, bytes});
            } catch (const failure &f) {
                const tensor *input = may_share(t, tensors);
                if (f.code() != PLAIT_ERR_OUT_OF_MEMORY || !input) throw;
                ptr = pointers[input->role];
            }
        }
    memory_.emplace_back(memory, work_bytes, stream);
    pointers.work = memory_.back().get();
}

size_t tensor_bytes(const std::vector<tensor> &tensors) {
    size_t sum = 0;
    for (const tensor &t : tensors) sum += static_cast<size_t>(t.span_bytes());
    return sum;
}

void fill_random(void *to, size_t bytes, plait_dtype dtype, uint64_t seed) {
    uint64_t s = seed;
    switch (dtype) {
    case PLAIT_F64:
    case PLAIT_C128: fill_with<double>(to, bytes, s, unit); break;
    case PLAIT_F32:
    case PLAIT_C64:
        fill_with<float>(to, bytes, s, [](uint64_t &r) { return static_cast<float>(unit(r)); });
        break;
    case PLAIT_F16:
        fill_with<uint16_t>(to, bytes, s, [](uint64_t &r) { return f64_to_f16(unit(r)); });
        break;
    case PLAIT_BF16:
        fill_with<uint16_t>(to, bytes, s, [](uint64_t &r) { return f64_to_bf16(unit(r)); });
        break;
    case PLAIT_I32:
        fill_with<int32_t>(to, bytes, s,
                           [](uint64_t &r) { return static_cast<int32_t>(next(r) % 17) - 8; });
        break;
    case PLAIT_I64:
        fill_with<int64_t>(to, bytes, s,
                           [](uint64_t &r) { return static_cast<int64_t>(next(r) % 17) - 8; });
        break;
    case PLAIT_I16:
        fill_with<int16_t>(to, bytes, s,
                           [](uint64_t &r) { return static_cast<int16_t>(next(r) % 17 - 8); });
        break;
    case PLAIT_I8:
    case PLAIT_E4M3: // any byte would do: X is never E4M3
        fill_with<int8_t>(to, bytes, s,
                          [](uint64_t &r) { return static_cast<int8_t>(next(r) % 17 - 8); });
        break;
    case PLAIT_B1:
        fill_with<uint32_t>(to, bytes, s,
                            [](uint64_t &r) { return static_cast<uint32_t>(next(r)); });
        break;
    }
}

namespace {

/// Numbers of one integer type, `value(i)` for i = 0, 1, ...
template <class Value>
std::vector<std::byte> numbers(const tensor &what, int64_t count, const Value &value) {
    const bool wide = what.dtype == PLAIT_I64;
    const size_t size = wide ? 8 : 4;
    std::vector<std::byte> out(static_cast<size_t>(count) * size);
    for (int64_t i = 0; i < count; ++i) {
        const int64_t number = value(i);
        const auto narrow = static_cast<int32_t>(number);
        std::memcpy(out.data() + static_cast<size_t>(i) * size,
                    wide ? static_cast<const void *>(&number) : &narrow, size);
    }
    return out;
}

bool is_kda(const problem &of) { return std::holds_alternative<kda_problem>(of.form); }

struct sequence_facts {
    int64_t count, length, max_length, slots;
    int32_t pad;
};

sequence_facts sequences_of(const problem &of) {
    const auto facts = [](const auto &p) {
        return sequence_facts{p.sequences, p.length, p.max_length, p.slots, p.pad};
    };
    return is_kda(of) ? facts(of.kda()) : facts(of.conv1d());
}

/// A state stays finite over any number of tokens when gates decay, keys are shorter than 1 and
/// beta is between 0 and 1.
double tame(plait_role role, double v) {
    switch (role) {
    case PLAIT_K: return v / 16;
    case PLAIT_G: return -std::fabs(v) / 16;
    case PLAIT_BETA: return std::fabs(v);
    default: return v;
    }
}

void tame(std::vector<std::byte> &data, const tensor &what) {
    const auto type = static_cast<scalar>(what.dtype);
    const size_t size = static_cast<size_t>(scalar_bytes(type));
    for (std::byte *at = data.data(); at + size <= data.data() + data.size(); at += size) {
        double wide = 0;
        float single = 0;
        uint16_t half = 0;
        switch (type) {
        case scalar::f64:
            std::memcpy(&wide, at, size);
            wide = tame(what.role, wide);
            std::memcpy(at, &wide, size);
            break;
        case scalar::f32:
            std::memcpy(&single, at, size);
            single = static_cast<float>(tame(what.role, static_cast<double>(single)));
            std::memcpy(at, &single, size);
            break;
        default:
            std::memcpy(&half, at, size);
            half = type == scalar::f16 ? f64_to_f16(tame(what.role, f16_to_f32(half)))
                                       : f64_to_bf16(tame(what.role, bf16_to_f32(half)));
            std::memcpy(at, &half, size);
        }
    }
}

} // namespace

std::vector<std::byte> measuring_data(const problem &of, const tensor &what, size_t most) {
    const int64_t count = what.span();
    switch (what.role) {
    case PLAIT_CU_SEQLENS: { // sequences of one length
        const sequence_facts p = sequences_of(of);
        const int64_t each = p.count > 0 ? std::min(p.max_length, p.length / p.count) : 0;
        return numbers(what, count, [&](int64_t i) { return i * each; });
    }
    case PLAIT_SLOTS: { // distinct; rows that find none are padding
        const sequence_facts p = sequences_of(of);
        const auto slot = [&](int64_t i) { return i < p.slots && i != p.pad ? i : p.pad; };
        return numbers(what, count, slot);
    }
    case PLAIT_POSITION: return numbers(what, count, [](int64_t i) { return i % 4096; });
    case PLAIT_ROWS: { // scattered, all of them places of the transform
        int64_t n = 1;
        const wht_problem &p = of.wht();
        for (int a = 0; a < p.axes; ++a)
            if (p.axis[a].transformed) n *= p.axis[a].length;
        return numbers(what, count, [n](int64_t i) { return i % n * 7919 % n; });
    }
    case PLAIT_RESERVE: return measuring_reserve(of, most);
    case PLAIT_SEQ_IDX: return std::vector<std::byte>(std::min<size_t>(most, 4096)); // one sequence
    default: break;
    }
    std::vector<std::byte> out(std::min(most, static_cast<size_t>(what.span_bytes())));
    fill_random(out.data(), out.size(), what.dtype, static_cast<uint64_t>(what.role));
    if (is_kda(of) && what.dtype != PLAIT_I32) tame(out, what);
    return out;
}

double median(std::vector<double> &seconds) {
    if (seconds.empty()) return 0;
    const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
    std::nth_element(seconds.begin(), middle, seconds.end());
    return *middle;
}

} // namespace plait::impl
