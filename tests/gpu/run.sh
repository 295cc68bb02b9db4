#!/usr/bin/env bash
# Everything that only a GPU can prove: builds, runs plait_test_gpu family by family, then the
# checkers of compute-sanitizer over every kernel, and records what ran.
#
#   tests/gpu/run.sh [--build-dir DIR] [--no-build] [--no-sanitizer] [--fresh] [--record FILE]
#
#   --build-dir DIR  where the binaries are or will be (default: build/gpu)
#   --no-build       run what is in DIR; libraries that the machine lacks may lie beside the binary
#   --no-sanitizer   the tests alone; writes no record
#   --fresh          run again what has already passed on these sources; without it a run that was
#                    cut short goes on where it stopped
#   --record FILE    default: tests/gpu/last_run.txt
#
# Exit code: 0 passed, 1 failed, 77 no device.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

dir=build/gpu build=yes sanitizer=yes fresh=no record=tests/gpu/last_run.txt
while [ $# -gt 0 ]; do
    case $1 in
    --build-dir) dir=${2:?--build-dir needs a folder} && shift ;;
    --no-build) build=no ;;
    --no-sanitizer) sanitizer=no ;;
    --fresh) fresh=yes ;;
    --record) record=${2:?--record needs a file} && shift ;;
    *)
        sed -n '2,15s/^# \{0,1\}//p' "$0"
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

# What has passed, by the hash of the sources that it was built from: PART.result is a line of the
# record, PART.log what the program said.
sources=$(tests/gpu/source_hash.sh)
passed=$dir/passed/$sources
[ "$fresh" = no ] || rm -rf "$dir/passed"
mkdir -p "$passed"
failed=0
seconds_start=$SECONDS

# counts LOG: "43 tests, 12345 assertions" from doctest's last lines.
counts() {
    local tests asserts
    tests=$(sed -n 's/.*\[doctest\] test cases: *\([0-9]*\).*/\1/p' "$1" | tail -1)
    asserts=$(sed -n 's/.*\[doctest\] assertions: *\([0-9]*\).*/\1/p' "$1" | tail -1)
    printf '%s tests, %s assertions' "${tests:-0}" "${asserts:-0}"
}

# The files of a family, as doctest filters them.
files_of() {
    case $1 in
    wht) echo '--source-file-exclude=*/accuracy/conv1d_*,*/gpu/conv1d_*,*/accuracy/kda_*,*/gpu/kda_*' ;;
    *) echo "--source-file=*/accuracy/$1_*,*/gpu/$1_*" ;;
    esac
}
families=(wht conv1d kda) # wht has what concerns all of them too

# already PART: says so if it has passed on these sources.
already() {
    [ -f "$passed/$1.result" ] && say "$(cat "$passed/$1.result") (before)"
}

for family in "${families[@]}"; do
    part=tests.$family
    already "$part" && continue
    say "$part"
    start=$SECONDS
    timeout 420 "$test" "$(files_of "$family")" 2>&1 | tee "$passed/$part.log"
    status=${PIPESTATUS[0]}
    if [ "$status" = 77 ]; then
        say "no device"
        exit 77
    fi
    line="$part $(counts "$passed/$part.log"), exit $status, $((SECONDS - start)) s"
    say "$line"
    if [ "$status" = 0 ]; then echo "$line" >"$passed/$part.result"; else failed=1; fi
done

# check TOOL FAMILY ARGUMENTS...: the tests of a family named by ARGUMENTS under one tool of
# compute-sanitizer; says its summary, and fails if anything did.
check() {
    local tool=$1 family=$2 part=$1.$2 start=$SECONDS status errors line
    shift 2
    local log=$passed/$part.log
    timeout 500 "$sanitizer_program" --tool "$tool" --error-exitcode 9 --report-api-errors no \
        "$test" "$(files_of "$family")" --small --exact-buffers "$@" >"$log" 2>&1
    status=$?
    errors=$(grep -E '^=+ (ERROR|RACECHECK) SUMMARY' "$log" | tail -1 | sed 's/^=* //')
    line="$part ${errors:-no summary}; $(counts "$log"), exit $status, $((SECONDS - start)) s"
    say "$line"
    if [ "$status" = 0 ]; then
        echo "$line" >"$passed/$part.result"
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

# What each tool looks at. racecheck does not know that an mbarrier counts the bytes of st.async, and
# warns of each store of wht.cluster; those are proven by tests/emulate, in every order of threads.
tools=(memcheck racecheck initcheck synccheck)
choose_filters() { # sets `filters` for a tool
    case $1 in
    memcheck) filters=(-tc='kernels*,sweep*,cases*,graph*,streams*,*conv1d sweep*,*bad offsets*,*kda sweep*,*break the rules*') ;;
    racecheck) filters=(-tc='kernels*' --top=24 --skip=wht.cuda.cluster) ;;
    initcheck) filters=(-tc='kernels*,sweep*' --top=24) ;;
    synccheck) filters=(-tc='kernels*' --top=24) ;;
    esac
}

if [ "$sanitizer" = yes ]; then
    sanitizer_program=$(command -v compute-sanitizer ||
        ls /usr/local/cuda*/bin/compute-sanitizer /usr/local/cuda*/compute-sanitizer/compute-sanitizer \
            2>/dev/null | head -1)
    if [ -z "$sanitizer_program" ]; then
        say "compute-sanitizer is not installed: no record"
        exit 1
    fi
    # Side by side: they are bound by the host. The tests above ran alone, as what they say of
    # times and of free memory needs.
    say "${tools[*]}"
    checks=()
    for tool in "${tools[@]}"; do
        for family in "${families[@]}"; do
            already "$tool.$family" && continue
            choose_filters "$tool"
            check "$tool" "$family" "${filters[@]}" &
            checks+=($!)
        done
    done
    for pid in ${checks[@]+"${checks[@]}"}; do wait "$pid" || failed=1; done
fi

say "$((SECONDS - seconds_start)) s in all"
[ "$failed" = 0 ] || { say "FAILED" && exit 1; }
if [ "$sanitizer" = yes ]; then
    {
        echo "date $(date -u +%F)"
        nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | head -1 |
            sed 's/\(.*\), \(.*\)/device \1\ndriver \2/'
        sed -n 's/^PLAIT_TEST_SEED.* on cuda, /build /p' "$passed/tests.wht.log" | head -1
        for part in tests "${tools[@]}"; do
            for family in "${families[@]}"; do cat "$passed/$part.$family.result"; done
        done
        for family in "${families[@]}"; do
            grep -E '^(host time|kernels run|worst error)' "$passed/tests.$family.log"
        done
        echo "sources $sources"
    } >"$record"
    say "recorded in $record"
fi
say "PASSED"
