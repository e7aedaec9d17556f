"""The statements of a schedule whose tensors have no memory yet: what is stored in them, where they are there, and what the schedule
says. Kernels have none of them, but stores to memory, which are made in the same way."""

from __future__ import annotations

from collections.abc import Sequence

from .exprs import BufferLoad, Expr, Var
from .node import node
from .stmts import Body, BufferStore, Let, Stmt
from .tensor_exprs import CommReducer, DataProducer, ProducerLoad


@node()
class ProducerStore(Stmt):
    """Gives one element of a tensor its value."""

    producer: DataProducer
    value: Expr
    indices: tuple[Expr, ...]


@node()
class ProducerRealize(Stmt):
    """The statements in which a part of a tensor is there: along each axis `extents` elements from `starts` on."""

    producer: DataProducer
    starts: tuple[Expr, ...]
    extents: tuple[Expr, ...]
    condition: Expr
    body: Body
    storage_scope: str = ""


@node()
class StageAttr(Stmt):
    """What a schedule says of the statements in it: `attr_key` of an axis, an operation or tensors is `value`."""

    node: object
    attr_key: str
    value: Expr
    body: Body


# ---------------------------------------------------------------------- what gives elements of tensors, or of memory, values


def stored(elements: Sequence[BufferLoad | ProducerLoad], values: Sequence[Expr]) -> Body:
    """The statements that give elements their values."""
    return tuple(map(_store, elements, values))


def _store(element: BufferLoad | ProducerLoad, value: Expr) -> Stmt:
    if isinstance(element, ProducerLoad):
        return ProducerStore(element.producer, value, element.indices)
    return BufferStore(element.buffer, element.indices, value, None)


def reduced(reducer: CommReducer, elements: Sequence[BufferLoad | ProducerLoad], values: Sequence[Expr]) -> Body:
    """The statements that join values to elements: all are computed before one is stored."""
    joined = reducer.combine(elements, values)
    if len(joined) == 1:
        return stored(elements, joined)
    names = (x.producer.name if isinstance(x, ProducerLoad) else x.buffer.data.name for x in elements)
    kept = [Var(f"v_{name.replace('.', '_')}", e.dtype) for name, e in zip(names, joined)]
    return (*map(Let, kept, joined), *stored(elements, kept))
