"""A plugin of pytest, `tvm.testing.plugin`: tests that take `target` and `dev` run on all targets there are."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from compass_runtime import Device, device

from .testing import target_cases


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parameters of tests that take a target and say none themselves."""
    wanted = [name for name in ("target", "dev") if name in metafunc.fixturenames]
    said = {name for mark in metafunc.definition.iter_markers("parametrize") for name in _names(mark.args[0])}
    own = {name for name, defs in metafunc._arg2fixturedefs.items() if defs}
    if "target" not in wanted or said & set(wanted) or "target" in own:
        return
    excluded = getattr(metafunc.function, "excluded_targets", ())
    failing = getattr(metafunc.function, "failing_targets", ())
    cases = []
    for case in target_cases():
        kind, values = str(case.values[0]).split()[0], case.values[: len(wanted)]
        marks = list(case.marks)
        if kind in excluded:
            marks.append(pytest.mark.skip(reason=f"it is not for {kind}"))
        if kind in failing:
            marks.append(pytest.mark.xfail(reason=f"it fails on {kind}"))
        cases.append(pytest.param(*values, id=case.id, marks=marks))
    metafunc.parametrize(wanted, cases)


def _names(given: str | Iterable[str]) -> list[str]:
    return [n.strip() for n in given.split(",")] if isinstance(given, str) else list(given)


@pytest.fixture
def dev(target: str) -> Device:
    """The device of the test's target."""
    return device(str(target).split()[0], 0)
