"""Corners of the language that programs written for the vendor's package use: each holds compiled and in PySim."""

import functools
import re

import ml_dtypes
import numpy as np
import pytest

from compass_core.errors import CompassError, flat
from compassc.dsl import BuildManager, load_kernels
from compassc.dsl import script as S
from tests.choosing import some

BF16 = ml_dtypes.bfloat16


built = functools.cache(BuildManager().build)


def both(kernel, *args):
    """What a kernel makes of its arguments, compiled and in PySim: the same."""
    results = []
    for run in (built(kernel), kernel):
        copies = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
        run(*copies)
        results.append(copies)
    for a, b in zip(*results, strict=True):
        assert not isinstance(a, np.ndarray) or a.tobytes() == b.tobytes()
    return results[0]


def errors(tmp_path, body, *, params='a: S.ptr("bf16", "global"), b: S.ptr("i32", "global"), n: S.i32'):
    """The messages of building a kernel with this body."""
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    text = f"from compassc.dsl import script as S\n\n\n@S.prim_func\ndef k({params}):\n{lines}\n"
    (tmp_path / "k.py").write_text(text)
    with pytest.raises(CompassError) as caught:
        BuildManager().build(load_kernels(tmp_path / "k.py").entry("k"))
    return list(flat(caught.value))


# ------------------------------------------------------------------------------- storage under one name, several times


@S.prim_func
def fresh_storage(a: S.ptr("int32", "global"), out: S.ptr("int32", "global"), n: S.i32):
    p = S.alloc(8, "int32", "lsram")
    q = p
    p[0] = a[0]
    p = S.alloc(16, "int32", "lsram")
    p[0] = a[1]
    out[0] = q[0]
    out[1] = p[0]
    if n > 3:
        p = S.alloc(4, "int32", "lsram")
        p[0] = a[2]
        out[2] = q[0]
    p[1] = 9
    out[3] = p[0]
    for i in range(n):
        p = S.alloc((2, 4), "int32", "lsram")
        p[i % 8] = i
        out[4] = p[i % 8]
    out[5] = p[(n - 1) % 8]


@pytest.mark.parametrize("n", [1, 3, 4, 9])
def test_a_pointer_moves_to_new_storage_under_its_name(n):
    (_, out, _) = both(fresh_storage, np.array([5, 6, 7], np.int32), np.zeros(6, np.int32), n)
    assert out.tolist() == [5, 6, 5 if n > 3 else 0, 7 if n > 3 else 6, n - 1, n - 1]


@S.prim_func
def of_vectors(a: S.ptr("int16", "global"), out: S.ptr("int16", "global")):
    p = S.alloc(2, "int16x16")
    p[0] = S.vload(a)
    p = S.alloc(2, "int16x16")
    p[1] = S.vload(a + 16)
    S.vstore(p[1], out)


def test_storage_of_vectors_moves_too():
    a = np.arange(32, dtype=np.int16)
    assert (both(of_vectors, a, np.zeros(16, np.int16))[1] == a[16:]).all()


@pytest.mark.parametrize(
    ("again", "message"),
    [
        ('S.alloc(8, "int8", "lsram")', "'p' is int32* and cannot take int8*"),
        ('S.alloc(8, "int32", "shared")', "'p' points to lsram memory and cannot point to shared memory"),
        ('S.alloc(8, "int32")', "'p' points to lsram memory and cannot point to private memory"),
        ("b", "'p' points to lsram memory and cannot point to global memory"),
        ('S.alloc_buffer(8, "int32", "lsram")', "'p' is already defined"),
        ("n", "'p' is int32\\* and cannot become int32"),
    ],
)
def test_storage_of_another_kind_needs_another_name(tmp_path, again, message):
    (error,) = errors(tmp_path, f'p = S.alloc(8, "int32", "lsram")\nb[0] = p[0]\np = {again}')
    assert message.replace("\\", "") in error.message and error.span.line == 8 and error.help


# ------------------------------------------------------------------------------------------------- bfloat16 scalars

OPERATORS = "+ - * / // % ** < <= > >= == !=".split()


@pytest.mark.parametrize("other", ["a[1]", "1", "n", "True"])
@pytest.mark.parametrize("symbol", OPERATORS)
def test_operators_on_bfloat16_scalars_are_refused(tmp_path, symbol, other):
    found = errors(tmp_path, f"b[0] = S.i32(a[0] {symbol} {other})\nb[1] = S.i32({other} {symbol} a[0])")
    assert [e.span.line for e in found] == [6, 7]
    for error in found:
        assert "on bfloat16 scalars: there are no instructions" in error.message and "S.fp32(x)" in error.help
        assert error.message.startswith(f"`{symbol}`")


@pytest.mark.parametrize(
    "statement",
    [
        "b[0] = S.i32(-a[0])",
        "if a[0]:\n    b[0] = 1",
        "while a[0]:\n    b[0] = 1",
        "a[0] += 1",
        "x = a[0]\nx *= x",
        "if a[0] > 1:\n    b[0] = 1",
        "b[0] = 1 if a[0] == a[1] else 0",
    ],
)
def test_so_is_every_other_way_to_compute_with_them(tmp_path, statement):
    (error,) = errors(tmp_path, statement)
    assert "on bfloat16 scalars" in error.message


@pytest.mark.parametrize("symbol", OPERATORS)
def test_pysim_refuses_them_alike(tmp_path, symbol):
    (tmp_path / "k.py").write_text(
        "from compassc.dsl import script as S\n\n\n@S.prim_func\n"
        f'def k(a: S.ptr("bf16", "global"), b: S.ptr("i32", "global")):\n    b[0] = S.i32(a[0] {symbol} a[1])\n'
    )
    with pytest.raises(CompassError, match=re.escape(f"`{symbol}` on bfloat16 scalars")):
        load_kernels(tmp_path / "k.py").entry("k")(np.ones(2, BF16), np.zeros(1, np.int32))


