"""Mathematical functions NumPy lacks."""

from __future__ import annotations

import math

import numpy as np

from compassc.layers.arithmetic import Array

_erf = np.frompyfunc(math.erf, 1, 1)


def erf(x: Array) -> Array:
    """The error function of each element, in the element's own type."""
    return np.asarray(_erf(x), np.float64).astype(x.dtype)
