// Indices keep the rules of their role, and cover what is legal.
#include "src/cli/case/dtype.h"
#include "src/cli/case/handle.h"
#include "src/cli/case/inputs.h"

#include <algorithm>
#include <doctest/doctest.h>

using namespace plait::cases;

namespace {

struct made {
    token_parts parts;
    std::vector<int64_t> values;
    std::string broken(const std::vector<int64_t> &v, plait_role role) const {
        return broken_rule(parts, role, v);
    }
};

made make(const std::string &token, plait_role role, uint64_t seed, bool full) {
    const desc_ptr desc = make_desc(token);
    const std::vector<tensor> tensors = tensors_of(desc.get());
    const tensor &t = *find_tensor(tensors, role);
    made m{split_token(token), std::vector<int64_t>(static_cast<size_t>(t.elements()))};
    std::vector<unsigned char> own(bytes_for(t.dtype, t.elements()));
    input(m.parts, t, {seed, full}).read(0, t.elements(), own.data());
    to_int64(t.dtype, own.data(), t.elements(), m.values.data());
    CHECK(m.broken(m.values, role) == "");
    return m;
}

} // namespace

TEST_CASE("offsets") {
    const std::string token = "conv1d.fwd:f32:b1:c2:t1000:k4:seqs=40.60:cu_seqlens.i32";
    int empty = 0, spare = 0;
    for (uint64_t seed = 1; seed <= 20; ++seed) {
        const std::vector<int64_t> cu = make(token, PLAIT_CU_SEQLENS, seed, false).values;
        CHECK(cu.size() == 41);
        for (size_t i = 1; i < cu.size(); ++i) empty += cu[i] == cu[i - 1];
        spare += cu.back() < 1000;
        CHECK(make(token, PLAIT_CU_SEQLENS, seed, true).values.back() == 1000);
    }
    CHECK(empty > 20);
    CHECK(spare > 5);
    // More capacity than the sequences can fill.
    const std::string loose = "conv1d.fwd:f32:b1:c2:t1000:k4:seqs=4.60";
    CHECK(make(loose, PLAIT_CU_SEQLENS, 1, true).values.back() == 240);
    CHECK(make("conv1d.fwd:f32:b1:c2:t0:k4:seqs=3.5", PLAIT_CU_SEQLENS, 1, false).values ==
          std::vector<int64_t>{0, 0, 0, 0});
    CHECK(make("conv1d.fwd:f32:b1:c2:t9:k4:seqs=0.5", PLAIT_CU_SEQLENS, 1, false).values ==
          std::vector<int64_t>{0});
    const made m = make(loose, PLAIT_CU_SEQLENS, 1, false);
    const auto why = [&](std::vector<int64_t> v) { return m.broken(v, PLAIT_CU_SEQLENS); };
    CHECK(why({1, 2, 3, 4, 5}) == "the first offset is 1, not 0");
    CHECK(why({0, 20, 10, 30, 40}) == "offset 2, 10, is less than the one before it");
    CHECK(why({0, 20, 40, 60, 1001}) == "offset 4, 1001, is beyond the 1000 tokens");
    CHECK(why({0, 61, 70, 80, 90}) == "offset 1, 61, is more than 60 behind the one before it");
}

TEST_CASE("slots") {
    for (const int pad : {-1, 5}) {
        const std::string token = "conv1d.update:f32:b30:c2:t1:k4:slots=40." + std::to_string(pad);
        int padded = 0;
        for (uint64_t seed = 1; seed <= 10; ++seed) {
            const std::vector<int64_t> some = make(token, PLAIT_SLOTS, seed, false).values;
            padded += static_cast<int>(std::count(some.begin(), some.end(), pad));
            const std::vector<int64_t> full = make(token, PLAIT_SLOTS, seed, true).values;
            CHECK(std::count(full.begin(), full.end(), pad) == 0);
            CHECK(!std::is_sorted(full.begin(), full.end()));
        }
        CHECK(padded > 10);
    }
    // More rows than slots: the rest has none.
    const std::vector<int64_t> few =
        make("conv1d.update:f32:b9:c2:t1:k4:slots=4.2", PLAIT_SLOTS, 1, true).values;
    CHECK(std::count(few.begin(), few.end(), 2) == 6);
    const made m = make("conv1d.update:f32:b2:c2:t1:k4:slots=4.9", PLAIT_SLOTS, 1, false);
    CHECK(m.broken({9, 4}, PLAIT_SLOTS) == "slot 4 of row 1 is not among the 4 of the pool");
    CHECK(m.broken({3, 3}, PLAIT_SLOTS) == "slot 3 of row 1 is that of another row");
    CHECK(m.broken({9, 9}, PLAIT_SLOTS) == "");
}

TEST_CASE("ids and positions") {
    const std::vector<int64_t> ids =
        make("conv1d.fwd:f32:b8:c2:t200:k4:+seq_idx", PLAIT_SEQ_IDX, 1, false).values;
    CHECK(std::count_if(ids.begin(), ids.end(), [](int64_t id) { return id < 0; }) > 20);
    CHECK(std::count(ids.begin(), ids.end(), 2) > 20);
    const made m = make("conv1d.update:f32:b40:c2:t1:k4:state=ring.4", PLAIT_POSITION, 1, false);
    CHECK(*std::max_element(m.values.begin(), m.values.end()) > INT32_MAX - 4);
    CHECK(*std::min_element(m.values.begin(), m.values.end()) < 10000);
    CHECK(m.broken(std::vector<int64_t>(40, -1), PLAIT_POSITION) ==
          "the position of row 0 is negative");
}
