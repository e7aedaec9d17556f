"""Axes: what a tensor expression runs over, what a schedule makes loops of, and the threads they can be bound to."""

from __future__ import annotations

import re
from enum import Enum
from typing import Any

from compassc.ir.dtypes import INT32, DataType
from compassc.ir.errors import ExpressionError, ExpressionTypeError, warn
from compassc.ir.expr_op import ExprOp
from compassc.ir.exprs import IntImm, Var
from compassc.ir.operators import as_expr, binary

_THREAD_TAG = re.compile(r"(threadIdx|blockIdx|vthread)(\.[xyz])?\Z")


class Kind(Enum):
    """What an axis is; the numbers are those of the field."""

    DATA_PARALLEL = 0
    THREAD = 1
    REDUCTION = 2
    ORDERED = 3
    OPAQUE = 4


class Range:
    """The whole numbers from `min` on, `extent` of them."""

    __slots__ = ("extent", "min")

    def __init__(self, begin: Any, end: Any = None) -> None:
        """`Range(extent)` from 0, or `Range(begin, end)`."""
        first = as_expr(0 if end is None else begin)
        self.min = first
        self.extent = as_expr(begin) if end is None else binary("sub", end, begin)

    @classmethod
    def from_extent(cls, begin: Any, extent: Any) -> Range:
        """The range of so many numbers."""
        made = cls(extent)
        made.min = as_expr(begin)
        return made

    def __repr__(self) -> str:
        return f"Range({self.min}, {binary('add', self.min, self.extent)})"


class IterVar(ExprOp):
    """An axis: a variable, the range it runs over (None: follows from what it is bound to), and what kind it is."""

    __slots__ = ("dom", "kind", "name", "tag", "var")
    DataPar, ThreadIndex, CommReduce, Ordered, Opaque, Unrolled, Vectorized, Parallelized, Tensorized = range(9)

    def __init__(self, dom: Range | None, name: str, kind: Kind, tag: str = "", dtype: DataType = INT32) -> None:
        """`dtype`: of the variable of an axis without a range."""
        self.dom, self.name, self.kind, self.tag = dom, name or "iter", kind, tag
        at_least_0 = dom is not None and isinstance(dom.min, IntImm) and dom.min.value >= 0
        written = re.sub(r"\W", "_", self.name)
        self.var = Var(written, dtype if dom is None else dom.extent.dtype, at_least_0)

    @property
    def iter_type(self) -> int:
        """The number of its kind."""
        return self.kind.value

    @property
    def thread_tag(self) -> str:
        """The tag of a thread; an empty text for other axes."""
        return self.tag

    @property
    def dtype(self) -> DataType:
        return self.var.data_type

    @property
    def is_reduction(self) -> bool:
        return self.kind is Kind.REDUCTION

    def as_expr(self) -> Var:
        return self.var

    def __eq__(self, other: object) -> Any:
        return self is other if isinstance(other, IterVar) or other is None else super().__eq__(other)

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        return f"iter_var({self.name}, {self.dom}, {self.kind.name.lower()}{', ' + self.tag if self.tag else ''})"


def _range(dom: Any) -> Range:
    if isinstance(dom, Range):
        return dom
    if isinstance(dom, (tuple, list)) and len(dom) == 2:
        return Range(dom[0], dom[1])
    raise ExpressionTypeError(f"an axis needs a range, (begin, end), got {dom!r}")


def reduce_axis(dom: Any, name: str = "rv", thread_tag: str = "") -> IterVar:
    """An axis to reduce over: `dom` is (begin, end) or a Range."""
    return IterVar(_range(dom), name or "iter", Kind.REDUCTION, thread_tag)


def thread_axis(dom: Any = None, tag: str = "", name: str = "") -> IterVar:
    """The index of a thread: `threadIdx.x` is the number of the TEC, `blockIdx.*` that of a core or a block.

    `dom`: its range, or the tag. ExpressionError without a tag, or with one that means nothing.
    """
    if isinstance(dom, str):
        dom, tag = None, dom
    if tag in ("vthread", "cthread"):
        warn(f"the thread '{tag}' is better called 'vthread.x', with its dimension")
    return thread_of(dom, tag, name)


def thread_of(dom: Any, tag: Any, name: str = "") -> IterVar:
    """A thread axis by its tag, as `thread_axis` makes it."""
    tag = tag.replace("cthread", "vthread") if isinstance(tag, str) else tag  # as it was called before
    if not tag:
        raise ExpressionError("a thread axis needs a tag", 'write te.thread_axis("threadIdx.x")')
    if not _THREAD_TAG.match(tag):
        raise ExpressionError(
            f"'{tag}' is no thread", "tags are threadIdx.x, blockIdx.x and vthread, also with y and z"
        )
    return IterVar(None if dom is None else _range(dom), name or tag, Kind.THREAD, tag)


class AxisSeparator:
    """A boundary between physical dimensions, in what a map of indices gives."""

    def __repr__(self) -> str:
        return "AXIS_SEPARATOR"


AXIS_SEPARATOR = AxisSeparator()
