"""Search: the machine tries programs for a workload, measures them, and keeps what it learns as records.

A `Task` is a workload with a space of candidates, each a JSON value; `measure` builds and runs candidates; strategies
choose which ones; `records` keeps results, and builds take the best from there.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from compass_core import switches
from compass_core.lazy import LazyModule

if TYPE_CHECKING:
    from compassc.graph import Layer
    from compassc.te.schedule import Schedule
    from compassc.te.tensor import Tensor
    from compassc.tuning import history
else:
    history = LazyModule("compassc.tuning.history")


@cache
def _shipped() -> str:
    """The text of the package's own records."""
    return "".join(path.read_text(encoding="utf-8") for path in (Path(__file__).parent / "shipped").glob("*"))


def may_be_on_record(name: str = "") -> bool:
    """Whether there may be records, of workloads of this name where one is given, found out without loading what reads
    them."""
    if "compassc.tuning.history" in sys.modules or switches.TUNING.get():
        return True
    return f'"{name}"' in _shipped() if name else bool(_shipped())


def are_others_on_record() -> bool:
    """Whether builds here and now take other records than those of the package."""
    if "compassc.tuning.history" not in sys.modules:
        return bool(switches.TUNING.get())
    return history.has_others()


def best_choices(layers: Sequence[Layer], target: str) -> Mapping[str, str] | None:
    """The choices of a layers' kernel that are best on record (`layer_task`)."""
    if not may_be_on_record("+".join(layer.type for layer in layers)):
        return None
    from compassc.tuning import layer_task

    return layer_task.best_choices(layers, target)


def best_schedule(outputs: Sequence[Tensor], target: str) -> Schedule | None:
    """The schedule of operators that is best on record (`operators`)."""
    if not may_be_on_record():
        return None
    from compassc.tuning import operators

    return operators.best_schedule(outputs, target)
