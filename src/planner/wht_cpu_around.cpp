// wht.cpu.around: what stands before and behind a transform, around the passes of another candidate
// on packed numbers of the accumulate type: wht.inputs, those passes and wht.matrix for factors
// that they do not know (all twice with DIAG_MID), wht.results.
#include "lib/common/factor_matrices.h"
#include "lib/cpu/wht/around_args.h"
#include "lib/cpu/wht/matrix_args.h"
#include "src/core/checked.h"
#include "src/core/text.h"
#include "src/planner/cpu_cost.h"
#include "src/planner/wht_candidates.h"

#include <algorithm>
#include <cstring>

namespace plait::impl {

namespace {

/// An element on its way in or out, through its conversions and SIGNS, on one core: an estimate.
constexpr double element_seconds = 1.5e-9;
/// An addition of wht.matrix, four in a vector: an estimate.
constexpr double addition_seconds = 1.5e-10;
/// Numbers that may become one where OVERFLOW is asked for: sums of i32 then stay within 64 bits.
constexpr int64_t most_summed = int64_t{1} << 31;

bool is_whole(scalar s) {
    return s == scalar::i8 || s == scalar::i16 || s == scalar::i32 || s == scalar::i64;
}

scalar numbers_of(const wht_problem &p) {
    if (p.x == scalar::c64 || p.x == scalar::c128)
        return p.x == scalar::c128 || p.y == scalar::c128 ? scalar::c128 : scalar::c64;
    if (is_whole(p.y)) return p.overflow ? scalar::i64 : p.y;
    return p.x == scalar::f64 || p.y == scalar::f64 ? scalar::f64 : scalar::f32;
}

class plan_around {
public:
    verdict refusal;
    pipeline steps;
    cost estimate;

    plan_around(const problem &problem, const profile &device)
        : problem_(problem), p_(problem.wht()), device_(device), w_(numbers_of(p_)) {
        for (int a = 0; a < p_.axes; ++a) {
            int64_t &count = p_.axis[a].transformed ? n_ : transforms_;
            count = try_mul(count, p_.axis[a].length).value_or(most_bytes);
        }
        const auto all = try_mul(n_, transforms_);
        elements_ = std::min(all.value_or(most_bytes), most_bytes);
        chosen_ = p_.rows_type != scalar::none && !p_.adjoint;
        if (chosen_)
            results_ = try_mul(p_.rows, transforms_).value_or(most_bytes);
        else
            results_ = elements_;
        refusal = rules();
        if (!refusal.empty()) return;
        threads_ = cpu::wht_around_team(elements_, cpu_threads(device_));
        add_inputs(false);
        add_transform();
        if (p_.diag_mid != scalar::none && refusal.empty()) {
            add_inputs(true);
            add_transform();
        }
        if (!refusal.empty()) return;
        add_results();
        book();
    }

private:
    enum piece { numbers, largest, signs, pieces };

    const problem &problem_;
    const wht_problem &p_;
    const profile &device_;
    const scalar w_;
    int64_t n_ = 1, transforms_ = 1, elements_ = 0, results_ = 0;
    bool chosen_ = false;
    int threads_ = 1;
    int64_t most_order_ = 0;

    verdict rules() const {
        if (wht_ref_only(problem_).empty())
            return "it has no option that needs steps around the passes of wht.cpu.lines";
        if (p_.overflow && p_.x == scalar::i64)
            return "overflow is in use, and x is i64: sums may pass 64 bits";
        const int64_t summed = std::max(n_, p_.rows);
        if (p_.overflow && summed > most_summed)
            return text("overflow is in use, and n=", summed, " is over ", most_summed);
        if (elements_ == 0 || results_ == 0) return "there are no results";
        if (elements_ >= most_bytes / 16) return "it has more elements than any process reaches";
        return "";
    }

    /// Order of the matrix that wht.matrix multiplies by along this axis, or 1.
    int matrix_of(const wht_axis &a) const {
        if (!a.transformed || a.factor <= wht_factor::h40) return 1;
        return a.factor == wht_factor::given ? p_.given_order : wht_factor_order(a.factor);
    }

    operand work(piece which, bool written) const { return piece_operand(-1 - which, written); }
    operand role(plait_role role, bool in_use, bool written = false) const {
        return in_use ? role_operand(role, written) : operand{};
    }
    int64_t number_bytes() const { return elements_ * scalar_bytes(w_); }
    int64_t touched(plait_role role) const {
        const tensor *t = problem_.find(role);
        if (!t) return 0;
        int64_t bits = dtype_of(t->dtype).bits;
        for (size_t a = 0; a < t->extents.size(); ++a)
            if (t->strides[a] != 0 || t->extents[a] == 0) bits *= t->extents[a];
        return (bits + 7) / 8;
    }

