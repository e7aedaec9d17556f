"""Running forms: one kernel computes many of them for each row of its input, compiled and in PySim."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from op_forms import Form, Place

from compassc.dsl import BuildManager, load_kernels
from compassc.ir.dtypes import DataType, make_dtype
from compassc.ops.numeric import np_dtype

TECS = 4
SLOT = 32
IN_LOOP = 50
"""How many forms a loop computes: clang takes a fifth longer for hundreds of stores one after another."""
HEADER = "from compassc.dsl import script as S\n\n\n"
N_VALUE = 3
"""The kernel parameter `n`, for masks that depend on it."""


def slots(types: Iterable[DataType]) -> tuple[list[int], int]:
    """Byte offsets of values in a row, and the row's bytes."""
    at, offsets = 0, []
    for t in types:
        offsets.append(at)
        at += -(-max(t.total_bytes, 1) // SLOT) * SLOT
    return offsets, at


def kept(result: DataType, form: Form) -> DataType:
    """The type in which a result is stored: masks as integers of the operand's width."""
    if not result.is_bool:
        return result
    bits = next((p.bits or p.dtype.bits for p in form.places if p.dtype.lanes == result.lanes), 8)
    return make_dtype("uint", bits, result.lanes)


def item_text(what: str, t: DataType, offset: int, row: int) -> str:
    """A scalar in a row."""
    return f"{what}_{t}[i * {row // t.bytes} + {offset // t.bytes}]"


def pointer_text(what: str, t: DataType, offset: int, row: int) -> str:
    return f'({what} + (i * {row} + {offset})).as_ptr("{t.element_of}")'


def load_text(p: Place, offset: int, row: int) -> str:
    """The statement that reads a place."""
    t = p.stored
    if t.is_scalar:
        return f"{p.name} = {item_text('inp', t, offset, row)}"
    load = f"S.vload({pointer_text('inp', t, offset, row)}, lanes={t.lanes})"
    return f"{p.name} = {load} != 0" if p.dtype.is_bool else f"{p.name} = {load}"


def store_text(form: Form, stored: DataType, offset: int, row: int, pointers: dict[str, str]) -> str:
    """The statement that computes and writes a result; `pointers`: where each place lies."""
    pointer = pointer_text("out", stored, offset, row)
    text = form.text.format(out=pointer, **pointers)
    if "{out}" in form.text:
        return text
    if stored.is_scalar:
        return f"{item_text('out', stored, offset, row)} = {f'1 if {text} else 0' if form.result.is_bool else text}"
    if not form.result.is_bool:
        return f"S.vstore({text}, {pointer})"
    name = f"S.u{stored.bits}x{stored.lanes}"
    return f"S.vstore(S.vsel({name}(1), {name}(0), mask={text}), {pointer})"


@dataclass(frozen=True)
class Batch:
    """Forms computed by one kernel, with the layout of its input and output rows."""

    name: str
    forms: tuple[Form, ...]
    target: str = "X2_1204"
    cc_options: str = ""

    @property
    def places(self) -> list[Place]:
        return list({p.name: p for form in self.forms for p in form.places}.values())

    @property
    def stored(self) -> list[DataType]:
        return [kept(form.result, form) for form in self.forms]

    def text(self) -> str:
        """The kernel file."""
        places, stored = self.places, self.stored
        starts, row = slots(p.stored for p in places)
        ends, out_row = slots(stored)
        loads = {p.name: load_text(p, at, row) for p, at in zip(places, starts, strict=True)}
        pointers = {p.name: pointer_text("inp", p.stored, at, row) for p, at in zip(places, starts, strict=True)}
        stores = [store_text(f, t, at, out_row, pointers) for f, t, at in zip(self.forms, stored, ends, strict=True)]
        lines = []
        for start in range(0, len(stores), IN_LOOP):
            read = dict.fromkeys(p.name for form in self.forms[start : start + IN_LOOP] for p in form.places)
            inside = [*map(loads.__getitem__, read), *stores[start : start + IN_LOOP]]
            lines += ["    for i in range(first, first + share):", *(f"        {line}" for line in inside)]
        typed = [*(("inp", p.stored) for p in places), *(("out", t) for t in stored)]
        scalars = dict.fromkeys(f'    {what}_{t} = {what}.as_ptr("{t}")\n' for what, t in typed if t.is_scalar)
        return (
            f"{HEADER}@S.prim_func\n"
            f'def {self.name}(inp: S.ptr("i8", "global"), out: S.ptr("i8", "global"), rows: S.i32, n: S.i32):\n'
            f"{''.join(scalars)}    share = rows // {TECS}\n    first = S.get_local_id() * share\n"
            + "\n".join([*lines, ""])
        )

    def built(self, folder: Path) -> Runner:
        """Compiled, and ready for PySim."""
        path = folder / f"{self.name}.py"
        path.write_text(self.text(), encoding="utf-8")
        kernel = load_kernels(path).entry()
        executor = BuildManager(self.target, cc_options=self.cc_options).build(kernel)
        return Runner(self, kernel, executor)


@dataclass(frozen=True)
class Runner:
    """A built batch."""

    batch: Batch
    kernel: Any
    executor: Any

    def packed(self, inputs: dict[str, Any]) -> np.ndarray[Any, Any]:
        """The input rows, given an array of (rows, lanes) per place."""
        starts, row = slots(p.stored for p in self.batch.places)
        rows = len(next(iter(inputs.values())))
        data = np.zeros((rows, row), np.uint8)
        for p, at in zip(self.batch.places, starts, strict=True):
            raw = np.ascontiguousarray(inputs[p.name], np_dtype(p.stored)).view(np.uint8)
            data[:, at : at + raw.shape[1]] = raw
        return data.reshape(-1).view(np.int8)

    def _run(self, call: Any, inputs: dict[str, Any]) -> list[np.ndarray[Any, Any]]:
        rows = len(next(iter(inputs.values())))
        assert rows % TECS == 0
        ends, row = slots(self.batch.stored)
        out = np.zeros(rows * row, np.int8)
        call(self.packed(inputs), out, rows, N_VALUE)
        table = out.view(np.uint8).reshape(rows, row)
        found = []
        for form, t, at in zip(self.batch.forms, self.batch.stored, ends, strict=True):
            lanes = np.ascontiguousarray(table[:, at : at + t.total_bytes]).view(np_dtype(t))
            found.append(lanes.astype(bool) if form.result.is_bool else lanes)
        return found

    def compiled(self, inputs: dict[str, Any]) -> list[np.ndarray[Any, Any]]:
        """Results per form, from the simulator."""
        return self._run(self.executor, inputs)

    def pysim(self, inputs: dict[str, Any]) -> list[np.ndarray[Any, Any]]:
        """Results per form, from running the same kernel in Python."""
        return self._run(self.kernel, inputs)


def batches(name: str, forms: Sequence[Form], size: int, **options: Any) -> list[Batch]:
    """Forms in kernels of at most `size` of them; forms of other targets apart."""
    x2 = [f for f in forms if not f.targets or "X2" in f.targets]
    others = [f for f in forms if f.targets and "X2" not in f.targets]
    made = [Batch(f"{name}_{i}", tuple(x2[i : i + size]), **options) for i in range(0, len(x2), size)]
    return [*made, *([Batch(f"{name}_x3", tuple(others), "X3P_1304", **options)] if others else [])]
