"""Operators on the lanes of a kernel: the third meaning of a body's calls, beside arrays and tensors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from compass_core.arrays import Array
from compassc import te
from compassc.build import Expression, Value
from compassc.dsl import script as S
from compassc.graph import LayerError
from compassc.ir import exprs as E
from compassc.ir.tensor_exprs import ProducerLoad
from compassc.layers.layer_kernel import LayerKernel
from compassc.layers.vectors import everywhere
from compassc.operators.calls import all_operators

BINARY: dict[str, Any] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "max": lambda a, b: S.max(a, b),
    "min": lambda a, b: S.min(a, b),
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
}
"""Operators of scalars, which mean the same of lanes."""
MIRRORED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}


class InLanes:
    """Calls of element-wise operators on lanes of float32. What an expression has more than once is a variable."""

    def __init__(self, k: LayerKernel) -> None:
        self.k = k

    def constant(self, array: Array) -> Value:
        return self.k.broadcast(array)

    def __call__(self, name: str, *operands: object, **attributes: Any) -> Value:
        sources: dict[object, Value] = {}
        given: list[object] = []
        for n, operand in enumerate(operands):
            if isinstance(operand, Value):
                kind = "bool" if operand.dtype.is_bool else "float32"
                held = te.placeholder((1,), kind, name=f"x{n}")
                sources[held.op] = operand
                operand = held
            given.append(operand)
        made = all_operators()[name].define(*given, **attributes)
        return _Lanes(self.k, sources).of_tensor(made)


class _Lanes:
    """The lanes of the expressions of one call."""

    def __init__(self, k: LayerKernel, sources: dict[object, Value]) -> None:
        self.k, self.sources = k, sources
        self.known: dict[int, Any] = {}
        self.uses: Counter[int] = Counter()

    def of_tensor(self, t: te.Tensor) -> Value:
        if t.op in self.sources:
            return self.sources[t.op]
        assert isinstance(t.op, te.ComputeOp)
        (body,) = t.op.body
        self.uses.update(id(x) for x in _operands(body))
        found = self.lanes(body)
        made = self.k.let(everywhere(found, "float32") if isinstance(found, (int, float)) else found)
        self.sources[t.op] = made
        return made

    def lanes(self, e: E.Expr) -> Any:
        """The lanes of an expression; a constant as it is."""
        if isinstance(e, (E.FloatImm, E.IntImm)):
            return e.value
        if id(e) not in self.known:
            made = self.made(e)
            shared = self.uses[id(e)] > 1 and not isinstance(e, ProducerLoad)
            self.known[id(e)] = self.k.let(made) if shared else made
        return self.known[id(e)]

    def made(self, e: E.Expr) -> Expression:
        if isinstance(e, ProducerLoad):
            assert isinstance(e.producer, te.Tensor)
            return self.of_tensor(e.producer)
        if isinstance(e, E.Binary) and e.op in BINARY:
            a, b = self.lanes(e.a), self.lanes(e.b)
            swapped = not isinstance(a, Expression) and e.op in MIRRORED
            made: Expression = BINARY[MIRRORED[e.op]](b, a) if swapped else BINARY[e.op](a, b)
            return made
        if isinstance(e, E.Call) and e.mask is None:
            found: Expression = getattr(S, e.op)(*map(self.lanes, e.args))
            return found
        if isinstance(e, E.Select):
            return self.chosen(e.condition, e.true_value, e.false_value)
        raise LayerError(f"{type(e).__name__} has no form in lanes")

    def chosen(self, condition: E.Expr, a: E.Expr, b: E.Expr) -> Expression:
        first, second = self.lanes(a), self.lanes(b)
        if not isinstance(first, Expression):
            first = everywhere(first, "float32")
        found: Expression = S.vsel(first, second, self.lanes(condition))
        return found


def _operands(e: E.Expr) -> Iterator[E.Expr]:
    """The expressions in an expression, as often as they are operands of others; each is looked into once."""
    waiting, seen = [e], set[int]()
    while waiting:
        x = waiting.pop()
        if id(x) in seen:
            continue
        seen.add(id(x))
        below = list(x.children())
        yield from below
        waiting += below
