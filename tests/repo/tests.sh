#!/usr/bin/env bash
# Every test case can fail: a file with test cases has checks, and a file of checks has a case.
. "$(dirname "$0")/files.sh"
count=0
while IFS= read -r file; do
    count=$((count + 1))
    awk -v file="$file" '
        /TEST_CASE/ { if (open && !checks) { print file ": no check in " open; bad = 1 } open = $0; checks = 0 }
        /CHECK|REQUIRE|FAIL|check_|expect_|require_/ { checks = 1 }
        END { if (open && !checks) { print file ": no check in " open; bad = 1 } exit bad }' "$file" ||
        bad=1
done < <(files '^tests/.*\.(cpp|cu)$' | xargs -d '\n' grep -lE '\bTEST_CASE' -- /dev/null)
[ "$count" -gt 0 ] || complain "found no test files"
exit $bad
