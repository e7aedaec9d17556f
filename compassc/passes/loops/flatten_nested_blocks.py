"""Keep the innermost blocks only: those around them become loops and conditions.

Before: any module. After: no block of a function has blocks inside, and what the user said of regions is gone. Functions
whose schedule is being lowered have the attribute `EXPRESSIONS`; the entry has `SCALAR_LOOPS` where all is scalar, which says
which arrays are to have two halves.
"""

from __future__ import annotations

from compassc.analysis.conditions import conjuncts, joined
from compassc.analysis.statements import has_blocks, is_lowered
from compassc.analysis.structure import is_pure
from compassc.ir import stmts as S
from compassc.ir.exprs import F_CALL, F_FUNC, F_VECTOR, Binary, Call, Expr, Var
from compassc.ir.stmts import EXPRESSIONS, SCALAR_LOOPS, Body, IRModule, PrimFunc, Stmt
from compassc.ir.visit import substitute_body, walk_exprs, walk_stmts
from compassc.passes.loops._functions import on_entry
from compassc.passes.loops.lower_init_block import check_begins_first
from compassc.te.errors import LowerError
from compassc.te.machine import Machine, machine_of
from compassc.tir.base import loose_statement
from compassc.tir.blocks import axes_of, declared
from compassc.tir.canonical import EXPLICIT, canonical
from compassc.tir.region_cover import data_of, turn_writes
from compassc.tir.tree import Tree

NAME = "FlattenNestedBlocks"
DOUBLE_BUFFER = "double_buffer_scope"
"""The annotation of a block whose buffer, the one at that place of what it writes, has two halves."""


def run(module: IRModule) -> IRModule:
    if all(map(is_lowered, module.functions)):
        return module
    machine = machine_of(module)
    # what somebody wrote with vectors and transfers stays as it is; grids have nothing else
    if machine.stage == "grid" or machine.stage and all(map(_is_scalar, module.functions)):
        names = sorted(_double_buffered(module.entry_func))
        module = on_entry(module, lambda f: f.with_attr(SCALAR_LOOPS, names))
    return module.map_functions(lambda f: f if is_lowered(f) else _function(f, machine))


def _function(f: PrimFunc, machine: Machine) -> PrimFunc:
    f = f.with_attr(EXPRESSIONS, bool(f.attr(EXPRESSIONS)))
    if not has_blocks(f):
        return f
    for buffer in declared(f.body).values():
        machine.storage_type(buffer.data.name, buffer.dtype)
    return _flattened(f)


def _flattened(function: PrimFunc) -> PrimFunc:
    """The function with the innermost blocks only: those around them are loops and conditions."""
    tree = Tree(function)
    for block in tree.blocks.values():
        if block.init and tree.inside(block):
            check_begins_first(tree, block)
    body = _flat(function.body, [])  # what the user said of regions is for schedules alone
    return canonical(function.replace(body=body))


def _flat(body: Body, conditions: list[Expr]) -> Body:
    made: list[Stmt] = []
    for s in body:
        if not isinstance(s, S.Block):
            made.append(s.map(lambda e: e, lambda inner: _flat(inner, conditions)))
            continue
        s = s.replace(annotations=tuple((k, v) for k, v in s.annotations if k not in EXPLICIT.values()))
        outer = [*conditions, *conjuncts(s.predicate)]
        if not any(isinstance(x, S.Block) for x in _inside(s.body)):
            made.append(s.replace(predicate=joined(outer)))
            continue
        mapping: dict[Var, Expr] = dict(zip(s.vars, s.iter_values))
        first = [Binary("eq", a.binding, a.start) for a in axes_of(s) if a.is_reduction]
        made += _flat(substitute_body(s.init, mapping), [*outer, *first])
        made += _flat(substitute_body(s.body, mapping), outer)
    return tuple(made)


def _inside(body: Body) -> list[Stmt]:
    return [x for s in body for x in (s, *(y for b in s.bodies() for y in _inside(b)))]


def _double_buffered(function: PrimFunc) -> set[str]:
    """The buffers of which blocks say that they have two halves, and which can have them."""
    found = set()
    tree = Tree(function)
    for s in walk_stmts(function.body):
        place = dict(s.annotations).get(DOUBLE_BUFFER) if isinstance(s, S.Block) else None
        if place is None or not isinstance(s, S.Block):
            continue
        if isinstance(place, bool) or not isinstance(place, int) or not 0 <= place < len(s.writes):
            raise LowerError(
                f"'{s.name_hint}': the annotation {DOUBLE_BUFFER} is the place of a buffer that it writes, not {place!r}"
            )
        data = data_of(s.writes[place])
        if _filled_anew(tree, s, data):
            found.add(data.name)
    return found


def _filled_anew(tree: Tree, block: S.Block, data: Var) -> bool:
    """Whether no turn reads what an earlier one left in a buffer, which would be in the other half."""
    users = [b for b in tree.blocks.values() if data in {data_of(r) for r in (*b.reads, *b.writes)}]
    common = [s for s in tree.loops_around(block, all_of_them=True) if all(tree.is_inside(b, s) for b in users)]
    shape = declared(tree.function.body)[data].shape
    return not common or turn_writes(tree, users, data, common, shape)


def _is_scalar(function: PrimFunc) -> bool:
    """Whether a function is made of blocks that store scalars."""
    roots = [e for s in walk_stmts(function.body) for e in s.exprs()]
    if loose_statement(function) is not None or any(e.flags & (F_VECTOR | F_FUNC) for e in roots):
        return False
    # functions of numbers are; what asks for the TEC, moves data or waits is not
    calls = [e for root in roots if root.flags & F_CALL for e in walk_exprs(root) if isinstance(e, Call)]
    return all(c.args and is_pure(c) for c in calls)
