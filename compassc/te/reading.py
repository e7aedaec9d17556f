"""What elements of tensors an operation reads: one that is never there is refused where it is written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from compassc.analysis.arith import Arith
from compassc.ir.errors import ExpressionError
from compassc.ir.exprs import Binary, Expr, IntImm, Select
from compassc.ir.iter_vars import IterVar
from compassc.ir.operators import kind_of
from compassc.ir.tensor_exprs import ProducerLoad, Reduce
from compassc.te.tensor import PlaceholderOp, tensor_of


def check_reads(name: str, axes: Sequence[IterVar], body: Sequence[Expr]) -> None:
    """ExpressionError for an element that lies outside of its tensor whatever the axes are, and that is read always."""
    unconditional = [read for e in body for read in _read_always(e)]
    facts = Arith()
    for axis in (*axes, *(a for e in body if isinstance(e, Reduce) for a in e.axis)) if unconditional else ():
        assert axis.dom is not None
        if isinstance(axis.dom.extent, IntImm) and axis.dom.extent.value <= 0:
            return  # nothing is computed
        end = Binary("add", axis.dom.min, axis.dom.extent)
        facts.bind_loop(axis.var, axis.dom.min, end, IntImm(kind_of(axis.dom.extent), 1))
    for read in unconditional:
        for dim, (index, size) in enumerate(zip(read.indices, read.producer.shape)):
            low, high = facts.range_of(index)
            outside = isinstance(size, IntImm) and size.value > 0 and (high < 0 or low >= size.value)
            if outside and not _row_before(read, dim, high):
                raise ExpressionError(
                    f"'{name}' reads '{read.producer.name}' at {index} in dimension {dim}, which has {size} elements",
                    "indices count from 0 and are not wrapped around",
                )


def _row_before(read: ProducerLoad, dim: int, last: int) -> bool:
    """Whether it may be the row before, in a scan of a single row: such a scan has no turn, and computes none of this."""
    rows = read.producer.shape[0]
    single = dim == 0 and last < 0 and isinstance(rows, IntImm) and rows.value == 1
    return single and isinstance(tensor_of(read).op, PlaceholderOp) and not isinstance(read.indices[0], IntImm)


def _read_always(e: Expr) -> Iterator[ProducerLoad]:
    """The elements that are read whatever conditions inside of an expression are."""
    if isinstance(e, ProducerLoad):
        yield e
    if isinstance(e, Select):
        inside: Sequence[Expr] = (e.condition,)
    elif isinstance(e, Binary) and e.op in ("and", "or"):
        inside = (e.a,)
    elif isinstance(e, Reduce):
        always = isinstance(e.condition, IntImm) and e.condition.value
        inside = (*(e.source if always else ()), *e.init)
    else:
        inside = e.children()
    for child in inside:
        yield from _read_always(child)
