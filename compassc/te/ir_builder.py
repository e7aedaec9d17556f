"""Statements of one's own, written one after another: `ir_builder.create()`, for `te.extern` and tensor intrinsics.

ib = ir_builder.create()
x, y = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
with ib.for_range(0, n, name="i") as i, ib.if_scope(x[i] > 0.0):
    y[i] = x[i]
return ib.get()
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from compassc.ir import stmts as S
from compassc.ir.dtypes import BOOL, INT32, pointer_type
from compassc.ir.errors import ExpressionError, ExpressionTypeError
from compassc.ir.exprs import Buffer, Expr, IntImm, Var
from compassc.ir.node import Statements
from compassc.ir.operators import as_expr, cast, data_type, kind_of, matched
from compassc.ir.stmts import Stmt
from compassc.te.buffers import View, whole
from compassc.te.construct import shape_of
from compassc.te.opaque import body_of

KINDS = {"serial": "serial", "unroll": "unrolled", "parallel": "serial", "vectorize": "serial"}
"""What loops become: those of statements run in order, whatever they might."""


class BufferVar:
    """A buffer whose elements are read and written in the statements of a builder: `p[i, j]`, or `p[k]` for element k of
    all of them in a row."""

    def __init__(self, builder: IRBuilder, view: View) -> None:
        self._builder, self.view = builder, view

    @property
    def dtype(self) -> Any:
        return self.view.dtype

    @property
    def asobject(self) -> View:
        """The buffer."""
        return self.view

    def _indices(self, given: object) -> tuple[object, ...]:
        indices = given if isinstance(given, tuple) else (given,)
        if len(indices) != 1 or len(self.view.shape) == 1:
            return indices
        found, rest = [], as_expr(indices[0])
        for size in reversed(self.view.shape[1:]):
            found.append(rest % size)
            rest = rest // size
        return (rest, *reversed(found))

    def __getitem__(self, indices: object) -> Expr:
        return self.view[self._indices(indices)]

    def __setitem__(self, indices: object, value: object) -> None:
        self._builder.emit(self.view.store(value, *self._indices(indices)))


class IRBuilder:
    """Collects statements in the order in which they are written."""

    def __init__(self) -> None:
        self._levels: list[list[Stmt]] = [[]]

    def emit(self, statement: object) -> None:
        """Add a statement, several, or an expression that is evaluated."""
        self._levels[-1] += body_of(statement, "ir_builder")

    def get(self) -> Any:
        """The statement, or several as a body; without one the number 0 is evaluated. ExpressionError inside of a loop or a
        condition."""
        if len(self._levels) != 1:
            raise ExpressionError("the statements of a builder are complete outside of its loops and conditions")
        made = self._levels[0] or [S.Evaluate(IntImm(INT32, 0))]
        return made[0] if len(made) == 1 else Statements(made)

    @contextmanager
    def _inner(self) -> Iterator[list[Stmt]]:
        self._levels.append([])
        try:
            yield self._levels[-1]
        finally:
            self._levels.pop()

    @contextmanager
    def for_range(
        self, begin: object, end: object, name: str = "i", dtype: object = None, kind: str = "serial"
    ) -> Iterator[Expr]:
        """A loop; gives its variable. `kind`: one of KINDS; what may run at the same time runs in order."""
        if kind not in KINDS:
            raise ExpressionError(f"a loop is {', '.join(KINDS)}; got '{kind}'")
        first, last = (whole(e, f"an end of the loop '{name}'") for e in (begin, end))
        number = data_type(dtype) if dtype is not None else matched(kind_of(first), kind_of(last), "for_range")
        start, stop = (cast(e, number) for e in (first, last))
        var = Var(name, number, isinstance(start, IntImm) and start.value >= 0)
        with self._inner() as body:
            yield var
        self.emit(S.For(var, KINDS[kind], start, stop, IntImm(number, 1), tuple(body)))

    @contextmanager
    def while_loop(self, condition: object) -> Iterator[None]:
        """A loop that goes on while a condition holds."""
        test = truth(condition)
        with self._inner() as body:
            yield
        self.emit(S.While(test, tuple(body)))

    @contextmanager
    def if_scope(self, condition: object) -> Iterator[None]:
        """Statements under a condition."""
        test = truth(condition)
        with self._inner() as body:
            yield
        self.emit(S.IfThenElse(test, tuple(body), ()))

    @contextmanager
    def else_scope(self) -> Iterator[None]:
        """The statements for when the condition before does not hold."""
        before = self._levels[-1][-1] if self._levels[-1] else None
        if not isinstance(before, S.IfThenElse) or before.else_case:
            raise ExpressionError("else_scope follows an if_scope")
        with self._inner() as body:
            yield
        self._levels[-1][-1] = S.IfThenElse(before.condition, before.then_case, tuple(body))

    def let(self, name: str, value: object) -> Expr:
        """A variable with a value."""
        e = as_expr(value)
        var = Var(name, kind_of(e))
        self.emit(S.Let(var, e))
        return var

    def allocate(self, dtype: object, shape: object, name: str = "buf", scope: str = "") -> BufferVar:
        """Memory of the thread that runs the statements, of a constant size."""
        if scope not in ("", "local", "global"):
            raise ExpressionError(
                f"allocate of '{name}': memory of statements is that of their thread, got '{scope}'",
                "compute what lies in another memory in a stage of its own, and set_scope it",
            )
        sizes, kind = shape_of(shape), data_type(dtype)
        if not all(isinstance(e, IntImm) for e in sizes):
            raise ExpressionError(f"allocate of '{name}': a size is no number", "give it as an output of te.extern")
        buffer = Buffer(Var(name, pointer_type(kind, "private")), kind, sizes or (IntImm(INT32, 1),))
        self.emit(S.Alloc(buffer))
        return BufferVar(self, View(buffer))

    def buffer_ptr(self, buffer: object, shape: Sequence[object] | None = None) -> BufferVar:
        """A buffer, to be read and written with brackets."""
        if not isinstance(buffer, View):
            raise ExpressionTypeError(f"buffer_ptr takes a buffer, got {type(buffer).__name__}")
        if shape is not None and len(shape) != len(buffer.shape):
            raise ExpressionError(f"'{buffer.name}' has {len(buffer.shape)} dimensions, got a shape of {len(shape)}")
        return BufferVar(self, buffer)

    def likely(self, condition: object) -> object:
        """A condition that mostly holds, which changes nothing."""
        return condition

    def scope_attr(self, *given: object) -> None:
        """Always an ExpressionError: statements do not say which threads run them."""
        raise ExpressionError(
            f"the attribute {given[1] if len(given) > 1 else given!r} has no meaning in statements",
            "the threads of a stage are bound by its schedule; statements run on one",
        )


def truth(given: object) -> Expr:
    """A condition. ExpressionTypeError for what is no bool."""
    e = as_expr(given)
    if e.dtype is not BOOL:
        raise ExpressionTypeError(f"a condition is a bool, got {e.dtype}", "compare it with 0")
    return e


def create() -> IRBuilder:
    """A builder without statements."""
    return IRBuilder()
