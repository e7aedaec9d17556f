"""Continuation-passing style: functions do not return, but call what they are given to call with their result.

A function `fn (A) -> B` becomes `fn [r](A', fn (B') -> r) -> r`: its answer is that of the continuation, which is its last
parameter. Values keep their order: what was computed first is called first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from compassc.ir.errors import ExpressionError, ExpressionTypeError
from compassc.relay.analysis import Feature, detect_feature
from compassc.relay.expr import (
    Call,
    Clause,
    Constructor,
    Expr,
    Function,
    GlobalVar,
    If,
    Let,
    Match,
    Pattern,
    PatternConstructor,
    PatternTuple,
    PatternVar,
    Var,
)
from compassc.relay.infer import infer_functions
from compassc.relay.module import IRModule
from compassc.relay.operators import Op
from compassc.relay.passes import infer_type, to_a_normal_form
from compassc.relay.steps import Steps
from compassc.relay.steps import run as run_steps
from compassc.relay.types import FuncType, RefType, TupleType, Type, TypeCall, TypeVar
from compassc.relay.visit import children, is_primitive, with_children

SUFFIX = "_cps"
Continuation = Callable[[Expr], "Steps[Expr]"]
"""What comes after a value: from the variable, constant or function that it is to all that follows."""


def to_cps(func: Function, mod: IRModule | None = None) -> Function:
    """A typed function in continuation-passing style. Functions of `mod` that it calls get a twin there, `NAME_cps`.
    ExpressionError for functions without types; NAMEs that `mod` has not are refused."""
    return _Transformed(mod if mod is not None else IRModule()).function(func)


def un_cps(func: Function) -> Function:
    """A function that calls one in continuation-passing style and gives the result: its last parameter, the continuation, is what
    gives back its argument. ExpressionTypeError where the last parameter is no function."""
    kind = func.params[-1].type_annotation if func.params else None
    if not isinstance(kind, FuncType) or len(kind.arg_types) != 1:
        raise ExpressionTypeError(
            "the last parameter of the function is no continuation", "give a function that to_cps made"
        )
    params = [Var(p.name_hint, p.type_annotation) for p in func.params[:-1]]
    result = Var("result", kind.arg_types[0])
    answers = [t for t in func.type_params if t is not kind.ret_type]
    body = Call(func, [*params, Function([result], result, kind.arg_types[0])])
    return Function(params, body, kind.arg_types[0], answers)


class _Transformed:
    """Functions of a module, and those that they call."""

    def __init__(self, module: IRModule) -> None:
        self.module = module
        self._twins: dict[str, GlobalVar] = {}

    def function(self, f: Function) -> Function:
        """A function that can be called from anywhere, with an answer of its own."""
        if f.checked_type_ is None:
            raise ExpressionError("a function without types is transformed", "run relay.transform.InferType()")
        if Feature.fGraph in detect_feature(f):  # what is used twice is computed once
            named = to_a_normal_form.expression(f, whole=True)
            f = infer_functions({"": named}, infer_type.ModuleDefinitions(self.module))[""]  # type: ignore[dict-item]
        answer = TypeVar("answer")
        made = run_steps(_Style(self, answer).function(f))
        assert isinstance(made, Function), "a function stays one"
        return made.replace(type_params=(*f.type_params, answer))

    def twin(self, v: GlobalVar) -> GlobalVar:
        """The name of the function of a name in this style, which is made when it is asked for first."""
        name = v.name_hint
        if name not in self._twins:
            f = self.module[name]
            if not isinstance(f, Function):
                raise ExpressionError(f"@{name} is no function of the graph language", "call it through an operator")
            self._twins[name] = GlobalVar(f"{name}{SUFFIX}")
            self.module.functions.put(self._twins[name], self.function(f))
        return self._twins[name]


class _Style:
    """The body of one function, all of whose continuations have the same answer."""

    def __init__(self, all_of_it: _Transformed, answer: TypeVar) -> None:
        self.whole, self.answer = all_of_it, answer
        self._variables: dict[Var, Var] = {}

    # ---------------------------------------------------------------------------------------------------------------- types

    def type_of(self, t: Type) -> Type:
        """The type of a value in this style."""
        if isinstance(t, FuncType):
            last = FuncType([self.type_of(t.ret_type)], self.answer)
            return FuncType([*map(self.type_of, t.arg_types), last], self.answer, t.type_params, t.type_constraints)
        if isinstance(t, TupleType):
            return TupleType([self.type_of(f) for f in t.fields])
        if isinstance(t, RefType):
            return RefType(self.type_of(t.value))
        return TypeCall(t.func, [self.type_of(a) for a in t.args]) if isinstance(t, TypeCall) else t

    def variable(self, v: Var) -> Var:
        """The variable that stands for one."""
        if v not in self._variables:
            self._variables[v] = Var(v.name_hint, self.type_of(v.checked_type))
        return self._variables[v]

    def pattern(self, p: Pattern) -> Pattern:
        """A pattern with the variables that stand for its own."""
        if isinstance(p, PatternVar):
            return PatternVar(self.variable(p.var))
        if isinstance(p, PatternConstructor):
            return PatternConstructor(p.constructor, [self.pattern(q) for q in p.patterns])
        return PatternTuple([self.pattern(q) for q in p.patterns]) if isinstance(p, PatternTuple) else p

    # ---------------------------------------------------------------------------------------------------------------- values

    def function(self, f: Function) -> Steps[Expr]:
        """A function with a continuation as its last parameter; kernels stay as they are, and are called like operators."""
        t = f.checked_type
        assert isinstance(t, FuncType), "a function has the type of one"
        last = Var("k", FuncType([self.type_of(t.ret_type)], self.answer))

        def give(value: Expr) -> Steps[Expr]:
            yield from ()
            return Call(last, [value])

        body = yield self.passed(f.body, give)
        params = [*map(self.variable, f.params), last]
        return Function(params, body, self.answer, f.type_params, f.attrs)

    def passed(self, e: Expr, k: Continuation) -> Steps[Expr]:
        """What computes an expression and goes on with its value."""
        if isinstance(e, Var):
            return k(self.variable(e))
        if isinstance(e, GlobalVar):
            return k(self.whole.twin(e))
        if isinstance(e, Function) and not is_primitive(e):
            return self._literal(e, k)
        if isinstance(e, Let):
            return self._let(e, k)
        if isinstance(e, (If, Match)):
            return self._branches(e, k)
        if isinstance(e, Call) and not _at_once(e.op):
            return self._called(e, k)
        parts = children(e)
        if isinstance(e, Call):
            return self.all_of(parts[1:], lambda made: self._bound(with_children(e, [parts[0], *made]), k))
        if is_primitive(e) or not parts:
            return k(e)
        return self.all_of(parts, lambda made: self._bound(with_children(e, made), k))

    def _literal(self, f: Function, k: Continuation) -> Steps[Expr]:
        value = yield self.function(f)
        made: Expr = yield k(value)
        return made

    def all_of(self, parts: Sequence[Expr], k: Callable[[list[Expr]], Steps[Expr]]) -> Steps[Expr]:
        """What computes several expressions in order and goes on with their values."""
        made: list[Expr] = []

        def further(value: Expr) -> Steps[Expr]:
            made.append(value)
            return after()

        def after() -> Steps[Expr]:
            done = len(made)
            found: Expr = yield k(made[:done]) if done == len(parts) else self.passed(parts[done], further)
            return found

        return after()

    def _bound(self, value: Expr, k: Continuation) -> Steps[Expr]:
        """What goes on with a value that is computed where it stands."""
        v = Var("x")
        body = yield k(v)
        return Let(v, value, body)

    def _let(self, e: Let, k: Continuation) -> Steps[Expr]:
        if isinstance(e.value, Function) and not is_primitive(e.value):
            v = self.variable(e.var)
            value = yield self.function(e.value)
            body = yield self.passed(e.body, k)
            return Let(v, value, body)

        def rest(value: Expr) -> Steps[Expr]:
            v = self.variable(e.var)
            body = yield self.passed(e.body, k)
            return Let(v, value, body)

        found: Expr = yield self.passed(e.value, rest)
        return found

    def _continued(self, e: Expr, k: Continuation) -> Steps[Expr]:
        """A continuation as a function."""
        value = Var("v", self.type_of(e.checked_type))
        body = yield k(value)
        return Function([value], body, self.answer)

    def _called(self, e: Call, k: Continuation) -> Steps[Expr]:
        rest = yield self._continued(e, k)

        def call(made: list[Expr]) -> Steps[Expr]:
            yield from ()
            return Call(made[0], [*made[1:], rest])

        found: Expr = yield self.all_of([e.op, *e.args], call)
        return found

    def _branches(self, e: If | Match, k: Continuation) -> Steps[Expr]:
        join = Var("join", FuncType([self.type_of(e.checked_type)], self.answer))
        rest = yield self._continued(e, k)

        def give(value: Expr) -> Steps[Expr]:
            yield from ()
            return Call(join, [value])

        def chosen(value: Expr) -> Steps[Expr]:
            if isinstance(e, If):
                yes = yield self.passed(e.true_branch, give)
                no = yield self.passed(e.false_branch, give)
                return If(value, yes, no)
            clauses = []
            for c in e.clauses:
                lhs = self.pattern(c.lhs)
                rhs = yield self.passed(c.rhs, give)
                clauses.append(Clause(lhs, rhs))
            return Match(value, clauses, e.complete)

        body = yield self.passed(e.cond if isinstance(e, If) else e.data, chosen)
        return Let(join, rest, body)


def _at_once(callee: Expr) -> bool:
    """Whether a call gives its value where it stands: of an operator, a constructor, a kernel."""
    return isinstance(callee, (Op, Constructor)) or is_primitive(callee)
