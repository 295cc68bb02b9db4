// plait verify: results against float64, with guard bands around every buffer.
#include "src/cli/candidates.h"
#include "src/cli/case/bound_plan.h"
#include "src/cli/case/check.h"
#include "src/cli/case/dtype.h"
#include "src/cli/case/fill.h"
#include "src/cli/case/inputs.h"
#include "src/cli/case/reserve.h"
#include "src/cli/commands.h"
#include "src/cli/files.h"
#include "src/cli/memory_check.h"
#include "src/cli/text.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

namespace plait::cli {
namespace {

using cases::failure;
using cases::guarded_image;
using cases::tensor;

/// Elements that are compared unless --sample says otherwise.
constexpr int64_t default_elements = int64_t{1} << 26;

/// Host images of every tensor before the call.
using images = std::map<plait_role, guarded_image>;

images make_inputs(const cases::token_parts &parts, const std::vector<tensor> &tensors,
                   const std::map<plait_role, std::string> &files, uint64_t seed) {
    images made;
    for (const tensor &t : tensors) {
        guarded_image image(t.span_bytes());
        if (t.reads()) {
            const tensor data = cases::distinct(t);
            const int64_t total = data.elements();
            const int64_t chunk = std::min<int64_t>(total, 1 << 20);
            std::vector<unsigned char> dense(t.dtype == PLAIT_B1
                                                 ? static_cast<size_t>(chunk)
                                                 : cases::bytes_for(t.dtype, chunk));
            std::unique_ptr<tensor_file> file;
            if (files.count(t.role)) {
                check_indices(files.at(t.role), parts, t);
                file = std::make_unique<tensor_file>(files.at(t.role), t);
            }
            const cases::input random(parts, t, {seed, false});
            for (int64_t first = 0; first < total; first += chunk) {
                const int64_t count = std::min(chunk, total - first);
                if (file)
                    file->read(dense.data(), count);
                else
                    random.read(first, count, dense.data());
                cases::scatter(data, image.data(), first, count, dense.data());
            }
        }
        made.emplace(t.role, std::move(image));
    }
    return made;
}

cases::fetch fetch_from(const images &from) {
    return [&from](const cases::slice &s, void *packed) {
        cases::gather(s, from.at(s.part.role).data(), packed);
    };
}

struct verdict {
    cases::deviation values;
    std::string damage; ///< "" or what was written that must not be, or a wrong flag
    bool good() const { return damage.empty() && values.ratio <= 1; }
};

verdict verify_plan(const planned &p, const std::string &token, const std::vector<tensor> &tensors,
                    images &inputs, bool fill, const std::vector<int64_t> &which,
                    cases::checker &judge, cases::device &dev) {
    cases::placement where(dev, tensors, guarded_image::guard_bytes, true);
    const cases::workspace work(dev, p.plan.get());
    for (const tensor &t : tensors)
        if (!t.alias) {
            const guarded_image &image = inputs.at(t.role);
            where.upload_guarded(t.role, image.bytes.data(), image.bytes.size());
        }
    if (fill) { // a reserve that no file gives
        cases::fill_reserve(p.context, dev, token, where);
        for (const tensor &t : tensors)
            if (t.role == PLAIT_RESERVE && t.reads()) {
                guarded_image &image = inputs.at(t.role);
                where.download_guarded(t.role, image.bytes.data(), image.bytes.size());
            }
    }
    cases::execute(p.plan.get(), where, work, dev.stream());
    dev.wait();

    verdict v;
    images after;
    for (const tensor &t : tensors) {
        if (t.access == PLAIT_READ) {
            const bool in_place = std::any_of(tensors.begin(), tensors.end(),
                                              [&](const tensor &o) { return o.alias == t.role; });
            if (in_place) continue;
            guarded_image now(t.span_bytes());
            where.download_guarded(t.role, now.bytes.data(), now.bytes.size());
            if (now.bytes != inputs.at(t.role).bytes && v.damage.empty())
                v.damage = "the input " + t.name + " was changed";
            continue;
        }
        guarded_image now(t.span_bytes());
        where.download_guarded(t.role, now.bytes.data(), now.bytes.size());
        // In place, gaps hold what was uploaded: poison as well.
        if (const std::string what = now.untouched(t); !what.empty() && v.damage.empty())
            v.damage = what;
        after.emplace(t.role, std::move(now));
    }
    const cases::check_result checked =
        judge.check(which, p.how, fetch_from(inputs), fetch_from(after));
    v.values = checked.values;
    if (v.damage.empty()) v.damage = checked.wrong;
    return v;
}

nlohmann::ordered_json finite(double value) {
    return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json();
}

void report(const verify_arguments &a, const table &columns, const std::string &token,
            const std::string &candidate, const session &s, const verdict &v) {
    if (a.json) {
        nlohmann::ordered_json j;
        j["token"] = token;
        j["candidate"] = candidate;
        j["device"] = s.fingerprint;
        j["error"] = finite(v.values.error);
        j["bound"] = v.values.bound;
        j["ratio"] = finite(v.values.ratio);
        j["compared"] = v.values.compared;
        j["worst"] = v.values.worst;
        j["damage"] = v.damage;
        j["seed"] = a.seed;
        j["ok"] = v.good();
        std::printf("%s\n", j.dump().c_str());
        return;
    }
    columns.row({candidate, number(v.values.error), number(v.values.bound), number(v.values.ratio),
                 std::to_string(v.values.compared), v.good() ? "ok" : "WRONG"});
    if (!v.damage.empty()) std::printf("  %s\n", v.damage.c_str());
}

} // namespace

int run_verify(const verify_arguments &a) {
    std::vector<std::string> tokens = a.tokens;
    if (!a.suite.empty())
        for (std::string &t : read_suite(a.suite)) tokens.push_back(std::move(t));
    if (tokens.empty())
        throw failure(PLAIT_ERR_INVALID_ARGUMENT, "verify: give tokens or --suite FILE");
    if (!a.in.empty() && tokens.size() > 1)
        throw failure(PLAIT_ERR_INVALID_ARGUMENT, "--in goes with one token only");
    int bad = 0;
    tokens = well_formed(tokens, &bad);
    if (tokens.empty()) return bad;

    const session s(a.common);
    const std::unique_ptr<cases::device> dev = s.open();
    const table columns({{"candidate", 28, true},
                         {"error", 9},
                         {"bound", 9},
                         {"ratio", 9},
                         {"compared", 11},
                         {"", 5}});
    const int failed = for_each_token(tokens, [&](const std::string &token) {
        int code = 0;
        const cases::desc_ptr desc = cases::make_desc(token);
        const std::vector<tensor> tensors = cases::tensors_of(desc.get());
        const cases::token_parts parts = cases::split_token(token);
        const auto files = parse_files(a.in, tensors, "--in");
        for (const auto &[role, path] : files)
            if (!cases::find_tensor(tensors, role)->reads())
                throw failure(PLAIT_ERR_INVALID_ARGUMENT,
                              "--in " + std::string(plait_role_name(role)) + ": is an output");
        const std::vector<planned> plans = make_plans(s, desc.get(), a.all);
        need_memory(*dev, token, cases::placement::bytes_needed(tensors));
        images inputs = make_inputs(parts, tensors, files, a.seed);
        const std::unique_ptr<cases::checker> judge = cases::make_checker(token, tensors);
        const int64_t by_size = default_elements / std::max<int64_t>(judge->elements(), 1);
        const std::vector<int64_t> which =
            cases::pick_parts(judge->parts(), a.sample > 0 ? a.sample : by_size);
        if (!a.json) {
            std::printf("%s on %s\n", token.c_str(), s.fingerprint.c_str());
            columns.head();
        }
        progress line("verifying " + token, static_cast<int64_t>(plans.size()));
        for (size_t i = 0; i < plans.size(); ++i) {
            line.at(static_cast<int64_t>(i));
            const verdict v = verify_plan(plans[i], token, tensors, inputs,
                                          !files.count(PLAIT_RESERVE), which, *judge, *dev);
            report(a, columns, token, plans[i].candidate, s, v);
            if (!v.good()) code = 1;
        }
        return code;
    });
    return bad != 0 ? bad : failed;
}

} // namespace plait::cli
