"""`found(body)`: the findings for a kernel of the given text."""

import textwrap
from pathlib import Path

import pytest

from compassc.check import Subject, findings

SIGNATURE = '@S.prim_func\ndef k(a: S.ptr("i32", "global"), f: S.ptr("fp32", "global"), n: S.i32):\n'


@pytest.fixture
def found(tmp_path: Path):
    """A function: body of a kernel with the parameters a, f and n (and the text before it) -> its findings.

    `values` and `shapes` are those of parameters, by position.
    """
    from compassc.dsl import load_kernels, parse

    def check(body: str, before: str = "", target: str = "X2_1204", values=None, shapes=None):
        text = "from compassc.dsl import script as S\n\n\n" + textwrap.dedent(before).strip("\n") + "\n\n\n"
        path = tmp_path / "k.py"
        path.write_text(text + SIGNATURE + textwrap.indent(textwrap.dedent(body).strip("\n"), "    ") + "\n")
        module = parse(load_kernels(path).entry("k"), target)
        return findings(Subject(module, values or {}, shapes or {}))

    return check
