"""`S.axis`: the axes of a schedulable block."""

from __future__ import annotations

from collections.abc import Sequence

from compass_core.dataclass import dataclass
from compass_core.errors import CompassError

from .dispatch import LOCAL


@dataclass(frozen=True)
class AxisSpec:
    """One block axis: kind `S` (data parallel) or `R` (reduction), its domain (None: that of the loop) and binding."""

    kind: str
    dom: object
    binding: object
    dtype: str = "int32"


def spatial(dom: object, binding: object, dtype: str = "int32") -> object:
    """A data-parallel axis over `dom` (an extent, or a pair of minimum and extent)."""
    return binding if LOCAL.tec is not None else AxisSpec("S", dom, binding, dtype)


def reduce(dom: object, binding: object, dtype: str = "int32") -> object:
    """A reduction axis over `dom`."""
    return binding if LOCAL.tec is not None else AxisSpec("R", dom, binding, dtype)


def remap(kinds: str, bindings: Sequence[object], dtype: str = "int32") -> object:
    """One axis per character of `kinds`, bound to loop variables; the single one when there is one."""
    if set(kinds) - set("SR") or len(kinds) != len(bindings):
        raise CompassError(
            f"S.axis.remap: {kinds!r} with {len(bindings)} bindings",
            code="axis",
            help="one letter, S or R, per binding",
        )
    pairs = zip(kinds, bindings)
    axes = [b if LOCAL.tec is not None else AxisSpec(k, None, b, dtype) for k, b in pairs]
    return axes[0] if len(axes) == 1 else axes


S, R = spatial, reduce
