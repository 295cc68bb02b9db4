#!/usr/bin/env python3
"""wht beside its peers on one GPU, in one process: plait through its shared library,
fast-hadamard-transform and vLLM's HadaCore where they are installed, cuFFT by PyTorch.

    benchmarks/peers/wht.py [--library libplait.so] [--suite FILE...] [--json FILE]

Each line of the suites that is packed rows, out of place, is timed on the same random tensor for
everybody, each in turn with a device copy of it: r = median / copy. A sample is one replay of a
CUDA graph with as many calls as take 0.3 ms; medians of 30 after warm-up. cuFFT transforms the same
bytes as complex rows of half the length. The results of the Hadamard peers are compared with
plait's. One table; absent peers are named and left out.
"""

import argparse
import ctypes
import json
import re

try:
    import torch
except ImportError:
    raise SystemExit("wht.py: PyTorch is not installed: no peer to measure")
absent = []
try:
    from fast_hadamard_transform import hadamard_transform
except ImportError:
    hadamard_transform = None
    absent.append("fast-hadamard-transform")
hadacore = None
try:
    from vllm import _custom_ops

    if hasattr(torch.ops._C, "hadacore_transform"):
        hadacore = _custom_ops.hadacore_transform
except ImportError:
    pass
if hadacore is None:
    absent.append("vLLM with HadaCore")

ROWS = re.compile(r"wht:(f16|bf16|f32|f64)(?::b(\d+))?:n(\d+)")
TYPES = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "f64": torch.float64}
COMPLEX = {torch.float32: torch.complex64, torch.float64: torch.complex128}
CUDA = 2  # PLAIT_CUDA


class Plait:
    """One exec on one stream."""

    def __init__(self, library, token, stream):
        self.library, self.exec = library, ctypes.c_void_p()
        self.check(library.plait_exec_create(ctypes.byref(self.exec), CUDA, 0, token.encode(),
                                             ctypes.c_void_p(stream.cuda_stream)))

    def check(self, status):
        if status:
            raise RuntimeError(self.library.plait_last_error().decode())

    def candidate(self):
        plan = ctypes.c_void_p(self.library.plait_exec_plan(self.exec))
        name = ctypes.create_string_buffer(64)
        self.check(self.library.plait_plan_candidate(plan, name, ctypes.c_size_t(64), None))
        return name.value.decode()

    def __call__(self, x, y):
        self.check(self.library.plait_exec_run(self.exec, ctypes.c_void_p(x.data_ptr()),
                                               ctypes.c_void_p(y.data_ptr())))

    def close(self):
        self.library.plait_exec_destroy(self.exec)


def graph_of(call, calls, stream):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        for _ in range(calls):
            call()
    return graph


def replay_us(graph):
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    graph.replay()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) * 1e3


def measure(call, copy, stream, samples=30):
    """Medians of call and copy, replayed in turn, microseconds of one call; calls in a sample."""
    works, calls = [], []
    for work in (call, copy):
        work()  # a shape that a peer refuses is refused here, and not while a stream is captured
        torch.cuda.synchronize()
        once = graph_of(work, 1, stream)
        alone = min(replay_us(once) for _ in range(5))
        calls.append(max(1, min(256, round(300 / max(alone, 1)))))
        works.append(once if calls[-1] == 1 else graph_of(work, calls[-1], stream))
    times = [[], []]
    for turn in range(samples + 3):
        for graph, count, taken in zip(works, calls, times):
            taken.append(replay_us(graph) / count)
    return [sorted(taken[3:])[samples // 2] for taken in times] + [calls[0]]


def peers_of(x, n):
    """(name, call, what its result misses to the transform of plait, or None) of each peer."""
    if hadamard_transform is not None and x.dtype != torch.float64:
        yield "fast-hadamard-transform", lambda: hadamard_transform(x), 1.0
    if hadacore is not None and x.dtype in (torch.float16, torch.bfloat16):
        yield "hadacore", lambda: hadacore(x, inplace=False), n**0.5
    if x.dtype in COMPLEX and n >= 2:
        spectrum = x.view(COMPLEX[x.dtype])
        out = torch.empty_like(spectrum)
        yield "cufft", lambda: torch.fft.fft(spectrum, out=out), None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--library", default="libplait.so", help="the shared library")
    parser.add_argument("--suite", nargs="+", default=[
        f"benchmarks/suites/wht_{name}.txt" for name in ("block", "cluster", "two_pass", "latency")])
    parser.add_argument("--json", help="append JSON lines here")
    o = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("wht.py: PyTorch sees no GPU")
    library = ctypes.CDLL(o.library)
    library.plait_last_error.restype = ctypes.c_char_p
    library.plait_exec_plan.restype = ctypes.c_void_p
    library.plait_exec_destroy.restype = None
    for name in absent:
        print(f"{name} is not installed: left out")
    out = open(o.json, "a", encoding="utf-8") if o.json else None
    stream = torch.cuda.Stream()

    def report(token, name, median, copied, calls, size, difference):
        # 2^28 bytes do not stay in any cache, so that such a record is cold without rotation.
        record = {"token": token, "candidate": name, "device": torch.cuda.get_device_name(),
                  "median_us": median, "copy_us": copied, "r": median / copied, "bytes": size,
                  "mode": "cold" if size >= 2**28 else "latency", "calls": calls,
                  "difference": difference}
        shown = "" if difference is None else f"  difference {difference:.1e}"
        print(f"{token:34} {name:26} {median:10.2f} us  r {record['r']:6.3f}{shown}", flush=True)
        if out:
            out.write(json.dumps(record) + "\n")

    tokens = [line.strip() for path in o.suite for line in open(path, encoding="utf-8")]
    with torch.cuda.stream(stream):
        for token in dict.fromkeys(tokens):
            found = ROWS.fullmatch(token)
            if not found:
                continue
            kind, batch, n = found[1], int(found[2] or 1), int(found[3])
            x = torch.randn((batch, n), device="cuda", dtype=TYPES[kind])
            y, copied_to = torch.empty_like(x), torch.empty_like(x)
            size = 2 * x.numel() * x.element_size()
            plait = Plait(library, token, stream)
            calls = [(plait.candidate(), lambda: plait(x, y), 1.0)]
            for name, call, factor in calls + list(peers_of(x, n)):
                try:
                    result = call()
                    difference = None
                    if result is not None and factor is not None:
                        rows = slice(0, max(1, min(batch, 2**20 // n)))
                        mine, theirs = y[rows].double(), result[rows].double() * factor
                        difference = ((theirs - mine).norm() / mine.norm()).item()
                    median, copied, count = measure(call, lambda: copied_to.copy_(x), stream)
                except RuntimeError as why:  # a shape that the peer refuses
                    print(f"{token:34} {name:26} refuses: {str(why).splitlines()[0]}", flush=True)
                    torch.cuda.synchronize()
                    continue
                report(token, name, median, copied, count, size, difference)
            torch.cuda.synchronize()
            plait.close()
            del x, y, copied_to, calls, call
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
