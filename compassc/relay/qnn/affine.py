"""What whole numbers within a region between `qnn.dequantize` and `qnn.quantize` mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

import numpy as np

from compass_core.arrays import Array
from compass_core.dataclass import dataclass
from compassc.ir.errors import ExpressionError
from compassc.relay.expr import Expr
from compassc.relay.qnn.arithmetic import value

MOVES = "reshape squeeze strided_slice transpose expand_dims nn.max_pool2d nn.batch_flatten nn.depth_to_space max min broadcast_to".split()
KEEP_ORDER = frozenset([*MOVES, "split", "nn.relu", "clip", "nn.pad", "maximum", "minimum", "concatenate"])
"""Operators that a bound before them may be put behind: below them calls may be computed in the parameters of the result."""


class Unsuited(ExpressionError):
    """Why an operator of a region cannot be one of whole numbers; the region stays as it is."""


@dataclass(frozen=True)
class TensorAffineType:
    """Tensors whose elements q mean scale * (q - zero_point), with the type of their elements; vectors of scales lie on an
    axis."""

    scale: Expr
    zero_point: Expr
    dtype: str
    axis: int = -1

    def scales(self) -> Array:
        """The scale, or the scales of an axis; Unsuited where they depend on inputs."""
        return _known(self.scale, "a scale")

    def zeros(self) -> Array:
        """The zero point, or those of an axis; Unsuited where they depend on inputs."""
        return _known(self.zero_point, "a zero point")

    @property
    def is_scalar(self) -> bool:
        """Whether all elements have the same scale and zero point."""
        return bool(self.scales().size == self.zeros().size == 1)

    def means_as(self, other: TensorAffineType) -> bool:
        """Whether equal numbers mean the same."""
        axis = self.axis == other.axis or self.is_scalar
        pairs = ((self.scales(), other.scales()), (self.zeros(), other.zeros()))
        return axis and all(np.array_equal(a.reshape(-1), b.reshape(-1)) for a, b in pairs)


@dataclass(frozen=True)
class TupleAffineType:
    """What the fields of a tuple mean."""

    types: Sequence[TensorAffineType]


AffineType = TensorAffineType | TupleAffineType


def _known(e: Expr, what: str) -> Array:
    found = value(e)
    if found is None:
        raise Unsuited(f"{what} depends on inputs")
    return found


@dataclass
class TypeMap:
    """What expressions of a region mean: those that are computed already, and the one under way where whatever follows it
    keeps the order of values, so that it may be computed in the parameters of the region's result."""

    found: dict[int, AffineType] = field(default_factory=dict)
    kept: list[Expr] = field(default_factory=list)

    def __setitem__(self, e: Expr, t: AffineType) -> None:
        self.found[id(e)] = t
        self.kept.append(e)

    def __contains__(self, e: object) -> bool:
        return id(e) in self.found

    def __getitem__(self, e: Expr) -> AffineType:
        if e not in self:
            raise Unsuited("its parameters are not known: what follows it is no mere move or bound")
        return self.found[id(e)]

    def tensor(self, e: Expr) -> TensorAffineType:
        """What a tensor means. Unsuited where it is none, or not of the region."""
        t = self[e]
        if not isinstance(t, TensorAffineType):
            raise Unsuited("an operand is a tuple")
        return t
