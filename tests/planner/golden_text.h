// Plans as lines of a golden file: everything that reaches a launch.
#pragma once

#include "src/core/text.h"
#include "tests/planner/support.h"

namespace plait::test {

inline std::string operand_text(const pipeline &p, const operand &o) {
    std::string name = "null";
    if (o.from == operand::source::role) name = role_name(o.role);
    if (o.from == operand::source::work) name = p.work.pieces()[static_cast<size_t>(o.piece)].name;
    if (o.offset != 0) name += text('+', o.offset);
    return o.written ? name + "!" : name;
}

/// `arguments`: what else the kernel is told.
inline std::string step_text(const pipeline &p, const step &s, const std::string &arguments) {
    std::string out =
        text("  ", s.kernel, s.variant.empty() ? "" : " ", s.variant, " grid ", s.grid, " block ",
             s.block, " smem ", s.smem_bytes, s.cluster > 1 ? text(" cluster ", s.cluster) : "",
             " read ", s.bytes_read, " written ", s.bytes_written, " flops ", s.flops, " (");
    for (const operand &o : s.operands)
        out += text(&o == s.operands.data() ? "" : " ", operand_text(p, o));
    return text(out, ")", arguments.empty() ? "" : " ", arguments, '\n');
}

/// Plans of one launch for each of many rows would fill the file with equal lines.
template <class F> std::string steps_text(const pipeline &p, const F &arguments) {
    std::string out;
    for (size_t i = 0; i < p.steps.size(); ++i) {
        if (p.steps.size() > 12 && i == 4) {
            out += text("  ... ", p.steps.size() - 8, " more\n");
            i = p.steps.size() - 4;
        }
        out += step_text(p, p.steps[i], arguments(p.steps[i]));
    }
    return out;
}

inline std::string work_text(const pipeline &p) {
    std::string out;
    for (const piece &one : p.work.pieces())
        out += text("  work ", one.name, ' ', one.bytes, " at ", one.offset, " steps ",
                    one.first_step, "..", one.last_step, '\n');
    return out;
}

} // namespace plait::test
