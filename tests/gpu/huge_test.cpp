// More than 2^31 and 2^32 elements. (Report W42; the cases of tier huge.)
#include "tests/gpu/rows_runner.h"
#include "tests/support/json_cases.h"

namespace plait::test {

TEST_CASE("huge: the published cases") {
    if (config().small) return;
    for (const json_case &c : wht_cases()) {
        if (c.tier() != "huge") continue;
        CAPTURE(c.name());
        for (plait_dtype type : c.dtypes()) {
            wht_call call = c.call(type);
            if (call.extents.size() == 1) call.extents.insert(call.extents.begin(), 1);
            impulse_rows rows;
            rows.hashed = false;
            const auto &input = c.text.at("input");
            if (input.at("gen") == "impulse") {
                rows.at[0] = input.at("index");
                rows.weight[0] = input.at("value");
                rows.weight[1] = rows.weight[2] = 0;
                CHECK(c.text.at("expected").at("rule") == "parity");
            } else {
                const std::vector<double> row = input.at("row"),
                                          want = c.text.at("expected").at("row");
                REQUIRE(row.size() == 4);
                rows.only_row = call.extents[0] - 1;
                for (int i = 0; i < 4; ++i) {
                    rows.at[i] = i;
                    rows.weight[i] = row[static_cast<size_t>(i)];
                    double y = 0; // what run_rows() will compare with is what the case says
                    for (int j = 0; j < 4; ++j)
                        y += row[static_cast<size_t>(j)] * hadamard_sign(i, j);
                    CHECK(y == want[static_cast<size_t>(i)]);
                }
            }
            const desc_ptr desc = desc_of(call);
            int ran = 0;
            for (const candidate &by : applicable(desc.get(), PLAIT_MATH_F32)) {
                CAPTURE(by.name);
                const plan_ptr plan = plan_by(by.name, desc.get(), PLAIT_MATH_F32);
                if (!rows_fit(call, plan.get())) {
                    note_count("huge: not enough memory");
                    continue;
                }
                run_rows(call, plan.get(), by, rows, image::impulses);
                note_count("cases: huge ones run");
                ++ran;
            }
            CHECK((ran > 0 || target().available() < size_t{30} << 30));
        }
    }
}

TEST_CASE("huge: W42 W43 batches and single rows beyond every 32-bit count") {
    if (config().small) return;
    impulse_rows rows;
    rows.seed = config().seed;
    const struct {
        plait_dtype type;
        int64_t count, n;
        bool in_place;
    } all[] = {
        {PLAIT_F32, 65537, 4096, false},
        {PLAIT_F16, (int64_t{1} << 30) + 1, 4, false},    // 2^32 + 4 elements of tiny rows
        {PLAIT_BF16, (int64_t{1} << 20) + 1, 4096, true}, // 2^32 + 4096
        {PLAIT_F32, (int64_t{1} << 17) + 1, 32768, true}, // 2^32 + 32768
        {PLAIT_F16, 3, int64_t{1} << 31, true},           // rows that begin beyond 2^31 and 2^32
        {PLAIT_F16, 1, int64_t{1} << 32, true},
        {PLAIT_BF16, 1, int64_t{1} << 31, false},
        {PLAIT_F32, 1, int64_t{1} << 32, true},
        {PLAIT_F64, 1, int64_t{1} << 31, true},
    };
    for (const auto &one : all) {
        wht_call c = rows_of(one.type, one.count, one.n);
        c.alias = one.in_place;
        if (rows_bytes(c) > target().available()) {
            note_count("huge: not enough memory");
            continue;
        }
        const int ran = run_ways(c, rows, PLAIT_MATH_DEFAULT);
        note_count("huge: runs", ran);
        CHECK(ran > 0);
    }
}

} // namespace plait::test
