"""What all steps of a schedule share: the module, what symbols stand for, how a change is made."""

from __future__ import annotations

from typing import Any, NamedTuple

from compass_core.errors import UsageError
from compassc.ir import stmts as S
from compassc.ir.exprs import Buffer, Var
from compassc.ir.stmts import Body, IRModule, PrimFunc
from compassc.te.errors import ExpressionTypeError, ScheduleError
from compassc.tir.blocks import declared
from compassc.tir.canonical import canonical
from compassc.tir.trace import BlockRV, ExprRV, LoopRV, Symbol, Trace
from compassc.tir.tree import Tree


class Place(NamedTuple):
    """What a symbol stands for: a block by its name or a loop by its variable, in a function."""

    function: str
    key: str | Var


class Snapshot(NamedTuple):
    """The state of a schedule."""

    mod: IRModule
    symbols: dict[Symbol, Place | int | None]
    seed: int
    steps: int


class Base:
    """The state of a schedule and its changes."""

    def __init__(self, mod: IRModule, seed: int, enable_check: bool, trace: Trace | None) -> None:
        self.mod, self.seed, self.enable_check, self.trace = mod, seed, enable_check, trace
        self.symbols: dict[Symbol, Place | int | None] = {}
        self.depth = 0
        self.decided: Any = None
        """What the last step that samples decided."""
        self.noted: dict[str, Any] = {}
        """Arguments of the step that is being taken, as they are recorded."""
        self.func_working_on: str | None = mod.entry
        self._trees: dict[PrimFunc, Tree] = {}

    # -- state

    def snapshot(self) -> Snapshot:
        """The state, for `restore`."""
        return Snapshot(self.mod, dict(self.symbols), self.seed, len(self.trace) if self.trace is not None else 0)

    def restore(self, saved: Snapshot) -> None:
        """Go back to a state."""
        self.mod, self.symbols, self.seed = saved.mod, saved.symbols, saved.seed

    def function(self, name: str) -> PrimFunc:
        """A function by its name. ScheduleError when there is none."""
        try:
            return self.mod[name]
        except KeyError:
            known = ", ".join(f.name for f in self.mod.functions)
            raise ScheduleError(f"there is no function '{name}'; there is {known}") from None

    def tree(self, name: str) -> Tree:
        """The loops and blocks of a function."""
        function = self.function(name)
        found = self._trees.get(function)
        if found is None:
            if len(self._trees) > 8:
                self._trees.clear()
            found = self._trees[function] = Tree(function)
        return found

    def commit(self, name: str, body: Body, renames: dict[str, str] | None = None) -> Tree:
        """Make a body that of a function. Symbols of what it does not have any more stand for nothing from now on."""
        function = canonical(self.function(name).replace(body=body))
        self.mod = self.mod.map_functions(lambda f: function if f.name == name else f)
        tree = self.tree(name)
        for symbol, place in self.symbols.items():
            if not isinstance(place, Place) or place.function != name:
                continue
            key = place.key
            if isinstance(key, str):
                key = (renames or {}).get(key, key)
            alive = key in tree.blocks or key == ROOT if isinstance(key, str) else key in tree.loops
            self.symbols[symbol] = Place(name, key) if alive else None
        return tree

    # -- symbols

    def new_block(self, function: str, name: str) -> BlockRV:
        """A symbol for a block."""
        made = BlockRV()
        self.symbols[made] = Place(function, name)
        return made

    def new_loop(self, function: str, var: Var) -> LoopRV:
        """A symbol for a loop."""
        made = LoopRV()
        self.symbols[made] = Place(function, var)
        return made

    def new_number(self, value: int) -> ExprRV:
        """A symbol for a number."""
        made = ExprRV()
        self.symbols[made] = value
        return made

    def place(self, symbol: Symbol) -> Place:
        """What a symbol of a block or loop stands for. ScheduleError for one that is gone or of another schedule."""
        found = self.symbols.get(symbol)
        if isinstance(found, Place):
            return found
        what = type(symbol).__name__
        reason = "was removed by a step" if symbol in self.symbols else "is none of this schedule"
        raise ScheduleError(f"the {what} {reason}")

    def number(self, value: Any) -> Any:
        """A number, or what a symbol for one stands for."""
        if isinstance(value, ExprRV):
            found = self.symbols.get(value)
            if not isinstance(found, int):
                raise ScheduleError("the ExprRV is none of this schedule")
            return found
        return value

    def located_block(self, symbol: BlockRV) -> tuple[str, Tree, S.Block]:
        """The function, its tree and the block of a symbol."""
        function, key = self.place(symbol)
        tree = self.tree(function)
        if key == ROOT:
            raise ScheduleError(f"this step is not for the root block of '{function}'")
        assert isinstance(key, str)
        return function, tree, tree.blocks[key]

    def located_loop(self, symbol: LoopRV) -> tuple[str, Tree, S.For]:
        """The function, its tree and the loop of a symbol."""
        function, key = self.place(symbol)
        assert isinstance(key, Var)
        tree = self.tree(function)
        return function, tree, tree.loops[key]

    def buffers(self, function: str) -> dict[Var, Buffer]:
        """The buffers of a function by their storage."""
        return declared(self.function(function).body)

    def parameters(self, function: str) -> set[Var]:
        """The storage of a function's parameters."""
        return {s.buffer.data for s in self.function(function).body if isinstance(s, S.DeclBuffer)} | set(
            self.function(function).params
        )

    def free_block_name(self, tree: Tree, name: str) -> str:
        """The name, or one like it that no block has."""
        found, count = name, 0
        while found in tree.blocks:
            count += 1
            found = f"{name}_{count}"
        return found


ROOT = "root"
"""The block that a function is."""


def module_of(mod: Any) -> IRModule:
    """The module to schedule. ExpressionTypeError for what is none."""
    if isinstance(mod, PrimFunc):
        mod = mod.module()
    if not isinstance(mod, IRModule):
        raise ExpressionTypeError(f"a schedule is made of a PrimFunc or an IRModule, got {type(mod).__name__}")
    if not mod.functions:
        raise UsageError("a schedule needs a module with a function", code="te-schedule")
    return mod
