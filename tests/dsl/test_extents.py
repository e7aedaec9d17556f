"""Tensor sizes from the index arithmetic: what the analysis says is what PySim's accesses need."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compass_core.aipubin.dtypes import element_dtype, scalar_value
from compass_core.extents import evaluate
from compassc.analysis.extents import program
from tests.choosing import some

PIPELINED = """
@S.prim_func
def k(x: S.ptr("i32", "global"), z: S.ptr("i32", "global"), y: S.ptr("i32", "global"), n: S.i32, m: S.i32):
    a, b = S.alloc((256,), "i32", "lsram"), S.alloc((256,), "i32", "lsram")
    for i in {loop}:
        now = S.min(n - i, 256)
        if m > 7:
            S.dma_copy(b, z + i * 2 + m, now)
        S.dma_copy(a, x + i, now)
        for j in range(0, now, 8):
            S.vstore(S.vload(a + j) + S.vload(b + j), a + j)
        S.dma_copy(y + i, a, now)
"""
HEADS = ("0, n, 256", "S.get_local_id() * 256, n, S.get_local_size() * 256", "m, n, 128", "256, n - 256, 256")
KERNELS = Path(__file__).parents[1] / "examples/spec_kernels.py"


def sizes(kernel, source, **scalars):
    from compassc.dsl import parse

    return {n: e.elements for n, e in evaluate(program(parse(kernel(source).entry("k"))), scalars, 4).items()}


@pytest.fixture(scope="module")
def programs():
    """The extents programs of a kernel that works in tiles and of one with a tail."""
    from compassc.dsl import load_kernels, parse

    loaded = load_kernels(KERNELS)
    return {name: program(parse(loaded.entry(name))) for name in ("tile_inc", "satadd")}


@settings(max_examples=60, deadline=None)
@given(total=st.integers(0, 300_000))
def test_tiles_over_all_tecs_cover_exactly_the_total(programs, total):
    found = evaluate(programs["tile_inc"], {"total": total}, 4)
    assert {n: e.elements for n, e in found.items()} == {"src": total, "dst": total}


@settings(max_examples=60, deadline=None)
@given(n=st.integers(0, 100_000))
def test_a_tail_mask_limits_the_access(programs, n):
    found = evaluate(programs["satadd"], {"n": n}, 4)
    assert {k: e.elements for k, e in found.items()} == {"x": n, "y": n}


@pytest.mark.parametrize(
    "body, expected",
    {
        "b[0] = a[7]": {"a": 8, "b": 1},
        "for i in range(10):\n    b[i * 3] = a[i]": {"a": 10, "b": 28},
        "for i in range(0, 10, 4):\n    b[i] = 0": {"a": 0, "b": 9},
        "for i, j in S.grid(4, 5):\n    b[i * 5 + j] = a[j * 4 + i]": {"a": 20, "b": 20},
        "for i in range(100):\n    b[i % 7] = a[i // 3]": {"a": 34, "b": 7},
        "p = a + 5\np += 3\nb[0] = p[2]": {"a": 11, "b": 1},
        "b[0] = S.reinterpret(a.as_ptr('i8')[9], 'i8')": {"a": 3, "b": 1},
        "x = S.vload(a, lanes=20, stride=2)\nS.vstore(x, b)": {"a": 39, "b": 20},
        "i = 0\nwhile i < 6:\n    b[i] = 1\n    i += 2": {"a": 0, "b": 5},
        "for t in S.tec_range(4):\n    b[t * 2] = 1": {"a": 0, "b": 7},
        "if S.get_local_id() == 2:\n    b[5] = 1\n    return\nb[1] = 1": {"a": 0, "b": 6},
        "for i in range(100):\n    if i == 50:\n        break\n    b[i] = 1": {"a": 0, "b": 50},
        "for i in range(100):\n    if i > 50:\n        continue\n    b[i] = 1": {"a": 0, "b": 51},
        "for i in range(9):\n    if i == 2:\n        continue\n    if i == 5:\n        break\n    b[i] = 1": {
            "a": 0,
            "b": 5,
        },
        "i = 0\nwhile True:\n    b[i] = 1\n    i += 2\n    if i > 7:\n        break": {"a": 0, "b": 7},
        "for i in (2, 9, 4):\n    b[i] = a[i + 1]": {"a": 11, "b": 10},
        "if S.abs(S.i32(-2147483648)) < S.i32(0):\n    b[3] = 1": {"a": 0, "b": 4},
        "S.atomic_add(b + 6, 1)": {"a": 0, "b": 7},
    }.items(),
)
def test_known_shapes_of_code(kernel, body, expected):
    import textwrap

    source = '@S.prim_func\ndef k(a: S.ptr("i32", "global"), b: S.ptr("i32", "global")):\n'
    assert sizes(kernel, source + textwrap.indent(body, "    ") + "\n") == expected


def test_a_large_affine_nest_is_not_executed(kernel):
    source = """
    @S.prim_func
    def k(a: S.ptr("i32", "global"), n: S.i32):
        for i in range(n):
            for j in range(n):
                a[i * n + j] = 1
    """
    assert sizes(kernel, source, n=30_000) == {"a": 900_000_000}


def test_what_depends_on_data_or_missing_scalars_is_unknown(kernel):
    from compassc.dsl import parse

    source = """
    @S.prim_func
    def k(a: S.ptr("i32", "global"), b: S.ptr("i32", "global"), n: S.i32):
        b[a[0]] = 1
        a[1] = b[0] + n
        for i in range(n):
            a[i] = 1
    """
    found = evaluate(program(parse(kernel(source).entry("k"))), {}, 4)
    assert found["b"].elements is None and "data" in found["b"].reason
    assert found["a"].elements is None and "'n'" in found["a"].reason


VALUES = (-7.75, -0.5, 2.9999, 2.99999999, 300.5, 65537.0, -65530.0, 5e9, -5e9)


@pytest.mark.parametrize("source, dtype", [("fp32", "float32"), ("fp16", "float16"), ("bf16", "bfloat16")])
def test_indices_that_were_floats_are_those_of_pysim(kernel, source, dtype):
    """Numbers are rounded to the scalar's type, whole numbers made of them as the device makes them."""
    types = ("i8", "u8", "i16", "u16", "i32", "u32")
    text = "".join(
        f"""
        @S.prim_func
        def k_{to}(a: S.ptr("i32", "global"), x: S.{source}):
            a[S.i32(S.{to}(x)) & 255] = 1
        """
        for to in types
    )
    from compassc.dsl import parse

    loaded = kernel(text)
    for to in types:
        k = loaded.entry(f"k_{to}")
        for value in some(scalar_value(element_dtype(dtype), v) for v in VALUES if source != "fp16" or abs(v) < 65500):
            a = np.zeros(256, np.int32)
            k(a, value)
            found = evaluate(program(parse(k)), {"x": value}, 4)["a"]
            if source == "fp32":
                assert found.elements == a.argmax() + 1, (to, value)
            else:
                assert found.elements is None or found.elements >= a.argmax() + 1, (to, value)
            assert found.certain <= a.argmax() + 1, (to, value)