    void add(step s, int64_t read, int64_t written, int64_t elements) {
        s.block = threads_;
        s.bytes_read = read;
        s.bytes_written = written;
        while (s.operands.back().from == operand::source::none) s.operands.pop_back();
        const cost c =
            cpu_cost(device_, threads_, cpu_traffic_seconds(device_, read + written, threads_),
                     static_cast<double>(elements) * element_seconds / threads_);
        add(c);
        steps.steps.push_back(std::move(s));
    }
    void add(const cost &c) {
        estimate.seconds += c.seconds;
        estimate.memory_seconds += c.memory_seconds;
        estimate.compute_seconds += c.compute_seconds;
        estimate.launch_seconds += c.launch_seconds;
    }

    void add_inputs(bool middle) {
        cpu::wht_inputs_args args{};
        args.w_type = w_;
        args.problem = p_;
        const plait_role diag = middle ? PLAIT_DIAG_MID : p_.adjoint ? PLAIT_DIAG : PLAIT_DIAG_IN;
        args.diag_type = middle ? p_.diag_mid : p_.adjoint ? p_.diag : p_.diag_in;
        const bool scatter = p_.rows_type != scalar::none && p_.adjoint && !middle;
        step s;
        s.kernel = "wht.inputs";
        s.operands = {role(PLAIT_X, !middle),
                      work(numbers, true),
                      role(PLAIT_SIGNS, !middle && p_.signs && !p_.adjoint),
                      role(diag, args.diag_type != scalar::none),
                      role(PLAIT_ROWS, scatter),
                      role(PLAIT_STATUS, scatter && p_.status, true)};
        s.args = step_args(args);
        const int64_t read = middle ? number_bytes() : touched(PLAIT_X);
        add(std::move(s), read + touched(diag), number_bytes(), elements_);
    }

    void add_matrices() {
        int64_t columns = n_, groups = transforms_;
        for (int i = 0; i < p_.axes; ++i) {
            const wht_axis &a = p_.axis[i];
            if (!a.transformed) continue;
            columns /= a.length;
            const int m = matrix_of(a);
            if (m > 1) {
                const bool given = a.factor == wht_factor::given;
                cpu::wht_matrix_args args{};
                args.w_type = w_;
                args.name = a.factor;
                args.order = m;
                args.transposed = p_.adjoint;
                std::copy(p_.given_stride, p_.given_stride + 2, args.factor_stride);
                args.groups = groups;
                args.columns = a.length / m * columns;
                step s;
                s.kernel = "wht.matrix";
                s.operands = {work(numbers, true), role(PLAIT_FACTOR, given), work(signs, true)};
                s.args = step_args(args);
                s.flops = try_mul(elements_, int64_t{m}).value_or(INT64_MAX);
                most_order_ = std::max<int64_t>(most_order_, m);
                const double additions = static_cast<double>(s.flops);
                add(std::move(s), number_bytes(), number_bytes(),
                    static_cast<int64_t>(additions * addition_seconds / element_seconds));
            }
            groups *= a.length;
        }
    }

    /// The transform of the packed numbers, in place. Axes without a factor are one: their bits.
    impl::problem inner() const {
        wht_problem q{};
        q.x = q.y = w_;
        q.diag = scalar::none;
        q.order = wht_order::natural;
        q.adjoint = p_.adjoint; // transposes factors
        q.alias = true;
        q.scale = 1;
        q.x_align = q.y_align = PLAIT_WORKSPACE_ALIGNMENT;
        int64_t stride = n_;
        const auto push = [&](int64_t length, int64_t step, wht_factor factor, bool transformed) {
            wht_axis &a = q.axis[q.axes++] = wht_axis{};
            a.length = length;
            a.x_stride = a.y_stride = step;
            a.factor = factor;
            a.transformed = transformed;
        };
        if (transforms_ > 1) push(transforms_, n_, wht_factor::h1, false);
        const auto batch = [&](int64_t length, int64_t step) {
            wht_axis *outer = q.axes > 0 ? &q.axis[q.axes - 1] : nullptr;
            if (!outer || outer->transformed) return push(length, step, wht_factor::h1, false);
            outer->length *= length;
            outer->x_stride = outer->y_stride = step;
        };
        for (int i = 0; i < p_.axes; ++i) {
            const wht_axis &a = p_.axis[i];
            if (!a.transformed) continue;
            stride /= a.length;
            const int m = matrix_of(a);
            const int64_t length = a.length / m;
            if (m > 1) batch(m, length * stride);
            if (length == 1) continue;
            const wht_factor factor = m > 1 ? wht_factor::h1 : a.factor;
            wht_axis *outer = q.axes > 0 ? &q.axis[q.axes - 1] : nullptr;
            const bool bits = factor == wht_factor::h1 && outer && outer->transformed;
            if (bits) { // of an axis with a factor too: the factor is outermost
                outer->length *= length;
                outer->x_stride = outer->y_stride = stride;
            } else {
                push(length, stride, factor, true);
            }
        }
        impl::problem out = problem_; // its tensors are those that take memory
        out.form = q;
        return out;
    }

