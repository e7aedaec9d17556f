"""Say which thread stores what in memory that threads share, and refuse what more than one would store.

Before: functions of innermost blocks, whose memory has its place. After: on an NPU the same; on a grid what all threads would
do alike is in loops of one turn. Turns of a loop that is bound to a thread run at the same time. So memory that threads of a
grid share is written in one of three ways: each turn writes elements of its own; several turns compute the same point of a
block, which is the same value; or all turns do the same, then one thread does it. TECs must not join values into one element.
"""

from __future__ import annotations

from collections.abc import Sequence

from compassc.analysis.itermap import UNKNOWN, separates
from compassc.analysis.simplify import Simplifier
from compassc.analysis.structure import variables
from compassc.ir import exprs as E
from compassc.ir import stmts as S
from compassc.ir.dtypes import INT32
from compassc.ir.exprs import Expr, IntImm, Var
from compassc.ir.stmts import IRModule, PrimFunc, Stmt
from compassc.ir.visit import walk_exprs, walk_stmts
from compassc.passes.loops._functions import on_blocks
from compassc.te.errors import LowerError
from compassc.te.machine import OWN_MEMORY, machine_of
from compassc.tir.base import loose_statement
from compassc.tir.blocks import Axis, at, axes_of, constant, loop, uses
from compassc.tir.region_cover import data_of, facts_of, reads_of, turn_writes, turns_of
from compassc.tir.tree import Tree, edit

NAME = "GuardThreadStores"


def run(module: IRModule) -> IRModule:
    step = {"loops": _checked, "grid": _by_threads}.get(machine_of(module).stage)
    return module if step is None else on_blocks(module, step)


def _by_threads(function: PrimFunc) -> PrimFunc:
    """The function with what all threads would do alike in loops of one turn. LowerError for what comes out otherwise when
    the turns of loops that are bound to threads run at the same time."""
    if (loose := loose_statement(function)) is not None:
        raise LowerError(f"a {type(loose).__name__} in no block has no program for a grid of threads", "use blocks")
    tree = Tree(function)
    changes: dict[Stmt, Sequence[Stmt]] = {}
    for root in function.body:
        inside = list(walk_stmts((root,)))
        blocks = [s for s in inside if isinstance(s, S.Block)]
        tags = sorted({s.kind for s in inside if isinstance(s, S.For) and s.kind in S.THREAD_LOOPS})
        launch = _Launch(tree, blocks, tags)
        for block in blocks:
            launch.check_nested(block)
            changes |= launch.guards(block)
    return function.replace(body=edit(function.body, changes))


