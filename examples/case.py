"""What `check.py` of an example declares: cases made of arguments and expected results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Case:
    """One call of a kernel.

    `args`: one value per kernel parameter, in order, by name: arrays (outputs as they are before the call) and scalars.
    `expected`: the outputs afterwards, by parameter name. `rtol`, `atol`: the distance that is allowed, 0 is exact.
    """

    args: dict[str, Array | int | float]
    expected: dict[str, Array]
    rtol: float = 0.0
    atol: float = 0.0

    def fresh_args(self) -> list[Any]:
        """The arguments, arrays copied, so that a case can be run more than once."""
        return [a.copy() if isinstance(a, np.ndarray) else a for a in self.args.values()]

    def describe(self) -> str:
        """The sizes of the case, for messages: `a=2048 n=3`."""
        shown = {n: "x".join(map(str, a.shape)) if isinstance(a, np.ndarray) else a for n, a in self.args.items()}
        return " ".join(f"{name}={value}" for name, value in shown.items())
