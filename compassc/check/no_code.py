"""Constructs without code on the target: runs the passes and the C printer for their errors."""

from __future__ import annotations

from collections.abc import Iterator

from compass_core.errors import CompassError, flat

from .. import codegen, passes
from . import Subject


def run(subject: Subject) -> Iterator[CompassError]:
    """The errors that a build would stop at."""
    try:
        codegen.generate(passes.lower(subject.module))
    except CompassError as error:
        yield from flat(error)
