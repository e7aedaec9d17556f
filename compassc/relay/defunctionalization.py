"""Programs of first order: no function is an argument.

A call that passes functions becomes one of a copy of its callee, made for these functions, with them in the place of its parameters.
What they capture are further arguments of the copy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from compassc.ir.errors import ExpressionError
from compassc.relay.equal import structural_equal
from compassc.relay.expr import Call, Constructor, Expr, Function, GlobalVar, Let, Match, Var
from compassc.relay.infer.errors import error
from compassc.relay.module import IRModule
from compassc.relay.operators import Op
from compassc.relay.passes import infer_type
from compassc.relay.passes._functions import rewritten
from compassc.relay.passes.defuse_ops import renamed, with_arguments
from compassc.relay.type_visit import everywhere, substituted
from compassc.relay.types import FuncType, Type
from compassc.relay.variables import bound_vars, free_vars
from compassc.relay.visit import post_order, rewrite

MOST_COPIES = 256
"""How many copies there are of one function before a program is taken for one that needs ever more."""


def defunctionalization(func: Function, mod: IRModule) -> Function:
    """A typed function of a module whose calls pass no functions; the copies of what it calls are added to the module.
    ExpressionError for programs without types, functions that give functions, and those that need a copy for each call."""
    if func.checked_type_ is None:
        raise ExpressionError("a function without types is transformed", "run relay.transform.InferType()")
    return _Specialised(mod).function(func)


class _Copy:
    """A copy of a function: for which types and functions it was made, and its name."""

    def __init__(self, types: Sequence[Type], given: Sequence[Expr | None], name: GlobalVar) -> None:
        self.types, self.given, self.name = types, given, name

    def fits(self, types: Sequence[Type], given: Sequence[Expr | None]) -> bool:
        """Whether it is that for other types and functions."""
        same = len(types) == len(self.types) and all(a == b for a, b in zip(types, self.types))
        return same and all(
            a is b or (a is not None and b is not None and structural_equal(a, b)) for a, b in zip(given, self.given)
        )


class _Specialised:
    def __init__(self, module: IRModule) -> None:
        self.module = module
        self._copies: dict[str, list[_Copy]] = {}
        self._done: set[str] = set()

    def function(self, f: Function) -> Function:
        """A function whose calls pass none."""
        bound = {id(e.var): e.value for e in post_order(f) if isinstance(e, Let)}
        made = rewritten(
            f, lambda before, after: self._call(before, after, bound) if isinstance(after, Call) else after
        )
        return made

    def _call(self, before: Expr, e: Call, bound: Mapping[int, Expr]) -> Expr:
        if isinstance(e.op, Function) and not e.op.attrs.get("Primitive") and _passed(e.op):
            inner = with_arguments(e.op.replace(type_params=()), [self._known(a, bound, e) for a in e.args])
            return self._whole(inner)
        callee = self.module[e.op] if isinstance(e.op, GlobalVar) else None
        if not isinstance(callee, Function):
            return e
        if not _passed(callee) and not callee.type_params:
            self._in_place(e.op, callee)
            return e
        given = [self._known(a, bound, e) if i in _passed(callee) else None for i, a in enumerate(e.args)]
        captured = list(dict.fromkeys(v for g in given if g is not None for v in free_vars(g)))
        outside = [Var(v.name_hint, v.type_annotation or v.checked_type) for v in captured]
        by = {id(v): new for v, new in zip(captured, outside)}
        closed = [None if g is None else rewrite(g, lambda old, new: by.get(id(old), new)) for g in given]
        types = list(before.type_args if isinstance(before, Call) else e.type_args)
        name = self._copy(e, callee, types, closed, outside)
        return Call(name, [*(a for a, g in zip(e.args, given) if g is None), *captured], span=e.span)

    def _in_place(self, name: Expr, f: Function) -> None:
        """Have a function of the module pass none, under its name."""
        assert isinstance(name, GlobalVar), "functions are called by their names"
        if name.name_hint not in self._done:
            self._done.add(name.name_hint)
            self.module.functions.put(name, self.function(f))

    def _whole(self, e: Expr) -> Expr:
        """An expression whose calls pass no functions."""
        return self.function(Function(free_vars(e), e)).body

    def _known(self, a: Expr, bound: Mapping[int, Expr], call: Call) -> Expr:
        """The function that an argument is."""
        while isinstance(a, Var) and id(a) in bound:
            a = bound[id(a)]
        if not isinstance(a, (Function, GlobalVar, Constructor, Op)) and isinstance(a.checked_type_, FuncType):
            raise error(
                call,
                "a function that is not known is passed",
                help="pass functions by their names or where they are written",
            )
        return a

    def _copy(
        self, call: Call, f: Function, types: Sequence[Type], closed: Sequence[Expr | None], outside: Sequence[Var]
    ) -> GlobalVar:
        """The name of the copy of a function; `closed`: the functions with variables `outside` for what they capture."""
        assert isinstance(call.op, GlobalVar), "functions are called by their names"
        name = call.op.name_hint
        keys = [None if g is None else (Function(outside, g) if outside else g) for g in closed]
        known = self._copies.setdefault(name, [])
        for one in known:
            if one.fits(types, keys):
                return one.name
        if len(known) == MOST_COPIES:
            raise error(
                call,
                f"@{name} needs a copy for each call: its function arguments grow",
                help="pass the same functions on",
            )
        found = GlobalVar(f"{name}_{len(known)}")
        while found in self.module:
            found = GlobalVar(found.name_hint + "_")
        known.append(_Copy(types, keys, found))
        plain = _instantiated(f, types)
        params = [p for p, g in zip(plain.params, closed) if g is None]
        by = {id(p): g for p, g in zip(plain.params, closed) if g is not None}

        def put(before: Expr, after: Expr) -> Expr:
            function = by.get(id(before))
            return after if function is None else _own(function)

        body = rewrite(plain.body, put)
        self.module.functions.put(found, Function([*params, *outside], body, plain.ret_type, attrs=f.attrs))
        typed = infer_type.run(self.module)[found]
        assert isinstance(typed, Function), "a function stays one"
        self.module.functions.put(found, self.function(typed))
        return found


def _passed(f: Function) -> list[int]:
    """The parameters that are functions."""
    kinds = [p.type_annotation or p.checked_type_ for p in f.params]
    if f.ret_type is not None and any(isinstance(t, FuncType) for t in everywhere(f.ret_type)):
        raise error(f, "a function gives a function", help="give its value: a function of all the arguments")
    return [i for i, t in enumerate(kinds) if isinstance(t, FuncType)]


def _own(e: Expr) -> Expr:
    """A function with variables of its own."""
    if not isinstance(e, Function):
        return e
    params = [p.replace() for p in e.params]
    return e.replace(params=params, body=with_arguments(e.replace(type_params=()), params))


def _instantiated(f: Function, types: Sequence[Type]) -> Function:
    """A copy of a function for types in the place of its type parameters."""
    by = {id(v): t for v, t in zip(f.type_params, types)}
    variables: dict[int, Expr] = {}
    for v in [*f.params, *bound_vars(f.body)]:
        annotation = v.type_annotation
        variables[id(v)] = Var(v.name_hint, None if annotation is None else substituted(annotation, by))

    def one(before: Expr, after: Expr) -> Expr:
        if id(before) in variables:
            return variables[id(before)]
        if isinstance(after, Call):
            return after.replace(type_args=[substituted(t, by) for t in after.type_args])
        if isinstance(after, Function) and after.ret_type is not None:
            return after.replace(ret_type=substituted(after.ret_type, by))
        if isinstance(after, Match):
            return after.replace(clauses=[c.replace(lhs=renamed(c.lhs, variables)) for c in after.clauses])
        return after

    made = rewrite(f.replace(type_params=()), one)
    assert isinstance(made, Function), "a function stays one"
    return made
