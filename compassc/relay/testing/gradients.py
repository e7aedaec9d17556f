"""Whether gradients are right: they are held against differences of the function."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from compass_core.arrays import Array
from compass_runtime.ndarray import NDArray
from compassc.relay.backend.executors import create_executor
from compassc.relay.expr import Expr, Function
from compassc.relay.gradient import gradient
from compassc.relay.module import MAIN, IRModule
from compassc.relay.operators import op_name
from compassc.relay.passes import infer_type
from compassc.relay.types import TensorType
from compassc.relay.visit import post_order


def rand(dtype: str = "float32", *shape: int) -> NDArray:
    """An array of numbers from 0 to 1."""
    return NDArray(np.asarray(np.random.rand(*shape)).astype(dtype))


def count_ops(expr: Expr) -> dict[str, int]:
    """How many calls of each operator an expression has."""
    return dict(Counter(op_name(e) for e in post_order(expr) if op_name(e)))


def _typed(f: Expr) -> Function:
    found: Function = infer_type.run(IRModule.from_expr(f))[MAIN]
    return found


def check_grad(
    func: Function,
    inputs: Sequence[Array] | None = None,
    test_inputs: Sequence[Array] | None = None,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    scale: float | None = None,
    mean: float = 0.0,
    mode: str = "higher_order",
    target_devices: object = None,
    executor_kind: str = "debug",
) -> None:
    """Compare the gradient of a function with central differences. `inputs`: arguments, by default normal numbers of the size of
    `eps` (`scale` times them around `mean`); `test_inputs`: those of them whose gradients are compared; `target_devices` is for
    programs that name some: the interpreter computes everywhere the same. AssertionError where they differ."""
    forward = _typed(func)
    backward = _typed(gradient(forward, mode=mode))
    given = (
        list(inputs)
        if inputs is not None
        else [_drawn(p.checked_type, scale or 10 * eps, mean) for p in forward.params]
    )
    tested = given if test_inputs is None else list(test_inputs)
    both = [create_executor(executor_kind).evaluate(f) for f in (forward, backward)]

    def value() -> Array:
        return np.asarray(both[0](*given).numpy(), "float64")

    _, found = both[1](*given)
    grads = [g for g, x in zip(found, given) if any(x is t for t in tested)]
    assert grads, "no gradient is tested"
    for grad, x in zip(grads, tested):
        approximate = np.zeros(x.shape)
        for i in np.ndindex(*x.shape):
            kept = x[i]
            x[i] = kept + eps
            above = value()
            x[i] = kept - eps
            approximate[i] = np.sum((above - value()) / (2 * eps))
            x[i] = kept
        np.testing.assert_allclose(grad.numpy(), approximate, atol=atol, rtol=rtol)


def _drawn(t: object, scale: float, mean: float) -> Array:
    assert isinstance(t, TensorType), f"there are no numbers of type {t}"
    return np.asarray(mean + scale * np.random.randn(*t.concrete_shape)).astype(t.dtype)
