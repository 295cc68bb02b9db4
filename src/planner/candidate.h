// One way to solve a problem. The tables of these are the whole choice that plait has.
#pragma once

#include "src/desc/problem.h"
#include "src/pipeline/pipeline.h"
#include "src/planner/profile.h"

namespace plait::impl {

/// "" = applicable; else the sentence of the first rule that failed.
using verdict = std::string;

struct cost {
    double seconds = 0;
    double memory_seconds = 0;  ///< bytes at the copy bandwidth
    double compute_seconds = 0; ///< arithmetic and on-chip exchange
    double launch_seconds = 0;
};

/// The narrowest operand between load and store: filter for plait_pref_set_math, and the unit
/// roundoff of the test bound.
///   exact   the definition: F64, wide integers
///   f64     always F64
///   f32     the accumulate type: F64 where the call has an F64 tensor, else F32
///   stored  as narrow as the narrowest tensor of the call: rounds between passes
///   tf32    rounds F32 operands to TF32, 11 bits; only where the caller said math=tf32
enum class narrowest { exact, f64, f32, stored, tf32 };

struct candidate {
    const char *name; ///< "wht.cuda.two_pass.tiled"
    int revision;     ///< bumped when its kernels change; wisdom of other revisions is skipped
    plait_backend backend;
    narrowest operands;
    bool run_to_run; ///< no order-dependent sums
    /// Total and cheap. Rules that all candidates of a backend share come first.
    verdict (*applicable)(const problem &, const profile &);
    cost (*estimate)(const problem &, const profile &);  ///< only after applicable() was ""
    pipeline (*build)(const problem &, const profile &); ///< only after applicable() was ""
    /// Takes what others take too: chosen where no other is, or where it was measured to be faster.
    bool general = false;
    /// Whether a refusal tells the caller something: the problem is of the kind that it is for.
    /// Null: always.
    bool (*concerns)(const problem &) = nullptr;
};

/// THE LISTS: wht_table.cpp, conv1d_table.cpp, kda_table.cpp.
const std::vector<candidate> &wht_table();
const std::vector<candidate> &conv1d_fwd_table();
const std::vector<candidate> &conv1d_bwd_table();
const std::vector<candidate> &conv1d_update_table();
const std::vector<candidate> &kda_fwd_table();
const std::vector<candidate> &kda_bwd_table();

/// All candidates of a family, in the order that breaks ties; none for an unknown family.
const std::vector<candidate> &candidates_of(const std::string &family);

} // namespace plait::impl
