"""What reading one file costs, asked before it is spent: bytes, operations, nodes.

A limit says how much there may be at once; a budget adds up what a file asks for from its beginning to its end, so that
many small requests are no way around a limit. One budget belongs to one file, and all who read parts of it take from it.
"""

from __future__ import annotations

from collections.abc import Callable

from compass_core.errors import Span
from compass_core.reading.limits import Limit


class Budget:
    """What one file has taken of each limit.

    `where`: the file, which errors name. `size`: its bytes, asked when a limit grows with them.
    """

    def __init__(self, where: str, size: Callable[[], int] = lambda: 0) -> None:
        self.where = where
        self._size = size
        self._taken: dict[str, int] = {}

    def take(self, limit: Limit, amount: int, what: str = "", span: Span | None = None) -> None:
        """Takes `amount` more of a limit. CompassError (`limit-exceeded`) when that is more than is left; it names the
        file, `what` asks for it, how much that is, and how the limit is raised."""
        taken = self._taken[limit.what] = self._taken.get(limit.what, 0) + amount
        if taken > limit.most:
            self._whole(limit).check(taken, f"{self.where}: {what}" if what else self.where, span)

    def grants(self, limit: Limit, amount: int) -> bool:
        """Whether `amount` more is left, which is taken then: for work that need not be done."""
        taken = self._taken.get(limit.what, 0) + amount
        if taken > limit.most and taken > self._whole(limit).allowed:
            return False
        self._taken[limit.what] = taken
        return True

    def _whole(self, limit: Limit) -> Limit:
        """The limit with what the size of the file adds."""
        return limit._replace(most=limit.most + limit.per_byte * self._size()) if limit.per_byte else limit
