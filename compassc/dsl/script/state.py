"""What is going on right now: the module parsers that are active (innermost last)."""

from __future__ import annotations

from typing import Any

ACTIVE: list[Any] = []


def parsing() -> bool:
    """Whether a kernel is being parsed, so that calls build IR."""
    return bool(ACTIVE)
