"""From functions of blocks to what every further stage takes: plain loops, memory with a place, TECs."""

from __future__ import annotations

from typing import Any

from compassc.analysis.structure import is_pure
from compassc.ir import stmts as S
from compassc.ir.exprs import F_CALL, F_FUNC, F_VECTOR, Call, Var
from compassc.ir.stmts import Body, IRModule, PrimFunc
from compassc.ir.visit import walk_exprs, walk_stmts
from compassc.te.errors import LowerError
from compassc.te.lowering import Finish
from compassc.te.machine import Grid, Machine, Npu
from compassc.tir.base import loose_statement
from compassc.tir.blocks import declared
from compassc.tir.cover import data_of, turn_writes
from compassc.tir.create import EXPRESSIONS
from compassc.tir.lower.across import reduced_across
from compassc.tir.lower.dissolve import dissolved, flattened, with_beginnings
from compassc.tir.lower.grid import by_threads, of_threads
from compassc.tir.lower.memory import of_one, of_tecs, placed_buffers
from compassc.tir.lower.races import check_races
from compassc.tir.lower.threads import spread
from compassc.tir.tree import Tree


def has_blocks(function: PrimFunc) -> bool:
    """Whether a function is still one of blocks."""
    return any(isinstance(s, S.Block) for s in walk_stmts(function.body))


def is_lowered(function: PrimFunc) -> bool:
    """Whether a function says what each TEC does: it is none of blocks, nor one of plain loops for one processor."""
    return not function.attr(EXPRESSIONS) and not has_blocks(function)


def plain_statements(function: PrimFunc) -> Body:
    """The statements of a function of blocks as plain loops, wherever they are run."""
    return dissolved(with_beginnings(flattened(function)).body)


def lower(module: IRModule, target: Any = None, simple_mode: bool = False) -> IRModule:
    """The module without blocks, for a target (default: the module's, else that of COMPASS_TARGET).

    `simple_mode`: stop with plain loops over scalars, before transfers, vectors and accumulators are made of them.
    LowerError where a schedule has no program.
    """
    if all(map(is_lowered, module.functions)):
        return module
    from compassc.targets import Target

    machine = Target.of(target or module.target or None).machine()
    scalars = all(map(_is_scalar, module.functions))
    names = sorted(_double_buffered(module.entry_func))
    made = module.map_functions(lambda f: f if is_lowered(f) else _lowered(f, machine)).replace(target=machine.name)
    scalars = scalars or isinstance(machine, Grid)  # which has nothing else
    if scalars and machine.stage == "loops":  # what somebody wrote with vectors and transfers stays as it is
        made = made.map_functions(lambda f: f.with_attr(S.SCALAR_LOOPS, names) if f.name == made.entry else f)
    return machine.form(made) if scalars and not simple_mode else made


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


DOUBLE_BUFFER = "double_buffer_scope"
"""The annotation of a block whose buffer, the one at that place of what it writes, has two halves."""


def _is_scalar(function: PrimFunc) -> bool:
    """Whether a function is made of blocks that store scalars."""
    roots = [e for s in walk_stmts(function.body) for e in s.exprs()]
    if loose_statement(function) is not None or any(e.flags & (F_VECTOR | F_FUNC) for e in roots):
        return False
    # functions of numbers are; what asks for the TEC, moves data or waits is not
    calls = [e for root in roots if root.flags & F_CALL for e in walk_exprs(root) if isinstance(e, Call)]
    return all(c.args and is_pure(c) for c in calls)


def _lowered(function: PrimFunc, machine: Machine) -> PrimFunc:
    alone = bool(function.attr(EXPRESSIONS))
    function = function.replace(attrs=tuple((k, v) for k, v in function.attrs if k != EXPRESSIONS))
    if not has_blocks(function):
        return function.replace(body=spread(function.body, machine, alone))
    for buffer in declared(function.body).values():
        machine.storage_type(buffer.data.name, buffer.dtype)
    f = flattened(function)
    if isinstance(machine, (Npu, Grid)):
        f = reduced_across(f)
    place = of_tecs if isinstance(machine, Npu) else of_threads if isinstance(machine, Grid) else of_one
    f = placed_buffers(with_beginnings(f), place)
    if isinstance(machine, Npu):
        check_races(f)
    elif isinstance(machine, Grid):
        f = by_threads(f)
    return f.replace(body=Finish().body(spread(dissolved(f.body), machine, alone)))
