#!/usr/bin/env bash
# Everything that only a GPU can prove: builds, runs plait_test_gpu part by part, then the
# checkers of compute-sanitizer over every kernel, and records what ran.
#
#   tests/gpu/run.sh [--build-dir DIR] [--no-build] [--no-sanitizer] [--fresh] [--progress FILE]
#                    [--record FILE]
#
#   --build-dir DIR  where the binaries are or will be (default: build/gpu)
#   --no-build       run what is in DIR; libraries that the machine lacks may lie beside the binary
#   --no-sanitizer   the tests alone; writes no record
#   --fresh          run again what has already passed on these sources; without it a run that was
#                    cut short goes on where it stopped
#   --progress FILE  what has passed, added to at once, so that a run on another machine can go on
#                    from it (default: passed.txt in DIR)
#   --record FILE    default: tests/gpu/last_run.txt
#
# Exit code: 0 passed, 1 failed, 77 no device.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

dir=build/gpu build=yes sanitizer=yes fresh=no progress='' record=tests/gpu/last_run.txt
while [ $# -gt 0 ]; do
    case $1 in
    --build-dir) dir=${2:?--build-dir needs a folder} && shift ;;
    --no-build) build=no ;;
    --no-sanitizer) sanitizer=no ;;
    --fresh) fresh=yes ;;
    --progress) progress=${2:?--progress needs a file} && shift ;;
    --record) record=${2:?--record needs a file} && shift ;;
    *)
        sed -n '2,17s/^# \{0,1\}//p' "$0"
        exit 2
        ;;
    esac
    shift
done

say() { printf 'gpu: %s\n' "$*"; }

if [ "$build" = yes ]; then
    if [ "$dir" = build/gpu ]; then cmake --preset gpu; else cmake --preset gpu -B "$dir"; fi &&
        cmake --build "$dir" --target plait_test_gpu --parallel "$(nproc)" || exit 1
fi
test=$(find "$dir" -type f -name plait_test_gpu -print -quit)
[ -n "$test" ] || { say "no plait_test_gpu in $dir" && exit 1; }

# Wherever the tree was moved: the library of the build, and what lies beside the binary.
libraries=$(find "$dir" -name 'libplait.so*' -printf '%h\n' | sort -u | paste -sd:)
export LD_LIBRARY_PATH="$(dirname "$test")${libraries:+:$libraries}:/usr/local/cuda/lib64${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export PLAIT_TEST_CASES=$PWD/tests/cases
unset PLAIT_WISDOM PLAIT_CANDIDATES PLAIT_LOG

# What has passed of these sources on such a device: PART and a tab before every line of the record.
# What the program said is in PART.log.
sources=$(tests/gpu/source_hash.sh)
progress=${progress:-$dir/passed.txt} logs=$dir/logs
head="sources $sources on $(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null | head -1)"
[ "$fresh" = no ] && grep -qxF "$head" "$progress" 2>/dev/null || echo "$head" >"$progress" || exit 1
mkdir -p "$logs"
failed=0
seconds_start=$SECONDS

# counts LOG: "43 tests, 12345 assertions" from doctest's last lines.
counts() {
    local tests asserts
    tests=$(sed -n 's/.*\[doctest\] test cases: *\([0-9]*\).*/\1/p' "$1" | tail -1)
    asserts=$(sed -n 's/.*\[doctest\] assertions: *\([0-9]*\).*/\1/p' "$1" | tail -1)
    printf '%s tests, %s assertions' "${tests:-0}" "${asserts:-0}"
}

