"""Kernels whose run leaves nothing behind."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from compass_core.errors import CompassError, Finding

from ..analysis.roles import parameters
from ..ir import exprs as E
from ..ir.visit import walk_exprs, walk_stmts
from . import Subject


def run(subject: Subject) -> Iterator[CompassError]:
    """A warning when a kernel writes to none of its parameters and prints nothing."""
    entry = subject.module.entry_func
    if any(p["role"] in ("output", "descriptor") for p in parameters(subject.module)):
        return
    calls = (
        e
        for function in subject.functions()
        for s in walk_stmts(function.body)
        for root in s.exprs()
        for e in walk_exprs(root)
        if type(e) is E.Call
    )
    if any(call.op in ("printf", "asm") for call in calls):
        return
    yield Finding(
        f"the kernel {entry.name!r} writes to none of its parameters",
        entry.span and replace(entry.span, end_line=entry.span.line, end_col=0),
        code="no-result",
        notes=("nothing comes out of its run",),
        help="store through a pointer parameter: out[0] = x",
    )
