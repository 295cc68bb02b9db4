# Sourced by samples/run.sh and tests/run.sh: finds out what this machine has and installs what is
# missing. Debian 12 and Ubuntu 24.04 with nothing but git are the starting point.

say() { printf '== %s\n' "$*"; }

# need PACKAGE...: installs by apt-get those that dpkg does not know as installed. Whatever else
# may be lying around (a cmake in /opt, headers in /usr/local) does not count.
need() {
    local package missing=() root=()
    if ! command -v dpkg >/dev/null || ! command -v apt-get >/dev/null; then
        say "no dpkg and apt-get here: expecting the equivalents of: $*"
        return 0
    fi
    for package in "$@"; do
        dpkg -s "$package" 2>/dev/null | grep -q '^Status: install ok installed' ||
            missing+=("$package")
    done
    if [ ${#missing[@]} -eq 0 ]; then return 0; fi
    if [ "$(id -u)" -ne 0 ]; then
        if ! command -v sudo >/dev/null; then
            say "missing, and neither root nor sudo to install them: ${missing[*]}"
            say "as root: apt-get install ${missing[*]}"
            return 1
        fi
        root=(sudo)
    fi
    say "installing: ${missing[*]}"
    "${root[@]}" apt-get update -qq &&
        "${root[@]}" env DEBIAN_FRONTEND=noninteractive \
            apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

# What every build needs. The list for tests is longer: see tests/run.sh.
build_packages=(g++ cmake ninja-build pkg-config libhwy-dev libcli11-dev nlohmann-json3-dev gfortran)

# Prints the nvcc to use, 13.0 or newer; prints nothing and fails when there is none.
find_nvcc() {
    local nvcc
    for nvcc in "${CUDACXX:-}" "$(command -v nvcc || true)" /usr/local/cuda/bin/nvcc; do
        if [ -n "$nvcc" ] && [ -x "$nvcc" ] &&
            [ "$("$nvcc" --version | sed -n 's/.*release \([0-9]*\)\..*/\1/p')" -ge 13 ]; then
            printf '%s\n' "$nvcc"
            return 0
        fi
    done
    return 1
}

# Prints the compute capability of the first GPU, e.g. 90; fails when no GPU answers.
gpu_architecture() {
    local cap
    cap=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -n 1) || true
    [ -n "$cap" ] && printf '%s\n' "${cap//./}"
}

# Compiler cache when it is there: a second run of anything is then quick.
use_ccache() {
    if command -v ccache >/dev/null; then
        export CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache
        export CMAKE_CUDA_COMPILER_LAUNCHER=ccache
    fi
}
