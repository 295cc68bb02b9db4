// The token of a Walsh-Hadamard descriptor, both ways.
#include "src/desc/token.h"
#include "src/desc/wht.h"

#include <algorithm>
#include <limits>

namespace plait::impl {

bool wht_descriptor::bits_are_default() const {
    if (!bits_) return true;
    // Only where the mask is legal: the token of a contradiction keeps it.
    if (order_ != PLAIT_NATURAL) return false;
    int count = 0;
    int64_t length = 0;
    for (size_t a = 0; a < extents_.size(); ++a) {
        if (factor_order(a) > 1) return false;
        if (!transformed(a)) continue;
        ++count;
        length = extents_[a];
    }
    const bool power_of_two = length > 0 && (length & (length - 1)) == 0;
    return count == 1 && power_of_two && *bits_ == static_cast<uint64_t>(length - 1);
}

std::string wht_descriptor::token() const {
    std::string out = text("wht:", dtype_of(dtype_of_role(PLAIT_X)).name);
    for (size_t a = 0; a < extents_.size(); ++a) {
        out += text(transformed(a) ? ":n" : ":b", extents_[a]);
        if (factor_order(a) > 1) out += '.' + factor_name(a);
    }
    if (!bits_are_default()) out += ":bits=" + hex(*bits_);
    if (order_ == PLAIT_SEQUENCY) out += ":seq";
    if (order_ == PLAIT_DYADIC) out += ":dya";
    if (adjoint_) out += ":adj";
    if (scale_ != 1.0) out += text(":scale=", scale_);
    if (bound_) out += text(":bound=", *bound_);
    if (rows_) out += text(":rows=", *rows_);
    if (group_) out += text(":group=", *group_);
    if (bins_) out += text(":hist=", bins_->count, '.', bins_->first, '.', bins_->width);
    append_roles(out);
    return out;
}

namespace {

struct axis_field {
    token_field field;
    int64_t length;
    bool transformed;
    plait_wht_factor factor;
    int given; ///< order of the caller's matrix, or 0
};

bool is_axis(std::string_view text) {
    return text.size() > 1 && (text[0] == 'b' || text[0] == 'n') &&
           ((text[1] >= '0' && text[1] <= '9') || text[1] == '-');
}

axis_field parse_axis(const token_field &field) {
    const size_t dot = std::min(field.text.find('.'), field.text.size());
    axis_field axis{field, parse_int(field.part(1, dot - 1)), field.text[0] == 'n', PLAIT_H1, 0};
    if (dot < field.text.size()) {
        const token_field name = field.part(dot + 1);
        if (name.text.size() > 1 && name.text[0] == 'm' && name.text[1] >= '0' &&
            name.text[1] <= '9') {
            // Any value beyond int is refused as any other that is too large.
            axis.given = static_cast<int>(
                std::min<int64_t>(parse_int(name.part(1)), std::numeric_limits<int>::max()));
            return axis;
        }
        const auto factor = factor_from_name(name.text);
        if (!factor)
            refuse(name, "is no factor; factors: ", factor_names(),
                   ", or m<order> of a matrix that the caller gives");
        axis.factor = *factor;
    }
    return axis;
}

/// Options by name; a second one of a kind is refused.
class options {
public:
    explicit options(wht_descriptor &desc) : desc_(desc) {}

