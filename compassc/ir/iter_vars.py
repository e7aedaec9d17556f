"""Ranges and iteration variables: what an expression, a loop or a block runs over."""

from __future__ import annotations

import re
from enum import IntEnum
from typing import Any

from .dtypes import INT32, DataType
from .equal import structural_equal
from .expr_op import ExprOp
from .exprs import IntImm, Var
from .operators import as_expr, binary


class IterKind(IntEnum):
    """What an iteration variable is; the numbers are those of the field."""

    DATA_PARALLEL = 0
    THREAD = 1
    REDUCTION = 2
    ORDERED = 3
    OPAQUE = 4
    UNROLLED = 5
    VECTORIZED = 6
    PARALLELIZED = 7
    TENSORIZED = 8

    def __reduce_ex__(self, _protocol: object) -> tuple[object, ...]:
        """By its number: some versions of Python would write a call of getattr, which readers of tensors refuse."""
        return IterKind, (int(self),)


class Range:
    """The whole numbers from `min` on, `extent` of them."""

    packed_object = True
    """Functions by name take it."""

    __slots__ = ("extent", "min")

    def __init__(self, begin: object, end: object = None) -> None:
        """`Range(extent)` from 0, or `Range(begin, end)`."""
        first = as_expr(0 if end is None else begin)
        self.min = first
        self.extent = as_expr(begin) if end is None else binary("sub", end, begin)

    @classmethod
    def from_min_extent(cls, begin: object, extent: object) -> Range:
        """The range of so many numbers."""
        made = cls(extent)
        made.min = as_expr(begin)
        return made

    def __eq__(self, other: object) -> bool:
        ends = ((self.min, other.min), (self.extent, other.extent)) if isinstance(other, Range) else None
        return ends is not None and all(a is b or structural_equal(a, b) for a, b in ends)

    def __hash__(self) -> int:
        return hash(tuple(e.value if isinstance(e, IntImm) else None for e in (self.min, self.extent)))

    def __repr__(self) -> str:
        return f"Range({self.min}, {binary('add', self.min, self.extent)})"


class IterVar(ExprOp):
    """A variable with the range that it runs over (None: follows from what it is bound to) and its kind, an `IterKind`.

    `thread_tag`: of a thread; an empty text for others.
    """

    packed_object = True
    """Functions by name take it."""

    __slots__ = ("dom", "iter_type", "name", "thread_tag", "var")
    DataPar, ThreadIndex, CommReduce, Ordered, Opaque, Unrolled, Vectorized, Parallelized, Tensorized = range(9)

    def __init__(
        self,
        dom: Range | tuple[object, object] | None,
        var: str | Var,
        iter_type: int,
        thread_tag: str = "",
        dtype: DataType = INT32,
    ) -> None:
        """`dom`: a range, or its two ends. `var`: the variable, or its name. `dtype`: of the variable of an axis without a
        range."""
        self.dom = dom = Range(*dom) if isinstance(dom, (tuple, list)) else dom
        self.iter_type, self.thread_tag = IterKind(iter_type), thread_tag
        self.name = var.name if isinstance(var, Var) else var or "iter"
        if isinstance(var, Var):
            self.var = var
            return
        at_least_0 = dom is not None and isinstance(dom.min, IntImm) and dom.min.value >= 0
        written = re.sub(r"\W", "_", self.name)
        self.var = Var(written, dtype if dom is None else dom.extent.dtype, at_least_0)

    @property
    def dtype(self) -> DataType:
        return self.var.data_type

    @property
    def is_reduction(self) -> bool:
        return self.iter_type is IterKind.REDUCTION

    def as_expr(self) -> Var:
        return self.var

    def __eq__(self, other: object) -> Any:
        return self is other if isinstance(other, IterVar) or other is None else super().__eq__(other)

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        tag = f", {self.thread_tag}" if self.thread_tag else ""
        return f"iter_var({self.name}, {self.dom}, {self.iter_type.name.lower()}{tag})"
