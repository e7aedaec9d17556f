"""Decisions of a program that is made while it asks: given ones where they are possible, else random ones.

A sketch asks for what it needs, by name, and says what is possible there. So what can be chosen may depend on what was
chosen before, and every set of decisions that comes out is one that the sketch can be made with.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from math import log2, prod
from random import Random
from typing import Any

from compassc.tuning.space import nearest
from compassc.tuning.task import Infeasible


class Choices:
    """The decisions of one run. `made`: all of them by name; `counts`: how many possibilities each had."""

    def __init__(
        self, given: Mapping[str, Any], rng: Random | None = None, changed: str = "", near: bool = False
    ) -> None:
        """`given`: decisions to be taken where they are possible. `rng`: makes the others; without it they are
        Infeasible. `changed`: the one that must not stay as given. `near`: they are of other sizes, so take what is most
        like them."""
        self._given, self._rng, self._changed, self._near = given, rng, changed, near
        self.made: dict[str, Any] = {}
        self.counts: dict[str, int] = {}

    def one_of(self, name: str, options: Sequence[object], weights: Sequence[float] | None = None) -> Any:
        """One of the options: numbers, words, truth values, or lists of these. `weights`: how likely each is at random."""
        if not options:
            raise Infeasible(f"there is nothing to choose for '{name}'")
        self.counts[name] = len(options)
        chosen = self._chosen(name, options, weights)
        self.made[name] = chosen
        return chosen

    def _chosen(self, name: str, options: Sequence[object], weights: Sequence[float] | None) -> Any:
        wanted = self._given.get(name)
        at = next((i for i, o in enumerate(options) if o == wanted and type(o) is type(wanted)), None)
        if name == self._changed and at is not None and self._rng is not None and len(options) > 1:
            near = [i for i in (at - 1, at + 1) if 0 <= i < len(options)]
            others = [i for i in range(len(options)) if i != at]
            return options[self._rng.choice(near if self._rng.random() < 0.5 else others)]
        if at is not None:
            return options[at]
        if self._near and name in self._given:
            return nearest(wanted, options)
        if self._rng is None:
            raise Infeasible(f"the decision '{name}' is {wanted!r}, which is none of what is possible")
        return self._rng.choices(options, weights)[0] if weights else self._rng.choice(options)

    def tile(
        self, name: str, extent: int, parts: int, most: int, likely: Callable[[Sequence[int]], float] | None = None
    ) -> list[int]:
        """Sizes of `parts` loops for an extent; those but the first together at most `most`, and all divide it where
        there are enough divisors. `likely`: how likely each is at random."""
        options = [[-(-extent // prod(t)), *t] for t in _tiles(extent, parts - 1, most)]
        if self._near and name in self._given:
            return list(self.one_of(name, [_most_like(self._given[name], options)]))
        found = self.one_of(name, options, [likely(o) for o in options] if likely else None)
        return list(found)


def _most_like(wanted: Sequence[int], options: Sequence[Sequence[int]]) -> Sequence[int]:
    """The sizes of loops whose inner ones differ by the smallest factors from those wanted."""
    if len(wanted) != len(options[0]):
        return options[0]
    return min(options, key=lambda sizes: sum(abs(log2(a / b)) for a, b in zip(sizes[1:], wanted[1:])))


@lru_cache(maxsize=512)
def _tiles(extent: int, parts: int, most: int) -> tuple[tuple[int, ...], ...]:
    if not parts:
        return ((),)
    found = []
    for size in sizes_of(extent):
        if size <= most:
            found += [(*outer, size) for outer in _tiles(-(-extent // size), parts - 1, most // size)]
    return tuple(sorted(found, key=lambda t: (t[-1], t)))


@lru_cache(maxsize=512)
def sizes_of(extent: int) -> tuple[int, ...]:
    """Sizes of an inner loop: the divisors of an extent, and powers of two where it has few."""
    divisors = {d for d in range(1, extent + 1) if extent % d == 0}
    if len(divisors) < 4:
        divisors |= {1 << i for i in range(extent.bit_length()) if 1 << i < extent}
    return tuple(sorted(divisors))
