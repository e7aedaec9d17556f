"""The kernel parser: Python source to IR."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .module import parse


def __getattr__(name: str) -> object:
    """`parse` is loaded at its first use: values of kernels need nothing of it."""
    if name != "parse":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .module import parse

    return parse


__all__ = ["parse"]
