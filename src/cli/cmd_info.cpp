// plait info: the build, the devices, what the planner knows of them.
#include "src/cli/commands.h"
#include "src/cli/options.h"

#include <cstdio>
#include <nlohmann/json.hpp>
#include <sstream>

namespace plait::cli {
namespace {

struct found {
    plait_backend backend;
    int number;
    std::string profile;
};

nlohmann::ordered_json as_json(const found &f) {
    nlohmann::ordered_json out;
    out["backend"] = f.backend == PLAIT_CUDA ? "cuda" : "cpu";
    out["device"] = f.number;
    out["profile"] = f.profile;
    return out;
}

int info(const options &o, bool json) {
    std::vector<found> devices;
    if (!o.profile.empty()) {
        const session s(o);
        devices.push_back({s.backend, 0, cases::profile_of(s.context.get())});
    } else {
        for (const plait_backend backend : {PLAIT_CUDA, PLAIT_CPU}) {
            const bool wanted =
                o.backend.empty() || (o.backend == "cuda") == (backend == PLAIT_CUDA);
            if (!wanted) continue;
            int count = 0;
            cases::check(plait_device_count(backend, &count));
            if (count == 0 && !o.backend.empty())
                throw cases::failure(PLAIT_ERR_NO_DEVICE,
                                     "there is no device of the backend " + o.backend);
            for (int i = 0; i < count; ++i) {
                if (o.device && *o.device != i) continue;
                const cases::context_ptr ctx = cases::make_context(backend, i);
                if (backend == PLAIT_CPU && o.threads > 0)
                    cases::check(plait_context_set_threads(ctx.get(), o.threads));
                devices.push_back({backend, i, cases::profile_of(ctx.get())});
            }
        }
        if (devices.empty())
            throw cases::failure(PLAIT_ERR_NO_DEVICE,
                                 "there is no device " + std::to_string(o.device.value_or(0)));
    }
    if (json) {
        nlohmann::ordered_json out;
        out["version"] = plait_version();
        out["build"] = plait_build_info();
        out["devices"] = nlohmann::json::array();
        for (const found &f : devices) out["devices"].push_back(as_json(f));
        // The name of a machine may have any bytes.
        const std::string text = out.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
        std::printf("%s\n", text.c_str());
        return 0;
    }
    std::printf("build   %s\n", plait_build_info());
    for (const found &f : devices) {
        std::printf("\n%s device %d\n", f.backend == PLAIT_CUDA ? "cuda" : "cpu", f.number);
        std::istringstream lines(f.profile);
        for (std::string line; std::getline(lines, line);) std::printf("  %s\n", line.c_str());
    }
    return 0;
}

/// A profile alone, as --profile reads it.
int print_profile(const options &o) {
    const session s(o);
    std::printf("%s", cases::profile_of(s.context.get()).c_str());
    return 0;
}

} // namespace

int run_info(const info_arguments &a) {
    return a.profile_text ? print_profile(a.common) : info(a.common, a.json);
}

} // namespace plait::cli
