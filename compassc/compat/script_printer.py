"""Functions of loops and blocks as the framework's script prints them; `tvmscript.from_source` reads the text back."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from typing import Any

import numpy as np

from compass_core.errors import CompassError

from ..ir import IRModule, PrimFunc, operators
from ..ir import exprs as E
from ..ir import stmts as S
from ..ir.dtypes import BOOL, INT32, PointerType
from ..ir.exprs import IntImm
from ..ir.printer import SYMBOLS, Printer
from ..ir.rules import method, table
from ..ir.visit import walk_exprs, walk_stmts
from ..te.buffers import compact_strides
from ..te.lowering import IMPLIED_SIZES
from ..tir.blocks import view
from .script_values import OPAQUE

HEAD = {"I": "# from tvm.script import ir as I", "T": "# from tvm.script import tir as T"}
_OWN = (S.EXPRESSIONS, IMPLIED_SIZES, S.OPEN_MEMORY, "global_symbol")
"""Attributes that say how this toolchain holds a function; what they mean is in the text otherwise."""
LOWERED = ("from_legacy_te_schedule", "tir.noalias")
"""Attributes of functions that schedules were lowered to."""
_PRECEDENCE = (
    ("or",), ("and",), ("lt", "le", "gt", "ge", "eq", "ne"), ("bitor",), ("bitxor",), ("bitand",), ("shl", "shr"),
    ("add", "sub"), ("mul", "floordiv", "floormod"),
)  # fmt: skip
_RANK = {op: rank for rank, ops in enumerate(_PRECEDENCE) for op in ops}
_ATOM = len(_PRECEDENCE)
_CALLED = {"min": "min", "max": "max", "mod": "truncmod"}
_RAW = {
    "add": "Add", "sub": "Sub", "mul": "Mul", "div": "Div", "mod": "Mod", "floordiv": "FloorDiv", "floormod": "FloorMod",
    "min": "Min", "max": "Max", "eq": "EQ", "ne": "NE", "lt": "LT", "le": "LE", "gt": "GT", "ge": "GE", "and": "And", "or": "Or",
}  # fmt: skip
"""Names of nodes, which stand for themselves where the operator would make another one."""
_LOOPS = {"serial": "serial", "parallel": "parallel", "vectorized": "vectorized", "unrolled": "unroll"}
_FUNCTIONS = frozenset("abs ceil cos erf exp exp2 floor log pow rint rsqrt sin sqrt tanh".split())


class NoScript(Exception):
    """A node has no form in the framework's script."""


def script_of(program: PrimFunc | IRModule) -> str:
    """The text of a function or a module. NoScript where a part of it has no such form."""
    if isinstance(program, PrimFunc):
        return "\n".join([HEAD["T"], "", *ScriptPrinter().whole(program, 0)]) + "\n"
    lines = [HEAD["I"], HEAD["T"], "", "@I.ir_module", "class Module:"]
    if program.graphs:
        raise NoScript("a graph")
    for i, f in enumerate(sorted(program.functions, key=lambda f: (f.name == "main", f.name))):
        lines += [*([""] if i else []), *ScriptPrinter().whole(f, 1)]
    return "\n".join(lines) + "\n"


