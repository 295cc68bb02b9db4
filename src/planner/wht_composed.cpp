// The steps of wht.cuda.composed, in their order:
//   clear what is counted or reported; ROWS: STATUS, chains of an adjoint
//   input side and big factors: wht.factor for each, or wht.widen, or nothing
//   the steps of the best other candidate, which apply one side each where nothing else did; with
//   DIAG_MID twice
//   results: wht.finish into Y, wht.groups for AMAX and SCALES
// Between them the numbers are in one piece of the workspace, packed, in the accumulate type; in Y,
// where it can hold them, between two transforms and beside the diagonals of a plan in place: a
// state vector has no room for a second one.
#include "src/planner/wht_composed.h"

#include "lib/cuda/wht/l2_layout.h"
#include "src/core/text.h"
#include "src/planner/wht_any_tile.h"
#include "src/planner/wht_walks.h"

namespace plait::impl {

namespace {

/// Part of the copy bandwidth that a step around the passes reaches: an H200, widen and finish.
constexpr double step_share = 0.5;
/// Time of an addition of wht.factor, in instructions: an H200 at orders 64 and 172.
constexpr double factor_instructions = 8;
constexpr int64_t walking_blocks = 8; ///< of a multiprocessor
/// Numbers that may become one where they are halves: sums of that many of 32 bits fit 63.
constexpr int64_t most_halves = int64_t{1} << 31;

bool is_integer(scalar s) {
    return s == scalar::i8 || s == scalar::i16 || s == scalar::i32 || s == scalar::i64;
}

bool is_matrix(const wht_axis &a) {
    return a.transformed &&
           (a.factor == wht_factor::given || wht_factor_order(a.factor) > wht_any_most_factor);
}

/// The type of the numbers: wht_any_number_of, for X and Y of every type.
scalar numbers_of(const wht_problem &p, bool gather) {
    if (p.x == scalar::c64 || p.x == scalar::c128)
        return p.x == scalar::c128 || p.y == scalar::c128 ? scalar::c128 : scalar::c64;
    if (!is_integer(p.y))
        return p.x == scalar::f64 || p.y == scalar::f64 ? scalar::f64 : scalar::f32;
    if (!p.overflow) return p.y;
    // Results that ROWS leaves out may not fit, and those that SIGNS change: no sum is beyond 64
    // bits, but of i64, whose numbers are halves.
    return gather || p.x == scalar::i64 || (p.adjoint && p.signs) ? scalar::i64 : p.y;
}

} // namespace

wht_composer::wht_composer(const problem &problem, const profile &device)
    : problem_(problem), p_(problem.wht()), device_(device),
      gather_(p_.rows_type != scalar::none && !p_.adjoint),
      scatter_(p_.rows_type != scalar::none && p_.adjoint),
      halves_(p_.overflow && p_.x == scalar::i64 && (gather_ || (p_.adjoint && p_.signs))) {
    w_ = numbers_of(p_, gather_);
    int64_t packed = 1;
    for (int a = p_.axes; a-- > 0;) {
        const wht_axis &ax = p_.axis[a];
        if (!is_matrix(ax)) {
            index_.push_back({ax, packed, false});
        } else {
            const int m =
                ax.factor == wht_factor::given ? p_.given_order : wht_factor_order(ax.factor);
            wht_axis bits = ax, outer = ax;
            bits.length = ax.length / m;
            bits.factor = wht_factor::h1;
            if (bits.length > 1) index_.push_back({bits, packed, false});
            outer.length = m;
            outer.transformed = false;
            for (int64_t wht_axis::*s :
                 {&wht_axis::x_stride, &wht_axis::y_stride, &wht_axis::signs_stride,
                  &wht_axis::diag_stride, &wht_axis::diag_in_stride, &wht_axis::diag_mid_stride})
                outer.*s *= bits.length;
            index_.push_back({outer, packed * bits.length, true});
        }
        packed *= ax.length;
    }
    std::reverse(index_.begin(), index_.end());
    refusal = rules();
    if (refusal.empty()) make();
}

verdict wht_composer::rules() const {
    if (index_.size() + (halves_ ? 1 : 0) > static_cast<size_t>(wht_max_axes))
        return "it has too many axes";
    const int64_t most = std::max(elements() / std::max<int64_t>(transforms(), 1), p_.rows);
    if (halves_ && most > most_halves)
        return text("overflow needs sums beyond 64 bits; n=", most, " is over ", most_halves);
    return "";
}

void wht_composer::make() {
    add_resets();
    const bool nothing = elements() == 0 || results() == 0 || transforms() == 0;
    if (!nothing) {
        add_rows();
        add_front(false);
        if (refusal.empty()) add_transform(false);
        if (p_.diag_mid != scalar::none && refusal.empty()) {
            if (matrices()) add_front(true);
            if (refusal.empty()) add_transform(true);
        }
    }
    if (!refusal.empty()) return;
    if (!nothing && finishes()) add_finish();
    if (p_.amax != scalar::none || p_.scales) {
        if (nothing || !p_.scales) add_groups(); // else between the two walks of add_finish
    }
    if (refusal.empty()) book_pieces();
}

// ---- What the problem needs ------------------------------------------------------------------

const char *wht_composer::number_name() const {
    return w_ == scalar::i32 || w_ == scalar::i64 ? "integer" : scalar_name(w_);
}
int64_t wht_composer::touched(plait_role role) const {
    const tensor *t = problem_.find(role);
    if (!t) return 0;
    int64_t bits = dtype_of(t->dtype).bits;
    for (size_t a = 0; a < t->extents.size(); ++a)
        if (t->strides[a] != 0 || t->extents[a] == 0) bits *= t->extents[a];
    return (bits + 7) / 8;
}
bool wht_composer::narrow() const {
    return p_.x == scalar::i8 || p_.x == scalar::i16 || p_.x == scalar::b1;
}
bool wht_composer::matrices() const {
    return std::any_of(index_.begin(), index_.end(),
                       [](const wht_index_axis &i) { return i.matrix; });
}
bool wht_composer::widens() const {
    return narrow() || scatter_ || halves_ || matrices() ||
           (!p_.adjoint && p_.diag_in != scalar::none);
}
bool wht_composer::finishes() const {
    return gather_ || halves_ || p_.y == scalar::e4m3 || p_.amax != scalar::none || p_.scales ||
           p_.bins > 0 || !p_.stores || (p_.adjoint && p_.diag_in != scalar::none);
}
bool wht_composer::in_y() const {
    return p_.stores && !gather_ && !halves_ && p_.y == w_ &&
           (side_in_y() || !(p_.adjoint && p_.diag_in != scalar::none));
}
bool wht_composer::side_in_y() const {
    return p_.alias && p_.y == w_ && p_.adjoint && p_.diag_in != scalar::none;
}
bool wht_composer::begins_in_y() const {
    return p_.alias && p_.y == w_ && widens() && !scatter_ && !gather_ && !halves_ && !matrices();
}
bool wht_composer::meets() const {
    return p_.diag_mid != scalar::none && p_.stores && p_.y == w_ && !matrices() &&
           (!finishes() || (p_.alias && in_y()));
}
bool wht_composer::ends_in_y(bool second) const {
    const bool last = p_.diag_mid == scalar::none || second;
    return (last && (!finishes() || in_y())) || (!last && meets());
}
int64_t wht_composer::elements() const {
    int64_t n = 1;
    for (int a = 0; a < p_.axes; ++a) n *= p_.axis[a].length;
    return n;
}
int64_t wht_composer::transforms() const {
    int64_t n = 1;
    for (int a = 0; a < p_.axes; ++a) n *= p_.axis[a].transformed ? 1 : p_.axis[a].length;
    return n;
}
int64_t wht_composer::kept() const { return elements() * (halves_ ? 2 : 1); }
int64_t wht_composer::results() const { return gather_ ? transforms() * p_.rows : elements(); }

// ---- Steps -----------------------------------------------------------------------------------

operand wht_composer::work(piece which, bool written) const {
    return piece_operand(-1 - which, written); // until book_pieces()
}
operand wht_composer::role(plait_role role, bool in_use, bool written) const {
    return in_use ? role_operand(role, written) : operand{};
}

step &wht_composer::add(const char *kernel, const char *variant, const step_args &args,
                        std::vector<operand> operands, int64_t tiles) {
    step s;
    s.kernel = kernel;
    s.variant = variant;
    s.block = wht_walk_threads;
    s.grid = std::clamp<int64_t>(tiles, 1, device_.sms * walking_blocks);
    s.operands = std::move(operands);
    s.args = args;
    steps.steps.push_back(std::move(s));
    estimate.launch_seconds += device_.launch_seconds;
    estimate.seconds += device_.launch_seconds;
    return steps.steps.back();
}

void wht_composer::moves(step &s, int64_t read, int64_t written, int64_t flops) {
    s.bytes_read = read;
    s.bytes_written = written;
    s.flops = flops;
    const double memory =
        static_cast<double>(read + written) / (device_.copy_bandwidth * step_share);
    const bool wide = w_ == scalar::f64 || w_ == scalar::c128;
    const double compute = static_cast<double>(flops) * factor_instructions /
                           (wide ? device_.f64_per_second : device_.f32_per_second);
    estimate.memory_seconds += memory;
    estimate.compute_seconds += compute;
    estimate.seconds += std::max(memory, compute);
}

void wht_composer::reset(const operand &what, int64_t bytes) {
    wht_l2_reset_args args{};
    args.count = bytes / 4;
    step &s = add("wht.l2_reset", "u32", step_args(args), {what},
                  (args.count + wht_l2_reset_threads - 1) / wht_l2_reset_threads);
    s.block = wht_l2_reset_threads;
    moves(s, 0, bytes);
}

wht_problem wht_composer::inner(bool second) const {
    const bool twice = p_.diag_mid != scalar::none, last = !twice || second;
    const bool from_x = !second && !widens(), to_y = ends_in_y(second),
               from_y = second ? meets() : begins_in_y();
    wht_problem q = p_;
    q.diag_in = q.diag_mid = q.rows_type = q.amax = scalar::none;
    q.stores = true;
    q.scales = q.status = false;
    q.given_order = 0;
    q.bins = 0;
    q.rows = 0;
    q.overflow = p_.overflow && !gather_ && !halves_;
    if (!from_x) q.bound = 0; // a promise about X
    q.x = from_x ? p_.x : w_;
    q.y = to_y ? p_.y : w_;
    q.alias = from_x ? p_.alias && to_y : from_y == to_y;
    q.scale = last ? p_.scale : 1.0;
    int64_t wht_axis::*diag_stride = &wht_axis::diag_stride;
    const bool input_side = from_x || (second && !matrices()); // here and not in add_front
    if (!p_.adjoint) {
        q.signs = p_.signs && from_x;
        if (!last) {
            q.diag = p_.diag_mid;
            diag_stride = &wht_axis::diag_mid_stride;
        }
    } else {
        q.signs = p_.signs && last && !halves_;
        q.diag = !input_side ? scalar::none : second ? p_.diag_mid : p_.diag;
        if (second) diag_stride = &wht_axis::diag_mid_stride;
    }
    q.x_align = from_x ? p_.x_align : from_y ? p_.y_align : PLAIT_WORKSPACE_ALIGNMENT;
    q.y_align = to_y ? p_.y_align : PLAIT_WORKSPACE_ALIGNMENT;
    q.axes = 0;
    if (halves_) {
        wht_axis &half = q.axis[q.axes++] = wht_axis{};
        half.length = 2;
        half.x_stride = half.y_stride = elements();
    }
    for (const wht_index_axis &i : index_) {
        wht_axis a = i.axis;
        if (i.matrix) a.factor = wht_factor::h1;
        if (!from_x) a.x_stride = from_y ? a.y_stride : i.w_stride;
        if (!to_y) a.y_stride = i.w_stride;
        a.diag_stride = q.diag != scalar::none ? a.*diag_stride : 0;
        if (!q.signs) a.signs_stride = 0;
        // Batch axes that are packed now, although they were not in X or Y.
        wht_axis *outer = q.axes > 0 ? &q.axis[q.axes - 1] : nullptr;
        bool packed = outer && !outer->transformed && !a.transformed;
        for (int64_t wht_axis::*s : {&wht_axis::x_stride, &wht_axis::y_stride,
                                     &wht_axis::signs_stride, &wht_axis::diag_stride})
            packed = packed && outer->*s == a.*s * a.length;
        if (packed) {
            a.length *= outer->length;
            *outer = a;
        } else {
            q.axis[q.axes++] = a;
        }
    }
    return q;
}

const candidate *wht_composer::best_for(const impl::problem &q, cost *price) const {
    const candidate *best = nullptr;
    for (const candidate &c : wht_table()) {
        // Other roundings than those of the accumulate type are not for a part.
        if (c.backend != PLAIT_CUDA || c.operands != narrowest::f32) continue;
        const std::string name = c.name;
        if (name == "wht.cuda.composed") continue;
        // The diagonal has the type of the caller's X, which the others take for that of their x.
        const wht_problem &w = q.wht();
        if (w.diag != scalar::none && w.x != p_.x && name != "wht.cuda.any") continue;
        // wht.any knows all matrices up to order 40, and leaves some of them to this candidate.
        const bool takes = name == "wht.cuda.any" ? plan_wht_any(q.wht(), device_).refusal.empty()
                                                  : c.applicable(q, device_).empty();
        if (!takes) continue;
        const cost here = c.estimate(q, device_);
        const bool better =
            !best || (best->general != c.general ? best->general : here.seconds < price->seconds);
        if (!better) continue;
        best = &c;
        *price = here;
    }
    return best;
}

void wht_composer::add_transform(bool second) {
    impl::problem q = problem_; // its tensors are those that take memory
    q.form = inner(second);
    cost price;
    const candidate *by = best_for(q, &price);
    if (!by) {
        const wht_any_plan plan = plan_wht_any(q.wht(), device_);
        refusal = plan.refusal.empty() ? "no candidate takes its transform" : plan.refusal;
        return;
    }
    const bool last = p_.diag_mid == scalar::none || second;
    const bool from_x = !second && !widens(), to_y = ends_in_y(second),
               from_y = second ? meets() : begins_in_y();
    const plait_role diag = second               ? (p_.adjoint ? PLAIT_DIAG_MID : PLAIT_DIAG)
                            : last || p_.adjoint ? PLAIT_DIAG
                                                 : PLAIT_DIAG_MID;
    pipeline part = by->build(q, device_);
    // OVERFLOW was cleared before the input side.
    const auto clears = [](const step &s) {
        return s.kernel == "wht.l2_reset" && s.operands[0].from == operand::source::role;
    };
    const int first = static_cast<int>(steps.steps.size());
    const int cleared =
        static_cast<int>(std::count_if(part.steps.begin(), part.steps.end(), clears));
    std::vector<int> books;
    for (const impl::piece &one : part.work.pieces())
        books.push_back(steps.work.book(one.name, one.bytes,
                                        first + std::max(one.first_step - cleared, 0),
                                        first + one.last_step - cleared, one.align));
    for (step &s : part.steps) {
        if (clears(s)) continue;
        for (operand &o : s.operands) {
            if (o.from == operand::source::work) o.piece = books[static_cast<size_t>(o.piece)];
            if (o.from != operand::source::role) continue;
            const int64_t offset = o.offset;
            if (o.role == PLAIT_X && !from_x)
                o = from_y ? role_operand(PLAIT_Y, false) : work(numbers, false);
            if (o.role == PLAIT_Y && !to_y) o = work(numbers, o.written);
            if (o.role == PLAIT_DIAG) o.role = diag;
            o.offset = offset;
        }
        steps.steps.push_back(std::move(s));
    }
    estimate.seconds += price.seconds;
    estimate.memory_seconds += price.memory_seconds;
    estimate.compute_seconds += price.compute_seconds;
    estimate.launch_seconds += price.launch_seconds;
}

void wht_composer::book_pieces() {
    const int64_t groups = transforms() * p_.groups;
    const struct {
        const char *name;
        int64_t bytes;
    } all[pieces] = {{"numbers", kept() * scalar_bytes(w_)},
                     {"largest", groups * wht_largest_bytes(w_)},
                     {"scales", groups * 4},
                     {"chains", 8 * (elements() / std::max<int64_t>(transforms(), 1) + p_.rows)}};
    for (int which = 0; which < pieces; ++which) {
        int first = -1, last = -1, index = -1;
        for (size_t s = 0; s < steps.steps.size(); ++s)
            for (const operand &o : steps.steps[s].operands)
                if (o.from == operand::source::work && o.piece == -1 - which) {
                    if (first < 0) first = static_cast<int>(s);
                    last = static_cast<int>(s);
                }
        if (first < 0) continue;
        index = steps.work.book(all[which].name, all[which].bytes, first, last);
        for (step &s : steps.steps)
            for (operand &o : s.operands)
                if (o.from == operand::source::work && o.piece == -1 - which) o.piece = index;
    }
    steps.work.seal();
}

} // namespace plait::impl
