#include "src/cli/case/npy.h"

#include "src/cli/case/handle.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <sys/stat.h>

namespace plait::cases {
namespace {

const char magic[] = "\x93NUMPY";
constexpr size_t magic_bytes = 6;
// NumPy aligns the data to 64 bytes.
constexpr size_t data_alignment = 64;
// A header is a line of text; one of many megabytes is a torn length field.
constexpr size_t longest_header = size_t{1} << 20;

/// A cursor over the header, which is a Python dict of three known keys.
class cursor {
public:
    explicit cursor(const std::string &text) : text_(text) {}
    bool take(char c) {
        skip();
        if (at_ >= text_.size() || text_[at_] != c) return false;
        ++at_;
        return true;
    }
    bool string(std::string *value) {
        skip();
        if (at_ >= text_.size() || (text_[at_] != '\'' && text_[at_] != '"')) return false;
        const size_t end = text_.find(text_[at_], at_ + 1);
        if (end == std::string::npos) return false;
        *value = text_.substr(at_ + 1, end - at_ - 1);
        at_ = end + 1;
        return true;
    }
    bool word(std::string *value) {
        skip();
        const size_t begin = at_;
        while (at_ < text_.size() && std::isalnum(static_cast<unsigned char>(text_[at_]))) ++at_;
        *value = text_.substr(begin, at_ - begin);
        return at_ > begin;
    }
    bool number(int64_t *value) {
        std::string digits;
        const bool minus = take('-');
        if (!word(&digits)) return false;
        if (digits.back() == 'L') digits.pop_back(); // written by Python 2
        if (digits.empty() || digits.size() > 18) return false;
        *value = 0;
        for (char c : digits) {
            if (!std::isdigit(static_cast<unsigned char>(c))) return false;
            *value = *value * 10 + (c - '0');
        }
        if (minus) *value = -*value;
        return true;
    }
    bool end() {
        skip();
        return at_ == text_.size();
    }

private:
    void skip() {
        while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
    }
    const std::string &text_;
    size_t at_ = 0;
};

uint32_t little_endian(const unsigned char *bytes, int count) {
    uint32_t value = 0;
    for (int i = count - 1; i >= 0; --i) value = value << 8 | bytes[i];
    return value;
}

} // namespace

std::string npy_type::text() const { return kind + std::to_string(bytes); }

npy_type npy_type_of(plait_dtype dtype) {
    switch (dtype) {
    case PLAIT_F64: return {'f', 8};
    case PLAIT_F32: return {'f', 4};
    case PLAIT_F16: return {'f', 2};
    case PLAIT_BF16: return {'u', 2};
    case PLAIT_C128: return {'c', 16};
    case PLAIT_C64: return {'c', 8};
    case PLAIT_I32: return {'i', 4};
    case PLAIT_I64: return {'i', 8};
    case PLAIT_I8: return {'i', 1};
    case PLAIT_I16: return {'i', 2};
    case PLAIT_E4M3:
    case PLAIT_B1: return {'u', 1};
    }
    throw failure(PLAIT_ERR_INTERNAL, "element type without a .npy type");
}

std::string npy_shape_text(const std::vector<int64_t> &shape) {
    std::string text = "(";
    for (size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
    return text + (shape.size() == 1 ? ",)" : ")");
}

void npy_reader::fail(const std::string &why) const { throw failure(PLAIT_ERR_IO, path_ + why); }

npy_reader::npy_reader(const std::string &path) : type{'f', 4}, path_(path) {
    struct stat facts {};
    if (stat(path.c_str(), &facts) != 0) fail(std::string(": ") + std::strerror(errno));
    if (!S_ISREG(facts.st_mode)) fail(" is not a regular file");
    file_ = std::fopen(path.c_str(), "rb");
    if (!file_) fail(std::string(": ") + std::strerror(errno));
    try {
        unsigned char start[12] = {};
        if (std::fread(start, 1, 10, file_) != 10 || std::memcmp(start, magic, magic_bytes) != 0)
            fail(" is not a .npy file: it does not begin with \\x93NUMPY");
        const int version = start[6];
        if (version < 1 || version > 3)
            fail(" has .npy version " + std::to_string(version) + "; 1 to 3 are read");
        size_t length = little_endian(start + 8, 2);
        size_t data = 10;
        if (version > 1) {
            if (std::fread(start + 10, 1, 2, file_) != 2) fail(" is torn: its header is cut off");
            length = little_endian(start + 8, 4);
            data = 12;
        }
        if (length > longest_header) fail(" is torn: its header has an impossible length");
        std::string header(length, '\0');
        if (std::fread(header.data(), 1, length, file_) != length)
            fail(" is torn: its header is cut off");
        data += length;
        parse(header);
        elements = 1;
        int64_t bytes = type.bytes;
        for (int64_t e : shape)
            if (__builtin_mul_overflow(elements, e, &elements) ||
                __builtin_mul_overflow(bytes, e, &bytes))
                fail(" has the shape " + shape_text() + ", which no memory holds");
        const int64_t have = static_cast<int64_t>(facts.st_size) - static_cast<int64_t>(data);
        if (have != bytes)
            fail(" is torn: its shape " + shape_text() + " of " + type.text() + " needs " +
                 std::to_string(bytes) + " bytes of data, it has " + std::to_string(have));
    } catch (...) {
        std::fclose(file_);
        throw;
    }
}

npy_reader::~npy_reader() { std::fclose(file_); }

void npy_reader::parse(const std::string &header) {
    cursor c(header);
    std::string key, descr, order;
    bool have_shape = false, more = true; // a comma stands before each but the first
    if (!c.take('{')) fail(" is torn: its header is not a dict");
    while (!c.take('}')) {
        bool good = more && c.string(&key) && c.take(':');
        const bool again = (key == "descr" && !descr.empty()) || (key == "shape" && have_shape) ||
                           (key == "fortran_order" && !order.empty());
        if (good && again) fail(" is torn: its header has the key " + key + " twice");
        if (good && key == "descr") {
            if (!c.string(&descr)) fail(" holds a structured type; plain numbers are read");
        } else if (good && key == "fortran_order") {
            good = c.word(&order) && (order == "True" || order == "False");
        } else if (good && key == "shape") {
            have_shape = good = c.take('(');
            bool another = true;
            while (good && !c.take(')')) {
                int64_t extent = 0;
                good = another && c.number(&extent);
                if (good && extent < 0)
                    fail(" has the negative extent " + std::to_string(extent) + " in its shape");
                shape.push_back(extent);
                another = c.take(',');
            }
            if (shape.size() == 1 && !another) good = false; // in Python a number, no tuple
        } else {
            good = false;
        }
        if (!good) fail(" is torn: its header cannot be read");
        more = c.take(',');
    }
    if (!c.end()) fail(" is torn: something stands behind its header's closing brace");
    if (descr.empty() || order.empty() || !have_shape)
        fail(" is torn: its header lacks descr, fortran_order or shape");
    if (descr[0] == '>') fail(" is big endian (" + descr + "); save it in little endian order");
    const size_t skip = descr[0] == '<' || descr[0] == '|' || descr[0] == '=' ? 1 : 0;
    const std::string size = descr.size() > skip + 1 ? descr.substr(skip + 1) : "";
    if (size.empty() || size.size() > 2 || size.find_first_not_of("0123456789") != size.npos ||
        std::strchr("fiucb", descr[skip]) == nullptr || std::stoi(size) == 0)
        fail(" holds the type " + descr + ", which is not read; plain numbers are");
    type = {descr[skip], std::stoi(size)};
    // Both orders are one where at most one axis has more than one element, or where one has none.
    const auto longer = std::count_if(shape.begin(), shape.end(), [](int64_t e) { return e > 1; });
    const bool empty = std::count(shape.begin(), shape.end(), 0) > 0;
    if (order == "True" && longer > 1 && !empty)
        fail(" is in Fortran order; save numpy.ascontiguousarray() of it");
}

std::string npy_reader::shape_text() const { return npy_shape_text(shape); }

void npy_reader::read(void *to, int64_t count) {
    if (count == 0) return; // an empty array may have no storage to read into
    const size_t want = static_cast<size_t>(count);
    if (std::fread(to, static_cast<size_t>(type.bytes), want, file_) != want)
        fail(std::ferror(file_) ? std::string(": ") + std::strerror(errno)
                                : " became shorter while it was read");
}

npy_writer::npy_writer(const std::string &path, npy_type type, const std::vector<int64_t> &shape)
    : file_(path), type_(type) {
    const std::string order = type.bytes == 1 ? "|" : "<";
    std::string header = "{'descr': '" + order + type.text() +
                         "', 'fortran_order': False, 'shape': " + npy_shape_text(shape) + ", }";
    const size_t before = magic_bytes + 4; // version and length, format 1
    while ((before + header.size() + 1) % data_alignment) header += ' ';
    header += '\n';
    const unsigned char rest[4] = {1, 0, static_cast<unsigned char>(header.size() & 0xff),
                                   static_cast<unsigned char>(header.size() >> 8)};
    file_.write(magic, magic_bytes);
    file_.write(rest, sizeof rest);
    file_.write(header.data(), header.size());
}

void npy_writer::write(const void *from, int64_t count) {
    file_.write(from, static_cast<size_t>(type_.bytes) * static_cast<size_t>(count));
}

} // namespace plait::cases
