#!/usr/bin/env python3
"""Wisdom from the records of `plait bench --json`: what was measured need not be measured again.

    benchmarks/wisdom.py RECORDS.jsonl... > wisdom.txt

A line for every token, device and candidate, with the least median. Left out are records with a
spread above 0.1, those of another revision of a candidate than this tree has (a record without a
revision has that of the commit that it names), and tokens with times of one candidate alone, since
a plan prefers what has a time: take records of `bench --all-candidates`. `plait wisdom make --suite`
measures instead.
"""

import collections
import json
import os
import re
import subprocess
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
TABLES = [f"src/planner/{family}_table.cpp" for family in ("wht", "conv1d", "kda")]


def revisions(text):
    return dict(re.findall(r'{"([a-z0-9_.]+)", (\d+), PLAIT_', text))


def revisions_of(commit):
    """Of the candidates of a commit; empty where it is unknown."""
    shown = [subprocess.run(["git", "-C", ROOT, "show", f"{commit}:{table}"], capture_output=True,
                            text=True, check=False).stdout for table in TABLES]
    return revisions("".join(shown))


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    now = {}
    for table in TABLES:
        with open(os.path.join(ROOT, table), encoding="utf-8") as text:
            now.update(revisions(text.read()))
    known, best, left_out = {}, {}, collections.Counter()
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as lines:
            for line in lines:
                record = json.loads(line)
                name, commit = record["candidate"], record["commit"]
                if commit not in known:
                    known[commit] = revisions_of(commit)
                revision = str(record.get("revision", known[commit].get(name)))
                if revision != now.get(name):
                    left_out["of another revision, or of one that nobody knows"] += 1
                elif record["spread"] > 0.1:
                    left_out["with a spread above 0.1"] += 1
                else:
                    key = (record["token"], record["device"], name, revision)
                    best[key] = min(best.get(key, record["median_us"]), record["median_us"])
    rivals = collections.Counter(key[:2] for key in best)
    for key in [key for key in best if rivals[key[:2]] == 1]:
        del best[key]
        left_out["of one candidate alone"] += 1
    if not best:
        sys.exit("wisdom.py: no record can be used")
    print("plait-wisdom 1")
    for key, median_us in sorted(best.items()):
        print(" | ".join(key), "|", f"{median_us * 1e-6:.6g}")
    for why, count in left_out.items():
        print(f"wisdom.py: left out {count} records {why}", file=sys.stderr)


if __name__ == "__main__":
    main()
