"""Tiles: random programs give in the simulator what NumPy gives, and in PySim the same bits; wrong uses are told."""

from __future__ import annotations

import random
import textwrap
from pathlib import Path

import numpy as np
import pytest

from compass_core.errors import CompassError
from compassc.dsl import BuildManager, load_kernels
from compassc.ops import exact
from compassc.pysim import fp, loops
from compassc.pysim.tiles import PyMachine

HEAD = "from compassc.dsl import script as S\n\n"
SHAPES = ((3, 8), (5, 33), (4, 40), (2, 100), (6, 1), (1, 7), (1, 1))


class Reference:
    """The calls on tiles, by NumPy."""

    @staticmethod
    def tile_load(tensor, offsets, shape, fill=0):
        out = np.full(shape, fill, tensor.dtype)
        (rows, cols), (r, c) = shape, offsets
        for i in range(rows):
            for j in range(cols):
                if 0 <= r + i < tensor.shape[0] and 0 <= c + j < tensor.shape[1]:
                    out[i, j] = tensor[r + i, c + j]
        return out

    @staticmethod
    def tile_store(tensor, offsets, tile):
        part = tensor[offsets[0] : offsets[0] + tile.shape[0], offsets[1] : offsets[1] + tile.shape[1]]
        part[:] = tile[: part.shape[0], : part.shape[1]]

    @staticmethod
    def tile_full(shape, value, dtype):
        return np.full(shape, value, dtype)

    @staticmethod
    def tile_index(shape, axis=-1):
        return np.indices(shape, np.int32)[axis]

    @staticmethod
    def tile_sum(tile, axis=-1):
        return tile.sum(axis=axis, keepdims=True, dtype=np.float32 if tile.dtype.kind == "f" else np.int32)

    @staticmethod
    def tile_max(tile, axis=-1):
        return tile.max(axis=axis, keepdims=True)

    @staticmethod
    def tile_min(tile, axis=-1):
        return tile.min(axis=axis, keepdims=True)

    @staticmethod
    def tile_dot(a, b, acc=None, transpose_b=False):
        kind = np.float32 if a.dtype.kind == "f" else np.int32
        product = a.astype(kind) @ (b.T if transpose_b else b).astype(kind)
        return product if acc is None else acc + product

    @staticmethod
    def cast(tile, dtype):
        return tile.astype(dtype)

    tile_where, max, min = np.where, np.maximum, np.minimum


def statement(rng: random.Random, kind: str, shape: tuple[int, int]) -> str:
    """A statement that changes the tiles a and b, of one shape and type."""
    x, y = rng.choice(("ab", "ba", "aa"))
    axis = rng.choice((0, 1))
    how = rng.choice(("sum", "max", "min"))
    spread = f"S.cast(S.tile_{how}({y}, {axis}), '{kind}')"
    cut = rng.randint(1, shape[0])
    return rng.choice(
        (
            f"{x} = {x} + {y} * {rng.randint(1, 3)}",
            f"{x} = S.max({x}, {spread}) - {y}",
            f"{x} = S.min({spread}, {x} - {rng.randint(1, 5)})",
            f"{x} = S.tile_where({x} < {y}, {x}, {spread})",
            f"{x} = S.tile_where(S.tile_index({shape}, {axis}) > n - 2, {x} + n, {y})",
            "a, b = b, a",
            f"{x} = {y}\n{y} = {x} + 1",
            f"for i in range(n):\n    {x} = {x} + {y}[{cut - 1}:{cut}] - {x}[0:1]",
            f"if n > 2:\n    {x} = {x} - {spread}",
            f"t = S.tile_full({shape}, 3, '{kind}') + {x}\n{y} = t - S.tile_{how}(t, {axis}) // 1"
            if kind == "int32"
            else f"t = S.tile_full({shape}, 3, '{kind}') + {x}\n{y} = t * 2",
        )
    )


