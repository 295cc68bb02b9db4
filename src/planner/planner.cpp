#include "src/planner/planner.h"

#include "src/core/log.h"
#include "src/core/status.h"
#include "src/planner/operands.h"

#include <algorithm>
#include <chrono>
#include <climits>
#include <mutex>

namespace plait::impl {

namespace {

/// How many candidates MEASURE times.
constexpr int measure_best = 4;
/// Seconds for one candidate when nobody set a limit: a median of many runs of any usual size.
constexpr double seconds_per_candidate = 1.0;

/// The narrowest floating tensor when it has 16 bits.
const tensor *half_tensor(const problem &p) {
    for (const tensor &t : p.tensors)
        if (t.dtype == PLAIT_F16 || t.dtype == PLAIT_BF16) return &t;
    return nullptr;
}

/// How far a candidate came before a rule refused it; the nearest one came furthest.
enum class stage {
    backend,
    pattern,
    kind, ///< the candidate is for other problems
    problem,
    memory, ///< the device's alone stands in the way
    math,
    determinism,
    workspace,
    measured,
    admitted
};

struct considered {
    ranked row;
    stage reached = stage::admitted;
    pipeline steps; ///< where it was built to learn its workspace
};

class selection {
public:
    /// `sizes`: learn the workspace of every candidate, for printing.
    selection(const problem &p, const profile &device, const preferences &pref, const wisdom &known,
              bool sizes)
        : problem_(p), device_(device), roomy_(device), pref_(pref) {
        roomy_.memory_bytes = 0; // unknown: no limit
        const std::string fingerprint = device.fingerprint();
        const std::string generic = device.generic_fingerprint();
        for (const candidate &c : candidates_of(p.family)) {
            considered entry;
            entry.row.what = &c;
            entry.row.refusal = judge(c, entry.reached);
            if (entry.reached == stage::admitted) {
                if (sizes || pref.workspace_limit) {
                    entry.steps = c.build(p, device);
                    entry.row.work_bytes = entry.steps.work.bytes();
                }
                limit_workspace(entry);
            }
            if (entry.reached == stage::admitted) {
                entry.row.estimate = c.estimate(p, device);
                entry.row.measured = known.find(p.token, fingerprint, c);
                if (!generic.empty()) entry.row.generic = known.find(p.token, generic, c);
            }
            all.push_back(std::move(entry));
        }
        sort();
        if (log_wants(PLAIT_LOG_DISPATCH)) log();
    }

    void sort() {
        std::stable_sort(all.begin(), all.end(), [](const considered &a, const considered &b) {
            const bool yes_a = a.reached == stage::admitted, yes_b = b.reached == stage::admitted;
            if (yes_a != yes_b) return yes_a;
            if (!yes_a) return false;
            // The definition is for what nothing else takes: where two problems must give the same
            // bits (a prefill and its steps), it must not be the choice for one of them.
            const bool definition_a = a.row.what->operands == narrowest::exact;
            const bool definition_b = b.row.what->operands == narrowest::exact;
            if (definition_a != definition_b) return definition_b;
            if (a.row.measured.has_value() != b.row.measured.has_value())
                return a.row.measured.has_value();
            if (a.row.measured) return *a.row.measured < *b.row.measured;
            if (a.row.generic.has_value() != b.row.generic.has_value())
                return a.row.generic.has_value();
            if (a.row.generic) return *a.row.generic < *b.row.generic;
            if (a.row.what->general != b.row.what->general) return b.row.what->general;
            return a.row.estimate.seconds < b.row.estimate.seconds;
        });
    }

    bool none() const { return all.empty() || all.front().reached != stage::admitted; }

    /// The last of those that came furthest: general candidates stand behind special ones.
    const considered *nearest() const {
        const considered *best = nullptr;
        for (const considered &entry : all)
            if (!best || entry.reached >= best->reached) best = &entry;
        return best;
    }

