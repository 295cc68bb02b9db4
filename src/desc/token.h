// The parts of the token parser that all families share. Parsing is lenient: what a token means is
// read first, then descriptor_from_token compares it with the canonical text of the result.
#pragma once

#include "src/core/status.h"
#include "src/desc/desc.h"

#include <string_view>
#include <vector>

namespace plait::impl {

/// A piece of the token, with its place for sentences.
struct token_field {
    size_t at;
    std::string_view text;

    /// The piece from `from` on, at most `count` characters.
    token_field part(size_t from, size_t count = std::string_view::npos) const {
        return {at + from, text.substr(from, count)};
    }
};

/// For sentences: cut when long.
std::string shortened(std::string_view text, size_t limit = 48);

template <class... Parts>
[[noreturn]] void refuse(const token_field &field, const Parts &...parts) {
    fail(PLAIT_ERR_INVALID_ARGUMENT, "plait_desc_from_token: token[", field.at, "]=\"",
         shortened(field.text), "\" ", parts...);
}

/// Never an empty list; fields may be empty.
std::vector<token_field> split_fields(const token_field &field, char separator);

int64_t parse_int(const token_field &field);
uint64_t parse_hex(const token_field &field);
/// "17.4096" of seqs=17.4096
std::pair<int64_t, int64_t> parse_two(const token_field &value);
double parse_number(const token_field &field);
plait_dtype parse_dtype(const token_field &field);
plait_role parse_role_name(const token_field &field);

/// Runs a setter; its sentence gets the place in the token in front.
template <class Setter> void apply(const token_field &field, const Setter &setter) {
    try {
        setter();
    } catch (const failure &problem) {
        std::string_view sentence = problem.what();
        const size_t colon = sentence.find(": "); // the setter's name goes
        refuse(field, "is refused: ", sentence.substr(colon == sentence.npos ? 0 : colon + 2));
    }
}

/// "+signs-bias"
void parse_uses(descriptor &desc, const token_field &field);
/// "y.f32.s8192.1.a4@x". False when the field does not begin with the name of a role.
bool parse_role(descriptor &desc, const token_field &field, std::vector<plait_role> &seen);

/// fields[0] is the family's name.
std::unique_ptr<descriptor> parse_wht(const std::vector<token_field> &fields);
std::unique_ptr<descriptor> parse_conv1d(const std::vector<token_field> &fields);
std::unique_ptr<descriptor> parse_kda(const std::vector<token_field> &fields);

} // namespace plait::impl
