// JSON parses and holds the numbers of the text.
#include "src/core/text.h"
#include "src/planner/text_lines.h"
#include "tests/planner/support.h"

#include <nlohmann/json.hpp>

namespace plait::test {

namespace {

using nlohmann::json;

/// "16.8M" covers what rounds to it.
void check_scaled(const std::string &shown, int64_t exact) {
    static const std::string units = "kMGTPE";
    double factor = 1;
    std::string digits = shown;
    const size_t unit = units.find(shown.back());
    if (unit != std::string::npos) {
        for (size_t i = 0; i <= unit; ++i) factor *= 1000;
        digits.pop_back();
    }
    double value = 0;
    REQUIRE(number_from(std::string_view(digits), value));
    INFO(shown << " for " << exact);
    const double slack = factor == 1 ? 0 : 0.0501 * factor;
    CHECK(std::abs(value * factor - static_cast<double>(exact)) <= slack);
}

std::vector<std::string> words(const std::string &line) {
    std::vector<std::string> out;
    for (const std::string_view word : split(line, ' '))
        if (!word.empty()) out.emplace_back(word);
    return out;
}

/// The word behind a label.
std::string after(const std::string &line, const std::string &label) {
    const size_t at = line.find(label);
    REQUIRE(at != std::string::npos);
    return words(line.substr(at + label.size())).front();
}

void check_plan(const std::string &shown, const json &j) {
    const std::vector<std::string_view> lines = split(shown, '\n');
    REQUIRE(lines.size() >= 5);
    CHECK(lines[0] == text("plan    ", j["plan"].get<std::string>()));
    CHECK(contains(std::string(lines[1]), text("device  ", j["device"].get<std::string>(), ' ')));
    CHECK(contains(std::string(lines[1]), text("rigor ", j["rigor"].get<std::string>(), ' ')));
    CHECK(contains(std::string(lines[1]), text("source ", j["source"].get<std::string>())));
    if (!j["choice"].is_null()) {
        CHECK(contains(std::string(lines[2]),
                       text("choice  ", j["choice"]["candidate"].get<std::string>(), "  rev ",
                            j["choice"]["revision"].get<int>(), ' ')));
        CHECK(j["choice"]["seconds_estimated"].get<double>() > 0);
    }
    int64_t read = 0, written = 0, flops = 0;
    for (size_t i = 0; i < j["steps"].size(); ++i) {
        const json &s = j["steps"][i];
        const std::string line(lines[3 + i]);
        INFO(line);
        const std::vector<std::string> before = words(line.substr(0, line.find(" grid ")));
        REQUIRE(before.size() >= 2);
        CHECK(before[0] == std::to_string(i + 1));
        CHECK(before[1] == s["kernel"].get<std::string>());
        CHECK((before.size() > 2 ? before[2] : "") == s["variant"].get<std::string>());
        CHECK(after(line, " grid ") == std::to_string(s["grid"].get<int64_t>()));
        CHECK(after(line, " block ") == std::to_string(s["block"].get<int>()));
        CHECK(after(line, " smem ") == std::to_string(s["smem"].get<int>()));
        for (const char *way : {"read", "written"}) {
            check_scaled(after(line, text(' ', way, ' ')), s[way]["bytes"].get<int64_t>());
            std::string names = "(";
            for (const json &name : s[way]["operands"])
                names += (names.size() > 1 ? " " : "") + name.get<std::string>();
            const size_t open = line.find('(', line.find(text(' ', way, ' ')));
            CHECK(line.substr(open, names.size() + 1) == names + ")");
        }
        read += s["read"]["bytes"].get<int64_t>();
        written += s["written"]["bytes"].get<int64_t>();
        flops += s["flops"].get<int64_t>();
    }
    CHECK(j["total"]["read"] == read);
    CHECK(j["total"]["written"] == written);
    CHECK(j["total"]["flops"] == flops);
    const std::string work(lines[3 + j["steps"].size()]);
    CHECK(contains(work, "work    "));
    int64_t end = 0;
    for (const json &piece : j["work"]["pieces"]) {
        CHECK(contains(work, piece["name"].get<std::string>() + " "));
        CHECK(contains(work, text('[', piece["first_step"].get<int>(), ',',
                                  piece["last_step"].get<int>(), ']')));
        end = std::max(end, piece["offset"].get<int64_t>() + piece["bytes"].get<int64_t>());
    }
    CHECK(j["work"]["bytes"] == end);
    CHECK(contains(std::string(lines[4 + j["steps"].size()]), "total   read "));
}

} // namespace

TEST_CASE("printed plans: text and JSON say the same") {
    wisdom none;
    for (const named_profile &device : profiles())
        for (const std::string &token : corpus()) {
            INFO(token << " on " << device.name);
            const problem p = problem_of(token);
            const std::vector<ranked> rows = rank(p, device.facts, {}, none);
            if (!p.empty && !rows.front().refusal.empty()) continue;
            const choice c = choose(p, device.facts, {}, none, nullptr);
            check_plan(print_plan(p, device.facts, PLAIT_ESTIMATE, c, PLAIT_TEXT),
                       json::parse(print_plan(p, device.facts, PLAIT_ESTIMATE, c, PLAIT_JSON)));
        }
}

TEST_CASE("printed candidates: text and JSON say the same") {
    wisdom known;
    for (const named_profile &device : profiles())
        for (const std::string &token : corpus()) {
            INFO(token << " on " << device.name);
            const problem p = problem_of(token);
            known.clear();
            known.record(token, device.facts.fingerprint(), candidate_named("wht.cpu.ref"), 1.5);
            const std::vector<ranked> rows = rank(p, device.facts, {}, known);
            const std::string shown = print_candidates(p, device.facts, rows, PLAIT_TEXT);
            const std::vector<std::string_view> lines = split(shown, '\n');
            const json j = json::parse(print_candidates(p, device.facts, rows, PLAIT_JSON));
            CHECK(lines[0] == text("candidates for ", token, " on ", device.facts.fingerprint()));
            CHECK(j["problem"] == token);
            REQUIRE(j["candidates"].size() == rows.size());
            REQUIRE(lines.size() == rows.size() + 2);
            for (size_t i = 0; i < rows.size(); ++i) {
                const json &row = j["candidates"][i];
                const std::string line(lines[i + 1]);
                INFO(line);
                CHECK(contains(line, "  " + row["candidate"].get<std::string>() + " "));
                if (rows[i].refusal.empty()) {
                    CHECK(row["verdict"] == (i == 0 ? "chosen" : "ok"));
                    CHECK(contains(line, " ok   est "));
                    CHECK(contains(line, "<- chosen") == (i == 0));
                    CHECK(contains(line, text("work ", row["work"].get<int64_t>())));
                    CHECK(row["seconds_wisdom"].is_null() == !rows[i].measured.has_value());
                    CHECK(contains(line, "wisdom 1.50 s") == rows[i].measured.has_value());
                } else {
                    CHECK(row["verdict"] == "no");
                    CHECK(contains(line, " no   " + row["reason"].get<std::string>()));
                    CHECK_FALSE(row["reason"].get<std::string>().empty());
                }
            }
        }
}

} // namespace plait::test
