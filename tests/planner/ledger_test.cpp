// The ledger on random intervals: pieces that live together do not overlap, and no piece could lie
// lower.
#include "src/core/status.h"
#include "tests/planner/support.h"

#include <algorithm>
#include <random>

namespace plait::test {

namespace {

bool together(const piece &a, const piece &b) {
    return a.first_step <= b.last_step && b.first_step <= a.last_step;
}

bool overlap(const piece &a, int64_t at, const piece &b) {
    return at < b.offset + b.bytes && b.offset < at + a.bytes;
}

ledger random_ledger(std::mt19937 &random) {
    ledger l;
    const int pieces = 1 + static_cast<int>(random() % 12);
    for (int i = 0; i < pieces; ++i) {
        const int first = static_cast<int>(random() % 6);
        const int last = first + static_cast<int>(random() % 3);
        l.book(std::to_string(i), 1 + random() % 2000, first, last, int64_t{1} << random() % 9);
    }
    l.seal();
    return l;
}

} // namespace

TEST_CASE("ledger properties") {
    for (unsigned seed = 0; seed < 2000; ++seed) {
        INFO("seed " << seed);
        std::mt19937 random(seed);
        const ledger l = random_ledger(random);
        int64_t end = 0;
        for (const piece &p : l.pieces()) {
            REQUIRE(p.offset >= 0);
            REQUIRE(p.offset % p.align == 0);
            end = std::max(end, p.offset + p.bytes);
            for (const piece &q : l.pieces())
                if (&p != &q && together(p, q)) REQUIRE_FALSE(overlap(p, p.offset, q));
            // Nothing was wasted below it: each lower aligned offset meets a piece at least as big.
            for (int64_t at = 0; at < p.offset; at += p.align) {
                bool blocked = false;
                for (const piece &q : l.pieces())
                    blocked |=
                        &p != &q && together(p, q) && q.bytes >= p.bytes && overlap(p, at, q);
                REQUIRE(blocked);
            }
        }
        REQUIRE(l.bytes() == end);
        std::mt19937 again(seed);
        const ledger second = random_ledger(again);
        for (size_t i = 0; i < l.pieces().size(); ++i)
            REQUIRE(l.pieces()[i].offset == second.pieces()[i].offset);
    }
}

TEST_CASE("ledger shares the place of dead pieces") {
    ledger l;
    l.book("a", 1000, 0, 1);
    l.book("b", 1000, 1, 2);
    l.book("c", 1000, 2, 3);
    l.seal();
    CHECK(l.pieces()[0].offset == 0);
    CHECK(l.pieces()[1].offset == 1024);
    CHECK(l.pieces()[2].offset == 0);
    CHECK(l.bytes() == 2024);
}

TEST_CASE("ledger misuse is a bug of plait") {
    const auto internal = [](const std::function<void(ledger &)> &misuse) {
        ledger l;
        return sentence_of(PLAIT_ERR_INTERNAL, [&] { misuse(l); });
    };
    CHECK(contains(internal([](ledger &l) { l.book("a", 0, 0, 0); }), "books 0 bytes"));
    CHECK(contains(internal([](ledger &l) { l.book("a", -5, 0, 0); }), "books -5 bytes"));
    CHECK(contains(internal([](ledger &l) { l.book("a", 1, 2, 1); }), "steps 2 to 1"));
    CHECK(contains(internal([](ledger &l) { l.book("a", 1, -1, 1); }), "steps -1 to 1"));
    CHECK(contains(internal([](ledger &l) { l.book("a", 1, 0, 0, 48); }), "alignment 48"));
    CHECK(contains(internal([](ledger &l) { l.book("a", 1, 0, 0, 512); }), "alignment 512"));
    CHECK(contains(internal([](ledger &l) {
                       l.book("a", 1, 0, 0);
                       (void)l.bytes();
                   }),
                   "before seal"));
    CHECK(contains(internal([](ledger &l) {
                       l.seal();
                       l.book("a", 1, 0, 0);
                   }),
                   "after seal"));
    CHECK(contains(internal([](ledger &l) {
                       l.seal();
                       l.seal();
                   }),
                   "sealed twice"));
    ledger huge;
    huge.book("a", INT64_MAX - 10, 0, 0);
    huge.book("b", INT64_MAX - 10, 0, 0);
    CHECK(contains(sentence_of(PLAIT_ERR_INVALID_DESC, [&] { huge.seal(); }), "beyond 64 bits"));
}

TEST_CASE("an empty ledger takes no workspace") {
    ledger l;
    CHECK(l.bytes() == 0);
    l.seal();
    CHECK(l.bytes() == 0);
}

} // namespace plait::test
