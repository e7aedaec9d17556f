"""Lane numbers."""

from __future__ import annotations

import operator

import numpy as np

from compassc.ops.args import known_int
from compassc.ops.lanes import iota_steps, iota_type
from compassc.ops.numeric import literal
from compassc.ops.typing import type_error

from ..values import PyVar, python_number, to_element
from . import meaning


@meaning
def iota(dtype: object, lanes: object, start: object = 0, step: object = 1) -> object:
    vector = iota_type(dtype, lanes)
    elem = vector.element_of
    start, step = known_int(python_number(start)), known_int(python_number(step))
    steps = iota_steps(vector, start, step)
    base = PyVar(np.array([literal(x, elem) for x in steps]), vector)
    if type(start) is int and (vector.is_integer or start == 0):
        return base
    if type(start) is PyVar and start.dtype.is_vector:
        raise type_error(f"S.iota: start must be a scalar, got {start.dtype}", "take one lane: v[0]")
    first = PyVar(np.full(vector.lanes, to_element(start, elem)), vector)
    return operator.add(first, base)