    std::vector<considered> all;

private:
    verdict judge(const candidate &c, stage &reached) const {
        reached = stage::backend;
        if (c.backend != device_.backend)
            return text("backend ", backend_name(c.backend), "; this context is ",
                        backend_name(device_.backend));
        reached = stage::pattern;
        if (!pattern_admits(pref_.pattern, c.name))
            return text("the pattern \"", pref_.pattern, "\" excludes it");
        reached = stage::problem;
        verdict rule = fits_counts(problem_);
        if (!rule.empty()) return rule;
        rule = c.applicable(problem_, device_);
        if (!rule.empty()) {
            if (c.concerns && !c.concerns(problem_))
                reached = stage::kind;
            else if (c.applicable(problem_, roomy_).empty())
                reached = stage::memory;
            return rule;
        }
        reached = stage::math;
        if (pref_.math == PLAIT_MATH_F32 && c.operands == narrowest::stored)
            if (const tensor *half = half_tensor(problem_))
                return text("it rounds to ", dtype_of(half->dtype).name,
                            " between passes; math=f32 does not admit it");
        if (pref_.math != PLAIT_MATH_TF32 && c.operands == narrowest::tf32)
            return "it rounds F32 operands to TF32; needs math=tf32";
        reached = stage::determinism;
        if (pref_.determinism == PLAIT_RUN_TO_RUN && !c.run_to_run)
            return "its sums depend on the order of blocks; determinism=run_to_run excludes it";
        reached = stage::admitted;
        return "";
    }

    void limit_workspace(considered &entry) const {
        if (!pref_.workspace_limit) return;
        if (static_cast<uint64_t>(entry.row.work_bytes) <= *pref_.workspace_limit) return;
        entry.reached = stage::workspace;
        entry.row.refusal = text("its workspace of ", entry.row.work_bytes,
                                 " bytes is over the limit of ", *pref_.workspace_limit);
    }

    void log() const {
        for (const considered &entry : all) {
            std::string line = text(problem_.token, ": ", entry.row.what->name, ": ");
            if (entry.reached == stage::admitted) {
                line += text("ok, estimate ", entry.row.estimate.seconds, " s");
                if (entry.row.measured) line += text(", wisdom ", *entry.row.measured, " s");
            } else {
                line += text("no, ", entry.row.refusal);
            }
            log_line(PLAIT_LOG_DISPATCH, line);
        }
    }