class _Launch:
    """The blocks of a statement of the outermost level."""

    def __init__(self, tree: Tree, blocks: Sequence[S.Block], tags: Sequence[str]) -> None:
        self.tree, self.blocks, self.tags = tree, blocks, tags
        self.own: dict[Var, set[Var]] = {}
        """For each buffer of a thread's own the loops on which what is in it depends."""
        while True:
            before = {data: set(found) for data, found in self.own.items()}
            for block in blocks:
                for region in block.writes:
                    if _scope(region) in OWN_MEMORY:
                        self.own.setdefault(data_of(region), set()).update(self._depends(block))
            if before == self.own:
                return

    def _depends(self, block: S.Block) -> set[Var]:
        """The loops on which it depends what a block does."""
        around = [s for s in self.tree.around(block)]
        found = {v for s in (*walk_stmts((block,)), *around) for e in s.exprs() for v in variables(e)}
        for data in list(found):
            found |= self.own.get(data, set())
        return found

    def _loops(self, block: S.Block) -> list[S.For]:
        return self.tree.loops_around(block, all_of_them=True)

    # -- loops of one tag inside of each other

    def check_nested(self, block: S.Block) -> None:
        """LowerError where a turn of an outer loop is not the same for each turn of an inner one of its tag: a thread has
        one number."""
        loops = self._loops(block)
        for i, outer in enumerate(loops):
            inner = next((s for s in loops[i + 1 :] if s.kind == outer.kind and s.kind in S.THREAD_LOOPS), None)
            if inner is not None and (reason := self._differs(block, outer, inner)):
                raise LowerError(
                    f"'{block.name_hint}' is inside of two loops that are bound to {outer.kind.replace('_', '.')}, and {reason}",
                    f"let '{outer.loop_var.name}' not matter for what the threads of a block compute together: it needs the "
                    "shared memory for all of them",
                )

    def _differs(self, block: S.Block, outer: S.For, inner: S.For) -> str:
        around = [s for s in self.tree.around(block) if self.tree.is_inside(s, outer)]
        if any(outer.loop_var in variables(e) for s in (*walk_stmts((block,)), *around) for e in s.exprs()):
            return f"depends on '{outer.loop_var.name}', the outer one"
        within = [b for b in self.blocks if self.tree.is_inside(b, inner)]
        for region in (*block.reads, *block.writes):
            data = data_of(region)
            users = [b for b in self.blocks if any(data_of(r) is data for r in (*b.reads, *b.writes))]
            writers = [b for b in users if any(data_of(r) is data for r in b.writes)]
            between = [w for w in writers if self.tree.is_inside(w, outer) and not self._again(w, outer)]
            if between:
                return f"uses what '{between[0].name_hint}' computes for a turn of '{outer.loop_var.name}'"
            if _scope(region) in OWN_MEMORY and any(b not in within for b in users):
                return f"'{data.name}' is a thread's own"
            fixed = [*self.tree.loops_around(inner, all_of_them=True), inner]
            if reads_of(block, data) and any(w in within for w in writers):
                shape = region.buffer.shape
                if not turn_writes(self.tree, within, data, fixed, shape):
                    return f"reads '{data.name}' before it is written there"
        return ""

    def _again(self, block: S.Block, outer: S.For) -> bool:
        """Whether a block inside of a loop is in another one of its tag."""
        return any(s.kind == outer.kind and self.tree.is_inside(s, outer) for s in self._loops(block))

    # -- who stores

    def guards(self, block: S.Block) -> dict[Stmt, Sequence[Stmt]]:
        """What comes in the place of a block: loops of one turn around it for the tags of which all threads do the same."""
        scopes = {_scope(r) for r in block.writes}
        if scopes <= set(OWN_MEMORY):
            return {}
        single: list[str] = []
        for tag in self.tags:
            blocks = tag.startswith("blockIdx")
            if blocks and "global" not in scopes:
                continue
            bound = next((s for s in reversed(self._loops(block)) if s.kind == tag), None)
            if bound is not None and self._apart(block, bound):
                continue
            alike = bound is None or bound.loop_var not in self._depends(block)
            if bound is not None and self._points(block, bound):
                continue  # the same point in several turns
            if not alike or blocks or scopes & set(OWN_MEMORY):
                self._refuse(block, tag, bound)
            single.append(tag)
        made: Stmt = block
        for tag in single:
            var = Var(f"{tag.replace('Idx_', '_')}_one", INT32, True)
            made = loop(var, IntImm(INT32, 1), (made,)).replace(kind=tag)
        return {} if made is block else {block: (made,)}

    def _refuse(self, block: S.Block, tag: str, bound: S.For | None) -> None:
        shared = next(data_of(r).name for r in block.writes if _scope(r) not in OWN_MEMORY)
        where = "" if bound is None else f" ('{bound.loop_var.name}')"
        raise LowerError(
            f"'{block.name_hint}' writes elements of '{shared}' in several threads of {tag.replace('_', '.')}{where} at once",
            "bind a loop of which each turn writes elements of its own, or give the buffer memory of a thread "
            "(set_scope 'local')",
        )

    def _apart(self, block: S.Block, bound: S.For) -> bool:
        """Whether different turns of a loop write different elements."""
        mapping: dict[Var, Expr] = {a.var: a.binding for a in axes_of(block)}
        loops = self._loops(block)
        simplify = Simplifier(facts_of(loops)).expr
        sizes = {s.loop_var: turns_of(s) for s in loops}
        for store in _stores(block):
            if not _separate([simplify(at(i, mapping)) for i in store], sizes, (), bound.loop_var):
                return False
        return True

    def _points(self, block: S.Block, bound: S.For) -> bool:
        """Whether elements that several turns of a loop write are the same points of the block, which joins nothing and
        reads nothing of a thread's own."""
        written = {data_of(r) for r in block.writes}
        if block.init or any(data_of(r) in written or _scope(r) in OWN_MEMORY for r in block.reads):
            return False
        axes = axes_of(block)
        sizes = {a.var: constant(a.extent) or UNKNOWN for a in axes}
        if any(bound.loop_var in variables(e) for s in walk_stmts(block.body) for e in s.exprs()):
            return False
        chosen = [a.var for a in axes if bound.loop_var in variables(a.binding)]
        still = [s.loop_var for s in self._loops(block) if not s.kind.startswith("threadIdx")]  # where a window begins
        return all(_separate(i, sizes, still, var) for i in _stores(block) for var in chosen)


