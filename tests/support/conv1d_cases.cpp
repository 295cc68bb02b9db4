#include "tests/support/conv1d_cases.h"

#include <cmath>
#include <cstdlib>
#include <fstream>

namespace plait::test {
namespace {

using nlohmann::json;

long double number_of(const json &j) {
    if (!j.is_string()) return j.get<double>();
    const std::string s = j;
    if (s == "nan") return std::nanl("");
    return s == "inf" ? HUGE_VALL : -HUGE_VALL;
}

/// Values in their order; a nested list of any depth.
void flatten(const json &j, std::vector<long double> &out) {
    if (j.is_array())
        for (const json &part : j) flatten(part, out);
    else
        out.push_back(number_of(j));
}

conv1d_array array_of(const json &j, const std::vector<int64_t> &shape) {
    conv1d_array a(shape[0], shape[1], shape[2]);
    std::vector<long double> v;
    flatten(j, v);
    if (v.size() != a.v.size()) throw std::invalid_argument("a case has an array of another size");
    a.v = v;
    return a;
}

bool has(const json &j, const char *key) { return j.contains(key) && !j.at(key).is_null(); }

template <class T> std::vector<T> integers(const json &j) {
    std::vector<long double> v;
    flatten(j, v);
    return {v.begin(), v.end()};
}

int64_t depth(const json &j, int level) {
    const json *at = &j;
    for (int i = 0; i < level; ++i) {
        if (at->empty()) return 0;
        at = &at->front();
    }
    return static_cast<int64_t>(at->size());
}

/// The call of one set of inputs. `x` and `position` stand in a step of a chain.
conv1d_call call_of(const std::string &op, const json &in, const json &step, const json &expected,
                    plait_dtype type) {
    conv1d_call c;
    const bool packed = op.find("varlen") != std::string::npos;
    const bool update = op.rfind("update", 0) == 0, backward = op.rfind("bwd", 0) == 0;
    c.direction = update ? PLAIT_UPDATE : backward ? PLAIT_BACKWARD : PLAIT_FORWARD;
    c.x = type;
    c.width = depth(in.at("w"), 1);
    c.channels = static_cast<int64_t>(in.at("w").size());
    const json &x = step.at("x");
    c.batch = packed ? 1 : static_cast<int64_t>(x.size());
    c.length = depth(x, packed ? 1 : 2);
    c.silu = in.at("act") == "silu";
    const auto use = [&](bool wanted, plait_role role) {
        if (wanted) c.used.push_back(role);
    };
    use(has(in, "bias"), PLAIT_BIAS);
    if (in.contains("entries")) c.entries = in.at("entries").get<int64_t>();
    if (packed) {
        const auto cu = integers<int64_t>(in.at("cu_seqlens"));
        c.varlen = {static_cast<int64_t>(cu.size()) - 1, c.length};
    }
    if (has(in, "slots"))
        c.slots = {static_cast<int64_t>(in.at("state").size()), in.at("pad").get<int32_t>()};
    if (update) {
        c.ring = has(step, "position");
        c.entries = depth(in.at("state"), 2);
    } else if (has(in, "state")) { // a pool, in place
        c.used.insert(c.used.end(), {PLAIT_STATE_IN, PLAIT_STATE_OUT});
        c.alias = true;
    } else {
        use(has(in, "state_in"), PLAIT_STATE_IN);
        use(expected.contains("state_out") || has(in, "dstate_out"), PLAIT_STATE_OUT);
    }
    use(has(in, "seq_idx"), PLAIT_SEQ_IDX);
    return c;
}

conv1d_inputs inputs_of(const conv1d_call &c, const json &in, const json &step) {
    conv1d_inputs out = inputs_of(c);
    out.x = array_of(step.at("x"), c.shape(PLAIT_X));
    out.w = array_of(in.at("w"), c.shape(PLAIT_W));
    if (out.bias) out.b = array_of(in.at("bias"), c.shape(PLAIT_BIAS));
    const char *state = has(in, "state") ? "state" : "state_in";
    if (has(in, state)) out.state = array_of(in.at(state), c.shape(PLAIT_STATE));
    const std::vector<int64_t> n = c.shape(PLAIT_STATE_OUT);
    if (out.last_state && out.op == conv1d_op::forward)
        out.state_out = c.alias ? out.state : conv1d_array(n[0], n[1], n[2], std::nanl(""));
    if (has(in, "dy")) out.dy = array_of(in.at("dy"), c.shape(PLAIT_DY));
    if (has(in, "dstate_out"))
        out.dstate_out = array_of(in.at("dstate_out"), c.shape(PLAIT_DSTATE_OUT));
    if (has(in, "seq_idx")) out.seq_idx = integers<int32_t>(in.at("seq_idx"));
    if (has(in, "cu_seqlens")) out.offsets = integers<int64_t>(in.at("cu_seqlens"));
    if (has(in, "slots")) out.slot = integers<int32_t>(in.at("slots"));
    if (c.ring) out.position = integers<int32_t>(step.at("position"));
    return out;
}

} // namespace

std::vector<conv1d_step> conv1d_case::steps(plait_dtype type) const {
    const json &in = text.at("inputs"), &expected = text.at("expected");
    const auto one = [&](const json &step) {
        conv1d_step s;
        s.call = call_of(op(), in, step, expected, type);
        s.in = inputs_of(s.call, in, step);
        return s;
    };
    const auto want = [&](conv1d_step &s, plait_role role, const json &j) {
        s.expected[role] = array_of(j, s.call.shape(role));
    };
    std::vector<conv1d_step> all;
    if (op() == "update_chain") {
        for (const json &step : in.at("steps")) {
            conv1d_step s = one(step);
            s.state_follows = !all.empty();
            want(s, PLAIT_Y, expected.at("y").at(all.size()));
            all.push_back(s);
        }
        want(all.back(), PLAIT_STATE, expected.at("state"));
        return all;
    }
    if (op() == "update_sequence") {
        const int64_t length = depth(in.at("x"), 2);
        for (int64_t t = 0; t < length; ++t) {
            json x = json::array(), y = json::array();
            for (size_t b = 0; b < in.at("x").size(); ++b) {
                x.push_back(json::array());
                y.push_back(json::array());
                for (size_t c = 0; c < in.at("x")[b].size(); ++c) {
                    x[b].push_back(json::array({in.at("x")[b][c][static_cast<size_t>(t)]}));
                    y[b].push_back(json::array({expected.at("y")[b][c][static_cast<size_t>(t)]}));
                }
            }
            conv1d_step s = one({{"x", x}});
            s.state_follows = t > 0;
            want(s, PLAIT_Y, y);
            want(s, PLAIT_STATE, expected.at("state_after").at(static_cast<size_t>(t)));
            all.push_back(s);
        }
        return all;
    }
    conv1d_step s = one(in);
    const bool update = s.call.direction == PLAIT_UPDATE;
    const std::pair<const char *, plait_role> names[] = {
        {"y", PLAIT_Y},
        {"state_out", PLAIT_STATE_OUT},
        {"state", update ? PLAIT_STATE : PLAIT_STATE_OUT},
        {"dx", PLAIT_DX},
        {"dw", PLAIT_DW},
        {"dbias", PLAIT_DBIAS},
        {"dstate_in", PLAIT_DSTATE_IN}};
    for (const auto &[key, role] : names)
        if (expected.contains(key)) want(s, role, expected.at(key));
    if (expected.size() != s.expected.size())
        throw std::invalid_argument("a case lists an unknown result");
    return {s};
}

const std::vector<conv1d_case> &conv1d_cases() {
    static const std::vector<conv1d_case> all = [] {
        std::vector<std::string> folders;
        if (const char *given = std::getenv("PLAIT_TEST_CASES")) folders.push_back(given);
        folders.insert(folders.end(), {PLAIT_TEST_CASES, "tests/cases"});
        for (const std::string &folder : folders) {
            std::ifstream file(folder + "/conv1d.json");
            if (!file) continue;
            const json whole = json::parse(file);
            std::vector<conv1d_case> cases;
            for (const json &j : whole.at("cases")) cases.push_back({j});
            return cases;
        }
        throw std::runtime_error("conv1d.json not found; set PLAIT_TEST_CASES to its folder");
    }();
    return all;
}

} // namespace plait::test
