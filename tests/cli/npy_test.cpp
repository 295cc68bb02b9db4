// .npy headers: what NumPy writes is read, what is broken gets its own sentence.
#include "src/cli/case/handle.h"
#include "src/cli/case/npy.h"
#include "tests/cli/program.h"

using namespace cli_test;
using plait::cases::failure;
using plait::cases::npy_reader;
using plait::cases::npy_writer;

namespace {

std::string npy(int version, const std::string &dict, const std::string &data) {
    std::string text = "\x93NUMPY";
    text += static_cast<char>(version);
    text += '\0';
    const size_t n = dict.size();
    for (int i = 0; i < (version == 1 ? 2 : 4); ++i) text += static_cast<char>(n >> (8 * i));
    return text + dict + data;
}

std::string refusal(const std::string &bytes) {
    write_file("case.npy", bytes);
    try {
        npy_reader reader(scratch("case.npy"));
    } catch (const failure &f) {
        CHECK(f.status == PLAIT_ERR_IO);
        return f.what();
    }
    return "";
}

} // namespace

TEST_CASE("headers that NumPy writes") {
    struct header_case {
        int version;
        const char *dict;
        const char *type;
        std::vector<int64_t> shape;
        size_t bytes;
    };
    const std::vector<header_case> good = {
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }  \n", "f4", {2, 3}, 24},
        {2, "{'descr': '<f8', 'fortran_order': False, 'shape': (5,), }\n", "f8", {5}, 40},
        {3, "{'descr': '<c16', 'fortran_order': False, 'shape': (), }\n", "c16", {}, 16},
        {1, "{'shape': (0, 7), 'fortran_order': False, 'descr': '|u1'}", "u1", {0, 7}, 0},
        {1, "{\"descr\": \"<i8\", \"fortran_order\": False, \"shape\": (3L,)}", "i8", {3}, 24},
        // One axis has one order, and so has one axis of more than one element.
        {1, "{'descr': '<f4', 'fortran_order': True, 'shape': (1, 6), }\n", "f4", {1, 6}, 24},
        {1, "{'descr': '<f4', 'fortran_order': True, 'shape': (6, 1), }\n", "f4", {6, 1}, 24},
        {1, "{'descr': '<f4', 'fortran_order': True, 'shape': (0, 7), }\n", "f4", {0, 7}, 0},
        {1, "{'descr': '<i4', 'fortran_order': True, 'shape': (3,), }\n", "i4", {3}, 12},
    };
    for (const header_case &c : good) {
        INFO(c.dict);
        write_file("case.npy", npy(c.version, c.dict, std::string(c.bytes, 'x')));
        const npy_reader reader(scratch("case.npy"));
        CHECK(reader.type.text() == c.type);
        CHECK(reader.shape == c.shape);
    }
}

TEST_CASE("broken and foreign files") {
    const std::string dict = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n";
    CHECK(refusal(npy(1, dict, "12345678")).empty());
    CHECK(contains(refusal(""), "is not a .npy file"));
    CHECK(contains(refusal("PK\3\4 an archive"), "is not a .npy file"));
    CHECK(contains(refusal(npy(4, dict, "12345678")), "version 4"));
    CHECK(contains(refusal(npy(1, dict, "1234567")), "needs 8 bytes of data, it has 7"));
    CHECK(contains(refusal(npy(1, dict, "123456789")), "needs 8 bytes of data, it has 9"));
    CHECK(contains(refusal(npy(1, dict, "").substr(0, 30)), "header is cut off"));
    CHECK(contains(refusal(npy(2, dict, "").substr(0, 11)), "header is cut off"));
    std::string longer = npy(2, dict, "12345678");
    longer[11] = '\x7f';
    CHECK(contains(refusal(longer), "impossible length"));
    const auto with = [&](const std::string &descr, const std::string &order,
                          const std::string &shape) {
        return refusal(npy(
            1, "{'descr': " + descr + ", 'fortran_order': " + order + ", 'shape': " + shape + "}",
            "12345678"));
    };
    CHECK(with("'<f4'", "False", "(2,)").empty());
    CHECK(contains(with("'>f4'", "False", "(2,)"), "big endian"));
    CHECK(contains(with("'<f4'", "True", "(2, 1, 2)"), "Fortran order"));
    CHECK(contains(with("[('a', '<f4')]", "False", "(2,)"), "structured"));
    CHECK(contains(with("'<U4'", "False", "(2,)"), "<U4"));
    CHECK(contains(with("'<f'", "False", "(2,)"), "not read"));
    CHECK(contains(with("'<f4'", "Maybe", "(2,)"), "cannot be read"));
    CHECK(contains(with("'<f4'", "False", "(2, -1)"), "has the negative extent -1"));
    CHECK(contains(with("'<f4'", "False", "(2"), "cannot be read"));
    CHECK(with("'<f4'", "False", "(1, 2)").empty());
    CHECK(with("'<f4'", "False", "(1, 2,)").empty());
    for (const char *shape : {"(1 2,)", "(,2)", "(1,,2)", "(2)", "(- ,)"})
        CHECK(contains(with("'<f4'", "False", shape), "cannot be read"));
    CHECK(contains(with("'<f4'", "False", "(2,)} 7 {"), "behind its header"));
    CHECK(contains(with("'<f4'", "False 'x'", "(2,)"), "cannot be read"));
    CHECK(contains(refusal(npy(1, dict + "}", "12345678")), "behind its header's closing brace"));
    for (const char *again : {"'shape': (2,)", "'descr': '<f4'", "'fortran_order': False"})
        CHECK(contains(refusal(npy(1, dict.substr(0, dict.size() - 2) + again + "}", "12345678")),
                       "twice"));
    CHECK(contains(with("'<f4'", "False", "(99999999999999999, 99999999)"), "no memory holds"));
    CHECK(contains(refusal(npy(1, "{'descr': '<f4'}", "")), "lacks"));
    CHECK(contains(refusal(npy(1, "nonsense", "")), "not a dict"));
    CHECK(contains(refusal(npy(1, "{'kind': 1}", "")), "cannot be read"));
}

TEST_CASE("a writer that is not committed leaves nothing") {
    const float x[2] = {1, 2};
    {
        npy_writer file(scratch("half.npy"), {'f', 4}, {2});
        file.write(x, 1);
    }
    CHECK(!exists("half.npy"));
    npy_writer file(scratch("whole.npy"), {'f', 4}, {2});
    file.write(x, 2);
    file.commit();
    const std::string text = read_file("whole.npy");
    CHECK((text.size() - 8) % 64 == 0);
    CHECK(contains(text, "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }"));
}
