"""Tensor intrinsics that are called on parts of tensors compute what they say, wherever they stand."""

from __future__ import annotations

import numpy as np
import pytest

from compass_core.errors import CompassError
from compassc import targets, te


def scaled_sum(n):
    """x * v + y of n elements."""
    v = te.var("v", "float32")
    x, y = te.placeholder((n,), name="x"), te.placeholder((n,), name="y")
    z = te.compute((n,), lambda i: x[i] * v + y[i], name="z")

    def statements(ins, outs, params):
        assert params == [v]
        return te.for_range(0, outs[0].shape[0], lambda i: outs[0].store(ins[0][i] * v + ins[1][i], i))

    return te.decl_tensor_intrin(
        z.op, statements, "scaled_sum", scalar_params=[v], default_buffer_params={"offset_factor": 4}
    )


def dot(rows, length):
    """Products of rows by one vector."""
    w, x = te.placeholder((rows, length), name="w"), te.placeholder((length,), name="x")
    k = te.reduce_axis((0, length), "k")
    z = te.compute((rows,), lambda i: te.sum(w[i, k] * x[k], axis=k), name="z")
    strided = te.decl_buffer(w.shape, w.dtype, "w", strides=[te.var("s"), 1])

    def statements(ins, outs):
        reset = te.for_range(0, rows, lambda i: outs[0].store(0.0, i))
        update = te.for_range(
            0, rows, lambda i: te.for_range(
                0, length, lambda j: outs[0].store(outs[0][i] + ins[0][i, j] * ins[1][j], i))
        )  # fmt: skip
        return None, reset, update

    return te.decl_tensor_intrin(z.op, statements, "dot", binds={w: strided})


A, B = te.placeholder((6, 8), name="a"), te.placeholder((6, 8), name="b")


def run(tensor, schedule, *given):
    arrays = [np.random.default_rng(i).random([int(d.value) for d in t.shape], "f4") for i, t in enumerate(given)]
    found = np.zeros([int(d.value) for d in tensor.shape], "f4")
    targets.build(schedule, [*given, tensor], "llvm")(*arrays, found)
    return arrays, found


@pytest.mark.parametrize("size", [8, te.var("n")], ids=["number", "variable"])
@pytest.mark.parametrize("cached", [False, True])
def test_an_intrinsic_of_rows(size, cached):
    """Sizes that are variables are those of the parts; scalars may be axes; caches are computed by the intrinsic, too."""
    call = scaled_sum(size)
    c = te.compute((6, 8), lambda i: call(A[i, 0:8], B[5 - i, 0:8], scalar_inputs=te.cast(i, "float32")), name="c")
    assert isinstance(c.op, te.TensorComputeOp) and c.op.schedulable_ndim == 1
    s = te.create_schedule(c.op)
    outer, inner = s[c].split(c.op.axis[0], 2)
    if cached:
        s = te.create_schedule(c.op)
        cache = s.cache_write(c, "local")
        s[cache].compute_at(s[c], s[c].op.axis[0])
    else:
        s[c].reorder(inner, outer)
    (a, b), found = run(c, s, A, B)
    np.testing.assert_allclose(found, a * np.arange(6, dtype="f4")[:, None] + b[::-1], rtol=1e-6)


def test_an_intrinsic_of_parts_of_a_sum():
    k = te.reduce_axis((0, 2), "k")
    call = dot(3, 4)
    x = te.placeholder((8,), name="x")
    c = te.compute(
        (2, 3), lambda i: call(A[i * 3 : i * 3 + 3, k * 4 : k * 4 + 4], x[k * 4 : k * 4 + 4], reduce_axis=k), name="c"
    )
    (a, v), found = run(c, te.create_schedule(c.op), A, x)
    np.testing.assert_allclose(found.reshape(6), a @ v, rtol=1e-5)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: scaled_sum(8)(A[0, 0:8]), "has 2 inputs, got 1"),
        (lambda: scaled_sum(8)(A[0, 0:7], A[0, 0:8], scalar_inputs=1.0), r"another type or shape than \(7\)"),
        (lambda: scaled_sum(8)(A[0, 0:8], B[0, 0:8]), "has 1 scalar parameters, got 0"),
        (lambda: scaled_sum(8)(A[0, 0:8], B[0, 0:8], scalar_inputs=A[0, 0]), "made of axes and numbers"),
        (lambda: A[0:4:2, 0], "has no steps"),
        (lambda: A[0:4], "2 dimensions, got 1"),
        (
            lambda: te.compute((6, 4), lambda i: scaled_sum(8)(A[i, 0:8], B[i, 0:8], scalar_inputs=1.0)),
            r"\(4\) are left",
        ),
        (lambda: te.compute((6, 4), lambda i: A[i, 0]), "takes 1 axes, the shape has 2"),
    ],
)
def test_what_an_intrinsic_does_not_take(make, message):
    with pytest.raises(CompassError, match=message):
        make()
