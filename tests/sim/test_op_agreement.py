"""Operations mean the same in PySim and in C: each form of each declared operation, printed as codegen prints it,
compiled, run, and compared bit for bit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from sim_device import Bench, compile_kernel

from compassc.codegen.c_calls import FORMS
from compassc.codegen.c_expr import ExprPrinter
from compassc.codegen.c_types import c_type
from compassc.dsl.script.pysim import pysim_impl
from compassc.dsl.script.pysim.values import PyVar
from compassc.ir import exprs as E
from compassc.ir.dtypes import BOOL, STORAGE, DataType, bool_of
from compassc.ops import core, docs, spelling
from compassc.ops.numeric import np_dtype
from compassc.passes import isa_aware_rewrite

CALLS = 16
BASE, STEP = 0x0200_0000, 0x1_0000
GROUPS = ("Arithmetic", "Bitwise", "Compare", "Math")
FLAGS = ("saturate", "with_round", "to_h", "return_idx")
SPECIALS = (0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0)


@dataclass
class Form:
    """One call: operands and options, its mask (None: all lanes), and the expression that codegen would print."""

    op: core.Op
    operands: list[DataType]
    options: dict[str, Any]
    mask: DataType | None
    call: E.Expr

    @property
    def places(self) -> list[tuple[str, DataType]]:
        """Name and type of everything the C text reads, in the order of the parameter words."""
        extra = [("r", self.call.dtype), *([] if self.mask is None else [("m", self.mask)])]
        return [*((f"a{i}", t) for i, t in enumerate(self.operands)), *extra]


def option_sets(op: core.Op) -> Iterator[dict[str, Any]]:
    """Every combination of the operation's flags and result signs."""
    flags = [f for f in FLAGS if f in op.options]
    for bits in range(1 << len(flags)):
        chosen = {f: bool(bits >> i & 1) for i, f in enumerate(flags)}
        for sign in ("s", "u") if "out_sign" in op.options else (None,):
            yield chosen if sign is None else {**chosen, "out_sign": sign}


def operand_sets(op: core.Op) -> Iterator[list[DataType]]:
    """The operand types of the scalar and one-register forms; the last integer operand also with the other sign."""
    masks = [[bool_of(n)] * len(op.operands) for n in (8, 16, 32)] if docs.operands_of(op, BOOL, "native") else []
    for t in STORAGE:
        for form in ("scalar", "native"):
            found = docs.operands_of(op, t, form)
            if found:
                yield found
            if found and form == "native" and t.is_integer:
                yield [*found[:-1], found[-1].with_uint if t.is_int else found[-1].with_int]
                if op.operands[0] == "acc":
                    yield [found[0].with_int, *found[1:-1], found[-1].with_uint if t.is_int else found[-1].with_int]
    yield from masks


def forms(group: str) -> Iterator[Form]:
    for op in core.load().values():
        if op.group != group or op.special:
            continue
        for operands in operand_sets(op):
            for options in option_sets(op):
                try:
                    defaults = {name: op.signature.parameters[name].default for name in op.options}
                    typed = core.infer(op, list(operands), {**defaults, **options})
                except core.CompassError:
                    continue
                maskable = op.has_mask and operands[-1].is_vector
                for mask in (None, *([bool_of(core.mask_lanes_of(op, typed))] if maskable else [])):
                    yield Form(op, operands, options, mask, call_of(op, operands, options, mask, typed.result))


def call_of(op: core.Op, operands: list[DataType], options: dict[str, Any], mask: Any, result: DataType) -> E.Expr:
    """The call with a run-time mask and source for inactive lanes, in the signs of its instruction."""
    args, r = [E.Var(f"a{i}", t) for i, t in enumerate(operands)], E.Var("r", result)
    given: dict[str, Any] = {} if mask is None else {"mask": E.Var("m", mask)}
    if mask is not None and op.r == "param":
        given["r"] = r
    call = op.build(*args, **given, **options)
    if not isinstance(call, E.Call) or not operands[-1].is_vector:
        return call
    if spelling.needs_r(call):
        call = call.replace(r=r)
    rewrite = isa_aware_rewrite.FORMS.get(call.op)
    return rewrite(call) if rewrite else call


def text_of(index: int, form: Form) -> str:
    """An entry that makes the call on each item of its arrays."""
    printer = ExprPrinter(FORMS)
    printer.names.update({v: v.name for v in walk(form.call) if isinstance(v, E.Var)})
    lines = []
    for k, (name, t) in enumerate(form.places):
        lines.append(f"{c_type(t)} {name} = __COMPASS_POINTER(__global {c_type(t)}, {k})[i];")
    out = f"__COMPASS_POINTER(__global {c_type(form.call.dtype)}, {len(form.places)})[i]"
    body = "\n    ".join([*lines, f"{out} = {printer.expr(form.call)};"])
    return f"__COMPASS_ENTRY(entry{index}) {{\n  for (int i = 0; i < {CALLS}; i++) {{\n    {body}\n  }}\n}}"