def _scope(region: E.BufferRegion) -> str:
    return data_of(region).pointer_type.scope


def _stores(block: S.Block) -> list[tuple[Expr, ...]]:
    """The indices of stores to memory that threads share."""
    found = [s for s in walk_stmts((*block.init, *block.body)) if isinstance(s, S.BufferStore)]
    return [s.indices for s in found if s.buffer.scope not in OWN_MEMORY]


def _separate(indices: Sequence[Expr], sizes: dict[Var, int], still: Sequence[Var], var: Var) -> bool:
    """Whether different values of a variable are different elements, while some others stand still. Indices of anything
    else do not count."""
    known = [i for i in indices if variables(i) <= {*sizes, *still}]
    known = [i for i in known if not any(isinstance(x, E.BufferLoad) for x in walk_exprs(i))]
    return separates(known, sizes, var)


# ------------------------------------------------------------------------------------------------------------------ TECs


def _checked(function: PrimFunc) -> PrimFunc:
    """The function. LowerError where TECs would join values into one element that they share."""
    tree = Tree(function)
    for block in tree.blocks.values():
        written = {r.buffer.data for r in block.writes}
        joins = block.init or any(r.buffer.data in written for r in block.reads)
        shared = any(w.pointer_type.scope not in OWN_MEMORY for w in written)
        if not joins or not shared:
            continue
        loops = tree.loops_around(block, all_of_them=True)
        for s in loops:
            if s.kind.startswith("threadIdx"):
                _check(block, s, loops, tree.implied_axes(block))
    return function


def _check(block: S.Block, bound: S.For, loops: list[S.For], implied: list[Axis]) -> None:
    axes = [*axes_of(block), *implied]
    for a in axes:
        if a.is_reduction and uses(a.binding, (bound.loop_var,)):
            raise LowerError(
                f"'{block.name_hint}' reduces over '{bound.loop_var.name}', which is bound to {bound.kind}: the TECs would join "
                "into one element",
                "rfactor the loop first, and bind that of the stage it makes",
            )
    extents: dict[Var, int] = {}
    for s in loops:
        extent = constant(s.stop)
        if extent is None:
            return  # sizes that are not known: the loops are as they were written
        extents[s.loop_var] = extent
    if not separates([a.binding for a in axes if not a.is_reduction], extents, bound.loop_var):
        raise LowerError(
            f"'{block.name_hint}' joins into the same elements in several turns of '{bound.loop_var.name}', which is bound to "
            f"{bound.kind}",
            "give it memory of the TEC (set_scope 'lsram'), or bind another loop",
        )
