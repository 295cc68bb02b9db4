#!/usr/bin/env bash
# Files written by NumPy itself are read, files written by plait are read by NumPy.
# Usage: numpy.sh PLAIT. Exit code 77: no python3 with numpy here.
set -euo pipefail
plait=$1
python=""
for candidate in python3 /usr/bin/python3; do
    "$candidate" -c 'import numpy' 2>/dev/null && python=$candidate && break
done
[ -n "$python" ] || {
    echo "skipped: there is no python3 with numpy"
    exit 77
}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"$python" - "$plait" <<'PYTHON'
import os, subprocess, sys
import numpy as np

def run(token, level=None, **files):
    args = [sys.argv[1], "run", token, "--backend", "cpu"]
    for name, array in files.items():
        np.save(name + ".npy", array)
        args += ["--in", f"{name}={name}.npy"]
    env = dict(os.environ, PLAIT_CPU_ISA=level) if level else None
    subprocess.run(args + ["--out", "y=y.npy"], check=True, stdout=subprocess.DEVNULL, env=env)
    return np.load("y.npy")

def hadamard(n):
    h = np.ones((1, 1))
    while len(h) < n:
        h = np.block([[h, h], [h, -h]])
    return h

random = np.random.default_rng(1)
x = random.standard_normal((5, 64))
for name, kind, tolerance in [("f64", "f8", 1e-14), ("f32", "f4", 1e-6), ("f16", "f2", 2e-3)]:
    stored = x.astype(kind)
    y = run(f"wht:{name}:b5:n64", x=stored)
    assert y.dtype == np.dtype(kind) and y.shape == x.shape, (name, y.dtype, y.shape)
    want = stored.astype("f8") @ hadamard(64)
    assert np.linalg.norm(y - want) <= tolerance * np.linalg.norm(want), name
z = (x + 1j * x[::-1]).astype("c16")
assert np.allclose(run("wht:c128:b5:n64", x=z), z @ hadamard(64))
i = random.integers(-9, 9, (5, 64), dtype="i4")
assert (run("wht:i32:b5:n64", x=i) == i @ hadamard(64).astype("i4")).all()
# bf16: f4 in, bits out.
y = run("wht:bf16:b5:n64", x=np.ones((5, 64), "f4"))
assert y.dtype == np.uint16
wide = (y.astype("u4") << 16).view("f4")
assert (wide[:, 0] == 64).all() and (wide[:, 1:] == 0).all()
# The bits of a result are the same at every instruction level.
for token, shape, kind in [
        ("wht:c64:b3:n512", (3, 512), "c8"), ("wht:f32:n48.h12s:b5:adj", (48, 5), "f4"),
        ("wht:f64:n32:n32:seq:scale=0.3", (32, 32), "f8"), ("wht:bf16:n64:b19", (64, 19), "f4"),
        ("wht:f32:b9:n80.h40:scale=0.1", (9, 80), "f4")]:
    data = random.standard_normal(shape)
    data = (data + 1j * data[::-1] if kind[0] == "c" else data).astype(kind)
    best = run(token, x=data)
    for level in ["AVX2", "SCALAR"] if os.uname().machine == "x86_64" else []:
        assert run(token, level, x=data).tobytes() == best.tobytes(), (token, level)
# What NumPy may save and plait must refuse.
for bad, word in [(np.asfortranarray(x), "Fortran"), (x.astype(">f8"), "big endian"),
                  (x[:, :32], "shape"), (x.astype("f4"), "f4")]:
    np.save("bad.npy", bad)
    done = subprocess.run([sys.argv[1], "run", "wht:f64:b5:n64", "--backend", "cpu", "--in",
                           "x=bad.npy", "--out", "y=no.npy"], capture_output=True, text=True)
    assert done.returncode == 2 and word in done.stderr, (word, done)
print("files go both ways")
PYTHON
