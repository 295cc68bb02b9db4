#!/usr/bin/env bash
# From a candidate to its code by grep: the head of each table in src/planner lists the steps of
# every candidate, and the head of each file with a kernel in lib says `// STEP: ...`.
. "$(dirname "$0")/files.sh"
declare -A listed=()
for family in wht conv1d kda; do
    table=src/planner/${family}_table.cpp
    head_of_table=$(sed '/^#include/q' "$table")
    while IFS= read -r name; do
        grep -qE "^//   ${name//./\\.} +$family\." <<<"$head_of_table" ||
            complain "$table: the head says no steps of $name"
    done < <(sed -nE 's/^ *\{"([a-z0-9_.]+)", .*/\1/p' "$table")
    for step in $(grep -E '^//  ' <<<"$head_of_table" | sed -E 's|^// +||' | tr -s ', ' '\n' |
        grep -E "^$family\.[a-z0-9_]+$"); do
        listed[$step]=1
    done
done
[ ${#listed[@]} -gt 0 ] || complain "found no steps in src/planner/*_table.cpp"
for step in "${!listed[@]}"; do
    found=$(files '^lib/' | xargs -d '\n' grep -lE "^// ${step//./\\.}: " -- /dev/null)
    [ -n "$found" ] || complain "no file in lib begins with // $step:"
    for file in $found; do
        case $file in
        lib/cpu/*.cpp) ;;
        *) grep -q '^__global__' "$file" || complain "$file says // $step: and has no kernel" ;;
        esac
    done
done
while IFS= read -r file; do
    steps=$(sed -nE '/^#/q; s|^// ([a-z0-9]+\.[a-z0-9_]+): .*|\1|p' "$file")
    [ -n "$steps" ] || complain "$file has a kernel and does not begin with // STEP: ..."
    for step in $steps; do
        [ -n "${listed[$step]:-}" ] || complain "$file: no head of a table lists the step $step"
    done
done < <(files '^lib/cuda/' | xargs -d '\n' grep -l '^__global__' -- /dev/null
    files '^lib/cpu/' | xargs -d '\n' grep -lE '^// [a-z0-9]+\.[a-z0-9_]+: ' -- /dev/null)
exit $bad
