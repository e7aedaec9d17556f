"""Parsing a kernel and every sub-function it calls into an IR module."""

from __future__ import annotations

from compass_core import switches, targets
from compass_core.errors import CompassError, Note, together

from ...ir.stmts import IRModule, PrimFunc
from ...ops.core import TARGET
from .. import dispatch
from ..functions import PyPrimFunc
from ..state import active
from .calls import build_op
from .function import FunctionParser


class ModuleParser:
    """Functions found so far, in the order they were first called."""

    def __init__(self, entry: PyPrimFunc, name: str | None) -> None:
        self.entry = entry
        self.symbol = name or entry.__name__
        self.done: dict[str, PrimFunc] = {}
        self.sources: dict[str, PyPrimFunc] = {}
        self.functions: list[FunctionParser] = []
        self.errors: list[CompassError] = []
        self.chain: list[Note] = []

    def require(self, func: PyPrimFunc) -> str:
        """The symbol of a called function, parsing it at the first call."""
        if func is self.entry:
            caller = self.functions[-1].func.__name__
            raise CompassError(
                f"{caller} calls the entry function {func.__name__}",
                code="calls-entry",
                help="move what both need into a third function",
            )
        symbol = func.__name__
        if any(fp.func is func for fp in self.functions):
            chain = " -> ".join(fp.func.__name__ for fp in self.functions)
            raise CompassError(f"recursion is not supported: {chain} -> {symbol}", code="recursion", help="use a loop")
        known = self.sources.get(symbol)
        if known is not None and known is not func:
            raise CompassError(
                f"two functions are called {symbol!r}",
                code="duplicate-function",
                help="functions of one kernel need different names",
            )
        if known is None:
            self.sources[symbol] = func
            self.done[symbol] = self.parse(func, symbol)
        return symbol

    def parse(self, func: PyPrimFunc, symbol: str) -> PrimFunc:
        fp = FunctionParser(func, symbol, self.errors, self.chain)
        self.functions.append(fp)
        try:
            return fp.parse()
        finally:
            self.functions.pop()

    def module(self, target: str) -> IRModule:
        """The whole module. Raises the mistakes found, all of them at once."""
        token = TARGET.set(targets.load(target).version)
        try:
            with active(self):
                entry = self.parse(self.entry, self.symbol)
        finally:
            TARGET.reset(token)
        if self.errors:
            raise together(self.errors)
        if self.symbol in self.done:
            raise CompassError(
                f"a sub-function has the entry's name {self.symbol!r}",
                self.entry.span,
                code="duplicate-function",
                help="rename one of them",
            )
        return IRModule((entry, *self.done.values()), self.symbol, target)


def parse(func: PyPrimFunc, target: str | None = None, name: str | None = None) -> IRModule:
    """The IR of a kernel and its sub-functions for a target (None: the default one). `name` replaces the entry's symbol."""
    if not isinstance(func, PyPrimFunc):
        shown = getattr(func, "__name__", type(func).__name__)
        raise CompassError(f"{shown} is not a kernel", code="input", help="decorate it with @S.prim_func")
    return ModuleParser(func, name).module(target or switches.TARGET.get())


dispatch.IR_SIDE = build_op
