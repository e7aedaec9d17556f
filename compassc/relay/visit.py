"""Walks over expressions without recursion: programs may be thousands of calls deep."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import is_
from typing import TypeVar

from compassc.relay.expr import (
    Call,
    Clause,
    Expr,
    Function,
    If,
    Let,
    Match,
    RefCreate,
    RefRead,
    RefWrite,
    Tuple,
    TupleGetItem,
)

T = TypeVar("T")
_CHILDREN: Mapping[type, Callable[..., tuple[Expr, ...]]] = {
    Call: lambda e: (e.op, *e.args),
    Function: lambda e: (*e.params, e.body),
    If: lambda e: (e.cond, e.true_branch, e.false_branch),
    Let: lambda e: (e.var, e.value, e.body),
    Match: lambda e: (e.data, *[c.rhs for c in e.clauses]),
    RefCreate: lambda e: (e.value,),
    RefRead: lambda e: (e.ref,),
    RefWrite: lambda e: (e.ref, e.value),
    Tuple: lambda e: e.fields,
    TupleGetItem: lambda e: (e.tuple_value,),
}
"""The expressions that those of each class consist of, in the order they are visited in. Classes left out have none."""
_OTHERS: Mapping[type, Callable[..., Expr]] = {
    Call: lambda e, op, *args: e.replace(op=op, args=args),
    Function: lambda e, *new: e.replace(params=new[:-1], body=new[-1]),
    If: lambda e, cond, yes, no: e.replace(cond=cond, true_branch=yes, false_branch=no),
    Let: lambda e, var, value, body: e.replace(var=var, value=value, body=body),
    Match: lambda e, data, *new: e.replace(
        data=data, clauses=tuple([Clause(c.lhs, rhs, c.span) for c, rhs in zip(e.clauses, new)])
    ),
    RefCreate: lambda e, value: e.replace(value=value),
    RefRead: lambda e, ref: e.replace(ref=ref),
    RefWrite: lambda e, ref, value: e.replace(ref=ref, value=value),
    Tuple: lambda e, *fields: e.replace(fields=fields),
    TupleGetItem: lambda e, value: e.replace(tuple_value=value),
}
"""The expressions of each class with others in the place of these."""


def _none(e: Expr) -> tuple[Expr, ...]:
    return ()


def children(e: Expr) -> tuple[Expr, ...]:
    """The expressions that an expression consists of, in the order they are visited in: of a call first the callee."""
    return _CHILDREN.get(type(e), _none)(e)


def with_children(e: Expr, new: Sequence[Expr]) -> Expr:
    """The expression with other children, in the order of `children`; itself where all are the same."""
    return e if all(map(is_, children(e), new)) else _OTHERS[type(e)](e, *new)


def depth_first(roots: Iterable[T], parts: Callable[[T], Iterable[T]]) -> Iterator[T]:
    """Each object that `roots` lead to once (by identity), its parts before it. Parts that wait for each other come in the order
    they are met in."""
    seen: set[int] = set()
    for root in roots:
        if id(root) in seen:
            continue
        seen.add(id(root))
        stack = [(root, iter(parts(root)))]
        while stack:
            e, rest = stack[-1]
            for part in rest:
                if (who := id(part)) not in seen:
                    seen.add(who)
                    stack.append((part, iter(parts(part))))
                    break
            else:
                stack.pop()
                yield e


def post_order(root: Expr, closed: Callable[[Expr], bool] = lambda e: False) -> Iterator[Expr]:
    """Each expression once (by identity), children before what they are part of; those of `closed` expressions are left out."""
    return depth_first((root,), lambda e: () if e is not root and closed(e) else children(e))


def is_primitive(e: Expr) -> bool:
    """Whether an expression is a function that is a kernel, which most passes do not look into."""
    return isinstance(e, Function) and bool(e.attrs.get("Primitive"))


def post_dominators(users: Sequence[Sequence[int]]) -> list[int]:
    """For each place of a graph, whose users come behind it, the first one that all ways from it go through: `len(users)` where
    there is none. What is used from outside has that end among its users."""
    end = len(users)
    common = [end] * (end + 1)
    for place in range(end - 1, -1, -1):
        met = users[place][0] if users[place] else end
        for user in users[place][1:]:
            while met != user:
                if met < user:
                    met = common[met]
                else:
                    user = common[user]
        common[place] = met
    return common[:end]


def rewrite(root: Expr, fn: Callable[[Expr, Expr], Expr], closed: Callable[[Expr], bool] = lambda e: False) -> Expr:
    """The expression rebuilt from its leaves: `fn(before, after)` gives what takes the place of a node `before`, of which
    `after` is the form with its children replaced. Shared nodes stay shared; binders are nodes like others. Within `closed`
    expressions nothing is replaced."""
    made: dict[int, Expr] = {}
    for e in post_order(root, closed):
        after = e if e is not root and closed(e) else with_children(e, [made[id(c)] for c in children(e)])
        made[id(e)] = fn(e, after)
    return made[id(root)]
