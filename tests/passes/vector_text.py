"""Helpers of the vector pass tests: a function body as IR text through a pass, or through the whole of codegen."""

from __future__ import annotations

from compassc import passes
from compassc.codegen.c_unit import print_unit
from compassc.ir import IRModule, parse_module, print_module

HEAD = '@I.module(target="{}", entry="k")\nclass Module:\n    @T.func\n    def k({}) -> T.void:\n'
POINTERS = 'a: T.ptr("{0}", "global"), b: T.ptr("{1}", "global"), n: T.int32'


def module(body: str, elem: str = "int32", other: str = "", target: str = "X2_1204", more: str = "") -> IRModule:
    """A module whose entry `k` has pointers `a` to `elem` and `b` to `other` or `elem`, an int32 `n`, and a body."""
    lines = [f"        {line}\n" for line in body.strip("\n").split("\n")]
    return parse_module(HEAD.format(target, POINTERS.format(elem, other or elem)) + "".join(lines) + more)


def verified() -> passes.PassOptions:
    return passes.PassOptions(verify=True)


def after(name: str, body: str, **kwargs: str) -> list[str]:
    """The lines of the body of `k` after one pass."""
    return body_lines(print_module(passes.run_pipeline((name,), module(body, **kwargs), verified())))


def unchanged(name: str, body: str, **kwargs: str) -> bool:
    """Whether a pass leaves a body alone, so much that it gives back the same module."""
    before = module(body, **kwargs)
    return passes.run_pipeline((name,), before) is before


def body_lines(text: str) -> list[str]:
    lines = text[text.index("def k(") :].split("\n")[1:]
    return [line.strip() for line in lines if line.startswith("        ")]


def c_of(body: str, **kwargs: str) -> list[str]:
    """The C lines of the body of `k`, without the final barrier."""
    done = passes.run_pipeline(passes.pipeline_names("codegen"), module(body, **kwargs), verified())
    lines = [line.text for line in print_unit(done).lines]
    start = next(i for i, line in enumerate(lines) if line.startswith("__kernel") and line.endswith("{"))
    return [line.strip() for line in lines[start + 1 : lines.index("}", start) - 1]]
