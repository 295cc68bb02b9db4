#!/usr/bin/env bash
# Transforms by plait against those of a public library: oracles.py, by a python that has it.
# Usage: oracles.sh PLAIT numpy|scipy|torch. Exit code 77: no such python here.
set -euo pipefail
for python in python3 /usr/bin/python3; do
    "$python" -c "import numpy, $2" 2>/dev/null &&
        exec "$python" "$(dirname "$0")/oracles.py" "$1" "$2"
done
echo "skipped: there is no python3 with numpy and $2"
exit 77
