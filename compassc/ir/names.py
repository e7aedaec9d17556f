"""The allocator of names: of variables, buffers, blocks, functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable


def _numbered(name: str, number: int) -> str:
    return f"{name}_{number}"


def identifier(name: str) -> str:
    """The name with `_` for what identifiers do not have."""
    return "".join([c if c.isalnum() or c == "_" else "_" for c in name])


class NamePool:
    """Gives out each name once.

    `taken`: names that are not given out. `variant` makes another name of one that is taken and 1, 2, ...
    """

    def __init__(self, taken: Iterable[str] = (), variant: Callable[[str, int], str] = _numbered) -> None:
        self.taken = set(taken)
        self.variant = variant
        self._numbers: dict[str, int] = {}

    def __copy__(self) -> NamePool:
        return NamePool(self.taken, self.variant)

    def take(self, name: str) -> str:
        """`name`, or its first variant that is free, which is taken from now on."""
        found = name
        if found in self.taken:
            number = self._numbers.get(name, 0)
            while found in self.taken:
                number += 1
                found = self.variant(name, number)
            self._numbers[name] = number
        self.taken.add(found)
        return found
