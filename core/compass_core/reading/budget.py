"""What reading one file costs, asked before it is spent: bytes, operations, nodes.

A limit says how much there may be at once; a budget adds up what a file asks for from its beginning to its end, so that
many small requests are no way around a limit. One budget belongs to one file, and all who read parts of it take from it.
"""

from __future__ import annotations

from collections.abc import Mapping

from compass_core.errors import Span
from compass_core.reading.limits import Limit


class Budget:
    """What one file has taken of each limit.

    `where`: the file, which errors name. `granted`: what it may take beyond a limit, such as a multiple of its own size.
    """

    def __init__(self, where: str, granted: Mapping[Limit, int] | None = None) -> None:
        self.where = where
        self.granted = dict(granted or {})
        self._taken: dict[str, int] = {}

    def take(self, limit: Limit, amount: int, what: str = "", span: Span | None = None) -> None:
        """Takes `amount` more of a limit. CompassError (`limit-exceeded`) when that is more than is left; it names the
        file, `what` asks for it, how much that is, and how the limit is raised."""
        taken = self._taken[limit.what] = self._taken.get(limit.what, 0) + amount
        if taken > limit.most:
            limit.check(taken - self.granted.get(limit, 0), f"{self.where}: {what}" if what else self.where, span)

    def left(self, limit: Limit) -> int:
        """How much more of a limit may be taken."""
        return limit.allowed + self.granted.get(limit, 0) - self._taken.get(limit.what, 0)
