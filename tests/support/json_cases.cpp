#include "tests/support/json_cases.h"

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <functional>

namespace plait::test {
namespace {

using nlohmann::json;

struct number {
    long double real = 0;
    int64_t whole = 0;
};

number number_of(const json &j) {
    if (j.is_string()) {
        const std::string s = j;
        if (s == "nan") return {std::nanl(""), 0};
        if (s == "inf") return {HUGE_VALL, 0};
        if (s == "-inf") return {-HUGE_VALL, 0};
        const int64_t v = std::strtoll(s.c_str(), nullptr, 10);
        return {static_cast<long double>(v), v};
    }
    if (j.is_number_integer()) {
        const auto v = j.get<int64_t>();
        return {static_cast<long double>(v), v};
    }
    const double d = j;
    const bool whole = std::fabs(d) < 0x1p62 && d == std::floor(d);
    return {d, whole ? static_cast<int64_t>(d) : 0};
}

int64_t integer_of(const json &j) { return number_of(j).whole; }

/// Element `index` of a generated input or of a rule for the output. `rows`, `n`: of the case.
std::function<number(int64_t)> generator(const json &g, int64_t rows, int64_t n) {
    const std::string kind = g.contains("gen") ? g.at("gen") : g.at("rule");
    const auto whole = [](int64_t v) { return number{static_cast<long double>(v), v}; };
    if (kind == "impulse") {
        const int64_t at = integer_of(g.at("index")), value = integer_of(g.at("value"));
        return [=](int64_t i) { return whole(i == at ? value : 0); };
    }
    if (kind == "ramp") return whole;
    if (kind == "const") {
        const int64_t value = integer_of(g.at("value"));
        return [=](int64_t) { return whole(value); };
    }
    if (kind == "const_except_last") {
        const int64_t value = integer_of(g.at("value")), last = integer_of(g.at("last"));
        return [=](int64_t i) { return whole(i == n - 1 ? last : value); };
    }
    if (kind == "last_row") {
        const std::vector<int64_t> row = g.at("row");
        return [=](int64_t i) {
            return whole(i >= (rows - 1) * n ? row[static_cast<size_t>(i % n)] : 0);
        };
    }
    if (kind == "parity") {
        const int64_t index = integer_of(g.at("index")), value = integer_of(g.at("value"));
        return [=](int64_t k) { return whole(value * hadamard_sign(k, index)); };
    }
    if (kind == "points_else_zero") {
        std::map<int64_t, int64_t> points;
        for (const auto &[k, v] : g.at("points").items()) points[std::stoll(k)] = integer_of(v);
        return [=](int64_t k) {
            const auto p = points.find(k);
            return whole(p == points.end() ? 0 : p->second);
        };
    }
    if (kind == "ones_last_minus") {
        const int64_t y0 = integer_of(g.at("y0"));
        return [=](int64_t k) { return whole(k == 0 ? y0 : -2 * hadamard_sign(k, ~int64_t{0})); };
    }
    throw std::invalid_argument("unknown generator " + kind);
}

void put(plait_dtype part, bytes &image, int64_t i, const number &v) {
    if (is_integer(part))
        store_integer(part, image.data(), i, v.whole);
    else
        store(part, image.data(), i, v.real);
}

bytes image_of(const json &j, plait_dtype type, const wht_call &call) {
    const plait_dtype part = real_of(type);
    bytes image;
    if (j.is_array()) {
        image.resize(j.size() * static_cast<size_t>(bytes_of(part)));
        for (size_t i = 0; i < j.size(); ++i)
            put(part, image, static_cast<int64_t>(i), number_of(j[i]));
        return image;
    }
    const int64_t n = call.extents.back(), rows = call.elements() / n;
    const auto at = generator(j, rows, n);
    image.resize(static_cast<size_t>(call.elements() * bytes_of(type)));
    for (int64_t i = 0; i < call.elements(); ++i) put(part, image, i, at(i));
    return image;
}

plait_wht_factor factor_named(const std::string &name) {
    for (int f = PLAIT_H1; f <= PLAIT_H172_WILLIAMSON; ++f)
        if (name == factor_name(static_cast<plait_wht_factor>(f)))
            return static_cast<plait_wht_factor>(f);
    throw std::invalid_argument("factor " + name + " is not in this version");
}

std::optional<std::vector<int64_t>> strides_of(const json &j, const char *key) {
    if (!j.contains(key)) return std::nullopt;
    return j.at(key).get<std::vector<int64_t>>();
}

std::ifstream opened(const std::string &name) {
    std::vector<std::string> folders;
    if (const char *given = std::getenv("PLAIT_TEST_CASES")) folders.push_back(given);
    folders.insert(folders.end(), {PLAIT_TEST_CASES, "tests/cases"});
    for (const std::string &folder : folders)
        if (std::ifstream file(folder + "/" + name); file) return file;
    throw std::runtime_error(name + " not found; set PLAIT_TEST_CASES to its folder");
}

} // namespace

std::vector<plait_dtype> json_case::dtypes() const {
    std::vector<plait_dtype> all;
    const json names =
        text.value("dtypes", json::array({"i32", "i64", "f16", "bf16", "f32", "f64"}));
    for (const std::string n : names) all.push_back(dtype_named(n));
    return all;
}

wht_call json_case::call(plait_dtype x) const {
    wht_call c;
    c.x = x;
    if (text.contains("y_dtype")) c.y = dtype_named(text.at("y_dtype"));
    c.extents = text.at("extents").get<std::vector<int64_t>>();
    if (text.contains("axes")) {
        uint32_t axes = 0;
        for (const int a : text.at("axes")) axes |= 1u << a;
        c.axes = axes;
    }
    if (text.contains("bits")) c.bits = text.at("bits").get<uint64_t>();
    if (text.contains("factor"))
        c.factor = {{text.value("factor_axis", c.rank() - 1), factor_named(text.at("factor"))}};
    const std::string order = text.value("order", "natural");
    c.order = order == "sequency" ? PLAIT_SEQUENCY
              : order == "dyadic" ? PLAIT_DYADIC
                                  : PLAIT_NATURAL;
    c.adjoint = text.value("adjoint", false);
    if (text.contains("scale")) c.scale = static_cast<double>(number_of(text.at("scale")).real);
    c.x_strides = strides_of(text, "x_strides");
    c.y_strides = strides_of(text, "y_strides");
    c.signs_strides = strides_of(text, "signs_strides");
    c.diag_strides = strides_of(text, "diag_strides");
    c.signs = text.contains("signs");
    c.overflow = text.contains("overflow");
    c.alias = text.value("alias", false);
    if (text.contains("diag")) c.diag = text.value("diag_complex", false) ? x : real_of(x);
    c.x_offset = text.value("x_offset", 0);
    c.y_offset = text.value("y_offset", 0);
    return c;
}

case_instance json_case::instance(plait_dtype x) const {
    case_instance c;
    c.call = call(x);
    c.one_buffer = text.value("one_buffer", false);
    const plait_dtype y = c.call.y_type();
    c.x_buffer = image_of(text.at("input"), x, c.call);
    c.y_after = image_of(text.at("expected"), y, c.call);
    if (c.one_buffer) {
        c.y_before = c.x_buffer;
    } else {
        c.y_before.assign(c.y_after.size(), static_cast<std::byte>(poison_of(y)));
        if (text.contains("out_fill"))
            for (size_t i = 0; i < c.y_before.size() / static_cast<size_t>(bytes_of(real_of(y)));
                 ++i)
                put(real_of(y), c.y_before, static_cast<int64_t>(i),
                    number_of(text.at("out_fill")));
    }
    if (c.call.signs) c.signs = text.at("signs").get<std::vector<uint8_t>>();
    if (c.call.diag) c.diag = image_of(text.at("diag"), *c.call.diag, c.call);
    if (c.call.overflow) c.overflow = text.at("overflow").get<int>();
    if (text.contains("rel_tol")) c.rel_tol = text.at("rel_tol").at(name_of(x)).get<double>();
    return c;
}

const std::vector<json_case> &wht_cases() {
    static const std::vector<json_case> all = [] {
        std::ifstream file = opened("wht.json");
        const json whole = json::parse(file);
        std::vector<json_case> cases;
        for (const json &j : whole.at("cases")) cases.push_back({j});
        return cases;
    }();
    return all;
}

std::vector<std::string> user_tokens() {
    std::ifstream file = opened("wht_users.txt");
    std::vector<std::string> tokens;
    for (std::string line; std::getline(file, line);)
        if (!line.empty() && line[0] != '#') tokens.push_back(line);
    return tokens;
}

} // namespace plait::test
