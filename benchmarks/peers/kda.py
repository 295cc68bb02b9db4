#!/usr/bin/env python3
"""kda beside flash-linear-attention on one GPU, in one run, in time and in accuracy.

    benchmarks/peers/kda.py --plait build/gpu/src/cli/plait [--suite FILE] [--json FILE]
    benchmarks/peers/kda.py --plait build/gpu/src/cli/plait --accuracy

Each line of the suite that the peer can do (bf16, gate, norm and sigmoid inside, states of a batch,
no slots, no packed sequences) is timed by `plait bench` and, right after it, by the peer on tensors
of the same shape and type: between CUDA events, medians of 30 after warm-up; inputs are random.
--accuracy: gradients and outputs of both against `plait run` in float64 on the CPU, from the same
rounded inputs: relative RMS of every tensor.
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile

try:
    import numpy
    import torch
except ImportError:
    sys.exit("kda.py: PyTorch or NumPy is not installed: no peer to measure")
try:
    import fla
    from fla.ops.kda import chunk_kda, fused_recurrent_kda
except ImportError:
    sys.exit("kda.py: flash-linear-attention is not installed: no peer to measure")

TOKEN = re.compile(
    r"kda\.(fwd|bwd):bf16:b(\d+):t(\d+):h(\d+)(?::hv(\d+))?:k(\d+):v(\d+)"
    r":gate=(bounded\.-5|softplus):beta=logit\.1:norm=1e-06(?::state=vk)?"
    r":\+dt_bias((?:\+state_in)?)((?:\+state_out)?)(?::state_out@state_in)?"
)


class Problem:
    """Random inputs of a line, and the peer's calls."""

    def __init__(self, found):
        way, b, t, h, hv, k, v, gate, first, last = found.groups()
        self.backward, self.bounded = way == "bwd", gate != "softplus"
        b, t, h, k, v = (int(n) for n in (b, t, h, k, v))
        hv = int(hv or h)

        def draw(*shape, dtype=torch.bfloat16, size=1.0):
            return (size * torch.randn(shape, device="cuda", dtype=torch.float32)).to(dtype)

        self.q, self.k, self.v = draw(b, t, h, k), draw(b, t, h, k), draw(b, t, hv, v)
        self.g, self.beta = draw(b, t, hv, k), draw(b, t, hv)
        self.a_log = draw(hv, dtype=torch.float32, size=0.5)
        self.dt_bias = draw(hv, k, dtype=torch.float32)
        self.state_in = draw(b, hv, v, k, dtype=torch.float32) if first else None
        self.keep = bool(last)
        self.do = draw(b, t, hv, v)
        self.dstate_out = draw(b, hv, v, k, dtype=torch.float32) if last else None
        self.tokens = t

    def leaves(self):
        named = {"q": self.q, "k": self.k, "v": self.v, "g": self.g, "beta": self.beta,
                 "a_log": self.a_log, "dt_bias": self.dt_bias, "state_in": self.state_in}
        return {name: x for name, x in named.items() if x is not None}

    def forward(self, x):
        """Of the peer, with leaves x: o and the last state."""
        call = chunk_kda if self.backward or self.tokens > 8 else fused_recurrent_kda
        return call(x["q"], x["k"], x["v"], x["g"], x["beta"], A_log=x["a_log"],
                    dt_bias=x["dt_bias"].reshape(-1), initial_state=x.get("state_in"),
                    output_final_state=self.keep, use_qk_l2norm_in_kernel=True,
                    use_gate_in_kernel=True, use_beta_sigmoid_in_kernel=True,
                    safe_gate=self.bounded, lower_bound=-5.0 if self.bounded else None,
                    state_v_first=True)

    def call(self):
        """What is timed."""
        if not self.backward:
            def run():
                with torch.no_grad():
                    return self.forward(self.leaves())
            return run
        return self.gradients()[0]

    def gradients(self):
        x = {name: t.detach().requires_grad_() for name, t in self.leaves().items()}
        o, state = self.forward(x)
        outputs, weights = [o], [self.do]
        if self.dstate_out is not None:
            outputs, weights = [o, state], [self.do, self.dstate_out]
        return (lambda: torch.autograd.grad(outputs, list(x.values()), weights,
                                            retain_graph=True)), list(x)