@S.prim_func
def allowed(a: S.ptr("bf16", "global"), out: S.ptr("bf16", "global"), f: S.ptr("fp32", "global"), n: S.i32):
    out[0] = a[0]
    out[1] = S.bf16(S.fp32(a[0]) + S.fp32(a[1]))
    out[2] = a[0] if n > 0 else a[1]
    out[3] = S.bf16(n)
    f[0] = a[0] + 1.5
    f[1] = a[1] * S.fp32(n)
    S.vstore(S.vload(a) + a[1], out + 16)


@pytest.mark.parametrize("n", [0, 3])
def test_what_goes_through_float32_and_vectors_is_not_refused(n):
    a = np.arange(1, 17).astype(BF16)
    _, out, f, _ = both(allowed, a, np.zeros(32, BF16), np.zeros(2, np.float32), n)
    assert out[:4].astype(float).tolist() == [1, 3, 1 if n else 2, n] and f.tolist() == [2.5, 2 * n]
    assert (out[16:] == a + a[1]).all()


# ------------------------------------------------------------------------------------------------------- S.vreplic


@S.prim_func
def replicate(
    a: S.ptr("int32", "global"),
    h: S.ptr("int8", "global"),
    out: S.ptr("int32", "global"),
    small: S.ptr("int8", "global"),
    n: S.i32,
):
    S.vstore(S.vreplic(S.vload(a, lanes=24), n), out)
    S.vstore(S.vreplic(S.vload(a, lanes=16), S.u8(n) & 15), out + 24)
    S.vstore(S.vreplic(S.vload(h, lanes=64), n * 2 + 1), small)


@pytest.mark.parametrize("n", [0, 7, 8, 15, 16, 23])
def test_vreplic_takes_a_run_time_index_into_several_registers(n):
    a, h = np.arange(24, dtype=np.int32) * 3, np.arange(64, dtype=np.int8) - 20
    _, _, out, small, _ = both(replicate, a, h, np.zeros(40, np.int32), np.zeros(64, np.int8), n)
    assert (out[:24] == a[n]).all() and (out[24:] == a[n & 15]).all() and (small == h[2 * n + 1]).all()


@pytest.mark.parametrize(("vector", "index"), [("S.i32x8(0)", 8), ("S.i32x16(0)", 16), ("S.i32x16(0)", -1)])
def test_an_index_known_to_be_outside_is_refused(tmp_path, vector, index):
    (error,) = errors(tmp_path, f"S.vstore(S.vreplic({vector}, {index}), b)")
    assert "from 0 to" in error.message


# ------------------------------------------------------------------------------------------- a if condition else b

CHOICES = {
    "a[0] if n > 3 else a[1]": "((3 < n) ? a[0] : a[1])",
    "1 if n > 3 else 0": "((3 < n) ? 1 : 0)",
    "n if n != 3 else -n": "((n != 3) ? n : (n * -1))",
    "a[n % 3 if n > 0 else 2]": "a[((0 < n) ? (n % 3) : 2)]",
    "(a[0] if n > 3 else a[1]) * 2": "(((3 < n) ? a[0] : a[1]) * 2)",
    "a[0] if n > 3 and n < 7 else a[1]": "(((3 < n) && (n < 7)) ? a[0] : a[1])",
    "(1 if n > 7 else 2) if n > 3 else (n if n > 1 else 4)": "((3 < n) ? ((7 < n) ? 1 : 2) : ((1 < n) ? n : 4))",
    "S.max(n if n > 4 else 3, 5)": "max(((4 < n) ? n : 3), 5)",
    "S.i8(n) if n > 3 else S.i8(2)": "((3 < n) ? (char)n : (char)2)",
    "S.i32(1.5 if n > 3 else 2)": "((3 < n) ? 0x1.8p+0f/*1.500000e+00*/ : 0x1p+1f/*2.000000e+00*/)",
    "(S.vload(a) if n > 3 else S.vload(a + 8))[1]": "((3 < n) ? __vload(",
}


def test_a_choice_is_c_s_and_means_the_same(tmp_path):
    body = "\n".join(f"    b[{i}] = {text}" for i, text in enumerate(CHOICES))
    (tmp_path / "k.py").write_text(
        "from compassc.dsl import script as S\n\n\n@S.prim_func\n"
        f'def k(a: S.ptr("i32", "global"), b: S.ptr("i32", "global"), n: S.i32):\n{body}\n'
    )
    kernel = load_kernels(tmp_path / "k.py").entry("k")
    for n in range(-2, 12):
        both(kernel, np.arange(20, 36, dtype=np.int32), np.zeros(len(CHOICES), np.int32), n)
    alone = c_texts(tmp_path, CHOICES)
    for text, wanted in some(zip(CHOICES.values(), alone, strict=True)):
        assert text in wanted


def c_texts(folder, texts):
    """The C text of each expression in a kernel of its own: nothing is shared between them."""
    for i, text in enumerate(texts):
        path = folder / f"k{i}.py"
        path.write_text(
            "from compassc.dsl import script as S\n\n\n@S.prim_func\n"
            f'def k(a: S.ptr("i32", "global"), b: S.ptr("i32", "global"), n: S.i32):\n    b[0] = {text}\n'
        )
        yield BuildManager().build(load_kernels(path).entry("k")).c_code
