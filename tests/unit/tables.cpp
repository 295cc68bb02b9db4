// Every enumerator of plait.h has its name and its row, found by reading the header.
#include "lib/common/factor_matrices.h"
#include "src/backend/backend.h"
#include "tests/unit/support.h"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

using namespace unit;

namespace {

std::string file_text(const std::string &path) {
    std::ifstream file(path);
    REQUIRE_MESSAGE(file.good(), path);
    std::ostringstream out;
    out << file.rdbuf();
    return out.str();
}

std::string without_comments(const std::string &source) {
    std::string out;
    for (size_t at = 0; at < source.size();) {
        const size_t begin = std::min(source.find("/*", at), source.size());
        out += source.substr(at, begin - at);
        at = begin == source.size() ? begin : source.find("*/", begin) + 2;
    }
    return out;
}

struct enumerator {
    std::string name; ///< without PLAIT_
    int value;
};

/// By the name of the type.
const std::map<std::string, std::vector<enumerator>> &header_enums() {
    static const auto enums = [] {
        std::map<std::string, std::vector<enumerator>> out;
        const std::string header =
            without_comments(file_text(PLAIT_SOURCE_DIR "/include/plait/plait.h"));
        const std::string begin = "typedef enum ";
        for (size_t at = header.find(begin); at != header.npos; at = header.find(begin, at + 1)) {
            const size_t open = header.find('{', at), close = header.find('}', at);
            REQUIRE(close != header.npos);
            std::string type = header.substr(at + begin.size(), open - at - begin.size());
            type.erase(type.find(' ')); // what follows is for C++ compilers
            std::istringstream items(header.substr(open + 1, close - open - 1));
            for (std::string item; std::getline(items, item, ',');) {
                const size_t name = item.find("PLAIT_"), equal = item.find('=');
                REQUIRE(name != item.npos);
                REQUIRE_MESSAGE(equal != item.npos, item, " has no explicit value");
                std::string word = item.substr(name + 6, equal - name - 6);
                word.erase(word.find_last_not_of(" \n") + 1);
                out[type].push_back({word, std::stoi(item.substr(equal + 1))});
            }
        }
        return out;
    }();
    return enums;
}

const std::vector<enumerator> &enumerators(const std::string &type) {
    const auto at = header_enums().find(type);
    REQUIRE_MESSAGE(at != header_enums().end(), type);
    return at->second;
}

std::string lower(std::string word) {
    for (char &c : word) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return word;
}

} // namespace

TEST_CASE("values are never used twice in one enumeration") {
    CHECK(header_enums().size() >= 12);
    for (const auto &entry : header_enums()) {
        INFO(entry.first);
        std::set<int> values;
        for (const enumerator &e : entry.second)
            CHECK_MESSAGE(values.insert(e.value).second, e.name);
    }
}

TEST_CASE("types: names, sizes, the numbers that kernels know") {
    std::set<std::string> names;
    for (const enumerator &e : enumerators("plait_dtype")) {
        INFO(e.name);
        const auto dtype = static_cast<plait_dtype>(e.value);
        const dtype_row *row = find_dtype(dtype);
        REQUIRE(row != nullptr);
        CHECK(row->name == lower(e.name));
        CHECK(dtype_from_name(row->name) == dtype);
        CHECK(&dtype_of(dtype) == row);
        CHECK(names.insert(row->name).second);
        CHECK(e.value < 32); // role_facts::dtypes has a bit for each
        CHECK(scalar_name(static_cast<scalar>(e.value)) == std::string(row->name));
        CHECK(scalar_bits(static_cast<scalar>(e.value)) == row->bits);
        const int parts = row->what == kind::complex ? 2 : 1;
        CHECK(dtype_of(row->real).bits * parts == row->bits);
    }
    int rows = 0;
    for (int value = 0; value < 32; ++value)
        rows += find_dtype(static_cast<plait_dtype>(value)) != nullptr;
    CHECK(rows == static_cast<int>(names.size()));
    CHECK(find_dtype(static_cast<plait_dtype>(31)) == nullptr);
    CHECK(!dtype_from_name("f8"));
    CHECK(!dtype_from_name(""));
    CHECK_THROWS_AS(dtype_of(static_cast<plait_dtype>(31)), failure);
}

TEST_CASE("roles") {
    std::set<std::string> names;
    std::set<int> places;
    for (const enumerator &e : enumerators("plait_role")) {
        const auto role = static_cast<plait_role>(e.value);
        REQUIRE_MESSAGE(role_name(role) != nullptr, e.name);
        CHECK(role_name(role) == lower(e.name));
        CHECK(role_from_name(role_name(role)) == role);
        CHECK(names.insert(role_name(role)).second);
        // The bindings of a backend have a place for each.
        const int place = prepared::bindings::index(role);
        CHECK(place > 0);
        CHECK(place < prepared::bindings::roles);
        CHECK(places.insert(place).second);
    }
    CHECK(role_name(static_cast<plait_role>(0)) == nullptr);
    CHECK(role_name(static_cast<plait_role>(15)) == nullptr);
    CHECK(!role_from_name("sign"));
    CHECK(!role_from_name(""));
}

TEST_CASE("factors: names say the order, which is the order of the matrix") {
    std::set<std::string> names;
    for (const enumerator &e : enumerators("plait_wht_factor")) {
        INFO(e.name);
        const auto factor = static_cast<plait_wht_factor>(e.value);
        const factor_row *row = find_factor(factor);
        REQUIRE(row != nullptr);
        CHECK(names.insert(row->name).second);
        CHECK(row->order == std::stoi(e.name.substr(1)));
        CHECK(row->order == wht_factor_order(static_cast<wht_factor>(e.value)));
        if (row->order == 1) continue;
        CHECK(std::string(row->name).rfind("h" + std::to_string(row->order), 0) == 0);
        CHECK(factor_from_name(row->name) == factor);
        // The parser looks for roles, options and types by name.
        CHECK(!dtype_from_name(row->name));
        CHECK(!role_from_name(row->name));
    }
    CHECK(find_factor(static_cast<plait_wht_factor>(18)) == nullptr);
    CHECK(!factor_from_name("h12"));
    CHECK(!factor_from_name("h1"));
    CHECK(!factor_from_name(""));
}

TEST_CASE("codes, backends, rigors have names") {
    std::set<std::string> names;
    for (const enumerator &e : enumerators("plait_status")) {
        const std::string name = status_name(static_cast<plait_status>(e.value));
        CHECK_MESSAGE(name != "unknown status", e.name);
        CHECK(names.insert(name).second);
    }
    CHECK(status_name(static_cast<plait_status>(15)) == std::string("unknown status"));
    for (const enumerator &e : enumerators("plait_backend")) {
        REQUIRE(backend_name(static_cast<plait_backend>(e.value)) != nullptr);
        CHECK(backend_name(static_cast<plait_backend>(e.value)) == lower(e.name));
    }
    for (const enumerator &e : enumerators("plait_rigor")) {
        REQUIRE(rigor_name(static_cast<plait_rigor>(e.value)) != nullptr);
        CHECK(rigor_name(static_cast<plait_rigor>(e.value)) == lower(e.name));
    }
    CHECK(backend_name(static_cast<plait_backend>(3)) == nullptr);
    CHECK(rigor_name(static_cast<plait_rigor>(5)) == nullptr);
}
