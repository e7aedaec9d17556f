"""Laws of macros in PySim: pasted with their arguments, as the compiler pastes them."""

import importlib.util
import linecache
import sys
import types

import numpy as np
import pytest

from compass_core.errors import CompassError
from compassc.dsl import BuildManager
from compassc.dsl import script as S

LATER = 5


@S.macro
def add_to(total, value):
    total = total + value * LATER


LATER = 7


@S.macro
def store_twice(p, value):
    p[0] = value
    p[1] = value


@S.macro
def grow_or_return(n, limit):
    if n > limit:
        return n * 2
    t = n + 1
    n = t


@S.macro(hygienic=False)
def at_the_call(step):
    x = x + step  # noqa: F821  the caller's
    y = x * 2
    out[2] = y  # noqa: F821


@S.macro
def any_parameters(a, *rest, factor=3, **named):
    t = rest[0] + named["z"] * factor
    a = a + t


@S.macro
def nested(acc, t):
    v = t + 1
    any_parameters(acc, v + t, z=v)
    any_parameters(acc, v + t, z=t, factor=2)


@S.macro
def move(p, n=3):
    p = p + n


@S.macro
def stop_if(condition, p):
    if condition:
        p[7] = 77
        return


@S.prim_func
def grown(n: S.i32) -> S.i32:
    grow_or_return(n, 10)
    grow_or_return(n, 12)
    return n


@S.prim_func
def everything(a: S.ptr("i32", "global"), out: S.ptr("i32", "global"), n: S.i32):
    if S.get_local_id() != 0:
        return
    total = S.i32(0)
    for i in range(8):
        add_to(total, a[i])
    out[0] = total
    q = out + 8
    q[0] = 1
    store_twice(q, q[0] + 1)
    x = n + 1
    y = S.i32(3)
    at_the_call(4)
    out[1] = x
    out[3] = y
    nested(x, y)
    out[4] = x
    move(q)
    move(q, 1)
    q[0] = 9
    out[5] = grown(n)
    out[6] = grown(n + 20)
    t = n * 3
    any_parameters(t, t, z=t)
    out[13] = t
    stop_if(n > 3, out)
    out[14] = 5


@pytest.fixture(scope="module")
def compiled():
    return BuildManager("X2_1204").build(everything)


@pytest.mark.parametrize("n", [1, 5, 12])
def test_macros_do_what_compiled_ones_do(compiled, n):
    a, expected = np.arange(8, dtype="int32"), np.zeros(16, "int32")
    got = expected.copy()
    compiled(a, expected, n)
    everything(a, got, n)
    np.testing.assert_array_equal(got, expected)
    assert got[0] == 140  # captured when decorated
    assert (got[8], got[9]) == (2, 3)  # evaluated at each use
    assert got[7] == (77 if n > 3 else 0)


LIBRARY = """
from compassc.dsl import script as S


@S.macro
def fill(p, count, value):
    for i in range(count):
        p[i] = value


@S.macro
def both(p, count):
    fill(p, count, 1)
    count = count + 1
    fill(p, count, 2)
"""


def test_errors_are_in_the_lines_of_the_macros(tmp_path):
    path = tmp_path / "library.py"
    path.write_text(LIBRARY)
    spec = importlib.util.spec_from_file_location("library", path)
    library = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(library)
    both = library.both

    @S.prim_func
    def k(n: S.i32):
        tile = S.alloc_buffer((4,), "i32", "lsram")
        m = n
        both(tile, m)

    k(3)
    with pytest.raises(CompassError, match="index 4 of lsram array tile") as caught:
        k(4)
    error = caught.value
    places = [error.span, *(note.span for note in error.notes[:2])]
    lines = [linecache.getline(place.file, place.line).strip() for place in places]
    assert lines == ["p[i] = value", "fill(p, count, 2)", "both(tile, m)"]
    if sys.version_info >= (3, 11):  # which keeps columns
        assert linecache.getline(error.span.file, error.span.line)[error.span.col - 1 :].startswith("p[i]")


@S.macro
def assigns(x):
    x = x + 1


alias = [assigns]


@S.prim_func
def assigns_to_an_expression(n: S.i32):
    assigns(n + 1)


@S.prim_func
def called_by_another_name(n: S.i32):
    alias[0](n)


@S.macro
def uses_what_comes_later():
    later_name()


def later_name(): ...


@S.prim_func
def captured_too_early():
    uses_what_comes_later()


@pytest.mark.parametrize(
    ("kernel", "args", "message"),
    [
        (assigns_to_an_expression, (1,), "assigns to its parameter 'x'"),
        (called_by_another_name, (1,), "not called by its own name"),
        (captured_too_early, (), "'later_name' is not defined where the macro was decorated"),
    ],
)
def test_what_cannot_be_pasted(kernel, args, message):
    with pytest.raises(CompassError, match=message):
        kernel(*args)


OFF, THREE, TEXT, TABLE, LINE = False, 3, "ab", [5, 6, 7], np.array([8, 9], "int32")
ZEROS = np.zeros(8, "int32")


@S.macro
def of_captured(y, at=2):
    if OFF:
        y[0] = 100
    else:
        y[0] = THREE * 2
    if not OFF and THREE in (3, 4):
        y[1] = TABLE[1] + TABLE[-1]
    y[at * 1] = len(TEXT * 2)
    y[3] = int(LINE[1]) if TEXT else -THREE
    y[5] = OFF or 7


@S.macro
def other(y, at=2):
    y[0] = -1


CHOSEN = of_captured
MODULE = types.ModuleType("of_macros")
MODULE.macro = of_captured


@S.prim_func
def by_global(y: S.ptr("i32", "global")):
    CHOSEN(y)


@S.prim_func
def by_module(y: S.ptr("i32", "global")):
    MODULE.macro(y)


@pytest.mark.parametrize("kernel", [by_global, by_module], ids=lambda k: k.__name__)
def test_what_macros_find_outside_is_computed_with_when_they_run_and_names_may_mean_others_later(kernel, monkeypatch):
    y = ZEROS.copy()
    kernel(y)
    assert list(y) == [6, 13, 4, 9, 0, 7, 0, 0]
    monkeypatch.setitem(globals(), "CHOSEN", other)
    monkeypatch.setattr(MODULE, "macro", other)
    kernel(y)
    assert list(y) == [-1, 13, 4, 9, 0, 7, 0, 0]
