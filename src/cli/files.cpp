#include "src/cli/files.h"

#include "src/cli/case/dtype.h"
#include "src/cli/case/handle.h"
#include "src/cli/case/inputs.h"

#include <algorithm>

namespace plait::cli {

using cases::failure;
using cases::npy_type;
using cases::tensor;

namespace {

/// Elements per step of reading and writing: large enough for disks and for PCIe.
constexpr int64_t chunk_elements = int64_t{1} << 22;

/// Types that become the tensor's own type on the way in.
bool readable(const tensor &t, const npy_type &type) {
    if (type == cases::npy_type_of(t.dtype)) return true;
    if (t.dtype == PLAIT_BF16) return type == npy_type{'f', 4};
    return t.dtype == PLAIT_B1 && type == npy_type{'b', 1};
}

template <class Each> void in_chunks(int64_t elements, Each each) {
    for (int64_t done = 0; done < elements; done += chunk_elements)
        each(done, std::min(chunk_elements, elements - done));
}

size_t packed_bytes(const tensor &t, int64_t elements) {
    return t.dtype == PLAIT_B1 ? static_cast<size_t>(elements)
                               : cases::bytes_for(t.dtype, elements);
}

} // namespace

std::map<plait_role, std::string> parse_files(const std::vector<std::string> &arguments,
                                              const std::vector<tensor> &tensors,
                                              const char *option) {
    std::map<plait_role, std::string> files;
    std::string known;
    for (const tensor &t : tensors) known += (known.empty() ? "" : ", ") + t.name;
    for (const std::string &argument : arguments) {
        const size_t equals = argument.find('=');
        if (equals == std::string::npos || equals == 0 || equals + 1 == argument.size())
            throw failure(PLAIT_ERR_INVALID_ARGUMENT, std::string(option) + " " + argument +
                                                          ": must have the form role=file.npy");
        const std::string name = argument.substr(0, equals);
        const auto t = std::find_if(tensors.begin(), tensors.end(),
                                    [&](const tensor &x) { return x.name == name; });
        if (t == tensors.end())
            throw failure(PLAIT_ERR_INVALID_ARGUMENT, std::string(option) + " " + argument +
                                                          ": the token has no role \"" + name +
                                                          "\", only " + known);
        if (!files.emplace(t->role, argument.substr(equals + 1)).second)
            throw failure(PLAIT_ERR_INVALID_ARGUMENT, std::string(option) + " " + argument +
                                                          ": role " + name + " is given twice");
    }
    return files;
}

std::string readable_types(const tensor &t) {
    if (t.dtype == PLAIT_BF16) return "f4 or u2 (bits)";
    if (t.dtype == PLAIT_B1) return "u1 or b1";
    return cases::npy_type_of(t.dtype).text();
}

tensor_file::tensor_file(const std::string &path, const tensor &t)
    : path_(path), tensor_(cases::distinct(t)), reader_(std::make_unique<cases::npy_reader>(path)) {
    if (!readable(t, reader_->type))
        throw failure(PLAIT_ERR_IO, path + ": holds " + reader_->type.text() + "; role " + t.name +
                                        " is " + cases::dtype_name(t.dtype) + ", read from " +
                                        readable_types(t));
    if (reader_->shape != tensor_.extents)
        throw failure(PLAIT_ERR_IO, path + ": has the shape " + reader_->shape_text() + "; role " +
                                        t.name + " needs " +
                                        cases::npy_shape_text(tensor_.extents));
}

void tensor_file::read(void *to, int64_t count) {
    const bool round = tensor_.dtype == PLAIT_BF16 && reader_->type.kind == 'f';
    if (round) {
        raw_.resize(static_cast<size_t>(count) * 4);
        wide_.resize(static_cast<size_t>(count));
        reader_->read(raw_.data(), count);
        cases::to_double(PLAIT_F32, raw_.data(), count, wide_.data());
        cases::from_double(PLAIT_BF16, wide_.data(), count, to);
        return;
    }
    reader_->read(to, count);
    if (tensor_.dtype != PLAIT_B1) return;
    const uint8_t *flags = static_cast<const uint8_t *>(to);
    for (int64_t i = 0; i < count; ++i)
        if (flags[i] > 1)
            throw failure(PLAIT_ERR_IO, path_ + ": holds " + std::to_string(flags[i]) + "; role " +
                                            tensor_.name + " takes 0 (plus) and 1 (minus)");
}

void check_indices(const std::string &path, const cases::token_parts &parts, const tensor &t) {
    if (!cases::is_index(t.role) || parts.used("status")) return;
    tensor_file file(path, t);
    std::vector<unsigned char> own(cases::bytes_for(t.dtype, file.elements()));
    std::vector<int64_t> values(static_cast<size_t>(file.elements()));
    file.read(own.data(), file.elements());
    cases::to_int64(t.dtype, own.data(), file.elements(), values.data());
    const std::string broken = cases::broken_rule(parts, t.role, values);
    if (!broken.empty()) throw failure(PLAIT_ERR_IO, path + ": " + t.name + ": " + broken);
}

void load_tensor(const std::string &path, const tensor &declared, cases::device &dev, void *at,
                 const on_bytes &progress) {
    const tensor t = cases::distinct(declared);
    tensor_file file(path, t);
    const int64_t total = file.elements();
    std::vector<unsigned char> chunk(packed_bytes(t, std::min(total, chunk_elements)));
    const bool direct = t.dense() && t.dtype != PLAIT_B1;
    // A strided tensor is laid out on the host first: one transfer for all of it.
    std::vector<unsigned char> image;
    if (!direct && !dev.host_memory()) image.resize(t.span_bytes());
    in_chunks(total, [&](int64_t first, int64_t count) {
        file.read(chunk.data(), count);
        if (direct)
            dev.upload(static_cast<char *>(at) + cases::bytes_for(t.dtype, first), chunk.data(),
                       cases::bytes_for(t.dtype, count));
        else
            cases::scatter(t, dev.host_memory() ? at : image.data(), first, count, chunk.data());
        progress(packed_bytes(t, count));
    });
    if (!image.empty()) dev.upload(at, image.data(), image.size());
}

void save_tensor(const std::string &path, const tensor &t, cases::device &dev, const void *at,
                 const on_bytes &progress) {
    cases::npy_writer file(path, cases::npy_type_of(t.dtype), t.extents);
    const int64_t total = t.elements();
    std::vector<unsigned char> chunk(packed_bytes(t, std::min(total, chunk_elements)));
    const bool direct = t.dense() && t.dtype != PLAIT_B1;
    std::vector<unsigned char> image;
    if (!direct && !dev.host_memory()) {
        image.resize(t.span_bytes());
        dev.download(image.data(), at, image.size());
    }
    in_chunks(total, [&](int64_t first, int64_t count) {
        if (direct)
            dev.download(chunk.data(),
                         static_cast<const char *>(at) + cases::bytes_for(t.dtype, first),
                         cases::bytes_for(t.dtype, count));
        else
            cases::gather(t, dev.host_memory() ? at : image.data(), first, count, chunk.data());
        file.write(chunk.data(), count);
        progress(packed_bytes(t, count));
    });
    file.commit();
}

} // namespace plait::cli
