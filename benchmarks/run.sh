#!/usr/bin/env bash
# Runs every suite for the device found and writes results/<device>/<suite>.jsonl and table.txt.
# Usage: benchmarks/run.sh [PLAIT]; PLAIT is the program, default: the newest in build*/.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

plait=${1:-$(find build* -path '*/src/cli/plait' -type f -perm -u+x -printf '%T@ %p\n' 2>/dev/null |
    sort -rn | sed -n '1s/^[^ ]* //p')}
[ -n "$plait" ] && [ -x "$plait" ] || {
    echo "benchmarks/run.sh: no program plait in build*/; build it or name it" >&2
    exit 2
}

suite() { # BACKEND NAME [OPTION...]: one suite into the folder of its device
    local backend=$1 name=$2 device folder status=0
    shift 2
    device=$("$plait" candidates wht:f32:n2 --backend "$backend" --json | sed -n 's/.*"device": *"\([^"]*\)".*/\1/p')
    folder=benchmarks/results/${device##*/}
    mkdir -p "$folder"
    # The first suite of a run begins the table of its device.
    if [[ " $begun " != *" $folder "* ]]; then
        : >"$folder/table.txt"
        begun+=" $folder"
    fi
    {
        echo "$name $*"
        "$plait" bench --backend "$backend" --suite "benchmarks/suites/$name.txt" \
            --json "$folder/$name${suffix:-}.jsonl" "$@"
        echo
    } | tee -a "$folder/table.txt" || status=$?
    [ "$status" -eq 0 ] || { echo "benchmarks/run.sh: $name failed" >&2; failed=1; }
}

begun="" failed=0
if "$plait" info --backend cuda >/dev/null 2>&1; then
    suite cuda wht_block
    suite cuda wht_cluster
    suite cuda wht_two_pass
    suite cuda wht_l2
    suite cuda wht_latency --latency --all-candidates
    suite cuda wht_mma16 --all-candidates
    suite cuda wht_types
    suite cuda wht_fused
    suite cuda wht_kron --all-candidates --math tf32
    suite cuda wht_corpus --all-candidates --reps 11
    suite cuda conv1d_fwd
    suite cuda conv1d_bwd
    suite cuda conv1d_update --latency
    suite cuda kda_fwd
    suite cuda kda_bwd
    suite cuda kda_reserve
    suite cuda kda_decode --latency
fi
for family in wht conv1d; do
    suffix=.1thread suite cpu "${family}_cpu" --threads 1
    suite cpu "${family}_cpu"
done
exit "$failed"
