// The texts of plait_plan_print and plait_candidates_print. JSON holds the same fields with exact
// numbers; the text scales bytes by 1000 and times to us, ms or s.
#include "src/core/text.h"
#include "src/planner/planner.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

namespace plait::impl {

namespace {

using json = nlohmann::ordered_json; // fields in the order of the text

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

json optional_json(const std::optional<double> &value) { return value ? json(*value) : json(); }

// ---- plan ------------------------------------------------------------------------------------

json plan_json(const problem &p, const profile &device, plait_rigor rigor, const choice &c) {
    json out;
    out["plan"] = p.token;
    out["device"] = device.fingerprint();
    out["rigor"] = rigor_name(rigor);
    out["source"] = choice_source_name(c.source);
    json &choice = out["choice"];
    if (c.what) {
        choice["candidate"] = c.what->name;
        choice["revision"] = c.what->revision;
        choice["seconds_estimated"] = c.estimate.seconds;
        choice["seconds_memory"] = c.estimate.memory_seconds;
        choice["seconds_compute"] = c.estimate.compute_seconds;
        choice["seconds_launch"] = c.estimate.launch_seconds;
        choice["seconds_measured"] = optional_json(c.measured);
    }
    json &steps = out["steps"] = json::array();
    for (const step &s : c.steps.steps) {
        json row;
        row["kernel"] = s.kernel;
        row["variant"] = s.variant;
        row["grid"] = s.grid;
        row["block"] = s.block;
        row["smem"] = s.smem_bytes;
        if (s.cluster > 1) row["cluster"] = s.cluster;
        row["read"] = {{"bytes", s.bytes_read}, {"operands", names(c.steps, s, false)}};
        row["written"] = {{"bytes", s.bytes_written}, {"operands", names(c.steps, s, true)}};
        row["flops"] = s.flops;
        steps.push_back(std::move(row));
    }
    json &work = out["work"];
    work["bytes"] = c.steps.work.bytes();
    json &pieces = work["pieces"] = json::array();
    for (const piece &one : c.steps.work.pieces())
        pieces.push_back({{"name", one.name},
                          {"bytes", one.bytes},
                          {"offset", one.offset},
                          {"first_step", one.first_step + 1},
                          {"last_step", one.last_step + 1}});
    out["total"] = {{"read", c.steps.bytes_read()},
                    {"written", c.steps.bytes_written()},
                    {"flops", c.steps.flops()}};
    return out;
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
        out += text(padded(text("grid ", s.grid), 15), "  ", padded(text("block ", s.block), 10),
                    "  ", cluster, padded(text("smem ", s.smem_bytes), 11), "  ",
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
    }
    return "?";
}

json candidates_json(const problem &p, const profile &device, const std::vector<ranked> &rows) {
    json out;
    out["problem"] = p.token;
    out["device"] = device.fingerprint();
    json &list = out["candidates"] = json::array();
    for (const ranked &r : rows) {
        json row;
        row["candidate"] = r.what->name;
        row["revision"] = r.what->revision;
        row["backend"] = backend_name(r.what->backend);
        row["narrowest"] = narrowest_name(r.what->operands);
        const bool ok = r.refusal.empty();
        row["verdict"] = !ok ? "no" : list.empty() ? "chosen" : "ok";
        row["reason"] = r.refusal;
        row["seconds_estimated"] = ok ? json(r.estimate.seconds) : json();
        row["seconds_wisdom"] = optional_json(r.measured);
        row["work"] = ok ? json(r.work_bytes) : json();
        list.push_back(std::move(row));
    }
    return out;
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
            const std::string known = r.measured ? text("wisdom ", time_text(*r.measured)) : "-";
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
    case choice_source::measured: return "measured";
    case choice_source::empty: return "empty";
    }
    return "?";
}

std::string print_plan(const problem &p, const profile &device, plait_rigor rigor, const choice &c,
                       plait_format format) {
    if (format == PLAIT_JSON) return plan_json(p, device, rigor, c).dump(2) + '\n';
    return plan_text(p, device, rigor, c);
}

std::string print_candidates(const problem &p, const profile &device,
                             const std::vector<ranked> &rows, plait_format format) {
    if (format == PLAIT_JSON) return candidates_json(p, device, rows).dump(2) + '\n';
    return candidates_text(p, device, rows);
}

} // namespace plait::impl
