"""A statement of several lines: each report names the line of the access, whoever makes it."""

import json

import numpy as np
import pytest
from check_data import ints, zeros

from compass_core.errors import CompassError, Note, Span, flat
from compass_core.hostcc import whole_vectors
from compassc import codegen, passes
from compassc.check import Subject, findings
from compassc.dsl import BuildManager, parse
from compassc.dsl import script as S
from compassc.ir import parse_module, print_module, walk_stmts
from compassc.ir.visit import placed_exprs
from compassc.pysim.checks import checking
from compassc.toolchain import unit


@S.prim_func
def race(a: S.ptr("i32", "global"), b: S.ptr("i32", "global")):
    sh = S.alloc_buffer((4,), "int32", "shared")
    tid = S.get_local_id()
    sh[tid] = a[tid]
    b[tid] = (
        a[tid]  # its own
        + sh[(tid + 1) % 4]  # another's
    )


@S.prim_func
def outside(a: S.ptr("i32", "global"), b: S.ptr("i32", "global"), n: S.i32):
    S.vstore(
        S.vadd(
            S.vload(a),
            S.vload(a + n),
        ),
        b,
    )


def said(error: CompassError) -> tuple[str, list[str]]:
    """The message without the numbers of TECs and the name of the memory, and the places by line in the kernel."""
    places: list[CompassError | Note] = [error, *[n for n in error.notes if n.span and "TEC" in n.message]]
    words = [("reads" if "reads" in p.message.split("TEC")[1] else "writes") for p in places]
    spans = [p.span for p in places if isinstance(p.span, Span)]
    return error.message.partition(":")[0], sorted(f"{w} {s.line - race.span.line}" for w, s in zip(words, spans))


def test_a_race_is_told_one_way():
    """`compassc check`, PySim and a checked run: the same words and lines."""
    (static,) = findings(Subject(parse(race, "X2_1204")))
    with checking("race"), pytest.raises(CompassError) as simulated:
        race(ints(4), zeros(4))
    with pytest.raises(CompassError) as checked:
        BuildManager().build(race).check(ints(4), zeros(4))
    errors = [static, simulated.value, flat(checked.value)[0]]
    assert [said(error) for error in errors] == [("data race", ["reads 7", "writes 4"])] * 3
    for error in errors:
        assert error.message.endswith("with no barrier between") and error.help == static.help


def test_bounds_of_an_access():
    a, b = ints(16), zeros(8)
    executor = BuildManager().build(outside)
    assert executor.check(a, b, 8) == [] and np.array_equal(b, a[:8] + a[8:])
    with pytest.raises(CompassError, match="out of bounds") as checked:
        executor.check(a, b, 12)
    assert checked.value.span.line - outside.span.line == 5
    with pytest.raises(CompassError) as simulated:
        outside(a, b, 12)
    assert simulated.value.span.line - outside.span.line == 5


@pytest.mark.parametrize("kernel", [race, outside])
def test_text_keeps_the_places_of_accesses_in_other_lines(kernel):
    module = parse(kernel, "X2_1204")
    again = parse_module(print_module(module))
    several = 0
    for one, other in zip(walk_stmts(module[module.entry].body), walk_stmts(again[module.entry].body), strict=True):
        spans = [e.span for e in placed_exprs(one)]
        if any(span.line != one.span.line for span in spans):
            several += 1
            assert [e.span for e in placed_exprs(other)] == spans
    assert several


def test_the_line_map_has_parts_of_lines_and_reads_older_ones(tmp_path):
    made = codegen.generate(passes.lower(parse(outside, "X2_1204")))
    path = tmp_path / "k.cl.map"
    path.write_text(json.dumps(made.line_map))
    found = unit.read_line_map(path)
    number, parts = next(iter(found.parts.items()))
    text = made.text.splitlines()[number - 1]
    loads = [place[1] for at, place in parts if text[at:].startswith("__vload")]
    assert [line - outside.span.line for line in loads] == [4, 5]
    whole = unit.translation_unit(made.text, found, "k.cl")
    code = [line for line in whole.splitlines() if not line.startswith("# ")]
    assert text in whole_vectors.called("".join(code))
    lines = [item and item[:2] for item in made.line_map["lines"]]
    path.write_text(json.dumps({**made.line_map, "lines": lines}))
    older = unit.read_line_map(path)
    assert older.places == found.places and older.parts == {}
    for wrong in ([[1, 0]], [["x", 0, 1, 1]], [[-1, 0, 1, 1]], 7):
        path.write_text(json.dumps({**made.line_map, "lines": [[0, 1, wrong]]}))
        with pytest.raises(CompassError, match="the line map is malformed"):
            unit.read_line_map(path)
