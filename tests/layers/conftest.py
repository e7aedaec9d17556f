"""Has what a test of layers expects of kernels looked at when the test has said all of it."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from tests.layers.harness import expecting


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call() -> Generator[None, object, object]:
    with expecting():
        return (yield)
