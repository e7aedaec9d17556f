"""From a schedule to something to call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from compassc.te.lowering import lower

if TYPE_CHECKING:
    from compass_runtime.compass_module import CompassModule


def build(schedule: Any, args: Sequence[Any], target: Any = None, name: str = "default_function") -> CompassModule:
    """The module of a schedule for an NPU target: call it with arrays in the order of `args`; outputs are changed in
    place. It can be exported and runs without the compiler then. LowerError as `lower`, UsageError for targets that are
    not known."""
    from compassc.dsl import BuildManager
    from compassc.settings.options import canonical_target

    chosen = canonical_target(target)
    return BuildManager(chosen).build(lower(schedule, args, name, chosen)).module
