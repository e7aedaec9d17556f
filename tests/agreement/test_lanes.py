"""Operations that move lanes, and vector access to memory, agree between the chain and PySim at every width."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from law import check_forms, together
from op_forms import Form, Place, beside_others, expression, mask_texts

from compassc.ir.dtypes import BOOL, STORAGE, DataType, bool_of, dtype, make_dtype

PARTS = ("all", "low", "high", "even", "odd")


def vectors(t: DataType, lanes: int, count: int = 4) -> list[Place]:
    return [Place(f"a{k}", t.with_lanes(lanes)) for k in range(count)]


def mask(lanes: int, t: DataType) -> Place:
    return Place("m", bool_of(lanes), t.bits)


def joining(t: DataType, lanes: int) -> Iterator[Form]:
    """Whole registers: concatenation, interleaving, rotation, broadcast of a lane."""
    places = vectors(t, lanes)
    a, b, c = places[:3]
    yield from (expression(f"S.vconcat((a0, a1), '{part}')", a, b) for part in PARTS)
    yield from (expression(f"S.vconcat((a0, a1, a2), '{part}')", a, b, c) for part in PARTS)
    yield expression("S.vconcat([a0, a1, a2, a3])", *places)
    yield from (expression(f"S.vzip(a0, a1, '{part}')", a, b) for part in PARTS)
    yield from (expression(f"S.vshfl(a0, {k})", a) for k in (0, 1, lanes // 2 + 1, lanes - 1))
    yield from (expression(f"S.vsldl(a0, a1, {k})", a, b) for k in (0, 1, lanes // 2, lanes - 1))
    yield from (expression(f"S.vreplic(a0, {k})", a) for k in (0, 3, lanes - 1))
    yield expression("S.vreplic(a0, n)", a)
    yield expression("S.vrevs(a0)", a)


def one_register(t: DataType) -> Iterator[Form]:
    """What works on single registers only: compression, table look-up, run-time shifts and lanes."""
    lanes = t.native_lanes
    a, b, c, d = vectors(t, lanes)
    m, index = mask(lanes, t), Place("j", make_dtype("int", t.bits, lanes))
    yield expression("S.vcompt(a0, m)", a, m)
    yield expression("S.vcompc(a0, a1, m)", a, b, m)
    for text in mask_texts(lanes):
        yield expression(f"S.vcompt(a0, {text})", a)
        yield expression(f"S.vcompc(a0, a1, {text})", a, b)
    for table in ((a, b), (a, b, c), (a, b, c, d)):
        names = ", ".join(p.name for p in table)
        yield expression(f"S.vtbl(({names}), S.vand(j, 127))", *table, index)
        yield expression(f"S.vtbl(({names}), S.u(S.vand(j, {lanes * 2 - 1})))", *table, index)
    yield expression("S.vshfl(a0, n)", a)
    yield expression("S.vreplic(a0, n)", a)


def any_width(t: DataType, lanes: int) -> Iterator[Form]:
    """Selection, broadcast, and access to elements."""
    a, b, s, m = Place("a0", t.with_lanes(lanes)), Place("a1", t.with_lanes(lanes)), Place("s0", t), mask(lanes, t)
    yield expression("S.vsel(a0, a1, m)", a, b, m)
    yield expression("S.vsel(a0, s0, m)", a, s, m)
    yield expression("S.vzip(a0, a1)", a, b)
    yield expression(f"S.vbcast(s0, lanes={lanes})", s)
    yield from (expression(f"S.vsel(S.vbcast(s0, {x}, {lanes}), 0, {x})", s) for x in mask_texts(lanes))
    yield from (expression(f"S.vsel(a0, a1, S.vbcast({x}, lanes={lanes}))", a, b) for x in (True, False, "n > 1"))
    if lanes % t.native_lanes == 0:
        yield from (Form("", f"a0[{k}]", (a,), t) for k in (0, 1, "n", lanes - 1))


def memory(t: DataType, lanes: int) -> Iterator[Form]:
    """Loads and stores with masks and strides, gather and scatter."""
    x, m, a = Place("x", t.with_lanes(lanes * 3)), mask(lanes, t), Place("a0", t.with_lanes(lanes))
    steps = Place("j", dtype(f"uint16x{lanes}"))
    near, lifted, own = (
        f"j & {lanes - 1 if lanes & (lanes - 1) == 0 else 1}",
        t.with_lanes(lanes),
        t.with_lanes(lanes * 3),
    )
    for stride in ("1", "2", "n"):
        yield Form("", f"S.vload({{x}}, lanes={lanes}, stride={stride})", (x,), lifted)
        yield Form("", f"S.vload({{x}}, m, {lanes}, {stride})", (x, m), lifted)
        yield Form("", f"S.vstore(a0, {{out}}, stride={stride})", (a,), own)
        yield Form("", f"S.vstore(a0, {{out}}, m, {stride})", (a, m), own)
    for text in mask_texts(lanes):
        yield Form("", f"S.vload({{x}}, {text}, lanes={lanes})", (x,), lifted)
        yield Form("", f"S.vstore(a0, {{out}}, {text})", (a,), own)
    for given in ("", ", m"):
        yield Form("", f"S.vload_gather({{x}}, {near}{given})", (x, steps, m), lifted)
        yield Form("", f"S.vstore_scatter(a0, {{out}}, {near}{given})", (a, steps, m), own)


def register(t: DataType, count: int = 1) -> int:
    return t.native_lanes * count


@pytest.mark.parametrize("t", STORAGE)
def test_moving_lanes(t: DataType, tmp_path: Path) -> None:
    joined = together(joining(t, register(t, count)) for count in (1, 2, 3))
    check_forms("joining", list(map(beside_others, joined)), tmp_path, cc_options="-O1")
    others = together([one_register(t), *(any_width(t, lanes) for lanes in (register(t), 3, register(t) + 5))])
    check_forms("others", list(map(beside_others, others)), tmp_path)


@pytest.mark.parametrize("t", STORAGE)
def test_memory(t: DataType, tmp_path: Path) -> None:
    forms = together(memory(t, lanes) for lanes in (register(t), 5, register(t) * 2 + 3))
    check_forms("memory", list(map(beside_others, forms)), tmp_path, cc_options="-O1")


@pytest.mark.parametrize("lanes", [8, 16, 32, 24])
def test_masks(lanes: int, tmp_path: Path) -> None:
    a, b = (Place(f"b{k}", BOOL.with_lanes(lanes), {8: 32, 16: 16}.get(lanes, 8)) for k in range(2))
    forms = [expression(f"S.{name}(b0, b1)", a, b) for name in ("vand", "vor", "vxor", "vzip")]
    forms += [Form("", text, (a, b), a.dtype) for text in ("b0 & b1", "b0 | b1", "b0 ^ b1", "~b0")]
    forms += [expression(f"S.vconcat((b0, b1), '{part}')", a, b) for part in PARTS if lanes < 32]
    forms += [expression(f"S.vzip(b0, b1, '{part}')", a, b) for part in PARTS]
    check_forms("masks", forms, tmp_path)


@pytest.mark.parametrize("name", ["vmml", "vmma"])
@pytest.mark.parametrize("t", ["float16x16", "bfloat16x16"])
def test_matrices(t: str, name: str, tmp_path: Path) -> None:
    x, y, total = Place("a0", dtype(t)), Place("a1", dtype(t)), Place("a2", dtype("float32x16"))
    once = Form("", f"S.{name}({{out}}, a0, a1)", (x, y), total.dtype)
    check_forms("matrices", [once], tmp_path)
