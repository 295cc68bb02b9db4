#!/usr/bin/env bash
# The first thing to run after cloning: sets up what is missing, builds plait (for this machine's
# GPU where a CUDA toolkit and the driver can use it, else for the CPU) and shows it at work on real
# data. Exits non-zero if any result is not what it must be.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. .ci/setup.sh

need "${build_packages[@]}" git
use_ccache

build_for() { # BACKEND CMAKE_OPTION...: leaves its folder in $build, the program in $plait
    backend=$1
    build=build/samples-$backend
    plait=$build/src/cli/plait
    mkdir -p "$build"
    say "building for the ${backend^^} in $build (the first time takes some minutes)"
    if ! { cmake -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DPLAIT_TESTS=OFF \
        -DPLAIT_FORTRAN=ON "${@:2}" && cmake --build "$build" --parallel; } >"$build/log" 2>&1; then
        tail -n 40 "$build/log"
        say "the build failed; the whole output is in $build/log"
        exit 1
    fi
}

backend=
if nvcc=$(find_nvcc) && arch=$(gpu_architecture); then
    if ! grep -qx "sm_$arch" <<<"$("$nvcc" --list-gpu-code)"; then
        say "$nvcc has no code for this GPU (sm_$arch): the CPU it is"
    else
        export CUDACXX=$nvcc
        build_for cuda -DPLAIT_CUDA=ON "-DCMAKE_CUDA_ARCHITECTURES=$arch"
        if ! "$plait" info --backend cuda >"$build/info" 2>&1; then
            tail -n 1 "$build/info"
            say "the CUDA backend finds no device (is the driver too old?): the CPU it is"
            backend=
        fi
    fi
fi
[ -n "$backend" ] || build_for cpu -DPLAIT_CUDA=OFF
signal=$build/samples/npy_signal
work=build/samples # the files stay there to play with
mkdir -p "$work"

say "1. what this build and this machine have"
"$plait" info

say "2. Walsh spectra of published S-boxes, straight from their tables"
"$build/samples/sample_sboxes"

# 1/1024 each way makes the transform of length 2^20 its own inverse.
token=wht:f32:n1048576:scale=0.0009765625
say "3. a signal of 2^20 points in a .npy file: transformed, and transformed back"
"$signal" make "$work/signal.npy"
"$plait" run "$token" --backend "$backend" --in "x=$work/signal.npy" --out "y=$work/spectrum.npy"
"$plait" run "$token" --backend "$backend" --in "x=$work/spectrum.npy" --out "y=$work/back.npy"
echo "its two square waves answer at outputs 2^12 and 2^5, its drift at 0 and the powers of two:"
"$signal" peaks "$work/spectrum.npy"
"$signal" compare "$work/signal.npy" "$work/back.npy"

say "4. the plan that did it, and the candidates it was chosen from"
"$plait" plan "$token" --backend "$backend"
"$plait" candidates "$token" --backend "$backend"

say "5. throughput"
"$plait" bench --backend "$backend" "$token" wht:f32:b16:n1048576 wht:f32:b4096:n4096

say "all of it ran on: $("$plait" plan "$token" --backend "$backend" | sed -n 's/^device *\([^ ]*\).*/\1/p')"
say "next: samples/01_wht.c and README.md"
