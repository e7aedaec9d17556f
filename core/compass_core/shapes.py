"""Shapes of arrays, as NumPy has them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def broadcast_shape(shapes: Sequence[Sequence[object]]) -> tuple[int, ...]:
    """The shape that all are stretched to: where sizes differ, all but one are 1. ValueError where they do not go together.

    A size that is no integer (an expression) goes with any other; where one is known, it is that one.
    """
    rank = max(map(len, shapes))
    found: list[Any] = []
    for place in range(rank, 0, -1):
        sizes = [s[-place] for s in shapes if len(s) >= place]
        wide = [n for n in sizes if not (isinstance(n, int) and n == 1)] or [1]
        known = {n for n in wide if isinstance(n, int)}
        if len(known) > 1:
            raise ValueError(f"the shapes {' and '.join(str(tuple(s)) for s in shapes)} do not go together")
        found.append(known.pop() if known else wide[0])
    return tuple(found)
