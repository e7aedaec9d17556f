"""What all steps of a schedule share: the module, what symbols stand for, how a change is made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from compass_core.bounded import Bounded
from compass_core.errors import UsageError
from compass_core.namedtuple import NamedTuple
from compassc.analysis.structure import Interner, variables
from compassc.ir import exprs as E
from compassc.ir import stmts as S
from compassc.ir.dtypes import PointerType
from compassc.ir.equal import assert_structural_equal
from compassc.ir.errors import ExpressionTypeError
from compassc.ir.exprs import Buffer, Var
from compassc.ir.stmts import Body, IRModule, PrimFunc, as_kernels
from compassc.ir.verify import verify
from compassc.ir.visit import all_exprs, walk_exprs, walk_stmts
from compassc.te.errors import NoSymbol, ScheduleError
from compassc.tir.blocks import declared
from compassc.tir.canonical import canonical
from compassc.tir.region_cover import open_loops_are_whole
from compassc.tir.roots import ROOT
from compassc.tir.trace import BlockRV, ExprRV, LoopRV, Symbol, Trace
from compassc.tir.tree import Tree

MAIN = "main"
"""What the only function of a module may be called."""


class Place(NamedTuple):
    """What a symbol stands for: a block by its name or a loop by its variable, in a function."""

    function: str
    key: str | Var


class Removed(NamedTuple):
    """What a symbol stood for, which is no more."""

    name: str


Stood = Place | Removed | int
"""What a symbol stands for, or stood for."""


class Snapshot(NamedTuple):
    """The state of a schedule."""

    mod: IRModule
    symbols: dict[Symbol, Stood]
    seed: int
    steps: int


class Base:
    """The state of a schedule and its changes."""

    def __init__(self, mod: IRModule, seed: int, enable_check: bool, trace: Trace | None) -> None:
        self.mod, self.drawn, self.enable_check, self.trace = mod, seed, enable_check, trace
        self.symbols: dict[Symbol, Stood] = {}
        self.depth = 0
        self.error_render_level = "detail"
        self.debug_mask = 0
        """What is looked at after each change: 1 the program, 2 the form that it is kept in."""
        self.decided: Any = None
        """What the last step that samples decided."""
        self.noted: dict[str, Any] = {}
        """Arguments of the step that is being taken, as they are recorded."""
        single = len(mod.functions) == 1 or mod.entry == "main"
        self.func_working_on: str | None = mod.entry if single else None
        self._trees: Bounded[PrimFunc, Tree] = Bounded(9)
        self._free_form: set[PrimFunc] = set()
        """Functions that are not in the form that functions are kept in."""
        self.loose: dict[str, S.Stmt | None] = {f.name: loose_statement(f) for f in mod.functions}
        """Functions with statements that are in no block: their blocks stay where they are."""
        self.tied = {f.name: tied_block(f) for f in mod.functions}
        """Functions with blocks that use more than their axes: these blocks stay where they are."""
        self.given = {f.name: tied_block(f, S.Let) for f in mod.functions}
        """Functions with blocks that use values computed around them: their turns stay in order, too."""
        for f in mod.functions:
            check_scheduled(f)
        self.open_loops_are_whole = {f.name: open_loops_are_whole(Tree(f)) for f in mod.functions}
        """Whether the loops of open extents of a function, as it was given, give all values of the axes bound to them."""

    # -- state

    def snapshot(self) -> Snapshot:
        """The state, for `restore`."""
        return Snapshot(self.mod, dict(self.symbols), self.drawn, len(self.trace) if self.trace is not None else 0)

    def restore(self, saved: Snapshot) -> None:
        """Go back to a state."""
        self.mod, self.symbols, self.drawn = saved.mod, saved.symbols, saved.seed
        if self.trace is not None:
            for later in self.trace.insts[saved.steps :]:
                self.trace.decisions.pop(later, None)
            del self.trace.insts[saved.steps :]

    def function(self, name: str) -> PrimFunc:
        """A function by its name. ScheduleError when there is none."""
        alone = self.mod.functions[0] if name == MAIN and len(self.mod.functions) == 1 else None
        if alone is not None:  # as programs for the framework call it
            return alone
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
            found = self._trees[function] = Tree(function, self.open_loops_are_whole[name])
        return found

    def commit(self, name: str, body: Body, renames: dict[str, str] | None = None, form: bool = True) -> Tree:
        """Make a body that of a function. Symbols of what it does not have any more stand for nothing from now on. `form`: in
        the form that functions are kept in."""
        before = self.function(name)
        function = before.replace(body=body)
        if form:
            function = canonical(function, () if before in self._free_form else before.body)
        else:
            self._free_form.add(function)
        self.mod = self.mod.map_functions(lambda f: function if f.name == name else f)
        if self.debug_mask & 1:  # memory of open extent may get a constant one by later steps
            verify(self.mod.map_functions(lambda f: f.replace(attrs=(*f.attrs, (S.OPEN_MEMORY, True)))))
        if self.debug_mask & 2:
            assert_structural_equal(canonical(function), function)
        tree = self.tree(name)
        for symbol, place in self.symbols.items():
            if type(place) is not Place or place.function != name:
                continue
            key = place.key
            if isinstance(key, str):
                key = (renames or {}).get(key, key)
            alive = key in tree.blocks or key == ROOT if isinstance(key, str) else key in tree.loops
            self.symbols[symbol] = Place(name, key) if alive else Removed(key if isinstance(key, str) else key.name)
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
        """What a symbol of a block or loop stands for. NoSymbol for one that is gone or of another schedule."""
        if not isinstance(symbol, Symbol):
            raise ExpressionTypeError(f"a symbol of a block or loop is expected, got {type(symbol).__name__}")
        found = self.symbols.get(symbol)
        if isinstance(found, Place):
            return found
        what = type(symbol).__name__
        if isinstance(found, Removed):
            raise NoSymbol(f"the {what} of '{found.name}' is no more: a step removed what it stood for")
        raise NoSymbol(f"the {what} is none of this schedule")

    def places_of(self, arguments: Iterable[object], symbols: Mapping[Symbol, Stood]) -> Callable[[], str] | None:
        """What shows the loops and blocks that symbols stand for in the function that they are in, or the function that is
        worked on; None where the level of messages asks for none."""
        if self.error_render_level != "detail":
            return None
        found = [p for a in arguments if isinstance(a, Symbol) and isinstance(p := symbols.get(a), Place)]
        working = self.func_working_on
        if not found and (working is None or all(f.name != working for f in self.mod.functions)):
            return None
        function = self.function(found[0].function if found else str(working))
        tree = self.tree(function.name)
        marked: list[S.Stmt] = []
        for place in found:
            if place.function == function.name and place.key in (
                tree.blocks if isinstance(place.key, str) else tree.loops
            ):
                marked.append(tree.blocks[place.key] if isinstance(place.key, str) else tree.loops[place.key])

        def text() -> str:
            from compassc.tir.underlined_text import underlined

            return underlined(function, marked)

        return text

    def number(self, value: Any) -> Any:
        """A number, or what a symbol for one stands for."""
        if isinstance(value, ExprRV):
            found = self.symbols.get(value)
            if not isinstance(found, int):
                raise NoSymbol("the ExprRV is none of this schedule")
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

    def check_blocks_only(self, step: str, arguments: Iterable[object], on_loops: bool) -> None:
        """ScheduleError where a step would move blocks past statements that are in no block, or blocks that use more than
        their axes. `on_loops`: the step looks at other statements than blocks by itself."""
        for symbol in arguments:
            place = self.symbols.get(symbol) if isinstance(symbol, Symbol) else None
            around = self.given if on_loops else self.tied
            tied = around.get(place.function) if isinstance(place, Place) else None
            if tied is not None:
                raise ScheduleError(
                    f"{step}: the block '{tied[0]}' uses '{tied[1]}', which is neither an axis of it nor a parameter",
                    "give the block an axis for it, or compute it in the block",
                )
            if on_loops:
                continue
            loose = self.loose.get(place.function) if isinstance(place, Place) else None
            if loose is not None and isinstance(place, Place):
                where = f" ({loose.span})" if loose.span else ""
                raise ScheduleError(
                    f"{step}: '{place.function}' has statements that are in no block{where}, which blocks must not pass",
                    "put them into blocks of their own",
                )

    def free_block_name(self, tree: Tree, name: str) -> str:
        """The name, or one like it that no block has."""
        return tree.free_block_name(name)


def check_scheduled(function: PrimFunc) -> None:
    """ScheduleError for a function whose blocks touch memory of which shape and place are not declared."""
    known = declared(function.body)
    same = Interner().same
    has = any(isinstance(s, S.Block) for s in walk_stmts(function.body))
    for s in walk_stmts(function.body):
        if has and isinstance(s, (S.Alloc, S.DeclBuffer)):
            one, other = s.buffer.shape, known[s.buffer.data].shape
            if len(one) != len(other) or not all(map(same, one, other)):
                raise ScheduleError(
                    f"'{s.buffer.data.name}' of '{function.name}' is declared with two shapes: blocks know a buffer by one",
                    "use one of them, with the indices of the other written out",
                )
        if not isinstance(s, S.Block):
            continue
        for inner in walk_stmts((*s.init, *s.body)):
            for data in accessed(inner):
                if data not in known:
                    raise ScheduleError(
                        f"the block '{s.name_hint}' of '{function.name}' accesses '{data.name}', whose shape is not declared",
                        "give it a shape with S.match_buffer, or allocate it with S.alloc_buffer",
                    )


def accessed(s: S.Stmt) -> list[Var]:
    """The storage that a statement itself accesses or takes the address of."""
    return [x for e in s.exprs() for x in walk_exprs(e) if type(x) is Var and isinstance(x.dtype, PointerType)]


def loose_statement(function: PrimFunc) -> S.Stmt | None:
    """A statement that does something and is in no block."""

    def find(body: Body) -> S.Stmt | None:
        for s in body:
            if isinstance(s, S.Block):
                continue
            calls = any(e.flags & (E.F_CALL | E.F_FUNC) for e in s.exprs() if not isinstance(s, S.For))
            if isinstance(s, (S.BufferStore, S.While)) or (calls and not isinstance(s, (S.Let, S.IfThenElse))):
                return s
            for inner in s.bodies():
                found = find(inner)
                if found is not None:
                    return found
        return None

    has = any(isinstance(s, S.Block) for s in walk_stmts(function.body))
    return find(function.body) if has else None


def tied_block(function: PrimFunc, *kinds: type[S.Stmt]) -> tuple[str, str] | None:
    """A block, and the variable of a statement around it that it uses by itself. `kinds`: of which statements; by default
    loops and values."""
    kinds = kinds or (S.For, S.Let)

    def find(body: Body, around: frozenset[Var]) -> tuple[str, str] | None:
        for s in body:
            if isinstance(s, S.Let) and S.Let in kinds:
                around = around | {s.var}
            if isinstance(s, S.Block):
                used = (v for e in all_exprs((*s.init, *s.body)) for v in variables(e) if v in around)
                if (var := next(used, None)) is not None:
                    return s.name_hint, var.name
            inside = around | {s.loop_var} if isinstance(s, S.For) and S.For in kinds else around
            for inner in s.bodies():
                found = find(inner, inside)
                if found is not None:
                    return found
        return None

    return find(function.body, frozenset())


def module_of(mod: object) -> IRModule:
    """The module to schedule. ExpressionTypeError for what is none."""
    mod = mod.module() if isinstance(mod, PrimFunc) else as_kernels(mod)
    if not isinstance(mod, IRModule):
        raise ExpressionTypeError(f"a schedule is made of a PrimFunc or an IRModule, got {type(mod).__name__}")
    if not mod.functions:
        raise UsageError("a schedule needs a module with a function", code="te-schedule")
    return mod
