"""Well-formedness of modules: what every pass may rely on and must keep.

Variables are defined once, before they are used and in scope; operand types agree; conditions are scalar bools; masks
have the lanes of what they mask; `break` stands in a loop; calls match the functions they name; returns match the
function. A violation is a defect of whoever made the module, so it raises `VerifyError`, not a user's error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from compass_core.operators import is_power_of_two

from . import exprs as E
from . import stmts as S
from .dtypes import DataType, PointerType, bool_of, type_text
from .exprs import Buffer, Expr, Var
from .rules import method, rule, table
from .stmts import Body, IRModule, PrimFunc, Stmt
from .visit import walk_stmts

_BITWISE = frozenset("bitand bitor bitxor shl shr".split())
_INTEGER_ONLY = _BITWISE | {"floordiv", "floormod", "mod"}


Rules = Mapping[type, tuple[Callable[[object], str | None], ...]]
"""Further rules for nodes of a class: each gives what is wrong, or None."""


class VerifyError(Exception):
    """A module is not well formed. The text names the function and shows the statement."""


def verify(module: IRModule, rules: Rules = MappingProxyType({})) -> None:
    """Raise VerifyError when the module is not well formed, or breaks one of `rules`."""
    names = [f.name for f in module.functions]
    if len(set(names)) != len(names):
        raise VerifyError(f"two functions of the module have one name: {', '.join(names)}")
    if module.entry not in names:
        raise VerifyError(f"the entry {module.entry!r} is not a function of the module")
    functions = {f.name: f for f in module.functions}
    for f in module.functions:
        _Verifier(f, functions, rules).function()


class _Wrong(Exception):
    """A violation, without its place."""


def _check(condition: object, message: str, *parts: object) -> None:
    if not condition:
        raise _Wrong(message.format(*[repr(p) if isinstance(p, Expr) else p for p in parts]))


class _Verifier:
    def __init__(self, f: PrimFunc, functions: dict[str, PrimFunc], rules: Rules) -> None:
        self.f, self.functions, self.rules = f, functions, rules
        self.scope: set[Var] = set()
        self.order: list[Var] = []
        self.defined: set[Var] = set()
        self.loops = 0
        self.seen: set[Expr] = set()
        self.blocks: set[str] = set()
        self.has_blocks = any(isinstance(s, S.Block) for s in walk_stmts(f.body))
        """Indices in blocks may be what later stages do not take."""

    def function(self) -> None:
        try:
            for p in self.f.params:
                self._define(p)
        except _Wrong as error:
            raise VerifyError(f"function {self.f.name}: {error}") from None
        self._body(self.f.body)

    def _further(self, node: Expr | Stmt) -> None:
        for further in self.rules.get(type(node), ()):
            wrong = further(node)
            if wrong is not None:
                raise _Wrong(wrong)

    # -- statements

    def _body(self, body: Body, *variables: Var) -> None:
        outer = len(self.order)
        for var in variables:
            self._enter(var)
        for s in body:
            try:
                self._stmt(s)
            except _Wrong as error:
                raise VerifyError(f"function {self.f.name}: {error}\n  in: {_statement_text(s)}") from None
            self._nested(s)
        if len(self.order) > outer:
            self.scope.difference_update(self.order[outer:])
            del self.order[outer:]
            self.seen.clear()

    def _nested(self, s: Stmt) -> None:
        loop = isinstance(s, (S.For, S.While))
        self.loops += loop
        inner = (s.loop_var,) if isinstance(s, S.For) else s.vars if isinstance(s, S.Block) else ()
        for body in s.bodies():
            self._body(body, *inner)
        self.loops -= loop

    def _enter(self, var: Var) -> None:
        """Put a variable in scope until the end of the block."""
        self.scope.add(var)
        self.order.append(var)

    def _define(self, var: Var) -> None:
        _check(var not in self.defined, "{} is defined twice", var.name)
        self.defined.add(var)
        self._enter(var)

    def _stmt(self, s: Stmt) -> None:
        for e in s.exprs():
            if type(e) is not E.BufferRegion:  # these concern the axes of their block, which checks them
                self._expr(e)
        rule = _STMT_RULES.get(type(s))
        if rule is not None:
            rule(self, s)
        self._further(s)

    def _let(self, s: S.Let) -> None:
        _check(s.value.dtype is s.var.dtype, "{} has type {}, its value {}", s.var.name, *_types(s.var, s.value))
        self._define(s.var)

    def _assign(self, s: S.Assign) -> None:
        _check(s.var in self.scope, "{} is assigned but not defined here", s.var.name)
        _check(s.value.dtype is s.var.dtype, "{} has type {}, its new value {}", s.var.name, *_types(s.var, s.value))

    def _set_element(self, s: S.SetElement) -> None:
        _check(s.var in self.scope, "{} is changed but not defined here", s.var.name)
        _check(s.var.dtype.is_vector, "{} is not a vector", s.var.name)
        _check(s.index.dtype.is_integer, "the index is no integer")
        element = s.var.data_type.element_of
        _check(s.value.dtype is element, "an element of {} is {}, got {}", s.var.name, element, _type(s.value))

    def _store(self, s: S.BufferStore) -> None:
        self._buffer(s.buffer)
        like = self._access(s.buffer, s.indices, s.mask)
        _check(s.value.dtype is like, "the buffer holds {}, the value is {}", like, _type(s.value))

    def _alloc(self, s: S.Alloc | S.AllocConst) -> None:
        _check(s.buffer.shape, "{} has no shape", s.buffer.data.name)
        if type(s) is S.AllocConst or not self.f.attr(S.OPEN_MEMORY):
            _check(all(type(e) is E.IntImm for e in s.buffer.shape), "{} has no constant shape", s.buffer.data.name)
        self._define(s.buffer.data)
        self._buffer(s.buffer)

    def _if(self, s: S.IfThenElse) -> None:
        _check(s.condition.dtype is bool_of(1), "the condition has type {}", _type(s.condition))

    def _while(self, s: S.While) -> None:
        _check(s.condition.dtype.is_scalar, "the condition has type {}", _type(s.condition))

    def _for(self, s: S.For) -> None:
        _check(s.kind in S.LOOP_KINDS, "unknown loop kind {}", s.kind)
        _check(
            s.loop_var.dtype.is_integer and s.loop_var.dtype.is_scalar,
            "the loop variable has type {}",
            _type(s.loop_var),
        )
        for e in (s.min, s.stop, s.step):
            _check(
                e.dtype is s.loop_var.dtype, "the loop variable has type {}, a bound {}", _type(s.loop_var), _type(e)
            )
        _check(s.loop_var not in self.defined, "{} is defined twice", s.loop_var.name)
        self.defined.add(s.loop_var)

    def _block(self, s: S.Block) -> None:
        _check(s.name_hint not in self.blocks, "two blocks are named {}", s.name_hint)
        self.blocks.add(s.name_hint)
        for var, kind, start, extent, value in zip(s.vars, s.kinds, s.starts, s.extents, s.iter_values, strict=True):
            _check(kind in S.AXIS_KINDS, "unknown kind of axis {}", kind)
            _check(var not in self.defined, "{} is defined twice", var.name)
            self.defined.add(var)
            for e in (start, extent, value):
                _check(e.dtype is var.dtype, "the axis {} has type {}, a part of it {}", var.name, *_types(var, e))
        _check(s.predicate.dtype is bool_of(1), "the condition has type {}", _type(s.predicate))
        outer = set(self.scope)
        self.scope.update(s.vars)
        for e in (*s.reads, *s.writes):
            _check(type(e) is E.BufferRegion, "{} is no region", e)
            self._expr(e)
        self.scope = outer
        self.seen.clear()

    def _region(self, e: E.BufferRegion) -> None:
        self._buffer(e.buffer)
        for indices in (e.starts, e.extents):
            self._access(e.buffer, indices, None)

    def _break(self, s: S.Break | S.Continue) -> None:
        _check(self.loops, "{} outside of a loop", type(s).__name__.lower())

    def _return(self, s: S.Return) -> None:
        value = "void" if s.value is None else _type(s.value)
        _check(value == type_text(self.f.ret_type).removeprefix("T."), "the function returns {}", self.f.ret_type)

    # -- expressions

    def _expr(self, root: Expr) -> None:
        stack = [root]
        while stack:
            e = stack.pop()
            if e in self.seen:
                continue
            if type(e) is Var:
                _check(e in self.scope, "{} is used but not defined here", e.name)
                continue
            rule = _EXPR_RULES.get(type(e))
            if rule is not None:
                rule(self, e)
            self._further(e)
            self.seen.add(e)
            stack += e.children()

    def _binary(self, e: E.Binary) -> None:
        _binary(e)
        if e.flags & E.F_FLOORDIV and e.op in ("floordiv", "floormod"):
            power = type(e.b) is E.IntImm and is_power_of_two(e.b.value)
            _check(
                power or self.has_blocks,
                "{} rounds down by what is no constant power of two; div and truncmod cut towards zero",
                e,
            )

    def _pointer(self, e: E.Pointer) -> None:
        _check(isinstance(e.base.dtype, PointerType), "the base of {} is no pointer", e)
        _check(e.offset.dtype.is_integer and e.offset.dtype.is_scalar, "the offset of {} is no integer", e)

    def _load(self, e: E.BufferLoad) -> None:
        self._buffer(e.buffer)
        self._access(e.buffer, e.indices, e.mask)

    def _call(self, e: E.Call) -> None:
        if e.mask is not None:
            _check(e.mask.dtype.is_bool, "the mask of {} is {}", e, _type(e.mask))
            lanes = {x.dtype.lanes for x in (e, *e.args) if isinstance(x.dtype, DataType)}
            _check(e.mask.dtype.lanes in lanes, "{} masks none of the vectors of {}", _type(e.mask), e)
            _check(type(e.mask) is not E.ConstMask or not e.mask.all_true, "{} has a mask of all lanes", e)
        if e.r is not None:
            _check(e.r.dtype is e.dtype, "{} is {}, its inactive lanes {}", e, _type(e), _type(e.r))

    def _func_call(self, e: E.FuncCall) -> None:
        f = self.functions.get(e.func)
        if f is None and self.has_blocks:
            return  # a function of C, which is declared when the blocks are lowered
        _check(f is not None, "{} calls a function that the module does not have", e)
        assert f is not None
        _check(e.dtype is f.ret_type, "{} is {}, the function returns {}", e, e.dtype, f.ret_type)
        _check(len(e.args) == len(f.params), "{} passes {} arguments to {} parameters", e, len(e.args), len(f.params))
        for arg, p in zip(e.args, f.params):
            _check(arg.dtype is p.dtype, "in {}, {} is {}, got {}", e, p.name, *_types(p, arg))

    # -- memory

    def _buffer(self, b: Buffer) -> None:
        _check(isinstance(b.data.dtype, PointerType), "storage {} is no pointer", b.data.name)
        _check(b.data in self.scope, "{} is used but not defined here", b.data.name)
        for extent in b.shape:
            self._expr(extent)

    def _access(self, b: Buffer, indices: tuple[Expr, ...], mask: Expr | None) -> DataType:
        """The type of the accessed element."""
        wanted = len(b.shape) or 1
        _check(len(indices) == wanted, "{} has {} dimensions, got {} indices", b.data.name, wanted, len(indices))
        for i in indices:
            _check(getattr(i.dtype, "is_integer", False), "index {} is no integer", i)
        _check(all(i.dtype.is_scalar for i in indices[:-1]), "only the last index may be a vector")
        lanes = indices[-1].dtype.lanes
        if mask is not None:
            _check(mask.dtype is bool_of(lanes), "{} lanes are accessed under a mask of type {}", lanes, _type(mask))
        return b.dtype if lanes == 1 else b.dtype.with_lanes(b.dtype.lanes * lanes)


def _type(e: Expr) -> str:
    return type_text(e.dtype).removeprefix("T.")


def _types(*exprs: Expr) -> list[str]:
    return [_type(e) for e in exprs]


def _statement_text(s: Stmt) -> str:
    """One line about a statement; nested blocks are left out."""
    parts = []
    for name in s.fields:
        value = getattr(s, name)
        if isinstance(value, Expr):
            parts.append(f"{name}={value!r}")
        elif type(value) is Buffer:
            parts.append(f"{name}={value.data.name}")
        elif name == "indices":
            parts.append(f"{name}=[{', '.join(map(repr, value))}]")
        elif isinstance(value, str):
            parts.append(f"{name}={value}")
    where = f"  ({s.span})" if s.span else ""
    return f"{type(s).__name__} {', '.join(parts)}{where}"


def _binary(e: E.Binary) -> None:
    _check(e.op in E.ARITHMETIC or e.op in E.COMPARISON or e.op in E.LOGICAL, "unknown operator {}", e.op)
    _check(e.a.dtype is e.b.dtype, "operands of {} have types {} and {}", e, _type(e.a), _type(e.b))
    if e.op in E.LOGICAL:
        _check(e.a.dtype is bool_of(1), "operands of {} are not bool", e)
    if e.op in _INTEGER_ONLY:
        _check(getattr(e.a.dtype, "is_integer", False), "operands of {} are not integers", e)


def _unary(e: E.Unary) -> None:
    if e.op == "isnull":
        _check(isinstance(e.a.dtype, PointerType), "{} needs a pointer", e)
    else:
        ok = e.a.dtype is bool_of(1) if e.op == "not" else e.op == "bitnot" and e.a.dtype.is_integer
        _check(ok, "{} has an operand of type {}", e, _type(e.a))


def _cast(e: E.Cast) -> None:
    scalar = isinstance(e.value.dtype, DataType) and e.value.dtype.is_scalar and e.dtype.is_scalar
    _check(scalar, "{} is not a conversion of scalars", e)


def _select(e: E.Select) -> None:
    _check(
        e.condition.dtype in (bool_of(1), bool_of(e.true_value.dtype.lanes)),
        "condition of {} is {}",
        e,
        _type(e.condition),
    )
    _check(
        e.true_value.dtype is e.false_value.dtype,
        "the sides of {} have types {} and {}",
        e,
        _type(e.true_value),
        _type(e.false_value),
    )


def _broadcast(e: E.Broadcast) -> None:
    _check(e.value.dtype.is_scalar and e.lanes > 1, "{} is not a scalar in several lanes", e)


def _ramp(e: E.Ramp) -> None:
    _check(e.base.dtype.is_integer and e.base.dtype.is_scalar, "{} has no integer base", e)
    _check(e.base.dtype is e.stride.dtype, "base and stride of {} have different types", e)


def _literal(e: E.VectorLiteral) -> None:
    _check(len(e.elems) == e.dtype.lanes, "{} has {} elements", e, len(e.elems))


def _tail(e: E.TailMask) -> None:
    _check(e.count.dtype.is_integer and e.count.dtype.is_scalar, "the count of {} is no integer", e)


def _element(e: E.GetElement) -> None:
    _check(e.vector.dtype.is_vector, "{} is not of a vector", e)
    _check(e.index.dtype.is_integer, "the index of {} is no integer", e)


_NODE_RULES: dict[type, Callable[[Expr], None]] = table(
    rule(E.Binary, _binary),
    rule(E.Unary, _unary),
    rule(E.Cast, _cast),
    rule(E.Select, _select),
    rule(E.Broadcast, _broadcast),
    rule(E.Ramp, _ramp),
    rule(E.VectorLiteral, _literal),
    rule(E.TailMask, _tail),
    rule(E.GetElement, _element),
)
"""What an expression must be whatever is around it."""


def check_node(e: Expr) -> None:
    """VerifyError where the operands of an expression do not go together."""
    rule = _NODE_RULES.get(type(e))
    try:
        if rule is not None:
            rule(e)
    except _Wrong as error:
        raise VerifyError(str(error)) from None


def _alone(rule: Callable[[Expr], None]) -> Callable[[_Verifier, Expr], None]:
    return lambda verifier, e: rule(e)


_STMT_RULES: dict[type, Callable[[_Verifier, S.Stmt], None]] = table(
    method(S.Let, _Verifier._let),
    method(S.Assign, _Verifier._assign),
    method(S.SetElement, _Verifier._set_element),
    method(S.BufferStore, _Verifier._store),
    method(S.Alloc, _Verifier._alloc),
    method(S.AllocConst, _Verifier._alloc),
    method(S.DeclBuffer, lambda v, s: v._buffer(s.buffer)),
    method(S.IfThenElse, _Verifier._if),
    method(S.While, _Verifier._while),
    method(S.For, _Verifier._for),
    method(S.Block, _Verifier._block),
    method(S.Break, _Verifier._break),
    method(S.Continue, _Verifier._break),
    method(S.Return, _Verifier._return),
)
_EXPR_RULES: dict[type, Callable[[_Verifier, Expr], None]] = table(
    *((cls, _alone(rule)) for cls, rule in _NODE_RULES.items()),
    method(E.Binary, _Verifier._binary),
    method(E.Pointer, _Verifier._pointer),
    method(E.BufferLoad, _Verifier._load),
    method(E.BufferRegion, _Verifier._region),
    method(E.Call, _Verifier._call),
    method(E.FuncCall, _Verifier._func_call),
)
