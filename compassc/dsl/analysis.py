"""Queries about a module of functions: its entry's parameters, and whether it uses performance ticks."""

from __future__ import annotations

from compass_core.namedtuple import NamedTuple

from ..ir import IRModule, PrimFunc, all_exprs
from ..language.info import ParamInfo, param_info

__all__ = ["ParamInfo", "PrimFuncInfo", "extract_prim_func_info", "has_perf_record_tick"]
_TICKS = ("perf_tick_begin", "perf_tick_end")


class PrimFuncInfo(NamedTuple):
    """A module's entry: its name, and its parameters in order."""

    name: str
    param_infos: tuple[ParamInfo, ...]


def extract_prim_func_info(module: IRModule | PrimFunc) -> PrimFuncInfo:
    """The entry of a module (or a single function), such as `BuildManager.lower` gives, with its parameters' categories.

    CompassError for a function that returns a pointer to its own storage, and for descriptors that are no 32-bit words.
    """
    from ..analysis import roles

    if isinstance(module, PrimFunc):
        module = IRModule((module,), module.name, "")
    return PrimFuncInfo(module.entry, tuple(param_info(param) for param in roles.parameters(module)))


def has_perf_record_tick(module: IRModule | PrimFunc) -> bool:
    """Whether a function has `S.perf_tick_begin` or `S.perf_tick_end`."""
    functions = (module,) if isinstance(module, PrimFunc) else module.functions
    return any(getattr(e, "op", "") in _TICKS for f in functions for e in all_exprs(f.body))
