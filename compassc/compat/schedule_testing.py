"""Functions compared whatever they are called, traces that are taken again, and states of schedules without steps."""

from __future__ import annotations

import json
from collections.abc import Sequence

from ..ir import IRModule, PrimFunc, assert_structural_equal
from ..tir import Schedule, Trace
from ..tir.state import ScheduleState as State

_MAIN = "main"


def assert_structural_equal_ignore_global_symbol(
    lhs: PrimFunc | IRModule, rhs: PrimFunc | IRModule, map_free_vars: bool = False
) -> None:
    """ValueError unless two functions, or modules of one function each, are equal but for their names."""
    assert_structural_equal(_unnamed(lhs), _unnamed(rhs), map_free_vars)


def _unnamed(given: PrimFunc | IRModule) -> PrimFunc | IRModule:
    if isinstance(given, PrimFunc):
        return given.replace(name=_MAIN)
    if len(given.functions) != 1:
        return given
    return given.replace(functions=(given.functions[0].replace(name=_MAIN),), entry=_MAIN)


def verify_trace_roundtrip(
    sch: Schedule, mod: object, *, debug_mask: str | int = "all", text_format: str | Sequence[str] = ("python", "json")
) -> Schedule:
    """A schedule of `mod` after the steps of another one, taken from the text of its trace. ValueError where it gives another
    module, AssertionError where its trace has another text."""
    made = None
    assert sch.trace is not None, "a schedule that is not traced has no steps to take"
    for form in [text_format] if isinstance(text_format, str) else text_format:
        made = Schedule(mod, debug_mask=debug_mask)
        if form == "json":
            Trace.apply_json_to_schedule(json.loads(json.dumps(sch.trace.as_json())), made)
        elif form == "python":
            import tvm
            from tvm.script import tir as script

            names = {name: getattr(tvm.tir, name) for name in dir(tvm.tir)}
            exec("\n".join(sch.trace.as_python()), {**names, "sch": made, "T": script})  # noqa: S102 - the text is of a trace
        else:
            raise ValueError(f"text_format is python or json, got {form!r}")
        assert_structural_equal(made.mod, sch.mod)
        assert made.trace is not None
        assert made.trace.as_python() == sch.trace.as_python(), "the steps have other texts"
    assert made is not None, "no form of text is asked for"
    return made


def ScheduleState(mod: object, *, debug_mask: str | int = "none", enable_check: bool = True) -> State:
    """The state of a schedule of a function or module."""
    return Schedule(mod, debug_mask=debug_mask, enable_check=enable_check).state


def BlockDependenceInfo(mod: object) -> State:
    """Which blocks of a function or module need which."""
    return Schedule(mod).state
