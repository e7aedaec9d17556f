"""Which matches of a pattern in a program can be replaced together: they do not overlap, and nothing else uses their insides."""

from __future__ import annotations

from collections.abc import Iterator

from compass_core.dataclass import dataclass
from compassc.relay.dataflow_pattern.matcher import Matcher, NodeMap
from compassc.relay.dataflow_pattern.patterns import (
    AltPattern,
    CallPattern,
    ConstantPattern,
    DFPattern,
    DominatorPattern,
    ExprPattern,
    FunctionPattern,
    TuplePattern,
    parts,
    pattern_order,
)
from compassc.relay.expr import (
    Call,
    Constant,
    Constructor,
    Expr,
    Function,
    GlobalVar,
    Match,
    Tuple,
    TupleGetItem,
    Var,
)
from compassc.relay.module import IRModule
from compassc.relay.operators import Op
from compassc.relay.variables import defined
from compassc.relay.visit import children, post_order

PARTITIONED = "PartitionedFromPattern"
"""The attribute of functions that were made of matches, in which no others are looked for."""
_COPIED = (Constant, Constructor, Function, GlobalVar, Op)
"""What may stand inside of several matches and outside."""
_NO_INPUTS = (Constructor, Function, GlobalVar, Op)


@dataclass(frozen=True)
class Group:
    """A match. `inside`: its expressions, parts first and `root` last; `inputs`: those that they take from outside, in the
    order of the pattern; `number` counts the matches that were found."""

    number: int
    root: Expr
    found: NodeMap
    inputs: list[Expr]
    inside: list[Expr]


def groups(pattern: DFPattern, root: Expr, module: IRModule) -> dict[int, Group]:
    """The matches in a program by the identities of their roots. Those nearer to the result of the program come first, and
    keep what they share with others."""
    matcher = Matcher(root, module)
    order = list(pattern_order(pattern))
    graph = matcher.graph
    made: dict[int, Group] = {}
    taken: set[int] = set()
    skipped: set[int] = set()
    number = 0
    for e in reversed(graph.order):
        if isinstance(e, Function) and PARTITIONED in e.attrs and id(e) not in taken:
            skipped.update(map(id, post_order(e)))
        if id(e) in taken or id(e) in skipped:
            continue
        found = matcher.match(pattern, e)
        if found is None:
            continue
        inputs = _inputs(order, found)
        group = _group(number, e, found, inputs)
        number += 1
        if _closed(group, matcher, taken):
            made[id(e)] = group
            taken.update(id(n) for n in group.inside if not isinstance(n, _COPIED) or n is e)
    return made


def _group(number: int, root: Expr, found: NodeMap, inputs: list[Expr]) -> Group:
    outside = set(map(id, inputs))
    if id(root) in outside:  # a leaf of the pattern took all of it
        return Group(number, root, found, [c for c in children(root) if not isinstance(c, _NO_INPUTS)], [root])
    inside = [e for e in post_order(root, lambda e: id(e) in outside) if id(e) not in outside]
    bound = {v for e in inside for v in _defined(e)}
    free = [e for e in inside if isinstance(e, Var) and e not in bound and e is not root]
    inputs = [*(e for e in inputs if e not in bound), *free]
    return Group(number, root, found, inputs, [e for e in inside if e not in free])


def _inputs(order: list[DFPattern], found: NodeMap) -> list[Expr]:
    """The expressions that leaves of a pattern stand for, each once."""
    embedded = set(_embedded(order, found))
    made: dict[Expr, None] = {}
    for p in order:
        for e in found.get(p, ()):
            for given in _leaves(p, e):
                if given not in embedded and not isinstance(given, _NO_INPUTS) and not _is_constant(p, given):
                    made[given] = None
    return list(made)


def _leaves(p: DFPattern, e: Expr) -> tuple[Expr, ...]:
    """What a pattern takes from outside that matched an expression."""
    if isinstance(p, CallPattern) and p.args is None:
        return tuple(e.args) if isinstance(e, Call) else ()
    if isinstance(p, TuplePattern) and p.fields is None:
        return tuple(e.fields) if isinstance(e, Tuple) else ()
    return () if parts(p) or isinstance(p, TuplePattern) else (e,)


def _embedded(order: list[DFPattern], found: NodeMap) -> Iterator[Expr]:
    """What is inside though a leaf stands for it: nodes of the paths of dominators, and functions."""
    for p in order:
        if isinstance(p, DominatorPattern):
            for within in (p.parent, p.path):
                yield from found.get(within, ())
        elif isinstance(p, FunctionPattern):
            for e in found.get(p, ()):
                yield from post_order(e)


def _is_constant(p: DFPattern, e: Expr) -> bool:
    """Whether a pattern says that an expression is a constant, which then is part of the match."""
    if isinstance(p, AltPattern):
        return _is_constant(p.left, e) or _is_constant(p.right, e)
    return isinstance(e, Constant) and isinstance(p, (ConstantPattern, ExprPattern))


def _closed(group: Group, matcher: Matcher, taken: set[int]) -> bool:
    """Whether a match shares nothing with others, and nothing outside uses its inside but to go into its root."""
    graph = matcher.graph
    inside = set(map(id, group.inside))
    for e in group.inside:
        if e is group.root or isinstance(e, _COPIED):
            continue
        if id(e) in taken:
            return False
        for user in graph.users[graph.index[id(e)]]:
            outside = graph.order[user]
            if id(outside) not in inside and not graph.dominates(group.root, outside):
                return False
    return True


def _defined(e: Expr) -> list[Var]:
    """The variables that an expression defines."""
    return [v for c in e.clauses for v in defined(c)] if isinstance(e, Match) else defined(e)


def reaches_in(group: Group) -> bool:
    """Whether an input uses a variable that the match defines: then it has no meaning outside."""
    bound = {v for e in group.inside for v in _defined(e)}
    return bool(bound) and any(v in bound for e in group.inputs for v in post_order(e))


def name(group: Group) -> str:
    """What a match consists of: `nn.conv2d_nn.relu_`."""
    return "".join(map(_name, group.inside))


def _name(e: Expr) -> str:
    if isinstance(e, Call):
        return f"{e.op.name}_" if isinstance(e.op, Op) else "Call_"
    if isinstance(e, Function):
        return "Function"
    if isinstance(e, (Constant, Constructor, GlobalVar, Op, Var)):
        return ""
    index = str(e.index) if isinstance(e, TupleGetItem) else ""
    return f"{type(e).__name__}{index}_"
