#include "src/cli/case/token.h"

#include "src/cli/case/handle.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>

namespace plait::cases {
namespace {

std::vector<std::string> split(const std::string &text, char at) {
    std::vector<std::string> parts;
    size_t begin = 0;
    for (size_t end; (end = text.find(at, begin)) != std::string::npos; begin = end + 1)
        parts.push_back(text.substr(begin, end - begin));
    parts.push_back(text.substr(begin));
    return parts;
}

bool is_axis(const std::string &field) {
    const size_t digits = field.compare(0, 2, "hv") == 0 ? 2 : 1;
    return field.size() > digits && std::string("bnctkhv").find(field[0]) != std::string::npos &&
           std::isdigit(static_cast<unsigned char>(field[digits]));
}

bool is_flag(const std::string &field) {
    for (const char *name : {"seq", "dya", "adj", "silu", "residual"})
        if (field == name) return true;
    return false;
}

token_axis axis_of(const std::string &field) {
    token_axis axis{field[0], field[0] == 'n', 0, 1, 0, field};
    if (field.compare(0, 2, "hv") == 0) axis.letter = 'w';
    axis.length = std::strtoll(field.c_str() + (axis.letter == 'w' ? 2 : 1), nullptr, 10);
    if (const size_t dot = field.find('.'); dot != std::string::npos)
        axis.factor_order = std::atoi(field.c_str() + dot + 2); // ".h12p2"
    if (axis.transformed && axis.length > 0)
        for (int64_t n = axis.length / axis.factor_order; n > 1; n /= 2) ++axis.log2;
    return axis;
}

/// name { "." dtype | ".s"<stride>{"."<stride>} | ".a"<bytes> } [ "@" name ]
token_role role_of(const std::string &field) {
    token_role role{"", "", 0, "", "", field};
    std::string left = field;
    if (const size_t at = field.find('@'); at != std::string::npos) {
        role.alias = field.substr(at + 1);
        left = field.substr(0, at);
    }
    const std::vector<std::string> parts = split(left, '.');
    role.name = parts[0];
    bool strides = false;
    for (size_t i = 1; i < parts.size(); ++i) {
        const std::string &p = parts[i];
        const bool digits = !p.empty() && std::isdigit(static_cast<unsigned char>(p[0]));
        const bool numbered = p.size() > 1 && std::isdigit(static_cast<unsigned char>(p[1]));
        if (strides && digits) {
            role.strides += "." + p;
            continue;
        }
        strides = p[0] == 's' && numbered;
        if (strides) role.strides = "." + p;
        const bool alignment = p[0] == 'a' && numbered;
        if (alignment) role.alignment = std::atoi(p.c_str() + 1);
        if (!strides && !alignment) role.dtype = p;
    }
    return role;
}

} // namespace

const token_role *token_parts::find(const std::string &role) const {
    for (const token_role &r : roles)
        if (r.name == role) return &r;
    return nullptr;
}

std::string token_parts::option(const std::string &name) const {
    for (const std::string &o : options)
        if (o.compare(0, name.size() + 1, name + "=") == 0) return o.substr(name.size() + 1);
    return "";
}

bool token_parts::flag(const std::string &name) const {
    return std::find(options.begin(), options.end(), name) != options.end();
}

bool token_parts::used(const std::string &role) const {
    return std::find(uses.begin(), uses.end(), role) != uses.end();
}

std::string token_parts::uses_text(const std::function<bool(const std::string &)> &keep) const {
    std::string text;
    for (int role = 0; role < 512; ++role)
        if (const char *name = plait_role_name(static_cast<plait_role>(role)); name && keep(name)) {
            if (used(name)) text += std::string("+") + name;
            if (std::count(drops.begin(), drops.end(), name)) text += std::string("-") + name;
        }
    return text;
}

int64_t token_parts::extent(char letter) const {
    for (const token_axis &a : axes)
        if (a.letter == letter) return a.length;
    return 0;
}

std::pair<int64_t, int64_t> token_parts::two(const std::string &name) const {
    const std::string value = option(name);
    if (value.empty()) return {0, 0};
    const size_t dot = value.find('.');
    return {std::strtoll(value.c_str(), nullptr, 10),
            std::strtoll(value.c_str() + dot + 1, nullptr, 10)};
}

int64_t token_parts::entries() const {
    const std::string value = option("state"); // "lin.5"
    if (value.empty()) return extent('k') - 1;
    return std::strtoll(value.c_str() + value.find('.') + 1, nullptr, 10);
}

int64_t token_parts::value_heads() const {
    for (const token_axis &a : axes)
        if (a.letter == 'w') return a.length;
    return extent('h');
}

int64_t token_parts::transforms() const {
    int64_t count = 1;
    for (const token_axis &a : axes)
        if (!a.transformed) count *= a.length;
    return count;
}

int64_t token_parts::length() const {
    int64_t n = 1;
    for (const token_axis &a : axes)
        if (a.transformed) n *= a.length;
    return n;
}

int token_parts::stages() const {
    if (const std::string bits = option("bits"); !bits.empty()) {
        int count = 0;
        for (uint64_t mask = std::strtoull(bits.c_str(), nullptr, 16); mask; mask &= mask - 1)
            ++count;
        return count;
    }
    int stages = 0;
    for (const token_axis &a : axes) stages += a.log2;
    return stages;
}

int token_parts::factor_orders() const {
    int orders = 0;
    for (const token_axis &a : axes)
        if (a.factor_order > 1) orders += a.factor_order;
    return orders;
}

token_parts split_token(const std::string &canonical) {
    const std::vector<std::string> fields = split(canonical, ':');
    if (fields.size() < 3)
        throw failure(PLAIT_ERR_INVALID_ARGUMENT, "token \"" + canonical + "\" has no shape");
    token_parts parts;
    parts.family = fields[0];
    parts.dtype = fields[1];
    size_t i = 2;
    for (; i < fields.size() && is_axis(fields[i]); ++i) parts.axes.push_back(axis_of(fields[i]));
    for (; i < fields.size(); ++i) {
        const std::string &f = fields[i];
        if (is_flag(f) || f.find('=') != std::string::npos)
            parts.options.push_back(f);
        else if (!f.empty() && (f[0] == '+' || f[0] == '-'))
            for (size_t at = 0, end; at < f.size(); at = end) { // "+bias-dw"
                end = std::min(f.find_first_of("+-", at + 1), f.size());
                (f[at] == '+' ? parts.uses : parts.drops).push_back(f.substr(at + 1, end - at - 1));
            }
        else
            parts.roles.push_back(role_of(f));
    }
    return parts;
}

} // namespace plait::cases
