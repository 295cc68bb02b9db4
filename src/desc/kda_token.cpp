// The token of a descriptor of Kimi Delta Attention, both ways.
#include "src/desc/kda.h"
#include "src/desc/token.h"

namespace plait::impl {

std::string kda_descriptor::token() const {
    std::string out = text(family(), ':', dtype_of(dtype_of_role(PLAIT_Q)).name, ":b", batch_, ":t",
                           length_, ":h", heads_);
    if (value_heads_ != heads_) out += text(":hv", value_heads_);
    out += text(":k", dim_k_, ":v", dim_v_);
    if (gate_ == PLAIT_GATE_LOG) out += ":gate=log";
    if (gate_ == PLAIT_GATE_SOFTPLUS) out += ":gate=softplus";
    if (gate_ == PLAIT_GATE_BOUNDED) out += text(":gate=bounded.", lower_bound_);
    if (beta_logit_) out += text(":beta=logit.", beta_scale_);
    if (eps_) out += text(":norm=", *eps_);
    if (scale() != default_scale()) out += text(":scale=", scale());
    if (orientation_) out += orientation_ == PLAIT_STATE_KV ? ":state=kv" : ":state=vk";
    if (varlen_) out += text(":seqs=", varlen_->sequences, '.', varlen_->max_length);
    if (slots_) out += text(":slots=", slots_->count, '.', slots_->pad);
    if (uses(PLAIT_RESERVE)) out += ":reserve=chunk64";
    append_roles(out);
    return out;
}

namespace {

bool starts_with(std::string_view text, std::string_view head) {
    return text.substr(0, head.size()) == head;
}

/// The number of "h16"; `letters` stand in front of it.
int64_t parse_extent(const std::vector<token_field> &fields, size_t at, std::string_view letters) {
    const token_field &field = fields[at < fields.size() ? at : fields.size() - 1];
    if (at >= fields.size() || !starts_with(field.text, letters) ||
        field.text.size() == letters.size())
        refuse(field, at >= fields.size() ? "ends early: " : "is not ", letters,
               "<number>: b, t, h, then hv where it differs from h, then k and v follow the type");
    return parse_int(field.part(letters.size()));
}

/// Options by name; a second one of a kind is refused.
class options {
public:
    explicit options(kda_descriptor &desc) : desc_(desc) {}

    /// False when the field is no option.
    bool parse(const token_field &field) {
        const size_t equal = field.text.find('=');
        if (equal == std::string_view::npos) return false;
        const std::string_view name = field.text.substr(0, equal);
        const token_field value = field.part(equal + 1);
        if (name == "gate") {
            once(gate_, field);
            parse_gate(field, value);
        } else if (name == "beta") {
            once(beta_, field);
            if (!starts_with(value.text, "logit.")) refuse(value, "is not logit.<scale>");
            const double scale = parse_number(value.part(6));
            apply(field, [&] { desc_.set_beta(true, scale); });
        } else if (name == "norm") {
            once(norm_, field);
            const double eps = parse_number(value);
            apply(field, [&] { desc_.set_qk_norm(true, eps); });
        } else if (name == "scale") {
            once(scale_, field);
            const double scale = parse_number(value);
            apply(field, [&] { desc_.set_scale(scale); });
        } else if (name == "state") {
            once(state_, field);
            if (value.text != "kv" && value.text != "vk")
                refuse(value, "is no orientation of states: kv or vk");
            desc_.set_state(value.text == "kv" ? PLAIT_STATE_KV : PLAIT_STATE_VK);
        } else if (name == "seqs") {
            once(seqs_, field);
            const auto [count, longest] = parse_two(value);
            apply(field, [&, c = count, l = longest] { desc_.set_varlen(c, l); });
        } else if (name == "slots") {
            once(slots_, field);
            const auto [count, pad] = parse_two(value);
            if (pad < INT32_MIN || pad > INT32_MAX) refuse(field, "has a pad slot beyond 32 bits");
            apply(field, [&, c = count, p = static_cast<int32_t>(pad)] { desc_.set_slots(c, p); });
        } else if (name == "reserve") {
            once(reserve_, field);
            if (value.text != "chunk64") refuse(value, "is no layout of a reserve: chunk64");
            desc_.use(PLAIT_RESERVE, true);
        } else {
            return false;
        }
        return true;
    }

private:
    void parse_gate(const token_field &field, const token_field &value) {
        if (value.text == "log") return desc_.set_gate(PLAIT_GATE_LOG, 0);
        if (value.text == "softplus") return desc_.set_gate(PLAIT_GATE_SOFTPLUS, 0);
        if (!starts_with(value.text, "bounded."))
            refuse(value, "is no gate: log, softplus or bounded.<lower bound>");
        const double bound = parse_number(value.part(8));
        apply(field, [&] { desc_.set_gate(PLAIT_GATE_BOUNDED, bound); });
    }

    static void once(bool &seen, const token_field &field) {
        if (seen) refuse(field, "is a second option of one kind");
        seen = true;
    }

    kda_descriptor &desc_;
    bool gate_ = false, beta_ = false, norm_ = false, scale_ = false, state_ = false, seqs_ = false,
         slots_ = false, reserve_ = false;
};

} // namespace

std::unique_ptr<descriptor> parse_kda(const std::vector<token_field> &fields) {
    if (fields.size() < 7)
        refuse(fields[0], "ends early: type and sizes follow, kda.fwd:bf16:b1:t8192:h16:k128:v128");
    const plait_direction direction = fields[0].text == "kda.fwd" ? PLAIT_FORWARD : PLAIT_BACKWARD;
    const plait_dtype dtype = parse_dtype(fields[1]);
    const int64_t batch = parse_extent(fields, 2, "b");
    const int64_t length = parse_extent(fields, 3, "t");
    const int64_t heads = parse_extent(fields, 4, "h");
    const bool grouped = starts_with(fields[5].text, "hv");
    const int64_t value_heads = grouped ? parse_extent(fields, 5, "hv") : heads;
    const size_t keys = grouped ? 6 : 5;
    const int64_t dim_k = parse_extent(fields, keys, "k");
    const int64_t dim_v = parse_extent(fields, keys + 1, "v");

    std::unique_ptr<kda_descriptor> desc;
    apply(fields[1], [&] {
        desc = std::make_unique<kda_descriptor>(direction, dtype, batch, length, heads, value_heads,
                                                dim_k, dim_v);
    });
    options parser(*desc);
    std::vector<plait_role> seen;
    for (size_t i = keys + 2; i < fields.size(); ++i) {
        const token_field &field = fields[i];
        if (field.text[0] == '+' || field.text[0] == '-')
            parse_uses(*desc, field);
        else if (!parser.parse(field) && !parse_role(*desc, field, seen))
            refuse(field, "is no option or role of ", desc->family());
    }
    return desc;
}

} // namespace plait::impl
