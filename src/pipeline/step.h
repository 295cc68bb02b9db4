// A step: one launch as plain data. Execute copies the arguments, writes pointers into their head
// and launches; everything else was decided when the plan was made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <plait/plait.h>
#include <string>
#include <type_traits>
#include <vector>

namespace plait::impl {

/// The plain argument struct of a kernel (<kernel>_args). It begins with one pointer per operand,
/// in the order of step::operands.
class step_args {
public:
    /// Where the problem in normal form is an argument (CPU); kernels on CUDA take half of it.
    static constexpr size_t max_bytes = 8192;

    step_args() = default;
    template <class Args> explicit step_args(const Args &args) : bytes_(sizeof(Args)) {
        static_assert(std::is_trivially_copyable_v<Args> && sizeof(Args) <= max_bytes);
        std::memcpy(bytes_.data(), &args, sizeof(Args));
    }
    const std::byte *data() const { return bytes_.data(); }
    size_t size() const { return bytes_.size(); }

private:
    std::vector<std::byte> bytes_;
};

/// What a pointer of a step is bound to at execute.
struct operand {
    enum class source { none, role, work }; ///< none: the pointer is null
    source from = source::none;
    plait_role role{};  ///< from == role
    int piece = -1;     ///< from == work: index into the ledger
    int64_t offset = 0; ///< bytes
    bool written = false;
};

struct step {
    std::string kernel;    ///< "wht.block": name law
    std::string variant;   ///< which instantiation, "f32.f32.n15.v4"; empty on the CPU
    int64_t grid = 1;      ///< blocks (one dimension) on CUDA
    int block = 1;         ///< threads of a block on CUDA, of the process on the CPU
    int smem_bytes = 0;    ///< dynamic shared memory
    int cluster = 1;       ///< blocks of a cluster on CUDA; the grid is a multiple of it
    bool resident = false; ///< clusters walk: launched are no more than run at a time
    /// Its kernel may start while the one before it in the stream still runs, and waits for it
    /// before it touches memory: lib/cuda/common/predecessor.cuh. Only where
    /// waits_for_predecessors() says that its code can.
    bool programmatic = false;
    /// The same for a kernel that touches nothing of what the one before it writes, nor writes what
    /// that one touches, which is not launched early itself: it waits at its end alone.
    bool beside = false;
    std::vector<operand> operands;
    step_args args;
    int64_t bytes_read = 0;
    int64_t bytes_written = 0;
    int64_t flops = 0;
};

} // namespace plait::impl
