"""Branches, loops and sequences: conditions stay what they are, loops are functions that call themselves, sequences are known lists
of tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from compassc.importers.onnx.walk import Item
from compassc.importers.values import Refused
from compassc.relay.expr import Call, Function, If, Let, Tuple, Var
from compassc.relay.expr import Constant as Known
from compassc.relay.frontend.terms import INDEX, Expressions, Term, operator
from compassc.relay.operators import Op
from compassc.relay.types import FuncType, Open, TensorType, TupleType
from compassc.relay.visit import children, post_order, rewrite

if TYPE_CHECKING:
    from onnx import GraphProto


def type_of(x: Term) -> TensorType:
    return TensorType(x.shape, x.kind)


def common(one: TensorType, two: TensorType) -> TensorType:
    """The type of what may be of either. Refused where they have no common one."""
    if one.dtype != two.dtype or len(one.shape) != len(two.shape):
        raise Refused(f"tensors of {one} and of {two} have no common type")
    shape = [a if isinstance(a, int) and a == b else Open() for a, b in zip(one.shape, two.shape, strict=True)]
    return TensorType(shape, one.dtype)


def known_as(b: Expressions, x: Term, wanted: TensorType) -> Term:
    """A tensor of which less is known: its extents may be open."""
    if all(a == d for a, d in zip(x.shape, wanted.shape, strict=True)):
        return x
    v = Var("x", wanted)
    return b.term(Call(Function([v], v, wanted), [x.expr]))


@operator("If")
def branch(b: Expressions, condition: Term, *, then_branch: GraphProto, else_branch: GraphProto) -> list[Item]:
    if condition.array is not None:
        return b.run(then_branch if condition.array.reshape(-1)[0] else else_branch, {})
    both = [b.body(then_branch, {}, "then_branch"), b.body(else_branch, {}, "else_branch")]
    types = [common(type_of(x), type_of(y)) for x, y in zip(*both, strict=True)]
    yes, no = (Tuple([known_as(b, v, t).expr for v, t in zip(values, types, strict=True)]) for values in both)
    made = If(_scalar(b, condition).expr, yes, no)
    return list(b.terms(made))


def _scalar(b: Expressions, x: Term) -> Term:
    return b.call("reshape", x, newshape=[]) if x.rank else x


Body = Callable[[Term, Sequence[Term]], tuple[Term | None, list[Term], list[Term]]]
"""Of the number of the step and the states: whether to go on, the next states, and what is collected."""


def repeated(b: Expressions, states: Sequence[Term], going: Term | None, limit: Term | None, body: Body) -> list[Term]:
    """A loop. The last states, then what was collected, one behind the other on a new first axis."""
    types = [type_of(s) for s in states]
    while True:  # until the types of states are those after any number of steps
        step = b.term(Var("i", TensorType((), INDEX)))
        inside = [b.term(Var(f"state{n}", t)) for n, t in enumerate(types)]
        on, after, collected = body(step, inside)
        wider = [common(t, type_of(s)) for t, s in zip(types, after, strict=True)]
        if all(
            isinstance(t, int) or not isinstance(d, int) for w, o in zip(wider, types) for t, d in zip(w.shape, o.shape)
        ):
            break
        types = wider
    rows = [TensorType((Open(), *c.shape), c.kind) for c in collected]
    gathered = [b.term(Var(f"rows{n}", t)) for n, t in enumerate(rows)]
    flag = b.term(Var("going", TensorType((), "bool")))
    params = [step, flag, *inside, *gathered]
    more = [
        b.call("concatenate", [g, b.call("expand_dims", c, axis=0)], axis=0)
        for g, c in zip(gathered, collected, strict=True)
    ]
    asked = flag if limit is None else b.call("logical_and", flag, b.call("less", step, _scalar(b, limit)))
    following = [asked, b.call("add", step, 1), _scalar(b, on) if on is not None else flag, *after, *more]
    outside, (asked, *following) = hoisted(b, following, params)
    params += [v for v, _ in outside]
    following += params[len(following) :]
    kinds = [type_of(p) for p in params]
    results = params[2 : 2 + len(inside) + len(gathered)]
    made = TupleType([type_of(r) for r in results])
    loop = Var("loop", FuncType(kinds, made))
    again = Call(loop, [known_as(b, v, t).expr for v, t in zip(following, kinds, strict=True)])
    chosen = If(asked.expr, again, Tuple([r.expr for r in results]))
    function = Let(loop, Function([_variable(p) for p in params], chosen, made), loop)
    first = [np.asarray(0, INDEX), _scalar(b, going) if going is not None else np.asarray(True), *states]
    first += [*(_nothing(b, c) for c in collected), *(e for _, e in outside)]
    return b.terms(Call(function, [known_as(b, b.of(v), t).expr for v, t in zip(first, kinds, strict=True)]))


def hoisted(b: Expressions, made: Sequence[Term], params: Sequence[Term]) -> tuple[list[tuple[Term, Term]], list[Term]]:
    """What a loop computes again in each step, of nothing that changes: variables for it and what they stand for; and what is made, with these."""
    changing = {id(p.expr) for p in params}
    roots = [m.expr for m in made]
    for e in post_order(Tuple(roots)):
        if any(id(c) in changing for c in children(e)):
            changing.add(id(e))
    found: dict[int, tuple[Term, Term]] = {}
    seen: set[int] = set()
    waiting = list(roots)
    while waiting:
        e = waiting.pop()
        if id(e) in seen or isinstance(e, (Known, Function, Let, Op, Var)):
            continue
        seen.add(id(e))
        kind = e.checked_type_
        if id(e) not in changing and isinstance(kind, TensorType):
            found[id(e)] = b.term(Var(f"same{len(found)}", kind)), b.term(e)
        else:
            waiting += [e.cond] if isinstance(e, If) else children(e)
    if not found:
        return [], list(made)
    whole = rewrite(Tuple(roots), lambda _, e: found[id(e)][0].expr if id(e) in found else e)
    assert isinstance(whole, Tuple)
    return list(found.values()), [b.term(e) for e in whole.fields]


def _variable(x: Term) -> Var:
    assert isinstance(x.expr, Var)
    return x.expr


def _nothing(b: Expressions, x: Term) -> Term:
    """No tensors like one, on a new first axis."""
    if not all(isinstance(d, int) for d in x.shape):
        raise Refused("the shape of what it collects is only known at run time")
    return b.known(np.zeros((0, *x.shape), x.dtype))


@operator("Loop")
def loop(
    b: Expressions, most: Term | None, condition: Term | None = None, *states: Term, body: GraphProto
) -> list[Term]:
    if not all(isinstance(s, Term) for s in states):
        raise Refused("one of its states is a sequence of tensors")
    names = [i.name for i in body.input]

    def once(step: Term, inside: Sequence[Term]) -> tuple[Term, list[Term], list[Term]]:
        yes = b.known(np.asarray(True))
        on, *made = b.body(body, dict(zip(names, [step, yes, *inside], strict=True)), "body")
        return on, made[: len(states)], made[len(states) :]

    limit = None if most is None else b.cast(most, INDEX)
    return repeated(b, states, condition, limit, once)


@operator("Scan", since=9)
def scan(
    b: Expressions, *xs: Term, body: GraphProto, num_scan_inputs: int, scan_input_axes: Sequence[int] | None = None,
    scan_input_directions: Sequence[int] | None = None, scan_output_axes: Sequence[int] | None = None,
    scan_output_directions: Sequence[int] | None = None,
) -> list[Term]:  # fmt: skip
    many = num_scan_inputs
    states, scanned = xs[:-many], list(xs[-many:])
    axes = [x.axis(a) for x, a in zip(scanned, scan_input_axes or [0] * many, strict=True)]
    backward = list(scan_input_directions or [0] * many)
    steps = b.size(scanned[0], axes[0])
    limit = b.of(np.asarray(steps, INDEX)) if isinstance(steps, int) else steps
    scanned = [b.call("reverse", x, axis=a) if back else x for x, a, back in zip(scanned, axes, backward, strict=True)]
    names = [i.name for i in body.input]

    def once(step: Term, inside: Sequence[Term]) -> tuple[None, list[Term], list[Term]]:
        items = [b.call("take", x, step, axis=a) for x, a in zip(scanned, axes, strict=True)]
        made = b.body(body, dict(zip(names, [*inside, *items], strict=True)), "body")
        return None, made[: len(states)], made[len(states) :]

    found = repeated(b, states, None, limit, once)
    outputs = []
    count = len(found) - len(states)
    turned = list(scan_output_directions or [0] * count)
    for x, axis, back in zip(found[len(states) :], scan_output_axes or [0] * count, turned, strict=True):
        x = b.call("reverse", x, axis=0) if back else x
        at = x.axis(axis)
        order = [*range(1, at + 1), 0, *range(at + 1, x.rank)]
        outputs.append(b.transpose(x, order))
    return [*found[: len(states)], *outputs]


@operator("SequenceMap", since=17)
def mapped(b: Expressions, xs: list[Term], *others: Item, body: GraphProto) -> list[list[Item]]:
    names = [i.name for i in body.input]
    rows = []
    for i, x in enumerate(xs):
        given: Mapping[str, Item] = dict(
            zip(names, [x, *(o[i] if isinstance(o, list) else o for o in others)], strict=True)
        )
        rows.append(b.run(body, given))
    return [list(column) for column in zip(*rows, strict=True)]
