"""The default schedules for CUDA devices: tiles in shared memory and rows that a block reduces, run by an emulated driver."""

from __future__ import annotations

import numpy as np
import pytest

import compass_runtime as runtime
from compassc import te, topi
from compassc.operators.declare import OPERATORS
from compassc.targets import nvrtc
from compassc.topi.schedules import inputs_of
from tests.choosing import some
from tests.targets.test_cuda_target import device  # noqa: F401 - a fixture

P = te.placeholder
CASES = {
    "matmul": ([(32, 24), (24, 48)], lambda a, b: topi.matmul(a, b), "matmul", ()),
    "dense": ([(16, 40), (32, 40)], lambda a, b: topi.nn.dense(a, b), "dense", ()),
    "batch_matmul": ([(2, 16, 8), (2, 16, 8)], topi.nn.batch_matmul, "batch_matmul", ()),
    "nchw": ([(1, 6, 8, 16), (8, 6, 3, 3)], lambda x, w: topi.nn.conv2d_nchw(x, w, 1, 1), "conv2d_nchw", (1, 1, 1)),
    "nhwc": ([(1, 8, 8, 6), (3, 3, 6, 16)], lambda x, w: topi.nn.conv2d_nhwc(x, w, 1, 1), "conv2d_nhwc", (1, 1, 1)),
}


def run(out, args, given):
    s = topi.schedule(out, "cuda")
    module = te.build(s, [*args, out], "cuda", name="k")
    where = runtime.device("cuda", 0)
    found = np.zeros([d.value for d in out.shape], str(out.dtype))
    arrays = [runtime.array(a, where) for a in (*given, found)]
    module(*arrays)
    return module, arrays[-1].numpy()


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("kind", ["int8", "float32"])
def test_sums_of_products_have_tiles_in_shared_memory(device, case, kind):  # noqa: F811
    shapes, define, name, options = CASES[case]
    args = [P(shape, kind, name=n) for shape, n in zip(shapes, "xw")]
    draw = np.random.default_rng(0)
    given = [draw.integers(-9, 9, shape).astype(kind) for shape in shapes]
    module, found = run(define(*args), args, given)
    text = module.get_source()
    assert text.count("__shared__") == 2 and "__syncthreads" in text and "threadIdx.y" in text
    np.testing.assert_array_equal(found, OPERATORS[name].reference(*given, *options))


def test_the_tile_has_knobs():
    a, b = P((64, 64), name="a"), P((64, 64), name="b")
    c = topi.matmul(a, b)
    text = te.build(topi.schedule(c, "cuda"), [a, b, c], "cuda").get_source()
    for knobs in ({"threads": 64}, {"rows": 2}, {"columns": 1}, {"depth": 32}):
        assert te.build(topi.schedule(c, "cuda", **knobs), [a, b, c], "cuda").get_source() != text


@pytest.mark.parametrize("operator", [topi.sum, topi.max])
def test_the_threads_of_a_block_reduce_a_row(device, operator):  # noqa: F811
    x = P((3, 600), "int32", name="x")
    given = np.random.default_rng(0).integers(-99, 99, (3, 600)).astype("int32")
    module, found = run(operator(x, 1), [x], [given])
    assert "__syncthreads" in module.get_source()
    np.testing.assert_array_equal(found, getattr(given, operator.__name__)(1))


ROWS = {
    "softmax": ((5, 300), topi.nn.softmax, 1),
    "log_softmax": ((2, 3, 200), topi.nn.log_softmax, 1),
    "softmax of planes": ((2, 40, 9), lambda x: topi.nn.softmax(x, 1), 0),
    "wide softmax": ((2, 20_000), topi.nn.softmax, 1),
    "layer_norm": ((4, 6, 50), lambda x: topi.nn.layer_norm(x, *_ones((6, 50)), [1, 2]), 1),
    "sum": ((3, 8, 30), lambda x: topi.sum(x, (1, 2)), 1),
    "sum of all": ((30, 40), topi.sum, 1),
}


def _ones(shape):
    return te.compute(shape, lambda *i: te.const(1.0), name="one"), te.compute(
        shape, lambda *i: te.const(0.0), name="zero"
    )


@pytest.mark.parametrize("case", ROWS)
@pytest.mark.parametrize("knobs", [{}, {"threads": 64, "joined": 2}])
def test_a_block_for_each_row(device, case, knobs):  # noqa: F811
    """One launch, whose threads reduce together; what the host computes with its own default schedule."""
    shape, define, together = ROWS[case]
    x = P(shape, name="x")
    out = define(x)
    given = np.random.default_rng(0).random(shape, "float32")
    found, wanted = (np.zeros([d.value for d in out.shape], "float32") for _ in range(2))
    te.build(topi.schedule(out, "llvm"), [x, out], "llvm -opt-level=1")(given, wanted)
    module = te.build(topi.schedule(out, "cuda", **knobs), [x, out], "cuda")
    module(given, found)
    np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=1e-6)
    text = module.get_source()
    assert ("__syncthreads" in text) == bool(together) and (not together or device.launched == 1)


def test_parts_are_joined_by_two_at_least():
    x = P((3, 600), name="x")
    with pytest.raises(te.ScheduleError, match="joined is 2 or more"):
        topi.schedule(topi.sum(x, 1), "cuda", joined=1)


@pytest.mark.skipif(nvrtc.library() is None, reason=f"no NVRTC: {nvrtc.HOW_TO_GET}")
@pytest.mark.parametrize("name", ["matmul", "conv2d_nchw", "softmax", "layer_norm", "argmax", "sort", "resize2d"])
def test_default_schedules_have_ptx(name):
    """`python -m tests.topi --target cuda --nvrtc` has all operators."""
    operator = OPERATORS[name]
    for kind in some(operator.types):
        tensors, _ = operator.samples[0].inputs(kind)
        out = operator.define(*tensors, **operator.samples[0].options)
        outs = list(out) if isinstance(out, (list, tuple)) else [out]
        module = te.build(topi.schedule(outs, "cuda"), [*inputs_of(outs), *outs], "cuda")
        assert ".visible .entry" in module.get_source("ptx")
