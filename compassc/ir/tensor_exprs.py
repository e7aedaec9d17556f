"""The two expressions that kernels do not have: the element of a tensor and the reduction over axes. Both end when a
schedule is lowered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .dtypes import DataType
from .exprs import Expr, PlacedExpr, Var
from .node import derived, node
from .visit import rewrite, walk_exprs

if TYPE_CHECKING:
    from compassc.te.axes import IterVar
    from compassc.te.tensor import Tensor

Axes = tuple["IterVar", ...]


def _element_type(tensor: Tensor) -> DataType:
    return tensor.dtype


@node()
class TensorRead(PlacedExpr):
    """One element of a tensor."""

    tensor: Tensor
    indices: tuple[Expr, ...]
    dtype: DataType = derived(_element_type, init=False)


class Combiner:
    """How a reduction joins two values: `combine` of the accumulated values and the new ones, from `identity` on.

    `lhs`, `rhs` are the variables that stand for them in `results`, one per value that is reduced.
    """

    __slots__ = ("identity", "lhs", "name", "results", "rhs")

    def __init__(
        self,
        name: str,
        lhs: tuple[Var, ...],
        rhs: tuple[Var, ...],
        results: tuple[Expr, ...],
        identity: tuple[Expr, ...],
    ) -> None:
        self.name, self.lhs, self.rhs, self.results, self.identity = name, lhs, rhs, results, identity

    def combine(self, left: Sequence[Expr], right: Sequence[Expr]) -> tuple[Expr, ...]:
        """The joined values."""
        mapping: dict[Expr, Expr] = {**dict(zip(self.lhs, left)), **dict(zip(self.rhs, right))}
        return tuple(rewrite(e, lambda x: mapping.get(x)) for e in self.results)


def _reduced_type(sources: tuple[Expr, ...], value_index: int) -> Any:
    return sources[value_index].dtype


@node()
class Reduce(Expr):
    """Value `value_index` of what `sources` are joined to over `axes`, where `condition` holds; `init` replaces the
    combiner's identity unless it is empty."""

    combiner: Combiner
    sources: tuple[Expr, ...]
    axes: Axes
    condition: Expr
    init: tuple[Expr, ...]
    value_index: int
    dtype: DataType = derived(_reduced_type, init=False)


def reads(e: Expr) -> list[TensorRead]:
    """The elements of tensors that an expression reads, in order of appearance."""
    return [found for found in walk_exprs(e) if isinstance(found, TensorRead)]
