"""What a stage took from tuning records, for the record of the build."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_taken: ContextVar[dict[str, str] | None] = ContextVar("taken", default=None)


@contextmanager
def collecting() -> Iterator[dict[str, str]]:
    """Within it, what is taken is kept: by what it is for, in words."""
    taken: dict[str, str] = {}
    token = _taken.set(taken)
    try:
        yield taken
    finally:
        _taken.reset(token)


def took(what: str, how: str) -> None:
    """Notes that something was built as a record says."""
    taken = _taken.get()
    if taken is not None:
        taken[what] = how
