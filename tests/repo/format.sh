#!/usr/bin/env bash
# .clang-format is the only opinion on layout, as clang-format 14 (Debian 12) reads it: other
# versions lay out short structs and nested lambdas in other ways, so they are not asked.
. "$(dirname "$0")/files.sh"
for tool in clang-format-14 clang-format; do
    [ "$("$tool" --version 2>/dev/null | sed -n 's/.*version \([0-9]*\)\..*/\1/p')" = 14 ] && break
    tool=
done
if [ -z "$tool" ]; then
    echo "no clang-format 14 here"
    exit 77
fi
wrong=$(files '\.(c|h|cpp|hpp|cu|cuh)$' | xargs -d '\n' "$tool" --dry-run -Werror 2>&1 | grep 'error:')
[ -z "$wrong" ] || complain "$(head -40 <<<"$wrong")"
exit $bad
