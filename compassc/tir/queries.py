"""What a schedule has: its blocks and loops, and which block needs which."""

from __future__ import annotations

from compass_core import vendor
from compassc.ir import stmts as S
from compassc.ir.errors import ExpressionTypeError
from compassc.ir.visit import walk_stmts
from compassc.te.errors import ScheduleError
from compassc.tir.base import MAIN, Base
from compassc.tir.checks import read, written
from compassc.tir.roots import ROOT
from compassc.tir.trace import BlockRV, LoopRV, instruction
from compassc.tir.tree import Tree


class Queries(Base):
    """Steps that find and change nothing."""

    @instruction("GetBlock", (), ("name", "func_name"), pure=True)
    def get_block(self, name: str, func_name: str | None = None) -> BlockRV:
        """The block of a name; `root` is the function itself. ScheduleError when there is none."""
        if not isinstance(name, str):
            raise ExpressionTypeError(f"get_block: name is a str, got {type(name).__name__}")
        function = func_name or self.func_working_on
        if function is None:
            raise ScheduleError(
                f"get_block of '{name}': the schedule does not know which function to be working on",
                "give func_name, or call work_on",
            )
        function = self.function(function).name
        tree = self.tree(function)
        alone = vendor.names_in_use and len(self.mod.functions) == 1
        self.noted = {"func_name": MAIN if alone else function}
        if name not in tree.blocks and name != ROOT:
            known = ", ".join(tree.blocks) or "none"
            brief = f"Cannot find a block with the specified name: '{name}'; '{function}' has {known}"
            raise ScheduleError(f"Cannot find a block with the name: {name}: '{function}' has {known}", brief=brief)
        return self.new_block(function, name)

    @instruction("GetLoops", ("block",), pure=True)
    def get_loops(self, block: BlockRV) -> list[LoopRV]:
        """The loops around a block, outermost first, within the block that it is in."""
        function, key = self.place(block)
        if key == ROOT:
            return []
        tree = self.tree(function)
        assert isinstance(key, str)
        return [self.new_loop(function, s.loop_var) for s in tree.loops_around(tree.blocks[key])]

    @instruction("GetChildBlocks", ("block_or_loop",), pure=True)
    def get_child_blocks(self, block_or_loop: BlockRV | LoopRV) -> list[BlockRV]:
        """The blocks directly inside of a block or loop, in order."""
        function, inside = self._inside(block_or_loop)
        return [self.new_block(function, b.name_hint) for b in inside]

    def _inside(self, rv: BlockRV | LoopRV) -> tuple[str, list[S.Block]]:
        function, key = self.place(rv)
        tree = self.tree(function)
        if isinstance(key, str):
            return function, tree.inside(None if key == ROOT else tree.blocks[key])
        return function, tree.inside(tree.loops[key])

    @instruction("GetProducers", ("block",), pure=True)
    def get_producers(self, block: BlockRV) -> list[BlockRV]:
        """The blocks of the same scope that write, before it, what a block reads or writes."""
        function, tree, s = self.located_block(block)
        return [self.new_block(function, b.name_hint) for b in producers_of(tree, s)]

    @instruction("GetConsumers", ("block",), pure=True)
    def get_consumers(self, block: BlockRV) -> list[BlockRV]:
        """The blocks of the same scope that read or write, after it, what a block writes."""
        function, tree, s = self.located_block(block)
        return [self.new_block(function, b.name_hint) for b in consumers_of(tree, s)]

    @instruction("GetOutputBlocks", ("scope_block",), pure=True)
    def get_output_blocks(self, scope_block: BlockRV) -> list[BlockRV]:
        """The blocks of a scope that write what is needed outside of it."""
        function, inside = self._inside(scope_block)
        tree = self.tree(function)
        return [self.new_block(function, b.name_hint) for b in inside if is_output(self, function, tree, b)]


def producers_of(tree: Tree, block: S.Block) -> list[S.Block]:
    """The blocks of the same scope that write, before it, what a block reads or writes."""
    needed = read(block) | written(block)
    before = [b for b in tree.inside(tree.scope(block)) if tree.order[b] < tree.order[block]]
    return [b for b in before if written(b) & needed]


def consumers_of(tree: Tree, block: S.Block) -> list[S.Block]:
    """The blocks of the same scope that read or write, after it, what a block writes."""
    own = written(block)
    after = [b for b in tree.inside(tree.scope(block)) if tree.order[b] > tree.order[block]]
    return [b for b in after if (read(b) | written(b)) & own]


def has_block(sch: Base, block_name: str) -> bool:
    """Whether a function of a schedule's module has a block of a name."""
    return any(block_name in sch.tree(f.name).blocks for f in sch.mod.functions)


def is_output_block(sch: Base, block_rv: BlockRV) -> bool:
    """Whether a block writes what is needed outside of its scope."""
    return is_output(sch, *sch.located_block(block_rv))


def is_output(schedule: Base, function: str, tree: Tree, block: S.Block) -> bool:
    """Whether a block writes what is needed outside of its scope."""
    scope = tree.scope(block)
    inside = schedule.function(function).body if scope is None else scope.body

    own = {s.buffer.data for s in walk_stmts(inside) if isinstance(s, S.Alloc)}
    return bool(written(block) - own)
