// What forward and backward read: the extended signal, ids, weights; compiled once per level.
#if defined(PLAIT_LIB_CPU_CONV1D_SIMD_SOURCE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#    ifdef PLAIT_LIB_CPU_CONV1D_SIMD_SOURCE_INL_H_
#        undef PLAIT_LIB_CPU_CONV1D_SIMD_SOURCE_INL_H_
#    else
#        define PLAIT_LIB_CPU_CONV1D_SIMD_SOURCE_INL_H_
#    endif

#    include "lib/cpu/conv1d/simd_args.h"
#    include "lib/cpu/conv1d/simd_lines-inl.h"
#    include "lib/cpu/conv1d/simd_taps-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plait::impl::cpu {
namespace HWY_NAMESPACE {
namespace conv1d_simd {

/// Hands out the buffers of a thread.
struct carver {
    char *at;
    template <typename T> T *take(int64_t count) {
        T *taken = reinterpret_cast<T *>(at);
        at += count * static_cast<int64_t>(sizeof(T));
        return taken;
    }
};

/// A sequence of a call, seen by the kernels.
template <typename T> struct source {
    const conv1d_args &a;
    const conv1d_problem &p;
    conv1d_span s;
    int64_t head = 0; ///< of a ring

    source(const conv1d_args &args, const conv1d_span &span) : a(args), p(args.problem), s(span) {
        if (!p.ring) return;
        head = a.position[s.row] % p.entries; // whatever it holds, the entries are inside
        if (head < 0) head += p.entries;
    }

    /// The entry of the first state that holds position at < 0.
    int64_t entry(int64_t at) const {
        return p.ring ? (head + at + p.entries) % p.entries : p.entries + at;
    }

    /// One channel, positions [at, at + count), at >= -history.
    void line(int64_t c, int64_t at, int64_t count, T *to) const {
        const int64_t before = std::min(count, at < 0 ? -at : 0);
        if (before > 0 && !p.state_in.used()) {
            std::fill(to, to + before, T(0));
        } else if (before > 0) {
            const conv1d_view &v = p.state_in;
            const int64_t base = s.state * v.b + c * v.c;
            // A ring is read in two parts where it wraps around.
            const int64_t from = entry(at), part = std::min(before, p.entries - from);
            load_line(v.type, a.first_state(), base + from * v.t, v.t, to, part);
            load_line(v.type, a.first_state(), base, v.t, to + part, before - part);
        }
        if (count > before) {
            const int64_t t = s.begin + at + before;
            load_line(p.x.type, a.x, s.row * p.x.b + c * p.x.c + t * p.x.t, p.x.t, to + before,
                      count - before);
        }
    }

    /// Channels [c, c + count) at one position.
    void row(int64_t c, int64_t count, int64_t at, T *to) const {
        if (at >= 0) {
            const conv1d_view &v = p.x;
            return load_line(v.type, a.x, s.row * v.b + c * v.c + (s.begin + at) * v.t, v.c, to,
                             count);
        }
        if (!p.state_in.used()) return std::fill(to, to + count, T(0)), void();
        const conv1d_view &v = p.state_in;
        load_line(v.type, a.first_state(), s.state * v.b + c * v.c + entry(at) * v.t, v.c, to,
                  count);
    }

    bool masked() const { return p.seq_idx.used(); }

    int32_t id(int64_t at) const {
        if (at >= s.length || s.length == 0) return no_id;
        if (at < 0 && !p.state_in.used()) return no_id;
        return std::max(a.seq_idx[s.row * p.seq_idx.b + (at < 0 ? 0 : at) * p.seq_idx.t], no_id);
    }

    /// Ids of positions [at, at + count).
    void load_ids(int64_t at, int64_t count, id_of<T> *to) const {
        for (int64_t i = 0; i < count; ++i) to[i] = id(at + i);
    }

    /// Whether the last state, or its gradient, has the input at this position.
    bool kept(int64_t at) const {
        if (!masked() || s.length == 0) return true;
        return id(s.length - 1) >= 0 && id(at) == id(s.length - 1);
    }
};

/// Marks the groups of `size` outputs, among `count`, whose taps all have one id that is no
/// padding: `reach` ids from the group's first on.
template <typename T>
void mark_clean(const id_of<T> *ids, int64_t count, int64_t size, int64_t reach, uint8_t *clean) {
    for (int64_t j = 0, g = 0; j < count; j += size, ++g) {
        bool same = ids[j] >= 0;
        for (int64_t i = 1; i < reach && same; ++i) same = ids[j + i] == ids[j];
        clean[g] = same;
    }
}

/// Calls run(first, last, clean) for the longest runs of groups that are alike.
template <typename Run> void for_runs(const uint8_t *clean, int64_t groups, Run run) {
    for (int64_t g = 0; g < groups;) {
        int64_t end = g + 1;
        while (end < groups && clean[end] == clean[g]) ++end;
        run(g, end, clean[g] != 0);
        g = end;
    }
}

} // namespace conv1d_simd
} // namespace HWY_NAMESPACE
} // namespace plait::impl::cpu
HWY_AFTER_NAMESPACE();

#endif
