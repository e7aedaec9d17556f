"""What is remembered because it takes time to make."""

from __future__ import annotations

from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Bounded(dict[K, V]):
    """A dictionary of what can be made again, which is emptied before an item would be one more than `most`.

    Items come by `[]=` alone. Whoever takes one keeps it, so that nobody misses what was dropped.
    """

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most

    def copy(self) -> Bounded[K, V]:
        made = Bounded[K, V](self.most)
        made.update(self)
        return made

    def __setitem__(self, key: K, value: V) -> None:
        if len(self) >= self.most and key not in self:
            self.clear()
        super().__setitem__(key, value)
