"""Blocks and loops by reference, and what is known of them."""

from __future__ import annotations

from typing import Any

from compass_core.errors import UsageError
from compassc.ir import IRModule
from compassc.ir import stmts as S
from compassc.tir.base import Base
from compassc.tir.roots import ROOT, RootBlock, root_block
from compassc.tir.scopes import CachedFlags, Dependency, cached_flags, dependencies
from compassc.tir.trace import Symbol
from compassc.tir.tree import Tree, edit


class StmtSRef:
    """A loop or block of a schedule's module: `stmt`, and what is around it, `parent`."""

    def __init__(self, state: ScheduleState | None, function: str, stmt: S.Stmt | RootBlock | None) -> None:
        self.state, self.function, self.stmt = state, function, stmt

    @property
    def parent(self) -> StmtSRef | None:
        """The loop or block around it; None for the block that a function is."""
        if self.state is None or isinstance(self.stmt, RootBlock) or self.stmt is None:
            return None
        around = self.state.tree(self.function).around(self.stmt)
        found = next((s for s in around if isinstance(s, (S.For, S.Block))), None)
        return self.state.get_sref(found or self.state.root(self.function))

    seq_index = -1

    def same_as(self, other: object) -> bool:
        """Whether the other one is of the same statement."""
        return isinstance(other, StmtSRef) and self.stmt is other.stmt

    __eq__ = same_as

    def __hash__(self) -> int:
        return id(self.stmt)

    @staticmethod
    def inline_mark() -> StmtSRef:
        """Stands for a block that is written out where it is used."""
        return _INLINE

    @staticmethod
    def root_mark() -> StmtSRef:
        """Stands for a block that is in no loop of others."""
        return _ROOT


_INLINE, _ROOT = StmtSRef(None, "", None), StmtSRef(None, "", None)


class BlockScope:
    """Which blocks of a scope have to stay behind which."""

    def __init__(self, state: ScheduleState, found: list[Dependency]) -> None:
        self.state, self.found = state, found

    def get_deps_by_src(self, block: StmtSRef) -> list[Dependency]:
        """What has to stay behind a block."""
        return [self._shown(d) for d in self.found if d.src is block.stmt]

    def get_deps_by_dst(self, block: StmtSRef) -> list[Dependency]:
        """What a block has to stay behind."""
        return [self._shown(d) for d in self.found if d.dst is block.stmt]

    def _shown(self, d: Dependency) -> Any:
        return d._replace(src=self.state.get_sref(d.src), dst=self.state.get_sref(d.dst))  # type: ignore[arg-type]


class ScheduleState:
    """The module of a schedule, with references to its loops and blocks."""

    def __init__(self, schedule: Base) -> None:
        self.schedule = schedule

    @property
    def mod(self) -> IRModule:
        """The module as it is now."""
        return self.schedule.mod

    debug_mask = property(lambda self: self.schedule.debug_mask)
    enable_check = property(lambda self: self.schedule.enable_check)

    def tree(self, function: str) -> Tree:
        """The loops and blocks of a function."""
        return self.schedule.tree(function)

    def root(self, function: str) -> RootBlock:
        """The block that a function is."""
        return root_block(self.schedule.function(function).body)

    def get_sref(self, stmt: object) -> StmtSRef | None:
        """The reference of a loop or block; None for one that the module does not have."""
        if isinstance(stmt, Symbol):
            function, key = self.schedule.place(stmt)
            tree = self.tree(function)
            found = (
                self.root(function) if key == ROOT else tree.blocks[key] if isinstance(key, str) else tree.loops[key]
            )
            return StmtSRef(self, function, found)
        stmt = getattr(stmt, "block", stmt)
        if isinstance(stmt, tuple) and len(stmt) == 1:  # a body of one statement
            stmt = stmt[0]
        for f in self.mod.functions:
            if stmt is self.root(f.name) or stmt in self.tree(f.name).parents:
                return StmtSRef(self, f.name, stmt)
        return None

    def get_block_scope(self, block_sref: StmtSRef) -> BlockScope:
        """What is known of the blocks in a block."""
        return BlockScope(self, dependencies(self.tree(block_sref.function), _own(block_sref)))

    def _get_cached_flags(self, block_sref: StmtSRef) -> CachedFlags:
        return cached_flags(self.tree(block_sref.function), _own(block_sref))

    def replace(self, src_sref: StmtSRef, tgt_stmt: Any, block_sref_reuse: object = None) -> None:
        """Put a statement in the place of a loop or block; in that of the block that a function is, another one without axes.
        Nobody looks whether the program is one then."""
        looked, self.schedule.debug_mask = self.schedule.debug_mask, 0
        try:
            self._replace(src_sref, tgt_stmt)
        finally:
            self.schedule.debug_mask = looked

    def _replace(self, src_sref: StmtSRef, tgt_stmt: Any) -> None:
        name, old = src_sref.function, src_sref.stmt
        if src_sref.stmt is None:
            raise UsageError("the reference stands for no statement", code="input", help="take one of get_sref")
        if isinstance(src_sref.stmt, RootBlock):
            if not isinstance(tgt_stmt, RootBlock) and not (isinstance(tgt_stmt, S.Block) and not tgt_stmt.vars):
                raise UsageError(
                    "a function is a block without axes", code="input", help="give a Block without iter_vars"
                )
            declared = tuple(s for s in src_sref.stmt.whole if isinstance(s, S.DeclBuffer))
            whole = tgt_stmt.body if isinstance(tgt_stmt, S.Block) else tgt_stmt.whole
            self.schedule.commit(name, (*declared, *(s for s in whole if not isinstance(s, S.DeclBuffer))))
            src_sref.stmt = self.root(name)
            return
        made_alone = isinstance(tgt_stmt, S.Block) and tgt_stmt.iter_values == tgt_stmt.vars
        if isinstance(old, S.Block) and made_alone and len(old.vars) == len(tgt_stmt.vars):
            tgt_stmt = tgt_stmt.replace(iter_values=old.iter_values, predicate=old.predicate)
        made = tgt_stmt if isinstance(tgt_stmt, tuple) else (tgt_stmt,)
        body = edit(self.schedule.function(name).body, {src_sref.stmt: made})
        self.schedule.commit(name, body, form=False)
        src_sref.stmt = made[0]


def _own(sref: StmtSRef) -> S.Block | None:
    return sref.stmt if isinstance(sref.stmt, S.Block) else None


class ScheduleDebugMask:
    """What a schedule looks at after each step."""

    VERIFY_SREF_TREE = 1
    VERIFY_CACHED_FLAGS = 2
