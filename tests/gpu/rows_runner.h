// Runs rows that are made and checked on the device through one candidate.
#pragma once

#include "tests/gpu/gpu.h"

#include <algorithm>
#include <cmath>

namespace plait::test {

/// Bytes that run_rows() takes for it, workspace apart.
inline size_t rows_bytes(const wht_call &c) {
    return static_cast<size_t>(c.span(PLAIT_X) * bytes_of(c.x)) +
           (c.alias ? 0 : static_cast<size_t>(c.span(PLAIT_Y) * bytes_of(c.y_type())));
}

/// Room for the call's tensors and the workspace of this plan?
inline bool rows_fit(const wht_call &c, const plait_plan *plan) {
    size_t work = 0;
    REQUIRE(plait_plan_workspace_size(plan, &work) == PLAIT_OK);
    return rows_bytes(c) + work + (size_t{1} << 28) < target().available();
}

/// The call has two axes: rows and the length. `from`: what X holds; Y must hold the other image.
inline void run_rows(const wht_call &c, const plait_plan *plan, const candidate &by,
                     const impulse_rows &rows, image from) {
    const size_t x_size = static_cast<size_t>(c.span(PLAIT_X) * bytes_of(c.x));
    const size_t y_size = c.alias ? 0 : static_cast<size_t>(c.span(PLAIT_Y) * bytes_of(c.y_type()));
    size_t work_size = 0;
    REQUIRE(plait_plan_workspace_size(plan, &work_size) == PLAIT_OK);
    guarded x(x_size, static_cast<size_t>(c.x_offset * bytes_of(c.x)), poison_of(c.x));
    guarded y(y_size, static_cast<size_t>(c.y_offset * bytes_of(c.y_type())),
              poison_of(c.y_type()));
    guarded work(work_size, 0, workspace_fill());
    const int64_t n = c.extents[1], count = c.extents[0];
    const plait_stream stream = target().stream();
    const device_matrix in{c.x, x.data(), count, n, c.strides(PLAIT_X)[0]};
    const device_matrix out{c.y_type(), c.alias ? x.data() : y.data(), count, n,
                            c.strides(PLAIT_Y)[0]};
    device_fill(in, rows, from, 1, stream);
    const plait_arg args[] = {{PLAIT_X, in.data}, {PLAIT_Y, out.data}};
    REQUIRE_MESSAGE(plait_execute(plan, args, 2, work.data(), work_size, stream) == PLAIT_OK,
                    plait_last_error());
    const image to = from == image::impulses ? image::spectrum : image::impulses;
    // H of the spectrum is n times the impulses.
    const double scale = c.scale_value() * (from == image::spectrum ? static_cast<double>(n) : 1);
    double norm = 0;
    for (double w : rows.weight) norm += std::fabs(w);
    if (to == image::spectrum) norm *= std::sqrt(static_cast<double>(n));
    const double tolerance =
        is_exact(by, c) ? 0 : (c.stages() + 2) * roundoff_of(by, c) * norm * std::fabs(scale);
    const device_count bad = device_check(out, rows, to, scale, tolerance, stream);
    CHECK_MESSAGE(bad.wrong == 0, "first at " << bad.first);
    if (!c.alias) CHECK(device_check(in, rows, from, 1, 0, stream).wrong == 0);
    CHECK(x.damage() == "");
    CHECK(y.damage() == "");
    CHECK(work.damage() == "");
}

/// From impulses with scale 1, from the spectrum with scale 1/n; by every candidate. How many ran?
inline int run_ways(wht_call c, const impulse_rows &rows, plait_math math,
                    const std::vector<image> &ways = {image::impulses, image::spectrum}) {
    int ran = 0;
    for (const image from : ways) {
        if (from == image::spectrum) c.scale = 1 / static_cast<double>(c.extents[1]);
        const desc_ptr desc = desc_of(c);
        const std::string token = token_of(desc.get());
        CAPTURE(token);
        for (const candidate &by : applicable(desc.get(), math)) {
            CAPTURE(by.name);
            const plan_ptr plan = plan_by(by.name, desc.get(), math);
            if (!rows_fit(c, plan.get())) {
                note_count("device rows: not enough memory");
                continue;
            }
            run_rows(c, plan.get(), by, rows, from);
            note_steps(plan.get());
            ++ran;
        }
    }
    return ran;
}

} // namespace plait::test