def median_us(call, samples=30):
    for _ in range(5):
        call()
    torch.cuda.synchronize()
    times = []
    for _ in range(samples):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        call()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) * 1e3)
    return sorted(times)[samples // 2]


def append(path, record):
    if path:
        with open(path, "a", encoding="utf-8") as out:
            out.write(json.dumps(record) + "\n")


def time_suite(o):
    def report(record):
        print(f"{record['token']:110} {record['candidate']:24} {record['median_us']:12.1f} us",
              flush=True)
        append(o.json, record)

    for line in open(o.suite, encoding="utf-8"):
        token = line.strip()
        found = TOKEN.fullmatch(token)
        if not found:
            continue
        ours = subprocess.run([o.plait, "bench", "--json", "--no-accuracy", token], check=True,
                              capture_output=True, text=True).stdout
        report(json.loads(ours.splitlines()[-1]))
        try:
            median = median_us(Problem(found).call())
        except (RuntimeError, NotImplementedError, ValueError, AssertionError) as why:
            sentence = (str(why).splitlines() or [type(why).__name__])[0]
            print(f"{token:110} fla refuses: {sentence}", flush=True)
        else:
            report({"token": token, "candidate": "flash-linear-attention",
                    "version": getattr(fla, "__version__", "unknown"),
                    "device": torch.cuda.get_device_name(), "median_us": median})
        torch.cuda.empty_cache()


def read(path):
    """Elements of a .npy file as float64; bf16 lies there as its bits."""
    x = numpy.load(path)
    if x.dtype == numpy.uint16:
        x = (x.astype(numpy.uint32) << 16).view(numpy.float32)
    return x.astype(numpy.float64)


def relative_rms(got, want):
    return float(numpy.sqrt(((got - want) ** 2).sum() / max((want**2).sum(), 1e-300)))


def run_plait(o, folder, token, inputs, outputs, backend):
    """`inputs` by role, as float32 or float64; returns the outputs by role."""
    wide = token.split(":")[1] == "f64"
    command = [o.plait, "run", token, "--backend", backend]
    for role, x in inputs.items():
        path = folder / f"{role}.npy"
        numpy.save(path, x.astype(numpy.float64 if wide else numpy.float32))
        command += ["--in", f"{role}={path}"]
    for role in outputs:
        command += ["--out", f"{role}={folder / ('out_' + role + '.npy')}"]
    subprocess.run(command, check=True, capture_output=True, text=True)
    return {role: read(folder / f"out_{role}.npy") for role in outputs}


def judge(o):
    """At as many heads as the suites' largest layer: the peer's tuning depends on them alone."""
    for gate in ("bounded.-5", "softplus"):
        for way in ("fwd", "bwd"):
            token = (f"kda.{way}:bf16:b1:t512:h96:k128:v128:gate={gate}:beta=logit.1:norm=1e-06"
                     ":state=vk:+dt_bias+state_in+state_out")
            problem = Problem(TOKEN.fullmatch(token))
            inputs = {role: x.float().cpu().numpy() for role, x in problem.leaves().items()}
            if problem.backward:
                inputs["do"] = problem.do.float().cpu().numpy()
                inputs["dstate_out"] = problem.dstate_out.cpu().numpy()
                call, names = problem.gradients()
                theirs = dict(zip((f"d{name}" for name in names), call()))
            else:
                theirs = dict(zip(("o", "state_out"), problem.call()()))
            with tempfile.TemporaryDirectory() as name:
                folder, roles = pathlib.Path(name), list(theirs)
                want = run_plait(o, folder, token.replace(":bf16:", ":f64:"), inputs, roles, "cpu")
                ours = run_plait(o, folder, token, inputs, roles, "cuda")
            print(token)
            for role in roles:
                peer = theirs[role].double().cpu().numpy().reshape(want[role].shape)
                record = {"token": token, "role": role, "device": torch.cuda.get_device_name(),
                          "rms": relative_rms(ours[role], want[role]),
                          "rms_fla": relative_rms(peer, want[role])}
                print(f"  {role:10} plait {record['rms']:.1e}  fla {record['rms_fla']:.1e}",
                      flush=True)
                append(o.json, record)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plait", required=True, help="the program")
    parser.add_argument("--suite", default="benchmarks/suites/kda_peers.txt")
    parser.add_argument("--json", help="append JSON lines here")
    parser.add_argument("--accuracy", action="store_true", help="compare both with float64")
    o = parser.parse_args()
    if o.accuracy:
        judge(o)
    else:
        time_suite(o)


if __name__ == "__main__":
    main()
