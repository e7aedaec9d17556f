"""Random programs do the same compiled and in PySim: 400 of them, and 2000 with --whole. `make fuzz N=...` runs more."""

from __future__ import annotations

import pytest

from .campaign import failures
from .generate import generate

PROGRAMS, CHUNK = 2000, 50


@pytest.mark.sampled(5)
@pytest.mark.parametrize("first", range(0, PROGRAMS, CHUNK))
def test_compiled_and_python_agree(first: int) -> None:
    found = [f"seed {seed}: {outcome.kind}\n{outcome.detail}" for seed, outcome in failures(first, CHUNK)]
    hint = "`python -m tests.fuzz --seed SEED --count 1` makes one small"
    assert not found, f"{len(found)} programs fail ({hint}):\n" + "\n".join(found[:5])


def test_same_seed_same_program() -> None:
    assert generate(11).text() == generate(11).text()
