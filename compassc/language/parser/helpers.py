"""Python functions that a kernel calls: they run while it is parsed, and what they do is done where they are called.

Values are expressions, which the statement that uses them computes. In a kernel's own code the statements come in the order
of the text; a function of Python may compute a value, change what it was computed from, and return it. So what such a
function does becomes statements at once, before which all values that somebody still holds are computed; and so are those
that are still held when a statement ends, by an object of Python.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from typing import Any, TypeVar
from weakref import ref

from ...ir import exprs as E
from ...ir import stmts as S
from ...ir.dtypes import VOID
from ...ops.core import Op
from .folding import is_stable
from .values import PointerValue, Value, wrap

_T = TypeVar("_T")
_MAY_CHANGE = E.F_LOAD | E.F_CALL | E.F_FUNC
_EFFECTS = ("write", "sync", "io")
_Held = tuple[list[ref[Value | PointerValue]], bool]
_Computed = dict[int, tuple[E.Expr, E.Expr]]
"""What expressions were replaced by, with themselves, by their identity."""


class Helpers:
    """The functions of Python that run for a kernel's function, and the values that are held meanwhile."""

    def __init__(self, keep: Callable[[object], Any], append: Callable[[S.Stmt], None]) -> None:
        """`keep` gives a value in a variable of its own, `append` adds a statement."""
        self.keep, self.append = keep, append
        self.running = False
        self._held: list[ref[Value | PointerValue]] = []
        self._ran = False  # a function of Python, in this statement

    @contextmanager
    def run(self, running: bool = True) -> Iterator[None]:
        """A function of Python runs; `running` false: it is the parser again that makes statements."""
        if not running and self.running:
            self.settle()
        outer, self.running = self.running, running
        self._ran = self._ran or running
        try:
            yield
        finally:
            self.running = outer

    def begin(self) -> _Held:
        """A statement of the kernel begins, whose values nobody holds before it. Gives what `end` takes."""
        outer, self._held, self._ran = (self._held, self._ran), [], False
        return outer

    def end(self, outer: _Held) -> None:
        """A statement ended, well or not."""
        self._held, self._ran = outer

    def finish(self) -> None:
        """A statement ends: compute what an object of Python still holds. Calls are made by what used them.

        Only a function of Python can have kept a value. Who else holds one looks at frames of the parser (profilers and
        debuggers do, in threads of their own), and has no part in the program.
        """
        if not self._ran:
            return
        self._held = [r for r in self._held if (value := r()) is not None and not _flags(value) & E.F_FUNC]
        self.settle()

    def calls(self) -> bool:
        """Whether a value that is held calls a function, which the statement has not done yet."""
        return any((value := r()) is not None and calls(value) for r in self._held)

    def hold(self, value: _T) -> _T:
        """Remember a value that statements of a function may change before it is used; a call without one is a statement."""
        if isinstance(value, (Value, PointerValue)):
            if _flags(value) & _MAY_CHANGE and not _is_void(value):
                self._held.append(ref(value))
        elif isinstance(value, (tuple, list)) and type(value) in (tuple, list):
            for item in value:
                self.hold(item)
        return value

    def pasted(self, value: _T) -> _T:
        """What a name stands for: an argument of a macro is computed at each use, all else is a variable."""
        if (
            isinstance(value, (Value, PointerValue))
            and type(value) in (Value, PointerValue)
            and _flags(value) & _MAY_CHANGE
        ):
            return self.hold(copy(value))
        return value

    def settle(self) -> None:
        """Compute the values that are held, before what follows changes them."""
        held = [value for r in self._held if (value := r()) is not None]
        self._held.clear()
        computed: _Computed = {}
        for value in held:
            if isinstance(value, PointerValue):
                value.base, value.offset = self._settled(value.base, computed), self._settled(value.offset, computed)
            else:
                value.expr = self._settled(value.expr, computed)

    def _settled(self, e: E.Expr, computed: _Computed) -> E.Expr:
        """An expression with variables in the place of what may change, given their values in the order of the text."""
        if id(e) in computed or is_stable(e, ()):
            return computed.get(id(e), (e, e))[1]
        if not e.flags & E.F_FUNC and type(e) is not E.Pointer:
            found: E.Expr = _with(e, computed)
        elif type(e) is E.Select or (type(e) is E.Binary and e.op in ("and", "or")):  # the others may not be computed
            first = e.children()[0]
            found = e.map(lambda child: self._settled(child, computed) if child is first else _with(child, computed))
        else:
            found = e.map(lambda child: self._settled(child, computed))
        if not is_stable(found, ()):
            found = _parts(self.keep(wrap(found)))[0]
        computed[id(e)] = e, found
        return found

    def done(self, op: Op, value: object) -> object:
        """The value of an operation; where a function of Python calls one with an effect, that becomes a statement."""
        if not self.running or op.effect not in _EFFECTS:
            return self.hold(value) if self.running else value
        if isinstance(value, S.Stmt):
            self.append(value)
            return None
        return self.called(value)

    def called(self, value: object) -> object:
        """The value of a call that is made once, where it stands."""
        if not self.running or not isinstance(value, (Value, PointerValue)):
            return value
        self.settle()
        expr = value.expr if isinstance(value, Value) else value.base
        if expr.dtype is VOID:
            self.append(S.Evaluate(expr))
            return None
        return self.keep(value)


def calls(value: object) -> bool:
    """Whether computing a value, or one in a container, calls a function: that is done once, and may change others."""
    if isinstance(value, (tuple, list)):
        return any(map(calls, value))
    if type(value) is dict:
        return any(map(calls, value.values()))
    if isinstance(value, slice):
        return any(map(calls, (value.start, value.stop, value.step)))
    return isinstance(value, (Value, PointerValue)) and bool(_flags(value) & E.F_FUNC)


def _flags(value: Value | PointerValue) -> int:
    return value.expr.flags if isinstance(value, Value) else value.base.flags | value.offset.flags


def _is_void(value: Value | PointerValue) -> bool:
    """Whether it is a call without a value, which is made by the statement that it is."""
    return isinstance(value, Value) and value.expr.dtype is VOID


def _parts(value: Value | PointerValue) -> tuple[E.Expr, ...]:
    return (value.expr,) if isinstance(value, Value) else (value.base, value.offset)


def _with(e: E.Expr, computed: _Computed) -> E.Expr:
    """The expression with variables in the place of what was computed."""
    if not e.flags & _MAY_CHANGE or not computed:
        return e
    return computed[id(e)][1] if id(e) in computed else e.map(lambda child: _with(child, computed))
