#include "src/desc/token.h"

#include <algorithm>
#include <charconv>

namespace plait::impl {

namespace {

/// More than the longest canonical token; keeps nonsense short.
constexpr size_t max_token = 4096;

bool token_character(char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
           std::string_view(":.=+-_@").find(c) != std::string_view::npos;
}

bool all_digits(std::string_view text) {
    return !text.empty() &&
           std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

template <class Number, class... Format>
Number parse_whole(const token_field &field, const char *what, Format... format) {
    Number value{};
    const char *end = field.text.data() + field.text.size();
    const auto [stop, error] = std::from_chars(field.text.data(), end, value, format...);
    if (error == std::errc::result_out_of_range && stop == end)
        refuse(field, "is beyond the range of ", what);
    if (error != std::errc() || stop != end) refuse(field, "is no ", what);
    return value;
}

void parse_suffixes(descriptor &desc, plait_role role, const token_field &field) {
    const std::vector<token_field> parts = split_fields(field, '.');
    bool has_dtype = false, has_strides = false, has_alignment = false;
    const auto once = [](bool &flag, const token_field &part, const char *what) {
        if (flag) refuse(part, "is a second ", what, " for one role");
        flag = true;
    };
    for (size_t i = 0; i < parts.size(); ++i) {
        const token_field &part = parts[i];
        const bool letter_and_number =
            part.text.size() > 1 && part.text[1] >= '0' && part.text[1] <= '9';
        if (letter_and_number && part.text[0] == 's') {
            once(has_strides, part, "list of strides");
            std::vector<int64_t> strides{parse_int(part.part(1))};
            while (i + 1 < parts.size() && all_digits(parts[i + 1].text))
                strides.push_back(parse_int(parts[++i]));
            apply(part, [&] {
                desc.set_strides(role, static_cast<int>(strides.size()), strides.data());
            });
        } else if (letter_and_number && part.text[0] == 'a') {
            once(has_alignment, part, "alignment");
            const int64_t bytes = parse_int(part.part(1));
            apply(part, [&] { desc.set_alignment(role, bytes); });
        } else if (dtype_from_name(part.text)) {
            once(has_dtype, part, "type");
            apply(part, [&] { desc.set_dtype(role, *dtype_from_name(part.text)); });
        } else {
            refuse(part, "is no type, no strides (s8.1) and no alignment (a4) of role ",
                   role_name(role));
        }
    }
}

} // namespace

std::string shortened(std::string_view text, size_t limit) {
    if (text.size() <= limit) return std::string(text);
    return std::string(text.substr(0, limit - 3)) + "...";
}

std::vector<token_field> split_fields(const token_field &field, char separator) {
    std::vector<token_field> out;
    size_t from = 0;
    for (;;) {
        const size_t end = field.text.find(separator, from);
        if (end == std::string_view::npos) break;
        out.push_back(field.part(from, end - from));
        from = end + 1;
    }
    out.push_back(field.part(from));
    return out;
}

int64_t parse_int(const token_field &field) {
    return parse_whole<int64_t>(field, "64-bit integer");
}

uint64_t parse_hex(const token_field &field) {
    return parse_whole<uint64_t>(field, "64-bit hexadecimal number", 16);
}

std::pair<int64_t, int64_t> parse_two(const token_field &value) {
    const std::vector<token_field> parts = split_fields(value, '.');
    if (parts.size() != 2) refuse(value, "is not two numbers with a dot between them");
    return {parse_int(parts[0]), parse_int(parts[1])};
}

double parse_number(const token_field &field) {
    return parse_whole<double>(field, "double precision number");
}

plait_dtype parse_dtype(const token_field &field) {
    if (const auto dtype = dtype_from_name(field.text)) return *dtype;
    refuse(field, "is no type; types: ", dtype_names());
}

plait_role parse_role_name(const token_field &field) {
    if (const auto role = role_from_name(field.text)) return *role;
    refuse(field, "is no role: the names of plait_role in lower case, x, state_in");
}

void parse_uses(descriptor &desc, const token_field &field) {
    std::vector<plait_role> seen;
    for (size_t at = 0; at < field.text.size();) {
        const size_t next = std::min(field.text.find_first_of("+-", at + 1), field.text.size());
        const token_field name = field.part(at + 1, next - at - 1);
        const plait_role role = parse_role_name(name);
        if (std::find(seen.begin(), seen.end(), role) != seen.end())
            refuse(name, "is turned on or off twice");
        seen.push_back(role);
        apply(name, [&] { desc.use(role, field.text[at] == '+'); });
        at = next;
    }
}

bool parse_role(descriptor &desc, const token_field &field, std::vector<plait_role> &seen) {
    const size_t name_end = std::min(field.text.find_first_of(".@"), field.text.size());
    const auto role = role_from_name(field.text.substr(0, name_end));
    if (!role) return false;
    if (std::find(seen.begin(), seen.end(), *role) != seen.end())
        refuse(field, "is a second field for one role");
    seen.push_back(*role);
    if (name_end == field.text.size())
        refuse(field, "says nothing: a role is followed by a type, strides, an alignment or @");

    const size_t at_sign = std::min(field.text.find('@'), field.text.size());
    if (field.text[name_end] == '.')
        parse_suffixes(desc, *role, field.part(name_end + 1, at_sign - name_end - 1));
    if (at_sign < field.text.size()) {
        const token_field other = field.part(at_sign + 1);
        const plait_role in = parse_role_name(other);
        apply(field, [&] { desc.set_alias(*role, in); });
    }
    return true;
}

std::unique_ptr<descriptor> descriptor_from_token(std::string_view token) {
    const token_field whole{0, token};
    if (token.empty())
        fail(PLAIT_ERR_INVALID_ARGUMENT, "plait_desc_from_token: token=\"\" is empty");
    if (token.size() > max_token)
        fail(PLAIT_ERR_INVALID_ARGUMENT, "plait_desc_from_token: token has ", token.size(),
             " characters, more than ", max_token);
    for (size_t i = 0; i < token.size(); ++i)
        if (!token_character(token[i]))
            fail(PLAIT_ERR_INVALID_ARGUMENT, "plait_desc_from_token: token[", i, "]=0x",
                 hex(static_cast<unsigned char>(token[i])),
                 " is none of the characters a-z 0-9 : . = + - _ @");
    const std::vector<token_field> fields = split_fields(whole, ':');
    for (const token_field &field : fields)
        if (field.text.empty()) refuse(field, "is an empty field between two ':' or at an end");

    const bool kda = fields[0].text == "kda.fwd" || fields[0].text == "kda.bwd";
    std::unique_ptr<descriptor> desc = fields[0].text == "wht" ? parse_wht(fields)
                                       : kda                   ? parse_kda(fields)
                                                               : parse_conv1d(fields);
    const std::string canonical = desc->token();
    if (canonical != token)
        fail(PLAIT_ERR_INVALID_ARGUMENT, "plait_desc_from_token: token=\"", shortened(token, 160),
             "\" is not canonical; the canonical form is ", canonical);
    return desc;
}

} // namespace plait::impl
