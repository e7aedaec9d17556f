"""Passes as the vendor's programs call them: `transform.FoldConstant()(module)`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from compass_core.errors import UsageError
from compassc import passes
from compassc.ir import IRModule


def __getattr__(name: str) -> Callable[[], Callable[[IRModule], IRModule]]:
    """The factory of a pass: called, it gives the function from module to module."""
    try:
        found = passes.pass_name(name)
    except UsageError:
        raise AttributeError(f"there is no pass {name}") from None
    return lambda: partial(passes.run_pipeline, (found,))


def __dir__() -> list[str]:
    return sorted([found.name for found in passes.describe()] + list(passes.KERNELS.aliases))
