"""Kernels written as text: `kernel(source)` gives the parsed kernel file, `ir(source)` its IR text."""

import textwrap
from pathlib import Path

import pytest

HEADER = "from compassc.dsl import script as S\n\n\n"


@pytest.fixture
def kernel(tmp_path: Path):
    """Load a kernel file from the text of its functions."""
    from compassc.dsl import load_kernels

    def load(source: str, name: str = "k.py"):
        path = tmp_path / name
        path.write_text(HEADER + textwrap.dedent(source))
        return load_kernels(path)

    return load


@pytest.fixture
def body(kernel):
    """Parse a kernel whose parameters are `a` (int32), `f` (float32), `h` (float16), `c` (int8) global pointers, `n`
    (int32) and `u` (uint32), from the text of its body; returns the IR."""
    from compassc.dsl import parse

    signature = (
        '@S.prim_func\ndef k(a: S.ptr("i32", "global"), f: S.ptr("fp32", "global"), h: S.ptr("fp16", "global"), '
        'c: S.ptr("i8", "global"), n: S.i32, u: S.u32):\n'
    )

    def make(text: str, before: str = ""):
        source = (
            textwrap.dedent(before)
            + "\n\n"
            + signature
            + textwrap.indent(textwrap.dedent(text).strip("\n"), "    ")
            + "\n"
        )
        return parse(kernel(source).entry("k"))

    return make