    /// False when the field is no option.
    bool parse(const token_field &field) {
        const size_t equal = field.text.find('=');
        const bool valued = equal != std::string_view::npos;
        const std::string_view name = field.text.substr(0, equal);
        const auto value = [&] { return field.part(equal + 1); };
        if (!valued && (name == "seq" || name == "dya")) {
            once(order_, field, "order");
            desc_.set_order(name == "seq" ? PLAIT_SEQUENCY : PLAIT_DYADIC);
        } else if (!valued && name == "adj") {
            once(adjoint_, field, "adj");
            desc_.set_adjoint(true);
        } else if (valued && name == "bits") {
            once(bits_, field, "bits");
            desc_.set_bits(parse_hex(value()));
        } else if (valued && name == "scale") {
            once(scale_, field, "scale");
            const double scale = parse_number(value());
            apply(field, [&] { desc_.set_scale(scale); });
        } else if (valued && name == "bound") {
            once(bound_, field, "bound");
            const int64_t bound = parse_int(value());
            apply(field, [&] { desc_.set_bound(bound); });
        } else if (valued && name == "rows") {
            once(rows_, field, "rows");
            const int64_t rows = parse_int(value());
            apply(field, [&] { desc_.set_rows(rows); });
        } else if (valued && name == "group") {
            once(group_, field, "group");
            const int64_t length = parse_int(value());
            apply(field, [&] { desc_.set_group(length); });
        } else if (valued && name == "hist") {
            once(hist_, field, "hist");
            const std::vector<token_field> parts = split_fields(value(), '.');
            if (parts.size() != 3) refuse(value(), "is not three numbers with dots between them");
            const wht_bins bins{parse_int(parts[0]), parse_int(parts[1]), parse_int(parts[2])};
            apply(field, [&] { desc_.set_histogram(bins); });
        } else {
            return false;
        }
        return true;
    }

private:
    static void once(bool &seen, const token_field &field, const char *what) {
        if (seen) refuse(field, "is a second ", what);
        seen = true;
    }

    wht_descriptor &desc_;
    bool order_ = false, adjoint_ = false, bits_ = false, scale_ = false, bound_ = false;
    bool rows_ = false, group_ = false, hist_ = false;
};

} // namespace

std::unique_ptr<descriptor> parse_wht(const std::vector<token_field> &fields) {
    if (fields.size() < 2) refuse(fields[0], "ends early: type and axes follow, wht:f32:b64:n1024");
    const plait_dtype dtype = parse_dtype(fields[1]);

    std::vector<axis_field> axes;
    std::vector<token_field> rest;
    for (size_t i = 2; i < fields.size(); ++i) {
        if (is_axis(fields[i].text))
            axes.push_back(parse_axis(fields[i]));
        else
            rest.push_back(fields[i]);
    }
    if (axes.empty())
        refuse(fields.size() > 2 ? fields[2] : fields[1],
               fields.size() > 2 ? "is no axis: b<length> and n<length> follow the type"
                                 : "is not followed by an axis: b<length> or n<length>");

    if (axes.size() > PLAIT_MAX_RANK)
        refuse(axes[PLAIT_MAX_RANK].field, "is one axis more than ", PLAIT_MAX_RANK);
    std::vector<int64_t> extents;
    uint32_t transformed = 0;
    for (const axis_field &axis : axes) {
        if (axis.length < 0) refuse(axis.field, "has a negative length");
        if (axis.transformed) transformed |= uint32_t{1} << extents.size();
        extents.push_back(axis.length);
    }
    std::unique_ptr<wht_descriptor> desc;
    apply(fields[1], [&] {
        desc = std::make_unique<wht_descriptor>(dtype, static_cast<int>(extents.size()),
                                                extents.data());
    });
    desc->set_axes(transformed);
    for (size_t a = 0; a < axes.size(); ++a)
        apply(axes[a].field, [&] {
            const int axis = static_cast<int>(a);
            if (const size_t dot = axes[a].field.text.find(".m"); dot != std::string_view::npos)
                desc->set_factor_order(axis, axes[a].given);
            else
                desc->set_factor(axis, axes[a].factor);
        });

    options parser(*desc);
    std::vector<plait_role> seen;
    for (const token_field &field : rest) {
        if (field.text[0] == '+' || field.text[0] == '-')
            parse_uses(*desc, field);
        else if (!parser.parse(field) && !parse_role(*desc, field, seen))
            refuse(field, "is no axis, option or role of wht");
    }
    return desc;
}

} // namespace plait::impl