def walk(e: E.Expr) -> Iterator[E.Expr]:
    yield e
    for child in e.children():
        yield from walk(child)


def sample(t: DataType, rng: np.random.Generator) -> np.ndarray:
    """Random values of a type, small ones and edges among them; one row per call."""
    shape, kind = (CALLS, t.lanes), np_dtype(t)
    if t.is_bool:
        return rng.integers(0, 2, shape).astype(bool)
    pick = rng.integers(0, 4, shape)
    if t.is_integer:
        low, high = (int(v) for v in t.range())
        x = rng.integers(low, high, shape, dtype=kind, endpoint=True)
        small = (x % kind.type(t.bits + 2)).astype(kind)
        return np.where(
            pick == 0, rng.choice(np.array([low, high, 0, 1, 2], kind), shape), np.where(pick == 1, small, x)
        )
    raw = np.frombuffer(rng.bytes(CALLS * t.lanes * kind.itemsize), kind).reshape(shape)
    near = (rng.standard_normal(shape) * 8).astype(kind)
    return np.where(
        pick == 0, rng.choice(np.array(SPECIALS, np.float32), shape).astype(kind), np.where(pick == 1, raw, near)
    )


def defined(form: Form, mask: Any) -> Any:
    """Which result lanes have a defined value; `mask` None: all active."""
    t, name = form.call.dtype, form.op.name
    lanes = np.ones(t.lanes, bool)
    if name in ("vrpadd", "vrpmax", "vrpmin"):
        return np.arange(t.lanes) < (2 if form.options.get("return_idx") else 1)
    if name == "vqdot" and t.is_floating:
        lanes[1::2] = False
        return lanes if mask is None else lanes & np.repeat(mask.reshape(-1, 4).any(axis=1), 2)
    if form.op.r == "auto" and mask is not None and not t.is_bool:
        return mask.reshape(t.lanes, -1).any(axis=1)
    return lanes


def expected(form: Form, values: list[Any], r: Any, mask: Any) -> Any:
    """PySim's result as an array."""
    args = [PyVar(v if t.is_vector else v[0], t) for v, t in zip(values, form.operands, strict=True)]
    options = dict(form.options)
    if mask is not None:
        options["mask"] = PyVar(mask, form.mask)
        if form.op.r == "param":
            options["r"] = PyVar(r, form.call.dtype)
    with np.errstate(all="ignore"):
        out = pysim_impl(form.op)(*args, **options)
    return np.atleast_1d(np.asarray(out.value if isinstance(out, PyVar) else out))


def alike(a: Any, b: Any) -> Any:
    """Lane by lane: the same bits, or both NaN."""
    if a.dtype.kind in "biu":
        return a == b
    raw = f"u{a.dtype.itemsize}"
    return (a.view(raw) == b.view(raw)) | (np.isnan(a.astype(np.float32)) & np.isnan(b.astype(np.float32)))


def inputs(form: Form, rng: np.random.Generator) -> list[np.ndarray]:
    """One array per place; reductions get at least one active lane, ceildiv no divisor that traps."""
    arrays = [sample(t, rng) for _, t in form.places]
    if form.op.name == "ceildiv":
        arrays[1] = np.where((arrays[1] == 0) | (arrays[1] == np.array(-1).astype(arrays[1].dtype)), 3, arrays[1])
    if form.mask is not None:
        arrays[-1][0] = True
        arrays[-1][:, 0] |= form.op.name in ("vrpmax", "vrpmin")
    return arrays


@pytest.mark.parametrize("group", GROUPS)
def test_pysim_and_c_agree(shared: Bench, group: str) -> None:
    every, wrong = list(forms(group)), []
    text = "\n".join(text_of(i, form) for i, form in enumerate(every))
    entries = shared.load(compile_kernel(text), [f"entry{i}" for i in range(len(every))])
    for i, form in enumerate(every):
        arrays = inputs(form, np.random.default_rng(i))
        places = [BASE + k * STEP for k in range(len(arrays) + 1)]
        for place, array in zip(places, arrays, strict=False):
            shared.write(place, (array.astype(np.int8) if array.dtype == bool else array).tobytes())
        shared.parameters(*places)
        shared.worker.dispatch(*shared.chain(entries[f"entry{i}"], tasks=1))
        t = form.call.dtype
        got = shared.read(places[-1], np.zeros((CALLS, t.lanes), np.int8 if t.is_bool else np_dtype(t)))
        for k in range(CALLS):
            row = [a[k] for a in arrays]
            mask = None if form.mask is None else row[-1]
            want = expected(form, row[: len(form.operands)], None if mask is None else row[-2], mask)
            found = (got[k] & 1).astype(bool) if t.is_bool else got[k]
            if not alike(want, found)[defined(form, mask)].all():
                wrong.append(f"{form.op.name} {form.operands} {form.options}: {row}: PySim {want}, C {found}")
                break
    assert not wrong, f"{len(wrong)} of {len(every)} forms differ:\n" + "\n".join(wrong[:5])