def program(seed: int) -> tuple[str, str, tuple[int, int]]:
    rng = random.Random(seed)
    kind, shape = rng.choice(("int32", "float32", "float16", "int32")), rng.choice(SHAPES)
    fill = rng.choice((0, -5, 7))
    lines = [
        f"a = S.tile_load(src, (n - {rng.randint(2, 4)}, {rng.choice(('0', '-1', 'n'))}), {shape}, fill={fill})",
        f"b = S.tile_load(src, (0, n - 3), {shape})",
    ]
    for k in range(5):
        lines.append(
            statement(rng, kind, shape)
            .replace("t = ", f"t{k} = ")
            .replace("t -", f"t{k} -")
            .replace("t *", f"t{k} *")
            .replace("(t,", f"(t{k},")
        )
    lines += ["S.tile_store(dst, (0, 0), a)", f"S.tile_store(dst, (n + {shape[0]}, 1), b)"]
    return "\n".join(lines), kind, shape


def load(tmp_path: Path, text: str, name: str = "k"):
    path = tmp_path / "tile_kernels.py"
    path.write_text(HEAD + text)
    return load_kernels(path).kernels[name]


def kernel_text(body: str, kind: str, rows: int, cols: int) -> str:
    buffers = f"src, dst = S.match_buffer(x, ({rows}, cols)), S.match_buffer(y, ({rows}, cols))\n"
    inner = textwrap.indent(buffers + body, "    ")
    pointer = f'S.ptr("{kind}", "global")'
    return f"@S.prim_func\ndef k(x: {pointer}, y: {pointer}, n: S.i32, cols: S.i32):\n{inner}\n"


@pytest.mark.parametrize("seed", range(8))
def test_random_programs_do_what_numpy_does(tmp_path, seed):
    body, kind, shape = program(seed)
    rows, cols = 2 * shape[0] + 6, shape[1] + seed % 3 * 3
    kernel = load(tmp_path, kernel_text(body, kind, rows, cols))
    executor = BuildManager("X2_1204").build(kernel)
    x = np.random.default_rng(seed).integers(-9, 9, (rows, cols)).astype(kind)
    for n in (3, 2):
        simulated, pysim, expected = np.zeros((3, rows, cols), kind)
        executor(x, simulated, n, cols)
        kernel(x, pysim, n, cols)
        exec(body, {"S": Reference, "src": x, "dst": expected, "n": n})  # noqa: S102  the kernel's own body
        np.testing.assert_array_equal(pysim.view(f"u{x.itemsize}"), simulated.view(f"u{x.itemsize}"), body)
        np.testing.assert_allclose(simulated, expected, 1e-2 if kind == "float16" else 1e-5, err_msg=body)
    assert [e for e in executor.check(x, simulated, n, cols) if e.code != "check-race"] == []


SPECIAL = (0.0, -0.0, 1.0, -3.5, np.inf, -np.inf, np.nan, 65504.0, 6e-8, 2.0**-14)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("seed", range(8))
def test_whole_tiles_have_the_bits_of_their_rows(tmp_path, monkeypatch, seed):
    """PySim computes all rows of a tile at once; what it gives is what its operations give row by row."""
    body, kind, shape = program(seed)
    rows, cols = 2 * shape[0] + 6, shape[1] + 3
    kernel = load(tmp_path, kernel_text(body, kind, rows, cols))
    rng = np.random.default_rng(seed)
    x = (
        rng.choice(SPECIAL, (rows, cols)).astype(kind)
        if kind != "int32"
        else rng.integers(-(2**31), 2**31, (rows, cols))
    )
    monkeypatch.setattr(loops, "LOADED_AFTER", 0)
    whole, by_rows = np.zeros((2, rows, cols), kind)
    kernel(x.astype(kind), whole, 3, cols)
    monkeypatch.setattr(PyMachine, "elementwise", lambda *_: None)
    monkeypatch.setattr(PyMachine, "loaded", lambda *_: None)
    monkeypatch.setattr(PyMachine, "stored", lambda *_: False)
    monkeypatch.setattr(PyMachine, "computed", lambda self, tile, to: False)
    monkeypatch.setattr(PyMachine, "values", lambda self, tile: None)
    kernel(x.astype(kind), by_rows, 3, cols)
    np.testing.assert_array_equal(whole.view(f"u{whole.itemsize}"), by_rows.view(f"u{whole.itemsize}"), body)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("kind", ["halves", "half-way", "whole numbers", "tiny", "special"])
