"""Tensors and the operations that give them: immutable, whatever a schedule does with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from compassc import services
from compassc.analysis.arith import Arith
from compassc.analysis.simplify import Simplifier
from compassc.ir.dtypes import DataType
from compassc.ir.errors import ExpressionError, ExpressionTypeError
from compassc.ir.expr_op import ExprOp
from compassc.ir.exprs import Expr
from compassc.ir.iter_vars import IterVar
from compassc.ir.operators import as_expr, binary, kind_of
from compassc.ir.tensor_exprs import DataProducer, ProducerLoad, Reduce, reads
from compassc.ir.tensor_stmts import ProducerRealize, ProducerStore


class Operation:
    """A producer of tensors. `attrs` and `tag` are the user's."""

    packed_object = True
    """Functions by name take it."""

    kind = "operation"

    def __init__(self, name: str, tag: str = "", attrs: Mapping[str, Any] | None = None) -> None:
        self.name, self.tag, self.attrs = name, tag, dict(attrs or {})

    @property
    def num_outputs(self) -> int:
        return 1

    def output(self, index: int) -> Tensor:
        """Output `index`; equal calls give equal tensors. ExpressionError where there are not so many."""
        if not 0 <= index < self.num_outputs:
            raise ExpressionError(f"'{self.name}' has {self.num_outputs} outputs, counted from 0; there is no {index}")
        return self._output(index)

    def _output(self, index: int) -> Tensor:
        raise NotImplementedError

    @property
    def outputs(self) -> list[Tensor]:
        return [self.output(i) for i in range(self.num_outputs)]

    @property
    def input_tensors(self) -> list[Tensor]:
        """The tensors that it reads, each once, in order of appearance."""
        return []

    def __repr__(self) -> str:
        return f"{self.kind}({self.name})"


class PlaceholderOp(Operation):
    """A tensor that is given."""

    kind = "placeholder"

    def __init__(self, name: str, shape: tuple[Expr, ...], dtype: DataType) -> None:
        super().__init__(name)
        self.shape, self.dtype = shape, dtype

    def _output(self, index: int) -> Tensor:
        return Tensor(self, index, self.shape, self.dtype)


class ComputeOp(Operation):
    """Tensors whose elements are expressions (`body`, one per output) of the axes `axis`, one per dimension.

    `reduce_axis`: what the body reduces over.
    """

    kind = "compute"

    def __init__(
        self,
        name: str,
        axis: tuple[IterVar, ...],
        body: tuple[Expr, ...],
        tag: str = "",
        attrs: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(name, tag, attrs)
        self.axis, self.body = axis, body
        first = body[0]
        self.reduce_axis: tuple[IterVar, ...] = first.axis if isinstance(first, Reduce) else ()

    @property
    def num_outputs(self) -> int:
        return len(self.body)

    @property
    def shape(self) -> tuple[Expr, ...]:
        return tuple(axis.dom.extent for axis in self.axis if axis.dom is not None)

    @property
    def dtype(self) -> DataType:
        return kind_of(self.body[0])

    def _output(self, index: int) -> Tensor:
        return Tensor(self, index, self.shape, kind_of(self.body[index]))

    @property
    def input_tensors(self) -> list[Tensor]:
        found = [tensor_of(read) for body in self.body for read in reads(body)]
        return list(dict.fromkeys(found))


class RewrittenOp(ComputeOp):
    """What a stage of a schedule computes after steps. Its tensors are those of the operation that the stage was made for."""

    def __init__(self, origin: ComputeOp, axis: tuple[IterVar, ...], body: tuple[Expr, ...]) -> None:
        super().__init__(f"{origin.name}.repl", axis, body, origin.tag, origin.attrs)
        self._origin = origin

    def _output(self, index: int) -> Tensor:
        return self._origin.output(index)


def _elementwise(operator: str, swapped: bool = False) -> Callable[[Tensor, object], object]:
    """An operator of whole tensors, by its definition in `compassc.operators`."""

    def apply(self: Tensor, other: object) -> object:
        if not isinstance(other, (Tensor, ExprOp, int, float)):
            return NotImplemented
        return services.tensor_operator(operator, *((other, self) if swapped else (self, other)))

    return apply


class Tensor(DataProducer):
    """Output `value_index` of an operation: `t[i, j]` is an element. Equal to itself: same operation, same output.

    `t + u`, `t * 2`, `-t`: tensors of the same, element by element, stretched to each other's shapes (`compassc.operators`).
    """

    packed_object = True
    """Functions by name take it."""

    __slots__ = ("dtype", "op", "shape", "value_index")

    def __init__(self, op: Operation, value_index: int, shape: tuple[Expr, ...], dtype: DataType) -> None:
        self.op, self.value_index, self.shape, self.dtype = op, value_index, shape, dtype

    __add__, __radd__ = _elementwise("add"), _elementwise("add", True)
    __sub__, __rsub__ = _elementwise("subtract"), _elementwise("subtract", True)
    __mul__, __rmul__ = _elementwise("multiply"), _elementwise("multiply", True)
    __truediv__, __rtruediv__ = _elementwise("divide"), _elementwise("divide", True)
    __floordiv__, __rfloordiv__ = _elementwise("floor_divide"), _elementwise("floor_divide", True)
    __mod__, __rmod__ = _elementwise("floor_mod"), _elementwise("floor_mod", True)

    def __neg__(self) -> Any:
        return services.tensor_operator("negative", self)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def axis(self) -> tuple[IterVar, ...]:
        """The axes of the operation. AttributeError for a placeholder."""
        found: tuple[IterVar, ...] = self.op.axis  # type: ignore[attr-defined]
        return found

    @property
    def name(self) -> str:
        return self.op.name if self.op.num_outputs == 1 else f"{self.op.name}.v{self.value_index}"

    def __getitem__(self, indices: object) -> Any:
        given = indices if isinstance(indices, tuple) else (indices,)
        if any(isinstance(i, slice) for i in given):
            return TensorRegion(self, given)
        made = TensorSlice(self, tuple(_index(i) for i in given))
        return made.read() if len(given) == self.ndim else made.checked()

    def __call__(self, *indices: object) -> Expr:
        """An element, by all indices; they may be one tuple or list."""
        if len(indices) == 1 and isinstance(indices[0], (tuple, list)):
            indices = tuple(indices[0])
        made = TensorSlice(self, tuple(_index(i) for i in indices))
        if len(indices) != self.ndim:
            raise made.incomplete()
        return made.read()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tensor) and self.op is other.op and self.value_index == other.value_index

    def same_as(self, other: object) -> bool:
        """Whether it is the same output of the same operation."""
        return self == other

    def __hash__(self) -> int:
        return hash((id(self.op), self.value_index))

    def __repr__(self) -> str:
        return f"Tensor(shape=[{', '.join(map(str, self.shape))}], op.name={self.op.name})"


