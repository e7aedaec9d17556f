"""Addresses of loads and stores in one step: the same pointers, values and errors as operator by operator."""

import ast
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compass_core.errors import CompassError
from compassc import pysim
from compassc.dsl import script as S
from compassc.ir.dtypes import dtype
from compassc.pysim.address_arithmetic import moved
from compassc.pysim.memory import PyPointer, Storage
from compassc.pysim.values import PyVar

NUMBERS = st.sampled_from([0, 1, 7, 8, -1, 48, 65535, 2**31 - 1, -(2**31), 2**31, 2**40])


@st.composite
def leaves(draw: Any) -> Any:
    """A Python number, or a variable of a type that numbers fit or wrap in."""
    number = draw(NUMBERS)
    kind = draw(st.sampled_from(["python", "int32", "int32", "int32", "uint32", "int8", "float32", "int32x8"]))
    if kind == "python":
        return number
    found = dtype(kind)
    value = np.array(number).astype(str(found.element_of))[()]
    return PyVar(np.full(8, value) if found.is_vector else value, found)


TERMS = st.recursive(
    st.one_of(st.just("leaf"), st.integers(-9, 99).map(str)),
    lambda inner: st.tuples(inner, st.sampled_from("+-*"), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
    max_leaves=4,
)


def outcome(run: Any) -> Any:
    """A result as something that can be compared, or the error."""
    try:
        with np.errstate(all="ignore"):
            found = run()
    except Exception as error:  # noqa: BLE001  whatever it is, it is compared
        return type(error), str(error)
    if isinstance(found, PyPointer):
        return found.offset, found.dtype, found.storage, found.scope
    return type(found), found.dtype, np.asarray(found.value).tolist()


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from("+-"), TERMS), min_size=1, max_size=3),
    st.data(),
    st.sampled_from(["int32", "int8x32"]),
    st.booleans(),
)
def test_one_step_is_the_operators(terms: Any, data: Any, kind: str, is_pointer: bool) -> None:
    text = "p" + "".join(f" {sign} {term}" for sign, term in terms)
    names: dict[str, Any] = {}
    while "leaf" in text:
        text = text.replace("leaf", f"v{len(names)}", 1)
        names[f"v{len(names)}"] = data.draw(leaves())
    storage = Storage(np.zeros(64, np.uint8), "an array")
    pointer = PyPointer(storage, 0, dtype(kind), "global")
    names["p"] = pointer if is_pointer else data.draw(leaves().filter(lambda x: type(x) is PyVar))
    found = moved(ast.parse(text, mode="eval").body)
    assert found is not None
    function, parts = found
    values = [eval(ast.unparse(part), {}, names) for part in parts]
    assert outcome(lambda: function(*values)) == outcome(lambda: eval(text, {}, names))


@S.prim_func
def beside(a: S.ptr("i32", "global"), b: S.ptr("i32", "global"), k: S.i32, n: S.i32):
    if S.get_local_id() == 0:
        S.vstore(S.vload(a + k * 8 - n) + 1, b + (k - 1) * n)
        S.vstore(S.vload(a.as_ptr("i8") + n + 1, lanes=32), (b + 8).as_ptr("i8") + n)


def test_loads_and_stores_beside_other_places() -> None:
    a, b = np.arange(64, dtype="int32"), np.zeros(64, "int32")
    beside(a, b, 2, 8)
    assert b[8:10].tolist() == [9, 10] and a.tolist() == list(range(64))
    np.testing.assert_array_equal(b.view("i1")[40:72], a.view("i1")[9:41])
    assert b[:8].tolist() == [0] * 8 and not b[18:].any()


@pytest.mark.parametrize(("k", "n", "said"), [(9, 8, "S.vload"), (7, 11, "S.vstore"), (1 << 28, 0, "S.vload")])
def test_what_leaves_the_array_is_told_at_its_line(k: int, n: int, said: str) -> None:
    a, b = np.arange(64, dtype="int32"), np.zeros(64, "int32")
    with pytest.raises(CompassError, match=rf"{said}: elements 0 to 7 of .* out of bounds") as told:
        beside(a, b, k, n)
    assert told.value.span.line == beside.py_func.__code__.co_firstlineno + 3
    assert told.value.code == "bounds"


def test_checked_storage_is_told_of_every_access() -> None:
    a, b = np.arange(64, dtype="int32"), np.zeros(64, "int32")
    with pysim.checks.checking("uninit"), pytest.raises(CompassError, match="S.vload"):
        unwritten(a, b, 2)


@S.prim_func
def unwritten(a: S.ptr("i32", "global"), b: S.ptr("i32", "global"), k: S.i32):
    t = S.alloc(64, "i32", "lsram")
    S.vstore(S.vload(a + k * 8), t + k * 8)
    S.vstore(S.vload(t + k * 8 + 8), b + k * 8)
