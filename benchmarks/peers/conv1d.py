#!/usr/bin/env python3
"""conv1d beside its peers on one GPU, in one run: plait, causal-conv1d (if installed), PyTorch.

    benchmarks/peers/conv1d.py --plait build/gpu/src/cli/plait [--suite FILE] [--json FILE]

Each line of the suite that a peer can do (K = 2..4, bias, SiLU, no states) is timed by
`plait bench` and, right after it, by the peers on tensors of the same shape and type. Everybody is
held against a device copy of x that is timed in turn with the call: r = median / copy. Times are
between CUDA events, medians of 30 after warm-up; inputs are random.
"""

import argparse
import json
import re
import subprocess
import sys

try:
    import torch
except ImportError:
    sys.exit("conv1d.py: PyTorch is not installed: no peer to measure")
try:
    import causal_conv1d
except ImportError:
    causal_conv1d = None

TOKEN = re.compile(
    r"conv1d\.(fwd|bwd):(bf16|f16|f32):b(\d+):(c|t)(\d+):(c|t)(\d+):k([2-4]):silu:\+bias"
)
TYPES = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}


def median_us(call, copy, samples=30):
    """Medians of call and copy, timed in turn, microseconds."""
    for _ in range(5):
        copy()
        call()
    torch.cuda.synchronize()
    times = {call: [], copy: []}
    for _ in range(samples):
        for work in (copy, call):
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            work()
            end.record()
            end.synchronize()
            times[work].append(begin.elapsed_time(end) * 1e3)
    return sorted(times[call])[samples // 2], sorted(times[copy])[samples // 2]


def peers_of(backward, dtype, batch, channels, length, width, channel_last):
    """(name, call) of each peer that takes the problem, and the copy."""
    shape = (batch, length, channels) if channel_last else (batch, channels, length)
    x = torch.randn(shape, device="cuda", dtype=dtype)
    if channel_last:
        x = x.transpose(1, 2)
    weight = torch.randn(channels, width, device="cuda", dtype=dtype)
    bias = torch.randn(channels, device="cuda", dtype=dtype)
    dy = torch.randn_like(x)
    copied = torch.empty_like(x)

    def torch_forward(a, w, b):
        full = torch.nn.functional.conv1d(a, w[:, None, :], b, padding=width - 1, groups=channels)
        return torch.nn.functional.silu(full[..., :length])

    def dao_forward(a, w, b):
        return causal_conv1d.causal_conv1d_fn(a, w, b, activation="silu")

    forwards = [("torch", torch_forward)]
    if causal_conv1d is not None:
        forwards.insert(0, ("causal-conv1d", dao_forward))
    calls = []
    for name, forward in forwards:
        if not backward:
            calls.append((name, lambda f=forward: f(x, weight, bias)))
            continue
        leaves = [t.detach().requires_grad_() for t in (x, weight, bias)]
        y = forward(*leaves)
        calls.append(
            (name, lambda y=y, leaves=leaves: torch.autograd.grad(y, leaves, dy, retain_graph=True))
        )
    return calls, lambda: copied.copy_(x)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plait", required=True, help="the program")
    parser.add_argument("--suite", default="benchmarks/suites/conv1d_fwd.txt")
    parser.add_argument("--json", help="append JSON lines here")
    o = parser.parse_args()
    out = open(o.json, "a", encoding="utf-8") if o.json else None

    def report(record):
        print(f"{record['token']:48} {record['candidate']:24} {record['median_us']:10.1f} us"
              f"  r {record['r']:6.3f}", flush=True)
        if out:
            out.write(json.dumps(record) + "\n")

    versions = {"torch": torch.__version__}
    if causal_conv1d is not None:
        versions["causal-conv1d"] = getattr(causal_conv1d, "__version__", "unknown")
    for line in open(o.suite, encoding="utf-8"):
        token = line.strip()
        found = TOKEN.fullmatch(token)
        if not found:
            continue
        way, dtype, batch, first, a, second, b, width = found.groups()
        if first == second:
            continue
        channels, length = (int(a), int(b)) if first == "c" else (int(b), int(a))
        ours = subprocess.run([o.plait, "bench", "--json", "--no-accuracy", token], check=True,
                              capture_output=True, text=True).stdout
        report(json.loads(ours.splitlines()[-1]))
        calls, copy = peers_of(way == "bwd", TYPES[dtype], int(batch), channels, length, int(width),
                               first == "t")
        for name, call in calls:
            try:
                median, copied = median_us(call, copy)
            except RuntimeError as why:  # a shape that the peer refuses
                print(f"{token:48} {name:24} refuses: {str(why).splitlines()[0]}", flush=True)
                continue
            report({"token": token, "candidate": name, "version": versions[name],
                    "device": torch.cuda.get_device_name(), "median_us": median, "copy_us": copied,
                    "r": median / copied})
        del calls, copy
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
