#!/usr/bin/env bash
# Prints one sha256 over everything that decides what a GPU run proves: the sources of the library
# and of everything compiled into the GPU tests. tests/gpu/run.sh stores it in last_run.txt; a stored value that differs
# from this one means that the record is older than the code.
set -euo pipefail
export LC_ALL=C
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
folders=(include lib/common lib/cuda src tests/accuracy tests/cases tests/gpu tests/support)

list() {
    if git rev-parse --is-inside-work-tree >/dev/null 2>&1 && [ -n "$(git ls-files -- include)" ]; then
        # Files that are not committed yet count too: they are compiled like the others.
        git ls-files --cached --others --exclude-standard -- "${folders[@]}"
    else # a copy without git metadata: everything that .gitignore would let through
        find "${folders[@]}" -type f ! -name '*.o' ! -name '*.mod' ! -path '*/__pycache__/*'
    fi
}

list | grep -vE '(^|/)(README[^/]*|last_run\.txt)$' | sort | while IFS= read -r file; do
    [ ! -f "$file" ] || sha256sum "$file"
done | sha256sum | cut -d' ' -f1
