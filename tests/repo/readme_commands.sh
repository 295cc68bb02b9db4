#!/usr/bin/env bash
# Executes the blocks tagged `sh` of the README, in order and in one shell, as a reader would, with
# a home directory of its own. A line "# prints: TEXT" asks for TEXT in the output of the lines
# since the last such group. ./tests/run.sh is left out: it is what runs this test.
set -uo pipefail
. "$(dirname "$0")/files.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
script=$work/script.sh

awk -v out="$work/out" '
    BEGIN { print "set -e -o pipefail" }
    /^```sh$/ { inside = 1; next }
    /^```/ { inside = 0; fresh = 1; next }
    !inside { next }
    /^# prints: / {
        text = substr($0, 11); gsub(/\x27/, "\x27\\\x27\x27", text)
        printf "grep -qF -- \x27%s\x27 %s || { echo \x27README.md:%d: not printed\x27; cat %s; exit 1; }\n", text, out, NR, out
        fresh = 1
        next
    }
    /^#/ || /^$/ || $0 == "./tests/run.sh" { next }
    {
        negated = sub(/^! /, "")
        printf "echo \x27README.md:%d\x27\n", NR
        redirect = (fresh ? ">" : ">>") " " out " 2>&1"
        if (negated) printf "if { %s\n} %s; then echo \x27README.md:%d: did not fail\x27; exit 1; fi\n", $0, redirect, NR
        else printf "{ %s\n} %s || { cat %s; exit 1; }\n", $0, redirect, out
        fresh = 0
        commands++
    }
    END { printf "echo \x27%d commands of the README work\x27\n", commands; exit commands == 0 }
' README.md >"$script" || {
    echo "found no commands in README.md"
    exit 1
}
grep -qx './tests/run.sh' README.md && [ -x tests/run.sh ] || {
    echo "README.md does not name ./tests/run.sh, or it cannot be executed"
    exit 1
}
export CCACHE_DIR=${CCACHE_DIR:-$HOME/.cache/ccache}
HOME=$work bash "$script" </dev/null
