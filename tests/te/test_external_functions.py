"""Functions of C: called in expressions and statements, of the C library or brought by pragmas."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from compass_core.errors import CompassError
from compassc import te
from compassc.compat.contrib import create_llvm
from compassc.ir.text import parse_module
from compassc.te.external import INTRINSICS

GEMV = """
int gemv_update(float *out, const float *x, const float *y, int rows, int columns, int step) {
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < columns; ++j) out[i] += x[j] * y[i * step + j];
  return 0;
}
int gemv_reset(float *out, int rows) {
  for (int i = 0; i < rows; ++i) out[i] = 0;
  return 0;
}
"""


def elementwise(body, *pragmas):
    a = te.placeholder((20,), name="a")
    b = te.compute((20,), lambda i: body(a[i]), name="b")
    s = te.create_schedule(b)
    for pragma in pragmas:
        s[b].pragma(b.op.axis[0], *pragma)
    return a, b, s


def computed(a, b, s):
    x, y = np.linspace(-2, 2, 20, dtype="float32"), np.zeros(20, "float32")
    te.build(s, [a, b], "llvm")(x, y)
    return x, y


@pytest.mark.parametrize("step", [None, "vectorize", "parallel", "unroll"])
def test_a_function_of_the_library_is_a_value(step):
    a, b, s = elementwise(lambda x: te.call_pure_extern("float32", "lgammaf", x * x + 1.0) * 2.0)
    if step:
        getattr(s[b], step)(b.op.axis[0])
    x, y = computed(a, b, s)
    want = [2 * np.log(np.abs(math.gamma(v * v + 1))) for v in x.astype("float64")]
    np.testing.assert_allclose(y, want, rtol=1e-5, atol=1e-6)
    text = parse_module(te.lower(s, [a, b], target="llvm").script()).script()
    assert "@T.func(extern='lgammaf')" in text
    assert parse_module(text).script() == text


def gemv(rows, columns):
    x, y = te.placeholder((columns,), name="x"), te.placeholder((rows, columns), name="y")
    k = te.reduce_axis((0, columns), "k")
    z = te.compute((rows,), lambda i: te.sum(x[k] * y[i, k], axis=k), name="z")
    binds = {
        x: te.decl_buffer(x.shape, x.dtype, "x", offset_factor=1, strides=[1]),
        y: te.decl_buffer(y.shape, y.dtype, "y", offset_factor=1, strides=[te.var("step"), 1]),
        z: te.decl_buffer(z.shape, z.dtype, "z", offset_factor=1, strides=[1]),
    }

    def statements(ins, outs):
        def update():
            ib = te.ir_builder.create()
            pointers = outs[0].access_ptr("w"), ins[0].access_ptr("r"), ins[1].access_ptr("r")
            ib.emit(te.call_extern("int32", "gemv_update", *pointers, rows, columns, ins[1].strides[0]))
            return ib.get()

        return update(), [te.call_extern("int32", "gemv_reset", outs[0], rows)], update()

    return te.decl_tensor_intrin(z.op, statements, binds=binds)


def product(pragma, text):
    a, b = te.placeholder((6, 32), name="a"), te.placeholder((48, 32), name="b")
    k = te.reduce_axis((0, 32), "k")
    c = te.compute((6, 48), lambda i, j: te.sum(a[i, k] * b[j, k], axis=k), name="c")
    s = te.create_schedule(c)
    x, y = c.op.axis
    outer, inner = s[c].split(y, factor=16)
    ko, ki = s[c].split(k, factor=8)
    s[c].reorder(x, outer, ko, inner, ki)
    s[c].tensorize(inner, gemv(16, 8))
    s[c].pragma(x, pragma, text)
    return a, b, c, s


@pytest.mark.parametrize("pragma", ["import_c", "import_llvm", "file"])
def test_an_intrinsic_is_a_function_that_a_pragma_brings(pragma, tmp_path):
    text = create_llvm(f'extern "C" {{ {GEMV} }}', str(tmp_path / "made.ll")) if pragma == "import_llvm" else GEMV
    if pragma == "file":
        pragma, text = "import_c", str(tmp_path / "gemv.c")
        Path(text).write_text(GEMV)
    a, b, c, s = product(pragma, text)
    rng = np.random.default_rng(3)
    x, y = (rng.integers(-9, 9, t).astype("float32") for t in ((6, 32), (48, 32)))
    z = np.full((6, 48), 7, "float32")
    te.build(s, [a, b, c], "llvm")(x, y, z)
    np.testing.assert_array_equal(z, x @ y.T)
    again = s.replayed(te.Trace.from_json(s.trace.to_json()))
    assert te.lower(again, [a, b, c], target="llvm").script() == te.lower(s, [a, b, c], target="llvm").script()


def mine(x):
    return te.call_extern("float32", "mine", x)


@pytest.mark.parametrize(
    ("body", "text", "words"),
    [
        (lambda x: te.call_extern("float32", "not_there", x), "", r"\(not_there\).* do not go with the kernel"),
        (lambda x: te.call_extern("float32", "fabs", x), "", r"\(fabs\).* do not go with the kernel"),
        (mine, "float mine(float *x) { return *x; }", r"\(mine\).* do not go with the kernel"),
        (mine, "float mine(float x) { return x }", r"\(mine\).* do not go with the kernel"),
        (mine, "no_such_file.c", "'import_c' names 'no_such_file.c', which cannot be read"),
        (
            lambda x: mine(x) + te.call_extern("int32", "mine", x),
            "",
            r"'mine' is called as int32 \(float32\) and as float32",
        ),
        (lambda x: te.call_extern("float32", "default_function", x), "", "both named 'default_function'"),
        (lambda x: te.call_extern("void", "mine", x) + 1, "", "mine.* has no value"),
        (lambda x: te.call_extern("float32", "puts", "text"), "", "texts are not passed to functions of C"),
        (lambda x: te.call_extern("float32", "a b", x), "", "'a b' is no name of a function of C"),
        (lambda x: te.call_intrin("float32", "tir.not_there", x), "", "'tir.not_there' is no operation of all targets"),
        (
            lambda x: te.call_intrin("float16", "tir.exp", x),
            "",
            "'exp' of these arguments is float32, asked for is float16",
        ),
    ],
)
def test_what_cannot_be_called_is_refused(body, text, words):
    with pytest.raises(CompassError, match=words):
        computed(*elementwise(body, *([("import_c", text)] if text else [])))


@pytest.mark.parametrize("target", ["X2_1204", "cuda"])
def test_targets_without_such_functions_refuse_them(target):
    a, b, c, s = product("auto_unroll_max_step", 4)
    words = {
        "X2_1204": "is a function of C, X2_1204 has none",
        "cuda": "is given an address, functions of C on cuda take",
    }
    with pytest.raises(te.LowerError, match=words[target]):
        te.lower(s, [a, b, c], target=target)
    a, b, s = elementwise(lambda x: x + 1.0, ("import_llvm", "text;"))
    with pytest.raises(te.LowerError, match=f"'import_llvm' brings functions in LLVM, {target} takes none"):
        te.lower(s, [a, b], target=target)


@pytest.mark.parametrize("value", [None, "", " ", 3])
def test_a_pragma_that_brings_functions_has_their_text(value):
    with pytest.raises(te.ScheduleError, match="'import_c' takes the text of functions, or the path of a file"):
        elementwise(lambda x: x, ("import_c", value))


def test_functions_of_cuda_devices_take_values():
    a, b, s = elementwise(mine, ("import_c", 'extern "C" __device__ float mine(float x) { return x * x; }'))
    s[b].bind(b.op.axis[0], te.thread_axis("threadIdx.x"))
    text = te.build(s, [a, b], "cuda").get_source()
    assert text.index("__device__ float mine(float x)") < text.index("= mine(a[")


def test_blocks_call_no_functions():
    a, b, _ = elementwise(mine)
    with pytest.raises(
        te.ExpressionError, match="'mine' is called, but a function of blocks calls only packed functions"
    ):
        te.create_prim_func([a, b])


@pytest.mark.parametrize("name", sorted(set(INTRINSICS) - {"fmod", "popcount"}))
def test_intrinsics_are_functions_of_expressions(name):
    texts = []
    for function in (getattr(te, name), lambda x: te.call_intrin("float32", f"tir.{name}", x)):
        a, b, s = elementwise(function)
        texts.append(te.lower(s, [a, b], target="X2_1204").script())
    assert texts[0] == texts[1]
