"""Integer division by zero and of the least number by -1: no fault, and the same numbers compiled and in PySim."""

import re
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compass_core import targets
from compass_core.errors import CompassError
from compass_core.hostcc import divisions
from compassc import pysim
from compassc.dsl import BuildManager, load_kernels
from compassc.dsl import script as S
from compassc.ops.rules import INTS
from compassc.toolchain import cc

SCALARS = ("x[i] / y[i]", "x[i] // y[i]", "x[i] % y[i]", "S.ceildiv(x[i], y[i])")
VECTORS = ("v / w", "v // w", "v % w", "S.vdiv(v, w)", "S.vmod(v, w)", "S.vdiv(v, w, mask=m)")


def operands(kind: str, lanes: int) -> tuple[np.ndarray, np.ndarray]:
    """All pairs of the numbers that matter, padded to whole vectors."""
    info = np.iinfo(kind)
    numbers = np.unique(np.array([0, 1, 7, info.min, info.min + 1, info.max, -1 if info.min else 2], dtype=kind))
    x, y = (side.reshape(-1) for side in np.meshgrid(numbers, numbers))
    return tuple(np.pad(side, (0, -len(side) % (2 * lanes))) for side in (x, y))


def truncated(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The exact quotient rounded toward zero, 0 where y is 0."""
    size = np.abs(x) // np.maximum(np.abs(y), 1)
    return np.where(y == 0, 0, np.where((x < 0) == (y < 0), size, -size))


def law(x: np.ndarray, y: np.ndarray, form: str) -> np.ndarray:
    """What a form gives: quotients of scalars wrap, those of lanes saturate."""
    kind, a, b = x.dtype, x.astype(np.int64), y.astype(np.int64)
    if "ceildiv" in form:
        return truncated((a + b - 1).astype(kind).astype(np.int64), b).astype(kind)
    if "%" in form or "vmod" in form:
        return np.where(b == 0, 0, a - truncated(a, b) * b).astype(kind)
    found = truncated(a, b)
    return (found if form in SCALARS else np.minimum(found, np.iinfo(kind).max)).astype(kind)


def function(kind: str, lanes: int, size: int) -> str:
    """A function that divides numbers of one type in all forms."""
    forms = SCALARS + VECTORS
    outs = ", ".join(f"o{k}: S.ptr('{kind}', 'global')" for k in range(len(forms)))
    head = f"def {kind}(x: S.ptr('{kind}', 'global'), y: S.ptr('{kind}', 'global'), {outs}):"
    lines = ["@S.prim_func", head]
    lines += ["    if S.get_local_id() == 0:", f"        for i in range({size}):"]
    lines += [f"            o{k}[i] = {form}" for k, form in enumerate(SCALARS)]
    lines += [f"        for k in range({size // lanes}):", f"            v = S.vload(x + k * {lanes})"]
    lines += [f"            w = S.vload(y + k * {lanes})", "            m = v != w"]
    for k, form in enumerate(VECTORS, len(SCALARS)):
        kept = f"S.vsel({form}, 0, m)" if "mask" in form else form
        lines.append(f"            S.vstore({kept}, o{k} + k * {lanes})")
    return "\n".join(lines) + "\n"


def program() -> tuple[str, list[np.ndarray]]:
    """A kernel that calls such a function of every type, and its arguments."""
    texts, params, arguments = ["from compassc.dsl import script as S"], [], []
    for t in INTS:
        kind, lanes = str(t), 256 // t.bits
        x, y = operands(kind, lanes)
        texts.append(function(kind, lanes, len(x)))
        params.append([f"{kind}_{k}: S.ptr('{kind}', 'global')" for k in range(2 + len(SCALARS + VECTORS))])
        arguments += [x, y, *(np.full_like(x, 99) for _ in SCALARS + VECTORS)]
    calls = [f"    {t}({', '.join(p.partition(':')[0] for p in own)})" for t, own in zip(INTS, params)]
    head = f"@S.prim_func\ndef divisions({', '.join(p for own in params for p in own)}):"
    return "\n\n\n".join([*texts, "\n".join([head, *calls, ""])]), arguments


@pytest.mark.parametrize("steps", [1, 2])
def test_every_division_has_a_result(steps: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of calls in the text, and of what takes their place in clang's representation."""
    monkeypatch.setattr(divisions, *(("guarded", None) if steps == 1 else ("called", lambda text: None)))
    monkeypatch.setenv("COMPASS_CACHE", "0")
    path = tmp_path / "all.py"
    text, compiled = program()
    path.write_text(text)
    kernel = load_kernels(path).entry()
    simulated = [array.copy() for array in compiled]
    BuildManager("X2_1204").build(kernel)(*compiled)
    kernel(*simulated)
    count = 2 + len(SCALARS + VECTORS)
    for at in range(0, len(compiled), count):
        x, y, *ours = compiled[at : at + count]
        for form, own, pysims in zip(SCALARS + VECTORS, ours, simulated[at + 2 :]):
            expected = law(x, y, form)
            expected = np.where(x != y, expected, 0) if "mask" in form else expected
            np.testing.assert_array_equal(own, expected, f"{x.dtype}: {form}")
            np.testing.assert_array_equal(pysims, expected, f"{x.dtype}: {form}")


@S.prim_func
def folded(out: S.ptr("i32", "global")):
    zero = 0
    least = S.i32(-2147483647) - 1
    out[0] = 7 // S.i32(zero)
    out[1] = S.i32(7) % zero
    out[2] = least // S.i32(-1)
    out[3] = least % S.i32(-1)
    out[4] = S.i32(-8) // S.i32(zero) + 1


@S.prim_func
def loops(x: S.ptr("i32", "global"), y: S.ptr("i32", "global"), out: S.ptr("i32", "global")):
    for i in S.vectorized(8):
        out[i] = x[i] / y[i]
    if y[0] == 0:  # a divisor is no promise that it is not 0
        out[8] = 1


def test_folding_and_vectorized_loops_divide_as_scalars_do() -> None:
    build = BuildManager("X2_1204").build
    ours, pysims = np.full(5, 9, "int32"), np.full(5, 9, "int32")
    build(folded)(ours)
    folded(pysims)
    assert ours.tolist() == pysims.tolist() == [0, 0, -(2**31), 0, 1]
    x = np.array([7, -(2**31), 5, -9, 0, 8, -(2**31), 1], "int32")
    y = np.array([0, -1, 2, 2, 0, -1, 0, 3], "int32")
    ours, pysims = np.zeros(9, "int32"), np.zeros(9, "int32")
    build(loops)(x, y, ours)
    loops(x, y, pysims)
    assert ours.tolist() == pysims.tolist() == [0, -(2**31), 2, -4, 0, -8, 0, 0, 1]  # as scalars do


@S.prim_func
def folded_lanes(out: S.ptr("i8", "global"), wide: S.ptr("i32", "global")):
    least = S.i8(-128)
    v = S.vbcast(least)
    S.vstore(v / S.i8(-1), out)
    S.vstore(S.vdiv(S.vbcast(S.i8(-128)), -1), out + 32)
    if S.get_local_id() == 0:
        for i in S.vectorized(32):
            out[64 + i] = S.i8(-128) / out[64 + i]
    S.vstore(S.vbcast(S.i32(-2147483648)) // -1, wide)
    S.vstore(S.vbcast(S.i32(-2147483648), lanes=20) / S.vbcast(S.i32(-1), lanes=20), wide + 8)


def test_lanes_saturate_where_they_are_known_and_scalars_in_loops_wrap() -> None:
    found = []
    for run in (BuildManager("X2_1204").build(folded_lanes), folded_lanes):
        out, wide = np.full(96, -1, "int8"), np.zeros(28, "int32")
        run(out, wide)
        found.append((out.tolist(), wide.tolist()))
    assert found[0] == found[1] == ([127] * 64 + [-128] * 32, [2**31 - 1] * 28)


def test_c_text_divides_like_the_language(tmp_path: Path) -> None:
    """Also text that somebody else wrote, vectors with C's operators too."""
    text = """#include <compass/dsl.h>
__kernel void c(__global int *x, __global int *y, __global int *z) {
  z[0] = x[0] / y[0]; z[1] = x[0] % y[0]; z[2] = x[1] / y[1];
  z[3] = (char)x[0] / (char)y[0]; z[4] = (uint)x[0] % (uint)y[0];
  __vstore(__vload((__global int8 *)x, (bool8)1) % __vload((__global int8 *)y, (bool8)1), (__global int8 *)(z + 8), (bool8)1);
  __vstore(__vload((__global int8 *)x, (bool8)1) / __vload((__global int8 *)y, (bool8)1), (__global int8 *)(z + 16), (bool8)1);
}
"""
    source = tmp_path / "c.cl"
    source.write_text(text)
    made = cc.compile_file(source, tmp_path / "c.o", cc.CcOptions(targets.load("X2_1204")))
    assert len(made.commands) == 3 and made.warnings == ""
    assembly = cc.write_assembly(source, tmp_path / "c.s", cc.CcOptions(targets.load("X2_1204"))).read_text()
    assert "idivl" in assembly and "divpd" in assembly


def test_a_text_without_unknown_divisors_is_compiled_in_one_step(tmp_path: Path) -> None:
    text = """#include <compass/dsl.h>
/* a / b */ __kernel void c(__global int *x) { x[0] = x[1] / 8 + x[2] % 0x10u; } // x / y
"""
    source = tmp_path / "c.cl"
    source.write_text(text)
    assert len(cc.compile_file(source, tmp_path / "c.o", cc.CcOptions(targets.load("X2_1204"))).commands) == 1


@st.composite
def expressions(draw, depth: int = 3) -> str:
    """Expressions of C and of Python alike, with more or fewer brackets than they need."""
    if depth == 0 or draw(st.integers(0, 3)) == 0:
        return draw(st.sampled_from(("a", "b", "7", "0x1p+1f", "f(a)", "p[b]")))
    sides = [draw(expressions(depth - 1)) for _ in range(2)]
    text = draw(st.sampled_from((" ", " /* / */ ", "\n"))).join((sides[0], draw(st.sampled_from("/%*+-")), sides[1]))
    return draw(st.sampled_from(("({})", "{}", "f({})", "p[{}]"))).format(text)


class Written:
    """A value that knows how it was computed."""

    def __init__(self, text: object) -> None:
        self.text = str(text)

    @classmethod
    def of(cls, sign: str, x: "Written", y: "Written") -> "Written":
        return cls(f"({x.text} {sign} {y.text})")

    def __call__(self, x: "Written") -> "Written":
        return Written(f"call({x.text})")

    def __getitem__(self, x: "Written") -> "Written":
        return Written(f"item({x.text})")


def computed(text: str) -> str:
    """How C and Python compute an expression, divisions and their calls alike."""
    words = re.sub(r"0x1p\+1f|7", lambda m: f"Written('{m[0]}')", text.replace("/* / */", " ").replace("\n", " "))
    names = {name: Written(name) for name in "abfp"} | {"Written": Written}
    calls = {"/": "__compass_quotient", "%": "__compass_remainder"}
    for sign, method in (("/", "truediv"), ("%", "mod"), ("*", "mul"), ("+", "add"), ("-", "sub")):
        setattr(Written, f"__{method}__", lambda x, y, sign=sign: Written.of(sign, x, y))
    names |= {called: partial(Written.of, sign) for sign, called in calls.items()}
    found: str = eval(words, names).text
    return found


@given(expressions())
def test_calls_stand_for_divisions_with_the_same_operands(text: str) -> None:
    """Where a text can be read well enough; nothing is left in it that divides then."""
    made = divisions.called(f"({text})")
    assert made is None or (computed(made) == computed(f"({text})") and not divisions.divides(made))


def test_what_stands_alone_in_brackets_becomes_a_call() -> None:
    for text, made in (
        ("(a / b)", "(__compass_quotient(a , b))"),
        ("f((n % g(x, y)))", "f((__compass_remainder(n , g(x, y))))"),
        ("(0x1p+0f/*1.0 / 1*/ / (float)x)", "(__compass_quotient(0x1p+0f/*1.0 / 1*/ , (float)x))"),
        ("x = 8 / 2 + y / 0x1p-3f;", "x = 8 / 2 + y / 0x1p-3f;"),
    ):
        assert divisions.called(text) == made
    for text in (
        "a / b",
        "(p+1 / x)",
        "(a /= b)",
        "f(a / b, c)",
        "#define A (a / b\nA)",
        "(a / 0)(x = a / 0)",
        "(a / b",
    ):
        assert divisions.called(text) is None


def test_what_the_calls_do_not_take_is_compiled_in_two_steps(tmp_path: Path) -> None:
    text = "#include <compass/dsl.h>\n__kernel void c(__global {} *x, int n) {{ x[0] = ({}); }}\n"
    divided = {"short": "x[1] % n", "float": "n / x[2]", "half16": "x[1] / x[2]", "int8": "x[1] / x[2]"}
    steps = []
    for kind, form in divided.items():
        source = tmp_path / f"{kind}.cl"
        source.write_text(text.format(kind, form))
        made = cc.compile_file(source, tmp_path / f"{kind}.o", cc.CcOptions(targets.load("X2_1204"), use_cache=False))
        assert made.warnings == ""
        steps.append(len(made.commands))
    assert steps == [2, 2, 2, 3]


@S.prim_func
def masked(x: S.ptr("i32", "global"), y: S.ptr("i32", "global"), out: S.ptr("i32", "global"), n: S.i32):
    m = S.tail_mask(n, 8)
    if S.get_local_id() == 0:
        S.vstore(S.vload(x, mask=m) / S.vload(y, mask=m), out, mask=m)
        S.vstore(S.vdiv(S.vload(x), S.vload(y), mask=m), out, mask=m)
        S.vstore(S.vload(x, mask=m) % S.vload(y, mask=m), out, mask=m)
        out[8] = x[0] // y[n - 1]


def test_checks_tell_zero_divisors_but_not_of_lanes_that_are_masked_off() -> None:
    x, y = np.arange(1, 9, dtype="int32"), np.array([1, 2, 3, 4, 5, 0, 0, 0], "int32")
    executor = BuildManager("X2_1204").build(masked)
    executor.check(x, y, np.zeros(9, "int32"), 5, modes="division")
    with pysim.checks.checking("division"):
        masked(x, y, np.zeros(9, "int32"), 5)
    first = masked.py_func.__code__.co_firstlineno
    with pytest.raises(CompassError) as told:
        executor.check(x, y, np.zeros(9, "int32"), 6, modes="division")
    lines = [(e.code, e.span.line - first) for e in told.value.errors]
    assert lines == [("check-division", line) for line in (4, 5, 6, 7)]
    with pysim.checks.checking("division"), pytest.raises(CompassError) as told:
        masked(x, y, np.zeros(9, "int32"), 6)
    assert (told.value.code, told.value.span.line - first) == ("division", 4)
