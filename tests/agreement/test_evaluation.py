"""Every operand of an operation is evaluated exactly once, in whatever pieces its C has it.

An operand is a call of a sub-function, each with a number of its own that must occur once in the C text.
"""

from __future__ import annotations

import linecache
import re
from collections import Counter
from collections.abc import Iterator
from itertools import count

import pytest
from op_forms import Form, Place, all_forms

from compassc import codegen, pass_manager, passes
from compassc.ir.dtypes import BOOL, DataType, dtype
from compassc.language.parser import parse

HEAD = """from compassc.dsl import script as S

@S.prim_func
def one(p: S.ptr("i32", "global"), k: S.i32) -> S.i32:
    p[k] = p[k] + 1
    return p[k]

@S.prim_func
def k(calls: S.ptr("i32", "global"), out: S.ptr("i32", "global")):
"""
MOVES = (
    "S.vconcat((a0, a1), 'low')",
    "S.vconcat((a0, a1), 'even')",
    "S.vconcat((a0, a1, a0_), 'low')",
    "S.vzip(a0, a1)",
    "S.vzip(a0, a1, 'high')",
    "S.vrevs(a0)",
    "S.vsldl(a0, a1, 3)",
    "S.vshfl(a0, 3)",
    "S.vreplic(a0, 1)",
    "S.vsel(a0, a1, m)",
    "S.vbcast(s, lanes={lanes})",
    "S.cast(a0, 'fp16')",
    "S.cast(a0, 'i8')",
    "S.cast(a0, 'u16')",
    "S.cast(S.cast(a0, 'i8'), 'i32')",
    "S.tag(S.cast(S.cast(a0, 'fp16'), 'fp32'), 'no_zip')",
    "S.clip(a0, s, a1)",
    "S.cast(a0, 'i8', saturate=True)",
    "S.tag(S.cast(S.cast(a0, 'i16'), 'i32'), 'no_zip')",
    "-a0 // a1 + a0_ * s",
    "a0 if s > 2 else a1",
    "S.vload(out + s, lanes={lanes})",
    "S.vload(out + s, lanes={lanes}, mask=m, stride=s_)",
    "S.vload_gather(out, S.cast(a0, 'u16'), m)",
    "(a0 > a1) & m",
)


def argument(t: DataType, numbers: Iterator[int]) -> str:
    """A value of a type that a call gives, with the next number."""
    call = f"one(calls, {next(numbers)})"
    if t.is_mask:
        return f"S.tail_mask({call}, {t.lanes})"
    if t.is_bool:
        return f"({call} > 0)"
    return f'S.vbcast(S.cast({call}, "{t.element_of}"), lanes={t.lanes})' if t.is_vector else f'S.cast({call}, "{t}")'


def of_form(form: Form, numbers: Iterator[int]) -> str:
    text = form.text
    for place in sorted(form.places, key=lambda p: -len(p.name)):
        text = re.sub(rf"\b{place.name}\b", lambda m, t=place.dtype: argument(t, numbers), text)
    return text


def of_move(text: str, lanes: int, numbers: Iterator[int]) -> str:
    wide = dtype("int32").with_lanes(lanes)
    types = {
        "a0": wide,
        "a1": wide,
        "a0_": wide,
        "m": BOOL.with_lanes(lanes),
        "s": dtype("int32"),
        "s_": dtype("int32"),
    }
    return re.sub(r"\b(a0_?|a1|m|s_?)\b", lambda m: argument(types[m.group()], numbers), text.format(lanes=lanes))


def c_text(lines: list[str]) -> str:
    text = HEAD + "".join(f"    {line}\n" for line in lines)
    file = f"<evaluation {hash(text)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    scope: dict[str, object] = {"__name__": "evaluation"}
    exec(compile(text, file, "exec", dont_inherit=True), scope)  # noqa: S102  the text above
    module = parse(scope["k"], "X2_1204")
    return codegen.generate(passes.lower(module, pass_manager.PassOptions()), pass_manager.PassOptions()).text


def check(values: list[str], used: int) -> None:
    found = Counter(
        map(int, re.findall(r"k_one\(calls, (\d+)\)", c_text([f"v{i} = {v}" for i, v in enumerate(values)])))
    )
    wrong = {k: found[k] for k in range(used) if found[k] != 1}
    assert not wrong, {v: n for v in values for k, n in wrong.items() if f"one(calls, {k})" in v}


@pytest.mark.parametrize("lanes", [0, 1, 20, 75])
@pytest.mark.parametrize("t", ["int8", "uint16", "int32", "float16", "float32"])
def test_of_operations(t: str, lanes: int) -> None:
    numbers = count()
    forms = [f for f in all_forms(dtype(t), lanes) if isinstance(f, Form) and not f.targets]
    values = [of_form(form, numbers) for form in forms]
    check(values, next(numbers))


@pytest.mark.filterwarnings("ignore:the tag no_zip")
@pytest.mark.parametrize("lanes", [8, 16, 24])
def test_of_moves_and_conversions(lanes: int) -> None:
    numbers = count()
    values = [of_move(text, lanes, numbers) for text in MOVES]
    check(values, next(numbers))


def test_places_are_replaced() -> None:
    numbers = count()
    text = of_form(
        Form("x", "S.max(a0, a1)", (Place("a0", dtype("int8")), Place("a1", dtype("int8"))), dtype("int8")), numbers
    )
    assert text.count("one(calls, ") == next(numbers) == 2


def test_of_parts() -> None:
    numbers = count()
    wide = argument(dtype("int32x24"), numbers)
    text = c_text([f"a, b, c = S.vsplit({wide} + 1)", "S.vstore(b, out)"])
    assert text.count("k_one(calls, 0)") == 1
