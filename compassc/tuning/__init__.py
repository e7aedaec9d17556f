"""Search: the machine tries programs for a workload, measures them, and keeps what it learns as records.

A `Task` is a workload with a space of candidates, each a JSON value; `measure` builds and runs candidates; strategies
choose which ones; `records` keeps results, and builds take the best from there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from compass_core import switches

if TYPE_CHECKING:
    from compassc.graph import Layer
    from compassc.te.schedule import Schedule
    from compassc.te.tensor import Tensor


def may_be_on_record() -> bool:
    """Whether there are any records, found out without loading what reads them."""
    import sys
    from pathlib import Path

    if "compassc.tuning.history" in sys.modules or switches.TUNING.get():
        return True
    return (Path(__file__).parent / "shipped").is_dir()


def best_choices(layers: Sequence[Layer], target: str) -> Mapping[str, str] | None:
    """The choices of a layers' kernel that are best on record (`layer_task`)."""
    if not may_be_on_record():
        return None
    from compassc.tuning import layer_task

    return layer_task.best_choices(layers, target)


def best_schedule(outputs: Sequence[Tensor], target: str) -> Schedule | None:
    """The schedule of operators that is best on record (`operators`)."""
    if not may_be_on_record():
        return None
    from compassc.tuning import operators

    return operators.best_schedule(outputs, target)
