"""Make tensors that are all zeros or all ones only where they are needed, as gradients have many of them.

Before: a typed module.
After: within functions of tensors and tuples of them, a tensor is a `GradCell`: what is known to be zeros or ones is a closure that
makes it, sums and products with it are the other operand. Functions keep their types. Those with data types, and functions of
other values, stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence

from compassc.relay.builders import call
from compassc.relay.expr import (
    Call,
    Constant,
    Constructor,
    Expr,
    Function,
    GlobalVar,
    If,
    Let,
    Match,
    RefCreate,
    RefRead,
    RefWrite,
    Tuple,
    TupleGetItem,
    Var,
)
from compassc.relay.module import IRModule
from compassc.relay.operators import Op, op_name
from compassc.relay.passes._functions import changed, on_functions
from compassc.relay.std import import_file
from compassc.relay.types import FuncType, RefType, TensorType, TupleType, Type, TypeCall, is_dynamic
from compassc.relay.visit import children, is_primitive, post_order, with_children

NAME = "LazyGradientInit"
LEVEL = 2
REQUIRED = ("InferType",)
_KNOWN = {"zeros": "Zero", "zeros_like": "Zero", "ones": "One", "ones_like": "One"}
_SHORT = {"add": "AddGradCell", "multiply": "MultiplyGradCell"}
"""Operators whose calls cells have a short way for, and the functions of `gradient.rly` that take it."""


def run(module: IRModule) -> IRModule:
    if not any(isinstance(f, Function) and _suits(f) for f in module.functions.values()):
        return module
    own = changed(module, dict(module.functions.items()))
    import_file(own, "gradient.rly")
    cells = Cells(own)
    return on_functions(own, lambda f, _: cells.function(f) if _suits(f) else f)


def _suits(f: Function) -> bool:
    """Whether a function is of tensors and tuples of them, and no data types are within."""
    if (
        f.type_params
        or is_primitive(f)
        or not all(map(_plain, (*[p.checked_type for p in f.params], f.body.checked_type)))
    ):
        return False
    return not any(isinstance(e, (Match, Constructor)) or _polymorphic(e) for e in post_order(f, is_primitive))


def _polymorphic(e: Expr) -> bool:
    t = e.checked_type if isinstance(e, GlobalVar) else None
    return isinstance(t, FuncType) and bool(t.type_params)


def _plain(t: Type) -> bool:
    return isinstance(t, TensorType) or (isinstance(t, TupleType) and all(map(_plain, t.fields)))


class Cells:
    """Functions whose tensors are cells. `module`: one with the definitions of `gradient.rly`."""

    def __init__(self, module: IRModule) -> None:
        self.cell = module.get_global_type_var("GradCell")
        self.by_name = {c.name_hint: c for c in module[self.cell].constructors}
        self.functions = {n: module.get_global_var(n) for n in ("FromGradCell", *_SHORT.values())}

    # ---------------------------------------------------------------------------------------------------------------- types

    def type_of(self, t: Type) -> Type:
        """The type of a value whose tensors are cells."""
        if isinstance(t, TensorType):
            return TypeCall(self.cell, [t])
        if isinstance(t, TupleType):
            return TupleType([self.type_of(f) for f in t.fields])
        if isinstance(t, RefType):
            return RefType(self.type_of(t.value))
        if isinstance(t, FuncType):
            return FuncType([self.type_of(a) for a in t.arg_types], self.type_of(t.ret_type), t.type_params)
        return t

    def put(self, e: Expr, t: Type) -> Expr:
        """A value with its tensors in cells."""
        if isinstance(t, TensorType):
            return Call(self.by_name["Raw"], [e], None, [t])
        if isinstance(t, FuncType):
            params = [Var("x", self.type_of(a)) for a in t.arg_types]
            called = Call(e, [self.taken(p, a) for p, a in zip(params, t.arg_types)])
            return Function(params, self.put(called, t.ret_type), self.type_of(t.ret_type))
        if not isinstance(t, TupleType):
            return e
        v = Var("t", t)
        fields = [self.put(TupleGetItem(v, i), f) for i, f in enumerate(t.fields)]
        return Let(v, e, Tuple(fields))

    def taken(self, e: Expr, t: Type) -> Expr:
        """A value with its tensors out of their cells."""
        if isinstance(t, TensorType):
            return Call(self.functions["FromGradCell"], [e], None, [t])
        if isinstance(t, FuncType):
            params = [Var("x", a) for a in t.arg_types]
            called = Call(e, [self.put(p, a) for p, a in zip(params, t.arg_types)])
            return Function(params, self.taken(called, t.ret_type), t.ret_type)
        if not isinstance(t, TupleType):
            return e
        v = Var("t", self.type_of(t))
        fields = [self.taken(TupleGetItem(v, i), f) for i, f in enumerate(t.fields)]
        return Let(v, e, Tuple(fields))

    # ---------------------------------------------------------------------------------------------------------------- values

    def function(self, f: Function) -> Function:
        """A function of the same type, with cells inside."""
        made: dict[int, Expr] = {}
        for e in post_order(f.body, is_primitive):
            made[id(e)] = self._value(e, made)
        body = self.taken(made[id(f.body)], f.body.checked_type)
        for p in f.params:
            if id(p) in made:
                body = Let(made[id(p)], self.put(p, p.checked_type), body)  # type: ignore[arg-type]  # variables become variables
        return f.replace(body=body)

    def _value(self, e: Expr, made: dict[int, Expr]) -> Expr:
        if isinstance(e, Var):
            return Var(e.name_hint, self.type_of(e.checked_type))
        if isinstance(e, Op):
            return e
        if isinstance(e, (Constant, GlobalVar)) or is_primitive(e):
            return self.put(e, e.checked_type)
        if isinstance(e, Function):
            params = [p for p in (made[id(p)] for p in e.params) if isinstance(p, Var)]
            return Function(params, made[id(e.body)], self.type_of(e.body.checked_type), attrs=e.attrs)
        if isinstance(e, If):
            cond = self.taken(made[id(e.cond)], e.cond.checked_type)
            return If(cond, made[id(e.true_branch)], made[id(e.false_branch)])
        if isinstance(e, Call):
            return self._call(e, [made[id(a)] for a in e.args], made)
        assert isinstance(e, (Let, Tuple, TupleGetItem, RefCreate, RefRead, RefWrite)), (
            f"{type(e).__name__} is looked at"
        )
        return with_children(e, [made[id(c)] for c in children(e)])

    def _call(self, e: Call, args: Sequence[Expr], made: dict[int, Expr]) -> Expr:
        if isinstance(e.op, (GlobalVar, Function)) and (isinstance(e.op, GlobalVar) or is_primitive(e.op)):
            given = [self.taken(a, before.checked_type) for a, before in zip(args, e.args)]
            return self.put(e.replace(args=tuple(given)), e.checked_type)
        if not isinstance(e.op, Op):
            return Call(made[id(e.op)], args)
        t = e.checked_type
        if op_name(e) in _KNOWN and isinstance(t, TensorType) and not is_dynamic(t):
            name = _KNOWN[op_name(e)]
            thunk = Function([], call(f"{name.lower()}s", shape=t.concrete_shape, dtype=t.dtype), t)
            return Call(self.by_name[name], [thunk], None, [t])
        if op_name(e) in _SHORT and all(a.checked_type == t for a in e.args) and not is_dynamic(t):
            x, y = Var("x", t), Var("y", t)
            operator = Function([x, y], Call(e.op, [x, y]), t)
            return Call(self.functions[_SHORT[op_name(e)]], [operator, *args], None, [t])
        given = [self.taken(a, before.checked_type) for a, before in zip(args, e.args)]
        return self.put(e.replace(args=tuple(given)), t)