class ScriptPrinter(Printer):
    """Prints one function."""

    def __init__(self) -> None:
        super().__init__()
        self.loops: dict[E.Var, tuple[object, object]] = {}
        self.buffers: dict[E.Var, tuple[E.Expr, ...]] = {}
        """The shapes of buffers by their storage."""
        self.views: list[tuple[E.Buffer, str]] = []
        self.lowered = False
        """Whether it is a function that schedules were lowered to: its loops' variables are known not to be negative."""

    # -- expressions

    def expr(self, e: E.Expr) -> str:
        found = self._exprs.get(type(e))
        if found is None:
            raise NoScript(type(e).__name__)
        return found(self, e)

    def _inner(self, e: E.Expr, rank: int, right: bool = False) -> str:
        text = self.expr(e)
        own = _rank(e)
        return f"({text})" if own < rank or (own == rank and (right or rank == _RANK["lt"])) else text

    def _binary(self, e: E.Binary) -> str:
        if e.op in _CALLED:
            name = _CALLED[e.op] if _stays(e) else _RAW[e.op]
            return f"T.{name}({self.expr(e.a)}, {self.expr(e.b)})"
        if not _stays(e):
            if e.op not in _RAW or not e.a.dtype.is_scalar:
                raise NoScript(e.op)
            return f"T.{_RAW[e.op]}({self.expr(e.a)}, {self.expr(e.b)})"
        symbol = SYMBOLS.get(e.op)
        if symbol is None or e.op not in _RANK or (e.op in ("and", "or") and not e.a.dtype.is_scalar):
            raise NoScript(e.op)
        rank = _RANK[e.op]
        return f"{self._inner(e.a, rank)} {symbol} {self._inner(e.b, rank, right=True)}"

    def _unary(self, e: E.Unary) -> str:
        if e.op == "abs":
            return f"T.abs({self.expr(e.a)})"
        if e.op not in ("not", "bitnot"):
            raise NoScript(e.op)
        return f"{'not ' if e.op == 'not' else '~'}{self._inner(e.a, _ATOM)}"

    def buffer(self, b: E.Buffer) -> str:
        for other, name in reversed(self.views):
            if other.data is b.data and view(other).shape == b.shape:
                return name
        known = self.names.of.get(b.data)
        if known is None or b.data not in self.buffers or b.dtype is not b.data.pointer_type.elem:
            raise NoScript(f"a view of {b.data.name}")
        return known

    def _indices(self, indices: Iterable[E.Expr]) -> str:
        return ", ".join(self._slice(i) if isinstance(i, E.Ramp) else self.expr(i) for i in indices) or "()"

    def _slice(self, e: E.Ramp) -> str:
        if not isinstance(e.stride, IntImm):
            return self.expr(e)
        size = e.lanes * e.stride.value
        if isinstance(e.base, IntImm):
            stop = str(e.base.value + size)
        else:
            stop = f"{self._inner(e.base, _RANK['add'])} + {size}"
        step = f":{e.stride.value}" if e.stride.value != 1 else ""
        return f"{self.expr(e.base)}:{stop}{step}"

    def _load(self, e: E.BufferLoad) -> str:
        if e.mask is not None:
            raise NoScript("a mask")
        return f"{self.buffer(e.buffer)}[{self._indices(e.indices)}]"

    def _range(self, start: E.Expr, extent: E.Expr) -> str:
        if isinstance(extent, IntImm) and extent.value == 1:
            return self.expr(start)
        if isinstance(extent, IntImm) and isinstance(start, IntImm):
            return f"{start.value}:{start.value + extent.value}"
        if isinstance(start, IntImm) and start.value == 0:
            return f"0:{self.expr(extent)}"
        rank = _RANK["add"]
        return f"{self.expr(start)}:{self._inner(start, rank)} + {self._inner(extent, rank, right=True)}"

    def name(self, v: E.Var) -> str:
        """A variable; storage is the address of its buffer's first element."""
        known = super().name(v)
        return f"{known}.data" if isinstance(v.dtype, PointerType) and v in self.buffers else known

    def _pointer(self, e: E.Pointer) -> str:
        if not isinstance(e.base, E.Var) or e.base not in self.buffers or e.elem is not e.base.pointer_type.elem:
            raise NoScript("an address")
        offset = "" if isinstance(e.offset, IntImm) and e.offset.value == 0 else f", offset={self.expr(e.offset)}"
        return f'{self.names.of[e.base]}.access_ptr("rw"{offset})'

    def _func_call(self, e: E.FuncCall) -> str:
        if e.func.startswith("{") or isinstance(e.dtype, PointerType) or not e.func.isidentifier():
            raise NoScript("a function")
        args = "".join(f", {self.expr(a)}" for a in e.args)
        return f"T.call_extern({_quoted(_type_name(e.dtype))}, {_quoted(e.func)}{args})"

    def _call(self, e: E.Call) -> str:
        if e.op in OPAQUE and e.mask is None and not e.attrs:
            given = [
                *map(self.expr, e.args),
                *([] if e.op == "type_annotation" else [f"dtype={_quoted(_type_name(e.dtype))}"]),
            ]
            return f"T.{e.op}({', '.join(given or [_quoted(str(e.dtype))])})"
        if e.op not in _FUNCTIONS or e.mask is not None or e.r is not None or e.attrs:
            raise NoScript(e.op)
        return f"T.{e.op}({self._list(e.args)})"

    # -- statements

    def _view(self, s: S.DeclBuffer) -> str:
        b = s.buffer
        if b.data not in self.buffers or b.dtype is not b.data.pointer_type.elem:
            raise NoScript("a view")
        source = self.names.of[b.data]
        if b.shape == self.buffers[b.data]:
            raise NoScript("a view")
        name = self.names.define(b, b.data.name)
        self.views.append((b, name))
        return f"{name} = T.Buffer({self._shape(b)}, {_quoted(str(b.dtype))}, data={source}.data{self.separators(b)})"

    def _table_of_numbers(self, s: S.AllocConst) -> str:
        b = s.buffer
        name = self.names.define(b.data, b.data.name)
        self.buffers[b.data] = b.shape
        values = np.frombuffer(s.data, str(b.dtype)).tolist()
        return (
            f"{name} = T.allocate_const({values!r}, {_quoted(str(b.dtype))}, {list(map(self.expr, b.shape))})".replace(
                "'", ""
            )
        )

    def _let(self, s: S.Let) -> str:
        if isinstance(s.var.dtype, PointerType) or s.var.nonneg:
            raise NoScript("a pointer")
        value = self.expr(s.value)
        return f"{self.names.define(s.var, s.var.name)}: T.{s.var.dtype} = {value}"

    def _store(self, s: S.BufferStore) -> str:
        if s.mask is not None:
            raise NoScript("a mask")
        return f"{self.buffer(s.buffer)}[{self._indices(s.indices)}] = {self.expr(s.value)}"

    def _alloc(self, s: S.Alloc) -> str:
        b = s.buffer
        name = self.names.define(b.data, b.data.name)
        self.buffers[b.data] = b.shape
        scope = {"global": "", "private": "local"}.get(b.scope, b.scope)
        kind = f", {_quoted(str(b.dtype))}" if str(b.dtype) != "float32" else ""
        return f"{name} = T.alloc_buffer({self._shape(b)}{kind}{f', scope={_quoted(scope)}' if scope else ''}{self.separators(b)})"

    def body(self, body: S.Body, depth: int) -> None:
        if not body:
            self.lines.append("    " * depth + "T.evaluate(0)")
        for s in body:
            if not isinstance(s, (S.For, S.Block, S.IfThenElse, S.While, S.AttrStmt)) and type(s) not in self._stmts:
                raise NoScript(type(s).__name__)
        super().body(body, depth)

    @contextmanager
    def _scope(self) -> Iterator[None]:
        """Names that are defined in it are free again behind it."""
        before = copy(self.names.pool)
        yield
        self.names.pool = before

    def _places(self, own: object) -> str:
        self.spans.clear()
        return ""

    def _span(self, span: object) -> str:
        return ""

    def _for(self, s: S.For, depth: int) -> None:
        with self._scope():
            self._loop(s, depth)

    def _block(self, s: S.Block, depth: int) -> None:
        with self._scope():
            self._inside_block(s, depth)

    def _loop(self, s: S.For, depth: int) -> None:
        run = [s]
        while self._plain(run[-1]) and len(run[-1].body) == 1 and isinstance(run[-1].body[0], S.For):
            inner = run[-1].body[0]
            if not self._plain(inner) or _uses(inner.stop, [r.loop_var for r in run]):
                break
            run.append(inner)
        extents = [self._ends(r) for r in run]
        names = [self.names.define(r.loop_var, r.loop_var.name) for r in run]
        for r in run:
            if not isinstance(r.step, IntImm) or r.step.value != 1 or r.loop_var.nonneg > self.lowered:
                raise NoScript("a loop with steps")
            self.loops[r.loop_var] = r.min, r.stop
        head = f"T.grid({', '.join(extents)})" if len(run) > 1 else self._range_of(s, extents[0])
        self.lines.append("    " * depth + f"for {', '.join(names)} in {head}:")
        self.body(run[-1].body, depth + 1)

    def _ends(self, s: S.For) -> str:
        """One number where the loop begins at 0; in lowered functions only if its variable is known not to be negative."""
        if isinstance(s.min, IntImm) and s.min.value == 0 and s.loop_var.nonneg == self.lowered:
            return self.expr(s.stop)
        if self.lowered and s.loop_var.nonneg:
            raise NoScript("a loop that begins elsewhere")
        return f"{self.expr(s.min)}, {self.expr(s.stop)}"

    def _range_of(self, s: S.For, ends: str) -> str:
        notes = f", annotations={_value(dict(s.annotations))}" if s.annotations else ""
        if s.kind == "serial" and not notes:
            return f"range({ends})"
        if s.kind in _LOOPS:
            return f"T.{_LOOPS[s.kind]}({ends}{notes})"
        if s.kind in (*S.THREAD_LOOPS, *S.VIRTUAL_LOOPS):
            return f"T.thread_binding({ends}, thread={_quoted(s.kind.replace('_', '.'))}{notes})"
        raise NoScript(s.kind)

    def _inside_block(self, s: S.Block, depth: int) -> None:
        inner = "    " * (depth + 1)
        self.lines.append("    " * depth + f"with T.block({_quoted(s.name_hint)}):")
        rows = list(zip(s.vars, s.kinds, s.starts, s.extents, s.iter_values))
        texts = [self._axis(*row) for row in rows]
        predicate = self.expr(s.predicate)
        self._axes(rows, texts, inner)
        if predicate != "T.bool(True)":
            self.lines.append(f"{inner}T.where({predicate})")
        self.lines.append(f"{inner}T.reads({self._list(s.reads)})")
        self.lines.append(f"{inner}T.writes({self._list(s.writes)})")
        if s.annotations:
            self.lines.append(f"{inner}T.block_attr({_value(dict(s.annotations))})")
        if s.init:
            self.lines.append(f"{inner}with T.init():")
            self.body(s.init, depth + 2)
        self.body(s.body, depth + 1)

    def _axis(self, var: E.Var, kind: str, start: E.Expr, extent: E.Expr, binding: E.Expr) -> str:
        zero = isinstance(start, IntImm) and start.value == 0
        stop = (
            IntImm(INT32, start.value + extent.value)
            if isinstance(start, IntImm) and isinstance(extent, IntImm)
            else None
        )
        if not zero and stop is None:
            raise NoScript("an axis that begins at an open number")
        dom = self.expr(extent) if zero else f"({self.expr(start)}, {self.expr(stop)})" if stop is not None else ""
        return f"T.axis.{kind}({dom}, {self.expr(binding)})"

    def _axes(self, rows: Sequence[Any], texts: Sequence[str], inner: str) -> None:
        """A line for each axis, one for several that are the loops themselves."""
        place = 0
        while place < len(rows):
            end = place
            while end < len(rows) and self._remapped(*rows[end]):
                end += 1
            if end - place >= 2:
                run = rows[place:end]
                bindings = ", ".join(self.expr(r[4]) for r in run)
                names = ", ".join(self.names.define(r[0], r[0].name) for r in run)
                self.lines.append(
                    f'{inner}{names} = T.axis.remap("{"".join(r[1][0].upper() for r in run)}", [{bindings}])'
                )
                place = end
            else:
                name = self.names.define(rows[place][0], rows[place][0].name)
                self.lines.append(f"{inner}{name} = {texts[place]}")
                place += 1

    def _remapped(self, var: E.Var, kind: str, start: E.Expr, extent: E.Expr, binding: E.Expr) -> bool:
        if kind not in ("spatial", "reduce") or not isinstance(binding, E.Var) or binding not in self.loops:
            return False
        low, high = self.loops[binding]
        same = isinstance(low, IntImm) and isinstance(start, IntImm) and low.value == start.value == 0
        return same and (
            high is extent or (isinstance(high, IntImm) and isinstance(extent, IntImm) and high.value == extent.value)
        )

    def _plain(self, s: S.For) -> bool:
        from_zero = isinstance(s.min, IntImm) and s.min.value == 0 and s.loop_var.nonneg == self.lowered
        return s.kind == "serial" and not s.annotations and from_zero

    # -- functions

    def whole(self, f: PrimFunc, depth: int) -> list[str]:
        """The lines of a function."""
        if isinstance(f.ret_type, PointerType) or str(f.ret_type) != "void":
            raise NoScript("a result")
        declared: dict[E.Var, E.Buffer] = {}
        for s in f.body:
            if isinstance(s, S.DeclBuffer) and s.buffer.data in f.params:
                declared.setdefault(s.buffer.data, s.buffer)
        implied = f.params[len(f.params) - int(f.attr(IMPLIED_SIZES, 0)) :] if f.attr(IMPLIED_SIZES, 0) else ()
        scalars = [p for p in f.params if not isinstance(p.dtype, PointerType) and p not in implied]
        head, lines = self._signature(f, declared, implied, scalars)
        pad = "    " * depth
        self.lines += [f"{pad}@T.prim_func", f"{pad}def {f.name}({', '.join(head)}):"]
        attrs = {k: v for k, v in sorted(f.attrs) if k not in _OWN}
        self.lowered = not f.attr(S.EXPRESSIONS)
        if self.lowered:
            if attrs or any(isinstance(s, S.Block) for s in walk_stmts(f.body)):
                raise NoScript("what devices have")
            attrs = dict.fromkeys(LOWERED, True)
        if attrs:
            self.lines.append(f"{pad}    T.func_attr({_value(attrs)})")
        self.lines += [f"{pad}    {line}" for line in lines]
        known = list(declared.values())
        self.body(
            tuple(s for s in f.body if not (isinstance(s, S.DeclBuffer) and any(s.buffer is b for b in known))),
            depth + 1,
        )
        return self.lines

    def _signature(
        self, f: PrimFunc, declared: dict[E.Var, E.Buffer], implied: Sequence[E.Var], scalars: Sequence[E.Var]
    ) -> tuple[list[str], list[str]]:
        """The parameters, and the lines that say more of them."""
        head, sizes, matched = (
            list[str](),
            [f"{self.names.define(p, p.name)} = T.{p.dtype}()" for p in implied],
            list[str](),
        )
        for p in scalars:
            self.names.define(p, p.name)
        for p in f.params:
            if p in implied:
                continue
            if p in scalars:
                head.append(f"{self.names.of[p]}: T.{p.dtype}")
                continue
            if p not in declared:
                head.append(f"{self.names.define(p, p.name)}: T.handle({_quoted(str(p.pointer_type.elem))})")
                continue
            buffer = declared[p]
            layout = self._layout(buffer, implied)
            scope = {"global": ""}.get(buffer.scope, buffer.scope)
            if scope or buffer.dtype is not p.pointer_type.elem:
                raise NoScript("a memory")
            name = self.names.define(p, p.name)
            self.buffers[p] = buffer.shape
            if all(isinstance(e, IntImm) for e in buffer.shape) and not buffer.axis_separators and not layout:
                head.append(f"{name}: T.Buffer({self._shape(buffer)}, {_quoted(str(buffer.dtype))})")
            else:
                kind = f", {_quoted(str(buffer.dtype))}" if str(buffer.dtype) != "float32" else ""
                handle = self.names.pool.take(f"var_{name}")
                head.append(f"{handle}: T.handle")
                matched.append(
                    f"{name} = T.match_buffer({handle}, {self._shape(buffer)}{kind}{layout}{self.separators(buffer)})"
                )
        return head, [*sizes, *matched]

    def _layout(self, buffer: E.Buffer, implied: Sequence[E.Var]) -> str:
        """What a declaration says of strides and an offset for which there are variables."""
        known = {p.name: self.names.of[p] for p in implied}
        name = buffer.data.name
        offset = known.get(f"{name}_elem_offset")
        strides = [known.get(f"{name}_stride_{dim}") for dim in range(len(buffer.shape))]
        said = [] if offset is None else [f"elem_offset={offset}"]
        if any(strides):
            compact = map(self.expr, compact_strides(buffer.shape))
            said.append(f"strides=[{', '.join(s or c for s, c in zip(strides, compact))}]")
        return "".join(f", {x}" for x in said)


