// kda.bwd.cuda.chunk16.split: which problems it takes, what it costs, its steps:
//   kda.offsets (packed sequences), kda.bwd_c16_prep, kda.bwd_c16_states, kda.bwd_c16_a; where a
//   gradient of tokens or parameters is wanted kda.bwd_c16_b2, kda.bwd_c16_b1, kda.bwd_c16_b3;
//   kda.bwd_c16_heads (value heads share q and k), kda.bwd_c16_sums (parameters), kda.gaps.
#include "lib/cuda/kda/chunk16_layout.h"
#include "src/core/text.h"
#include "src/planner/cpu_cost.h"
#include "src/planner/kda_cuda.h"

#include <algorithm>

namespace plait::impl {

namespace {

/// Shares of what the device could do: of the copy bandwidth, from what an H200 takes with 4 and 96
/// heads of 128 keys, of its f32 units by shuffled operands, and of them by what tensor cores do
/// beside (estimates).
constexpr double memory_share = 0.22, wide_rate = 0.12, tensor_rate = 4;
/// A chunk of a scan when nothing hides its chain of products, each tile of keys in it, and each
/// warp of the block, which share the way to memory: shares of what was measured with 128 keys.
constexpr double scan_seconds = 1.63e-6, scan_tile_seconds = 0.228e-6, scan_warp_seconds = 0.163e-6;

/// Token-heads from which on tensor cores pay; below, launches take the time.
constexpr int64_t fewest = 128;

/// f32 arithmetic with f32 data, with few channels, and where there is little to do: a sum of few
/// terms does not average what 16-bit operands lose.
bool is_wide(const kda_problem &p) {
    if (p.batch * p.length < kda_ceil_div(fewest, p.value_heads)) return true;
    for (const kda_view *v : {&p.q, &p.k, &p.v, &p.d_o})
        if (!kda_is_half(v->type)) return true;
    return p.dim_k < 64 || p.dim_v < 64;
}

bool wants_sums(const kda_problem &p) { return p.da_log.used() || p.ddt_bias.used(); }

bool wants_rows(const kda_problem &p) {
    return p.dq.used() || p.dk.used() || p.dg.used() || p.dbeta.used() || wants_sums(p);
}

bool wants_heads(const kda_problem &p) { return p.group() > 1 && (p.dq.used() || p.dk.used()); }

/// Bytes of the pieces; doubles, because what no memory holds is refused here.
struct sizes {
    double records, states, rows, through, heads, partial;
    double sum() const { return records + 2 * states + 2 * rows + through + heads + partial; }
};

sizes sizes_of(const kda_problem &p, int kt, int vt) {
    const kda_c16_record r = kda_c16_record_of(kt, vt, is_wide(p));
    const double chunks =
        p.varlen ? static_cast<double>(p.length) / kda_c16 + static_cast<double>(p.sequences)
                 : static_cast<double>(p.sequences) *
                       static_cast<double>(kda_ceil_div(p.length, kda_c16));
    const double n = chunks * static_cast<double>(p.value_heads);
    return {n * r.size,
            n * kt * vt * r.tile_bytes(),
            n * vt * r.tile_bytes(),
            wants_rows(p) ? n * 4 * static_cast<double>(kda_c16_through(kt)) : 0,
            wants_heads(p) ? n * 4 * 512 * kt : 0,
            wants_sums(p) ? n * 4 * (16 * kt + 1) : 0};
}

int tiles_of(int64_t channels) { return static_cast<int>(kda_ceil_div(channels, kda_c16)); }

kda_c16_args args_of(const kda_problem &p) {
    kda_c16_args a{};
    a.problem = p;
    a.slots = kda_chunk_slots(p, kda_c16);
    a.kt = tiles_of(p.dim_k);
    a.vt = tiles_of(p.dim_v);
    return a;
}

/// The steps of a plan, which share their arguments and differ in which pointers they are given.
class chunk16_plan {
public:
    explicit chunk16_plan(const problem &what)
        : problem_(what), p_(what.kda()), a_(args_of(p_)), wide_(is_wide(p_)),
          record_(kda_c16_record_of(a_.kt, a_.vt, wide_)) {}

