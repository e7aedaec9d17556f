"""Data types: what makes one, what one says of itself, and the types that its methods give."""

import itertools
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

from compass_core.errors import CompassError
from compassc.dsl import BuildManager, resolve_dtype_alias
from compassc.dsl import script as S
from compassc.ir.dtypes import DataType

SHORT = {
    "int8": "i8",
    "uint8": "u8",
    "int16": "i16",
    "uint16": "u16",
    "int32": "i32",
    "uint32": "u32",
    "float16": "fp16",
    "float32": "fp32",
    "bfloat16": "bf16",
}
NAMES = [*SHORT, "bool", "int64", "uint64", "float64"]
TYPES = [DataType(name if lanes == 1 else f"{name}x{lanes}") for name in NAMES for lanes in (1, 8, 30)]
CODES = {"int": 0, "uint": 1, "float": 2, "bfloat": 4}
KINDS = "void int uint integer bool float bfloat floating".split()


def numpy_types(name):
    kind = ml_dtypes.bfloat16 if name == "bfloat16" else np.bool_ if name == "bool" else getattr(np, name)
    return kind, np.dtype(kind), np.dtype(name)


@pytest.mark.parametrize("name", NAMES)
def test_a_type_is_made_from_names_numpy_types_and_types(name):
    found = DataType(name)
    for given in (*numpy_types(name), SHORT.get(name, name), found):
        assert DataType(given) is found is resolve_dtype_alias(given)
    assert found == name and resolve_dtype_alias(getattr(S, name, name)) is found


@pytest.mark.parametrize(
    "wrong",
    [
        "int7",
        "float8",
        "int8x0",
        "boolx0",
        "void8",
        "voidx4",
        "int8x",
        "i4",
        "",
        int,
        float,
        5,
        None,
        np.int8(3),
        [],
        {},
        np.complex64,
        np.dtype(">i4"),
        np.dtype("V8"),
        np.dtype(("i4", (2,))),
        np.dtype("U3"),
        np.zeros(3),
    ],
    ids=repr,
)
def test_anything_else_is_refused(wrong):
    with pytest.raises((ValueError, TypeError)):
        DataType(wrong)
    with pytest.raises(CompassError, match="is not a data type"):
        resolve_dtype_alias(wrong)


@pytest.mark.parametrize("t", TYPES)
def test_what_a_type_says_of_itself(t):
    assert t.total_bits == t.bits * t.lanes and t.total_bytes == t.bytes * t.lanes
    assert t.bytes == max(1, t.bits // 8) and t.is_scalar == (t.lanes == 1) != t.is_vector
    assert t.element_of.lanes == 1 and t.element_of.with_lanes(t.lanes) is t
    assert t.is_integer == (t.is_int or t.is_uint or t.is_bool) and t.is_floating == (t.is_float or t.is_bfloat)
    for kind, bits, shape in itertools.product(KINDS, ("", 8, 16, 32), ("", "scalar", "vector")):
        wanted = getattr(t, f"is_{kind}") and (bits in ("", t.bits)) and (not shape or getattr(t, f"is_{shape}"))
        assert getattr(t, f"is_{kind}{bits}{shape and '_' + shape}") == wanted


@pytest.mark.parametrize("t", TYPES)
def test_methods_give_the_type_that_differs_in_one_thing(t):
    assert [t.with_lanes(n).lanes for n in (1, 2, 16)] == [1, 2, 16]
    assert t.with_type_code(t.type_code) is t.with_bits(t.bits) is t.with_lanes(t.lanes) is t
    if t.bits >= 8:
        for code, number in CODES.items():
            legal = t.bits in {"float": (16, 32, 64), "bfloat": (16,)}.get(code, (8, 16, 32, 64))
            if legal:
                other = t.with_type_code(code)
                assert other is t.with_type_code(number)
                assert (other.type_code, other.bits, other.lanes) == (code, t.bits, t.lanes)
            else:
                with pytest.raises(ValueError, match="there is no data type"):
                    t.with_type_code(code)
        assert t.with_int().with_uint() is t.with_uint() is t.with_type_code("uint") and t.with_int().is_int
    if t.is_int:
        assert [t.with_bits(b) for b in (8, 16, 32)] == [DataType(f"int{b}").with_lanes(t.lanes) for b in (8, 16, 32)]
    for wrong in (
        lambda: t.with_bits(7),
        lambda: t.with_lanes(0),
        lambda: t.with_lanes(1.5),
        lambda: t.with_type_code("complex"),
        lambda: t.with_type_code(3),
    ):
        with pytest.raises(ValueError, match="there is no data type"):
            wrong()


VECTOR = DataType("fp16x16")
NUMPY = np.int16


@S.prim_func
def by_types(a: S.ptr(np.float16, "global"), out: S.ptr(np.dtype("int16"), "global"), n: S.i32):
    x = S.vload(a)
    S.vstore(S.reinterpret(x, x.dtype.with_int()), out)
    S.vstore(S.cast(3, VECTOR.with_int()), out + x.dtype.lanes)
    table = S.alloc(x.dtype.with_type_code("int").element_of.lanes, NUMPY, "lsram")
    table[0] = S.cast(n, NUMPY)
    if x.dtype.is_float16_vector and x.dtype.with_bits(32).with_lanes(8).with_uint().total_bytes == 32:
        out[32] = table[0]


def test_types_in_kernels():
    a = np.arange(16, dtype=np.float16)
    wanted = np.concatenate([a.view(np.int16), np.full(16, 3, np.int16), [-7]])
    for run in (by_types, BuildManager().build(by_types)):
        run(a, out := np.zeros(33, np.int16), -7)
        assert (out == wanted).all()


@S.prim_func
def no_such_type(a: S.ptr("float16", "global")):
    x = S.vload(a)
    S.vstore(S.cast(0, x.dtype.with_bits(7)), a)


def test_a_type_that_does_not_exist_is_an_error_of_the_kernel():
    for run in (BuildManager().build, lambda kernel: kernel(np.zeros(16, np.float16))):
        with pytest.raises(CompassError, match="16 lanes of 7-bit float") as caught:
            run(no_such_type)
        assert caught.value.span.line == no_such_type.span.line + 3


@pytest.mark.parametrize("first", ["import numpy", "", "import numpy.random as numpy"])
def test_numpy_knows_bfloat16_once_the_package_is_imported(first):
    code = f"{first}\nfrom compassc.dsl import script\nimport sys\nprint('numpy' in sys.modules, end=' ')\n"
    code += "import numpy as np\nprint(np.dtype('bfloat16').itemsize, len(np.__loader__.get_data(np.__file__)) > 0)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == (f"{bool(first)} 2 True\n", "")
