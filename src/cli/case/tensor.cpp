#include "src/cli/case/tensor.h"

#include "src/cli/case/dtype.h"
#include "src/cli/case/handle.h"

#include <algorithm>
#include <cstring>

namespace plait::cases {
namespace {

/// Calls run(offset, done, length) for maximal runs of elements `step` apart, in row-major order.
template <class Run> void walk(const tensor &t, int64_t first, int64_t count, Run run) {
    if (count <= 0) return;
    const int rank = static_cast<int>(t.extents.size());
    // The innermost axes that lie in memory like one axis are walked as one.
    int64_t inner = 1, step = 1;
    int outer = rank;
    if (rank > 0) {
        inner = t.extents[static_cast<size_t>(rank - 1)];
        step = t.strides[static_cast<size_t>(rank - 1)];
        outer = rank - 1;
        while (outer > 0 && t.strides[static_cast<size_t>(outer - 1)] == inner * step && step > 0) {
            --outer;
            inner *= t.extents[static_cast<size_t>(outer)];
        }
    }
    std::vector<int64_t> index(static_cast<size_t>(outer));
    int64_t row = first / inner, column = first % inner, offset = 0;
    for (int a = outer - 1; a >= 0; --a) {
        const size_t i = static_cast<size_t>(a);
        index[i] = row % t.extents[i];
        row /= t.extents[i];
        offset += index[i] * t.strides[i];
    }
    for (int64_t done = 0; done < count;) {
        const int64_t length = std::min(inner - column, count - done);
        run(offset + column * step, done, length, step);
        done += length;
        column = 0;
        for (int a = outer - 1; a >= 0; --a) {
            const size_t i = static_cast<size_t>(a);
            offset += t.strides[i];
            if (++index[i] < t.extents[i]) break;
            offset -= index[i] * t.strides[i];
            index[i] = 0;
        }
    }
}

template <class T>
void copy_strided(const T *from, int64_t from_step, T *to, int64_t to_step, int64_t count) {
    for (int64_t i = 0; i < count; ++i) to[i * to_step] = from[i * from_step];
}

struct wide {
    uint64_t half[2];
};

template <class T>
void copy_elements(const tensor &t, void *base, int64_t begin, int64_t first, int64_t count,
                   void *dense, bool gathering) {
    T *strided = static_cast<T *>(base) + begin, *packed = static_cast<T *>(dense);
    walk(t, first, count, [&](int64_t at, int64_t done, int64_t length, int64_t step) {
        if (step == 1 && gathering)
            std::memcpy(packed + done, strided + at, static_cast<size_t>(length) * sizeof(T));
        else if (step == 1)
            std::memcpy(strided + at, packed + done, static_cast<size_t>(length) * sizeof(T));
        else if (gathering)
            copy_strided(strided + at, step, packed + done, 1, length);
        else
            copy_strided(packed + done, 1, strided + at, step, length);
    });
}

void copy_bits(const tensor &t, void *base, int64_t begin, int64_t first, int64_t count,
               void *dense, bool gathering) {
    uint32_t *words = static_cast<uint32_t *>(base);
    uint8_t *flags = static_cast<uint8_t *>(dense);
    walk(t, first, count, [&](int64_t at, int64_t done, int64_t length, int64_t step) {
        for (int64_t i = 0; i < length; ++i) {
            const int64_t bit = begin + at + i * step;
            uint32_t &word = words[bit / 32];
            const uint32_t mask = uint32_t{1} << (bit % 32);
            if (gathering)
                flags[done + i] = (word & mask) != 0;
            else
                word = flags[done + i] ? word | mask : word & ~mask;
        }
    });
}

/// `begin`: the tensor's element 0 lies so many elements behind `base`.
void copy_any(const tensor &t, void *base, int64_t begin, int64_t first, int64_t count, void *dense,
              bool gathering) {
    if (t.dtype == PLAIT_B1) return copy_bits(t, base, begin, first, count, dense, gathering);
    switch (bytes_of(t.dtype)) {
    case 1: return copy_elements<uint8_t>(t, base, begin, first, count, dense, gathering);
    case 2: return copy_elements<uint16_t>(t, base, begin, first, count, dense, gathering);
    case 4: return copy_elements<uint32_t>(t, base, begin, first, count, dense, gathering);
    case 8: return copy_elements<uint64_t>(t, base, begin, first, count, dense, gathering);
    case 16: return copy_elements<wide>(t, base, begin, first, count, dense, gathering);
    }
    throw failure(PLAIT_ERR_INTERNAL, "element type without a size");
}

/// Single words and tensors of indices promise no more than an element, a reserve what a workspace
/// does.
int promised_by_default(const tensor &t) {
    switch (t.role) {
    case PLAIT_CU_SEQLENS: return 8;
    case PLAIT_RESERVE: return PLAIT_WORKSPACE_ALIGNMENT;
    case PLAIT_OVERFLOW:
    case PLAIT_STATUS:
    case PLAIT_SLOTS:
    case PLAIT_POSITION:
    case PLAIT_SEQ_IDX: return 4;
    case PLAIT_ROWS:
    case PLAIT_AMAX:
    case PLAIT_SCALES:
    case PLAIT_HISTOGRAM: return static_cast<int>(bytes_of(t.dtype));
    default: return 16;
    }
}

} // namespace

int64_t tensor::elements() const {
    int64_t count = 1;
    for (int64_t e : extents) count *= e;
    return count;
}

int64_t tensor::span() const {
    if (elements() == 0) return 0;
    int64_t last = 0;
    for (size_t i = 0; i < extents.size(); ++i) last += (extents[i] - 1) * strides[i];
    return last + 1;
}

size_t tensor::span_bytes() const { return bytes_for(dtype, span()); }
size_t tensor::dense_bytes() const { return bytes_for(dtype, elements()); }

bool tensor::dense() const {
    int64_t packed = 1;
    for (size_t i = extents.size(); i-- > 0;) {
        if (extents[i] != 1 && strides[i] != packed) return false;
        packed *= extents[i];
    }
    return true;
}

std::string tensor::shape() const {
    std::string text;
    for (int64_t e : extents) text += (text.empty() ? "" : " x ") + std::to_string(e);
    return text.empty() ? "1" : text;
}

tensor distinct(const tensor &t) {
    if (t.elements() == 0) return t;
    tensor d = t;
    d.extents.clear();
    d.strides.clear();
    for (size_t i = 0; i < t.extents.size(); ++i) {
        if (t.strides[i] == 0) continue;
        d.extents.push_back(t.extents[i]);
        d.strides.push_back(t.strides[i]);
    }
    return d;
}

std::vector<tensor> tensors_of(const plait_desc *desc) {
    int count = 0;
    check(plait_desc_num_tensors(desc, &count));
    const token_parts parts = split_token(token_of(desc));
    std::vector<tensor> tensors;
    for (int i = 0; i < count; ++i) {
        tensor t{};
        int rank = 0;
        int64_t extents[PLAIT_MAX_RANK] = {}, strides[PLAIT_MAX_RANK] = {};
        check(plait_desc_tensor(desc, i, &t.role, &t.access, &t.dtype, &rank, extents, strides));
        t.name = plait_role_name(t.role);
        t.extents.assign(extents, extents + rank);
        t.strides.assign(strides, strides + rank);
        t.alignment = promised_by_default(t);
        tensors.push_back(t);
    }
    // Promise and alias are not in plait_desc_tensor; the token has them.
    for (tensor &t : tensors) {
        const token_role *said = parts.find(t.name);
        if (!said) continue;
        if (said->alignment > 0) t.alignment = said->alignment;
        for (const tensor &other : tensors)
            if (other.name == said->alias) t.alias = other.role;
    }
    return tensors;
}

const tensor *find_tensor(const std::vector<tensor> &tensors, plait_role role) {
    for (const tensor &t : tensors)
        if (t.role == role) return &t;
    return nullptr;
}

void gather(const tensor &t, const void *base, int64_t first, int64_t count, void *dense) {
    copy_any(t, const_cast<void *>(base), 0, first, count, dense, true); // only read
}

void scatter(const tensor &t, void *base, int64_t first, int64_t count, const void *dense) {
    copy_any(t, base, 0, first, count, const_cast<void *>(dense), false); // only read
}

void gather(const slice &s, const void *base, void *dense) {
    copy_any(s.part, const_cast<void *>(base), s.offset, 0, s.part.elements(), dense, true);
}

void scatter(const slice &s, void *base, const void *dense) {
    copy_any(s.part, base, s.offset, 0, s.part.elements(), const_cast<void *>(dense), false);
}

slice cut(const tensor &t, size_t axis, int64_t at) {
    slice s{t, at * t.strides[axis]};
    s.part.extents.erase(s.part.extents.begin() + static_cast<std::ptrdiff_t>(axis));
    s.part.strides.erase(s.part.strides.begin() + static_cast<std::ptrdiff_t>(axis));
    return s;
}

slice transform_slice(const tensor &t, const std::vector<token_axis> &axes, int64_t index) {
    slice s{t, 0};
    s.part.extents.clear();
    s.part.strides.clear();
    for (size_t a = axes.size(); a-- > 0;) {
        if (axes[a].transformed) {
            s.part.extents.insert(s.part.extents.begin(), t.extents[a]);
            s.part.strides.insert(s.part.strides.begin(), t.strides[a]);
        } else {
            s.offset += index % t.extents[a] * t.strides[a];
            index /= t.extents[a];
        }
    }
    return s;
}

} // namespace plait::cases
