#include "src/backend/binding.h"

#include "src/core/status.h"
#include "src/core/tables.h"

namespace plait::impl {

bound_step::bound_step(const step &what, const ledger &work) : args_(what.args) {
    if (what.operands.size() * sizeof(void *) > what.args.size())
        fail(PLAIT_ERR_INTERNAL, "step ", what.kernel, ": more operands than its arguments hold");
    for (const operand &o : what.operands) {
        slot s{o.from, plait_role{}, o.offset};
        if (o.from == operand::source::role) {
            s.role = o.role;
            if (!role_name(o.role))
                fail(PLAIT_ERR_INTERNAL, "step ", what.kernel, ": role ", o.role);
        } else if (o.from == operand::source::work) {
            s.offset += work.pieces().at(static_cast<size_t>(o.piece)).offset;
        }
        slots_.push_back(s);
    }
}

void bound_step::fill(blob &out, const prepared::bindings &pointers) const noexcept {
    std::memcpy(out.bytes, args_.data(), args_.size());
    std::byte *head = out.bytes;
    for (const slot &s : slots_) {
        void *base = nullptr;
        if (s.from == operand::source::role) base = pointers[s.role];
        if (s.from == operand::source::work) base = pointers.work;
        if (base) base = static_cast<std::byte *>(base) + s.offset;
        std::memcpy(head, &base, sizeof base);
        head += sizeof base;
    }
}

} // namespace plait::impl
