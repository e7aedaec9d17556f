"""Kernels as people write them: what is wrong is found at its line, and nothing else."""

import re
from pathlib import Path

import pytest

from compassc.cli.checking import check_kernel, entries
from compassc.dsl import load_kernels

HERE = Path(__file__).parent
_EXPECTED = re.compile(r"# expect: ([\w-]+)")


def found(path):
    kernels = entries(load_kernels(path), "k")
    return [(e.span.line, e.code) for kernel in kernels for e in check_kernel(kernel, "X2_1204", {}, {})]


@pytest.mark.parametrize("path", sorted(HERE.glob("wrong/*.py")), ids=lambda path: path.stem)
def test_the_mistake_is_found(path):
    lines = enumerate(path.read_text().splitlines(), 1)
    assert found(path) == [(number, match[1]) for number, line in lines if (match := _EXPECTED.search(line))]


@pytest.mark.parametrize("path", sorted(HERE.glob("right/*.py")), ids=lambda path: path.stem)
def test_nothing_is_found(path):
    assert found(path) == []
