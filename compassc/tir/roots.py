"""The blocks that functions are."""

from __future__ import annotations

from collections import deque

from compassc.analysis.conditions import TRUE
from compassc.ir import stmts as S
from compassc.ir.exprs import Buffer
from compassc.ir.members import Attributes
from compassc.ir.node import Statements
from compassc.ir.visit import walk_stmts

ROOT = "root"
"""The name of the block that a function is."""


class RootBlock:
    """The block that a function of blocks is: without axes, with the function's memory and statements."""

    name_hint, iter_vars, reads, writes, match_buffers = ROOT, (), (), (), ()
    predicate, iter_values, init, annotations = TRUE, (), None, Attributes(())

    def __init__(self, body: S.Body) -> None:
        self.whole = body
        self.alloc_buffers = allocated(body)
        self.body = Statements(s for s in body if not isinstance(s, (S.DeclBuffer, S.Alloc)))

    block = property(lambda self: self)

    def same_as(self, other: object) -> bool:
        """Whether the other one is this block."""
        return self is other


def root_block(body: S.Body) -> RootBlock:
    """The block that the body of a function is, the same one each time."""
    made: RootBlock | None = next((r for r in _roots if r.whole is body), None)
    if made is None:
        made = RootBlock(body)
        _roots.append(made)
    return made


_roots: deque[RootBlock] = deque(maxlen=64)


def is_root(body: S.Body) -> bool:
    """Whether statements are the body of a function of blocks: one that begins with the buffers of its parameters."""
    declares = any(isinstance(s, S.DeclBuffer) for s in body)
    return declares and any(isinstance(s, S.Block) for s in walk_stmts(body))


def allocated(body: S.Body) -> tuple[Buffer, ...]:
    """The memory that a body begins with."""
    return tuple(s.buffer for s in body if isinstance(s, S.Alloc))
