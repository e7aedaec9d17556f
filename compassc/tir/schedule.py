"""The schedule of a module of blocks: steps that are checked, recorded and can be taken again."""

from __future__ import annotations

import secrets
from copy import copy
from typing import Any

from compassc.ir import stmts as S
from compassc.ir.errors import ExpressionError, ExpressionTypeError
from compassc.te.errors import NoSymbol
from compassc.tir.base import module_of
from compassc.tir.blockize import Blockizing
from compassc.tir.canonical import canonical
from compassc.tir.index_caching import IndexCaching
from compassc.tir.inlining import Inlining
from compassc.tir.layouts import Layouts
from compassc.tir.loops import Loops
from compassc.tir.partition import Partitioning
from compassc.tir.placement import Placement
from compassc.tir.queries import Queries
from compassc.tir.reductions import Reductions
from compassc.tir.roots import ROOT, RootBlock, root_block
from compassc.tir.sampling import Sampling
from compassc.tir.state import ScheduleState, StmtSRef
from compassc.tir.trace import BlockRV, ExprRV, LoopRV, Symbol, Trace, instruction

LARGEST_SEED = 2**31 - 1


class Schedule(
    Queries, Loops, Placement, Inlining, Layouts, IndexCaching, Reductions, Blockizing, Partitioning, Sampling
):
    """How a function of blocks is computed: `mod` is it as it is now, `trace` has the steps so far.

    `mod`: a PrimFunc or an IRModule. `seed` (1 to 2^31 - 1) is where sampling begins. `enable_check=False` leaves out
    whether the turns of loops depend on each other. `debug_mask` (1, 2 or "all") verifies the program, and the form that it
    is kept in, after each step. A step that is not legal is a ScheduleError and changes nothing.
    """

    def __init__(
        self,
        mod: object,
        *,
        seed: int | None = None,
        debug_mask: str | int = "none",
        error_render_level: str = "detail",
        enable_check: bool = True,
    ) -> None:
        _check_options(seed, debug_mask, error_render_level)
        module = module_of(mod).map_functions(canonical)
        super().__init__(module, seed or secrets.randbelow(LARGEST_SEED - 1) + 1, enable_check, Trace())
        self.error_render_level = error_render_level
        self.debug_mask = debug_mask if isinstance(debug_mask, int) else 3 * (debug_mask == "all")

    @classmethod
    def _create_non_traced(cls, mod: Any, **options: Any) -> Schedule:
        """A schedule that records no steps."""
        made = cls(mod, **options)
        made.trace = None
        return made

    def work_on(self, func_name: str) -> None:
        """The function that `get_block` looks into. ScheduleError (a ValueError) for one that is not there."""
        self.func_working_on = self.function(func_name).name

    def copy(self) -> Schedule:
        """An independent schedule of the same state, in which the symbols of this one are valid."""
        made = copy(self)
        if self.trace is not None:
            made.trace = Trace(list(self.trace.insts), dict(self.trace.decisions))
        made.drawn, made.depth = self.fork_seed(), 0
        made.symbols, made.noted, made._trees = dict(self.symbols), {}, self._trees.copy()
        return made

    def seed(self, seed: int) -> None:
        """Have sampling begin at a number, -1 for any. ExpressionError for none from 1 to 2^31 - 1."""
        if seed != -1:
            _check_options(seed, "none", "detail")
        self.drawn = secrets.randbelow(LARGEST_SEED - 1) + 1 if seed == -1 else seed

    def fork_seed(self) -> int:
        """A seed for another schedule."""
        self.drawn = 48271 * self.drawn % LARGEST_SEED
        return self.drawn * 32767 % 1999999973 or 1

    def get(self, rv: Symbol | StmtSRef) -> S.Stmt | RootBlock | int | None:
        """The loop, block or number that a symbol stands for, or what is referred to."""
        if isinstance(rv, StmtSRef):
            return rv.stmt
        if isinstance(rv, ExprRV):
            return int(self.number(rv))
        function, key = self.place(rv)
        if isinstance(key, str):
            return root_block(self.function(function).body) if key == ROOT else self.tree(function).blocks[key]
        return self.tree(function).loops[key]

    def get_sref(self, rv_or_stmt: object) -> StmtSRef | None:
        """The reference of what a symbol stands for, or of a loop or block."""
        return self.state.get_sref(rv_or_stmt)

    def remove_rv(self, rv: Symbol) -> None:
        """Forget a symbol."""
        if not isinstance(rv, Symbol) or rv not in self.symbols:
            raise NoSymbol(f"the {type(rv).__name__} is none of this schedule")
        del self.symbols[rv]

    @property
    def state(self) -> ScheduleState:
        """The module as it is now, and what is known of its blocks."""
        return ScheduleState(self)

    def show(self, *_: object, **__: object) -> None:
        """Print the module."""
        print(self.mod.script())

    @instruction("EnterPostproc")
    def enter_postproc(self) -> None:
        """Mark the place in the trace from which on steps only prepare for lowering."""


def _check_options(seed: object, debug_mask: object, level: object) -> None:
    if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int)):
        raise ExpressionTypeError(f"seed is an int, got {type(seed).__name__}")
    if seed is not None and not 1 <= seed <= LARGEST_SEED:
        raise ExpressionError(f"seed is 1 to {LARGEST_SEED}, got {seed}")
    if debug_mask not in ("none", "all") and not isinstance(debug_mask, int):
        raise ExpressionError(f"debug_mask is 'none', 'all' or a number, got {debug_mask!r}")
    if level not in ("detail", "fast", "none"):
        raise ExpressionError(f"error_render_level is detail, fast or none, got {level!r}")


__all__ = ["BlockRV", "ExprRV", "LoopRV", "Schedule"]
