"""Implementations of operators for kinds of targets compute what the references of the operators do."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from compassc import te
from compassc.operators.calls import all_operators
from compassc.operators.declare import sample
from compassc.operators.expressions import define
from compassc.operators.implementations import IMPLEMENTATIONS, implementation, implementations_for
from tests.topi.trying import tried

OPERATORS = all_operators()
CASES = [(name, i) for name, found in IMPLEMENTATIONS.items() for i in found]


def _windows(seed: int, groups: bool, depthwise: bool):
    """Random convolutions: windows of all sizes over planes of a few columns to some vectors."""
    rng = np.random.default_rng(seed)
    for _ in range(3):
        window, stride, dilation = rng.integers(1, 4, 2), [*map(int, rng.integers(1, 4, 2))], int(rng.integers(1, 3))
        pads = [*map(int, rng.integers(0, 3, 4))]
        space = [*map(int, (window - 1) * dilation + rng.integers(1, 20, 2))]
        own, count = int(rng.integers(1, 4)), int(rng.integers(2, 4)) if groups or depthwise else 1
        outputs = count * int(rng.integers(1, 12))
        kernel = (count, int(rng.integers(1, 3))) if depthwise else (outputs, own)
        data = (int(rng.integers(1, 3)), count if depthwise else own * count, *space)
        yield sample(data, (*kernel, *map(int, window)), stride, pads, dilation, *[count] * groups)


MORE = {
    "conv2d_nchw": [*_windows(1, False, False), sample((1, 5, 8, 9), (9, 5, 3, 3), 1, 1, 1)],
    "group_conv2d_nchw": [*_windows(2, True, False)],
    "depthwise_conv2d_nchw": [*_windows(3, False, True)],
    "matmul": [
        sample((rows, depth), (columns, depth), False, True)
        for rows, columns, depth in [(1, 5, 16), (3, 9, 21), (8, 40, 7), (13, 33, 32)]
    ] + [sample((9, 9), (9, 41)), sample((6, 11), (64, 6), True, True), sample((17, 11), (64, 17), True, True)],
    "batch_matmul": [
        sample((2, rows, 17), (batch, 33, 17)) for rows, batch in itertools.product((1, 11), (1, 2))
    ] + [sample((1, 9, 5), (3, 5, 7), False, False)],
}  # fmt: skip


@pytest.mark.parametrize(("name", "found"), CASES, ids=[f"{name}-{i.name}" for name, i in CASES])
def test_implementations_compute_what_references_do(name, found):
    operator = OPERATORS[name]
    samples = (*operator.samples[:1], *MORE[name])
    taken = [s for s in samples if found.applies(*s.inputs("float32")[0], **s.options)]
    assert any(s in MORE[name] for s in taken)
    made = replace(operator, define=found.define, samples=tuple(taken))
    assert tried(made, "llvm -opt-level=0", together=True, kinds=("int8", "float32"))


def test_the_kind_and_the_priority_choose(monkeypatch):
    """The definition without a kind and for others; else what applies, and of that the highest priority."""
    monkeypatch.setitem(IMPLEMENTATIONS, "matmul", [])
    a, b = te.placeholder((4, 4)), te.placeholder((4, 4))

    def named(name, applies, priority):
        made = implementation("matmul", ("llvm",), applies, priority)
        made(lambda *_: te.compute((4, 4), lambda i, j: a[i, j], name=name))

    def chosen(kind):
        with implementations_for(kind):
            return define("matmul", a, b).op.name

    named("low", lambda *_: True, 1)
    named("high", lambda *_: True, 3)
    named("other", lambda *_: False, 7)
    assert chosen("llvm") == "high" and chosen("cuda") == "T_matmul"
    assert define("matmul", a, b).op.name == "T_matmul"
