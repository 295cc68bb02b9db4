#!/usr/bin/env bash
# Every file with test cases has checks of its own, whatever its helpers do.
. "$(dirname "$0")/files.sh"
count=0
while IFS= read -r file; do
    count=$((count + 1))
    grep -qE '\b(CHECK|REQUIRE|FAIL|FAIL_CHECK)(_[A-Z_]+)?\(' "$file" || complain "no check in $file"
done < <(files '^tests/.*\.(cpp|cu)$' | xargs -d '\n' grep -lE '^ *TEST_CASE' -- /dev/null)
[ "$count" -gt 0 ] || complain "found no test files"
exit $bad
