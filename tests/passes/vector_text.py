"""Helpers of the vector pass tests: a function body as IR text through a pass, or through all of legalisation."""

from __future__ import annotations

import re

from compassc import pass_manager
from compassc.codegen.c_unit import print_unit
from compassc.ir import IRModule, parse_module, print_module

HEAD = '@I.module(target="{}", entry="k")\nclass Module:\n    @T.func\n    def k({}) -> T.void:\n'
POINTERS = 'a: T.ptr("{0}", "global"), b: T.ptr("{1}", "global"), n: T.int32'


def module(body: str, elem: str = "int32", other: str = "", target: str = "X2_1204", more: str = "") -> IRModule:
    """A module whose entry `k` has pointers `a` to `elem` and `b` to `other` or `elem`, an int32 `n`, and a body."""
    lines = [f"        {line}\n" for line in body.strip("\n").split("\n")]
    return parse_module(HEAD.format(target, POINTERS.format(elem, other or elem)) + "".join(lines) + more)


def verified() -> pass_manager.PassOptions:
    return pass_manager.PassOptions(verify=True)


def after(name: str, body: str, **kwargs: str) -> list[str]:
    """The lines of the body of `k` after one pass."""
    return body_lines(print_module(pass_manager.run_pipeline((name,), module(body, **kwargs), verified())))


def unchanged(name: str, body: str, **kwargs: str) -> bool:
    """Whether a pass leaves a body alone, so much that it gives back the same module."""
    before = module(body, **kwargs)
    return pass_manager.run_pipeline((name,), before) is before


def body_lines(text: str) -> list[str]:
    lines = text[text.index("def k(") :].split("\n")[1:]
    return [line.strip() for line in lines if line.startswith("        ")]


def c_of(body: str, **kwargs: str) -> list[str]:
    """The C lines of the body of `k`, without the final barrier."""
    done = pass_manager.run_pipeline(pass_manager.pipeline_names("legalize"), module(body, **kwargs), verified())
    lines = [line.text for line in print_unit(done).lines]
    start = next(i for i, line in enumerate(lines) if line.startswith("__kernel") and line.endswith("{"))
    return [line.strip() for line in lines[start + 1 : lines.index("}", start) - 1]]


def load(name: str, kind: str, pointer: str = "a") -> str:
    return f'{name}: T.{kind} = S.vload(T.addr({pointer}, 0, "{kind.partition("x")[0]}"), 1, dtype="{kind}")\n'


def store(value: str, mask: str = "") -> str:
    return f'S.vstore({value}, T.addr(b, 0), 1, dtype="void"{mask})'


def value_of(body: str, **kwargs: str) -> str:
    """The text stored by the last line of the C of a body."""
    line = c_of(body, **kwargs)[-1]
    return line.removeprefix("__vstore(").rpartition(", (__global")[0]


def any_source(text: str) -> str:
    """The text with `r` for a register of zeros, which inactive lanes come from."""
    return re.sub(r"\((?:int8|uint8|short16)\)(?:\(\w+\))?0\b", "r", text, count=1)


def cast(x: str, kind: str, part: str = "all", saturate: object = None) -> str:
    return f'S.cast({x}, dtype="{kind}", part="{part}", saturate={saturate})'


W = load("x", "int32x8") + load("y", "int32x8")
H = load("x", "int16x16") + load("y", "int16x16")
