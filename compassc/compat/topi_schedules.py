"""The framework's schedules of operators by kind of target, `topi.cuda.schedule_reduce(outs)`: the default schedule here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..targets import Target

_PREFIX = "schedule_"


class _Family:
    """Schedules (`schedule_NAME(outs)`) for the current target, or where there is none for `kind`; and the operators."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def __getattr__(self, name: str) -> Callable[..., Any]:
        from .. import topi

        if name == "default_schedule" or name.startswith(_PREFIX):
            return lambda outs, *_: topi.schedule(outs, Target.current() or self.kind)
        for home in (topi, topi.nn):
            if name in home.__all__ and not name.startswith("_"):
                found: Callable[..., Any] = getattr(home, name)
                return found
        raise AttributeError(f"there is no operator {name}")


cuda, x86, generic = _Family("cuda"), _Family("llvm"), _Family("llvm")