    pipeline build() {
        const bool chunks = a_.slots > 0, rows = chunks && wants_rows(p_);
        int next = kda_needs_offsets(p_) ? 1 : 0;
        const auto number = [&](bool wanted) { return wanted ? next++ : next; };
        const int prep = number(chunks), states = number(rows),
                  a = number(chunks || p_.dstate_in.used()), b2 = number(rows), b1 = number(rows),
                  b3 = number(rows), heads = number(rows && wants_heads(p_)),
                  sums = number(wants_sums(p_));
        number(kda_needs_gaps(p_));
        found_ = kda_add_offsets(out_, p_, kda_c16, std::max(next - 1, 0));
        const sizes s = sizes_of(p_, a_.kt, a_.vt);
        const auto book = [&](const char *name, double bytes, int from, int to) {
            return bytes > 0 ? out_.work.book(name, static_cast<int64_t>(bytes), from, to) : -1;
        };
        if (chunks) {
            records_ = book("records", s.records, prep, rows ? b3 : a);
            dstates_ = book("dstates", s.states, a, rows ? b1 : a);
            dvalues_ = book("dvalues", s.rows, a, rows ? b3 : a);
        }
        if (rows) {
            states_ = book("states", s.states, states, b2);
            errors_ = book("errors", s.rows, states, b3);
            through_ = book("through", s.through, b2, b3);
            heads_ = book("heads", s.heads, b3, heads);
            partial_ = book("partial", s.partial, b3, sums);
        }
        add_chunks(rows);
        if (wants_sums(p_)) {
            kda_launch l{"all", 1024, 1, 1024 * 8};
            l.grid = kda_grid(p_.value_heads * kda_ceil_div(16 * a_.kt + 1, 32));
            add("kda.bwd_c16_sums", l, {}, {{partial_}}, {}, {PLAIT_DA_LOG, PLAIT_DDT_BIAS});
        }
        kda_add_gaps(out_, problem_, found_);
        out_.work.seal();
        return std::move(out_);
    }

private:
    const problem &problem_;
    const kda_problem &p_;
    kda_c16_args a_;
    bool wide_;
    kda_c16_record record_;
    pipeline out_;
    kda_sanitized found_;
    int records_ = -1, states_ = -1, dstates_ = -1, errors_ = -1, dvalues_ = -1, through_ = -1,
        heads_ = -1, partial_ = -1;

    using roles = std::vector<plait_role>;
    /// A piece, and the share of its bytes that a step touches.
    struct part {
        int piece;
        double share = 1;
    };
    using parts = std::vector<part>;

    /// So many bytes of the records.
    part of_records(int bytes) const {
        return {records_, static_cast<double>(bytes) / record_.size};
    }

    void add_chunks(bool rows) {
        const roles tokens = {PLAIT_Q, PLAIT_K, PLAIT_G, PLAIT_BETA, PLAIT_A_LOG, PLAIT_DT_BIAS};
        const int values = a_.vt * record_.tile_bytes();
        if (a_.slots > 0) {
            roles of_prep = tokens;
            of_prep.push_back(PLAIT_DO);
            add("kda.bwd_c16_prep",
                kda_c16_chunk_launch(a_, wide_, kda_c16_rows_bytes(a_.kt, kda_c16_prep_spare)),
                of_prep, {}, {{records_}}, {});
            if (rows)
                add("kda.bwd_c16_states", kda_c16_scan_launch(a_, wide_, false),
                    {PLAIT_V, PLAIT_STATE_IN}, {of_records(record_.forward_bytes())},
                    {{states_}, {errors_}}, {});
        }
        if (a_.slots > 0 || p_.dstate_in.used())
            add("kda.bwd_c16_a", kda_c16_scan_launch(a_, wide_, true), {PLAIT_DSTATE_OUT},
                {of_records(record_.reverse_bytes() + values)}, {{dstates_}, {dvalues_}},
                {PLAIT_DV, PLAIT_DSTATE_IN});
        if (!rows) return;
        add("kda.bwd_c16_b2", kda_c16_chunk_launch(a_, wide_, 0), {},
            {of_records(values), {states_}, {dstates_}, {dvalues_}}, {{through_, 2.0 / 3}}, {});
        add("kda.bwd_c16_b1", kda_c16_chunk_launch(a_, wide_, 0), {}, {{dstates_}, {errors_}},
            {{through_, 1.0 / 3}}, {});
        roles rows_out = {PLAIT_DG, PLAIT_DBETA};
        if (p_.group() == 1) rows_out.insert(rows_out.end(), {PLAIT_DQ, PLAIT_DK});
        add("kda.bwd_c16_b3",
            kda_c16_chunk_launch(a_, wide_, kda_c16_rows_bytes(a_.kt, kda_c16_b3_spare)), tokens,
            {of_records(values), {errors_}, {dvalues_}, {through_}}, {{heads_}, {partial_}},
            rows_out);
        if (!wants_heads(p_)) return;
        kda_launch l{"all", kda_c16_threads, 1, 0};
        l.grid = kda_grid(a_.slots * p_.heads);
        add("kda.bwd_c16_heads", l, {PLAIT_Q, PLAIT_K}, {{heads_}}, {}, {PLAIT_DQ, PLAIT_DK});
    }

