"""In what order a stage reads the elements of a tensor."""

from __future__ import annotations

from collections.abc import Sequence

from compassc.analysis.arith import Arith
from compassc.analysis.buffers import position
from compassc.analysis.simplify import Simplifier
from compassc.ir.dtypes import INT32
from compassc.ir.exprs import Binary, IntImm, Var
from compassc.ir.iter_vars import IterVar
from compassc.ir.tensor_exprs import ProducerLoad


def in_order(read: ProducerLoad, axes: Sequence[IterVar], shape: Sequence[int]) -> bool:
    """Whether the elements that a read meets on axes of these extents follow each other in its tensor, too."""
    facts = Arith(frozenset())
    for axis, extent in zip(axes, shape, strict=True):
        variable = axis.as_expr()
        assert isinstance(variable, Var)
        facts.bind(variable, 0, extent - 1)
    own = position(tuple(IntImm(INT32, n) for n in shape), tuple(a.as_expr() for a in axes))
    apart = Simplifier(facts).expr(Binary("sub", position(read.producer.shape, read.indices), own))
    return isinstance(apart, IntImm)
