#!/usr/bin/env bash
# What must not be in a published tree: paths of one machine, addresses nobody can vouch for,
# leftovers, and checks that cannot fail.
. "$(dirname "$0")/files.sh"

search() { # WHY REGEX [GREP OPTIONS]: all text files but test data and this script
    local why=$1 regex=$2 hits
    hits=$(files | grep -vE '\.json$|^LICENSE$|^tests/repo/words\.sh$' |
        xargs -d '\n' grep -nIE "$regex" -- /dev/null | head -10)
    [ -z "$hits" ] || complain "$why:"$'\n'"$hits"
}

search "path of one machine" '(^|[^A-Za-z0-9_.$}/-])/(work|home|root|Users|mnt|scratch)/'
search "leftover" '\b(TODO|FIXME|XXX|HACK)\b|not implemented yet|lorem ipsum'
search "a check that cannot fail" '\b(CHECK|REQUIRE|assert)\((true|1)\)'
search "merge conflict" '^(<<<<<<<|>>>>>>>) '
search "blank at the end of a line" '[[:blank:]]+$'

addresses=$(files | grep -vE '\.json$|^LICENSE$|^tests/repo/words\.sh$' |
    xargs -d '\n' grep -noIE "https?://[^ )>\"']+" -- /dev/null |
    grep -vE 'https?://(www\.)?(github\.com|arxiv\.org|docs\.nvidia\.com|apache\.org|cmake\.org)(/|$)|http://www\.w3\.org/2000/svg$')
[ -z "$addresses" ] || complain "address outside the known hosts:"$'\n'"$addresses"

while IFS= read -r file; do
    [ "$(stat -c %s "$file")" -le 1048576 ] || complain "larger than 1 MiB: $file"
done < <(files)
exit $bad
