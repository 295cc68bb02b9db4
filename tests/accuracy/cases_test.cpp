// Every case of tests/cases/wht.json through every candidate of the backend that applies.
#include "tests/support/json_cases.h"
#include "tests/support/report.h"
#include "tests/support/runner.h"

#include <cmath>
#include <doctest/doctest.h>
#include <memory>

namespace plait::test {
namespace {

/// A case's own buffers: one or two, with the offsets of the case inside them.
struct case_buffers {
    std::unique_ptr<guarded> x, y, signs, diag, flag, work;
    std::vector<plait_arg> args;

    case_buffers(const case_instance &k, size_t work_bytes) {
        const plait_dtype yt = k.call.y_type();
        x = std::make_unique<guarded>(k.x_buffer.size(), 0, 0);
        x->put(k.x_buffer);
        guarded *out = x.get();
        if (!k.one_buffer) {
            y = std::make_unique<guarded>(k.y_before.size(), 0, 0);
            y->put(k.y_before);
            out = y.get();
        }
        char *xp = static_cast<char *>(x->data()), *yp = static_cast<char *>(out->data());
        args.push_back({PLAIT_X, xp ? xp + k.call.x_offset * bytes_of(k.call.x) : nullptr});
        args.push_back({PLAIT_Y, yp ? yp + k.call.y_offset * bytes_of(yt) : nullptr});
        if (k.call.signs) {
            const bytes words = packed_bits(k.signs);
            signs = std::make_unique<guarded>(words.size(), 0, 0);
            signs->put(words);
            args.push_back({PLAIT_SIGNS, signs->data()});
        }
        if (k.call.diag) {
            diag = std::make_unique<guarded>(k.diag.size(), 0, 0);
            diag->put(k.diag);
            args.push_back({PLAIT_DIAG, diag->data()});
        }
        if (k.call.overflow) {
            flag = std::make_unique<guarded>(4, 0, 0xA5);
            args.push_back({PLAIT_OVERFLOW, flag->data()});
        }
        work = std::make_unique<guarded>(work_bytes, 0, workspace_fill());
        target().wait();
    }
    bytes result() const { return y ? y->get() : x->get(); }
    std::string damage(const case_instance &k) const {
        for (const auto *b : {&x, &y, &signs, &diag, &flag, &work})
            if (*b && !(*b)->damage().empty()) return (*b)->damage();
        if (y && x->get() != k.x_buffer) return "x was written";
        return "";
    }
};

/// "" or the first value of the whole buffer that is not the one of the case. `loose`: elements of
/// Y are checked elsewhere, by the norm-wise bound.
std::string difference(const case_instance &k, const bytes &got) {
    const plait_dtype part = real_of(k.call.y_type());
    const auto n = static_cast<int64_t>(got.size()) / bytes_of(part);
    for (int64_t i = 0; i < n; ++i) {
        if (is_integer(part)) {
            const int64_t a = load_integer(part, got.data(), i);
            const int64_t b = load_integer(part, k.y_after.data(), i);
            if (a != b)
                return "[" + std::to_string(i) + "] is " + std::to_string(a) + ", must be " +
                       std::to_string(b);
            continue;
        }
        const double a = load(part, got.data(), i), b = load(part, k.y_after.data(), i);
        if (std::isnan(b) ? std::isnan(a) : a == b) continue;
        if (k.rel_tol && std::fabs(a - b) <= *k.rel_tol * std::fmax(1, std::fabs(b))) continue;
        return "[" + std::to_string(i) + "] is " + std::to_string(a) + ", must be " +
               std::to_string(b);
    }
    return "";
}

void run_case(const json_case &c, plait_dtype type) {
    const case_instance k = c.instance(type);
    const desc_ptr desc = desc_of(k.call);
    const std::string token = token_of(desc.get());
    CAPTURE(token);
    std::vector<candidate> all = applicable(desc.get(), PLAIT_MATH_F32);
    if (k.call.elements() == 0) all.push_back({"", "exact", ""}); // no steps: whatever is chosen
    CHECK_MESSAGE(!all.empty(), "no candidate");
    for (const candidate &by : all) {
        CAPTURE(by.name);
        const plan_ptr plan = plan_by(by.name, desc.get(), PLAIT_MATH_F32);
        size_t work = 0;
        REQUIRE(plait_plan_workspace_size(plan.get(), &work) == PLAIT_OK);
        case_buffers buffers(k, work);
        const plait_status s =
            plait_execute(plan.get(), buffers.args.data(), static_cast<int>(buffers.args.size()),
                          buffers.work->data(), work, target().stream());
        if (c.status() == "ok") {
            REQUIRE_MESSAGE(s == PLAIT_OK, plait_last_error());
        } else {
            CHECK(s == PLAIT_ERR_POINTER);
        }
        target().wait();
        CHECK(difference(k, buffers.result()) == "");
        CHECK(buffers.damage(k) == "");
        if (k.overflow) {
            int32_t flag = -1;
            target().download(&flag, buffers.flag->data(), 4);
            CHECK(flag == *k.overflow);
        }
        note_count("cases: run with " + (by.name.empty() ? "no steps" : by.name));
    }
}

} // namespace

TEST_CASE("cases: every answer of wht.json") {
    for (const json_case &c : wht_cases()) {
        if (c.status() == "plan_error") continue;
        if (c.tier() == "huge" || (c.tier() == "large" && !config().large && !on_device()) ||
            (c.tier() == "large" && config().small)) {
            // Huge ones have a test of their own, with checks on the device.
            note_count("cases: " + c.tier() + ", not here");
            continue;
        }
        CAPTURE(c.name());
        for (plait_dtype type : c.dtypes()) run_case(c, type);
    }
}

TEST_CASE("cases: every refusal of wht.json, before anything is planned") {
    int refused = 0;
    for (const json_case &c : wht_cases()) {
        if (c.status() != "plan_error") continue;
        CAPTURE(c.name());
        for (plait_dtype type : c.dtypes()) {
            CAPTURE(name_of(type));
            desc_ptr desc;
            const plait_status s = make_desc(c.call(type), desc);
            CHECK((s == PLAIT_ERR_INVALID_ARGUMENT || s == PLAIT_ERR_INVALID_DESC));
            CHECK(std::string(plait_last_error()) != "");
            ++refused;
        }
    }
    CHECK(refused > 17);
}

} // namespace plait::test
