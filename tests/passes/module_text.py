"""Modules of one function as IR text: what stands around the body is put there and taken off here."""

from __future__ import annotations

import textwrap

from compassc.ir import print_module

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
