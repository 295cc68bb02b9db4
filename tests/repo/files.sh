# Sourced: goes to the top of the tree and lists its files, with git or without its metadata.
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
export LC_ALL=C

files() { # [PATTERN...]: extended regular expressions, one must match the path
    local pattern=.
    if [ $# -gt 0 ]; then
        pattern=$(printf '|%s' "$@")
        pattern=${pattern#|}
    fi
    { git ls-files 2>/dev/null || find . -type f ! -path './build*' ! -path './.*/*' -printf '%P\n'; } |
        grep -E "$pattern" | while IFS= read -r f; do [ ! -f "$f" ] || printf '%s\n' "$f"; done
}

bad=0
complain() {
    printf '%s\n' "$*"
    bad=1
}
