"""Faults of a running kernel as errors at lines of its source."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from compass_core.errors import CompassError, Note, Span, flat
from compass_core.errors.excerpts import path_of
from compass_core.hostcc import origins


def locate_fault(error: CompassError, elf: bytes) -> None:
    """Gives a kernel fault the source line that the faulting TEC was at, as the debug information of `elf` says."""
    from compass_sim import KernelFault

    if isinstance(error, KernelFault) and error.pc is not None and error.span is None:
        from compass_sim.lines import locate

        try:
            place = locate(elf, error.pc)
        except CompassError as damage:
            error.notes = (*error.notes, Note(f"the line is not known: {damage.message}"))
        else:
            error.span = Span(*place, built=origins.read(elf)) if place else None


def note_changed_sources(error: CompassError, program: Path) -> None:
    """Says of each place in a file that was changed after `program` was built that its lines may have moved."""
    for one in flat(error):
        for words in changed_sources([one.span.file] if one.span else [], program):
            one.notes = (*one.notes, Note(words))


def changed_sources(files: Iterable[str], program: Path) -> list[str]:
    """A sentence for each of the source files that was changed after `program` was built."""
    if not program.is_file():
        return []
    built = program.stat().st_mtime
    return [
        f"{path.name} was changed after {program.name} was built: build it again, or look for the old line"
        for path in (Path(path_of(file)) for file in sorted(set(files)))
        if path.is_file() and path.stat().st_mtime > built
    ]
