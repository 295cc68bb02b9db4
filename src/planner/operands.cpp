#include "src/planner/operands.h"

#include "src/core/checked.h"
#include "src/core/tables.h"
#include "src/core/text.h"

#include <initializer_list>

namespace plait::impl {

static verdict few_products(std::initializer_list<int64_t> extents) {
    int64_t products = 1;
    for (const int64_t extent : extents)
        if (const auto next = try_mul(products, extent); next && *next <= most_products)
            products = *next;
        else
            return text("it takes more products than ", most_products);
    return "";
}

verdict fits_counts(const problem &problem) {
    for (const tensor &t : problem.tensors)
        if (t.span_bytes() > most_bytes)
            return text(role_name(t.role), " takes ", t.span_bytes(),
                        " bytes; no process reaches more than ", most_bytes);
    const auto *const conv = std::get_if<conv1d_problem>(&problem.form);
    const auto *const kda = std::get_if<kda_problem>(&problem.form);
    if (conv) return few_products({conv->batch, conv->channels, conv->length, conv->width});
    if (kda)
        return few_products({kda->batch, kda->length, kda->value_heads, kda->dim_k, kda->dim_v});
    return "";
}

verdict fits_memory(const problem &problem, const profile &device, int64_t work) {
    if (device.memory_bytes == 0) return "";
    int64_t bytes = work;
    for (const tensor &t : problem.tensors) {
        if (t.alias != plait_role{}) continue;
        const auto sum = try_add(bytes, t.span_bytes());
        if (!sum)
            return text("tensors and workspace take more bytes than 64 bits count; the device has ",
                        device.memory_bytes);
        bytes = *sum;
    }
    if (bytes <= device.memory_bytes) return "";
    return text("tensors and workspace take ", bytes, " bytes; the device has ",
                device.memory_bytes);
}

operand role_operand(plait_role role, bool written, int64_t offset) {
    operand o;
    o.from = operand::source::role;
    o.role = role;
    o.offset = offset;
    o.written = written;
    return o;
}

operand piece_operand(int piece, bool written, int64_t offset) {
    operand o;
    o.from = operand::source::work;
    o.piece = piece;
    o.offset = offset;
    o.written = written;
    return o;
}

} // namespace plait::impl
