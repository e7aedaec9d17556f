"""A worker shared by the tests of a file, made anew after a fault."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sim_device import Bench


@pytest.fixture(scope="module")
def shared() -> Iterator[Bench]:
    """One bench for tests that expect no fault."""
    with Bench() as bench:
        yield bench


@pytest.fixture
def bench() -> Iterator[Bench]:
    """A bench of the test's own."""
    with Bench() as bench:
        yield bench
