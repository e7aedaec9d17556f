"""Kernel IR as Python text: expressions as Python expressions, functions as Python functions of a TEC.

Integers are Python's, wrapped where the IR's would.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from compass_core.errors import Span
from compass_core.lazy import np
from compass_core.operators import OPERATORS

from ...ir import exprs as E
from ...ir import stmts as S
from ...ir.dtypes import DataType, PointerType, Type
from ...ir.rules import method, table
from ...ir.visit import all_exprs, walk_stmts
from ...ops.numeric import np_dtype
from ..structure import variables
from . import operations
from .operations import unsupported

PRIVATE = ("private", "lsram")
"""Scopes of memory of which each TEC has its own."""
_SIGNS = {"add": "+", "sub": "-", "mul": "*", "bitand": "&", "bitor": "|", "bitxor": "^"}
_COMPARED = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_OF_TECS = {
    "get_local_id": "t.id",
    "get_local_size": "t.size",
    "get_group_id": "0",
    "get_num_groups": "1",
    "alloc_event": "t.take_event()",
}


class Names:
    """The names of a text: those of variables, and of what it refers to."""

    def __init__(self) -> None:
        self.of: dict[E.Var, str] = {}
        self.bound: dict[str, Any] = {}

    def var(self, var: E.Var) -> str:
        plain = "".join(c if c.isascii() and c.isalnum() else "_" for c in var.name)
        return self.of.setdefault(var, f"v_{plain}_{len(self.of)}")

    def bind(self, value: object) -> str:
        """A name for a value that has no text."""
        name = f"K{len(self.bound)}"
        self.bound[name] = value
        return name


class ExprText:
    """Writes expressions."""

    def __init__(self, names: Names, in_memory: Iterable[E.Var] = ()) -> None:
        self.names, self.in_memory = names, frozenset(in_memory)

    def __call__(self, e: E.Expr) -> str:
        rule = _RULES.get(type(e))
        if rule is None:
            raise unsupported(f"an expression of kind {type(e).__name__}")
        return rule(self, e)

    def _all(self, es: Iterable[E.Expr]) -> str:
        return "".join(f"{self(e)}, " for e in es)

    def optional(self, e: E.Expr | None) -> str:
        return "None" if e is None else self(e)

    def kind(self, kind: Type | None) -> str:
        return self.names.bind(kind)

    def wrapped(self, text: str, kind: DataType) -> str:
        """An exact integer cut to a type."""
        if kind.is_bool:
            return f"({text} != 0)"
        low, mask = kind.integer_range()[0], (1 << kind.bits) - 1
        return f"(({text} - {low} & {mask}) + {low})"

    def _integer(self, e: E.IntImm) -> str:
        return f"({e.value})"

    def _real(self, e: E.FloatImm) -> str:
        return self.names.bind(np_dtype(e.dtype).type(e.value))

    def _var(self, e: E.Var) -> str:
        name = self.names.var(e)
        return f"load({name}, {self.kind(e.dtype)}, 0)" if e in self.in_memory else name

    # -- operators

    def _binary(self, e: E.Binary) -> str:
        a, b, kind = self(e.a), self(e.b), e.a.data_type
        if kind.is_vector:
            return f"{self.names.bind(operations.lanes(e.op, kind.element_of))}({a}, {b})"
        if e.op in _COMPARED:
            return f"({a} {_COMPARED[e.op]} {b})"
        if e.op in E.LOGICAL:
            return f"(truth({a}) {e.op} truth({b}))"
        if e.op in ("min", "max"):
            return f"{e.op}imum({a}, {b})"
        if kind.is_floating:
            sign = {**_SIGNS, "div": "/"}.get(e.op)
            return f"({a} {sign} {b})" if sign else self._operated(e, a, b)
        return self._operated(e, a, b)

    def _operated(self, e: E.Binary, a: str, b: str) -> str:
        kind = e.a.data_type
        if kind.is_floating:
            raise unsupported(f"{e.op} of {kind}")
        if e.op in _SIGNS and not (kind.is_bool and e.op in ("add", "sub", "mul")):
            text = f"({a} {_SIGNS[e.op]} {b})"
            return text if e.op.startswith("bit") else self.wrapped(text, kind)
        text = f"shift({e.op!r}, {a}, {b}, {kind.bits})" if e.op in ("shl", "shr") else f"operators[{e.op!r}]({a}, {b})"
        return self.wrapped(text, kind)

    def _unary(self, e: E.Unary) -> str:
        a = self(e.a)
        if e.op == "isnull":
            return f"({a} is None)"
        if e.dtype.is_mask:
            return f"(~{a})"
        if e.op == "not":
            return f"({a} == 0)"
        return f"(~{a})" if e.dtype.is_vector else self.wrapped(f"(~(0 + {a}))", e.a.data_type)

    def _select(self, e: E.Select) -> str:
        cond, a, b = map(self, (e.condition, e.true_value, e.false_value))
        return f"where({cond}, {a}, {b})" if e.condition.dtype.is_vector else f"({a} if {cond} else {b})"

    def _cast(self, e: E.Cast) -> str:
        value, source = self(e.value), e.value.data_type
        if e.dtype.is_bool:
            return f"({value} != 0)"
        if e.dtype.is_floating:
            return f"{self.names.bind(np_dtype(e.dtype).type)}({value})"
        if source.is_floating:
            return f"whole({value}, {self.kind(source)}, {self.kind(e.dtype)})"
        return self.wrapped(f"(0 + {value})", e.dtype)

    def _reinterpret(self, e: E.Reinterpret) -> str:
        if isinstance(e.dtype, PointerType) or isinstance(e.value.dtype, PointerType):
            raise unsupported("an address as a number")
        return f"reinterpreted({self(e.value)}, {self.kind(e.value.dtype)}, {self.kind(e.dtype)})"

    # -- vectors

    def _ramp(self, e: E.Ramp) -> str:
        kind = self.names.bind(np_dtype(e.dtype))
        return f"ramp({self(e.base)}, {self(e.stride)}, {e.lanes}, {kind})"

    def _broadcast(self, e: E.Broadcast) -> str:
        return f"full({e.lanes}, {self(e.value)}, {self.names.bind(np_dtype(e.dtype))})"

    def _literal(self, e: E.VectorLiteral) -> str:
        return f"array([{self._all(e.elems)}]).astype({self.names.bind(np_dtype(e.dtype))})"

    def _tail(self, e: E.TailMask) -> str:
        return f"(arange({e.lanes}) < {self(e.count)})"

    def _mask(self, e: E.ConstMask) -> str:
        return self.names.bind(np.array([bool(e.bits >> i & 1) for i in range(e.lanes)]))

    def _element(self, e: E.GetElement) -> str:
        text = f"element({self(e.vector)}, {self(e.index)})"
        return f"{text}.item()" if e.dtype.is_integer else text

    # -- memory and calls

    def place(self, buffer: E.Buffer, indices: tuple[E.Expr, ...], mask: str) -> str:
        """The element of a buffer, counted from its first."""
        if not buffer.shape:
            return self(indices[0])
        return f"position(({self._all(buffer.shape)}), ({self._all(indices)}), {mask})"

    def _load(self, e: E.BufferLoad) -> str:
        base, kind, mask = self(e.buffer.data), self.kind(e.buffer.dtype), self.optional(e.mask)
        place = self.place(e.buffer, e.indices, mask)
        if e.indices[-1].dtype.is_vector:
            return f"load_lanes({base}, {kind}, {place}, {mask})"
        return f"load({base}, {kind}, {place})"

    def _pointer(self, e: E.Pointer) -> str:
        size = e.elem.total_bytes or 1
        return f"{self(e.base)}.moved({self(e.offset)} * {size})"

    def _address(self, e: E.AddressOf) -> str:
        return self.names.var(e.var)

    def _call(self, e: E.Call) -> str:
        if e.op in _OF_TECS:
            return _OF_TECS[e.op]
        if e.op in ("wait_events", "free_events", "async_dma_copy"):
            return f"t.{e.op}({self._all(e.args)})"
        more = "" if e.mask is None else f"mask={self(e.mask)}, "
        more += "" if e.r is None else f"r={self(e.r)}"
        return f"{self.names.bind(operations.operation(e))}({self._all(e.args)}{more})"

    def _function(self, e: E.FuncCall) -> str:
        raise unsupported(f"a call of {e.func} here")


_RULES: dict[type, Callable[[ExprText, E.Expr], str]] = table(
    method(E.IntImm, ExprText._integer),
    method(E.FloatImm, ExprText._real),
    method(E.StringImm, lambda self, e: repr(e.value)),
    method(E.Var, ExprText._var),
    method(E.Binary, ExprText._binary),
    method(E.Unary, ExprText._unary),
    method(E.Select, ExprText._select),
    method(E.Cast, ExprText._cast),
    method(E.Reinterpret, ExprText._reinterpret),
    method(E.Ramp, ExprText._ramp),
    method(E.Broadcast, ExprText._broadcast),
    method(E.VectorLiteral, ExprText._literal),
    method(E.TailMask, ExprText._tail),
    method(E.ConstMask, ExprText._mask),
    method(E.GetElement, ExprText._element),
    method(E.BufferLoad, ExprText._load),
    method(E.Pointer, ExprText._pointer),
    method(E.AddressOf, ExprText._address),
    method(E.Call, ExprText._call),
    method(E.FuncCall, lambda self, e: self._function(e)),
)


class FunctionText(ExprText):
    """Writes a function. One that waits at barriers is a generator, which stops there.

    `meets`: whether a function of that name does.
    """

    def __init__(self, function: S.PrimFunc, names: Names, meets: Callable[[str], bool], generator: bool) -> None:
        taken = {e.var for e in all_exprs(function.body, E.F_POINTER) if isinstance(e, E.AddressOf)}
        super().__init__(names, in_memory=taken)
        self.lines: list[str] = []
        self.spans: list[Span | None] = []
        self.changing = {s.var for s in walk_stmts(function.body) if isinstance(s, (S.Assign, S.SetElement))} | taken
        self._meets, self._span = meets, function.span
        self._emit(0, f"def {function_name(function.name)}(t, {', '.join(map(names.var, function.params))}):")
        for p in function.params:
            if p in taken:
                self._set(p, names.var(p), 1)
        self.body(function.body, 1)
        if generator:
            self._emit(1, "return\n    yield")
            self.spans.append(None)

    def _emit(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)
        self.spans.append(self._span)

    def body(self, body: S.Body, depth: int) -> None:
        """Statements, at a depth of indentation."""
        for s in body:
            rule = _STATEMENTS.get(type(s))
            if rule is None:
                raise unsupported(f"a statement of kind {type(s).__name__}")
            outside, self._span = self._span, s.span or self._span
            rule(self, s, depth)
            self._span = outside
        self._emit(depth, "pass")

    def _set(self, var: E.Var, value: str, depth: int) -> None:
        name = self.names.var(var)
        text = f"cell({name!r}, {self.kind(var.dtype)}, {value})" if var in self.in_memory else value
        self._emit(depth, f"{name} = {text}")

    def _let(self, s: S.Let, depth: int) -> None:
        self._set(s.var, self(s.value), depth)

    def _assign(self, s: S.Assign, depth: int) -> None:
        if s.var in self.in_memory:
            self._emit(depth, f"store({self.names.var(s.var)}, {self.kind(s.var.dtype)}, 0, {self(s.value)})")
        else:
            self._set(s.var, self(s.value), depth)

    def _set_element(self, s: S.SetElement, depth: int) -> None:
        name, kind = self.names.var(s.var), s.var.data_type
        if s.var in self.in_memory:
            self._emit(depth, f"store({name}, {self.kind(kind.element_of)}, {self(s.index)}, {self(s.value)})")
        else:
            self._emit(depth, f"{name} = changed({name}, {self(s.index)}, {self(s.value)})")

    def _alloc(self, s: S.Alloc, depth: int) -> None:
        name, kind = self.names.var(s.buffer.data), s.buffer.dtype
        size = " * ".join([str(kind.total_bytes), *map(self, s.buffer.shape)])
        where = "t.own" if s.buffer.scope in PRIVATE else "t.shared"
        self._emit(depth, f"{name} = {where}({name!r}, {size})")

    def _constant(self, s: S.AllocConst, depth: int) -> None:
        self._emit(
            depth, f"{self.names.var(s.buffer.data)} = constant({self.names.bind(s.data)}, {s.buffer.data.name!r})"
        )

    def _store(self, s: S.BufferStore, depth: int) -> None:
        base, kind, mask = self(s.buffer.data), s.buffer.dtype, self.optional(s.mask)
        place, value = self.place(s.buffer, s.indices, mask), self(s.value)
        if s.indices[-1].dtype.is_vector:
            self._emit(depth, f"store_lanes({base}, {self.kind(kind)}, {place}, {mask}, {value})")
            return
        if kind.is_integer and kind.is_scalar and s.value.dtype is not kind:
            value = self.wrapped(f"(0 + {value})", kind)
        self._emit(depth, f"store({base}, {self.kind(kind)}, {place}, {value})")

    def _eval(self, s: S.Evaluate, depth: int) -> None:
        if isinstance(s.value, E.Call) and s.value.op == "barrier":
            self._emit(depth, f"t.finish(); yield {self.names.bind(s.span)}")
        else:
            self._emit(depth, self(s.value))

    def _if(self, s: S.IfThenElse, depth: int) -> None:
        self._emit(depth, f"if {self(s.condition)}:")
        self.body(s.then_case, depth + 1)
        if s.else_case:
            self._emit(depth, "else:")
            self.body(s.else_case, depth + 1)

    def _for(self, s: S.For, depth: int) -> None:
        if s.kind in S.THREAD_LOOPS and any(
            isinstance(e, E.Call) and e.op == "barrier" for e in all_exprs(s.body, E.F_CALL)
        ):
            raise unsupported("a grid whose threads meet")
        start, stop, step = map(self, (s.min, s.stop, s.step))
        if self._changes(s.stop) or self._changes(s.step):
            turns = f"turns({start}, lambda: {stop}, lambda: {step})"
        else:
            turns = f"range({start}, {stop}, {step})"
        if s.kind == "tec":
            turns = f"t.mine({turns})"
        self._emit(depth, f"for {self.names.var(s.loop_var)} in {turns}:")
        self.body(s.body, depth + 1)

    def _changes(self, e: E.Expr) -> bool:
        """Whether a bound of a loop may be another one in the next turn."""
        if e.flags & E.F_FUNC:
            raise unsupported("a loop whose bound is a call")
        return bool(e.flags & (E.F_LOAD | E.F_CALL) or variables(e) & self.changing)

    def _while(self, s: S.While, depth: int) -> None:
        self._emit(depth, f"while {self(s.condition)}:")
        self.body(s.body, depth + 1)

    def _return(self, s: S.Return, depth: int) -> None:
        self._emit(depth, "return" if s.value is None else f"return {self(s.value)}")

    def _block(self, s: S.Block, depth: int) -> None:
        """A block is done where its condition holds, at each point of the loops around it."""
        self._emit(depth, f"if {self(s.predicate)}:")
        for var, binding in zip(s.vars, s.iter_values, strict=True):
            self._emit(depth + 1, f"{self.names.var(var)} = {self(binding)}")
        if s.init:
            first = [
                f"{self.names.var(v)} == {self(begin)}"
                for v, kind, begin in zip(s.vars, s.kinds, s.starts, strict=True)
                if kind == "reduce"
            ]
            self._emit(depth + 1, f"if {' and '.join(first) or 'True'}:")
            self.body(s.init, depth + 2)
        self.body(s.body, depth + 1)

    def _function(self, e: E.FuncCall) -> str:
        text = f"{function_name(e.func)}(t, {self._all(e.args)})"
        return f"(yield from {text})" if self._meets(e.func) else text


def function_name(symbol: str) -> str:
    """The name of a function in the text."""
    return f"function_{symbol}"


_STATEMENTS: dict[type, Callable[[FunctionText, S.Stmt, int], None]] = table(
    method(S.Let, FunctionText._let),
    method(S.Assign, FunctionText._assign),
    method(S.SetElement, FunctionText._set_element),
    method(S.Alloc, FunctionText._alloc),
    method(S.AllocConst, FunctionText._constant),
    method(S.DeclBuffer, lambda self, s, depth: None),
    method(S.BufferStore, FunctionText._store),
    method(S.Evaluate, FunctionText._eval),
    method(S.IfThenElse, FunctionText._if),
    method(S.For, FunctionText._for),
    method(S.While, FunctionText._while),
    method(S.Break, lambda self, s, depth: self._emit(depth, "break")),
    method(S.Continue, lambda self, s, depth: self._emit(depth, "continue")),
    method(S.Return, FunctionText._return),
    method(S.Block, FunctionText._block),
)
INTEGERS = {name: operator.evaluate for name, operator in OPERATORS.items()}
"""The operators on Python's integers, by name."""