class TensorSlice(ExprOp):
    """Some indices of a tensor, waiting for the others: `t[i][j]` is `t[i, j]`."""

    __slots__ = ("indices", "tensor")

    def __init__(self, tensor: Tensor, indices: tuple[Expr, ...]) -> None:
        self.tensor, self.indices = tensor, indices

    @property
    def dtype(self) -> DataType:
        return self.tensor.dtype

    def __getitem__(self, indices: object) -> Any:
        given = indices if isinstance(indices, tuple) else (indices,)
        made = TensorSlice(self.tensor, (*self.indices, *(_index(i) for i in given)))
        return made.read() if len(made.indices) == self.tensor.ndim else made.checked()

    def checked(self) -> TensorSlice:
        if len(self.indices) > self.tensor.ndim:
            raise self.incomplete()
        return self

    def incomplete(self) -> ExpressionError:
        t = self.tensor
        return ExpressionError(f"'{t.name}' has {t.ndim} dimensions, {len(self.indices)} indices are given")

    def read(self) -> Expr:
        return ProducerLoad(self.tensor, self.indices)

    def as_expr(self) -> Expr:
        raise self.incomplete()


class TensorRegion:
    """A part of a tensor, for intrinsics that are called on it: `t[i, 0:8]`. ExpressionError for steps, and for other numbers of
    dimensions."""

    def __init__(self, tensor: Tensor, given: tuple[object, ...]) -> None:
        if len(given) != tensor.ndim:
            raise ExpressionError(f"'{tensor.name}' has {tensor.ndim} dimensions, got {len(given)} indices")
        if any(isinstance(i, slice) and i.step not in (None, 1) for i in given):
            raise ExpressionError(f"a part of '{tensor.name}' has no steps")
        self.tensor = tensor
        self.begins: tuple[Expr, ...] = tuple(
            _index(0 if i.start is None else i.start) if isinstance(i, slice) else _index(i) for i in given
        )
        self.ends: tuple[Expr | None, ...] = tuple(
            _index(tensor.shape[d] if i.stop is None else i.stop) if isinstance(i, slice) else None
            for d, i in enumerate(given)
        )

    def extents(self) -> list[Expr]:
        """How many elements it has along each dimension that is no single index."""
        simplify = Simplifier(Arith()).expr
        return [simplify(binary("sub", end, at)) for at, end in zip(self.begins, self.ends) if end is not None]

    def indices_of(self, inner: Sequence[Expr]) -> tuple[Expr, ...]:
        """The indices of an element of the tensor by those of the part."""
        left = iter(inner)
        return tuple(at if end is None else binary("add", at, next(left)) for at, end in zip(self.begins, self.ends))


def _index(given: object) -> Expr:
    e = as_expr(given)
    if not e.dtype.is_integer:
        raise ExpressionTypeError(f"an index is a whole number, got {e.dtype}")
    return e


def tensor_of(read: ProducerLoad | ProducerStore | ProducerRealize) -> Tensor:
    """The tensor of an element, or of a statement about one: what gives data to tensor expressions is nothing else."""
    assert isinstance(read.producer, Tensor)
    return read.producer


def post_order(outputs: Sequence[Operation]) -> list[Operation]:
    """The operations that `outputs` need, each once, inputs before what reads them."""
    found: dict[Operation, None] = {}
    stack: list[tuple[Operation, bool]] = [(op, False) for op in reversed(outputs)]
    while stack:
        op, done = stack.pop()
        if op in found:
            continue
        if done:
            found[op] = None
            continue
        stack.append((op, True))
        stack.extend((t.op, False) for t in reversed(op.input_tensors) if t.op not in found)
    return list(found)
