"""Constants of kernels that are those of layers in another order: they are made where they are written, part by part, so that
no memory holds both."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from compass_core.arrays import Array, NumpyDType
from compass_core.namedtuple import NamedTuple


class Arranged(NamedTuple):
    """A constant of `size` elements in one dimension; `parts` makes it anew, arrays one behind the other. The first should be
    small: by it constants are told apart."""

    dtype: NumpyDType
    size: int
    parts: Callable[[], Iterable[Array]]

    @property
    def array(self) -> Array:
        return np.concatenate([part.reshape(-1) for part in self.parts()])
