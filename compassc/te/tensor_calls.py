"""Tensor intrinsics that are called on parts of tensors: `te.compute(shape, lambda i: intrin(A[i, 0:16], B[i, 0:16]))`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from compass_core.dataclass import dataclass
from compassc.ir.errors import ExpressionError, ExpressionTypeError
from compassc.ir.exprs import Expr, IntImm, Var
from compassc.ir.iter_vars import IterKind, IterVar
from compassc.ir.operators import as_expr
from compassc.ir.tensor_exprs import ProducerLoad, Reduce, reads
from compassc.ir.visit import rewrite, substitute
from compassc.te.tensor import ComputeOp, Tensor, TensorRegion, tensor_of

if TYPE_CHECKING:
    from compassc.te.opaque import TensorIntrin


class TensorComputeOp(ComputeOp):
    """What an intrinsic computes for each point of the first `schedulable_ndim` axes (and of the sum over `outer_reduce`): the
    loops of the other axes are the intrinsic's own."""

    def __init__(
        self, name: str, axis: tuple[IterVar, ...], body: tuple[Expr, ...], intrin: TensorIntrin, schedulable_ndim: int,
        outer_reduce: tuple[IterVar, ...], tag: str = "", attrs: Mapping[str, object] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(name, axis, body, tag, attrs)
        self.intrin, self.schedulable_ndim, self.outer_reduce = intrin, schedulable_ndim, outer_reduce

    @property
    def loops(self) -> tuple[list[IterVar], list[IterVar]]:
        """The loops outside of the intrinsic, and those that it stands for."""
        outside = [*self.axis[: self.schedulable_ndim], *self.outer_reduce]
        return outside, [a for a in (*self.axis, *self.reduce_axis) if a not in outside]

    def relaid(self, op: ComputeOp) -> TensorComputeOp:
        """What computes the same by the intrinsic with the axes and the body of another operation."""
        intrin = self.intrin.sized({old.var: new.var for old, new in zip(self.axis, op.axis)})
        return TensorComputeOp(op.name, op.axis, op.body, intrin, self.schedulable_ndim, self.outer_reduce)


@dataclass(frozen=True)
class TensorIntrinCall:
    """An intrinsic on parts of tensors, which `te.compute` makes an operation of."""

    intrin: TensorIntrin
    regions: tuple[TensorRegion, ...]
    reduce_axis: tuple[IterVar, ...]

    def computed(
        self,
        name: str,
        axes: tuple[IterVar, ...],
        extents: Sequence[Expr],
        tag: str,
        attrs: Mapping[str, object] | None,
    ) -> TensorComputeOp:
        """The operation of a shape of which `axes` are the first dimensions. ExpressionError where the others are not those of
        the intrinsic."""
        op, left = self.intrin.op, extents[len(axes) :]
        wanted = [a.dom.extent for a in op.axis if a.dom is not None]
        if [number_of(e) for e in left] != [number_of(e) for e in wanted]:
            shown = [", ".join(map(str, side)) for side in (left, wanted)]
            raise ExpressionError(f"'{name}': ({shown[0]}) are left for '{self.intrin.name}', which gives ({shown[1]})")
        inner = tuple(IterVar(a.dom, f"ax{i}", IterKind.DATA_PARALLEL) for i, a in enumerate(op.axis))
        sums = tuple(IterVar(a.dom, a.name, IterKind.REDUCTION) for a in op.reduce_axis)
        mapping: dict[Var, Expr] = {old.var: new.var for old, new in zip((*op.axis, *op.reduce_axis), (*inner, *sums))}
        body = tuple(self._body(name, e, mapping, sums) for e in op.body)
        return TensorComputeOp(name, (*axes, *inner), body, self.intrin, len(axes), self.reduce_axis, tag, attrs)

    def _body(self, name: str, e: Expr, mapping: Mapping[Var, Expr], sums: tuple[IterVar, ...]) -> Expr:
        if not isinstance(e, Reduce):
            if self.reduce_axis:
                raise ExpressionError(f"'{name}': '{self.intrin.name}' reduces nothing", "leave reduce_axis out")
            return self._read(e, mapping)
        sources = tuple(self._read(s, mapping) for s in e.source)
        condition = self._read(e.condition, mapping)
        return Reduce(e.combiner, sources, (*self.reduce_axis, *sums), condition, e.value_index)

    def _read(self, e: Expr, mapping: Mapping[Var, Expr]) -> Expr:
        """An expression of the intrinsic on the parts."""
        parts = dict(zip(self.intrin.inputs, self.regions))

        def replaced(x: Expr) -> Expr | None:
            if not isinstance(x, ProducerLoad):
                return None
            part = parts[tensor_of(x)]
            return ProducerLoad(part.tensor, part.indices_of([substitute(i, dict(mapping)) for i in x.indices]))

        return substitute(rewrite(e, replaced), dict(mapping))


def number_of(e: Expr) -> Any:
    """The number that an expression is; others as they are."""
    return e.value if isinstance(e, IntImm) else e


def bind_sizes(sizes: dict[Var, Expr], theirs: Sequence[Expr], mine: Sequence[Expr]) -> None:
    """Adds what the sizes of an intrinsic that are variables are here."""
    for size, found in zip(theirs, mine):
        if isinstance(size, Var):
            sizes.setdefault(size, found)


def called(
    intrin: TensorIntrin, given: Sequence[object], reduce_axis: object, scalar_inputs: object
) -> TensorIntrinCall:
    """The call of an intrinsic. ExpressionError where the parts are not those of its inputs."""
    if len(given) != len(intrin.inputs):
        raise ExpressionError(f"'{intrin.name}' has {len(intrin.inputs)} inputs, got {len(given)}")
    regions = []
    for own, part in zip(intrin.inputs, given):
        region = TensorRegion(part, tuple(slice(None) for _ in part.shape)) if isinstance(part, Tensor) else part
        if not isinstance(region, TensorRegion):
            raise ExpressionTypeError(f"'{intrin.name}' takes parts of tensors (A[i, 0:8]), got {type(part).__name__}")
        regions.append(region)
    sizes: dict[Var, Expr] = {}
    for own, region in zip(intrin.inputs, regions):
        bind_sizes(sizes, own.shape, region.extents())
    intrin = intrin.sized(sizes)
    for own, region in zip(intrin.inputs, regions):
        if region.tensor.dtype is not own.dtype or list(map(number_of, region.extents())) != list(
            map(number_of, own.shape)
        ):
            shown = ", ".join(map(str, region.extents()))
            raise ExpressionError(f"'{intrin.name}': '{own.name}' is another type or shape than ({shown})")
    over = reduce_axis if isinstance(reduce_axis, (list, tuple)) else () if reduce_axis is None else (reduce_axis,)
    scalars = (
        scalar_inputs if isinstance(scalar_inputs, (list, tuple)) else () if scalar_inputs is None else (scalar_inputs,)
    )
    if len(scalars) != len(intrin.scalar_params):
        raise ExpressionError(f"'{intrin.name}' has {len(intrin.scalar_params)} scalar parameters, got {len(scalars)}")
    if over and not intrin.reduces_parts:
        raise ExpressionError(f"'{intrin.name}' makes whole sums", "have it give (whole, reset, update)")
    if any(reads(as_expr(value)) for value in scalars):
        raise ExpressionError(
            f"'{intrin.name}': a scalar parameter is made of axes and numbers",
            "give what is read as a part of a tensor",
        )
    values = {param: as_expr(value) for param, value in zip(intrin.scalar_params, scalars)}
    return TensorIntrinCall(intrin.sized(values), tuple(regions), tuple(over))
