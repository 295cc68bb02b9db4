// The .npy format, read and written in chunks: a file may be larger than memory. Versions 1 to 3,
// little endian, C order, which arrays of one axis share with Fortran order. No package of the
// distribution reads it, so the header parser is here.
#pragma once

#include "src/cli/case/output.h"

#include <cstdint>
#include <cstdio>
#include <plait/plait.h>
#include <string>
#include <vector>

namespace plait::cases {

struct npy_type {
    char kind; ///< 'f' 'i' 'u' 'c' 'b', as in NumPy
    int bytes;
    std::string text() const; ///< "f4"
    bool operator==(const npy_type &o) const { return kind == o.kind && bytes == o.bytes; }
    bool operator!=(const npy_type &o) const { return !(*this == o); }
};

/// How a plait type is stored: BF16 as the bits in u2, E4M3 in u1, B1 as one u1 per element.
npy_type npy_type_of(plait_dtype dtype);

class npy_reader {
public:
    /// Reads the header and checks the size of the file. Every failure is PLAIT_ERR_IO.
    explicit npy_reader(const std::string &path);
    ~npy_reader();
    npy_reader(const npy_reader &) = delete;
    npy_reader &operator=(const npy_reader &) = delete;

    npy_type type;
    std::vector<int64_t> shape;
    int64_t elements = 0;
    std::string shape_text() const; ///< "(8, 4096)"
    /// The next `count` elements.
    void read(void *to, int64_t count);

private:
    [[noreturn]] void fail(const std::string &why) const;
    void parse(const std::string &header);
    std::string path_;
    std::FILE *file_ = nullptr;
};

/// The header comes first, so a pipe is read from its beginning. Nothing is there before commit().
class npy_writer {
public:
    npy_writer(const std::string &path, npy_type type, const std::vector<int64_t> &shape);
    void write(const void *from, int64_t count);
    void commit() { file_.commit(); }

private:
    output_file file_;
    npy_type type_;
};

std::string npy_shape_text(const std::vector<int64_t> &shape);

} // namespace plait::cases
