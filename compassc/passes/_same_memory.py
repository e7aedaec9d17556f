"""Whether tiles of different turns of a loop lie apart in the memory that they share."""

from __future__ import annotations

from collections.abc import Iterator

from compass_core.namedtuple import NamedTuple

from ..analysis.arith import Arith, Linear
from ..analysis.statements import defined_vars, fresh_copy, mutable_vars
from ..analysis.structure import Interner, effect_of
from ..ir import exprs as E
from ..ir import stmts as S
from ..ir.exprs import Expr, IntImm, Var
from ..ir.stmts import Body, PrimFunc, Stmt
from ..ir.visit import substitute, walk_exprs, walk_stmts

_MOST_TECS = 1 << 16
"""More than any machine has of TECs, or of groups of them."""


def apart(f: PrimFunc, loop: S.For, reading: Stmt, writing: Stmt) -> bool:
    """Whether what the copies of a statement read is never what those of another one wrote in turns before."""
    places = _Places(f, loop)
    reads = list(places.areas(fresh_copy((reading,)), 1))
    writes = list(places.areas((writing,), 0))
    return all(places.apart(r, w) for r in reads for w in writes)


class _Area(NamedTuple):
    """Bytes that a copy may touch: `size` of them from `place` behind `base`, which lies a turn's way further each turn."""

    base: Expr
    place: Linear
    size: int


class _Places:
    """Where copies in a loop begin, as sums of what stays the same from turn to turn and of the loop variable."""

    def __init__(self, f: PrimFunc, loop: S.For) -> None:
        self.loop = loop
        self.mutable = mutable_vars(f)
        self.facts = Arith(self.mutable)
        self.facts.calls |= dict.fromkeys(("get_local_size", "get_num_groups"), (1, _MOST_TECS))
        self.known: dict[Var, Expr] = {}
        self.varying = set(defined_vars(loop.body)) | self.mutable
        inside = {id(s) for s in walk_stmts(loop.body)}
        self._define(s for s in walk_stmts(f.body) if id(s) not in inside)
        self.step = self.facts.bounds(self._linear(loop.step))[0]
        self.facts.bind_loop(loop.loop_var, loop.min, loop.stop, loop.step)
        self._define(loop.body)

    def _define(self, body: Iterator[Stmt] | Body) -> None:
        """Learn the values of variables that are defined once, where they are the same whenever they are computed."""
        for s in body:
            if type(s) is S.Let and s.var not in self.mutable:
                self.facts.bind_value(s.var, s.value)
                if _is_settled(s.value):
                    self.known[s.var] = substitute(s.value, self.known)

    def _linear(self, e: Expr) -> Linear:
        return self.facts.linear(substitute(e, self.known))

    def areas(self, statement: Body, side: int) -> Iterator[_Area | None]:
        """What the copies of a statement read (side 1) or write (0); None for what is not known."""
        own = set(defined_vars(statement))
        for s in walk_stmts(statement):
            if type(s) is S.For:
                self.facts.bind_loop(s.loop_var, s.min, s.stop, s.step)
            self._define((s,))
            if type(s) is S.Evaluate and type(s.value) is E.Call and s.value.op == "dma_copy":
                yield self._area(s.value, side, own)

    def _area(self, copy: E.Call, side: int, own: set[Var]) -> _Area | None:
        pointer = copy.args[side]
        if not isinstance(pointer, E.Pointer):
            pointer = E.Pointer(pointer.pointer_type.elem, pointer, IntImm(copy.args[2].data_type, 0))
        place = Linear()
        base: Expr = pointer
        while isinstance(base, E.Pointer):
            place = place.add(self._linear(base.offset), base.elem.bytes)
            inner = base.base
            base = self.known.get(inner, inner) if type(inner) is Var else inner
        size = self._size(copy, 3 if side else 5)
        same = all(self._is_same(self.facts.atoms[key], own) for key in place.terms)
        return _Area(base, place, size) if same and size is not None else None

    def _is_same(self, atom: Expr, own: set[Var]) -> bool:
        """Whether an atom is the loop variable, a variable of the statement itself, or the same in all turns."""
        if atom is self.loop.loop_var or atom in own:
            return True
        parts = {x for x in walk_exprs(atom) if type(x) is Var}
        return _is_settled(atom) and self.loop.loop_var not in parts and not parts & self.varying

    def _size(self, copy: E.Call, stride: int) -> int | None:
        """The most bytes from the first to the last one that a copy touches on one side."""
        width, step, total = copy.args[2], copy.args[stride], copy.args[4]
        most = self.facts.bounds(self._linear(total))[1]
        same = Interner().same
        if same(width, total) or same(width, step):
            return most
        if type(width) is not IntImm or type(step) is not IntImm or width.value < 1 or step.value < 0:
            return None
        return (-(-most // width.value) - 1) * step.value + width.value

    def apart(self, read: _Area | None, write: _Area | None) -> bool:
        """Whether the way of a turn leads the reading copy past all that turns before it wrote, up or down."""
        if read is None or write is None or read.base is not write.base:
            return False
        key = self.facts.interner.key(self.loop.loop_var)
        moved = read.place.terms.get(key, 0)
        between = write.place.add(read.place, -1)  # the way from what a turn reads to what it writes
        if not moved or key in between.terms:
            return False
        low, high = self.facts.bounds(between)
        past = high + write.size if moved > 0 else read.size - low
        return past <= abs(moved) * self.step


def _is_settled(e: Expr) -> bool:
    """Whether an expression is made of variables alone, by operations that always give the same."""
    if e.flags & (E.F_LOAD | E.F_FUNC):
        return False
    return all(type(x) is not E.Call or effect_of(x) == "pure" for x in walk_exprs(e))
