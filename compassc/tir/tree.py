"""The tree of loops and blocks of a function: where everything is, and how a part of it is replaced."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from compassc.analysis.itermap import UNKNOWN, separates
from compassc.analysis.structure import variables
from compassc.ir import stmts as S
from compassc.ir.exprs import Var
from compassc.ir.names import NamePool
from compassc.ir.stmts import Body, PrimFunc, Stmt
from compassc.ir.visit import all_exprs
from compassc.te.errors import ScheduleError
from compassc.tir.blocks import Axis, constant, is_declaration, sub

Node = S.For | S.Block


class Tree:
    """Loops by their variables and blocks by their names, with what is around them. Made anew after each change."""

    def __init__(self, function: PrimFunc, open_loops_are_whole: bool = False) -> None:
        self.function = function
        self.open_loops_are_whole = open_loops_are_whole
        """Whether loops of open extents are known to give all values of the axes that depend on them. Steps keep that."""
        self.loops: dict[Var, S.For] = {}
        self.blocks: dict[str, S.Block] = {}
        self.parents: dict[Stmt, Stmt | None] = {}
        self.order: dict[Stmt, int] = {}
        self._used: dict[S.Block, frozenset[Var]] = {}
        self._enter(function.body, None)

    def _enter(self, body: Body, parent: Stmt | None) -> None:
        for s in body:
            self.parents[s] = parent
            self.order[s] = len(self.order)
            if isinstance(s, S.For):
                self.loops[s.loop_var] = s
            elif isinstance(s, S.Block):
                self.blocks[s.name_hint] = s
            for inner in s.bodies():
                self._enter(inner, s)

    def around(self, s: Stmt) -> list[Stmt]:
        """The statements around one, innermost first."""
        found = []
        above = self.parents[s]
        while above is not None:
            found.append(above)
            above = self.parents[above]
        return found

    def scope(self, s: Stmt) -> S.Block | None:
        """The block that a statement is in; None: that of the function."""
        return next((a for a in self.around(s) if isinstance(a, S.Block)), None)

    def loops_around(self, s: Stmt, all_of_them: bool = False) -> list[S.For]:
        """The loops around a statement within its block, outermost first; also those around that block, on demand."""
        found = []
        for above in self.around(s):
            if isinstance(above, S.Block) and not all_of_them:
                break
            if isinstance(above, S.For):
                found.append(above)
        return found[::-1]

    def used_loops(self, block: S.Block) -> list[S.For]:
        """The loops around a block whose variables it uses itself, not by an axis, outermost first. Such a variable is like
        a spatial axis that is bound to the loop."""
        if block not in self._used:
            self._used[block] = frozenset(v for e in all_exprs((*block.init, *block.body)) for v in variables(e))
        return [s for s in self.loops_around(block, all_of_them=True) if s.loop_var in self._used[block]]

    def implied_axes(self, block: S.Block) -> list[Axis]:
        """The axes that these loops would be: those of which the block's own axes do not tell the turns apart."""
        sizes = {s.loop_var: constant(s.stop) or UNKNOWN for s in self.loops_around(block, all_of_them=True)}
        return [
            Axis(s.loop_var, "spatial", s.min, sub(s.stop, s.min), s.loop_var)
            for s in self.used_loops(block)
            if not separates(block.iter_values, sizes, s.loop_var)
        ]

    def inside(self, s: Stmt | None) -> list[S.Block]:
        """The blocks directly below a statement (or in the function), not those inside of them."""
        return list(direct_blocks(self.function.body if s is None else tuple(b for p in s.bodies() for b in p)))

    def position(self, s: Stmt, within: Stmt | None) -> int:
        """The place of what holds `s` among the statements of a loop, of a block's body or of the function."""
        chain = [s, *self.around(s)]
        statements = self.function.body if within is None else body_of(within)
        for i, child in enumerate(statements):
            if child in chain:
                return i
        raise ScheduleError("a block of an init is done with the block that it belongs to, and not moved")

    def free_block_name(self, name: str) -> str:
        """The name, or one like it that no block has."""
        return NamePool(self.blocks).take(name)

    def is_inside(self, s: Stmt, outer: Stmt) -> bool:
        return outer in self.around(s)


def body_of(s: Stmt) -> Body:
    """The statements of a loop or block."""
    assert isinstance(s, (S.For, S.Block))
    return s.body


def direct_blocks(body: Body) -> Iterator[S.Block]:
    """The blocks of a body, not those inside of other blocks."""
    for s in body:
        if isinstance(s, S.Block):
            yield s
        else:
            for inner in s.bodies():
                yield from direct_blocks(inner)


def edit(body: Body, changes: Mapping[Stmt, Sequence[Stmt]]) -> Body:
    """A body with statements replaced. What comes in their place is not looked at again; loops that are left without a
    statement disappear."""
    made: list[Stmt] = []
    changed = False
    for s in body:
        if s in changes:
            made.extend(changes[s])
            changed = True
            continue
        new = s.map(lambda e: e, lambda inner: edit(inner, changes))
        if new is not s:
            changed = True
            if isinstance(new, S.For) and all(map(is_declaration, new.body)):
                continue
        made.append(new)
    return tuple(made) if changed else body


def edit_block(body: Body, name: str, change: Callable[[S.Block], Sequence[Stmt]]) -> Body:
    """A body with the block of a name replaced."""
    for s in _walk(body):
        if isinstance(s, S.Block) and s.name_hint == name:
            return edit(body, {s: change(s)})
    raise KeyError(name)


def edit_loop(body: Body, var: Var, change: Callable[[S.For], Sequence[Stmt]]) -> Body:
    """A body with the loop of a variable replaced."""
    for s in _walk(body):
        if isinstance(s, S.For) and s.loop_var is var:
            return edit(body, {s: change(s)})
    raise KeyError(var.name)


def _walk(body: Body) -> Iterator[Stmt]:
    for s in body:
        yield s
        for inner in s.bodies():
            yield from _walk(inner)