def test_products_of_floats_are_fused_in_the_order_of_the_depth(monkeypatch, kind):
    monkeypatch.setattr(loops, "library", lambda _: None)
    rng, one = np.random.default_rng(3), (1.0, 1 + 2.0**-23, 1 - 2.0**-23)

    def matrix(*shape):
        values = {
            "halves": lambda: rng.normal(0, 1, shape).astype("float16"),
            "half-way": lambda: rng.choice(one, shape) * rng.choice((1.0, 2.0**-12), shape),
            "whole numbers": lambda: rng.integers(-4097, 4097, shape) * 2.0 ** rng.integers(-15, 15, shape),
            "tiny": lambda: rng.choice(one, shape) * rng.choice((2.0**-75, 2.0**-64), shape),
            "special": lambda: rng.choice([*SPECIAL, 3e38, 1e-45, 1e-38], shape),
        }
        return values[kind]().astype("float32")

    for rows, depth, cols in ((3, 1, 4), (5, 9, 2), (4, 20, 5)):
        x, y, acc = matrix(rows, depth), matrix(depth, cols), matrix(rows, cols) * matrix(rows, cols)
        found = fp.fused_product(x, y, acc)
        with monkeypatch.context() as context:
            context.setattr(fp, "_AT_ONCE", 3 * rows * cols)
            np.testing.assert_array_equal(found, fp.fused_product(x, y, acc))
        for k in range(depth):
            left, right = np.broadcast_arrays(x[:, k, None], y[None, k])
            fused, acc = fp.fma(left, right, acc), exact.fused(acc, left, right)
            np.testing.assert_array_equal(fused, acc)
            np.testing.assert_array_equal(np.signbit(fused[fused == 0]), np.signbit(acc[acc == 0]))
        np.testing.assert_array_equal(found, acc)


@pytest.mark.parametrize(
    ("kinds", "a", "b", "transposed"),
    [
        ("int8 int8", (5, 12), (12, 9), False),
        ("uint8 int8", (4, 8), (40, 8), True),
        ("int8 uint8", (5, 7), (7, 9), False),
        ("int8 int8", (2, 33), (5, 33), True),
        ("uint8 int8", (3, 1), (1, 40), False),
        ("float16 float16", (6, 7), (7, 33), False),
        ("float32 float16", (3, 10), (11, 10), True),
    ],
)
def test_products_are_those_of_numpy(tmp_path, kinds, a, b, transposed):
    (ka, kb), columns = kinds.split(), b[0] if transposed else b[1]
    total = "float32" if ka.startswith("f") else "int32"
    text = f"""@S.prim_func
def k(x: S.ptr("{ka}", "global"), w: S.ptr("{kb}", "global"), y: S.ptr("{total}", "global")):
    left, right, out = S.match_buffer(x, {a}), S.match_buffer(w, {b}), S.match_buffer(y, ({a[0]}, {columns}))
    one = S.tile_full(({a[0]}, {columns}), 1, "{total}")
    t, u = S.tile_load(left, (0, 0), {a}), S.tile_load(right, (0, 0), {b})
    acc = S.tile_dot(t, u, one, transpose_b={transposed})
    acc = S.tile_dot(t, u, acc * 2, transpose_b={transposed}) - one
    S.tile_store(out, (0, 0), acc)
"""
    kernel = load(tmp_path, text)
    rng = np.random.default_rng(1)
    low = {"u": 0}.get(ka[0], -128)
    x = rng.integers(low, low + 256, a).astype(ka) if total == "int32" else rng.normal(0, 1, a).astype(ka)
    w = rng.integers(-128, 128, b).astype(kb) if total == "int32" else rng.normal(0, 1, b).astype(kb)
    simulated, pysim = np.zeros((2, a[0], columns), total)
    BuildManager("X2_1204").build(kernel)(x, w, simulated)
    kernel(x, w, pysim)
    product = x.astype("float64") @ (w.T if transposed else w).astype("float64")
    np.testing.assert_array_equal(pysim.view("u4"), simulated.view("u4"))
    np.testing.assert_allclose(simulated, 3 * product + 1, 1e-4, 1e-3)