_EXPRS: dict[type, Callable[[ScriptPrinter, E.Expr], str]] = table(
    method(E.Var, ScriptPrinter.name),
    method(E.IntImm, lambda p, e: _whole(e)),
    method(E.FloatImm, lambda p, e: _real(e)),
    method(E.StringImm, lambda p, e: _quoted(e.value)),
    method(E.Binary, ScriptPrinter._binary),
    method(E.Unary, ScriptPrinter._unary),
    method(E.Cast, lambda p, e: f"T.Cast({_quoted(str(e.dtype))}, {p.expr(e.value)})"),
    method(E.Select, lambda p, e: f"T.Select({p._list((e.condition, e.true_value, e.false_value))})"),
    method(E.Ramp, lambda p, e: f"T.Ramp({p.expr(e.base)}, {p.expr(e.stride)}, {e.lanes})"),
    method(E.Broadcast, lambda p, e: f"T.Broadcast({p.expr(e.value)}, {e.lanes})"),
    method(E.BufferLoad, ScriptPrinter._load),
    method(E.BufferRegion, ScriptPrinter._region),
    method(E.Call, ScriptPrinter._call),
    method(E.FuncCall, ScriptPrinter._func_call),
    method(E.Pointer, ScriptPrinter._pointer),
)
_STMTS: dict[type, Callable[[ScriptPrinter, S.Stmt], str]] = table(
    method(S.Let, ScriptPrinter._let),
    method(S.BufferStore, ScriptPrinter._store),
    method(S.Evaluate, lambda p, s: f"T.evaluate({p.expr(s.value)})"),
    method(S.Alloc, ScriptPrinter._alloc),
    method(S.AllocConst, ScriptPrinter._table_of_numbers),
    method(S.DeclBuffer, ScriptPrinter._view),
    method(S.AssertStmt, lambda p, s: f"assert {p.expr(s.condition)}, {p.expr(s.message)}"),
)
ScriptPrinter._exprs, ScriptPrinter._stmts = _EXPRS, _STMTS


