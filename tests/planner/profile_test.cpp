#include "src/core/text.h"
#include "src/planner/text_lines.h"
#include "tests/planner/support.h"

namespace plait::test {

namespace {

/// The profile's text with one line replaced ("" removes it).
std::string with_line(const profile &p, const std::string &key, const std::string &line) {
    std::string out;
    const std::string whole = p.to_text();
    for (const std::string_view old : split(whole, '\n')) {
        if (old.empty()) continue;
        const bool hit = old.substr(0, old.find(' ')) == key;
        if (!hit)
            out += text(old, '\n');
        else if (!line.empty())
            out += text(line, '\n');
    }
    return out;
}

std::string refusal(const std::string &whole) {
    return sentence_of(PLAIT_ERR_INVALID_ARGUMENT, [&] { (void)profile_from_text(whole); });
}

} // namespace

TEST_CASE("profile text goes both ways") {
    for (const named_profile &p : profiles()) {
        const std::string once = p.facts.to_text();
        const profile back = profile_from_text(once);
        CHECK(back.to_text() == once);
        CHECK(back.fingerprint() == p.facts.fingerprint());
        CHECK(back.copy_bandwidth == p.facts.copy_bandwidth);
        CHECK(back.memory_bytes == p.facts.memory_bytes);
        CHECK(back.built == p.facts.built);
        CHECK(back.smem_per_block == p.facts.smem_per_block);
        CHECK(back.l2_core_bytes == p.facts.l2_core_bytes);
    }
    profile odd = profile_named("h200");
    odd.copy_bandwidth = 1.0 / 3;
    odd.built.clear();
    odd.name = "a  b | c";
    CHECK(profile_from_text(odd.to_text()).copy_bandwidth == odd.copy_bandwidth);
    CHECK(profile_from_text(odd.to_text()).built.empty());
    CHECK(profile_from_text(odd.to_text()).name == odd.name);
}

TEST_CASE("fingerprints are one word") {
    CHECK(profile_named("h200").fingerprint() == "cuda/9.0/132sm/NVIDIA_H200");
    profile cpu = profile_named("cpu_avx512_64c");
    CHECK(cpu.fingerprint() == "cpu/AVX3/64c/Server_CPU");
    cpu.threads = 8;
    CHECK(cpu.fingerprint() == "cpu/AVX3/64c/8t/Server_CPU");
    cpu.threads = 64;
    cpu.name = " Brand(R)  CPU | 3.0/GHz\t";
    CHECK(cpu.fingerprint() == "cpu/AVX3/64c/Brand(R)_CPU_3.0_GHz");
    cpu.name = "|||";
    CHECK(cpu.fingerprint() == "cpu/AVX3/64c/unnamed");
}

TEST_CASE("profile text: errors name the line") {
    const profile &h200 = profile_named("h200");
    CHECK(contains(refusal(""), "line 1"));
    CHECK(contains(refusal("hello\n"), "the first line must be \"plait-profile 1\""));
    CHECK(contains(refusal("plait-profile x\n"), "line 1"));
    CHECK(contains(refusal("plait-profile 0\n"), "line 1"));
    CHECK(contains(refusal("plait-profile 1\n"), "ends without backend"));
    CHECK(contains(refusal("plait-profile 1\nbackend tpu\n"), "line 2: backend=tpu"));
    CHECK(contains(sentence_of(PLAIT_ERR_VERSION,
                               [] { (void)profile_from_text("plait-profile 2\nwhatever\n"); }),
                   "newer"));
    CHECK(contains(refusal(with_line(h200, "sms", "sm 132")), "line 9: sm is no key"));
    CHECK(contains(refusal(with_line(h200, "sms", "cores 8")), "no key of a cuda profile"));
    CHECK(contains(refusal(with_line(h200, "sms", "")), "ends without sms"));
    CHECK(contains(refusal(with_line(h200, "sms", "sms 132\nsms 132")), "was given in line 9"));
    CHECK(
        contains(refusal(with_line(h200, "sms", "sms many")), "line 9: sms=many is not a number"));
    CHECK(contains(refusal(with_line(h200, "sms", "sms 132x")), "is not a number"));
    CHECK(contains(refusal(with_line(h200, "sms", "sms 99999999999")), "is not a number"));
    CHECK(contains(refusal(with_line(h200, "sms", "sms")), "is not a number"));
    CHECK(contains(refusal(with_line(h200, "sms", "sms 0")), "must be above 0"));
    CHECK(contains(refusal(with_line(h200, "sms", "sms -1")), "is negative"));
    CHECK(contains(refusal(with_line(h200, "copy_bandwidth", "copy_bandwidth inf")), "not finite"));
    CHECK(contains(refusal(with_line(h200, "copy_bandwidth", "copy_bandwidth nan")), "not finite"));
    CHECK(contains(refusal(with_line(h200, "name", "name")), "is empty"));
    CHECK(contains(refusal(with_line(h200, "built", "built 80 x")), "list of architectures"));
    CHECK(contains(refusal(with_line(h200, "built", "built")), "write none"));
}

TEST_CASE("profile text: more than any device has") {
    for (const named_profile &p : profiles()) {
        const std::string whole = p.facts.to_text();
        for (const std::string_view line : split(whole, '\n')) {
            const std::string key(line.substr(0, line.find(' ')));
            if (key.empty() || key == "plait-profile" || key == "backend" || key == "name" ||
                key == "isa" || key == "built")
                continue;
            INFO(key);
            const bool count = key.find("_second") == std::string::npos &&
                               key.find("bandwidth") == std::string::npos;
            const bool bytes =
                key.find("bytes") != std::string::npos || key.find("smem") != std::string::npos;
            const char *most = bytes ? "9223372036854775807" : count ? "2147483647" : "1e300";
            CHECK(contains(refusal(with_line(p.facts, key, text(key, ' ', most))), "is above "));
        }
    }
    const profile &h200 = profile_named("h200");
    CHECK(contains(refusal(with_line(h200, "cc_major", "cc_major 2147483647")),
                   "cc_major=2147483647 is above 99"));
    CHECK(contains(refusal(with_line(h200, "smem_per_sm", "smem_per_sm 1024")),
                   "smem_per_sm=1024 is below smem_per_block=232448"));
    CHECK(contains(refusal(with_line(h200, "built", "built 2147483647")), "list of architectures"));
}

TEST_CASE("profile text: what ends within a line is torn") {
    for (const named_profile &p : profiles()) {
        const std::string whole = p.facts.to_text();
        for (size_t length = whole.size() - 1; whole[length - 1] != '\n'; --length) {
            INFO(length);
            CHECK(contains(refusal(whole.substr(0, length)), "profile line "));
        }
        CHECK(contains(refusal(whole.substr(0, whole.size() - 1)), "ends within this line"));
    }
    std::string nul = profile_named("a100").to_text();
    nul.insert(nul.find("\nsms") + 5, 1, '\0');
    CHECK(contains(refusal(nul), "byte 0x0 is not printable"));
    CHECK(contains(sentence_of(PLAIT_ERR_VERSION,
                               [] { (void)profile_from_text("plait-profile 99999999999999\n"); }),
                   "version 99999999999999 is newer"));
}

TEST_CASE("kernels wait for their predecessors where there is code for it") {
    profile p = profile_named("h200");
    const auto waits = [&p](int major, std::vector<int> built) {
        p.cc_major = major;
        p.built = std::move(built);
        return waits_for_predecessors(p);
    };
    CHECK(waits(9, {80, 90}));
    CHECK(waits(12, {90}));
    CHECK_FALSE(waits(9, {80}));
    CHECK_FALSE(waits(9, {100})); // runs nowhere
    CHECK_FALSE(waits(8, {80, 90}));
    p.backend = PLAIT_CPU;
    CHECK_FALSE(waits(9, {90}));
}

TEST_CASE("profile text: comments, blank lines and carriage returns") {
    std::string text = profile_named("a100").to_text();
    text.replace(text.find("\nsms"), 1, "\r\n\n  # a comment\n");
    CHECK(profile_from_text(text).sms == 108);
}

} // namespace plait::test