# Which source files a part takes, as doctest filters them; parts of about equal times. `quiet` runs
# alone, as what it says of times and of free memory needs. wht, conv1d and kda are for the checkers.
files_of() {
    local conv1d='*/accuracy/conv1d_*,*/gpu/conv1d_*' kda='*/accuracy/kda_*,*/gpu/kda_*'
    case $1 in
    quiet) echo '--source-file=*/gpu/memory_*,*/gpu/planning_*,*/gpu/streams_*,*/gpu/huge_*' ;;
    rows) echo '--source-file=*/gpu/kernels_*,*/accuracy/sweep_*,*/accuracy/oracle_*' ;;
    rules) echo '--source-file=*/accuracy/around_*,*/accuracy/properties_*,*/accuracy/cases_*,*/gpu/graph_*,*/gpu/refused_*' ;;
    edges) echo '--source-file=*/accuracy/edges_*,*/accuracy/field_reports_*' ;;
    conv1d_cases) echo '--source-file=*/accuracy/conv1d_cases_*' ;;
    conv1d_rules) echo '--source-file=*/accuracy/conv1d_f*,*/accuracy/conv1d_p*,*/accuracy/conv1d_s*,*/gpu/conv1d_*' ;;
    conv1d) echo "--source-file=$conv1d" ;;
    kda_sweep) echo '--source-file=*/accuracy/kda_sweep_*' ;;
    kda_rules) echo '--source-file=*/accuracy/kda_c*,*/accuracy/kda_f*,*/accuracy/kda_p*,*/accuracy/kda_r*,*/gpu/kda_*' ;;
    repeat) echo '--source-file=*/gpu/repeat_*' ;;
    kda) echo "--source-file=$kda" ;;
    wht) echo "--source-file-exclude=$conv1d,$kda" ;;
    esac
}
parts=(quiet rows rules edges conv1d_cases conv1d_rules kda_sweep kda_rules repeat)

# pass PART LINE: notes it and what the record has of its log, in one write beside other parts'.
pass() {
    local all
    all=$(echo "$2" && sed -n 's/^PLAIT_TEST_SEED.* on cuda, /build /p' "$logs/$1.log" | head -1 &&
        grep -E '^(host time|kernels run|worst error)' "$logs/$1.log")
    printf '%s\n' "$all" | sed "s/^/$1\t/" >"$logs/$1.passed"
    cat "$logs/$1.passed" >>"$progress"
}
# lines PART: what pass() noted.
lines() { sed -n "s/^$1\t//p" "$progress"; }

# run PART: its tests; lines of the record if they pass.
run() {
    local part=tests.$1 start=$SECONDS status line
    timeout 420 "$test" "$(files_of "$1")" >"$logs/$part.log" 2>&1
    status=$?
    line="$part $(counts "$logs/$part.log"), exit $status, $((SECONDS - start)) s"
    say "$line"
    if [ "$status" = 0 ]; then
        pass "$part" "$line"
    else
        grep -vE '^worst|^kernel not chosen' "$logs/$part.log" | tail -60
    fi
    return "$status"
}

# already PART: says so if it has passed on these sources.
already() {
    local line
    line=$(lines "$1" | head -1)
    [ -n "$line" ] && say "$line (before)"
}

# check TOOL PART FILES ARGUMENTS...: the tests of FILES named by ARGUMENTS under one tool of
# compute-sanitizer; says its summary, and fails if anything did.
check() {
    local tool=$1 part=$1.$2 files=$3 start=$SECONDS status errors line
    shift 3
    local log=$logs/$part.log
    timeout 500 "$sanitizer_program" --tool "$tool" --error-exitcode 9 --report-api-errors no \
        "$test" "$(files_of "$files")" --small --exact-buffers "$@" >"$log" 2>&1
    status=$?
    errors=$(grep -E '^=+ (ERROR|RACECHECK) SUMMARY' "$log" | tail -1 | sed 's/^=* //')
    line="$part ${errors:-no summary}; $(counts "$log"), exit $status, $((SECONDS - start)) s"
    say "$line"
    if [ "$status" = 0 ]; then
        pass "$part" "$line"
        return
    fi
    # The first report says what is wrong, with where it was seen; the tail, how it ended.
    local first
    first=$(grep -nE '^=+ +(Invalid|Uninit|Error|Program|Race|Barrier|Divergent|Out-of|Warning|Leaked)|ERROR:|FATAL' \
        "$log" | head -1 | cut -d: -f1)
    if [ -n "$first" ]; then
        say "$part: the first report, line $first of its log"
        sed -n "$first,$((first + 24))p" "$log"
        say "$part: the end of its log"
    fi
    grep -vE '^worst|^kernel not chosen' "$log" | tail -40
    return 1
}

