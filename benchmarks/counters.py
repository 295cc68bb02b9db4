#!/usr/bin/env python3
"""Which resource bounds each kernel of a plan: hardware counters by Nsight Compute, on one GPU.

    benchmarks/counters.py --plait build/gpu/src/cli/plait [--suite FILE] [--json FILE] [TOKEN...]

Each line of the suite is a token, and the candidate behind it if another than the planner's is
meant. `plait bench` runs it under ncu, without touching clocks; of every kernel it prints time,
bytes of DRAM, the units nearest to their peak, and what warps waited for (warps a cycle in which
one issued). --json appends a record a kernel.
"""

import argparse
import csv
import json
import os
import re
import subprocess
import sys
import tempfile

SECTIONS = ["SpeedOfLight", "ComputeWorkloadAnalysis", "WarpStateStats", "Occupancy"]
METRICS = ["gpu__time_duration.sum", "dram__bytes_read.sum", "dram__bytes_write.sum"]
PEAK = re.compile(r"(?:breakdown:)?(\w+)\.(?:avg|sum|max)\.pct_of_peak_sustained_elapsed$")
STALL = re.compile(r"smsp__average_warps_issue_stalled_(\w+?)_per_issue_active\.ratio$")
OCCUPANCY = "sm__warps_active.avg.pct_of_peak_sustained_active"


def number(text):
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return None


def largest(values, count):
    return dict(sorted(values.items(), key=lambda x: -x[1])[:count])


def kernels_of(report):
    """Records of the kernels in ncu's raw page, means over their launches."""
    lines = report.splitlines()
    first = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if first is None:
        return []
    rows = list(csv.DictReader(lines[first:]))[1:]  # the first names units
    launches = {}
    for row in rows:
        launches.setdefault(row["Kernel Name"], []).append(row)
    records = []
    for name, many in launches.items():
        mean = {}
        for column in many[0]:
            values = [v for v in (number(row[column] or "") for row in many) if v is not None]
            if values:
                mean[column] = sum(values) / len(values)
        peaks, stalls = {}, {}
        for column, value in mean.items():
            if found := PEAK.match(column):
                peaks[found[1]] = round(max(value, peaks.get(found[1], 0)), 1)
            elif (found := STALL.match(column)) and found[1] != "selected":
                stalls[found[1]] = round(value, 2)
        records.append({
            "kernel": name, "launches": len(many),
            "us": round(mean.get("gpu__time_duration.sum", 0) / 1e3, 2),
            "dram_read": mean.get("dram__bytes_read.sum"),
            "dram_write": mean.get("dram__bytes_write.sum"),
            "warps_pct": round(mean.get(OCCUPANCY, 0), 1),
            "peak_pct": largest(peaks, 8), "stalls": largest(stalls, 4),
        })
    return sorted(records, key=lambda r: -r["us"])


def measure(o, token, candidate):
    with tempfile.NamedTemporaryFile(suffix=".jsonl") as bench:
        command = [o.ncu, "--clock-control", "none", "--csv", "--page", "raw", "--print-units",
                   "base", "--print-kernel-base", "demangled", "--launch-count", str(o.launches)]
        for section in SECTIONS:
            command += ["--section", section]
        command += ["--metrics", ",".join(METRICS), o.plait, "bench", "--reps", "3",
                    "--no-accuracy", "--json", bench.name, token]
        if candidate:
            command += ["--candidates", candidate]
        done = subprocess.run(command, capture_output=True, text=True)
        lines = open(bench.name, encoding="utf-8").read().splitlines()
    records = kernels_of(done.stdout)
    if done.returncode or not lines or not records:
        said = (done.stdout + done.stderr).splitlines()
        print(f"{token}: not measured: {' / '.join(said[-3:])}", file=sys.stderr)
        return []
    plan = json.loads(lines[-1])
    about = {key: plan[key] for key in ("token", "candidate", "device", "commit")}
    return [{**about, **record} for record in records]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plait", required=True, help="the program")
    parser.add_argument("--suite", default="benchmarks/suites/counters.txt")
    parser.add_argument("--json", help="append JSON lines here")
    parser.add_argument("--launches", type=int, default=12, help="kernels to profile of a problem")
    parser.add_argument("--ncu", default="ncu")
    parser.add_argument("tokens", nargs="*", metavar="TOKEN", help="in place of the suite")
    o = parser.parse_args()
    with open(os.devnull if o.tokens else o.suite, encoding="utf-8") as suite:
        problems = [line.split() for line in suite if line.split("#")[0].strip()]
    problems += [[token] for token in o.tokens]
    failed = False
    for token, *candidate in problems:
        records = measure(o, token, candidate[0] if candidate else None)
        failed |= not records
        for r in records:
            read, written = ((r[key] or 0) / 1e6 for key in ("dram_read", "dram_write"))
            print(f"{token}  {r['kernel'].split('(')[0]}\n  {r['us']:.1f} us, DRAM {read:.1f} MB read, "
                  f"{written:.1f} MB written, warps {r['warps_pct']:.0f} %\n  peak %: "
                  + ", ".join(f"{k} {v}" for k, v in list(r["peak_pct"].items())[:6])
                  + "\n  waits: " + ", ".join(f"{k} {v}" for k, v in r["stalls"].items()), flush=True)
            if o.json:
                with open(o.json, "a", encoding="utf-8") as out:
                    out.write(json.dumps(r) + "\n")
    sys.exit(failed)


if __name__ == "__main__":
    main()