def test_a_scalar_that_is_stored_through_its_address_is_not_followed(kernel):
    found = sizes(
        kernel,
        """
        @S.prim_func
        def k(a: S.ptr("i32", "global"), n: S.i32):
            p = n.addr
            p[0] = 7
            a[n] = 1
        """,
        n=2,
    )
    assert found == {"a": None}


@pytest.mark.parametrize("of", ["S.exp2(f)", "f * S.fp32(1e30)", "a.as_ptr('fp32')[0]", "S.exp2(f) * f"])
def test_floats_beyond_every_whole_number_decide_nothing(kernel, of):
    source = f"""
    @S.prim_func
    def k(a: S.ptr("i32", "global"), b: S.ptr("i32", "global"), f: S.fp32):
        if f <= {of}:
            b[3] = 1
    """
    for value in (9.9e35, -9.9e35, float("inf"), float("nan")):
        assert sizes(kernel, source, f=value)["b"] == 4


def test_scalars_of_a_build_are_rounded_to_their_types():
    """The size of a tensor that follows from a scalar given to the build, and a run with that scalar."""
    from compassc.analysis.shapes import known_shapes

    scalar = {"name": "x", "kind": "scalar", "dtype": "float32"}
    tensor = {"name": "a", "kind": "pointer", "dtype": "int32", "shape": None}
    body = [["access", "a", ["mul", ["int", "x"], 4], 4]]
    extents = {"entry": "k", "params": {"a": 4}, "functions": {"k": {"params": ["a", "x"], "body": body}}}
    params = {"params": [tensor, scalar], "extents": extents}
    assert known_shapes(params, {"x": 2.99999999}, 4) == {"a": (4,)}


