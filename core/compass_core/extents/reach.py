"""The reach of a kernel's accesses into each tensor."""

from __future__ import annotations

from collections.abc import Iterable

from .values import Form, Linear, bounds, is_exact, reason_of

FARTHEST = 1 << 32
"""Bytes; an estimate beyond that is none, for no device has as much memory."""
VAGUE = 1 << 20
"""Bytes that an address that depends on data may vary by, for its bounds to be an estimate."""


class Reach:
    """How far accesses go into each tensor, in bytes: those that certainly happen, and all that may.

    `attained`: what a closer look at the loop at hand would not change, whether it happens or not.
    """

    __slots__ = ("attained", "certain", "most", "unknown")

    def __init__(self, names: Iterable[str]) -> None:
        self.certain: dict[str, int] = dict.fromkeys(names, 0)
        self.most = dict(self.certain)
        self.attained = dict(self.certain)
        self.unknown: dict[str, str] = {}

    def saved(self) -> tuple[dict[str, int], dict[str, str]]:
        return dict(self.most), dict(self.unknown)

    def restore(self, saved: tuple[dict[str, int], dict[str, str]]) -> None:
        self.most, self.unknown = dict(saved[0]), dict(saved[1])

    def settled(self, before: tuple[dict[str, int], dict[str, str]]) -> bool:
        """Whether everything since `before` is known exactly."""
        if len(self.unknown) > len(before[1]):
            return False
        certain, attained, then = self.certain, self.attained, before[0]
        return all(most <= max(certain[name], attained[name], then[name]) for name, most in self.most.items())

    def note(self, root: str, end: Linear, size: Linear, maybe: bool, fixed: bool) -> None:
        """An access of `size` bytes up to `end`. `fixed`: no closer look tells more of whether it happens."""
        if bounds(size)[1] <= 0:
            return
        most, exact, data = bounds(end)[1], is_exact(end), bool(reason_of(end))
        low, high = (end.low, end.high) if isinstance(end, Form) else (end, end)
        if most >= FARTHEST or (data and high - max(low, 0) > VAGUE):
            self.unknown.setdefault(root, reason_of(end) or "the index arithmetic leaves every address")
        elif most > self.most[root]:
            self.most[root] = most
        if (fixed or not maybe) and (exact or data) and (bounds(size)[0] > 0 or reason_of(size)):
            self.attained[root] = max(self.attained[root], most)
        if not maybe and bounds(size)[0] > 0:
            sure = most if exact else most - (high - low)
            if self.certain[root] < sure < FARTHEST:
                self.certain[root] = sure

    def blame_all(self, reason: str) -> None:
        """An access that may be anywhere."""
        for name in self.most:
            self.unknown.setdefault(name, reason)