    const problem &problem_;
    const profile &device_;
    profile roomy_;
    const preferences &pref_;
};

[[noreturn]] void refuse(const problem &p, const profile &device, const selection &from) {
    const considered *near = from.nearest();
    if (!near) fail(PLAIT_ERR_NOT_SUPPORTED, p.token, ": family ", p.family, " has no candidates");
    if (near->reached == stage::backend)
        fail(PLAIT_ERR_NOT_SUPPORTED, p.token, ": family ", p.family,
             " has no candidate on backend ", backend_name(device.backend), " yet; there is ",
             near->row.what->name);
    fail(PLAIT_ERR_NOT_SUPPORTED, p.token, ": no candidate applies on ", device.fingerprint(),
         "; the nearest is ", near->row.what->name, ": ", near->row.refusal);
}

/// These speak of the caller or of plait, not of one candidate.
bool concerns_everything(plait_status code) {
    return code == PLAIT_ERR_CAPTURING || code == PLAIT_ERR_NO_DEVICE || code == PLAIT_ERR_INTERNAL;
}

/// One measurement at a time: two would share the device and both be wrong.
std::mutex &measuring() {
    static std::mutex one;
    return one;
}

/// Times candidates and records the times. Returns those that were timed in this call.
std::vector<const candidate *> measure(const problem &p, const profile &device,
                                       const preferences &pref, wisdom &known, const backend *where,
                                       allocator *memory, selection &from) {
    using clock = std::chrono::steady_clock;
    const clock::time_point start = clock::now();
    const auto left = [&] {
        if (!pref.time_limit) return seconds_per_candidate;
        const double gone = std::chrono::duration<double>(clock::now() - start).count();
        return *pref.time_limit - gone;
    };
    const std::string fingerprint = device.fingerprint();
    std::vector<considered *> queue;
    for (considered &entry : from.all)
        if (entry.reached == stage::admitted) queue.push_back(&entry);
    std::stable_sort(queue.begin(), queue.end(), [](const considered *a, const considered *b) {
        const bool definition_a = a->row.what->operands == narrowest::exact;
        const bool definition_b = b->row.what->operands == narrowest::exact;
        if (definition_a != definition_b) return definition_b; // it is not the choice anyway
        return a->row.estimate.seconds < b->row.estimate.seconds;
    });
    const int wanted = pref.rigor == PLAIT_EXHAUSTIVE ? INT_MAX : measure_best;
    std::vector<const candidate *> timed;
    std::optional<failure> first_failure;
    std::shared_ptr<allocator> own;
    int done = 0;
    const std::lock_guard<std::mutex> lock(measuring());
    for (considered *entry : queue) {
        if (done == wanted) break;
        const candidate &c = *entry->row.what;
        // Another thread may have measured it while this one waited for the lock.
        entry->row.measured = known.find(p.token, fingerprint, c);
        if (entry->row.measured) {
            ++done;
            continue;
        }
        const double budget = left();
        if (done > 0 && budget <= 0) break; // at least one, then the best so far
        if (!where)
            fail(PLAIT_ERR_NO_DEVICE, p.token, ": rigor=", rigor_name(pref.rigor),
                 " has to measure, and this context has no device");
        try {
            if (!memory && !own) own = where->default_allocator();
            const pipeline steps = c.build(p, device);
            const double seconds = where->measure(steps, p, memory ? *memory : *own,
                                                  std::clamp(budget, 0.0, seconds_per_candidate));
            known.record(p.token, fingerprint, c, seconds);
            entry->row.measured = known.find(p.token, fingerprint, c);
            if (!entry->row.measured) fail(PLAIT_ERR_DEVICE, "it measured ", seconds, " seconds");
            timed.push_back(&c);
            ++done;
            log_line(PLAIT_LOG_DISPATCH, text(p.token, ": ", c.name, ": measured ", seconds, " s"));
        } catch (const failure &f) {
            if (concerns_everything(f.code())) throw;
            entry->reached = stage::measured;
            entry->row.refusal = text("measuring it failed: ", f.what());
            if (!first_failure) first_failure = f;
            log_line(PLAIT_LOG_DISPATCH, text(p.token, ": ", c.name, ": no, ", entry->row.refusal));
        }
    }
    if (done == 0 && first_failure)
        fail(first_failure->code(), p.token,
             ": no candidate could be measured; the first: ", first_failure->what());
    return timed;
}

} // namespace

const std::vector<candidate> &candidates_of(const std::string &family) {
    static const std::vector<candidate> none;
    if (family == "wht") return wht_table();
    if (family == "conv1d.fwd") return conv1d_fwd_table();
    if (family == "conv1d.bwd") return conv1d_bwd_table();
    if (family == "conv1d.update") return conv1d_update_table();
    if (family == "kda.fwd") return kda_fwd_table();
    if (family == "kda.bwd") return kda_bwd_table();
    return none;
}

std::vector<ranked> rank(const problem &p, const profile &device, const preferences &pref,
                         const wisdom &known) {
    selection chosen(p, device, pref, known, true);
    std::vector<ranked> rows;
    for (considered &entry : chosen.all) rows.push_back(std::move(entry.row));
    return rows;
}

choice choose(const problem &p, const profile &device, const preferences &pref, wisdom &known,
              const backend *where, allocator *memory) {
    choice out;
    if (p.empty) {
        out.source = choice_source::empty;
        log_line(PLAIT_LOG_PLAN, text(p.token, " is empty: no steps"));
        return out;
    }
    selection from(p, device, pref, known, false);
    if (from.none()) refuse(p, device, from);
    std::vector<const candidate *> timed;
    if (pref.wisdom_only) {
        if (!from.all.front().row.measured && !from.all.front().row.generic)
            fail(PLAIT_ERR_NO_WISDOM, p.token, ": wisdom has no time on ", device.fingerprint(),
                 " for any candidate that applies");
    } else if (pref.rigor != PLAIT_ESTIMATE) {
        timed = measure(p, device, pref, known, where, memory, from);
        from.sort();
    }

    considered &best = from.all.front();
    out.what = best.row.what;
    out.estimate = best.row.estimate;
    out.measured = best.row.measured;
    const bool fresh = std::find(timed.begin(), timed.end(), out.what) != timed.end();
    out.source = fresh              ? choice_source::measured
                 : out.measured     ? choice_source::wisdom
                 : best.row.generic ? choice_source::generic
                                    : choice_source::estimate;
    out.steps = best.steps.steps.empty() ? out.what->build(p, device) : std::move(best.steps);
    if (log_wants(PLAIT_LOG_PLAN))
        log_line(PLAIT_LOG_PLAN,
                 text(p.token, " on ", device.fingerprint(), " -> ", out.what->name, " by ",
                      choice_source_name(out.source), ", estimate ", out.estimate.seconds,
                      " s, workspace ", out.steps.work.bytes()));
    return out;
}

} // namespace plait::impl
