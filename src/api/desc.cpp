// plait_desc: what descriptors of every family have in common.
#include "src/api/guard.h"
#include "src/api/handles.h"

using namespace plait::impl;

namespace {

/// Setters of all families: the descriptor checks the values, and names function and argument.
template <class Set> plait_status set(const char *function, plait_desc *desc, Set &&how) noexcept {
    return guard(function, [&] {
        require(desc, "desc");
        how(*desc->body);
    });
}

} // namespace

extern "C" {

plait_status plait_desc_use(plait_desc *desc, plait_role role, int use) {
    return set(__func__, desc, [&](descriptor &d) { d.use(role, use != 0); });
}

plait_status plait_desc_set_dtype(plait_desc *desc, plait_role role, plait_dtype dtype) {
    return set(__func__, desc, [&](descriptor &d) { d.set_dtype(role, dtype); });
}

plait_status plait_desc_set_strides(plait_desc *desc, plait_role role, int rank,
                                    const int64_t *strides) {
    return set(__func__, desc, [&](descriptor &d) { d.set_strides(role, rank, strides); });
}

plait_status plait_desc_set_alignment(plait_desc *desc, plait_role role, int bytes) {
    return set(__func__, desc, [&](descriptor &d) { d.set_alignment(role, bytes); });
}

plait_status plait_desc_set_alias(plait_desc *desc, plait_role out, plait_role in) {
    return set(__func__, desc, [&](descriptor &d) { d.set_alias(out, in); });
}

plait_status plait_desc_set_varlen(plait_desc *desc, int64_t sequences, int64_t max_length) {
    return set(__func__, desc, [&](descriptor &d) { d.set_varlen(sequences, max_length); });
}

plait_status plait_desc_set_slots(plait_desc *desc, int64_t count, int32_t pad) {
    return set(__func__, desc, [&](descriptor &d) { d.set_slots(count, pad); });
}

plait_status plait_desc_check(const plait_desc *desc) {
    return guard(__func__, [&] {
        require(desc, "desc");
        desc->body->check();
    });
}

plait_status plait_desc_num_tensors(const plait_desc *desc, int *count) {
    return guard(__func__, [&] {
        require(desc, "desc");
        require(count, "count");
        desc->body->check();
        *count = static_cast<int>(desc->body->tensors().size());
    });
}

plait_status plait_desc_tensor(const plait_desc *desc, int index, plait_role *role,
                               plait_access *access, plait_dtype *dtype, int *rank,
                               int64_t *extents, int64_t *strides) {
    return guard(__func__, [&] {
        require(desc, "desc");
        desc->body->check();
        const std::vector<tensor> all = desc->body->tensors();
        if (index < 0 || static_cast<size_t>(index) >= all.size())
            fail(PLAIT_ERR_INVALID_ARGUMENT, "index=", index, " is not below the ", all.size(),
                 " tensors of the descriptor");
        const tensor &t = all[static_cast<size_t>(index)];
        if (role) *role = t.role;
        if (access) *access = t.access;
        if (dtype) *dtype = t.dtype;
        if (rank) *rank = static_cast<int>(t.extents.size());
        for (size_t a = 0; a < PLAIT_MAX_RANK; ++a) {
            const bool there = a < t.extents.size();
            if (extents) extents[a] = there ? t.extents[a] : 1;
            if (strides) strides[a] = there ? t.strides[a] : 0;
        }
    });
}

plait_status plait_desc_token(const plait_desc *desc, char *buf, size_t cap, size_t *size) {
    return guard(__func__, [&] {
        require(desc, "desc");
        desc->body->check();
        text_out(desc->body->token(), buf, cap, size);
    });
}

plait_status plait_desc_from_token(plait_desc **desc, const char *token) {
    return guard_create(__func__, desc, "desc", [&] {
        require(token, "token");
        return new plait_desc{descriptor_from_token(token)};
    });
}

void plait_desc_destroy(plait_desc *desc) { delete desc; }

} // extern "C"
