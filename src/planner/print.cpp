// The texts of plait_plan_print and plait_candidates_print. JSON holds the same fields with exact
// numbers; the text scales bytes by 1000 and times to us, ms or s.
#include "src/core/text.h"
#include "src/planner/json_text.h"
#include "src/planner/planner.h"

#include <algorithm>
#include <charconv>

namespace plait::impl {

namespace {

/// printf would follow the caller's locale.
std::string fixed(double value, int decimals) {
    char digits[400];
    const auto end =
        std::to_chars(digits, digits + sizeof digits, value, std::chars_format::fixed, decimals);
    return {digits, end.ptr};
}

/// "512", "167.8M"
std::string scaled(double value) {
    const char *const unit[] = {"", "k", "M", "G", "T", "P", "E"};
    size_t u = 0;
    while (value >= 1000 && u + 1 < std::size(unit)) {
        value /= 1000;
        ++u;
    }
    return fixed(value, u == 0 ? 0 : 1) + unit[u];
}
std::string scaled(int64_t value) { return scaled(static_cast<double>(value)); }

/// "167.8 MB"
std::string bytes_text(double bytes) {
    std::string s = scaled(bytes);
    const bool has_unit = s.back() > '9';
    const std::string unit = has_unit ? std::string(1, s.back()) : "";
    if (has_unit) s.pop_back();
    return s + " " + unit + "B";
}
std::string bytes_text(int64_t bytes) { return bytes_text(static_cast<double>(bytes)); }

std::string time_text(double seconds) {
    if (seconds < 1e-6) return fixed(seconds * 1e9, 2) + " ns";
    if (seconds < 1e-3) return fixed(seconds * 1e6, 2) + " us";
    if (seconds < 1) return fixed(seconds * 1e3, 2) + " ms";
    return fixed(seconds, 2) + " s";
}

std::string padded(std::string s, size_t width) {
    if (s.size() < width) s.append(width - s.size(), ' ');
    return s;
}

/// Names of the tensors and pieces that a step reads or writes, each once.
std::vector<std::string> names(const pipeline &p, const step &s, bool written) {
    std::vector<std::string> out;
    for (const operand &o : s.operands) {
        if (o.from == operand::source::none || o.written != written) continue;
        const std::string name = o.from == operand::source::role
                                     ? role_name(o.role)
                                     : p.work.pieces()[static_cast<size_t>(o.piece)].name;
        if (std::find(out.begin(), out.end(), name) == out.end()) out.push_back(name);
    }
    return out;
}

std::string joined(const std::vector<std::string> &words) {
    std::string out;
    for (const std::string &word : words) out += (out.empty() ? "" : " ") + word;
    return out;
}

void optional_value(json_text &out, const char *key, const std::optional<double> &value) {
    value ? out.value(key, *value) : out.value(key, nullptr);
}

// ---- plan ------------------------------------------------------------------------------------

void moved_json(json_text &out, const char *key, int64_t bytes,
                const std::vector<std::string> &operands) {
    out.open(key, '{');
    out.value("bytes", bytes);
    out.open("operands", '[');
    for (const std::string &name : operands) out.value(nullptr, name);
    out.close();
    out.close();
}

void choice_json(json_text &out, const choice &c) {
    if (!c.what) return out.value("choice", nullptr);
    out.open("choice", '{');
    out.value("candidate", c.what->name);
    out.value("revision", c.what->revision);
    out.value("seconds_estimated", c.estimate.seconds);
    out.value("seconds_memory", c.estimate.memory_seconds);
    out.value("seconds_compute", c.estimate.compute_seconds);
    out.value("seconds_launch", c.estimate.launch_seconds);
    optional_value(out, "seconds_measured", c.measured);
    out.close();
}

std::string plan_json(const problem &p, const profile &device, plait_rigor rigor, const choice &c) {
    json_text out;
    out.open(nullptr, '{');
    out.value("plan", p.token);
    out.value("device", device.fingerprint());
    out.value("rigor", rigor_name(rigor));
    out.value("source", choice_source_name(c.source));
    choice_json(out, c);
    out.open("steps", '[');
    for (const step &s : c.steps.steps) {
        out.open(nullptr, '{');
        out.value("kernel", s.kernel);
        out.value("variant", s.variant);
        out.value("grid", s.grid);
        out.value("block", s.block);
        out.value("smem", s.smem_bytes);
        if (s.cluster > 1) out.value("cluster", s.cluster);
        if (s.programmatic) out.value("programmatic", true);
        if (s.beside) out.value("beside", true);
        moved_json(out, "read", s.bytes_read, names(c.steps, s, false));
        moved_json(out, "written", s.bytes_written, names(c.steps, s, true));
        out.value("flops", s.flops);
        out.close();
    }
    out.close();
    out.open("work", '{');
    out.value("bytes", c.steps.work.bytes());
    out.open("pieces", '[');
    for (const piece &one : c.steps.work.pieces()) {
        out.open(nullptr, '{');
        out.value("name", one.name);
        out.value("bytes", one.bytes);
        out.value("offset", one.offset);
        out.value("first_step", one.first_step + 1);
        out.value("last_step", one.last_step + 1);
        out.close();
    }
    out.close();
    out.close();
    if (const tensor *reserve = p.find(PLAIT_RESERVE)) {
        out.open("reserve", '{');
        out.value("bytes", reserve->span_bytes());
        out.close();
    }
    out.open("total", '{');
    out.value("read", c.steps.bytes_read());
    out.value("written", c.steps.bytes_written());
    out.value("flops", c.steps.flops());
    out.close();
    out.close();
    return out.text() + '\n';
}

std::string choice_line(const profile &device, const choice &c) {
    if (!c.what) return "choice  none: an extent is 0, there is nothing to run\n";
    const size_t launches = c.steps.steps.size();
    std::string line =
        text("choice  ", c.what->name, "  rev ", c.what->revision, "    est ",
             time_text(c.estimate.seconds), " (",
             bytes_text(c.steps.bytes_read() + c.steps.bytes_written()), " at ",
             bytes_text(device.copy_bandwidth), "/s ", time_text(c.estimate.memory_seconds),
             ", compute ", time_text(c.estimate.compute_seconds), ", ", launches,
             launches == 1 ? " launch " : " launches ", time_text(c.estimate.launch_seconds), ')');
    if (c.measured) line += text("    measured ", time_text(*c.measured));
    return line + '\n';
}

std::string plan_text(const problem &p, const profile &device, plait_rigor rigor, const choice &c) {
    std::string out = text("plan    ", p.token, "\ndevice  ", device.fingerprint(), "     rigor ",
                           rigor_name(rigor), "    source ", choice_source_name(c.source), '\n',
                           choice_line(device, c));
    size_t wide_kernel = 0, wide_variant = 0, wide_read = 0;
    std::vector<std::string> reads;
    for (const step &s : c.steps.steps) {
        reads.push_back(
            text("read ", scaled(s.bytes_read), " (", joined(names(c.steps, s, false)), ')'));
        wide_kernel = std::max(wide_kernel, s.kernel.size());
        wide_variant = std::max(wide_variant, s.variant.size());
        wide_read = std::max(wide_read, reads.back().size());
    }
    for (size_t i = 0; i < c.steps.steps.size(); ++i) {
        const step &s = c.steps.steps[i];
        const std::string number = text(i + 1);
        out += text(number.size() < 2 ? "  " : " ", number, ' ', padded(s.kernel, wide_kernel + 2));
        if (wide_variant > 0) out += padded(s.variant, wide_variant + 2);
        const std::string cluster = s.cluster > 1 ? text("cluster ", s.cluster, "  ") : "";
        const char *const early = s.programmatic ? "programmatic  " : s.beside ? "beside  " : "";
        out += text(padded(text("grid ", s.grid), 15), "  ", padded(text("block ", s.block), 10),
                    "  ", cluster, early, padded(text("smem ", s.smem_bytes), 11), "  ",
                    padded(reads[i], wide_read), "  written ", scaled(s.bytes_written), " (",
                    joined(names(c.steps, s, true)), ")\n");
    }
    out += text("work    ", bytes_text(c.steps.work.bytes()));
    const char *before = ": ";
    for (const piece &one : c.steps.work.pieces()) {
        out += text(before, one.name, ' ', scaled(one.bytes), " [", one.first_step + 1, ',',
                    one.last_step + 1, ']');
        before = "  ";
    }
    if (const tensor *reserve = p.find(PLAIT_RESERVE))
        out += text("    reserve ", bytes_text(reserve->span_bytes()));
    out += text("\ntotal   read ", bytes_text(c.steps.bytes_read()), "   written ",
                bytes_text(c.steps.bytes_written()), "   flops ", scaled(c.steps.flops()), '\n');
    return out;
}

// ---- candidates ------------------------------------------------------------------------------

const char *narrowest_name(narrowest n) {
    switch (n) {
    case narrowest::exact: return "exact";
    case narrowest::f64: return "f64";
    case narrowest::f32: return "f32";
    case narrowest::stored: return "stored";
    case narrowest::tf32: return "tf32";
    }
    return "?";
}

std::string candidates_json(const problem &p, const profile &device,
                            const std::vector<ranked> &rows) {
    json_text out;
    out.open(nullptr, '{');
    out.value("problem", p.token);
    out.value("device", device.fingerprint());
    out.open("candidates", '[');
    for (const ranked &r : rows) {
        const bool ok = r.refusal.empty();
        out.open(nullptr, '{');
        out.value("candidate", r.what->name);
        out.value("revision", r.what->revision);
        out.value("backend", backend_name(r.what->backend));
        out.value("narrowest", narrowest_name(r.what->operands));
        out.value("verdict", !ok ? "no" : &r == rows.data() ? "chosen" : "ok");
        out.value("reason", r.refusal);
        ok ? out.value("seconds_estimated", r.estimate.seconds)
           : out.value("seconds_estimated", nullptr);
        optional_value(out, "seconds_wisdom", r.measured);
        optional_value(out, "seconds_generic", r.generic);
        ok ? out.value("work", r.work_bytes) : out.value("work", nullptr);
        out.close();
    }
    out.close();
    out.close();
    return out.text() + '\n';
}

std::string candidates_text(const problem &p, const profile &device,
                            const std::vector<ranked> &rows) {
    std::string out = text("candidates for ", p.token, " on ", device.fingerprint(), '\n');
    size_t wide = 0;
    for (const ranked &r : rows) wide = std::max(wide, std::string_view(r.what->name).size());
    bool first = true;
    for (const ranked &r : rows) {
        out += text("  ", padded(r.what->name, wide + 2));
        if (r.refusal.empty()) {
            const std::string known = r.measured  ? text("wisdom ", time_text(*r.measured))
                                      : r.generic ? text("generic ", time_text(*r.generic))
                                                  : "-";
            out +=
                text("ok   ", padded(text("est ", time_text(r.estimate.seconds)), 16),
                     padded(known, 19), "work ", r.work_bytes, first ? "   <- chosen" : "", '\n');
        } else {
            out += text("no   ", r.refusal, '\n');
        }
        first = false;
    }
    return out;
}

} // namespace

const char *choice_source_name(choice_source source) {
    switch (source) {
    case choice_source::estimate: return "cost-model";
    case choice_source::wisdom: return "wisdom";
    case choice_source::generic: return "generic-wisdom";
    case choice_source::measured: return "measured";
    case choice_source::empty: return "empty";
    }
    return "?";
}

std::string print_plan(const problem &p, const profile &device, plait_rigor rigor, const choice &c,
                       plait_format format) {
    if (format == PLAIT_JSON) return plan_json(p, device, rigor, c);
    return plan_text(p, device, rigor, c);
}

std::string print_candidates(const problem &p, const profile &device,
                             const std::vector<ranked> &rows, plait_format format) {
    if (format == PLAIT_JSON) return candidates_json(p, device, rows);
    return candidates_text(p, device, rows);
}

} // namespace plait::impl
