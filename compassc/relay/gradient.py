"""Gradients of any program: reverse mode by references and closures, so that recursion, branches and data types have them.

Each tensor becomes a pair of itself and a cell for its gradient. A function takes one more argument, a cell with the closure that
goes back from where the program is: each call of an operator puts one there that adds to the cells of its arguments and then calls
the one before. Gradients are programs, of which there are gradients again.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from compassc.ir.errors import ExpressionError, ExpressionTypeError
from compassc.relay.builders import call
from compassc.relay.expr import (
    Call,
    Clause,
    Constant,
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
    RefCreate,
    RefRead,
    RefWrite,
    Tuple,
    TupleGetItem,
    Var,
)
from compassc.relay.infer import infer_local
from compassc.relay.module import IRModule
from compassc.relay.operators import Op
from compassc.relay.passes import infer_type, make, to_a_normal_form
from compassc.relay.passes.first_order_gradient import gradient_for
from compassc.relay.types import FuncType, RefType, TensorType, TupleType, Type, TypeCall
from compassc.relay.visit import children, post_order, with_children

_UNIT = TupleType([])
_BACK = RefType(FuncType([], _UNIT))
"""The type of the cell with the closure that goes back."""
SUFFIX = "_grad"


def gradient(expr: Expr, mod: IRModule | None = None, mode: str = "higher_order") -> Expr:
    """A function that gives `(result, (gradients of its parameters))`, of a typed function or the name of one in `mod`.
    Tensors of the result count with ones. Functions of `mod` that it calls get a twin there, `NAME_grad`. `mode` "first_order" is
    for straight-line programs (`relay.transform.FirstOrderGradient`). ExpressionError for programs that have no gradient."""
    if mode == "first_order":
        return _first_order(expr, mod)
    if mode != "higher_order":
        raise ExpressionError(f"there is no gradient of mode '{mode}'", "higher_order or first_order")
    module = mod if mod is not None else IRModule()
    f = module[expr] if isinstance(expr, GlobalVar) else expr
    if not isinstance(f, Function):
        raise ExpressionTypeError(f"the gradient of a {type(f).__name__} is asked for", "give a Function")
    if f.type_params:
        raise ExpressionError("a polymorphic function has no gradient", "give its types")
    if f.checked_type_ is None:
        raise ExpressionError(
            "the gradient of a function without types is asked for", "run relay.transform.InferType()"
        )
    return _Reverse(module).whole(f)


def _first_order(expr: Expr, mod: IRModule | None) -> Expr:
    if mod is not None:
        raise NoModule(
            "a gradient of first order is of one function", "run relay.transform.FirstOrderGradient() on the module"
        )
    warnings.warn(
        "gradient(mode='first_order') is relay.transform.FirstOrderGradient()", DeprecationWarning, stacklevel=3
    )
    made: Expr = make("FirstOrderGradient")(IRModule.from_expr(expr))["main"]
    return made


class NoModule(ExpressionError, RuntimeError):
    """A module that a gradient of first order does not take."""


class _Lets:
    """Names that are given in order."""

    def __init__(self) -> None:
        self.bindings: list[tuple[Var, Expr]] = []

    def name(self, e: Expr, t: Type | None = None) -> Var:
        """A variable that has a value."""
        v = Var("x", t)
        if t is not None:
            v.typed(t)
        self.bindings.append((v, e))
        return v

    def around(self, body: Expr) -> Expr:
        """An expression within the bindings."""
        for v, value in reversed(self.bindings):
            body = Let(v, value, body)
        return body


def dual(t: Type) -> Type:
    """The type of a value that can have a gradient."""
    if isinstance(t, TensorType):
        return TupleType([t, RefType(t)])
    if isinstance(t, TupleType):
        return TupleType([dual(f) for f in t.fields])
    if isinstance(t, RefType):
        return RefType(dual(t.value))
    if isinstance(t, FuncType):
        return FuncType([*map(dual, t.arg_types), _BACK], dual(t.ret_type), t.type_params, t.type_constraints)
    return TypeCall(t.func, [dual(a) for a in t.args]) if isinstance(t, TypeCall) else t


# ------------------------------------------------------------------------------------- between values and values with cells


def _lifted(t: Type, e: Expr, lets: _Lets) -> Expr:
    """A value of tensors with cells that hold zeros."""
    if isinstance(t, TupleType):
        return Tuple([_lifted(f, lets.name(TupleGetItem(e, i), f), lets) for i, f in enumerate(t.fields)])
    if not isinstance(t, TensorType):
        raise ExpressionError(
            f"there is no gradient of a parameter or a result of type {t}", "take tensors and tuples of them"
        )
    value = e if isinstance(e, Var) else lets.name(e, t)
    return lets.name(Tuple([value, RefCreate(call("zeros_like", value))]))


def _value(t: Type, e: Expr) -> Expr:
    """The tensors of a value with cells."""
    if isinstance(t, TupleType):
        return Tuple([_value(f, TupleGetItem(e, i)) for i, f in enumerate(t.fields)])
    return TupleGetItem(e, 0)


def _grad(t: Type, e: Expr) -> Expr:
    """What the cells of a value hold."""
    if isinstance(t, TupleType):
        return Tuple([_grad(f, TupleGetItem(e, i)) for i, f in enumerate(t.fields)])
    return RefRead(TupleGetItem(e, 1))


def _add(t: Type, e: Expr, grad: Expr, lets: _Lets) -> None:
    """Add to the cells of a value."""
    if isinstance(t, TupleType):
        known = grad if isinstance(grad, (Var, Tuple)) else lets.name(grad)
        for i, f in enumerate(t.fields):
            part = known.fields[i] if isinstance(known, Tuple) else TupleGetItem(known, i)
            _add(f, TupleGetItem(e, i), part, lets)
        return
    cell = lets.name(TupleGetItem(e, 1))
    lets.name(RefWrite(cell, call("add", RefRead(cell), grad)))


def _ones(t: Type, e: Expr) -> Expr:
    """Ones for the tensors of a value."""
    if isinstance(t, TupleType):
        return Tuple([_ones(f, TupleGetItem(e, i)) for i, f in enumerate(t.fields)])
    return call("ones_like", TupleGetItem(e, 0))


# --------------------------------------------------------------------------------------------------------------- programs


class _Reverse:
    """Functions that keep cells for gradients."""

    def __init__(self, module: IRModule) -> None:
        self.module = module
        self.definitions = infer_type.ModuleDefinitions(module)
        self.variables: dict[int, Var] = {}
        self.globals: dict[str, GlobalVar] = {}

    def whole(self, f: Function) -> Function:
        """The function that gives gradients."""
        lets, back = _Lets(), Var("back", _BACK)
        f = self._normal(f)
        params = [Var(p.name_hint, p.checked_type) for p in f.params]
        lets.bindings.append((back, RefCreate(_closure(Tuple([])))))
        inner = [
            lets.name(_lifted(p.checked_type, p_new.typed(p.checked_type), lets)) for p, p_new in zip(f.params, params)
        ]
        self.variables |= {id(p): v for p, v in zip(f.params, inner)}
        result = f.body.checked_type
        found = lets.name(self._body(f.body, back))
        _add(result, found, _ones(result, found), lets)
        lets.name(Call(RefRead(back), []))
        grads = Tuple([_grad(p.checked_type, v) for p, v in zip(f.params, inner)])
        body = lets.around(Tuple([_value(result, found), grads]))
        return Function(params, body, TupleType([result, TupleType([p.checked_type for p in f.params])]), (), f.attrs)

    def _normal(self, f: Function) -> Function:
        """A typed function in A-normal form: nothing is shared but variables."""
        module = IRModule({v: g for v, g in self.module.functions.items()}, self.module.type_definitions)
        name = GlobalVar("the function that is differentiated")
        module[name] = to_a_normal_form.expression(f, whole=True)
        found: Function = infer_type.run(module)[name]
        return found

    def _variable(self, v: Var) -> Var:
        if id(v) not in self.variables:
            t = v.checked_type_ or v.type_annotation
            self.variables[id(v)] = Var(v.name_hint, dual(t) if t is not None else None)
        return self.variables[id(v)]

    def _body(self, root: Expr, back: Var) -> Expr:
        """An expression with cells, within a function whose closure is in `back`."""
        made: dict[int, Expr] = {}
        for e in post_order(root, lambda inner: isinstance(inner, Function)):
            args = [] if isinstance(e, Function) else [made[id(c)] for c in children(e)]
            made[id(e)] = self._one(e, args, back)
        return made[id(root)]

    def _one(self, e: Expr, args: list[Expr], back: Var) -> Expr:
        if isinstance(e, Var):
            return self._variable(e)
        if isinstance(e, GlobalVar):
            return self._global(e)
        if isinstance(e, (Op, Constructor)):
            return e
        if isinstance(e, Constant):
            lets = _Lets()
            return lets.around(_lifted(e.checked_type, e, lets))
        if isinstance(e, Function):
            return self._function(e)
        if isinstance(e, Call):
            return self._call(e, args, back)
        if isinstance(e, If):
            return If(TupleGetItem(args[0], 0), args[1], args[2], e.span)
        if isinstance(e, Match):
            clauses = [Clause(self._pattern(c.lhs), rhs, c.span) for c, rhs in zip(e.clauses, args[1:])]
            return Match(args[0], clauses, e.complete, e.span)
        return with_children(e, args)

    def _function(self, f: Function) -> Function:
        back = Var("back", _BACK)
        params = [*map(self._variable, f.params), back]
        return Function(params, self._body(f.body, back), None, f.type_params, f.attrs)

    def _global(self, v: GlobalVar) -> GlobalVar:
        if v.name_hint not in self.globals:
            made = self.globals[v.name_hint] = GlobalVar(v.name_hint + SUFFIX)
            f = self.module[v]
            if not isinstance(f, Function):
                raise ExpressionError(
                    f"@{v.name_hint} is a kernel, and has no gradient", "write it as a function of operators"
                )
            self.module.functions.put(made, self._function(self._normal(f)))
        return self.globals[v.name_hint]

    def _pattern(self, p: Pattern) -> Pattern:
        if isinstance(p, PatternVar):
            return p.replace(var=self._variable(p.var))
        if isinstance(p, (PatternConstructor, PatternTuple)):
            return p.replace(patterns=[self._pattern(inner) for inner in p.patterns])
        return p

    def _call(self, e: Call, args: Sequence[Expr], back: Var) -> Expr:
        types = [dual(t) for t in e.type_args]
        if isinstance(e.op, Op):
            return self._operator(e, args[1:], back)
        if isinstance(e.op, Constructor):
            return Call(e.op, args[1:], e.attrs, types, e.span)
        return Call(args[0], [*args[1:], back], e.attrs, types, e.span)

    def _operator(self, e: Call, args: Sequence[Expr], back: Var) -> Expr:
        """A call of an operator, which puts the way back into the cell."""
        lets, types = _Lets(), [a.checked_type for a in e.args]
        given = [lets.name(a) for a in args]
        values = [lets.name(_value(t, v), t) for t, v in zip(types, given)]
        now = Call(e.op, values, e.attrs, (), e.span)
        infer_local(now, self.definitions)
        result = lets.name(_lifted(e.checked_type, lets.name(now, e.checked_type), lets))
        before = lets.name(RefRead(back))
        inner = _Lets()
        grads = gradient_for(e)(now, inner.name(_grad(e.checked_type, result), e.checked_type))
        for t, v, grad in zip(types, given, grads):
            _add(t, v, grad, inner)
        lets.name(RefWrite(back, _closure(inner.around(Call(before, [])))))
        return lets.around(result)


def _closure(body: Expr) -> Function:
    return Function([], body, _UNIT)
