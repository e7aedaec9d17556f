"""Whether expressions match patterns, and by which expressions. Nothing recurses: patterns and programs may be deep."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property

from compassc.ir.exprs import FloatImm, IntImm
from compassc.ir.rules import rule, table
from compassc.relay.dataflow_pattern.graph import Graph, inputs
from compassc.relay.dataflow_pattern.patterns import (
    AltPattern,
    AttrPattern,
    CallPattern,
    ConstantPattern,
    DataTypePattern,
    DFPattern,
    DominatorPattern,
    ExprPattern,
    FunctionPattern,
    IfPattern,
    LetPattern,
    ShapePattern,
    TupleGetItemPattern,
    TuplePattern,
    TypePattern,
    VarPattern,
    WildcardPattern,
)
from compassc.relay.equal import structural_equal
from compassc.relay.expr import Call, Constant, Expr, Function, If, Let, Tuple, TupleGetItem, Var, as_expr
from compassc.relay.infer import types_within
from compassc.relay.module import IRModule
from compassc.relay.operators import Op
from compassc.relay.passes.infer_type import ModuleDefinitions
from compassc.relay.steps import Steps, run
from compassc.relay.types import TensorType, Type

NodeMap = dict[DFPattern, list[Expr]]
"""What each pattern was matched by; several expressions where it stands for nodes of a path, or contains itself."""
COMMUTATIVE = ("add", "multiply")
"""The operators whose arguments are tried in reverse, too."""


def match(pattern: DFPattern, expr: Expr) -> bool:
    """Whether an expression matches a pattern."""
    e = as_expr(expr)
    return Matcher(e).match(pattern, e) is not None


class Matcher:
    """Matches patterns with parts of one program, `root`, whose global names `module` knows. A failed attempt leaves nothing behind."""

    def __init__(self, root: Expr, module: IRModule | None = None) -> None:
        self.root, self.module = root, module
        self.taken: dict[DFPattern, Expr] = {}
        """What patterns stand for, which they stand for everywhere."""
        self.found: NodeMap = {}
        self.trail: list[tuple[DFPattern, Expr | None]] = []
        """The entries of `found`, by age, and what the pattern stood for before."""
        self.redirected: set[tuple[DFPattern, int]] = set()
        """The redirected wildcards that are being matched, with what: one that stands for itself matches nothing."""

    @cached_property
    def graph(self) -> Graph:
        """The program as a graph."""
        return Graph(self.root)

    @cached_property
    def type_of(self) -> Callable[[Expr], Type]:
        """The types of the parts of the program."""
        return types_within(self.root, ModuleDefinitions(self.module or IRModule()))

    def match(self, pattern: DFPattern, e: Expr) -> NodeMap | None:
        """What the patterns are matched by where `e` matches, None where it does not."""
        self.taken, self.found, self.trail, self.redirected = {}, {}, [], set()
        return self.found if run(self.visit(pattern, e, True)) else None

    def visit(self, pattern: DFPattern, e: Expr, once: bool) -> Steps[bool]:
        """Match a part. `once`: the pattern stands for one expression; nodes of paths are many."""
        if once and pattern in self.taken:
            return self.taken[pattern] is e
        leaf = _LEAVES.get(type(pattern))
        mark = len(self.trail)
        if leaf(pattern, e) if leaf else (yield _RULES[type(pattern)](self, pattern, e, once)):
            self.found.setdefault(pattern, []).append(e)
            self.trail.append((pattern, self.taken.get(pattern)))
            if once:
                self.taken[pattern] = e
            return True
        self.undo(mark)
        return False

    def undo(self, mark: int) -> None:
        """Forget the matches since a mark."""
        while len(self.trail) > mark:
            pattern, before = self.trail.pop()
            self.found[pattern].pop()
            if not self.found[pattern]:
                del self.found[pattern]
            if before is not None:
                self.taken[pattern] = before
            else:
                self.taken.pop(pattern, None)

    def all(self, patterns: Sequence[DFPattern], given: Sequence[Expr], once: bool) -> Steps[bool]:
        """Match parts in order."""
        mark = len(self.trail)
        if len(patterns) == len(given):
            for p, e in zip(patterns, given):
                if not (yield self.visit(p, e, once)):
                    break
            else:
                return True
        self.undo(mark)
        return False

    # -------------------------------------------------------------------------------------------- rules by kind of pattern

    def wildcard(self, p: WildcardPattern, e: Expr, once: bool) -> Steps[bool]:
        if p.target is None:
            return True
        key = (p, id(e))
        if key in self.redirected:
            return False
        self.redirected.add(key)
        matched = yield self.visit(p.target, e, once)
        self.redirected.discard(key)
        return bool(matched)

    def alternative(self, p: AltPattern, e: Expr, once: bool) -> Steps[bool]:
        return bool((yield self.visit(p.left, e, once)) or (yield self.visit(p.right, e, once)))

    def call(self, p: CallPattern, e: Expr, once: bool) -> Steps[bool]:
        if not isinstance(e, Call):
            return False
        if (yield self.visit(p.op, e.op, once)):
            if p.args is None or (yield self.all(p.args, e.args, once)):
                return True
            return _op_of(p) in COMMUTATIVE and bool((yield self.all(p.args[::-1], e.args, once)))
        for other in _reassociated(p, e):
            if (yield self.visit(other, e, once)):
                return True
        return False

    def function(self, p: FunctionPattern, e: Expr, once: bool) -> Steps[bool]:
        if not isinstance(e, Function):
            return False
        if p.params is not None and not (yield self.all(p.params, e.params, once)):
            return False
        return bool((yield self.visit(p.body, e.body, once)))

    def branch(self, p: IfPattern, e: Expr, once: bool) -> Steps[bool]:
        wanted = (p.cond, p.true_branch, p.false_branch)
        return isinstance(e, If) and bool((yield self.all(wanted, (e.cond, e.true_branch, e.false_branch), once)))

    def let(self, p: LetPattern, e: Expr, once: bool) -> Steps[bool]:
        return isinstance(e, Let) and bool((yield self.all((p.var, p.value, p.body), (e.var, e.value, e.body), once)))

    def tuple(self, p: TuplePattern, e: Expr, once: bool) -> Steps[bool]:
        return isinstance(e, Tuple) and bool(p.fields is None or (yield self.all(p.fields, e.fields, once)))

    def item(self, p: TupleGetItemPattern, e: Expr, once: bool) -> Steps[bool]:
        if not isinstance(e, TupleGetItem) or p.index not in (None, e.index):
            return False
        return bool((yield self.visit(p.tuple, e.tuple_value, once)))

    def attributes(self, p: AttrPattern, e: Expr, once: bool) -> Steps[bool]:
        return bool((yield self.visit(p.pattern, e, once))) and _has_attributes(e, p.attrs)

    def type(self, p: TypePattern, e: Expr, once: bool) -> Steps[bool]:
        return bool((yield self.visit(p.pattern, e, once))) and self.type_of(e) == p.type

    def data_type(self, p: DataTypePattern, e: Expr, once: bool) -> Steps[bool]:
        if not (yield self.visit(p.pattern, e, once)):
            return False
        found = self.type_of(e)
        return isinstance(found, TensorType) and found.dtype == p.dtype

    def shape(self, p: ShapePattern, e: Expr, once: bool) -> Steps[bool]:
        if not (yield self.visit(p.pattern, e, once)):
            return False
        found = self.type_of(e)
        return isinstance(found, TensorType) and structural_equal(found.shape, p.shape)

    def dominator(self, p: DominatorPattern, e: Expr, once: bool) -> Steps[bool]:
        if not (yield self.visit(p.child, e, once)):
            return False
        parent: Expr | None = None
        seen: set[int] = set()
        todo = [*reversed(inputs(e))]
        while todo:
            n = todo.pop()
            if id(n) in seen:
                continue
            seen.add(id(n))
            if (yield self.visit(p.parent, n, True)):
                parent = n
            elif (yield self.visit(p.path, n, False)):
                todo += reversed(inputs(n))
            else:
                return False
        return parent is not None and self.graph.dominates(e, parent)


_LEAVES: Mapping[type, Callable[[DFPattern, Expr], bool]] = table(
    rule(ConstantPattern, lambda p, e: isinstance(e, Constant)),
    rule(ExprPattern, lambda p, e: p.expr is e or (type(p.expr) is type(e) and structural_equal(p.expr, e))),
    rule(VarPattern, lambda p, e: isinstance(e, Var) and p.name_hint in ("", e.name_hint)),
)
_RULES: Mapping[type, Callable[..., Steps[bool]]] = {
    AltPattern: Matcher.alternative,
    AttrPattern: Matcher.attributes,
    CallPattern: Matcher.call,
    DataTypePattern: Matcher.data_type,
    DominatorPattern: Matcher.dominator,
    FunctionPattern: Matcher.function,
    IfPattern: Matcher.branch,
    LetPattern: Matcher.let,
    ShapePattern: Matcher.shape,
    TupleGetItemPattern: Matcher.item,
    TuplePattern: Matcher.tuple,
    TypePattern: Matcher.type,
    WildcardPattern: Matcher.wildcard,
}


def _op_of(given: object) -> str:
    """The operator that an expression or a pattern is a call of, "" for none."""
    if isinstance(given, CallPattern):
        callee = given.op.expr if isinstance(given.op, ExprPattern) else None
    else:
        callee = given.op if isinstance(given, Call) else None
    return callee.name if isinstance(callee, Op) else ""


def _reassociated(p: CallPattern, e: Call) -> Iterator[CallPattern]:
    """The forms of `(a * b) / c` as products with a quotient, and back, where the expression is one."""
    wanted = {"divide": "multiply", "multiply": "divide"}.get(_op_of(p), "")
    if not wanted or _op_of(e) != wanted or p.args is None or len(p.args) != 2 or _op_of(p) not in map(_op_of, e.args):
        return
    for i, inner in enumerate(p.args if wanted == "divide" else p.args[:1]):
        if not isinstance(inner, CallPattern) or _op_of(inner) != wanted or len(inner.args or ()) != 2:
            continue
        a, b = inner.args or ()
        other = p.args[1 - i]
        if wanted == "divide":  # (a / b) * other
            yield inner.op(p.op(a, other), b)
        else:  # (a * b) / other
            yield inner.op(b, p.op(a, other))
            yield inner.op(a, p.op(b, other))


def _has_attributes(e: Expr, wanted: Mapping[str, object]) -> bool:
    """Whether an operator, a call or a function has attributes of these values."""
    known: Mapping[str, object]
    if isinstance(e, Op):
        known = {name: value for name, (value, _) in e.attributes.items()}
    elif isinstance(e, (Call, Function)):
        known = e.attrs if e.attrs is not None else {}
    else:
        return False
    return all(name in known and _same(value, known[name]) for name, value in wanted.items())


def _same(wanted: object, known: object) -> bool:
    """Whether a value of an attribute is the wanted one."""
    if isinstance(wanted, (IntImm, FloatImm)):
        wanted = wanted.value
    if isinstance(known, (list, tuple)):
        if not isinstance(wanted, (list, tuple)) or len(wanted) != len(known):
            return False
        return all(map(_same, wanted, known))
    if isinstance(known, str):
        return not isinstance(wanted, (int, float)) and str(wanted) == known
    return structural_equal(wanted, known)
