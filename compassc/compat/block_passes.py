"""Passes in the framework's forms: functions of blocks to functions of blocks, and marks on functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from compass_core.errors import UsageError
from compassc.analysis.arith import Arith
from compassc.analysis.conditions import joined
from compassc.analysis.structure import Interner
from compassc.ir import stmts as S
from compassc.ir.exprs import Binary, Expr, IntImm, Var
from compassc.ir.names import NamePool
from compassc.ir.stmts import Body, IRModule, PrimFunc, Stmt
from compassc.ir.visit import rewrite, substitute, substitute_body, walk_stmts
from compassc.tir.blocks import declared, new_block
from compassc.tir.regions import regions

from ..pass_manager.context import Pass
from .pass_context import module_pass
from .tir_analysis import AnalysisError, check_bounds, detect_buffer_access_lca, verify_memory


def _on_statements(f: PrimFunc, change: Callable[[Stmt], Stmt]) -> PrimFunc:
    """The function with each statement changed, inner ones first."""

    def body(statements: Body) -> Body:
        made = tuple([change(s.map(lambda e: e, body)) for s in statements])
        return statements if all(a is b for a, b in zip(made, statements)) else made

    made = body(f.body)
    return f if made is f.body else f.replace(body=made)


def _begun(s: Stmt) -> Stmt:
    """A block whose beginning is a condition on its reduced axes, behind its memory."""
    if not isinstance(s, S.Block) or not s.init:
        return s
    first = [Binary("eq", v, start) for v, kind, start in zip(s.vars, s.kinds, s.starts) if kind == "reduce"]
    begins: Body = (S.IfThenElse(joined(first), s.init, None),) if first else s.init
    place = next((i for i, x in enumerate(s.body) if not isinstance(x, (S.Alloc, S.DeclBuffer))), len(s.body))
    return s.replace(init=(), body=(*s.body[:place], *begins, *s.body[place:]))


def _opaque(s: Stmt) -> Stmt:
    """A block without axes: what these are bound to stands in their places."""
    if not isinstance(s, S.Block) or not s.vars:
        return s
    if s.init:
        raise UsageError(
            f"the block '{s.name_hint}' begins a reduction", code="compat-name", help="run LowerInitBlock first"
        )
    values: Mapping[Var, Expr] = dict(zip(s.vars, s.iter_values))
    reads, writes = (tuple(substitute(e, values) for e in side) for side in (s.reads, s.writes))
    body = substitute_body(s.body, values)
    none: tuple[Expr, ...] = ()
    return s.replace(
        vars=(), kinds=(), starts=none, extents=none, iter_values=none, reads=reads, writes=writes, body=body
    )


def _serial(s: Stmt) -> Stmt:
    serial = not isinstance(s, S.For) or s.kind in ("serial", *S.THREAD_LOOPS, *S.VIRTUAL_LOOPS)
    return s if serial else s.replace(kind="serial")


def _entry(module: IRModule) -> IRModule:
    """The module with a mark on the function that is its entry."""
    return module.map_functions(lambda f: f.with_attr("tir.is_entry_func", True) if f.name == module.entry else f)


def _memory(module: IRModule) -> IRModule:
    for f in module.functions:
        if not verify_memory(f):
            raise AnalysisError(
                f"'{f.name}' accesses memory outside of loops over threads: Did you forget to bind?",
                code="compat-name",
                help="bind a loop around each access to a thread",
            )
    return module


def _planned(f: PrimFunc) -> PrimFunc:
    """The function with each buffer allocated in the innermost loop or block around all that uses it; in a loop, by a block
    around what the loop does."""
    places = {buffer.data: place for buffer, place in detect_buffer_access_lca(f).items()}
    moved: dict[Stmt | None, list[S.Alloc]] = {}
    for s in walk_stmts(f.body):
        if isinstance(s, S.Alloc) and s.buffer.data in places:
            moved.setdefault(places[s.buffer.data], []).append(s)
    gone = {s for allocs in moved.values() for s in allocs}
    buffers = declared(f.body)
    names = NamePool(s.name_hint for s in walk_stmts(f.body) if isinstance(s, S.Block))

    def body(statements: Body) -> Body:
        return tuple([made for s in statements if s not in gone for made in [stmt(s)]])

    def stmt(s: Stmt) -> Stmt:
        made, own = s.map(lambda e: e, body), tuple(moved.get(s, ()))
        if not own:
            return made
        if isinstance(made, S.Block):
            return made.replace(body=(*own, *made.body))
        assert isinstance(made, S.For)
        block = new_block(names.take(f"{made.loop_var.name}_turn"), [], (*own, *made.body))
        reads, writes = regions(block, buffers, Arith())
        return made.replace(body=(block.replace(reads=reads, writes=writes),))

    first = next((i for i, s in enumerate(f.body) if not isinstance(s, S.DeclBuffer)), len(f.body))
    return f.replace(body=(*f.body[:first], *moved.get(None, ()), *body(f.body[first:])))


def _one_extent(f: PrimFunc) -> PrimFunc:
    """The function. UsageError where loops over the same threads have different extents."""
    same = Interner().same
    known: dict[str, S.For] = {}
    for s in walk_stmts(f.body):
        if isinstance(s, S.For) and s.kind in S.THREAD_LOOPS:
            first = known.setdefault(s.kind, s)
            if not same(first.stop, s.stop):
                raise UsageError(
                    f"'{f.name}' has {first.stop} and {s.stop} threads of {s.kind.replace('_', '.')}",
                    code="compat-name",
                    help="give loops over the same threads one extent",
                )
    return f


def _renormalized(s: Stmt) -> Stmt:
    """Digits of numbers as remainders of quotients: `x // a % b` for `x % (a * b) // a`."""

    def digit(e: Expr) -> Expr | None:
        if not isinstance(e, Binary) or e.op != "floordiv" or not isinstance(e.b, IntImm):
            return None
        inner = e.a
        if not isinstance(inner, Binary) or inner.op != "floormod" or not isinstance(inner.b, IntImm):
            return None
        by, whole = e.b.value, inner.b.value
        if by <= 0 or whole % by:
            return None
        return Binary("floormod", Binary("floordiv", inner.a, e.b), IntImm(e.b.dtype, whole // by))

    return s.map(lambda e: rewrite(e, digit), tuple)


def _each(change: Callable[[Stmt], Stmt]) -> Callable[[IRModule], IRModule]:
    return lambda module: module.map_functions(lambda f: _on_statements(f, change))


PASSES: dict[str, Callable[[IRModule], IRModule]] = {
    "AnnotateEntryFunc": _entry,
    "ConvertBlocksToOpaque": _each(_opaque),
    "ConvertForLoopsToSerial": _each(_serial),
    "LowerInitBlock": _each(_begun),
    "LowerMatchBuffer": lambda module: module,  # text is read as the accesses that such buffers stand for
    "OOBChecker": check_bounds,
    "PlanAndUpdateBufferAllocationLocation": lambda module: module.map_functions(_planned),
    "RenormalizeSplitPattern": _each(_renormalized),
    "UnifyThreadBinding": lambda module: module.map_functions(_one_extent),
    "VerifyMemory": _memory,
}
"""The passes by name, which have no other form here or another one."""


def named(name: str) -> Pass:
    """A pass of these."""
    run = PASSES[name]
    made: Pass = module_pass(lambda module, _: run(module), opt_level=0, name=f"tir.{name}")
    return made


def Filter(fcond: Callable[[PrimFunc], bool]) -> Pass:
    """A pass that keeps the functions of which `fcond` says so. UsageError where the entry would go."""

    def run(module: IRModule, _: object) -> IRModule:
        kept = tuple(f for f in module.functions if fcond(f))
        if not any(f.name == module.entry for f in kept):
            raise UsageError(
                f"the entry '{module.entry}' is not kept", code="compat-name", help="keep it, or name another entry"
            )
        return module.replace(functions=kept)

    made: Pass = module_pass(run, opt_level=0, name="tir.Filter")
    return made


def OOBChecker() -> Pass:
    """A pass that refuses accesses which are out of their buffers whenever they are made."""
    return named("OOBChecker")
