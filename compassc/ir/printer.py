"""IR to text: a Python script that `compassc.ir.text.parse_module` reads back as an equal module.

`T.*` are IR constructs, `S.*` declared operations, `Module.*` functions of the module. A trailing comment
`#@ line:col-end` keeps the place in the kernel; where calls and accesses of the statement stand in other lines, ` ; place`
follows for each of them, in the order of `placed_exprs` (`.` is the statement's own).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar

from compass_core.errors import Span
from compass_core.errors.excerpts import portable_name
from compass_core.operators import OPERATORS

from . import exprs as E
from . import stmts as S
from . import tensor_exprs as T
from . import tensor_stmts as TS
from .dtypes import BOOL, INT32, PointerType, type_text
from .forms import FORMS
from .members import GraphMember
from .names import NamePool
from .node import Field, Node
from .rules import method, table

GRAPH = "I.graph"
"""The call in IR text that makes a graph from text and constants."""
DIGEST = "# sha256 of a source: "
"""The beginning of a head line with the digest of a file."""
SYMBOLS = {name: operator.python for name, operator in OPERATORS.items() if operator.python}
NAMED = {"div": "div", "mod": "truncmod", "min": "min", "max": "max"}
RESERVED = frozenset(
    "T S I Module range True False and or not if else for while in return break pass class def".split()
)


def mask_text(bits: int, lanes: int) -> str:
    """A mask as runs, lane 0 first: `3T5F`."""
    out, i = [], 0
    while i < lanes:
        bit, start = bits >> i & 1, i
        while i < lanes and bits >> i & 1 == bit:
            i += 1
        out.append(f"{i - start}{'T' if bit else 'F'}")
    return "".join(out)


class _Names:
    """One text name per variable or shaped buffer of a function, unique in it."""

    def __init__(self) -> None:
        self.of: dict[object, str] = {}
        self.pool = NamePool(RESERVED)

    def define(self, key: object, hint: str) -> str:
        """The name of what a program defines: an identifier."""
        return self.take(key, hint if hint.isidentifier() else re.sub(r"\W|^(?=\d|$)", "_", hint))

    def take(self, key: object, hint: str) -> str:
        """The name of what an expression uses: as it is called."""
        name = self.of[key] = self.pool.take(hint)
        return name


def _buffer_key(b: E.Buffer) -> object:
    return (b.data, b.dtype, b.shape, b.axis_separators)


class Printer:
    """Text of expressions and statements of one function."""

    _exprs: ClassVar[Mapping[type, Callable[..., str]]]
    _stmts: ClassVar[Mapping[type, Callable[..., str]]]
    """The text of each class of expressions, and of statements that are a line: `f(printer, node)`."""

    def __init__(self, file: str = "") -> None:
        self.names = _Names()
        self.file = file
        self.lines: list[str] = []
        self.spans: list[Span | None] = []
        """Of the calls and accesses that were printed since the last line, in the order of `placed_exprs`."""

    # -- expressions

    def expr(self, e: E.Expr) -> str:
        return self._exprs[type(e)](self, e)

    def name(self, v: E.Var) -> str:
        name = self.names.of.get(v)
        return name if name is not None else self.names.take(v, v.name)

    def _list(self, items: Iterable[E.Expr]) -> str:
        return ", ".join([self.expr(i) for i in items])

    def _form(self, e: Node) -> str:
        """The text of a node whose form is declared."""
        form = FORMS[type(e)]
        return f"T.{form.name}({', '.join([self._part(part, getattr(e, part.name)) for part in form.parts])})"

    def _part(self, part: Field, value: Any) -> str:
        match part.annotation:
            case "Expr" | "Var":
                return self.expr(value)
            case "tuple[Expr, ...]":
                return self._list(value)
            case "DataType":
                return f'"{value}"'
            case "Type":
                return type_text(value)
        return str(value)

    def _binary(self, e: E.Binary) -> str:
        symbol = SYMBOLS.get(e.op)
        if symbol is None:
            return f"T.{NAMED[e.op]}({self.expr(e.a)}, {self.expr(e.b)})"
        return f"({self.expr(e.a)} {symbol} {self.expr(e.b)})"

    def _unary(self, e: E.Unary) -> str:
        form = {"not": "(not {})", "bitnot": "(~{})", "isnull": "T.isnull({})"}[e.op]
        return form.format(self.expr(e.a))

    def _pointer(self, e: E.Pointer) -> str:
        elem = "" if e.elem is e.base.pointer_type.elem else f', "{e.elem}"'
        return f"T.addr({self.expr(e.base)}, {self.expr(e.offset)}{elem})"

    def buffer(self, b: E.Buffer) -> str:
        if b.shape:  # an expression alone may be of a function that is not here
            return self.names.of.get(_buffer_key(b), b.data.name)
        name = self.name(b.data)
        return name if b.dtype is b.data.pointer_type.elem else f'T.view({name}, "{b.dtype}")'

    def _func_call(self, e: E.FuncCall) -> str:
        self.spans.append(e.span)
        return f"Module.{e.func}({self._list(e.args)})"

    def _load(self, e: E.BufferLoad) -> str:
        self.spans.append(e.span)
        if e.mask is not None:
            return f"T.load({self.buffer(e.buffer)}, {self._list(e.indices)}, mask={self.expr(e.mask)})"
        return f"{self.buffer(e.buffer)}[{self._list(e.indices)}]"

    def _region(self, e: E.BufferRegion) -> str:
        return f"{self.buffer(e.buffer)}[{', '.join(map(self._range, e.starts, e.extents))}]"

    def _range(self, start: E.Expr, extent: E.Expr) -> str:
        """An index, or `start:stop` (`start:(start + extent)` where that is no number)."""
        if isinstance(extent, E.IntImm) and extent.value == 1:
            return self.expr(start)
        if isinstance(extent, E.IntImm) and isinstance(start, E.IntImm):
            return f"{self.expr(start)}:{start.value + extent.value}"
        return f"{self.expr(start)}:({self.expr(start)} + {self.expr(extent)})"

    def _call(self, e: E.Call) -> str:
        self.spans.append(e.span)
        parts = [self.expr(a) for a in e.args]
        kind = type_text(e.dtype) if isinstance(e.dtype, PointerType) else f'"{e.dtype}"'
        parts.append(f"dtype={kind}")
        if e.mask is not None:
            parts.append(f"mask={self.expr(e.mask)}")
        if e.r is not None:
            parts.append(f"r={self.expr(e.r)}")
        parts += [f"{k}={v!r}" for k, v in e.attrs]
        return f"S.{e.op}({', '.join(parts)})"

    def _reduce(self, e: T.Reduce) -> str:
        return f"{e.combiner.name}({self._list(e.source)}, axis=[{', '.join([axis.name for axis in e.axis])}])"

    # -- statements

    def _let(self, s: S.Let) -> str:
        value = self.expr(s.value)
        kind = f'T.size("{s.var.dtype}")' if s.var.nonneg else type_text(s.var.dtype)
        return f"{self.names.define(s.var, s.var.name)}: {kind} = {value}"

    def _store(self, s: S.BufferStore) -> str:
        if s.mask is None:
            return f"{self.buffer(s.buffer)}[{self._list(s.indices)}] = {self.expr(s.value)}"
        tail = f"value={self.expr(s.value)}, mask={self.expr(s.mask)}"
        return f"T.store({self.buffer(s.buffer)}, {self._list(s.indices)}, {tail})"

    def _shape(self, b: E.Buffer) -> str:
        return f"({self._list(b.shape)},)" if len(b.shape) == 1 else f"({self._list(b.shape)})"

    @staticmethod
    def separators(b: E.Buffer) -> str:
        """The last argument of the declaration of a buffer with several physical dimensions."""
        return f", axis_separators={list(b.axis_separators)}" if b.axis_separators else ""

    def _alloc(self, s: S.Alloc) -> str:
        b = s.buffer
        name = self.names.define(b.data, b.data.name)
        self.names.of[_buffer_key(b)] = name
        return f'{name} = T.alloc({self._shape(b)}, "{b.dtype}", "{b.scope}"{self.separators(b)})'

    def _alloc_const(self, s: S.AllocConst) -> str:
        b = s.buffer
        name = self.names.define(b.data, b.data.name)
        self.names.of[_buffer_key(b)] = name
        return f'{name} = T.alloc_const({self._shape(b)}, "{b.dtype}", "{s.data.hex()}")'

    def _decl_buffer(self, s: S.DeclBuffer) -> str:
        b = s.buffer
        source, shape = self.name(b.data), self._shape(b)
        name = self.names.define(_buffer_key(b), b.data.name)
        return f'{name} = T.match_buffer({source}, {shape}, "{b.dtype}"{self.separators(b)})'

    def _span(self, span: Span | None) -> str:
        return "" if span is None else "  #@ " + span_text(span, self.file)

    def line(self, depth: int, text: str, s: S.Stmt) -> None:
        self.lines.append("    " * depth + text + self._span(s.span) + self._places(s.span))

    def _places(self, own: Span | None) -> str:
        """The places of calls and accesses in what was printed since the last line, where one of them stands in another
        line than the statement begins with."""
        spans, self.spans = self.spans, []
        if own is None:
            return ""
        for span in spans:
            if span is not None and (span.line != own.line or span.file != own.file):
                break
        else:
            return ""
        return "".join(
            [" ; ." if span is None or span == own else f" ; {span_text(span, self.file)}" for span in spans]
        )

    def body(self, body: S.Body, depth: int) -> None:
        """Append the text of statements, indented `depth` levels."""
        if not body:
            self.lines.append("    " * depth + "pass")
        for s in body:
            match s:
                case S.For():
                    self._for(s, depth)
                case S.Block():
                    self._block(s, depth)
                case TS.ProducerRealize():
                    parts = [f"{self.expr(a)}:{self.expr(b)}" for a, b in zip(s.starts, s.extents)]
                    realized = f"{s.producer.name}[{', '.join(parts)}]"
                    self.line(depth, f"with T.realize({realized}, {s.storage_scope!r}):", s)
                    self.body(s.body, depth + 1)
                case S.AttrStmt() | TS.StageAttr():
                    whose = self.expr(s.node) if isinstance(s.node, E.Expr) else str(s.node)
                    said = f"{whose}, {s.attr_key!r}, {self.expr(s.value)}"
                    self.line(depth, f"with T.attr({said}):", s)
                    self.body(s.body, depth + 1)
                case S.While():
                    self.line(depth, f"while {self.expr(s.condition)}:", s)
                    self.body(s.body, depth + 1)
                case S.IfThenElse():
                    self.line(depth, f"if {self.expr(s.condition)}:", s)
                    self.body(s.then_case, depth + 1)
                    if s.else_case:
                        self.lines.append("    " * depth + "else:")
                        self.body(s.else_case, depth + 1)
                case _:
                    self.line(depth, self._stmts[type(s)](self, s), s)

    def _for(self, s: S.For, depth: int) -> None:
        args = self._list((s.min, s.stop, s.step))
        if s.loop_var.dtype is not INT32:
            args += f', dtype="{s.loop_var.dtype}"'
        if s.loop_var.nonneg:
            args += ", nonneg=True"
        if s.annotations:
            args += f", annotations={dict(s.annotations)!r}"
        name = self.names.define(s.loop_var, s.loop_var.name)
        self.line(depth, f"for {name} in T.{s.kind}({args}):", s)
        self.body(s.body, depth + 1)

    def _block(self, s: S.Block, depth: int) -> None:
        inner = "    " * (depth + 1)
        self.line(depth, f'with T.block("{s.name_hint}"):', s)
        outside = [[self.expr(e) for e in row] for row in zip(s.starts, s.extents, s.iter_values)]
        where = self.expr(s.predicate)
        for var, kind, (start, extent, binding) in zip(s.vars, s.kinds, outside):
            dom = extent if start == "0" else f"({start}, {extent})"
            self.lines.append(f"{inner}{self.names.define(var, var.name)} = T.axis.{kind}({dom}, {binding})")
        if where != "True":
            self.lines.append(f"{inner}T.where({where})")
        self.lines.append(f"{inner}T.reads({self._list(s.reads)})")
        self.lines.append(f"{inner}T.writes({self._list(s.writes)})")
        if s.annotations:
            self.lines.append(f"{inner}T.block_attr({dict(s.annotations)!r})")
        self.spans.clear()  # of calls in bindings, which have no places of their own in the text
        if s.init:
            self.lines.append(f"{inner}with T.init():")
            self.body(s.init, depth + 2)
        self.body(s.body, depth + 1)

    def function(self, f: S.PrimFunc, depth: int = 1) -> list[str]:
        """Lines of a function definition."""
        self.file = f.span.file if f.span else ""
        attrs = ", ".join(f"{k}={v!r}" for k, v in f.attrs)
        self.lines.append("    " * depth + (f"@T.func({attrs})" if attrs else "@T.func"))
        params = ", ".join(f"{self.names.define(p, p.name)}: {self._param_type(p)}" for p in f.params)
        span = "  #@ " + span_text(f.span, "") if f.span else ""
        self.lines.append("    " * depth + f"def {f.name}({params}) -> {type_text(f.ret_type)}:" + span)
        self.body(f.body, depth + 1)
        return self.lines

    @staticmethod
    def _param_type(p: E.Var) -> str:
        return f'T.size("{p.dtype}")' if p.nonneg else type_text(p.dtype)


_EXPRS: dict[type, Callable[[Printer, E.Expr], str]] = table(
    *((kind, Printer._form) for kind in FORMS),
    method(E.Var, Printer.name),
    method(E.IntImm, lambda p, e: _int_text(e)),
    method(E.FloatImm, lambda p, e: _float_text(e)),
    method(E.StringImm, lambda p, e: repr(e.value)),
    method(E.Binary, Printer._binary),
    method(E.Unary, Printer._unary),
    method(E.ConstMask, lambda p, e: f'T.mask("{mask_text(e.bits, e.lanes)}")'),
    method(E.Pointer, Printer._pointer),
    method(E.BufferLoad, Printer._load),
    method(E.BufferRegion, Printer._region),
    method(E.Call, Printer._call),
    method(T.ProducerLoad, lambda p, e: f"{e.producer.name}[{p._list(e.indices)}]"),
    method(T.Reduce, Printer._reduce),
    method(E.FuncCall, Printer._func_call),
)
_STMTS: dict[type, Callable[[Printer, S.Stmt], str]] = table(
    method(S.SetElement, Printer._form),
    method(S.AssertStmt, Printer._form),
    method(S.Let, Printer._let),
    method(S.Assign, lambda p, s: f"{p.name(s.var)} = {p.expr(s.value)}"),
    method(S.BufferStore, Printer._store),
    method(TS.ProducerStore, lambda p, s: f"{s.producer.name}[{p._list(s.indices)}] = {p.expr(s.value)}"),
    method(S.Evaluate, lambda p, s: p.expr(s.value)),
    method(S.Alloc, Printer._alloc),
    method(S.AllocConst, Printer._alloc_const),
    method(S.DeclBuffer, Printer._decl_buffer),
    method(S.Break, lambda p, s: "break"),
    method(S.Continue, lambda p, s: "continue"),
    method(S.Return, lambda p, s: "return" if s.value is None else f"return {p.expr(s.value)}"),
)
Printer._exprs, Printer._stmts = _EXPRS, _STMTS


def span_text(span: Span, file: str) -> str:
    """`file:line:col-end` of a span; the file is left out where it equals `file`."""
    prefix = "" if span.file == file else f"{portable_name(span.file)}:"
    end = f"-{span.end_col}" if span.end_line in (0, span.line) else f"-{span.end_line}:{span.end_col}"
    return f"{prefix}{span.line}:{span.col}{end}"


def _int_text(e: E.IntImm) -> str:
    if e.dtype is INT32:
        return str(e.value)
    if e.dtype is BOOL:
        return str(bool(e.value))
    return f"T.{e.dtype}({e.value})"


def _float_text(e: E.FloatImm) -> str:
    finite = math.isfinite(e.value)
    return f"T.{e.dtype}({e.value!r})" if finite else f'T.{e.dtype}("{e.value}")'


def print_module(module: S.IRModule, digests: Iterable[str] = ()) -> str:
    """The text of a module. `digests` (`compass_core.errors.excerpts`) tell readers of the text which contents of files its places
    are about: errors show lines of no others."""
    lines = [
        "# compassc IR 1",
        *(f"{DIGEST}{digest}" for digest in sorted(set(digests))),
        f'@I.module(target="{module.target}", entry="{module.entry}")',
        "class Module:",
    ]
    for i, f in enumerate(module.functions):
        if i:
            lines.append("")
        lines += Printer().function(f)
    for graph in module.graphs:
        lines += ["", *_graph(graph)]
    return "\n".join(lines) + "\n"


def _graph(graph: GraphMember) -> list[str]:
    """A graph of a module: its Compass IR, and its constants in base64."""
    from base64 import b64encode

    text, constants = graph.written()
    quoted = text.replace("\\", "\\\\").replace('"', '\\"').splitlines()
    return [f"    {GRAPH}(", '        """', *quoted, '""",', f'        "{b64encode(constants).decode()}",', "    )"]


def print_body(body: S.Body) -> str:
    """The text of statements alone."""
    made = Printer()
    made.body(body, 0)
    return "\n".join(made.lines)


def print_expr(e: E.Expr) -> str:
    """The text of an expression alone, for messages and debugging."""
    return Printer().expr(e)
