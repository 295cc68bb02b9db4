#!/usr/bin/env bash
# A README of at most 20 lines in every folder of the first two levels says what lives there, who
# may include it and how to add one. include/ is documented by its headers, the README at the top
# is the manual, and those of benchmarks/ and tests/cases/ are rules and a format.
. "$(dirname "$0")/files.sh"
while IFS= read -r folder; do
    [ -f "$folder/README.md" ] || complain "no README.md in $folder"
done < <(files / | grep -vE '^include/' | sed -nE 'h; s|^([^/]+)/.*|\1|p; g; s|^([^/]+/[^/]+)/.*|\1|p' | sort -u)
while IFS= read -r readme; do
    lines=$(wc -l <"$readme")
    [ "$lines" -le 20 ] || complain "$readme has $lines lines; 20 are enough"
done < <(files '/README\.md$' | grep -vE '^(benchmarks|tests/cases)/')
exit $bad