    void add_transform() {
        add_matrices();
        const impl::problem q = inner();
        const wht_problem &form = q.wht();
        if (std::none_of(form.axis, form.axis + form.axes,
                         [](const wht_axis &a) { return a.transformed; }))
            return;
        const candidate *best = nullptr;
        cost price;
        for (const candidate &c : wht_table()) {
            const bool passes = std::strcmp(c.name, "wht.cpu.simd") == 0 ||
                                std::strcmp(c.name, "wht.cpu.lines") == 0;
            if (!passes || !c.applicable(q, device_).empty()) continue;
            const cost here = c.estimate(q, device_);
            if (best && here.seconds >= price.seconds) continue;
            best = &c;
            price = here;
        }
        if (!best) {
            refusal = "no candidate takes its transform";
            return;
        }
        add(price);
        pipeline part = best->build(q, device_);
        const int first = static_cast<int>(steps.steps.size());
        std::vector<int> books;
        for (const impl::piece &one : part.work.pieces())
            books.push_back(steps.work.book(one.name, one.bytes, first + one.first_step,
                                            first + one.last_step, one.align));
        for (step &s : part.steps) {
            for (operand &o : s.operands) {
                if (o.from == operand::source::work) o.piece = books[static_cast<size_t>(o.piece)];
                if (o.from == operand::source::role) o = work(numbers, o.written);
            }
            steps.steps.push_back(std::move(s));
        }
    }

    void add_results() {
        cpu::wht_results_args args{};
        args.w_type = w_;
        args.problem = p_;
        const plait_role diag = p_.adjoint ? PLAIT_DIAG_IN : PLAIT_DIAG;
        args.diag_type = p_.adjoint ? p_.diag_in : p_.diag;
        const bool amax = p_.amax != scalar::none;
        step s;
        s.kernel = "wht.results";
        s.operands = {work(numbers, false),
                      role(PLAIT_Y, p_.stores, true),
                      role(PLAIT_SIGNS, p_.signs && p_.adjoint),
                      role(diag, args.diag_type != scalar::none),
                      role(PLAIT_OVERFLOW, p_.overflow, true),
                      role(PLAIT_ROWS, chosen_),
                      role(PLAIT_AMAX, amax, true),
                      role(PLAIT_SCALES, p_.scales, true),
                      role(PLAIT_HISTOGRAM, p_.bins > 0, true),
                      role(PLAIT_STATUS, chosen_ && p_.status, true),
                      amax || p_.scales ? work(largest, true) : operand{}};
        s.args = step_args(args);
        int64_t written = 0;
        for (const plait_role out : {PLAIT_Y, PLAIT_AMAX, PLAIT_SCALES, PLAIT_HISTOGRAM})
            written += touched(out);
        const int64_t times = p_.scales ? 2 : 1;
        add(std::move(s), results_ * scalar_bytes(w_) * times + touched(diag), written,
            results_ * times);
    }

    void book() {
        const struct {
            const char *name;
            int64_t bytes;
        } all[pieces] = {{"numbers", number_bytes()},
                         {"largest", transforms_ * p_.groups * 8},
                         {"signs", most_order_ * most_order_}};
        for (int which = 0; which < pieces; ++which) {
            int first = -1, last = -1;
            const auto each = [&](const auto &use) {
                for (size_t s = 0; s < steps.steps.size(); ++s)
                    for (operand &o : steps.steps[s].operands)
                        if (o.from == operand::source::work && o.piece == -1 - which)
                            use(static_cast<int>(s), o);
            };
            each([&](int s, operand &) {
                if (first < 0) first = s;
                last = s;
            });
            if (first < 0) continue;
            const int index = steps.work.book(all[which].name, all[which].bytes, first, last);
            each([&](int, operand &o) { o.piece = index; });
        }
        steps.work.seal();
    }
};

} // namespace

verdict wht_cpu_around_applicable(const problem &problem, const profile &device) {
    if (problem.empty) return "the problem is empty: there is nothing to run";
    const plan_around plan(problem, device);
    if (!plan.refusal.empty()) return plan.refusal;
    return fits_memory(problem, device, plan.steps.work.bytes());
}

cost wht_cpu_around_estimate(const problem &problem, const profile &device) {
    return plan_around(problem, device).estimate;
}

pipeline wht_cpu_around_build(const problem &problem, const profile &device) {
    return plan_around(problem, device).steps;
}

} // namespace plait::impl
