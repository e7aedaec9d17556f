"""Programs with what inference found: a type on every expression, and no annotation left out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from compassc.relay.expr import (
    Call,
    Clause,
    Expr,
    Function,
    GlobalVar,
    Match,
    Pattern,
    PatternConstructor,
    PatternTuple,
    PatternVar,
    Var,
)
from compassc.relay.infer.errors import TypeInferenceError, error
from compassc.relay.infer.rules import Typing
from compassc.relay.type_visit import holes
from compassc.relay.types import TensorType, Type
from compassc.relay.visit import children, post_order, with_children


class Rebuild:
    """Expressions with their types. One that needs no change stays the object that it is, and is told its type. Expressions
    without a type are collected as errors."""

    def __init__(self, typing: Typing) -> None:
        self.typing = typing
        self.errors: list[TypeInferenceError] = []
        self._made: dict[Expr, Expr] = {}

    def expression(self, root: Expr) -> Expr:
        """An expression with types."""
        for e in post_order(root):
            if e not in self._made:
                self._made[e] = self._one(e)
        return self._made[root]

    def _one(self, e: Expr) -> Expr:
        found = self._type(e)
        fix = _FIXES.get(type(e))
        if isinstance(e, (Var, GlobalVar)):
            after: Expr = self.variable(e) if isinstance(e, Var) else e
        else:
            after = with_children(e, [self._made[c] for c in children(e)])
            if fix is not None:
                after = fix(self, e, after)
        if isinstance(e, GlobalVar) or after.checked_type_ is None:
            return after.typed(found)
        return after if same(after.checked_type_, found) else after.replace().typed(found)

    def _type(self, e: Expr) -> Type:
        if e not in self.typing.types:
            self.typing.types[e] = self.typing.type_of(e)
        found = self.typing.resolved(e)
        if not isinstance(found, TensorType) and holes(found):
            parts = [self.typing.types.get(c) for c in children(e)]
            if all(t is None or not holes(self.typing.solver.unifier.resolved(t)) for t in parts):
                self.errors.append(
                    error(e, "unable to infer a type for this expression", help="annotate variables and results")
                )
        return found

    def variable(self, v: Var) -> Var:
        """A variable with an annotation."""
        made = self._made.get(v)
        if made is None:
            t = self.typing.resolved(v)
            known = v.type_annotation
            whole = known is not None and (isinstance(known, TensorType) or not holes(known))
            made = self._made[v] = (v if whole else v.replace(type_annotation=t)).typed(t)
        assert isinstance(made, Var)
        return made

    def call(self, e: Call, after: Call) -> Call:
        """A call with the types that its callee is instantiated with."""
        unifier = self.typing.solver.unifier
        args = [unifier.resolved(t) for t in self.typing.type_args.get(e, ())]
        if len(args) == len(after.type_args) and all(map(same, args, after.type_args)):
            return after
        return after.replace(type_args=args)

    def function(self, e: Function, after: Function) -> Function:
        """A function that says what it gives."""
        if e.ret_type is not None and not holes(e.ret_type):
            return after
        found = self.typing.resolved(e)
        return after.replace(ret_type=found.ret_type)  # type: ignore[attr-defined]  # of a FuncType

    def match(self, e: Match, after: Match) -> Match:
        """A match whose patterns have annotated variables."""
        patterns = [self._pattern(c.lhs) for c in after.clauses]
        if all(p is c.lhs for p, c in zip(patterns, after.clauses)):
            return after
        return after.replace(clauses=[Clause(p, c.rhs, c.span) for p, c in zip(patterns, after.clauses)])

    def _pattern(self, p: Pattern) -> Pattern:
        if isinstance(p, PatternVar):
            made = self.variable(p.var)
            return p if made is p.var else PatternVar(made, p.span)
        if isinstance(p, (PatternConstructor, PatternTuple)):
            fields: Sequence[Pattern] = [self._pattern(f) for f in p.patterns]
            return p if all(a is b for a, b in zip(fields, p.patterns)) else p.replace(patterns=fields)
        return p


def same(a: Type, b: Type) -> bool:
    """Whether two types are equal, quickly for tensors."""
    if isinstance(a, TensorType) and isinstance(b, TensorType):
        return a is b or (a.dtype == b.dtype and a.shape == b.shape)
    return a is b or (type(a) is type(b) and a == b)


_FIXES: Mapping[type, Callable[..., Expr]] = {
    Call: Rebuild.call,
    Function: Rebuild.function,
    Match: Rebuild.match,
}
