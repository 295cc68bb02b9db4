// The parser reads text from files, command lines and other people's logs: nothing may crash it.
#include "src/desc/problem.h"
#include "tests/unit/support.h"

#include <iterator>
#include <sstream>

using namespace unit;

namespace {

std::vector<std::string> words_of(const std::string &list) {
    std::istringstream in(list);
    return {std::istream_iterator<std::string>(in), {}};
}

std::string mutated(dice &d, std::string token) {
    static const std::string letters = "abcdefghijklmnopqrstuvwxyz0123456789:::...==++--_@@ Z\xff";
    static const std::vector<std::string> words = words_of(
        ": :: :adj :seq :dya :bits= :scale= :bound= +signs -signs +diag :y@x :x.s :y.a .s0 .a4096 "
        ".f64 n0 :n1 :b2 -1 1e308 nan inf .h12s .h40 @ = + 0x 00 -0 9223372036854775807 "
        "18446744073709551615 99999999999999999999999");
    const auto below = [&](size_t n) {
        return static_cast<size_t>(d.between(0, static_cast<int64_t>(n) - 1));
    };
    for (int64_t edits = d.between(1, 5); edits > 0; --edits) {
        const size_t at = below(token.size() + 1);
        const char letter = letters[below(letters.size())];
        switch (d.between(0, 6)) {
        case 0: token.insert(at, 1, letter); break;
        case 1: token.erase(at, below(5)); break;
        case 2: token.replace(at, at < token.size() ? 1 : 0, 1, letter); break;
        case 3: token.insert(at, d.pick(words)); break;
        case 4: token.resize(at); break;
        case 5: token.insert(at, token.substr(below(token.size() + 1), 12)); break;
        default: {
            const std::string &other = d.pick(corpus());
            token = token.substr(0, at) + other.substr(below(other.size()));
        }
        }
    }
    return token;
}

} // namespace

TEST_CASE("random mutations of tokens are parsed or refused, never more") {
    dice d(test_seed() + 1);
    int parsed = 0, lenient = 0, refusals = 0;
    for (int i = 0; i < rounds(30000); ++i) {
        const std::string token = mutated(d, d.pick(corpus()));
        INFO(token);
        try {
            const auto desc = descriptor_from_token(token);
            ++parsed;
            CHECK(desc->token() == token);
            try {
                const problem made = make_problem(*desc);
                CHECK(made.token == token);
            } catch (const failure &problem) {
                CHECK(problem.code() == PLAIT_ERR_INVALID_DESC);
                CHECK(std::string(problem.what()).rfind("plait_desc_check: ", 0) == 0);
            }
        } catch (const failure &problem) {
            ++refusals;
            const std::string sentence = problem.what();
            CHECK(problem.code() == PLAIT_ERR_INVALID_ARGUMENT);
            CHECK(sentence.rfind("plait_desc_from_token: token", 0) == 0);
            const std::string mark = "the canonical form is ";
            const size_t at = sentence.find(mark);
            if (at == std::string::npos) continue;
            ++lenient; // then the answer must be taken
            const std::string canonical = sentence.substr(at + mark.size());
            CHECK(descriptor_from_token(canonical)->token() == canonical);
        }
    }
    // All three ends were reached, or the mutations are no good.
    CHECK(parsed > 100);
    CHECK(lenient > 100);
    CHECK(refusals > 1000);
}