BETWEEN = (
    "acc = S.tile_dot(u[4:8], u, acc)",
    "acc = S.tile_dot(t, u, acc, transpose_b=True)",
    "acc = acc + 3",
    "t = S.cast(acc, small)",
    "t = S.tile_load(left, (n - 4, 1), (4, 8))",
    "if n > 2:\n    u = S.tile_load(right, (n - 3, 0), (8, 8))",
    "if n > 2:\n    acc = S.tile_dot(t, v[8:16], acc)",
    "for i in range(n):\n    acc = S.tile_dot(t, u, acc)\n    if i == 1:\n        break\n    acc = S.tile_dot(t, v[8:16], acc)",
    "for i in range(n):\n    acc = S.tile_dot(t, u, acc)\n    u = S.tile_load(right, (i, 0), (8, 8))",
    "for i in S.unroll(2):\n    for j in (0, 4):\n        acc = S.tile_dot(v[j : 4 + j], u, acc)",
    "for i in range(2):\n    for j in range(n):\n        acc = S.tile_dot(t, v[0:8], acc)\n        acc = S.tile_dot(t, v[8:16], acc)",
    "acc = S.tile_dot(t, u, acc * n)",
    "acc = S.tile_dot(t, u, S.tile_full((4, 8), big, total))",
    "acc = S.tile_full((4, 8), n, total)",
    "res = S.tile_dot(t, u, res)\nacc = S.tile_dot(t, v[8:16], acc) + res",
)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    ("small", "total", "big", "between"),
    [
        ("int8", "int32", 2147483600, BETWEEN[:8]),
        ("int8", "int32", 2147483600, BETWEEN[8:]),
        ("float16", "float32", 65536.5, BETWEEN[3:7]),
    ],
)
def test_products_that_are_added_to_one_tile(tmp_path, small, total, big, between):
    """Whatever stands between them: they are added as PySim adds them, one by one."""
    product = "acc = S.tile_dot(t, u, acc)"
    parts = [f"acc = S.tile_full((4, 8), 0, total)\n{product}\n{x}\n{product}\nres = res + acc" for x in between]
    text = f"""small, total, big = {small!r}, {total!r}, {big!r}

@S.prim_func
def k(x: S.ptr("{small}", "global"), z: S.ptr("{small}", "global"), y: S.ptr("{total}", "global"), n: S.i32):
    left, right, out = S.match_buffer(x, (4, 9)), S.match_buffer(z, (16, 8)), S.match_buffer(y, (4, 8))
    t, u = S.tile_load(left, (0, 0), (4, 8)), S.tile_load(right, (0, 0), (8, 8))
    v, res = S.tile_load(right, (0, 0), (16, 8)), S.tile_full((4, 8), 0, total)
    acc = S.tile_full((4, 8), 0, total)
{textwrap.indent(chr(10).join(parts), "    ")}
    S.tile_store(out, (0, 0), res)
"""
    kernel = load(tmp_path, text)
    values = np.random.default_rng(0)
    x, z = (values.integers(-9, 10, shape).astype(small) for shape in ((4, 9), (16, 8)))
    simulated, pysim = np.zeros((2, 4, 8), total)
    executor = BuildManager("X2_1204").build(kernel)
    for n in (3, 1):
        executor(x, z, simulated, n)
        kernel(x, z, pysim, n)
        np.testing.assert_array_equal(simulated, pysim)


