"""Examples of operations: a kernel body, and the types and values of the memory it works on.

The pages of the operations show the kernel, the memory it leaves in PySim and the C it becomes, all produced when a page
is made. Inputs are called `x` and `y`, the output `out`; a body that names an input gets it as a parameter.
"""

from __future__ import annotations

import re
from typing import Any

from compass_core.arrays import Array
from compass_core.dataclass import dataclass

from ..ir.dtypes import dtype

SIGNED = (5, -3, 12, 0, -8, 7, 100, -1)
OTHER = (1, 2, 3, 4, 5, 6, 7, 8)
REAL = (0.5, -1.25, 2.0, 0.0, 3.5, -0.75, 1.0, 4.0)
INF = float("inf")
NAN = float("nan")


@dataclass(frozen=True)
class Example:
    """A kernel body, where `{op}` stands for the operation, and its memory: element types of `x`, `y` (as `x`) and `out` (as `x`), lanes of `out` (one register),
    and the first values of `x` and `y`, which repeat; `runs`: PySim can run it."""

    body: str
    x: str = "i32"
    y: str = ""
    out: str = ""
    lanes: int = 0
    xs: tuple[float, ...] = ()
    ys: tuple[float, ...] = OTHER
    size: int = 0
    runs: bool = True

    @property
    def types(self) -> dict[str, str]:
        """The element type of each parameter the body mentions, in the order of the signature."""
        named = {"x": self.x, "y": self.y or self.x, "out": self.out or self.x}
        return {n: t for n, t in named.items() if re.search(rf"\b{n}\b", self.body)}

    def memory(self) -> dict[str, Array]:
        """The arrays of a call, the output zeroed."""
        import numpy as np

        from .numeric import np_dtype

        arrays = {}
        for name, text in self.types.items():
            t = dtype(text)
            count = (name == "out" and self.lanes) or (name != "out" and self.size) or t.native_lanes
            first = self.ys if name == "y" else self.xs or (REAL if t.is_floating else _fitting(t.is_uint))
            values = np.zeros(1) if name == "out" else np.array(first)
            arrays[name] = np.resize(values, count).astype(np_dtype(t))
        return arrays

    def source(self, op: str, name: str) -> str:
        """The kernel called `name` as Python text, for operation `op`."""
        parameters = ", ".join(f'{n}: S.ptr("{t}", "global")' for n, t in self.types.items())
        lines = self.body.replace("{op}", op).strip().splitlines()
        return "\n".join(["@S.prim_func", f"def {name}({parameters}):", *(f"    {line}" for line in lines), ""])


def _fitting(unsigned: bool) -> tuple[float, ...]:
    return tuple(abs(v) for v in SIGNED) if unsigned else SIGNED


def unary(kind: str, values: tuple[float, ...] = (), out: str = "") -> Example:
    """The operation on a vector of x."""
    return Example("S.vstore(S.{op}(S.vload(x)), out)", kind, out=out, xs=values)


def binary(kind: str = "i32", more: str = "", **rest: Any) -> Example:
    """The operation on a vector of x and one of y."""
    return Example(f"S.vstore(S.{{op}}(S.vload(x), S.vload(y){more}), out)", kind, **rest)


def compared() -> Example:
    """A comparison of x and y, shown as 1 and 0."""
    body = "m = S.{op}(S.vload(x), S.vload(y))\nS.vstore(S.vsel(S.i32x8(1), 0, m), out)"
    return Example(body, ys=(5, 0, 0, 0, 0, 7, 7, 7))


def tested(kind: str, values: tuple[float, ...]) -> Example:
    """A test of x, shown as 1 and 0."""
    return Example("m = S.{op}(S.vload(x))\nS.vstore(S.vsel(S.fp32x8(1), 0.0, m), out)", kind, xs=values)
