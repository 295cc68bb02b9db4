"""Transforms by plait against those of a public library, of every type, order and set of axes.

    oracles.py PLAIT numpy|scipy|torch

numpy: products with a matrix of its own making; scipy: with scipy.linalg.hadamard; torch: additions
and subtractions, rows moved to their places. All in the widest type of the kind, on the CPU.
"""

import itertools
import os
import subprocess
import sys
import tempfile

import numpy as np

PLAIT, LIBRARY = os.path.abspath(sys.argv[1]), sys.argv[2]
if LIBRARY == "scipy":
    import scipy.linalg
if LIBRARY == "torch":
    import torch

#        x of the token, of the file; y of the token, of the file; norm of the error
KINDS = [("f32", "f4", "", "f4", 4e-7), ("f64", "f8", "", "f8", 1e-14), ("c64", "c8", "", "c8", 4e-7),
         ("c128", "c16", "", "c16", 1e-14), ("f16", "f2", "", "f2", 5e-4), ("bf16", "f4", "", "u2", 4e-3),
         ("f32", "f4", ":y.bf16", "u2", 4e-3), ("f16", "f2", ":y.f32", "f4", 4e-7),
         ("f64", "f8", ":y.f32", "f4", 1e-7), ("c64", "c8", ":y.c128", "c16", 4e-7),
         ("i32", "i4", "", "i4", 0), ("i64", "i8", "", "i8", 0), ("i8", "i1", "", "i4", 0),
         ("i16", "i2", ":y.i64", "i8", 0), ("i32", "i4", ":y.i64", "i8", 0)]
ORDERS = ["", "seq", "dya"]
AXES = ["n64", "b9:n32", "n32:b9", "b3:n16:b5", "n8:b3:n16", "n4:n8:b3:n2", "b2:n1024", "n512:b6", "n1:b3"]


def matrix(n):
    if LIBRARY == "scipy":
        return scipy.linalg.hadamard(n)
    h = np.ones((1, 1), "i8")
    while len(h) < n:
        h = np.block([[h, h], [h, -h]])
    return h


def by_matrix(data, axis, order):
    h = matrix(data.shape[axis]).astype(data.dtype)
    n = len(h)
    if order == "seq":  # as many changes of sign as the number of the row
        h = h[np.argsort((h[:, 1:] != h[:, :-1]).sum(axis=1))]
    if order == "dya":  # the number's digits backwards
        h = h[[int(format(r, "b").zfill(n.bit_length() - 1)[::-1], 2) if n > 1 else 0 for r in range(n)]]
    return np.moveaxis(np.tensordot(h, data, ([1], [axis])), 0, axis)


def by_additions(data, axis, order):
    v = torch.from_numpy(data).movedim(axis, -1)
    n = v.shape[-1]
    bits = n.bit_length() - 1
    for bit in range(bits):
        pairs = v.reshape(*v.shape[:-1], n >> (bit + 1), 2, 1 << bit)
        u, w = pairs[..., 0, :], pairs[..., 1, :]
        v = torch.stack([u + w, u - w], dim=-2).reshape(v.shape)
    if order:
        rows = torch.arange(n)
        rows = rows ^ (rows >> 1) if order == "seq" else rows
        places = sum(((rows >> b) & 1) << (bits - 1 - b) for b in range(bits)) if bits else rows
        v = v.index_select(-1, places)
    return v.movedim(-1, axis).contiguous().numpy()


transform = by_additions if LIBRARY == "torch" else by_matrix


def stored(values, kind):
    """Values of this kind of file, as plait stores them: integers modulo, bf16 as bits."""
    if kind != "u2":
        return values.astype(kind)
    bits = values.astype("f4").view("u4")
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype("u2")


def widened(array, wide):
    if array.dtype == np.uint16:
        return (array.astype("u4") << 16).view("f4").astype(wide)
    return array.astype(wide)


def run(token, data):
    np.save("x.npy", data)
    subprocess.run([PLAIT, "run", token, "--backend", "cpu", "--in", "x=x.npy", "--out", "y=y.npy"],
                   check=True, stdout=subprocess.DEVNULL)
    return np.load("y.npy")


def check(random, kind, order, axes, whole):
    x, file, y_field, y_file, tolerance = kind
    extents = [int(f[1:]) for f in axes.split(":")]
    token = ":".join([f"wht:{x}:{axes}"] + ([order] if order else [])) + y_field
    wide = {"c": "c16", "i": "i8"}.get(file[0], "f8")
    if file[0] == "i":  # all values: results are right modulo 2^w
        limits = np.iinfo(file)
        data = random.integers(limits.min, limits.max, extents, dtype=file, endpoint=True)
    else:
        data = random.integers(-9, 10, extents).astype(wide)
        if not whole:
            data = data / 7
        if file[0] == "c":
            data = data + 1j * data[::-1] / (1 if whole else 3)
        data = data.astype(file)
        if x == "bf16":
            data = widened(stored(data, "u2"), "f4")
    want = data.astype(wide)
    with np.errstate(over="ignore"):
        for axis, field in enumerate(axes.split(":")):
            if field[0] == "n":
                want = transform(want, axis, order)
    y = run(token, data)
    assert y.dtype == np.dtype(y_file) and list(y.shape) == extents, (token, y.dtype, y.shape)
    if whole or file[0] == "i":  # sums are exact, and rounded once
        assert (y == stored(want, y_file)).all(), (token, "not exact")
    error = np.linalg.norm((widened(y, wide) - widened(stored(want, y_file), wide)).astype("c16"))
    assert error <= tolerance * np.linalg.norm(want.astype("c16")), (token, error)


numbers = np.random.default_rng(1)
problems = list(itertools.product(KINDS, ORDERS, AXES))
with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    for turn, (each, name, form) in enumerate(problems):
        check(numbers, each, name, form, turn % 2 == 0)
    os.chdir("/")
print(f"{len(problems)} transforms agree with {LIBRARY}")
