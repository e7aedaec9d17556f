"""Errors of a running kernel, told in the lines of its source."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from compass_core.errors import Span


@contextmanager
def located(elf: bytes) -> Iterator[None]:
    """Gives a KernelFault raised inside the source line that the faulting TEC was at, as `elf`'s debug information says."""
    from compass_sim import KernelFault

    try:
        yield
    except KernelFault as fault:
        if fault.pc is not None and fault.span is None:
            from compass_sim.lines import locate

            place = locate(elf, fault.pc)
            fault.span = Span(*place) if place else None
        raise
