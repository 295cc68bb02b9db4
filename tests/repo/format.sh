#!/usr/bin/env bash
# .clang-format is the only opinion on layout. Its options need clang-format 14 (Debian 12) or newer.
. "$(dirname "$0")/files.sh"
tool=$(command -v clang-format) || {
    echo "clang-format is not installed"
    exit 77
}
major=$("$tool" --version | sed -n 's/.*version \([0-9]*\)\..*/\1/p')
if [ "$major" -lt 14 ]; then
    echo "clang-format $major is older than 14"
    exit 77
fi
files '\.(c|h|cpp|hpp|cu|cuh)$' | xargs -d '\n' "$tool" --dry-run -Werror 2>&1 | grep 'error:' | head -40 &&
    exit 1
exit 0
