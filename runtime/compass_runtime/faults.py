"""Errors of a running kernel, told in the lines of its source."""

from __future__ import annotations

from compass_core.errors import CompassError, Span


def locate_fault(error: CompassError, elf: bytes) -> None:
    """Gives a kernel fault the source line that the faulting TEC was at, as the debug information of `elf` says."""
    from compass_sim import KernelFault

    if isinstance(error, KernelFault) and error.pc is not None and error.span is None:
        from compass_sim.lines import locate

        place = locate(elf, error.pc)
        error.span = Span(*place) if place else None
