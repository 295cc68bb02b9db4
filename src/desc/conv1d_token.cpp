// The token of a convolution's descriptor, both ways.
#include "src/desc/conv1d.h"
#include "src/desc/token.h"

namespace plait::impl {

std::string conv1d_descriptor::token() const {
    std::string out = text(family(), ':', dtype_of(dtype_of_role(PLAIT_X)).name, ":b", batch_);
    if (layout_ == PLAIT_BCT)
        out += text(":c", channels_, ":t", length_);
    else
        out += text(":t", length_, ":c", channels_);
    out += text(":k", width_);
    if (activation_ == PLAIT_ACT_SILU) out += ":silu";
    if (residual_) out += ":residual";
    if (kind_ == PLAIT_STATE_RING || entries() != width_ - 1)
        out += text(kind_ == PLAIT_STATE_RING ? ":state=ring." : ":state=lin.", entries());
    if (varlen_) out += text(":seqs=", varlen_->sequences, '.', varlen_->max_length);
    if (slots_) out += text(":slots=", slots_->count, '.', slots_->pad);
    append_roles(out);
    return out;
}

namespace {

plait_direction direction_of(const token_field &family) {
    if (family.text == "conv1d.fwd") return PLAIT_FORWARD;
    if (family.text == "conv1d.bwd") return PLAIT_BACKWARD;
    if (family.text == "conv1d.update") return PLAIT_UPDATE;
    refuse(family, "is no family; families: wht conv1d.fwd conv1d.bwd "
                   "conv1d.update kda.fwd kda.bwd");
}

int64_t parse_extent(const std::vector<token_field> &fields, size_t at, char letter) {
    const token_field &field = fields[at];
    if (field.text[0] != letter || field.text.size() < 2)
        refuse(field, "is not ", letter,
               "<number>: b, then c and t in the order of the layout, then k follow the type");
    const int64_t extent = parse_int(field.part(1));
    const int64_t least = letter == 'k' ? 1 : 0;
    if (extent < least) refuse(field, "is less than ", least);
    return extent;
}

/// Options by name; a second one of a kind is refused.
class options {
public:
    explicit options(conv1d_descriptor &desc) : desc_(desc) {}

    /// False when the field is no option.
    bool parse(const token_field &field) {
        const size_t equal = field.text.find('=');
        const bool valued = equal != std::string_view::npos;
        const std::string_view name = field.text.substr(0, equal);
        if (!valued && name == "silu") {
            once(silu_, field);
            desc_.set_activation(PLAIT_ACT_SILU);
        } else if (!valued && name == "residual") {
            once(residual_, field);
            desc_.set_residual(true);
        } else if (valued && name == "state") {
            once(state_, field);
            parse_state(field, field.part(equal + 1));
        } else if (valued && name == "seqs") {
            once(seqs_, field);
            const auto [count, longest] = parse_two(field.part(equal + 1));
            apply(field, [&, c = count, l = longest] { desc_.set_varlen(c, l); });
        } else if (valued && name == "slots") {
            once(slots_, field);
            const auto [count, pad] = parse_two(field.part(equal + 1));
            if (pad < INT32_MIN || pad > INT32_MAX) refuse(field, "has a pad slot beyond 32 bits");
            apply(field, [&, c = count, p = static_cast<int32_t>(pad)] { desc_.set_slots(c, p); });
        } else {
            return false;
        }
        return true;
    }

private:
    void parse_state(const token_field &field, const token_field &value) {
        const bool ring = value.text.substr(0, 5) == "ring.";
        if (!ring && value.text.substr(0, 4) != "lin.")
            refuse(value, "is no state: lin.<entries> or ring.<entries>");
        const int64_t entries = parse_int(value.part(ring ? 5 : 4));
        apply(field,
              [&] { desc_.set_state(ring ? PLAIT_STATE_RING : PLAIT_STATE_LINEAR, entries); });
    }

    static void once(bool &seen, const token_field &field) {
        if (seen) refuse(field, "is a second option of one kind");
        seen = true;
    }

    conv1d_descriptor &desc_;
    bool silu_ = false, residual_ = false, state_ = false, seqs_ = false, slots_ = false;
};

} // namespace

std::unique_ptr<descriptor> parse_conv1d(const std::vector<token_field> &fields) {
    const plait_direction direction = direction_of(fields[0]);
    if (fields.size() < 6)
        refuse(fields[0], "ends early: type and sizes follow, conv1d.fwd:bf16:b4:c64:t2048:k4");
    const plait_dtype dtype = parse_dtype(fields[1]);
    const int64_t batch = parse_extent(fields, 2, 'b');
    const bool time_inside = fields[3].text[0] == 'c';
    const int64_t channels = parse_extent(fields, time_inside ? 3 : 4, 'c');
    const int64_t length = parse_extent(fields, time_inside ? 4 : 3, 't');
    const int64_t width = parse_extent(fields, 5, 'k');

    std::unique_ptr<conv1d_descriptor> desc;
    apply(fields[1], [&] {
        desc =
            std::make_unique<conv1d_descriptor>(direction, dtype, batch, channels, length, width);
    });
    desc->set_layout(time_inside ? PLAIT_BCT : PLAIT_BTC);

    options parser(*desc);
    std::vector<plait_role> seen;
    for (size_t i = 6; i < fields.size(); ++i) {
        const token_field &field = fields[i];
        if (field.text[0] == '+' || field.text[0] == '-')
            parse_uses(*desc, field);
        else if (!parser.parse(field) && !parse_role(*desc, field, seen))
            refuse(field, "is no option or role of ", desc->family());
    }
    return desc;
}

} // namespace plait::impl
