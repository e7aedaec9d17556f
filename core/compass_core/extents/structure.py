"""Questions to the text of an extents program: what a body defines, changes and may do."""

from __future__ import annotations

from typing import Any

BODIES = {"for": (5,), "tec": (4,), "while": (2,), "if": (2, 3), "kernel": (1,)}
"""Where statements keep their nested bodies."""


def assigned(body: list[Any]) -> list[str]:
    """Variables a body gives a new value, as often as it does."""
    found = [s[1] for s in body if s[0] == "set"]
    for s in body:
        for position in BODIES.get(s[0], ()):
            found += 2 * assigned(s[position])  # not in each iteration just once
    return found


def defined(body: list[Any]) -> set[str]:
    """Variables a body defines or gives a new value."""
    found = {s[1] for s in body if s[0] in ("set", "let", "for", "tec")}
    for s in body:
        for position in BODIES.get(s[0], ()):
            found |= defined(s[position])
    return found


def leaves(body: list[Any], loop: bool = False) -> bool:
    """Whether a body may end the loop it is the body of."""
    for s in body:
        if s[0] == "return" or (s[0] == "break" and not loop):
            return True
        if any(leaves(s[at], loop or s[0] in ("for", "while")) for at in BODIES.get(s[0], ())):
            return True
    return False


def size(x: Any) -> int:
    """How many steps a body takes, about."""
    return 1 + sum(map(size, x[1:] if x and isinstance(x[0], str) else x)) if isinstance(x, list) else 1


def mentions(e: Any, names: set[str]) -> bool:
    """Whether an expression depends on variables, or on what is not known before the loop."""
    if isinstance(e, str):
        return e in names
    return isinstance(e, list) and (e[0] in ("?", "call") or any(mentions(x, names) for x in e[1:]))
