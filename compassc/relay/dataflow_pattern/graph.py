"""Who uses an expression, and which expressions all its uses lead to."""

from __future__ import annotations

from functools import cached_property

from compassc.relay.expr import Call, Expr
from compassc.relay.visit import children, post_dominators, post_order


def inputs(e: Expr) -> tuple[Expr, ...]:
    """The expressions that an expression takes values from: its children but for the callee."""
    return children(e)[1:] if isinstance(e, Call) else children(e)


class Graph:
    """A program as a graph: its expressions in `order`, children before what they are part of."""

    def __init__(self, root: Expr) -> None:
        self.order = list(post_order(root))
        self.index = {id(e): i for i, e in enumerate(self.order)}

    @cached_property
    def users(self) -> list[list[int]]:
        """The places of the expressions that each one is a child of."""
        found: list[list[int]] = [[] for _ in self.order]
        for i, e in enumerate(self.order):
            for child in children(e):
                found[self.index[id(child)]].append(i)
        return found

    @cached_property
    def next_common(self) -> list[int]:
        """For each expression the place of the first one that all ways from it to the root go through."""
        return post_dominators(self.users)

    def dominates(self, e: Expr, part: Expr) -> bool:
        """Whether all ways from `part` to the root go through `e`."""
        place, goal = self.index[id(part)], self.index[id(e)]
        while place < goal:
            place = self.next_common[place]
        return place == goal