# Side by side, what has not passed yet: `together FUNCTION ARGUMENTS...` starts one, `joined` waits.
started=()
together() {
    "$@" &
    started+=($!)
}
joined() {
    local pid
    for pid in ${started[@]+"${started[@]}"}; do wait "$pid" || failed=1; done
    started=()
}

already tests.quiet || {
    run quiet
    status=$?
    if [ "$status" = 77 ]; then
        say "no device"
        exit 77
    fi
    [ "$status" = 0 ] || failed=1
}
# A file that no part takes would never run.
all=$("$test" --count | sed -n 's/.*filters: *//p') sum=0
for part in "${parts[@]}"; do
    sum=$((sum + $("$test" --count "$(files_of "$part")" | sed -n 's/.*filters: *//p')))
done
[ "$sum" = "$all" ] || { say "the parts take $sum of $all tests: mend files_of" && exit 1; }
for part in "${parts[@]}"; do
    [ "$part" = quiet ] || already "tests.$part" || together run "$part"
done

# racecheck does not know that an mbarrier counts the bytes of st.async, and warns of each store of
# wht.cluster; those are proven by tests/emulate, in every order of threads. It is the slowest: the
# rows of wht go by type. The checkers run beside the tests, as none of these asks for times.
checks() {
    local sweep='sweep*,*conv1d sweep*,*kda sweep*'
    local memory="kernels*,$sweep,cases*,graph*,streams*,*bad offsets*,*break the rules*"
    local race=(--top=24 --skip=wht.cuda.cluster) family type
    "$1" memcheck wht wht "-tc=$memory" '-tce=kernels*'
    "$1" memcheck wht_kernels wht '-tc=kernels*'
    for family in conv1d kda; do "$1" memcheck $family $family "-tc=$memory"; done
    for family in wht conv1d kda; do
        "$1" initcheck $family $family '-tc=kernels*,sweep*' --top=24
        "$1" synccheck $family $family '-tc=kernels*' --top=24
    done
    for type in F32 F64 F16 BF16; do "$1" racecheck rows_$type rows "-tc=kernels*length? $type*" "${race[@]}"; done
    "$1" racecheck wht wht '-tc=kernels*' '-tce=kernels*length*' "${race[@]}"
    "$1" racecheck conv1d conv1d '-tc=kernels*' "${race[@]}"
    "$1" racecheck kda kda '-tc=kernels*' "${race[@]}"
}
begin_check() { already "$1.$2" || together check "$@"; }
result_of() { lines "$1.$2" | head -1; }

if [ "$sanitizer" = yes ]; then
    sanitizer_program=$(command -v compute-sanitizer ||
        ls /usr/local/cuda*/bin/compute-sanitizer /usr/local/cuda*/compute-sanitizer/compute-sanitizer \
            2>/dev/null | head -1)
    if [ -z "$sanitizer_program" ]; then
        say "compute-sanitizer is not installed: no record"
        exit 1
    fi
    checks begin_check
fi
joined

say "$((SECONDS - seconds_start)) s in all"
[ "$failed" = 0 ] || { say "FAILED" && exit 1; }
if [ "$sanitizer" = yes ]; then
    {
        echo "date $(date -u +%F)"
        nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | head -1 |
            sed 's/\(.*\), \(.*\)/device \1\ndriver \2/'
        lines tests.rows | grep '^build' | head -1
        for part in "${parts[@]}"; do lines "tests.$part" | head -1; done
        checks result_of
        for part in "${parts[@]}"; do lines "tests.$part" | sed '1d;/^build/d'; done
        echo "sources $sources"
    } >"$record"
    say "recorded in $record"
fi
say "PASSED"
