"""Storage that does not fit the memories of the target."""

from __future__ import annotations

from collections.abc import Iterator

from compass_core.errors import CompassError, Note

from .. import pass_manager, passes
from ..analysis.buffers import size_of
from ..ir import exprs as E
from ..ir import stmts as S
from ..ir.stmts import IRModule, PrimFunc
from ..ir.visit import all_exprs, walk_stmts
from . import Subject

CODE = "over-allocation"
_MOST_SHOWN = 4


def run(subject: Subject) -> Iterator[CompassError]:
    """An error per memory that overflows: LSRAM along a chain of calls, shared memory over all functions."""
    module, target = subject.module, subject.target
    asked = {"lsram": 0, "shared": 0, "private": 0}
    for function in module.functions:
        for s in walk_stmts(function.body):
            if type(s) is S.Alloc:
                asked[s.buffer.scope] += _bytes(s)
    if asked["lsram"] <= target.lsram_bytes and asked["shared"] <= target.gsram_bytes:
        return
    module = _laid_out(module)
    chain = _deepest(module, module.entry_func)
    for scope, functions, size, name in (
        ("lsram", chain, target.lsram_bytes, "LSRAM of one TEC"),
        ("shared", _reachable(module, module.entry_func), target.gsram_bytes, "memory the TECs share"),
    ):
        allocs = [s for f in functions for s in _allocs(f, scope)]
        total = sum(map(_bytes, allocs))
        if total > size:
            yield _error(allocs, total, size, f"the {name} on {target.name}", functions)


def _laid_out(module: IRModule) -> IRModule:
    """The module with its arrays as they will be: arrays that are never needed together share storage."""
    names = pass_manager.pipeline_names("lower")
    return pass_manager.run_pipeline(names[: names.index("StorageRewrite") + 1], passes.lower_schedules(module))


def _allocs(function: PrimFunc, scope: str) -> list[S.Alloc]:
    return [s for s in function.body if type(s) is S.Alloc and s.buffer.scope == scope]


def _bytes(s: S.Alloc) -> int:
    return size_of(s.buffer)


def _called(module: IRModule, function: PrimFunc) -> list[PrimFunc]:
    names = {e.func: None for e in all_exprs(function.body, E.F_FUNC) if type(e) is E.FuncCall}
    return [module[name] for name in names]


def _deepest(module: IRModule, function: PrimFunc) -> list[PrimFunc]:
    """The chain of calls from a function whose LSRAM arrays are largest together: they live while it runs."""
    chains = [_deepest(module, f) for f in _called(module, function)]
    sizes = [sum(_bytes(s) for f in chain for s in _allocs(f, "lsram")) for chain in chains]
    return [function, *(chains[sizes.index(max(sizes))] if chains else [])]


def _reachable(module: IRModule, function: PrimFunc) -> list[PrimFunc]:
    found = {function.name: function}
    for called in _called(module, function):
        found.update({f.name: f for f in _reachable(module, called)})
    return list(found.values())


def _error(allocs: list[S.Alloc], total: int, size: int, name: str, functions: list[PrimFunc]) -> CompassError:
    allocs = sorted(allocs, key=_bytes, reverse=True)
    others = [
        Note(f"{s.buffer.data.name.removesuffix('_buf')!r} takes {_bytes(s)} bytes", s.span)
        for s in allocs[1:_MOST_SHOWN]
    ]
    largest = allocs[0].buffer.data.name.removesuffix("_buf")
    what = f"{total} bytes" if len(allocs) == 1 else f"{len(allocs)} arrays of {total} bytes together"
    return CompassError(
        f"{what} do not fit {name}, which has {size}",
        allocs[0].span,
        code=CODE,
        notes=(f"{largest!r} takes {_bytes(allocs[0])} bytes", *others),
        help="use smaller tiles and loop over them",
    )
