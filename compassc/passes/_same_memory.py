"""Whether tiles of different turns of a loop lie apart in the memory that they share."""

from __future__ import annotations

from ..analysis.arith import Arith, Linear
from ..analysis.structure import Interner, variables
from ..ir import exprs as E
from ..ir import stmts as S
from ..ir.exprs import Expr, IntImm, Var
from ..ir.stmts import PrimFunc, Stmt
from ..ir.visit import substitute, walk_stmts
from ._blocks import mutable_vars


def apart(f: PrimFunc, loop: S.For, reading: Stmt, writing: Stmt) -> bool:
    """Whether what a turn reads is never what turns before it write; both statements are one plain copy.

    That is so where both begin at the same place, which goes ahead by at least the size of a tile from turn to turn.
    """
    read, write = _plain(reading, 1), _plain(writing, 0)
    if read is None or write is None or not isinstance(loop.step, IntImm):
        return False
    facts = Arith(mutable_vars(f))
    known: dict[Var, Expr] = {}
    for let in _before(f, loop):
        facts.bind_value(let.var, let.value)
        known[let.var] = let.value
    facts.bind_loop(loop.var, loop.start, loop.stop, loop.step)
    for s in loop.body:
        if type(s) is S.Let and s.var not in facts.mutable:
            facts.bind_value(s.var, s.value)
            known[s.var] = substitute(s.value, known)
    (source, _), (target, written) = read, write
    bases, moved, places = [], [], []
    for p in (source, target):
        base, offset = _flat(p, known)
        form = facts.linear(offset)
        bases.append(base)
        places.append(form)
        moved.append(form.terms.get(facts.interner.key(loop.var), 0))
        atoms = [facts.atoms[key] for key in form.terms]
        if any(a is not loop.var and loop.var in variables(a) for a in atoms):
            return False
    if bases[0] is not bases[1] or not places[0].add(places[1], -1).same(Linear()):
        return False
    size = facts.bounds(facts.linear(substitute(written, known)))[1]
    return moved[0] > 0 and moved[0] * loop.step.value * target.pointer_type.elem.bytes >= size


def _plain(s: Stmt, side: int) -> tuple[E.Pointer, Expr] | None:
    """The address and the bytes of a copy that moves one row."""
    if type(s) is not S.Eval or type(s.value) is not E.Call or s.value.op != "dma_copy":
        return None
    pointer, width, size = s.value.args[side], s.value.args[2], s.value.args[4]
    if not isinstance(pointer, E.Pointer) or not Interner().same(width, size):
        return None
    return pointer, size


def _flat(p: E.Pointer, known: dict[Var, Expr]) -> tuple[Expr, Expr]:
    """The storage of a pointer and its offset."""
    base, offset = p.base, substitute(p.offset, known)
    while True:
        value = known.get(base) if type(base) is Var else base
        if not isinstance(value, E.Pointer) or value.elem is not p.elem:
            return base, offset
        base, offset = value.base, E.Binary("add", substitute(value.offset, known), offset)


def _before(f: PrimFunc, loop: S.For) -> list[S.Let]:
    """Definitions that hold in the loop, of variables that never change."""
    mutable = mutable_vars(f)
    inner = {id(s) for s in walk_stmts(loop.body)}
    return [s for s in walk_stmts(f.body) if type(s) is S.Let and id(s) not in inner and s.var not in mutable]
