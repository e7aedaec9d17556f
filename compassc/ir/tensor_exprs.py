"""The two expressions that kernels do not have: the element of what gives data (a tensor) and the reduction over axes.
Both end when a schedule is lowered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .dtypes import DataType
from .exprs import Expr, PlacedExpr, Var
from .node import derived, node
from .visit import rewrite, walk_exprs

if TYPE_CHECKING:
    from .iter_vars import IterVar

Axes = tuple["IterVar", ...]


class DataProducer:
    """What gives elements by indices: the base of tensors."""

    __slots__ = ()
    shape: tuple[Expr, ...]
    dtype: DataType

    @property
    def name(self) -> str:
        """What it is called in texts."""
        raise NotImplementedError


def _element_type(producer: DataProducer) -> DataType:
    return producer.dtype


@node()
class ProducerLoad(PlacedExpr):
    """One element of what gives data."""

    producer: DataProducer
    indices: tuple[Expr, ...]
    dtype: DataType = derived(_element_type, init=False)


class CommReducer:
    """How a reduction joins two values: `combine` of the accumulated values and the new ones, from
    `identity_element` on.

    `lhs`, `rhs` are the variables that stand for them in `result`, one per value that is reduced.
    """

    __slots__ = ("identity_element", "lhs", "name", "result", "rhs")

    def __init__(
        self,
        name: str,
        lhs: tuple[Var, ...],
        rhs: tuple[Var, ...],
        result: tuple[Expr, ...],
        identity_element: tuple[Expr, ...],
    ) -> None:
        self.name, self.lhs, self.rhs, self.result, self.identity_element = name, lhs, rhs, result, identity_element

    def combine(self, left: Sequence[Expr], right: Sequence[Expr]) -> tuple[Expr, ...]:
        """The joined values."""
        mapping: dict[Expr, Expr] = {**dict(zip(self.lhs, left)), **dict(zip(self.rhs, right))}
        return tuple(rewrite(e, lambda x: mapping.get(x)) for e in self.result)


def _reduced_type(source: tuple[Expr, ...], value_index: int) -> Any:
    return source[value_index].dtype


@node()
class Reduce(Expr):
    """Value `value_index` of what `source` is joined to over `axis`, where `condition` holds; `init` replaces the
    combiner's identity unless it is empty."""

    combiner: CommReducer
    source: tuple[Expr, ...]
    axis: Axes
    condition: Expr
    value_index: int
    init: tuple[Expr, ...] = ()
    dtype: DataType = derived(_reduced_type, init=False)


def reads(e: Expr) -> list[ProducerLoad]:
    """The elements of tensors that an expression reads, in order of appearance."""
    return [found for found in walk_exprs(e) if isinstance(found, ProducerLoad)]
