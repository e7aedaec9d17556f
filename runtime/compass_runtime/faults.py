"""Errors of a running kernel, told in the lines of its source."""

from __future__ import annotations

from pathlib import Path

from compass_core.errors import CompassError, Note, Span, flat


def locate_fault(error: CompassError, elf: bytes) -> None:
    """Gives a kernel fault the source line that the faulting TEC was at, as the debug information of `elf` says."""
    from compass_sim import KernelFault

    if isinstance(error, KernelFault) and error.pc is not None and error.span is None:
        from compass_sim.lines import locate

        place = locate(elf, error.pc)
        error.span = Span(*place) if place else None


def note_changed_sources(error: CompassError, program: Path) -> None:
    """Says of each place in a file that was changed after `program` was built that its lines may have moved."""
    for one in flat(error):
        file = Path(one.span.file) if one.span else None
        if file and file.is_file() and program.is_file() and file.stat().st_mtime > program.stat().st_mtime:
            what = f"{file.name} was changed after {program.name} was built: build it again, or look for the old line"
            one.notes = (*one.notes, Note(what))
