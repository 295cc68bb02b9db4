#!/usr/bin/env python3
"""What the planner's estimates are worth, from the records of `plait bench --all-candidates --json`.

    benchmarks/estimates.py RECORDS.jsonl...

Prints how often the candidate of the least estimate was the fastest (within 2 percent, the spread
of a median), how many estimates lie within 1.5 of the measured time, and the worst of both.
"""

import collections
import json
import sys


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    tokens = collections.defaultdict(list)
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as lines:
            for line in lines:
                record = json.loads(line)
                if record.get("median_us") and record.get("est_us"):
                    tokens[record["token"]].append(record)
    if not tokens:
        sys.exit("estimates.py: no record has both an estimate and a time")
    lost, off = [], []
    for token, records in tokens.items():
        best = min(records, key=lambda r: r["median_us"])
        chosen = min(records, key=lambda r: r["est_us"])
        lost.append((chosen["median_us"] / best["median_us"], token, chosen, best))
        ratio = chosen["est_us"] / chosen["median_us"]
        off.append((max(ratio, 1 / ratio), ratio, token, chosen))
    lost.sort(key=lambda x: -x[0])
    off.sort(key=lambda x: -x[0])
    right = sum(1 for x in lost if x[0] <= 1.02)
    near = sum(1 for x in off if x[0] <= 1.5)
    print(f"{len(tokens)} tokens, {sum(map(len, tokens.values()))} records")
    print(f"fastest chosen: {right} ({100 * right / len(tokens):.1f} %)")
    print(f"estimate within 1.5 of the time: {near} ({100 * near / len(tokens):.1f} %)")
    print("\nslower than the best by")
    for ratio, token, chosen, best in lost[:40]:
        if ratio > 1.02:
            print(f"  {ratio:5.2f}  {token:50} {chosen['candidate']} {chosen['median_us']:.1f} us, "
                  f"{best['candidate']} {best['median_us']:.1f} us")
    print("\nestimate / time")
    for ratio, signed, token, chosen in off[:40]:
        if ratio > 1.5:
            print(f"  {signed:5.2f}  {token:50} {chosen['candidate']} {chosen['median_us']:.1f} us")


if __name__ == "__main__":
    main()
