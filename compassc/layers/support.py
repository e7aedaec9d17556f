"""Which forms of a layer type have kernels, found by asking for the kernels of small layers."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

from compassc.graph import LayerError, Tensor
from compassc.layers.declare import LayerType
from compassc.layers.kernels import BUILDERS, STEPS, kernel_of, load_kernels
from compassc.layers.samples import SAMPLES, Draw, drawn

DTYPES = ("float32", "float16", "bfloat16", "int8", "uint8", "int16", "uint16")
SHAPES = ((1, 4, 4, 8), (1, 3, 8), (2, 8), (8,), (1, 2, 4, 4, 8))
TRIES = 3


def has_kernel(name: str) -> bool:
    """Whether some layers of a type have kernels."""
    load_kernels()
    return name in STEPS or name in BUILDERS


class Form(NamedTuple):
    """Whether a type has a kernel for inputs of a data type; if not, why."""

    dtype: str
    kernel: bool
    reason: str = ""


@cache
def forms_of(declared: LayerType) -> tuple[Form, ...]:
    """The forms of a layer type by the data type of its first input; empty when no sample of it is known."""
    if declared.refused or declared.name not in SAMPLES:
        return ()
    return tuple(_form(declared.name, dtype) for dtype in DTYPES)


def _form(name: str, dtype: str) -> Form:
    reason = "it has no such form"
    for n, shape in enumerate(SHAPES * TRIES):
        source = np.random.default_rng(n)
        layer = drawn(Draw(source), name, Tensor("x", shape, dtype))
        if layer is None:
            continue
        try:
            kernel_of([layer])
            return Form(dtype, True)
        except LayerError as error:
            reason = str(error)
    return Form(dtype, False, reason)
