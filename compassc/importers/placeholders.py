"""Files that are called like a model, but hold a text in its place."""

from __future__ import annotations

from compass_core.namedtuple import NamedTuple


class Placeholder(NamedTuple):
    """What a file holds instead of a model, and what to do."""

    what: str
    help: str


_LFS = Placeholder("a pointer of Git LFS, not the file itself", "fetch it: git lfs pull")
_PAGE = Placeholder(
    "a page of HTML, as servers send it for addresses that need a login or do not exist", "download it again"
)
_TEXT = {b"version https://git-lfs.github.com/spec/": _LFS, b"<!doctype html": _PAGE, b"<html": _PAGE}

START = 512
"""Of a file, in which it shows what it holds."""


def placeholder(content: bytes) -> Placeholder | None:
    """What stands in the place of a model in a file of this content; None where nothing such does."""
    start = content[:START].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    return next((found for mark, found in _TEXT.items() if start.startswith(mark)), None)
