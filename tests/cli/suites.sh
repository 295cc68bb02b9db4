#!/usr/bin/env bash
# benchmarks/run.sh on suites of one token: the records of a device go into the folder of its name.
# Usage: suites.sh PLAIT
set -euo pipefail
plait=$(realpath "$1")
source=$(cd "$(dirname "$0")/../.." && pwd)
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree/benchmarks/suites"
cp "$source/benchmarks/run.sh" "$tree/benchmarks/"
echo wht:f32:b2:n64 >"$tree/benchmarks/suites/wht_cpu.txt"
echo conv1d.fwd:f32:b1:c4:t64:k4 >"$tree/benchmarks/suites/conv1d_cpu.txt"

# The suites of a GPU are not for this test.
CUDA_VISIBLE_DEVICES='' PLAIT_THREADS=2 "$tree/benchmarks/run.sh" "$plait" >"$tree/out"
device=$("$plait" bench --backend cpu --reps 3 --json wht:f32:n2 | sed 's/.*"device": *"[^"]*\/\([^"]*\)".*/\1/')
for file in wht_cpu wht_cpu.1thread conv1d_cpu conv1d_cpu.1thread; do
    [ -s "$tree/benchmarks/results/$device/$file.jsonl" ] || {
        echo "no record in results/$device/$file.jsonl; there are:"
        find "$tree/benchmarks/results" -type f
        exit 1
    }
done
[ "$(grep -c '^wht:f32:b2:n64 ' "$tree/benchmarks/results/$device/table.txt")" = 2 ]
