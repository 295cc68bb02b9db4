// RESERVE as CPU kernels of kda write and read it: states at the heads of chunks (kda_reserve.h).
#pragma once

#include "lib/common/kda_reserve.h"
#include "lib/cpu/kda/kda_args.h"
#include "lib/cpu/scalars.h"

#include <cstring>

namespace plait::impl::cpu {

/// Where sequences are cut so that sequence_table::first_piece is the slot of their first chunk.
inline int64_t kda_reserve_piece(const kda_problem &p) {
    return p.reserve ? kda_reserve_rows : INT64_MAX;
}

/// The states of one value head of one sequence.
class reserve_states {
public:
    reserve_states(const kda_args &a, int64_t first_slot, int64_t value_head)
        : p_(a.problem), type_(kda_reserve_state_type(a.problem)),
          step_(a.problem.reserve ? kda_reserve_shape_of(a.problem).entry * a.problem.value_heads
                                  : 0),
          at_(a.problem.reserve
                  ? static_cast<char *>(a.reserve) + kda_reserve_head + first_slot * step_ +
                        value_head * kda_reserve_shape_of(a.problem).entry
                  : nullptr) {}

    bool written() const { return at_ != nullptr && p_.direction == kda_direction::forward; }
    bool read() const { return at_ != nullptr && p_.direction == kda_direction::backward; }

    /// Of a chunk of the sequence; rows of values lie `pitch` numbers apart.
    template <class Number> void put(int64_t chunk, const Number *state, int64_t pitch) const {
        for (int64_t i = 0; i < p_.dim_k; ++i)
            for (int64_t j = 0; j < p_.dim_v; ++j)
                store_f64(type_, at_ + chunk * step_, i * p_.dim_v + j,
                          static_cast<double>(state[i * pitch + j]));
    }
    template <class Number> void get(int64_t chunk, Number *state, int64_t pitch) const {
        for (int64_t i = 0; i < p_.dim_k; ++i)
            for (int64_t j = 0; j < p_.dim_v; ++j)
                state[i * pitch + j] =
                    static_cast<Number>(load_f64(type_, at_ + chunk * step_, i * p_.dim_v + j));
    }

private:
    const kda_problem &p_;
    scalar type_;
    int64_t step_; ///< bytes from chunk to chunk
    char *at_;
};

/// By one thread.
inline void put_reserve_header(const kda_args &a) {
    if (!a.problem.reserve || a.problem.direction != kda_direction::forward) return;
    const kda_reserve_header header = kda_reserve_header_of(a.problem, kda_reserve_kind::states);
    std::memcpy(a.reserve, &header, sizeof header);
}

} // namespace plait::impl::cpu
