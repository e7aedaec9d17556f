"""S.printf takes the same arguments compiled and in PySim, and prints the same; %p shows addresses on the device only."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from compass_core.errors import CompassError, flat
from compassc.dsl import BuildManager, load_kernels, parse

VALUES = {
    "pointer": "x",
    "void pointer": 'x.as_ptr("void")',
    "buffer": "buffer",
    "address of an element": "buffer.addr_of(1)",
    "table": "table",
    "variable": "number",
    "element": "x[1]",
    "byte": "S.i8(66)",
    "half": "S.fp16(2.5)",
    "bfloat16": "S.bf16(2.5)",
    "bool": "x[0] > 3",
    "vector": "S.vload(x)",
    "wide vector": "S.vload(x, lanes=16)",
    "mask": "S.tail_mask(number, 8)",
    "integer": "67",
    "string": "'some text'",
    "nothing": "None",
    "tuple": "(1, 2)",
}
SPECIFIERS = ("c", "x", "f", "s", "p", "v8hlx")

KERNEL = """
@S.prim_func
def {}(x: S.ptr("i32", "global")):
    buffer = S.alloc_buffer((4,), "i32", "lsram")
    array = S.alloc(4, "i32", "lsram")
    table = S.alloc_const((3,), "i32", [1, 2, 3])
    number = S.i32(65)
    if S.get_local_id() == 0:
        {}
"""


def kernels(path: Path, bodies: dict[str, list[str]]) -> dict[str, Any]:
    texts = [KERNEL.format(name, "\n        ".join(calls)) for name, calls in bodies.items()]
    path.write_text("from compassc.dsl import script as S\n" + "".join(texts))
    return dict(load_kernels(path).kernels)


def x() -> np.ndarray:
    return np.arange(40, 72, dtype="int32")


def refusals(kernel: Any) -> list[str]:
    """The codes of the errors with which the parser and PySim refuse a kernel."""
    found = []
    for take in (lambda: parse(kernel), lambda: kernel(x())):
        try:
            take()
        except CompassError as error:
            found.append(flat(error)[0].code)
    return found


def test_both_take_the_same_and_print_the_same(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    calls = [(spec, value) for value in VALUES.values() for spec in SPECIFIERS]
    texts = [f'S.printf("{spec} %{spec}\\n", {value})' for spec, value in calls]
    found = kernels(tmp_path / "one.py", {f"show_{i}": [text] for i, text in enumerate(texts)})
    refused = [refusals(found[f"show_{i}"]) for i in range(len(texts))]
    assert all(len(codes) in (0, 2) and len(set(codes)) <= 1 for codes in refused), dict(zip(calls, refused))
    taken = [i for i, codes in enumerate(refused) if not codes]
    assert VALUES.keys() - {"mask", "nothing", "tuple"} == {list(VALUES)[i // len(SPECIFIERS)] for i in taken}
    kernel = kernels(tmp_path / "all.py", {"show": [texts[i] for i in taken]})["show"]
    capfd.readouterr()
    kernel(x())
    simulated = capfd.readouterr().out
    BuildManager("X2_1204").build(kernel)(x())
    compiled = capfd.readouterr().out
    assert compiled.count("\n") == len(taken)
    assert re.sub("p 0x[0-9a-f]+", "p %p", compiled) == simulated