    void add(const char *kernel, const kda_launch &l, const roles &in, const parts &from,
             const parts &to, const roles &out) {
        step s;
        const auto has = [](const roles &list, plait_role x) {
            return std::find(list.begin(), list.end(), x) != list.end();
        };
        const auto share = [](const parts &list, int piece) {
            for (const part &p : list)
                if (p.piece == piece) return p.share;
            return 0.0;
        };
        for (const plait_role role : {PLAIT_Q, PLAIT_K, PLAIT_V, PLAIT_G, PLAIT_BETA, PLAIT_A_LOG,
                                      PLAIT_DT_BIAS, PLAIT_STATE_IN, PLAIT_DO, PLAIT_DSTATE_OUT})
            s.operands.push_back(has(in, role) ? tensor_of(s, role) : operand{});
        s.operands.push_back(found_.table);
        s.operands.push_back(found_.chunks);
        for (const int piece :
             {records_, states_, dstates_, errors_, dvalues_, through_, heads_, partial_}) {
            const double read = share(from, piece), written = share(to, piece);
            if (piece < 0 || read + written == 0) {
                s.operands.push_back({});
                continue;
            }
            s.operands.push_back(piece_operand(piece, written > 0));
            const auto bytes =
                static_cast<double>(out_.work.pieces()[static_cast<size_t>(piece)].bytes);
            s.bytes_read += static_cast<int64_t>(bytes * read);
            s.bytes_written += static_cast<int64_t>(bytes * written);
        }
        for (const plait_role role : {PLAIT_DQ, PLAIT_DK, PLAIT_DV, PLAIT_DG, PLAIT_DBETA,
                                      PLAIT_DA_LOG, PLAIT_DDT_BIAS, PLAIT_DSTATE_IN})
            s.operands.push_back(has(out, role) ? tensor_of(s, role) : operand{});
        kda_set_launch(s, kernel, l);
        s.args = step_args(a_);
        out_.steps.push_back(std::move(s));
    }

    operand tensor_of(step &s, plait_role role) const {
        if (const tensor *t = problem_.find(role))
            (t->access & PLAIT_WRITE ? s.bytes_written : s.bytes_read) += touched_bytes(*t);
        return kda_operand(problem_, role);
    }
};

} // namespace

verdict kda_cuda_chunk16_applicable(const problem &problem, const profile &device) {
    if (const verdict own = kda_cuda_device(problem, device); !own.empty()) return own;
    if (const verdict reserve = kda_without_reserve(problem); !reserve.empty()) return reserve;
    const kda_problem &p = problem.kda();
    for (const auto &[name, n] : {std::pair{"dim_k", p.dim_k}, std::pair{"dim_v", p.dim_v}})
        if (n < 1 || n > kda_c16_most) return text(name, '=', n, "; needs 1 to ", kda_c16_most);
    if (p.value_heads < 1 || p.value_heads > INT32_MAX)
        return text("value_heads=", p.value_heads, "; needs 1 to ", INT32_MAX);
    const int64_t found = kda_offsets_bytes(p, kda_c16);
    const double work = sizes_of(p, tiles_of(p.dim_k), tiles_of(p.dim_v)).sum();
    if (work > 1e18 || found > most_bytes)
        return "its intermediates have more bytes than 64 bits count";
    return fits_memory(problem, device, static_cast<int64_t>(work) + found);
}

cost kda_cuda_chunk16_estimate(const problem &problem, const profile &device) {
    const kda_problem &p = problem.kda();
    const pipeline steps = kda_cuda_chunk16_build(problem, device);
    const double bytes = static_cast<double>(steps.bytes_read() + steps.bytes_written());
    // Scans have their chain, all other steps their bytes.
    double serial = 2 * static_cast<double>(kda_ceil_div(p.longest(), kda_c16)) *
                    (scan_seconds + scan_tile_seconds * tiles_of(p.dim_k) +
                     scan_warp_seconds * std::min(tiles_of(p.dim_v), kda_c16_warps));
    for (const step &s : steps.steps)
        if (s.kernel != "kda.bwd_c16_states" && s.kernel != "kda.bwd_c16_a")
            serial += static_cast<double>(s.bytes_read + s.bytes_written) /
                      (device.copy_bandwidth * memory_share);
    return kda_cuda_cost(device, bytes, memory_share, static_cast<double>(kda_flops(p)),
                         is_wide(p) ? wide_rate : tensor_rate, serial,
                         static_cast<int>(steps.steps.size()));
}

pipeline kda_cuda_chunk16_build(const problem &problem, const profile &) {
    return chunk16_plan(problem).build();
}

} // namespace plait::impl
