"""Parsing a kernel and every sub-function it calls into an IR module."""

from __future__ import annotations

from compass_core import switches, targets
from compass_core.errors import CompassError, Note, together

from ...ir import exprs as E
from ...ir.stmts import IRModule, PrimFunc
from ...ops.core import TARGET, Op
from ..dispatch import parsing
from ..functions import Macro, PyPrimFunc, chosen
from .access import load
from .assign import assign_item
from .calls import build_op, call_function, expand_macro
from .function import FunctionParser
from .helpers import Helpers
from .operators import binary, unary
from .texts import no_text
from .tiles import IRMachine


class ModuleParser:
    """A kernel with its sub-functions, in the order they were first called. Calls in the kernel's code come here
    (`dispatch.Parser`)."""

    def __init__(self, entry: PyPrimFunc, name: str | None, blocks: bool = False) -> None:
        self.entry, self.blocks = entry, blocks
        self.symbol = name or entry.__name__
        self.lsram_bytes = 0
        self.done: dict[str, PrimFunc] = {}
        self.sources: dict[str, PyPrimFunc] = {}
        self.functions: list[FunctionParser] = []
        self.machine = IRMachine(lambda: self.functions[-1])
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

    def operation(self, op: Op, args: tuple[object, ...], kwargs: dict[str, object]) -> object:
        return self.helpers.done(op, build_op(self, op, args, kwargs))

    def function(self, func: PyPrimFunc, args: tuple[object, ...], kwargs: dict[str, object]) -> object:
        return self.helpers.called(call_function(self, func, args, kwargs))

    def macro(self, macro: Macro, args: tuple[object, ...], kwargs: dict[str, object]) -> None:
        expand_macro(self, macro, args, kwargs)

    @property
    def helpers(self) -> Helpers:
        """The functions of Python that run for the function that is parsed."""
        return self.functions[-1].helpers

    def binary(self, symbol: str, a: object, b: object) -> object:
        return self.helpers.hold(binary(symbol, a, b, adapt=False))

    def unary(self, symbol: str, a: object) -> object:
        return self.helpers.hold(unary(symbol, a))

    def load(self, target: object, index: object) -> object:
        return self.helpers.hold(load(target, index))

    def store(self, target: object, index: object, value: object) -> None:
        assign_item(self.functions[-1], target, index, value)

    @staticmethod
    def text(value: object) -> str:
        raise no_text(value)

    def take_address(self, variable: E.Var) -> None:
        self.functions[-1].addressed.add(variable)

    def parse(self, func: PyPrimFunc, symbol: str) -> PrimFunc:
        fp = FunctionParser(func, symbol, self.errors, self.chain)
        fp.keeps_blocks, fp.parsed = self.blocks, (self.done, self.sources)
        fp.lsram_bytes = 0 if self.functions else self.lsram_bytes
        if self.functions:
            fp.scope.runs_often()
        self.functions.append(fp)
        try:
            return fp.parse()
        finally:
            self.functions.pop()

    def module(self, target: str) -> IRModule:
        """The whole module. Raises the mistakes found, all of them at once."""
        machine = targets.load(target)
        self.lsram_bytes = machine.lsram_bytes
        token = TARGET.set(machine.version)
        try:
            with parsing(self):
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


def parse(func: PyPrimFunc, target: str | None = None, name: str | None = None, blocks: bool = False) -> IRModule:
    """The IR of a kernel and its sub-functions for a target (None: the default one). `name` replaces the entry's symbol.

    `blocks`: schedulable blocks stay blocks, for schedules; else their statements stand where they are.
    """
    func = chosen(func, target or switches.TARGET.get())
    if not isinstance(func, PyPrimFunc):
        shown = getattr(func, "__name__", type(func).__name__)
        raise CompassError(f"{shown} is not a kernel", code="input", help="decorate it with @S.prim_func")
    return ModuleParser(func, name, blocks).module(target or switches.TARGET.get())
