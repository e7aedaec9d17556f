"""Records that others have published: there are none here, and nothing is loaded from anywhere."""

from __future__ import annotations

from collections.abc import Iterable

from .contexts import ApplyHistoryBest, Records


class EmptyContext:
    """A context that changes nothing."""

    def __enter__(self) -> EmptyContext:  # noqa: PYI034 - typing.Self is younger than Python 3.10
        return self

    def __exit__(self, *error: object) -> None:
        """Nothing."""


def context(target: object, extra_files: Iterable[Records] | None = None) -> EmptyContext | ApplyHistoryBest:
    """The records of files of one's own; without any a context that changes nothing."""
    files = list(extra_files or ())
    if not files:
        return EmptyContext()
    made = ApplyHistoryBest(None)
    for path in files:
        made.load(path)
    return made


def check_backend(tophub_location: str, backend: str) -> bool:
    """Whether there are published records: no."""
    return False
