"""The form that functions with blocks are kept in after each step: simplified bindings and conditions, regions of all
blocks."""

from __future__ import annotations

from operator import is_
from typing import Any

from compassc.analysis.arith import Arith
from compassc.analysis.conditions import conjuncts, joined
from compassc.analysis.simplify import Simplifier
from compassc.ir import stmts as S
from compassc.ir.exprs import Expr, IntImm
from compassc.ir.stmts import Body, PrimFunc, Stmt
from compassc.ir.visit import rewrite
from compassc.tir.blocks import add, declared, number
from compassc.tir.digits import split_digit
from compassc.tir.regions import regions

EXPLICIT = {"reads": "explicit_read_region", "writes": "explicit_write_region"}
"""Annotations of a block: places in its lists of regions that the user gave, which are kept."""
ONLY = "only"
"""The first of these places, where the user gave all regions that there are."""


def canonical(function: PrimFunc, before: Body = ()) -> PrimFunc:
    """The function in this form. `before`: what it was made of, in this form: a statement that it has from there, at a
    place where the same holds, stays as it is."""
    body = _Canonical(function, before).body(function.body)
    return function if body is function.body else function.replace(body=body)


class _Places:
    """Where the statements of a body stand: the loops and axes around them, as numbers."""

    def __init__(self) -> None:
        self.numbers: dict[tuple[int | None, ...], int] = {}
        self.kept: dict[Stmt, int] = {}
        self.now: int | None = 0
        """The place that is looked at; None for one that the body does not have."""

    def enter(self, body: Body) -> None:
        """Learn the statements of a body."""
        around = self.now
        assert around is not None
        for s in body:
            self.kept[s] = around
            self.now = self.numbers.setdefault(self._inside(s), len(self.numbers) + 1)
            for inner in s.bodies():
                self.enter(inner)
            self.now = around

    def has(self, s: Stmt) -> bool:
        """Whether a statement stands at the same place there."""
        return self.now is not None and self.kept.get(s) == self.now

    def go_inside(self, s: Stmt) -> int | None:
        """Look at the place inside of a statement; gives the one around it."""
        around = self.now
        self.now = self.numbers.get(self._inside(s)) if around is not None else None
        return around

    def _inside(self, s: Stmt) -> tuple[int | None, ...]:
        """The place inside of a statement by what is known there, each expression by its identity."""
        if isinstance(s, S.For):
            return self.now, *map(id, (s.loop_var, s.min, s.stop, s.step))
        return self.now, *map(id, (*s.vars, *s.starts, *s.extents) if isinstance(s, S.Block) else ())


class _Canonical:
    def __init__(self, function: PrimFunc, before: Body) -> None:
        self.facts = Arith()
        self.simplify = Simplifier(self.facts).expr
        self.buffers = declared(function.body)
        self.places = _Places()
        if all(self.buffers.get(data) is buffer for data, buffer in declared(before).items()):
            self.places.enter(before)

    def body(self, body: Body) -> Body:
        made = tuple([self.stmt(s) for s in body])
        return body if all(map(is_, made, body)) else made

    def stmt(self, s: Stmt) -> Stmt:
        if self.places.has(s):
            return s
        around = self.places.go_inside(s)
        if isinstance(s, S.For):
            mark = self.facts.mark()
            self.facts.bind_loop(s.loop_var, s.min, s.stop, s.step)
            made: Stmt = s.map(self.simplify, self.body)
            self.facts.release(mark)
        elif isinstance(s, S.Block):
            made = self.block(s)
        else:
            made = s.map(lambda e: e, self.body)
        self.places.now = around
        return made

    def block(self, s: S.Block) -> Stmt:
        bindings = tuple([rewrite(self.simplify(e), split_digit) for e in s.iter_values])
        where = joined(self._conditions(s.predicate))
        mark = self.facts.mark()
        for var, start, extent in zip(s.vars, s.starts, s.extents):
            self.facts.bind_loop(var, start, add(start, extent), number(1, var))
        init, body = self.body(s.init), self.body(s.body)
        found = s.replace(iter_values=bindings, predicate=where, init=init, body=body)
        reads, writes = regions(found, self.buffers, self.facts)
        self.facts.release(mark)
        notes = dict(s.annotations)
        made = {}
        for side, regions_found in (("reads", reads), ("writes", writes)):
            made[side], places = self._merged(regions_found, getattr(s, side), notes.get(EXPLICIT[side]))
            if places is not None:
                notes[EXPLICIT[side]] = places
            else:
                notes.pop(EXPLICIT[side], None)
        made_block = found.replace(**made, annotations=tuple(notes.items()))
        return s if self._is_same(s, made_block) else made_block

    def _is_same(self, one: S.Block, other: S.Block) -> bool:
        """Whether a block has the form already."""
        same = self.facts.interner.same
        pairs = [(one.predicate, other.predicate)]
        for side in ("iter_values", "reads", "writes"):
            a, b = getattr(one, side), getattr(other, side)
            if len(a) != len(b):
                return False
            pairs += zip(a, b)
        kept = one.body is other.body and one.init is other.init and one.annotations == other.annotations
        return kept and all(same(a, b) for a, b in pairs)

    def _merged(
        self, found: tuple[Expr, ...], given: tuple[Expr, ...], explicit: object
    ) -> tuple[tuple[Expr, ...], list[Any] | None]:
        """The regions that were found, with those that the user gave in their place, as far as there still are such
        buffers; and the places of these."""
        if not isinstance(explicit, list) or not explicit:
            return found, None
        known = [r for r in given if r.buffer.data in self.buffers]  # type: ignore[attr-defined]
        if explicit[0] == ONLY:  # the user hid what else there is
            return tuple(known), [ONLY, *range(len(known))]
        kept = {i: given[i] for i in explicit if i < len(given) and given[i] in known}
        data = {r.buffer.data for r in kept.values()}  # type: ignore[attr-defined]
        rest = [r for r in found if r.buffer.data not in data]  # type: ignore[attr-defined]
        for i in sorted(kept):
            rest.insert(i, kept[i])
        places = [next(i for i, r in enumerate(rest) if r is k) for k in kept.values()]
        return tuple(rest), sorted(places) or None

    def _conditions(self, where: Expr) -> list[Expr]:
        """The conditions that are not known to hold, each once."""
        found: dict[int, Expr] = {}
        for c in conjuncts(where):
            e = rewrite(self.simplify(c), split_digit)
            if not (isinstance(e, IntImm) and e.value):
                found.setdefault(self.facts.interner.key(e), e)
        return list(found.values())
