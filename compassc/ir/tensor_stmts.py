"""The statements of a schedule whose tensors have no memory yet: what is stored in them, where they are there, and what the schedule
says. Kernels have none of them."""

from __future__ import annotations

from .exprs import Expr
from .node import node
from .stmts import Body, Stmt
from .tensor_exprs import DataProducer


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
