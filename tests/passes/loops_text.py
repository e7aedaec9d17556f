"""Functions of loops whose schedule is being lowered, as text."""

from __future__ import annotations

import textwrap

from module_text import body_text, module_text

from compassc import pass_manager
from compassc.ir import parse_module
from compassc.te.machine import Machine

PARAMS = 'p: T.ptr("int32", "global"), q: T.ptr("int32", "global"), n: T.int32'


def loops(body: str, made_of: object):
    head = f"@T.func(expressions={made_of!r})\ndef k({PARAMS}) -> T.void:\n"
    return parse_module(module_text(head + textwrap.indent(body, "    ")))


def after(name: str, body: str, made_of: object = "stages", machine: Machine | None = None) -> str:
    """The body after a pass: for an NPU, or for another machine."""
    module = loops(body, made_of)
    if machine is None:
        return body_text(pass_manager.run_pipeline((name,), module, pass_manager.PassOptions(verify=True)))
    return body_text(machine.passed(module.replace(target=machine.name), (name,)))
