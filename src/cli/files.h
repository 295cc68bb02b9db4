// "role=f.npy" arguments: matched to the tensors of a problem, read and written in chunks.
#pragma once

#include "src/cli/case/device.h"
#include "src/cli/case/npy.h"
#include "src/cli/case/tensor.h"

#include <functional>
#include <map>
#include <memory>

namespace plait::cli {

/// Role name -> path. Refuses what is no "role=path", unknown roles and doubled roles.
std::map<plait_role, std::string> parse_files(const std::vector<std::string> &arguments,
                                              const std::vector<cases::tensor> &tensors,
                                              const char *option);

/// "f4, or u2 with the bits": the .npy types that a tensor is read from.
std::string readable_types(const cases::tensor &t);

/// A file whose type and shape fit a tensor. Axes of stride 0 are not in the file: signs that all
/// batch entries share have the shape of the transformed axes.
class tensor_file {
public:
    tensor_file(const std::string &path, const cases::tensor &t);
    int64_t elements() const { return reader_->elements; }
    /// The next elements in the tensor's own type (B1: a byte per element).
    void read(void *to, int64_t count);

private:
    std::string path_;
    cases::tensor tensor_;
    std::unique_ptr<cases::npy_reader> reader_;
    std::vector<unsigned char> raw_;
    std::vector<double> wide_;
};

/// Refuses a file of indices that break the rules of their role, which the library does not look
/// at. Not where the call reports them itself.
void check_indices(const std::string &path, const cases::token_parts &parts,
                   const cases::tensor &t);

using on_bytes = std::function<void(size_t bytes)>;

/// File -> the strided tensor at `at` on the device. Elements in the gaps are not touched on the
/// CPU; on CUDA they become 0.
void load_tensor(const std::string &path, const cases::tensor &t, cases::device &dev, void *at,
                 const on_bytes &progress);
void save_tensor(const std::string &path, const cases::tensor &t, cases::device &dev,
                 const void *at, const on_bytes &progress);

} // namespace plait::cli
