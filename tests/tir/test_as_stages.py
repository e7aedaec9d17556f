"""The same steps on stages and on blocks make the same program."""

from __future__ import annotations

import re
from itertools import product

import pytest

from compassc import te, tir

TARGET = "X2_1204"
KINDS = (
    "float32 float32",
    "int32 int32",
    "int8 int32",
    "uint8 int32",
    "int16 int16",
    "float16 float16",
    "float16 float32",
)
SIZES = ((64, 8), (100, 16), (37, 32), (5, 8), (64, 64))
"""How much is reduced over, and the lanes of the loop: whole vectors, tails, less than one vector."""


def program(module):
    """The statements of a kernel, without the names that the two give their loops."""
    text = module.script().split("T.void:")[1]
    for name, other in ((", nonneg=True", ""), ("k_outer", "k_0"), ("k_inner", "k_1")):
        text = text.replace(name, other)
    return re.sub(r"\b([ABC])_1\b", r"\1", text)


def reduction(reducer, kind, size):
    """Rows of A that are summed up or such, or multiplied by B and summed up."""
    given, kept = kind.split()
    a, b = te.placeholder((3, size), given, name="A"), te.placeholder((size,), given, name="B")
    k = te.reduce_axis((0, size), name="k")
    if reducer == "dot":
        c = te.compute((3,), lambda i: te.sum(a[i, k].astype(kept) * b[k].astype(kept), axis=k), name="C")
        return [a, b, c]
    return [a, te.compute((3,), lambda i: getattr(te, reducer)(a[i, k].astype(kept), axis=k), name="C")]


@pytest.mark.parametrize("reducer", ["sum", "min", "max", "prod", "dot"])
def test_vectorised_reductions(reducer):
    """Sums of floats come in the same order, and tails have the same masks."""
    for n, (kind, turned) in enumerate(product(KINDS, (False, True))):
        size, lanes = SIZES[n % len(SIZES)]
        args = reduction(reducer, kind, size)
        stages = te.create_schedule(args[-1])
        stage, blocks = stages[args[-1]], tir.Schedule(te.create_prim_func(args))
        i, k = blocks.get_loops("C")
        outer, inner = stage.split(stage.op.reduce_axis[0], factor=lanes)
        block_outer, block_inner = blocks.split(k, [None, lanes])
        if turned:
            stage.reorder(outer, stage.op.axis[0], inner)
            blocks.reorder(block_outer, i, block_inner)
        stage.vectorize(inner)
        blocks.vectorize(block_inner)
        text = program(te.lower(stages, args, "main", target=TARGET))
        assert text == program(tir.lower(blocks.mod, TARGET)), (kind, size, lanes)
        assert "C_lanes" in text, text
