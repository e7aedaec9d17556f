"""Which real numbers the integers of a tensor stand for."""

from __future__ import annotations

from compass_core.arrays import Array, NumpyDType
from compass_core.dataclass import dataclass


@dataclass(frozen=True)
class Quantisation:
    """An integer q stands for (q + zero_point) / scale, in float32 as the layers that convert compute it. With `axis` both
    have a number for each index of that dimension."""

    scale: float | tuple[float, ...] = 1.0
    zero_point: float | tuple[float, ...] = 0
    axis: int | None = None

    def real(self, array: Array) -> Array:
        """The real numbers, in float32; floats are given as they are, 16-bit ones in float32."""
        import numpy as np

        if array.dtype.kind not in "iub":
            return array if array.dtype.kind == "f" and array.dtype.itemsize >= 4 else array.astype(np.float32)
        moved = array.astype(np.float64) + self._spread(self.zero_point, array.ndim)
        return moved.astype(np.float32) * (np.float32(1) / self._spread(self.scale, array.ndim).astype(np.float32))

    def integers(self, array: Array, dtype: NumpyDType) -> Array:
        """The integers of a type that are nearest to real numbers, limited to the type's range; 0 for NaN."""
        import numpy as np

        limits = np.iinfo(dtype)
        scale = np.asarray(self._spread(self.scale, array.ndim), np.float32)
        zero = np.asarray(self._spread(self.zero_point, array.ndim), np.float32)
        with np.errstate(invalid="ignore", over="ignore"):
            wide = np.nan_to_num(np.rint(array.astype(np.float32) * scale - zero), nan=0.0)
        made: Array = np.clip(wide.astype(np.float64), limits.min, limits.max).astype(dtype)
        return made

    def _spread(self, numbers: float | tuple[float, ...], rank: int) -> Array:
        """The numbers as an array that broadcasts along their axis."""
        import numpy as np

        found = np.asarray(numbers, np.float64)
        if self.axis is None or not found.ndim:
            return found
        return found.reshape([-1 if i == self.axis else 1 for i in range(rank)])


NOT_QUANTISED = Quantisation()
"""Of floats, and of integers that stand for themselves."""