def test_sub_functions_and_pointers_through_them(kernel):
    source = """
    @S.prim_func
    def put(p: S.ptr("i32", "global"), i: S.i32) -> S.i32:
        p[i + 1] = 0
        return i * 2

    @S.prim_func
    def k(a: S.ptr("i32", "global")):
        j = put(a + 4, 3)
        a[j * 2] = 0
    """
    assert sizes(kernel, source) == {"a": 13}


ESTIMATES = {
    "for i in range(10):\n    b[(i - 10) // 3 + 4] = a[i]": {"a": (10, 10), "b": (5, 5)},
    "for i in range(10):\n    b[(i - 10) // 4 + 4] = a[i]": {"a": (10, 10), "b": (4, 4)},
    "for i in range(9):\n    b[(i - 4) % 3 + 2] = a[i]": {"a": (9, 9), "b": (5, 5)},
    "if a[0] > 0:\n    b[7] = 1": {"a": (1, 1), "b": (8, 0)},
    "x = S.vload(a, lanes=8)\nS.vstore(x, b, mask=x > 0)": {"a": (8, 8), "b": (8, 0)},
    "i = S.u8(250)\ni = i + S.u8(a[0] * 0 + 10)\nb[i] = a[1]": {"a": (2, 2), "b": (5, 5)},
    "b[S.cast(a[0], 'u8')] = 1": {"a": (1, 1), "b": (256, 1)},
    "for i in range(1 << 20):\n    if a[i] > 0:\n        break\n    b[i] = 1": {"a": (1 << 20, 1), "b": (1 << 20, 0)},
    "p = b\nfor i in range(1 << 20):\n    p[0] = a[i]\n    p += 2": {"a": (1 << 20,) * 2, "b": ((2 << 20) - 1,) * 2},
    "i = 0\nwhile i + 8 <= 1000003:\n    S.vstore(S.vload(a + i, lanes=8), b + i)\n    i += 8": {
        "a": (1000000, 1000000),
        "b": (1000000, 1000000),
    },
}


@pytest.mark.parametrize("body", ESTIMATES)
def test_what_may_and_what_must_be_accessed(kernel, body):
    import textwrap

    from compassc import passes
    from compassc.dsl import parse

    source = '@S.prim_func\ndef k(a: S.ptr("i32", "global"), b: S.ptr("i32", "global")):\n'
    module = parse(kernel(source + textwrap.indent(body, "    ") + "\n").entry("k"))
    found = evaluate(program(passes.lower(module)), {}, 4)
    assert {n: (e.elements, e.certain) for n, e in found.items()} == ESTIMATES[body]


def test_numpy_free_evaluation():
    assert isinstance(np.int32(1), np.integer)  # this module may use NumPy; the evaluator must not need it
    import subprocess
    import sys

    code = "import sys, compass_core.extents; assert 'numpy' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.fixture(scope="module", params=range(len(HEADS)))
def stages(request, tmp_path_factory):
    """The extents programs of a loop as `range` and as `S.pipelined` have it, lowered."""
    from compassc import pass_manager, passes
    from compassc.dsl import load_kernels, parse

    folder, found = tmp_path_factory.mktemp("stages"), []
    head = HEADS[request.param]
    for number, loop in enumerate((f"range({head})", *(f"S.pipelined({head}, stages={k})" for k in (2, 3, 4)))):
        path = folder / f"kernel{number}.py"
        path.write_text("from compassc.dsl import script as S\n" + PIPELINED.format(loop=loop))
        found.append(program(passes.lower(parse(load_kernels(path).entry("k"), "X2_1204"), pass_manager.PassOptions())))
    return found


@settings(max_examples=40, deadline=None)
@given(n=st.one_of(st.integers(0, 3000), st.integers(0, 300_000)), m=st.integers(0, 20))
def test_stages_of_a_loop_change_no_size(stages, n, m):
    plain, *pipelined = [evaluate(p, {"n": n, "m": m}, 4) for p in stages]
    assert all(found == plain for found in pipelined)
    assert plain["x"].elements == plain["x"].certain or n < 1000
