"""The state of a function and its module while they are parsed, shared by the parts of the parser."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from typing import Any, Protocol, TypeVar

from compass_core.errors import CompassError, Note, Span

from ...ir import exprs as E
from ...ir import stmts as S
from ...ir.dtypes import INT32, PointerType, pointer_type
from ...ir.names import NamePool
from ...ir.visit import placed
from ..functions import PyPrimFunc, captured_names, mentioned_names
from ..source import definition, file_of, node_span
from ..specs import AllocSpec
from .constants import kept
from .expressions import Evaluator
from .helpers import Helpers, calls
from .scope import Scope
from .values import ZERO, BufferValue, PointerValue, Value

_T = TypeVar("_T")


class Abandoned(Exception):
    """A mistake in what is parsed to see whether it can be."""


class FunctionContext:
    """One function while it is parsed: its names, and the statements made so far.

    `out` is the list statements are appended to; `errors` collects mistakes,
    `chain` are the calls that led here, outermost first.
    """

    def __init__(self, func: PyPrimFunc, symbol: str, errors: list[CompassError], chain: list[Note]) -> None:
        self.func, self.symbol, self.errors, self.chain = func, symbol, errors, chain
        self.node = definition(func.py_func)
        self.file = file_of(func.py_func)
        self.scope = Scope(captured_names(func.py_func), mentioned_names(func.py_func))
        self.helpers = Helpers(self.keep, self.append)
        self.evaluator = Evaluator(self.scope, self.file, chain, self)
        self.eval = self.evaluator.eval
        self.out: list[S.Stmt] = []
        self.hoisted: list[S.Stmt] = []  # at the beginning of the function, wherever the parser is
        self.current: ast.AST = self.node
        self.scope.places = {a.arg: node_span(a, self.file) for a in self.node.args.args}
        self.params = [E.Var(p.name, p.type, p.nonneg) for p in func.params]
        self.renamed: dict[E.Var, E.Var] = {}
        self.made: set[E.Var] = set()  # variables that keep values
        self.addressed: set[E.Var] = set()  # variables whose address was taken so far
        self.shapes: dict[E.Var, list[int | str | None]] = {}
        self.attempts = 0  # under way: of these the first mistake is the end
        self.keeps_blocks = False
        self.lsram_bytes = 0  # of the target; of a function that others call, which have arrays too, it is not known
        self.awaited: list[tuple[object, Span | None]] = []  # work of which the statements are not made yet
        self._span: Span | None = None  # of statements that are made later than their place in the text says
        self.numbers: dict[str, int] = {}  # of the variables that work on tiles makes, by name
        self.parsed: tuple[dict[str, Any], ...] = ()  # tables of the sub-functions that were parsed so far
        self.axes: list[
            list[tuple[E.Var, str, E.Expr, E.Expr, E.Expr]]
        ] = []  # of the blocks around, where they are kept
        self.block_names = NamePool()
        self.ranges: dict[E.Var, tuple[E.Expr, E.Expr]] = {}  # start and stop of loops around
        for var in self.params:
            pointer = isinstance(var.dtype, PointerType)
            self.scope.bind(var.name, PointerValue(var.pointer_type.elem, var, ZERO) if pointer else Value(var))

    def keep(self, value: object, name: str = "item") -> Any:
        """A value that later statements do not change."""
        if calls(value) or self.helpers.calls():
            self.helpers.settle()
        return kept(self._kept, value, name)

    def storage(self, name: str, spec: AllocSpec) -> E.Buffer:
        """New storage; the caller says where it is allocated."""
        data = E.Var(name, pointer_type(spec.dtype, spec.scope))
        return E.Buffer(data, spec.dtype, tuple(E.IntImm(INT32, n) for n in spec.shape))

    def unnamed(self, spec: AllocSpec) -> PointerValue | BufferValue:
        """Storage that an expression allocates and uses at once."""
        buffer = self.storage("item", spec)
        self.emit(S.Alloc, buffer)
        if spec.kind == "buffer":
            return BufferValue(buffer, spec.shape, "item")
        return PointerValue(spec.dtype, buffer.data, ZERO)

    def _kept(self, var: E.Var, value: E.Expr) -> None:
        self.made.add(var)
        self.emit(S.Let, var, value)

    def state(self) -> tuple[object, ...]:
        """All that statements change in the function; `restore` undoes what was done since."""
        known: tuple[Any, ...] = (self.renamed, self.addressed, self.shapes, self.block_names, self.ranges)
        tables = [dict(table) for table in self.parsed]
        return self.scope.state(), len(self.out), len(self.hoisted), [copy(x) for x in known], tables

    def restore(self, state: tuple[Any, ...]) -> None:
        scope, made, hoisted, known, tables = state
        self.scope.restore(scope)
        del self.out[made:], self.hoisted[hoisted:]
        self.renamed, self.addressed, self.shapes, self.block_names, self.ranges = known
        for table, before in zip(self.parsed, tables):
            table.clear()
            table.update(before)

    def define(self, name: str, value: object) -> None:
        """Bind a new name and remember where."""
        self.scope.bind(name, value)
        self.scope.places[name] = self.evaluator.place(self.current)

    def emit(self, make: Callable[..., S.Stmt], *args: object) -> None:
        """Append a statement at the current position."""
        self.append(make(*args, span=self.place()))

    def hoist(self, make: Callable[..., S.Stmt], *args: object) -> None:
        """Append a statement to those that the function begins with."""
        self.hoisted.append(self._placed(make(*args)))

    def append(self, statement: S.Stmt) -> None:
        """Append a statement made elsewhere, giving it the current position."""
        if self.helpers.running and not isinstance(statement, S.Let):
            self.helpers.settle()
        self.out.append(self._placed(statement))

    def _placed(self, statement: S.Stmt) -> S.Stmt:
        """The statement at the current position, with its calls and accesses that have no place of their own."""
        place = self.place()
        return placed(statement if statement.span is place else statement.at(place))

    def place(self) -> Span | None:
        """The current position."""
        return self._span or self.evaluator.place(self.current)

    @contextmanager
    def at(self, span: Span | None) -> Iterator[None]:
        """Let statements have a place."""
        self._span = span
        try:
            yield
        finally:
            self._span = None

    def apart(self, make: Callable[[], _T]) -> tuple[_T, S.Body]:
        """What `make` gives, and the statements that it makes, which are not appended."""
        outer, self.out = self.out, []
        try:
            return make(), tuple(self.out)
        finally:
            self.out = outer

    def nested(self, nodes: list[ast.stmt]) -> S.Body:
        """The statements of a nested block, in a frame of its own."""
        self.scope.push()
        try:
            return self.apart(lambda: self.block(nodes))[1]
        finally:
            self.scope.pop()

    def block(self, nodes: list[ast.stmt]) -> None:
        """Parse the statements of a block."""
        raise NotImplementedError


class ModuleContext(Protocol):
    """A kernel with its sub-functions while it is parsed."""

    @property
    def functions(self) -> Sequence[FunctionContext]:
        """The functions that are parsed, each called by the one before it."""

    def require(self, func: PyPrimFunc) -> str:
        """The symbol of a called function, which is parsed at the first call."""
