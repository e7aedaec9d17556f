"""Text in, text out: run one pass or a pipeline on the body of a function written as IR text."""

from __future__ import annotations

import textwrap

import pytest

from compassc import passes
from compassc.ir import parse_module, print_module
from compassc.ir.verify import verify

HEAD = '# compassc IR 1\n@I.module(target="X2_1204", entry="k")\nclass Module:\n'


def module_text(body: str, params: str = "") -> str:
    """The text of a module with one function `k`; a body that defines functions itself is taken as it is."""
    body = textwrap.dedent(body).strip("\n")
    if not body.lstrip().startswith("@T.func"):
        body = f"@T.func\ndef k({params}):\n{textwrap.indent(body, '    ')}"
    return HEAD + textwrap.indent(body, "    ")


def body_text(module) -> str:
    """The printed body of a module's functions, without the module's frame."""
    lines = print_module(module).splitlines()[3:]
    if len(module.functions) == 1:
        return textwrap.dedent("\n".join(lines[2:]))
    return textwrap.dedent("\n".join(lines))


@pytest.fixture
def transform():
    """transform(pass names, body, params) -> printed body, verified before and after."""

    def go(names: str, body: str, params: str = "") -> str:
        module = parse_module(module_text(body, params))
        options = passes.PassOptions(verify=True)
        return body_text(passes.run_pipeline(passes.parse_pipeline(names), module, options))

    return go


@pytest.fixture
def check(transform):
    """check(pass names, params, body, expected body): the printed results are equal; expected None: nothing changes."""

    def go(names: str, params: str, before: str, after: str | None = None) -> None:
        module = parse_module(module_text(before if after is None else after, params))
        verify(module)
        assert transform(names, before, params) == body_text(module)

    return go
