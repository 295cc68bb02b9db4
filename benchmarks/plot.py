#!/usr/bin/env python3
"""Draws r (time / time of a copy of the same bytes) against log2 n from the records of a device.

    benchmarks/plot.py benchmarks/results/NVIDIA_H200    # writes wht.svg there

A panel for each type, a line for each candidate; records of peers (wht_peers.jsonl, candidates
whose names are not of plait) are dashed. Only cold records of packed rows that move at least 256
MiB count: smaller calls measure launches. Where a token was measured more than once, the median.
"""

import argparse
import glob
import json
import math
import os
import re
import statistics
import sys

ROWS = re.compile(r"wht:(\w+)(?::b\d+)?:n(\d+)$")
TYPES = ["f32", "f64", "f16", "bf16"]
COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#5f5f5f", "#7b3294"]
WIDTH, HEIGHT = 380, 235  # of a panel
LEFT, TOP, RIGHT, BOTTOM = 44, 30, 12, 38
LOWEST, HIGHEST = 0.8, 3.2  # of r; what is above is drawn at the edge


def collect(folder):
    """{type: {candidate: {log2 n: [r, ...]}}}"""
    points = {t: {} for t in TYPES}
    for path in sorted(glob.glob(os.path.join(folder, "wht*.jsonl"))):
        with open(path, encoding="utf-8") as lines:
            records = [json.loads(line) for line in lines if line.strip()]
        for record in records:
            match = ROWS.match(record["token"])
            if not match or match[1] not in points or record.get("mode", "cold") != "cold":
                continue
            if record.get("bytes", math.inf) < 2**28:
                continue
            line = points[match[1]].setdefault(record["candidate"], {})
            line.setdefault(int(match[2]).bit_length() - 1, []).append(record["r"])
    return points


def draw(points, device):
    names = sorted({name for lines in points.values() for name in lines})
    colour = {name: COLOURS[i % len(COLOURS)] for i, name in enumerate(names)}
    logs = [k for lines in points.values() for line in lines.values() for k in line]
    first, last = min(logs), max(logs)

    def across(k):
        return LEFT + (k - first) / max(1, last - first) * (WIDTH - LEFT - RIGHT)

    def down(r):
        r = min(max(r, LOWEST), HIGHEST)
        return TOP + (HIGHEST - r) / (HIGHEST - LOWEST) * (HEIGHT - TOP - BOTTOM)

    legend = 22 * ((len(names) + 2) // 3) + 14
    size = (2 * WIDTH, 2 * HEIGHT + legend)
    svg = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size[0]} {size[1]}" '
        f'width="{size[0]}" height="{size[1]}" font-family="sans-serif" font-size="11" fill="#222">',
        f"<title>wht on {device}: time / time of a copy</title>",
        '<rect width="100%" height="100%" fill="#fff"/>',
    ]
    for i, kind in enumerate(TYPES):
        svg.append(f'<g transform="translate({i % 2 * WIDTH} {i // 2 * HEIGHT})">')
        svg.append(f'<text x="{LEFT}" y="18" font-size="13" font-weight="bold">{kind}</text>')
        for tick in range(2, 7):
            r = tick / 2
            shade = "#222" if r == 1 else "#ddd"
            svg.append(
                f'<path d="M{LEFT} {down(r):.1f}H{WIDTH - RIGHT}" stroke="{shade}"/>'
                f'<text x="{LEFT - 6}" y="{down(r) + 4:.1f}" text-anchor="end">{r:g}</text>'
            )
        for k in range(first + -first % 4, last + 1, 4):
            svg.append(f'<text x="{across(k):.1f}" y="{HEIGHT - 20}" text-anchor="middle">{k}</text>')
        svg.append(
            f'<text x="{WIDTH - RIGHT}" y="{HEIGHT - 6}" text-anchor="end">log2 n</text>'
            f'<text x="{WIDTH - RIGHT}" y="18" text-anchor="end">r = time / copy</text>'
        )
        for name, line in sorted(points[kind].items()):
            steps = sorted(line)
            at = [(across(k), down(statistics.median(line[k]))) for k in steps]
            dash = "" if name.startswith("wht.") else ' stroke-dasharray="4 3"'
            # between lengths that were not measured, or that another candidate takes, no line
            path = "".join(
                f"{'L' if i and steps[i] - steps[i - 1] <= 2 else 'M'}{x:.1f} {y:.1f}"
                for i, (x, y) in enumerate(at)
            )
            svg.append(f'<path d="{path}" fill="none" stroke="{colour[name]}"{dash}/>')
            svg += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="{colour[name]}"/>' for x, y in at]
        svg.append("</g>")
    for i, name in enumerate(names):
        x, y = LEFT + i % 3 * 240, 2 * HEIGHT + 16 + 22 * (i // 3)
        dash = "" if name.startswith("wht.") else ' stroke-dasharray="4 3"'
        svg.append(
            f'<path d="M{x} {y}h22" stroke="{colour[name]}" stroke-width="2"{dash}/>'
            f'<text x="{x + 28}" y="{y + 4}">{name}</text>'
        )
    return "\n".join(svg + ["</svg>", ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", help="benchmarks/results/<device>")
    parser.add_argument("--out", help="default: wht.svg in the folder")
    options = parser.parse_args()
    points = collect(options.folder)
    if not any(points.values()):
        sys.exit(f"plot.py: no records of rows in {options.folder}/wht*.jsonl")
    device = os.path.basename(os.path.normpath(options.folder)).replace("_", " ")
    out = options.out or os.path.join(options.folder, "wht.svg")
    with open(out, "w", encoding="utf-8") as file:
        file.write(draw(points, device))
    print(out)


if __name__ == "__main__":
    main()
