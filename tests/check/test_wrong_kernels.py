"""Kernels with one mistake each: a checked run tells the line, what it is, and for races the other line.

A line of a kernel says what is expected there: `# check-CODE: words of the message`; `# there` is the other side.
"""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from compass_core.errors import CompassError, ErrorGroup
from compassc.dsl import BuildManager, load_kernels

KERNELS = sorted((Path(__file__).parent / "kernels").glob("*.py"))
_EXPECTED = re.compile(r"# (check-\w+): ([^#]*)")


class Expected(NamedTuple):
    """A report: its code, the line, and words of its message."""

    code: str
    line: int
    words: str


def expected(path: Path) -> tuple[list[Expected], int | None]:
    """The reports that a kernel's comments ask for, and the line of the other side."""
    reports, there = [], None
    for number, line in enumerate(path.read_text().splitlines(), 1):
        reports += [Expected(code, number, words.strip()) for code, words in _EXPECTED.findall(line)]
        there = number if "# there" in line else there
    return reports, there


def found(path: Path) -> list[CompassError]:
    """What a checked run of a kernel reports, warnings too. Unset values are looked for where they are the mistake."""
    arguments = [np.copy(a) if isinstance(a, np.ndarray) else a for a in runpy.run_path(str(path))["ARGUMENTS"]]
    executor = BuildManager("X2_1204").build(load_kernels(path).entry())
    modes = "uninit" if path.stem.startswith("uninit") else "bounds,race,dma,align,division"
    try:
        return executor.check(*arguments, modes=modes)
    except ErrorGroup as group:
        return group.errors
    except CompassError as error:
        return [error]


@pytest.mark.parametrize("path", KERNELS, ids=lambda path: path.stem)
def test_mistake_is_reported(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(path.parent.parent))
    reports, there = expected(path)
    assert reports
    errors = found(path)
    assert [(e.code, e.span.line if e.span else 0) for e in errors] == [(r.code, r.line) for r in reports], [
        (e.message, e.span) for e in errors
    ]
    for error, report in zip(errors, reports, strict=True):
        assert report.words in error.message
    if there is not None:
        assert {n.span.line for e in errors for n in e.notes if n.span} == {there}
