"""Six kernels whose C is a fact of compatibility: ours is the same text, white space aside."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness import TARGET

from compassc import passes
from compassc.codegen import generate
from compassc.dsl import load_kernels, parse

HERE = Path(__file__).parent
ENTRIES = sorted(p.stem for p in (HERE / "spec_c").glob("*.cl"))


@pytest.fixture(scope="module")
def kernels():
    return load_kernels(HERE / "spec_kernels.py")


@pytest.mark.parametrize("name", ENTRIES)
def test_same_c(kernels, name: str) -> None:
    text = generate(passes.lower(parse(kernels.entry(name), TARGET))).text
    assert text.split() == (HERE / "spec_c" / f"{name}.cl").read_text(encoding="utf-8").split()
