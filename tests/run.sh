#!/usr/bin/env bash
# Sets up what is missing, builds plait with its tests and runs them. Starts from nothing but git
# on Debian 12 or Ubuntu 24.04, as root or with sudo. With a CUDA toolkit of 13.0 or newer the CUDA
# backend is built too; tests that need a GPU are in tests/gpu and have their own run.sh.
#
#   tests/run.sh [CTEST ARGUMENTS]   one Release build, every test that this machine can run
#   tests/run.sh --ci                what must hold before a change is accepted: warnings are
#                                    errors, sanitizers, CUDA kernels without spills
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. .ci/setup.sh

need "${build_packages[@]}" doctest-dev clang-format ccache git || exit 1
use_ccache
jobs=$(nproc)
if nvcc=$(find_nvcc); then
    export CUDACXX=$nvcc
    say "CUDA toolkit: $("$nvcc" --version | sed -n 's/.*release \([0-9.]*\).*/\1/p') ($nvcc)"
else
    say "no CUDA toolkit of 13.0 or newer: building for the CPU alone"
fi

elapsed() { printf '%d min %d s' $((SECONDS / 60)) $((SECONDS % 60)); }

# Sums over all ctest runs; a step that does not build counts as one failure.
passed=0 failed=0 skipped=0 problems=()

problem() {
    failed=$((failed + 1))
    problems+=("$*")
    say "FAILED: $*"
}

# build NAME DIR CMAKE_ARGUMENTS...: configures and builds `targets`.
targets=(all)
build() {
    local name=$1 dir=$2
    shift 2
    say "$name: configuring and building in $dir ($(elapsed) so far)"
    cmake -B "$dir" "$@" >"$dir.configure.log" 2>&1 || {
        cat "$dir.configure.log"
        problem "$name: configure"
        return 1
    }
    cmake --build "$dir" --parallel "$jobs" --target "${targets[@]}" || {
        problem "$name: build"
        return 1
    }
}

# check NAME DIR CTEST_ARGUMENTS...: runs the tests of a build and adds up what ctest says.
check() {
    local name=$1 dir=$2 report=$2/ctest.xml counts
    shift 2
    say "$name: running the tests ($(elapsed) so far)"
    rm -f "$report"
    ctest --test-dir "$dir" --output-on-failure --parallel "$jobs" --output-junit ctest.xml "$@" ||
        problems+=("$name: tests")
    counts=$(grep -m1 -A8 '<testsuite' "$report" 2>/dev/null | tr '\n\t' '  ')
    number() { sed -n "s/.* $1=\"\([0-9]*\)\".*/\1/p" <<<"$counts"; }
    local all bad off
    all=$(number tests) bad=$(number failures) off=$(number skipped)
    if [ "${all:-0}" -eq 0 ]; then
        problem "$name: no test ran"
        return 1
    fi
    failed=$((failed + bad)) skipped=$((skipped + off)) passed=$((passed + all - bad - off))
}

finish() {
    local line
    for line in ${problems[@]+"${problems[@]}"}; do say "problem: $line"; done
    say "time: $(elapsed)"
    printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
    [ ${#problems[@]} -eq 0 ]
    exit
}

mkdir -p build
if [ "${1:-}" != --ci ]; then
    options=(-DCMAKE_BUILD_TYPE=Release -DPLAIT_FORTRAN=ON -DPLAIT_CUDA=OFF)
    if [ -n "$nvcc" ]; then
        options+=(-DPLAIT_CUDA=ON "-DCMAKE_CUDA_ARCHITECTURES=$(gpu_architecture || echo 90)")
    fi
    build tests build/tests -G Ninja "${options[@]}" && check tests build/tests "$@"
    finish
fi

# Warnings are errors; the whole suite, with strangers' projects, samples, README and format. With a
# CUDA toolkit every kernel for one architecture as well, where a spill or an array in local memory is
# an error; without a GPU the tests see the host side of it: contexts that fail with a sentence,
# exports, plans. The builds below are without CUDA.
suite=ci-cpu
if [ -n "$nvcc" ]; then suite=ci-cuda; fi
if build "suite $suite" "build/$suite" --preset "$suite" -DPLAIT_FORTRAN=ON; then
    cmake --build "build/$suite" --target all_verify_interface_header_sets ||
        problem "a public header does not compile alone"
    check "suite $suite" "build/$suite"
fi

# Address and undefined behaviour. Uninstrumented programs and formats were checked above, the
# accuracy sweep as well: instrumented, it takes longer than all the rest.
build "ASan and UBSan" build/asan --preset asan &&
    check "ASan and UBSan" build/asan -LE 'consume|repo|samples|accuracy'

# Data races: plans and executes from many threads.
targets=(plait_test_api)
build "TSan" build/tsan --preset tsan &&
    PLAIT_THREADS=1 check "TSan" build/tsan -L threads

stamp=tests/gpu/last_run.txt
if [ ! -f "$stamp" ]; then
    say "WARNING: $stamp is missing: nothing on record says that the GPU code works"
elif ! grep -qx "sources $(tests/gpu/source_hash.sh)" "$stamp"; then
    say "WARNING: $stamp is older than the code: run tests/gpu/run.sh on a GPU and commit the result"
fi
finish