def test_sums_of_floats_have_one_order(tmp_path):
    """Vectors of four registers one after another, then the registers in pairs, then the lanes as vrpadd adds them."""
    text = """@S.prim_func
def k(x: S.ptr("fp32", "global"), y: S.ptr("fp32", "global")):
    S.tile_store(S_out(y), (0, 0), S.tile_sum(S.tile_load(S_in(x), (0, 0), (1, 77))))
""".replace("S_out(y)", "out").replace("S_in(x)", "src")
    text = text.replace(
        '"global")):\n', '"global")):\n    src, out = S.match_buffer(x, (1, 77)), S.match_buffer(y, (1, 1))\n'
    )
    x, y = np.random.default_rng(0).normal(0, 1e3, 77).astype("float32"), np.zeros(1, "float32")
    BuildManager("X2_1204").build(load(tmp_path, text))(x, y)
    rows = np.append(x, np.zeros(19, "float32")).reshape(3, 32)
    p = ((rows[0] + rows[1]) + rows[2]).reshape(4, 8)
    lanes = (p[0] + p[1]) + (p[2] + p[3])
    while lanes.size > 1:
        lanes = lanes[::2] + lanes[1::2]
    assert y[0] == lanes[0]


def test_conditions_on_a_single_element_choose_between_it_and_a_number(tmp_path):
    body = "t = S.tile_load(src, (0, 0), (1, 1))\nS.tile_store(dst, (0, 0), S.tile_where(t < S.tile_full(1, n, 'int32'), t, 7))"
    kernel = load(tmp_path, kernel_text(body, "int32", 2, 2))
    executor = BuildManager("X2_1204").build(kernel)
    for n, expected in ((6, 5), (5, 7)):
        for run in (executor, kernel):
            y = np.zeros((2, 2), "int32")
            run(np.full((2, 2), 5, "int32"), y, n, 2)
            assert y[0, 0] == expected


def test_what_a_container_holds_stays(tmp_path):
    body = """a = S.tile_load(src, (0, 0), (2, 8))
pair = (a, a + 1)
kept = S.meta_var(a * 3)
a = a * 100
b = pair[0]
b = b + 1000
S.tile_store(dst, (0, 0), pair[0] + pair[1] + kept + a + b)"""
    kernel = load(tmp_path, kernel_text(body, "int32", 2, 8))
    executor = BuildManager("X2_1204").build(kernel)
    x = np.arange(16, dtype="int32").reshape(2, 8)
    for run in (executor, kernel):
        y = np.zeros_like(x)
        run(x, y, 0, 8)
        np.testing.assert_array_equal(y, x * 106 + 1001)


@pytest.mark.parametrize("kind", ["float16", "float32", "float64", "int8", "int64", "bool_"])
def test_scalars_of_numpy_are_the_numbers_that_they_are(tmp_path, kind):
    body = """t = S.tile_load(src, (int_one, 0), (2, 8), fill=C)
u = S.tile_full((2, 8), C, "float32")
t = C - t * C + S.max(u, C) + S.cast(C, "float32")
t += C
S.tile_store(dst, (0, 0), S.tile_where(t < C, t, C))"""
    text = kernel_text(body, "float32", 2, 8)
    kernels = [
        load(tmp_path, f"import numpy as np\n\nC, int_one = {value}, np.int64(1)\n\n{text}")
        for value in (f"np.{kind}(1)", f"np.{kind}(1).item()")
    ]
    x, found = np.arange(16, dtype="float32").reshape(2, 8), []
    for run in (kernels[0], kernels[1], BuildManager("X2_1204").build(kernels[0])):
        found.append(np.zeros_like(x))
        run(x, found[-1], 0, 8)
    assert found[0].any()
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


