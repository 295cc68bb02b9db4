#!/usr/bin/env bash
# From a candidate to its code by grep: the head of each table in src/planner lists the steps of
# every candidate, and the head of one file with a kernel in lib says `// STEP: ...`. A file with
# another kernel of the step says `// Part of STEP, which begins in FILE:`, and FILE names it.
. "$(dirname "$0")/files.sh"
declare -A listed=() begins=()
for family in wht conv1d kda; do
    table=src/planner/${family}_table.cpp
    head_of_table=$(sed '/^#include/q' "$table")
    while IFS= read -r name; do
        grep -qE "^//   ${name//./\\.} +$family\." <<<"$head_of_table" ||
            complain "$table: the head says no steps of $name"
    done < <(sed -nE 's/^ *\{"([a-z0-9_.]+)", .*/\1/p' "$table")
    for step in $(grep -E '^//  ' <<<"$head_of_table" | sed -E 's|^// +||' | tr -s ',; ' '\n' |
        grep -E "^$family\.[a-z0-9_]+$"); do
        listed[$step]=1
    done
done
[ ${#listed[@]} -gt 0 ] || complain "found no steps in src/planner/*_table.cpp"

head_of() { sed '/^#/q' "$1"; }
kernels=$(files '^lib/cuda/' | xargs -d '\n' grep -l '^__global__' -- /dev/null
    files '^lib/cpu/.*\.cpp$' | xargs -d '\n' grep -lE '^// [a-z0-9]+\.[a-z0-9_]+: ' -- /dev/null)
for file in $kernels; do
    steps=$(head_of "$file" | sed -nE 's|^// ([a-z0-9]+\.[a-z0-9_]+): .*|\1|p')
    for step in $steps; do
        [ -n "${listed[$step]:-}" ] || complain "$file: no head of a table lists the step $step"
        [ -z "${begins[$step]:-}" ] ||
            complain "$file and ${begins[$step]} both begin with // $step:"
        begins[$step]=$file
    done
    part=$(sed -nE '1s|^// Part of ([a-z0-9]+\.[a-z0-9_]+), which begins in ([a-z0-9_.]+):$|\1 \2|p' "$file")
    [ -n "$steps$part" ] || complain "$file has a kernel and does not begin with // STEP: ..."
    [ -n "$part" ] || continue
    whole=${file%/*}/${part#* }
    { [ -f "$whole" ] && head_of "$whole" | grep -q "^// ${part% *}: "; } ||
        complain "$file is a part of ${part% *}, which does not begin in $whole"
    { [ -f "$whole" ] && head_of "$whole" | grep -qF "${file##*/}"; } ||
        complain "$whole does not name its part $file"
done
for step in "${!listed[@]}"; do
    [ -n "${begins[$step]:-}" ] || complain "no file with a kernel in lib begins with // $step:"
done
while IFS= read -r file; do
    grep -qxF "$file" <<<"$kernels" || complain "$file says // STEP: and has no kernel"
done < <(files '^lib/' | xargs -d '\n' grep -lE '^// (wht|conv1d|kda)\.[a-z0-9_]+: ' -- /dev/null)
exit $bad
