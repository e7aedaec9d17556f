"""Nearest-name suggestions, worded the same everywhere a user can misspell a name."""

from __future__ import annotations

from collections.abc import Iterable

_MOST = 60
"""So many names are listed."""


def nearest(name: str, names: Iterable[str]) -> str | None:
    """The member of `names` that `name` most likely means, letter case apart; None when nothing is close."""
    from difflib import get_close_matches

    by_folded = {candidate.casefold(): candidate for candidate in names}
    found = get_close_matches(name.casefold(), by_folded, n=1, cutoff=0.6)
    return by_folded[found[0]] if found else None


def help_for(name: str, names: Iterable[str], what: str) -> str:
    """A help text for the unknown `name`: the nearest of `names`, else the first of them. `what` is the plural noun."""
    names = tuple(names)
    near = nearest(name, names)
    listed = names[:_MOST] + ((f"and {len(names) - _MOST} more",) if len(names) > _MOST else ())
    return f"did you mean '{near}'?" if near else f"{what}: {', '.join(listed) or 'none'}"