WRONG = {
    "positive constants, got (a run-time value, 4)": "t = S.tile_load(src, (0, 0), (n, 4))",
    "1 offsets and a tile of 2 dimensions": "t = S.tile_load(src, 0, (4, 4))",
    "buffer in device memory, this is a pointer": "t = S.tile_load(x, (0, 0), (4, 4))",
    "do not go together": "t = S.tile_full((4, 8), 0, 'int32') + S.tile_full((4, 7), 0, 'int32')",
    "tile_dot of int32 and int32": "t = S.tile_full((4, 4), 0, 'int32')\nt = S.tile_dot(t, t)",
    "8 columns meet 4 rows": "t = S.tile_full((4, 8), 0, 'int8')\nu = S.tile_dot(t, t)",
    "cannot become <tile of float32, 4x4>": "t = S.tile_full((4, 4), 0, 'int32')\nt = S.cast(t, 'fp32')",
    "the accumulator is <tile of int32, 4x5>": (
        "t, u = S.tile_full((4, 8), 0, 'int8'), S.tile_full((4, 5), 0, 'int32')\nv = S.tile_dot(t, t, u, True)"
    ),
    "axis 2 of a tile of 2": "t = S.tile_sum(S.tile_full((4, 4), 0, 'int32'), 2)",
    "the tile is float32, the tensor int32": "S.tile_store(src, (0, 0), S.tile_full((4, 4), 0, 'fp32'))",
    "has no truth value": "t = S.tile_full((4, 4), 0, 'int32')\nif t > 0:\n    y[0] = 1",
    "cannot be kept": "t = S.tile_full((4, 4), 0, 'int32') > 0",
    "does not take tiles": "t = S.vload(S.tile_full((4, 4), 0, 'int32'))",
    "4:4 of 4 elements": "t = S.tile_full((4, 4), 0, 'int32')\nu = t[5:4]",
    "S.vadd takes no mask and no r on tiles": "t = S.tile_full((4, 4), 0, 'int32')\nu = S.vadd(t, t, mask='TF')",
    "S.clip takes no mask and no r on tiles": "t = S.tile_full((4, 4), 0, 'int32')\nu = S.clip(t, 1, 2, mask='TF')",
    "S.vsub takes no mask and no r on tiles": "t = S.tile_full((4, 4), 0, 'int32')\nu = S.vsub(t, 1, r=7)",
    "do not fit the LSRAM": "t = S.tile_load(src, (0, 0), (64, 256))\nS.tile_store(src, (0, 0), t)",
}


@pytest.mark.parametrize("said", WRONG)
def test_wrong_uses_are_told(tmp_path, said):
    kernel = load(tmp_path, kernel_text(WRONG[said], "int32", 8, 8))
    with pytest.raises(CompassError) as error:
        BuildManager("X2_1204").build(kernel)
    assert said in str(error.value) and error.value.span and error.value.help
    if "mask" in said:
        with pytest.raises(CompassError, match=said):
            kernel(*np.zeros((2, 8, 8), "int32"), 0, 8)


def test_turns_are_shared_and_each_is_done_once(tmp_path):
    text = """@S.prim_func
def k(y: S.ptr("i32", "global"), m: S.i32, n: S.i32):
    out = S.match_buffer(y, (m, n))
    for i, j in S.parallel_tiles(m, n):
        out[i, j] = out[i, j] + i * 100 + j + 1
"""
    kernel = load(tmp_path, text)
    executor = BuildManager("X2_1204").build(kernel)
    for m, n in ((1, 1), (2, 9), (5, 7)):
        expected = np.add.outer(np.arange(m) * 100, np.arange(n) + 1)
        for run in (executor, kernel):
            y = np.zeros((max(m, 1), max(n, 1)), "int32")
            run(y, m, n)
            np.testing.assert_array_equal(y[:m, :n], expected)
