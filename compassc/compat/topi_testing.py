"""`tvm.topi.testing`: which schedule a target has for a kind of operator, and comparisons with NumPy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from compass_core.arrays import Array
from compass_runtime.devices import Device
from compass_runtime.ndarray import array, empty

from .. import te, topi
from ..targets import Target, build
from .topi_schedules import x86

_Schedule = Callable[..., te.Schedule]


def dispatch(target: object, dispatch_map: Mapping[str, object]) -> Any:
    """The entry of the first key of the target that has one, else that of `generic`."""
    made = Target.of(target)
    keys = (*made.kind.keys, made.kind.name)
    return next((dispatch_map[key] for key in keys if key in dispatch_map), None) or dispatch_map["generic"]


def _default(target: object) -> _Schedule:
    chosen = Target.of(target)
    return lambda outs, *_: topi.schedule(outs, chosen)


def get_injective_schedule(target: object) -> _Schedule:
    """The schedule of operators that map elements: a function of outputs."""
    return _default(target)


get_elemwise_schedule = get_broadcast_schedule = get_injective_schedule


def get_reduce_schedule(target: object) -> _Schedule:
    """The schedule of reductions: a function of outputs."""
    return _default(target)


def get_conv2d_nchw_implement(target: object) -> tuple[Callable[..., object], _Schedule]:
    """A convolution with channels first, on hosts in packed forms, and its schedule."""
    return x86.conv2d_nchw, _default(target)


def compare_numpy_tvm(
    inputs: Sequence[Array],
    output: Array,
    target: Target | str,
    device: Device,
    compute: _Schedule,
    schedule: _Schedule,
) -> None:
    """Builds an operator, runs it on NumPy's `inputs` and holds the result against `output`. AssertionError where it differs."""
    tensors = [te.placeholder(x.shape, str(x.dtype)) for x in inputs]
    with Target.of(target):
        made = compute(*tensors)
        run = build(schedule([made]), [*tensors, made], target)
    out = empty(output.shape, str(output.dtype), device)
    run(*(array(x, device) for x in inputs), out)
    np.testing.assert_allclose(out.numpy(), output, rtol=1e-3, atol=1e-3)
