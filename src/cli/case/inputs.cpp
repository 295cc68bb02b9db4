#include "src/cli/case/inputs.h"

#include "src/cli/case/dtype.h"
#include "src/cli/case/fill.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <unordered_map>
#include <unordered_set>

namespace plait::cases {
namespace {

using random = std::mt19937_64; // the same numbers with every library, which distributions are not

int64_t below(random &r, int64_t limit) {
    return static_cast<int64_t>(r() % static_cast<uint64_t>(std::max<int64_t>(limit, 1)));
}

/// One sequence in eight is empty; with spare capacity up to an eighth of it.
std::vector<int64_t> offsets(random &r, int64_t sequences, int64_t longest, int64_t capacity,
                             bool full) {
    std::vector<int64_t> weights(static_cast<size_t>(sequences));
    long double sum = 0;
    for (int64_t &w : weights) {
        w = sequences > 1 && below(r, 8) == 0 ? 0 : 1 + below(r, 1000);
        sum += static_cast<long double>(w);
    }
    int64_t left = capacity;
    if (!full) left -= below(r, capacity / 8 + 1);
    const long double share = sum > 0 ? static_cast<long double>(left) / sum : 0;
    std::vector<int64_t> lengths;
    for (const int64_t w : weights) {
        const auto wish = static_cast<int64_t>(share * static_cast<long double>(w));
        lengths.push_back(std::min({wish, longest, left}));
        left -= lengths.back();
    }
    // What rounding and the longest length left over.
    for (size_t i = 0; i < lengths.size() && left > 0; ++i) {
        if (weights[i] == 0 && !full) continue;
        const int64_t more = std::min(longest - lengths[i], left);
        lengths[i] += more;
        left -= more;
    }
    std::vector<int64_t> out = {0};
    for (const int64_t n : lengths) out.push_back(out.back() + n);
    return out;
}

/// Different slots in random order; rows that find none, and one in eight, have the pad value.
std::vector<int64_t> slots(random &r, int64_t rows, int64_t count, int64_t pad, bool full) {
    const bool pad_inside = pad >= 0 && pad < count;
    const int64_t usable = count - (pad_inside ? 1 : 0);
    std::unordered_map<int64_t, int64_t> moved; // a shuffle of 0 .. usable-1, as far as it is used
    const auto at = [&](int64_t i) {
        const auto found = moved.find(i);
        return found == moved.end() ? i : found->second;
    };
    std::vector<int64_t> out;
    int64_t taken = 0;
    for (int64_t row = 0; row < rows; ++row) {
        if (taken == usable || (!full && below(r, 8) == 0)) {
            out.push_back(pad);
            continue;
        }
        const int64_t pick = taken + below(r, usable - taken);
        const int64_t slot = at(pick);
        moved[pick] = at(taken++);
        out.push_back(pad_inside && slot >= pad ? slot + 1 : slot);
    }
    return out;
}

/// Runs of one id, short ones and long ones; ids come back, some are padding.
std::vector<int64_t> ids(random &r, int64_t rows, int64_t length) {
    std::vector<int64_t> out;
    for (int64_t row = 0; row < rows; ++row)
        for (int64_t t = 0, run; t < length; t += run) {
            run = 1 + below(r, below(r, 2) == 0 ? 8 : length / 4);
            run = std::min(run, length - t);
            const int64_t id = below(r, 8) == 0 ? -1 - below(r, 3) : below(r, 4);
            out.insert(out.end(), static_cast<size_t>(run), id);
        }
    return out;
}

std::vector<int64_t> positions(random &r, int64_t rows) {
    std::vector<int64_t> out;
    for (int64_t row = 0; row < rows; ++row)
        out.push_back(below(r, 4) == 0 ? INT32_MAX - below(r, 4) : below(r, 10000));
    return out;
}

std::string at_row(int64_t i) { return " of row " + std::to_string(i); }

} // namespace

bool is_index(plait_role role) {
    return role == PLAIT_SLOTS || role == PLAIT_POSITION || role == PLAIT_CU_SEQLENS ||
           role == PLAIT_SEQ_IDX || role == PLAIT_ROWS;
}

input::input(const token_parts &parts, const tensor &t, const input_options &options)
    : dtype_(t.dtype), seed_(options.seed * 512 + static_cast<uint64_t>(t.role)), limit_(1000),
      is_index_(is_index(t.role)) {
    if (const std::string bound = parts.option("bound"); !bound.empty())
        limit_ = std::strtoll(bound.c_str(), nullptr, 10), whole_ = !is_integer(dtype_);
    if (parts.is_kda()) {
        // Gates decay, keys are shorter than 1 and beta lies between 0 and 1: the state stays
        // small.
        if (t.role == PLAIT_G && parts.option("gate") == "log") to_ = 0;
        if (t.role == PLAIT_BETA && parts.option("beta").empty()) from_ = 0;
        if (t.role == PLAIT_K && parts.option("norm").empty())
            to_ = 1 / std::sqrt(static_cast<double>(std::max<int64_t>(1, parts.extent('k'))));
        if (t.role == PLAIT_K) from_ = -to_;
    }
    if (!is_index_) return;
    random r(seed_);
    const int64_t total = distinct(t).elements();
    const auto [first, second] = parts.two(t.role == PLAIT_SLOTS ? "slots" : "seqs");
    switch (t.role) {
    case PLAIT_CU_SEQLENS:
        indices_ = offsets(r, first, second, parts.extent('t'), options.full);
        break;
    case PLAIT_SLOTS: indices_ = slots(r, total, first, second, options.full); break;
    case PLAIT_POSITION: indices_ = positions(r, total); break;
    case PLAIT_ROWS:
        for (int64_t i = 0; i < total; ++i) indices_.push_back(below(r, parts.length()));
        break;
    default: {
        const int64_t length = std::max<int64_t>(1, std::min(parts.extent('t'), total));
        indices_ = ids(r, (total + length - 1) / length, length);
    }
    }
}

void input::read(int64_t first, int64_t count, void *to) const {
    if (is_index_) return from_int64(dtype_, indices_.data() + first, count, to);
    fill_options fill;
    fill.seed = seed_;
    fill.integer_limit = limit_;
    if (whole_) {
        const int64_t exact = dtype_ == PLAIT_F64   ? int64_t{1} << 53
                              : dtype_ == PLAIT_F32 ? int64_t{1} << 24
                              : dtype_ == PLAIT_F16 ? 1 << 11
                                                    : 1 << 8;
        fill.integer_limit = std::min(limit_, exact);
        int64_t numbers[512];
        double values[512];
        for (int64_t begin = 0; begin < count; begin += 512) {
            const int64_t n = std::min<int64_t>(512, count - begin);
            fill_random(PLAIT_I64, fill, first + begin, n, numbers);
            for (int64_t i = 0; i < n; ++i) values[i] = static_cast<double>(numbers[i]);
            from_double(dtype_, values, n,
                        static_cast<char *>(to) +
                            static_cast<size_t>(begin) * bytes_for(dtype_, 1));
        }
        return;
    }
    fill_random(dtype_, fill, first, count, to);
    if (from_ == -1 && to_ == 1) return;
    double values[512];
    const size_t size = bytes_for(dtype_, 1);
    for (int64_t begin = 0; begin < count; begin += 512) {
        const int64_t n = std::min<int64_t>(512, count - begin);
        void *at = static_cast<char *>(to) + static_cast<size_t>(begin) * size;
        to_double(dtype_, at, n, values);
        for (int64_t i = 0; i < n; ++i) values[i] = from_ + (values[i] + 1) / 2 * (to_ - from_);
        from_double(dtype_, values, n, at);
    }
}

std::string broken_rule(const token_parts &parts, plait_role role,
                        const std::vector<int64_t> &values) {
    const int64_t count = static_cast<int64_t>(values.size());
    if (role == PLAIT_CU_SEQLENS) {
        const auto [sequences, longest] = parts.two("seqs");
        if (values.at(0) != 0)
            return "the first offset is " + std::to_string(values[0]) + ", not 0";
        for (size_t i = 1; i < values.size(); ++i) {
            const std::string name =
                "offset " + std::to_string(i) + ", " + std::to_string(values[i]) + ", is ";
            if (values[i] < values[i - 1]) return name + "less than the one before it";
            if (values[i] > parts.extent('t'))
                return name + "beyond the " + std::to_string(parts.extent('t')) + " tokens";
            if (values[i] - values[i - 1] > longest)
                return name + "more than " + std::to_string(longest) + " behind the one before it";
        }
    }
    if (role == PLAIT_SLOTS) {
        const auto [pool, pad] = parts.two("slots");
        std::unordered_set<int64_t> seen;
        for (int64_t i = 0; i < count; ++i) {
            const int64_t slot = values[static_cast<size_t>(i)];
            if (slot == pad) continue;
            if (slot < 0 || slot >= pool)
                return "slot " + std::to_string(slot) + at_row(i) + " is not among the " +
                       std::to_string(pool) + " of the pool";
            if (!seen.insert(slot).second)
                return "slot " + std::to_string(slot) + at_row(i) + " is that of another row";
        }
    }
    if (role == PLAIT_ROWS)
        for (int64_t i = 0; i < count; ++i)
            if (const int64_t at = values[static_cast<size_t>(i)]; at < 0 || at >= parts.length())
                return "entry " + std::to_string(i) + ", " + std::to_string(at) +
                       ", is no place of a transform of " + std::to_string(parts.length());
    if (role == PLAIT_POSITION)
        for (int64_t i = 0; i < count; ++i)
            if (values[static_cast<size_t>(i)] < 0)
                return "the position" + at_row(i) + " is negative";
    return "";
}

} // namespace plait::cases