def _type_name(kind: object) -> str:
    return "handle" if str(kind) == "void" else str(kind)


def _rank(e: E.Expr) -> int:
    if isinstance(e, E.Binary):
        return _RANK.get(e.op, _ATOM) if e.op not in _CALLED and _stays(e) else _ATOM
    if isinstance(e, E.Unary):
        return _RANK["and"] if e.op == "not" else _ATOM
    return _RANK["mul"] if isinstance(e, IntImm) and e.dtype is INT32 and e.value < 0 else _ATOM


def _stays(e: E.Binary) -> bool:
    """Whether the operator in a program makes this node again."""
    if e.op == "div":
        return False
    try:
        made = operators.binary(e.op, e.a, e.b)
    except CompassError:
        return False
    return isinstance(made, E.Binary) and made.op == e.op and made.a is e.a and made.b is e.b


def _uses(e: E.Expr, variables: Sequence[E.Var]) -> bool:
    return any(x in variables for x in walk_exprs(e) if isinstance(x, E.Var))


def _whole(e: E.IntImm) -> str:
    if e.dtype is INT32:
        return str(e.value)
    return f"T.bool({bool(e.value)})" if e.dtype is BOOL else f"T.{e.dtype}({e.value})"


def _real(e: E.FloatImm) -> str:
    if not math.isfinite(e.value):
        return f'T.{e.dtype}("{e.value}")'
    return f"T.{e.dtype}({e.value:.17g})"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _value(value: object) -> str:
    """A value of an attribute."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_quoted(k)}: {_value(v)}" for k, v in sorted(value.items())) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    if isinstance(value, tuple):
        return "(" + "".join(f"{_value(v)}, " for v in value) + ")"
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, (bool, int, float)):
        return repr(value)
    if isinstance(value, IntImm):
        return repr(value.value)
    raise NoScript(f"a {type(value).__name__}")
