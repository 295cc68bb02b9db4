#!/usr/bin/env bash
# Everything that only a GPU can prove: builds, runs plait_test_gpu, then the checkers of
# compute-sanitizer over every kernel, and records what ran.
#
#   tests/gpu/run.sh [--build-dir DIR] [--no-build] [--no-sanitizer] [--record FILE]
#
#   --build-dir DIR  where the binaries are or will be (default: build/gpu)
#   --no-build       run what is in DIR; libraries that the machine lacks may lie beside the binary
#   --no-sanitizer   the tests alone; writes no record
#   --record FILE    default: tests/gpu/last_run.txt
#
# Exit code: 0 passed, 1 failed, 77 no device.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

dir=build/gpu build=yes sanitizer=yes record=tests/gpu/last_run.txt
while [ $# -gt 0 ]; do
    case $1 in
    --build-dir) dir=${2:?--build-dir needs a folder} && shift ;;
    --no-build) build=no ;;
    --no-sanitizer) sanitizer=no ;;
    --record) record=${2:?--record needs a file} && shift ;;
    *)
        sed -n '2,12s/^# \{0,1\}//p' "$0"
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

logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
failed=0
seconds_start=$SECONDS

# counts LOG: "43 tests, 12345 assertions" from doctest's last lines.
counts() {
    local tests asserts
    tests=$(sed -n 's/.*\[doctest\] test cases: *\([0-9]*\).*/\1/p' "$1" | tail -1)
    asserts=$(sed -n 's/.*\[doctest\] assertions: *\([0-9]*\).*/\1/p' "$1" | tail -1)
    printf '%s tests, %s assertions' "${tests:-0}" "${asserts:-0}"
}

say "plait_test_gpu"
timeout 420 "$test" 2>&1 | tee "$logs/tests"
status=${PIPESTATUS[0]}
if [ "$status" = 77 ]; then
    say "no device"
    exit 77
fi
[ "$status" = 0 ] || failed=1
summary="$(counts "$logs/tests"), exit $status, $((SECONDS - seconds_start)) s"
say "tests: $summary"

# check TOOL ARGUMENTS...: the tests named by ARGUMENTS under one tool of compute-sanitizer; says its
# summary, leaves it in a file, and fails if anything did.
check() {
    local tool=$1 start=$SECONDS status errors
    shift
    timeout 400 "$sanitizer_program" --tool "$tool" --error-exitcode 9 --report-api-errors no \
        "$test" --small --exact-buffers "$@" >"$logs/$tool" 2>&1
    status=$?
    errors=$(grep -E '^=+ (ERROR|RACECHECK) SUMMARY' "$logs/$tool" | tail -1 | sed 's/^=* //')
    echo "$tool ${errors:-no summary}; $(counts "$logs/$tool"), exit $status, $((SECONDS - start)) s" \
        >"$logs/$tool.result"
    say "$(cat "$logs/$tool.result")"
    [ "$status" = 0 ] && return
    # The first report says what is wrong, with where it was seen; the tail, how it ended.
    local first
    first=$(grep -nE '^=+ +(Invalid|Uninit|Error|Program|Race|Barrier|Divergent|Out-of|Warning|Leaked)|ERROR:|FATAL' \
        "$logs/$tool" | head -1 | cut -d: -f1)
    if [ -n "$first" ]; then
        say "$tool: the first report, line $first of its log"
        sed -n "$first,$((first + 24))p" "$logs/$tool"
        say "$tool: the end of its log"
    fi
    grep -vE '^worst|^kernel not chosen' "$logs/$tool" | tail -40
    return 1
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
    say "memcheck, racecheck, initcheck, synccheck"
    check memcheck -tc='kernels*,sweep*,cases*,graph*,streams*,conv1d sweep*,*bad offsets*' &
    checks=($!)
    # It does not know that an mbarrier counts the bytes of st.async, and warns of each store of
    # wht.cluster; those are proven by tests/emulate, in every order of threads.
    check racecheck -tc='kernels*' --top=24 --skip=wht.cuda.cluster &
    checks+=($!)
    check initcheck -tc='kernels*,sweep*' --top=24 &
    checks+=($!)
    check synccheck -tc='kernels*' --top=24 &
    checks+=($!)
    for pid in "${checks[@]}"; do wait "$pid" || failed=1; done
fi

say "$((SECONDS - seconds_start)) s in all"
[ "$failed" = 0 ] || { say "FAILED" && exit 1; }
if [ "$sanitizer" = yes ]; then
    {
        echo "date $(date -u +%F)"
        nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | head -1 |
            sed 's/\(.*\), \(.*\)/device \1\ndriver \2/'
        sed -n 's/^PLAIT_TEST_SEED.* on cuda, /build /p' "$logs/tests" | head -1
        echo "tests $summary"
        cat "$logs"/{memcheck,racecheck,initcheck,synccheck}.result
        grep -E '^(host time|kernels run|worst error)' "$logs/tests"
        echo "sources $(tests/gpu/source_hash.sh)"
    } >"$record"
    say "recorded in $record"
fi
say "PASSED"
