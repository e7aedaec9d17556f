"""Examples as fixtures: every test here runs once per example."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "examples"))

from harness import Example, names


@pytest.fixture(scope="module", params=names())
def example(request: pytest.FixtureRequest) -> Example:
    return Example(request.param)
