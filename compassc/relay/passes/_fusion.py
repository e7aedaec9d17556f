"""Which calls of a function become one kernel: the graph of values and their users, post-dominators, groups."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field

from compass_core.dataclass import dataclass
from compassc.relay.expr import (
    Call,
    Constant,
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
from compassc.relay.operators import Op, OpPattern
from compassc.relay.types import TensorType, is_dynamic
from compassc.relay.visit import children, is_primitive, post_dominators, post_order

ELEMWISE, BROADCAST, INJECTIVE = OpPattern.ELEMWISE, OpPattern.BROADCAST, OpPattern.INJECTIVE
REDUCE, ANCHOR, TUPLE, OPAQUE = (
    OpPattern.COMM_REDUCE,
    OpPattern.OUT_ELEMWISE_FUSABLE,
    OpPattern.TUPLE,
    OpPattern.OPAQUE,
)
_FUSED_SCALARS = ("int32", "int64", "float32", "float64", "bool")


@dataclass(eq=False)
class Node:
    """A value of a function, with what uses it and how. `external`: it is asked for as a whole by something else than a call,
    a tuple or a projection. `dominator`: the first node that all uses lead to, `relation` the most that lies between."""

    e: Expr
    index: int
    pattern: OpPattern = OPAQUE
    external: bool = False
    users: list[tuple[Node, OpPattern]] = field(default_factory=list)
    dominator: Node | None = None
    relation: OpPattern = OPAQUE
    group: Group = field(init=False)

    def __post_init__(self) -> None:
        self.group = Group(self)


class Group:
    """Nodes that become one kernel: a forest, whose roots are the groups. `anchored`: a complex operator is in it."""

    def __init__(self, root: Node) -> None:
        self.parent: Group | None = None
        self.root, self.pattern, self.count = root, OPAQUE, 1
        self.anchored = False

    def find(self) -> Group:
        """The group that this one has become a part of."""
        found = self
        while found.parent is not None:
            found = found.parent
        return found


def is_closed(e: Expr) -> bool:
    """Whether an expression is a function that is not looked into: a kernel, or one for another compiler."""
    return is_primitive(e) or (isinstance(e, Function) and "Compiler" in e.attrs)


def graph_of(root: Function) -> list[Node]:
    """The values of a typed function in post-order, with patterns and users."""
    nodes: dict[int, Node] = {}
    order = [e for e in post_order(root, is_closed) if e is not root]
    made = [nodes.setdefault(id(e), Node(e, i)) for i, e in enumerate(order)]
    for e in (*order, root):
        _USES.get(type(e), _external)(e, nodes)
    for node in made:
        node.group.pattern, node.group.anchored = node.pattern, node.pattern == ANCHOR
    return made


def _external(e: Expr, nodes: dict[int, Node]) -> None:
    if not is_closed(e):
        for child in children(e):
            nodes[id(child)].external = True


def _constant(e: Constant, nodes: dict[int, Node]) -> None:
    if not e.data.shape and str(e.data.dtype) in _FUSED_SCALARS:
        nodes[id(e)].pattern = ELEMWISE


def _call(e: Call, nodes: dict[int, Node]) -> None:
    user = nodes[id(e)]
    if not isinstance(e.op, Op):
        nodes[id(e.op)].external = True
        pattern = OPAQUE
    else:
        number = e.op.get_attr("TOpPattern")
        pattern = OPAQUE if number is None else OpPattern(number)
        if is_dynamic(e.checked_type) and any(e.op.get_attr("TShapeDataDependent") or ()):
            pattern = OPAQUE
    user.pattern = pattern
    result = e.checked_type
    for a in e.args:
        edge, t = pattern, a.checked_type
        if edge is BROADCAST and isinstance(t, TensorType) and isinstance(result, TensorType):
            edge = ELEMWISE if t.shape == result.shape else edge
        nodes[id(a)].users.append((user, edge))


def _tuple(e: Tuple, nodes: dict[int, Node]) -> None:
    user = nodes[id(e)]
    user.pattern = TUPLE
    for f in e.fields:
        if isinstance(f.checked_type, TensorType):
            nodes[id(f)].users.append((user, INJECTIVE))
        else:
            nodes[id(f)].external = True


def _field(e: TupleGetItem, nodes: dict[int, Node]) -> None:
    user, of = nodes[id(e)], nodes[id(e.tuple_value)]
    user.pattern = INJECTIVE
    fields = getattr(e.tuple_value.checked_type, "fields", ())
    if all(isinstance(t, TensorType) for t in fields):
        of.users.append((user, INJECTIVE))
    else:
        of.external = True


_USES: dict[type, Callable[..., None]] = {
    Call: _call,
    Constant: _constant,
    Tuple: _tuple,
    TupleGetItem: _field,
    **dict.fromkeys((Function, If, Let, Match, RefCreate, RefRead, RefWrite), _external),
}


def find_dominators(nodes: Sequence[Node]) -> None:
    """The post-dominator of each node."""
    end = len(nodes)
    common = post_dominators([[end] if n.external else [user.index for user, _ in n.users] for n in nodes])
    for node, place in zip(reversed(nodes), reversed(common)):
        if place == end or node.pattern == OPAQUE:
            continue
        node.dominator = nodes[place]
        between = (node, *_between(node, node.dominator)[:-1])
        node.relation = max(edge for one in between for _, edge in one.users)


def _between(node: Node, sink: Node) -> list[Node]:
    """The nodes on the paths from a node, which is left out, to its dominator, which is the last."""
    seen: dict[int, Node] = {}
    waiting = [user for user, _ in node.users]
    while waiting:
        at = waiting.pop()
        if at is not sink and at.index not in seen:
            seen[at.index] = at
            waiting += [user for user, _ in at.users]
    return [*seen.values(), sink]


def _fuse(node: Node, path: Sequence[Node], sink: Node) -> None:
    target = sink.group
    for one in (node, *path[:-1]):
        child, parent = one.group.find(), target.find()
        if child is parent:
            continue
        parent.count += child.count
        child.parent = parent
        if child.anchored:
            assert not parent.anchored, "two complex operators do not go into one kernel"
            parent.anchored, parent.pattern = True, max(parent.pattern, child.pattern)


def _all_below(path: Sequence[Node], limit: OpPattern) -> bool:
    return all(one.group.find().pattern <= limit for one in path)


def _try(node: Node, sink: Node, phase: int, max_depth: int) -> None:
    """Fuse a node into its dominator, where the rules let it."""
    own, target = node.group.pattern, sink.group
    path = _between(node, sink)
    groups = {id(g): g.count for g in (node.group.find(), *(one.group.find() for one in path[:-1]))}
    merged = target.find()
    groups.pop(id(merged), None)
    if merged.count + sum(groups.values()) > max_depth:
        return
    if phase == 2:
        fits = own <= INJECTIVE and target.pattern == TUPLE and merged.pattern <= INJECTIVE
        if fits and _all_below(path, INJECTIVE):
            _fuse(node, path, sink)
        return
    if node.group.find() is merged or target.pattern == TUPLE:
        return
    if own == ANCHOR:
        fits = phase == 0 and node.relation == ELEMWISE and _all_below(path, BROADCAST)
    elif own <= BROADCAST:
        into = sink.group.find().pattern
        fits = (node.relation <= INJECTIVE or node.relation == REDUCE) and (
            _all_below(path[:-1], INJECTIVE) and (into <= ANCHOR)
        )
    else:
        fits = own in (INJECTIVE, TUPLE) and phase == 1 and _all_below(path, INJECTIVE)
    if fits:
        _fuse(node, path, sink)


def fuse(nodes: Sequence[Node], max_depth: int) -> None:
    """Put nodes into groups: first what follows complex operators and what is element-wise, then injective operators, then
    those that lead into tuples within kernels."""
    find_dominators(nodes)
    for phase in (0, 1, 2):
        for node in nodes:
            if node.group.pattern != OPAQUE and node.dominator is not None:
                _try(node, node.dominator, phase, max_depth)
