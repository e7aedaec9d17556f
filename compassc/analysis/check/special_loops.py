"""Loops over lanes and TECs, and unrolled ones, that cannot become code: the passes that turn them into code say so."""

from __future__ import annotations

from collections.abc import Iterator

from compass_core.errors import CompassError

from ...ir import stmts as S
from ...ir.visit import walk_stmts
from . import Subject


def run(subject: Subject) -> Iterator[CompassError]:
    """The error of the first loop that has no code."""
    kinds = {s.kind for f in subject.functions() for s in walk_stmts(f.body) if type(s) is S.For}
    if kinds <= {"serial"}:
        return
    from ... import passes

    try:
        passes.run_pipeline((*passes.pipeline_names("lower"), "EliminateGetLocalID"), subject.module)
    except CompassError as error:
        yield error
