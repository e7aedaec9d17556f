"""Calls of one operator on the same data, as one call: what the passes that combine them share."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from compassc.relay.builders import build
from compassc.relay.expr import Call, Expr, Function, If, Let, Match
from compassc.relay.module import IRModule
from compassc.relay.operators import op_name
from compassc.relay.passes._functions import on_functions
from compassc.relay.types import is_dynamic
from compassc.relay.visit import is_primitive, post_order, rewrite

Key = Callable[[Call], "Hashable | None"]
"""What calls that are combined have in common besides their data; None for calls that are left alone."""
Combine = Callable[[Sequence[Call], Expr, Sequence[Expr]], Sequence[Expr]]
"""From typed calls, their data and their other arguments to what takes the places of the calls."""


def combine(module: IRModule, name: str, least: int, key: Key, made: Combine) -> IRModule:
    """The module with calls of an operator on the same data combined, where there are `least` of them."""
    return on_functions(module, lambda f, _: _function(f, name, max(least, 2), key, made))


def _function(f: Function, name: str, least: int, key: Key, made: Combine) -> Function:
    order = list(post_order(f, is_primitive))
    if any(isinstance(e, (If, Let, Match)) or (isinstance(e, Function) and e is not f) for e in order):
        return f  # what is combined is computed at one place, and branches need not all be
    groups: dict[Hashable, list[Call]] = {}
    for e in order:
        if not isinstance(e, Call) or op_name(e) != name or any(is_dynamic(a.checked_type) for a in e.args):
            continue
        if (common := key(e)) is not None:
            groups.setdefault((id(e.args[0]), common), []).append(e)
    chosen = [calls for calls in groups.values() if len(calls) >= least and _independent(calls)]
    return _combined(f, chosen, made) if chosen else f


def _independent(calls: Sequence[Call]) -> bool:
    members = set(map(id, calls))
    return not any(id(e) in members for c in calls for other in c.args[1:] for e in post_order(other))


def _combined(f: Function, groups: Sequence[Sequence[Call]], made: Combine) -> Function:
    places = {id(c): (g, i) for g, calls in enumerate(groups) for i, c in enumerate(calls)}
    results: dict[int, Sequence[Expr]] = {}
    known: dict[int, Expr] = {}

    def replaced(before: Expr, after: Expr) -> Expr:
        known[id(before)] = after
        if id(before) not in places:
            return after
        group, place = places[id(before)]
        if group not in results:
            calls = groups[group]
            assert isinstance(after, Call)
            others = [rewrite(c.args[1], lambda b, a: known.get(id(b), a)) for c in calls]
            results[group] = made(calls, after.args[0], others)
        known[id(before)] = results[group][place]
        return results[group][place]

    found = rewrite(f, replaced, is_primitive)
    assert isinstance(found, Function), "a function stays one"
    return found


def sizes(e: Expr) -> tuple[int, ...]:
    """The extents of a typed tensor."""
    found: tuple[int, ...] = e.checked_type.concrete_shape  # type: ignore[attr-defined]  # of a TensorType
    return found


def slices(of: Expr, axis: int, extents: Sequence[int]) -> list[Expr]:
    """The parts of a tensor along an axis."""
    found: list[Expr] = []
    at = 0
    for n in extents:
        begin, end = [0] * axis + [at], [-1] * axis + [n]
        found.append(build("strided_slice", of, begin, end, [1] * len(begin), slice_mode="size"))
        at += n
    return found
