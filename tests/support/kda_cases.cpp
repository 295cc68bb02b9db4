#include "tests/support/kda_cases.h"

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

namespace plait::test {
namespace {

using nlohmann::json;

kda_case read(const json &j) {
    kda_case out;
    out.name = j.at("name");
    kda_call &c = out.forward;
    c.q = PLAIT_F64;
    c.batch = 1;
    c.length = j.at("T");
    c.heads = j.at("H");
    c.value_heads = j.at("HV");
    c.dim_k = j.at("K");
    c.dim_v = j.at("V");
    const std::vector<int64_t> lens = j.at("lens");
    if (lens.size() != 1) {
        c.varlen = {static_cast<int64_t>(lens.size()), c.length};
        out.in.offsets.push_back(0);
        for (const int64_t n : lens) out.in.offsets.push_back(out.in.offsets.back() + n);
    }
    if (j.at("qk_norm")) c.eps = j.at("eps").get<double>();
    const std::string gate = j.at("gate");
    c.gate = gate == "log"        ? PLAIT_GATE_LOG
             : gate == "softplus" ? PLAIT_GATE_SOFTPLUS
                                  : PLAIT_GATE_BOUNDED;
    if (c.gate == PLAIT_GATE_BOUNDED) c.lower_bound = j.at("lower_bound");
    if (j.at("beta_logit")) c.beta_scale = j.at("beta_scale").get<double>();
    c.scale = j.at("scale").get<double>();
    const json &inputs = j.at("inputs");
    if (c.gate == PLAIT_GATE_BOUNDED && !inputs.contains("a_log")) c.dropped.push_back(PLAIT_A_LOG);
    if (inputs.contains("dt_bias")) c.used.push_back(PLAIT_DT_BIAS);
    if (inputs.contains("state_in")) c.used.push_back(PLAIT_STATE_IN);
    c.used.push_back(PLAIT_STATE_OUT); // every case has its last state
    out.backward = c;
    out.backward.direction = PLAIT_BACKWARD;
    if (!inputs.contains("dstate_out")) out.backward.dropped.push_back(PLAIT_DSTATE_OUT);

    const std::pair<const char *, plait_role> names[] = {
        {"q", PLAIT_Q},
        {"k", PLAIT_K},
        {"v", PLAIT_V},
        {"g", PLAIT_G},
        {"beta", PLAIT_BETA},
        {"o", PLAIT_O},
        {"a_log", PLAIT_A_LOG},
        {"dt_bias", PLAIT_DT_BIAS},
        {"state_in", PLAIT_STATE_IN},
        {"state_out", PLAIT_STATE_OUT},
        {"do", PLAIT_DO},
        {"dq", PLAIT_DQ},
        {"dk", PLAIT_DK},
        {"dv", PLAIT_DV},
        {"dg", PLAIT_DG},
        {"dbeta", PLAIT_DBETA},
        {"da_log", PLAIT_DA_LOG},
        {"ddt_bias", PLAIT_DDT_BIAS},
        {"dstate_in", PLAIT_DSTATE_IN},
        {"dstate_out", PLAIT_DSTATE_OUT},
    };
    const auto take = [&](const json &from, std::map<plait_role, kda_array> &to) {
        for (const auto &[key, value] : from.items()) {
            const plait_role *role = nullptr;
            for (const auto &name : names)
                if (key == name.first) role = &name.second;
            if (!role) throw std::invalid_argument("a case has an unknown array " + key);
            kda_array a(c.shape(*role));
            if (a.v.size() != value.size())
                throw std::invalid_argument("a case has an array of another size: " + key);
            for (size_t e = 0; e < a.v.size(); ++e) a.v[e] = value[e].get<double>();
            to[*role] = a;
        }
    };
    take(inputs, out.in.arrays);
    take(j.at("expected"), out.expected.arrays);
    out.in.arrays[PLAIT_STATE_OUT] = kda_array(c.shape(PLAIT_STATE_OUT), std::nanl(""));
    return out;
}

} // namespace

const std::vector<kda_case> &kda_cases() {
    static const std::vector<kda_case> all = [] {
        std::vector<std::string> folders;
        if (const char *given = std::getenv("PLAIT_TEST_CASES")) folders.push_back(given);
        folders.insert(folders.end(), {PLAIT_TEST_CASES, "tests/cases"});
        for (const std::string &folder : folders) {
            std::ifstream file(folder + "/kda.json");
            if (!file) continue;
            std::vector<kda_case> cases;
            const json whole = json::parse(file);
            for (const json &j : whole.at("cases")) cases.push_back(read(j));
            return cases;
        }
        throw std::runtime_error("kda.json not found; set PLAIT_TEST_CASES to its folder");
    }();
    return all;
}

} // namespace plait::test
