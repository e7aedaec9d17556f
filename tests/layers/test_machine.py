"""Facts of machines stand in their configurations alone, and kernels of layers are planned with those of their target."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from compass_core import targets
from compassc.graph import Tensor
from compassc.ir.dtypes import VECTOR_BITS
from compassc.layers import machine
from compassc.layers.kernels import kernel_of
from compassc.layers.machine import Share, costs, planned_for, tasks
from compassc.layers.samples import Draw, drawn
from tests.choosing import some

COMPILER = Path(__file__).parents[2] / "compassc"
WORDS = "TECS?|LANES|EVENTS?|REGISTERS?|LSRAM|GSRAM|STARTUP|SPEED|BANDWIDTH|VECTOR_BITS|BYTES"
FACT = re.compile(rf"(^|_)({WORDS}|\w*BYTES)(_|$)")
NO_FACTS = {
    "gbuilder/emit.py: PRINTF_BYTES": "a buffer of the file format",
    "ir/dtypes.py: VECTOR_BITS": "the language's own, which every configuration has",
    "language/info.py: SPILL_BYTES": "what the compiler may need, on every machine",
    "operators/packed.py: LANES": "parts of sums on the host",
    "ops/docs.py: _FLEXIBLE_LANES": "lanes of an example",
    "passes/storage_rewrite.py: _SMALLEST_SHARED_BYTES": "of an array that is worth it",
    "passes/vectorize_loop.py: _MOST_LANES": "of a loop that is worth it",
    "topi/schedules/npu.py: BYTES_TOGETHER": "products of bytes",
}
"""Numbers that look like facts of a machine, and why they are none."""


def has_number(value: ast.expr) -> bool:
    """Whether a number is written there, apart from calls, tables of words, and what follows from names."""
    if isinstance(value, (ast.Tuple, ast.List)):
        return any(has_number(e) for e in value.elts)
    if isinstance(value, ast.BinOp):
        return has_number(value.left) and has_number(value.right)
    return isinstance(value, ast.Constant) and isinstance(value.value, int) and value.value > 1


def facts(text: str) -> Iterator[str]:
    """The constants of a module that are named as a fact of a machine is, and are numbers."""
    if not re.search(WORDS, text):  # five files of six, which need not be parsed
        return
    for node in ast.parse(text).body:
        if not isinstance(node, (ast.Assign, ast.AnnAssign)) or node.value is None:
            continue
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            apart = isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple)
            pairs = zip(target.elts, node.value.elts, strict=True) if apart else [(target, node.value)]
            yield from (name.id for name, value in pairs if isinstance(name, ast.Name) and _is_fact(name.id, value))


def _is_fact(name: str, value: ast.expr) -> bool:
    return bool(FACT.search(name)) and has_number(value)


def test_no_fact_of_a_machine_stands_in_the_compiler() -> None:
    paths = some(sorted(COMPILER.rglob("*.py")))
    found = [f"{p.relative_to(COMPILER).as_posix()}: {name}" for p in paths for name in facts(p.read_text("utf-8"))]
    assert sorted(found) == sorted(NO_FACTS)


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("TECS = 4", ["TECS"]),
        ("STARTUP, SPEED = 120, 16", ["STARTUP", "SPEED"]),
        ("REGISTER, WORD = VECTOR_BITS // 8, 4", []),
        ("TILE_BYTES = 4 * 1024", ["TILE_BYTES"]),
        ("EVENTS: int = 3", ["EVENTS"]),
        ("LANES = VECTOR_BITS // 8", []),
        ("ROOM = Share(3)", []),
        ('BYTES = ("int8", "uint8")', []),
        ("PIXELS = 4", []),
    ],
)
def test_a_fact_is_found(line: str, found: list[str]) -> None:
    assert list(facts(line)) == found


@pytest.mark.parametrize("name", targets.names())
def test_plans_ask_the_target(name: str) -> None:
    target = targets.load(name)
    assert target.vector_bits == VECTOR_BITS
    with planned_for(name):
        assert machine.configuration() is target or machine.configuration() == target
        assert (Share(8).size, tasks(1), machine.told_target()) == (target.lsram_bytes, target.tecs, name)
        assert costs().transfers(1 << 20) < costs().transfers(1 << 20, 2)
    assert machine.told_target() == ""


def test_faster_memory_makes_other_tiles() -> None:
    """X3 has more bytes a cycle, so that other tiles are best there."""
    with planned_for("X2_1204"):
        slow = costs()
    with planned_for("X3P_1304"):
        fast = costs()
    assert (slow.startup, slow.speed, fast.speed) == (120, 16, 24)
    layer = drawn(Draw(np.random.default_rng(5)), "Pooling", Tensor("x", (1, 28, 28, 96), "int8"))
    plans = {}
    for name in ("X2_1204", "X2_1204MP3", "X3P_1304"):
        with planned_for(name):
            plans[name] = [a for a in kernel_of([layer]).arguments if isinstance(a, int)]
    assert plans["X2_1204"] == plans["X2_1204MP3"] != plans["X3P_1304"]
