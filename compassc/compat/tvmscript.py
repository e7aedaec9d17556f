"""The framework's script dialect of blocks: decorated Python functions are read, never run, and become functions of the IR.

`@T.prim_func` functions, alone or in an `@ir_module` class, with `T.match_buffer`, `T.Buffer`, `T.alloc_buffer`, loops,
`T.block` with axes, `T.init` and `T.where`. What blocks read and write is found, not taken from `T.reads` and `T.writes`.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from compass_core.errors import CompassError

from .. import te
from ..analysis.conditions import TRUE
from ..ir import PrimFunc
from ..ir import exprs as E
from ..ir import stmts as S
from ..ir.dtypes import INT32, VOID, DataType, pointer_type
from ..ir.errors import ExpressionTypeError
from ..ir.exprs import Buffer, Expr, IntImm, Var
from ..ir.names import NamePool
from ..ir.operators import as_expr, data_type
from ..ir.stmts import EXPRESSIONS
from ..language.source import definition, file_of, node_span
from ..te.lowering import IMPLIED_SIZES
from ..te.opaque import View
from ..tir.blocks import Axis, new_block, view
from ..tir.canonical import canonical
from .names import SCALARS

handle = "handle"
"""The type of a parameter that `match_buffer` says more of."""
_ONE: E.Expr = IntImm(INT32, 1)
_ZERO: E.Expr = IntImm(INT32, 0)
_LOOPS = {
    "serial": "serial",
    "grid": "serial",
    "parallel": "parallel",
    "vectorized": "vectorized",
    "unroll": "unrolled",
    "thread_binding": "",
}
_KINDS = {"spatial": "spatial", "reduce": "reduce", "scan": "scan", "opaque": "opaque", "S": "spatial", "R": "reduce"}
_TOLD = ("reads", "writes", "func_attr", "block_attr", "evaluate", "where")
"""Statements that are calls. What blocks read and write is found without them."""
_SCOPES = {"global": "global", "shared": "shared", "local": "private", "lsram": "lsram"}


def prim_func(function: Callable[..., Any] | None = None, private: bool = False) -> Any:
    """The function of the IR that a decorated function is the text of. CompassError for what is none."""
    if function is None:
        return prim_func
    return _Reader(function).read()


def ir_module(cls: type) -> Any:
    """The module of the functions in a class; its entry is `main`, or the only one."""
    from .framework import IRModule as made

    functions: Any = {name: f for name, f in vars(cls).items() if isinstance(f, PrimFunc)}
    return type(made).__call__(made, functions)


def __getattr__(name: str) -> Any:
    if name in ("Buffer", "match_buffer", "alloc_buffer", "block", "axis", "init", "parallel", *_TOLD):
        return lambda *args, **options: name
    raise AttributeError(name)


class _Cells(View):
    """The elements of a buffer."""

    def __getitem__(self, indices: Any) -> Expr:
        given = indices if isinstance(indices, tuple) else (indices,)
        return E.BufferLoad(view(self.buffer), self._indices(given))

    def store(self, value: Any, *indices: Any) -> S.Stmt:
        if isinstance(indices[-1], E.Ramp):
            return self._store_vector(value, indices, indices[-1].lanes)
        made = super().store(value, *indices)
        assert isinstance(made, S.BufferStore)
        return made.replace(buffer=view(self.buffer))

    def _store_vector(self, value: Any, indices: tuple[Any, ...], lanes: int) -> S.Stmt:
        e = as_expr(value)
        if e.dtype is not self.dtype.with_lanes(lanes):
            raise ExpressionTypeError(f"{lanes} elements of '{self.name}' are {self.dtype}, the value is {e.dtype}")
        return S.BufferStore(view(self.buffer), self._indices(indices), e, None)


class _Values:
    """What `T.name` is in expressions: functions of values, and types."""

    def __getattr__(self, name: str) -> Any:
        if name in SCALARS.split():
            return lambda value=None: _Open(name) if value is None else _typed(value, name)
        if name == "cast":
            return lambda value, kind: te.cast(value, kind)
        if name == "Cast":
            return lambda kind, value: te.cast(value, kind)
        if name in ("Ramp", "ramp"):
            return _ramp
        if name in ("Broadcast", "broadcast"):
            return lambda value, lanes: E.Broadcast(as_expr(value), int(lanes))
        if name in te.__all__:
            return getattr(te, name)
        raise AttributeError(f"T.{name} has no meaning in an expression")


def _ramp(base: Any, stride: Any, lanes: int) -> Expr:
    """The indices of a vector's elements."""
    first = as_expr(base)
    return E.Ramp(first, te.cast(as_expr(stride), str(first.dtype)), int(lanes))


def _around(function: Callable[..., Any]) -> dict[str, Any]:
    """The names of the functions and classes that a function is being defined in: what stands in annotations alone is no
    part of its closure."""
    found: dict[str, Any] = {}
    frame = sys._getframe(1)
    while frame is not None and frame.f_globals is not function.__globals__:
        frame = frame.f_back  # type: ignore[assignment]
    while frame is not None and frame.f_globals is function.__globals__:
        found = {**frame.f_locals, **found}
        frame = frame.f_back  # type: ignore[assignment]
    return found


class _Open:
    """`T.int32()`: a size that is known when the function runs."""

    def __init__(self, kind: str) -> None:
        self.kind = kind


def _typed(value: Any, kind: str) -> Expr:
    return te.cast(value, kind) if isinstance(value, Expr) else te.const(value, kind)


class _Block:
    """A block that is being read."""

    def __init__(self, name: str) -> None:
        self.name, self.axes, self.init = name, list[Axis](), list[S.Stmt]()
        self.where: E.Expr = TRUE


class _Reader:
    """Reads one function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.node, self.file = definition(function), file_of(function)
        outside = inspect.getclosurevars(function).nonlocals
        known = {**vars(builtins), **function.__globals__, **_around(function), **outside}
        script = sys.modules.get("tvm.script.tir")
        self.dialects = {name for name, value in known.items() if value is script and script is not None}
        self.outside = {**known, **dict.fromkeys(self.dialects, _Values())}
        self.names: dict[str, Any] = {}
        self.params: dict[str, Var] = {}
        self.declared: list[S.Stmt] = []
        self.extents: dict[Var, tuple[E.Expr, E.Expr]] = {}
        self.out: list[S.Stmt] = []
        self.blocks: list[_Block] = []
        self.block_names = NamePool()
        self.name = function.__name__

    def read(self) -> PrimFunc:
        for a in self.node.args.args:
            self._parameter(a)
        self._body(self.node.body)
        missing = [name for name in self.handles if name not in self.params]
        if missing:
            raise self._error(self.node, f"no T.match_buffer says what '{missing[0]}' is")
        variables = [self.params[a.arg] for a in self.node.args.args]
        shapes = (e for s in self.declared if isinstance(s, S.DeclBuffer) for e in s.buffer.shape)
        sizes = list(dict.fromkeys(e for e in shapes if isinstance(e, Var) and e not in variables))
        attrs = ((EXPRESSIONS, True), *(((IMPLIED_SIZES, len(sizes)),) if sizes else ()))
        body = (*self.declared, *self.out)
        return canonical(PrimFunc(self.name, (*variables, *sizes), body, VOID, attrs))

    # -- parameters and buffers

    handles: list[str]

    def _parameter(self, a: ast.arg) -> None:
        self.handles = getattr(self, "handles", [])
        name, note = a.arg, a.annotation
        called = self._called(note)
        if called == "Buffer":
            assert isinstance(note, ast.Call)
            self.names[name] = self._buffer(name, name, *self._shape_and_type(note))
        elif note is not None and self._dotted(note) in SCALARS.split():
            self.params[name] = Var(name, data_type(self._dotted(note)))
            self.names[name] = self.params[name]
        else:
            self.handles.append(name)
            self.names[name] = name

    def _shape_and_type(self, call: ast.Call, first: int = 0) -> tuple[tuple[E.Expr, ...], DataType]:
        given = [self._value(x) for x in call.args[first:]]
        options = {k.arg: self._value(k.value) for k in call.keywords}
        shape = options.get("shape", given[0] if given else ())
        kind = options.get("dtype", given[1] if len(given) > 1 else "float32")
        dims = shape if isinstance(shape, (tuple, list)) else (shape,)
        return tuple(map(as_expr, dims)) or (_ONE,), data_type(str(kind))

    def _buffer(self, param: str, name: str, shape: tuple[E.Expr, ...], kind: DataType) -> _Cells:
        data = Var(param, pointer_type(kind, "global"))
        self.params[param] = data
        buffer = Buffer(data, kind, shape)
        self.declared.append(S.DeclBuffer(buffer))
        return _Cells(buffer)

    def _allocated(self, name: str, call: ast.Call) -> _Cells:
        shape, kind = self._shape_and_type(call)
        scope = next((self._value(k.value) for k in call.keywords if k.arg == "scope"), "global")
        if scope not in _SCOPES:
            raise self._error(call, f"there is no memory '{scope}'", ", ".join(_SCOPES))
        buffer = Buffer(Var(name, pointer_type(kind, _SCOPES[scope])), kind, shape)
        self.declared.append(S.Alloc(buffer))
        return _Cells(buffer)

    # -- statements

    def _body(self, nodes: Sequence[ast.stmt]) -> None:
        for node in nodes:
            form: Callable[[Any], None] | None = getattr(self, f"_{type(node).__name__.lower()}", None)
            if form is None:
                raise self._error(node, f"a function of blocks has no {type(node).__name__}")
            form(node)

    def _nested(self, nodes: Sequence[ast.stmt]) -> tuple[S.Stmt, ...]:
        outer, self.out = self.out, []
        try:
            self._body(nodes)
            return tuple(self.out)
        finally:
            self.out = outer

    def _pass(self, node: ast.Pass) -> None:
        """Nothing."""

    def _expr(self, node: ast.Expr) -> None:
        called = self._called(node.value)
        if isinstance(node.value, ast.Constant):
            return
        if called not in _TOLD:
            raise self._error(node, "an expression is no statement of a function of blocks")
        assert isinstance(node.value, ast.Call)
        if called == "where":
            self._block(node).where = as_expr(self._value(node.value.args[0]))
        elif called == "func_attr":
            self.name = str(self._value(node.value.args[0]).get("global_symbol", self.name))

    def _assign(self, node: ast.Assign) -> None:
        target, called = node.targets[0], self._called(node.value)
        if isinstance(target, ast.Subscript):
            self._stored(target, self._value(node.value))
        elif called.startswith("axis."):
            self._axes(node, called.removeprefix("axis."))
        elif isinstance(target, ast.Name) and isinstance(node.value, ast.Call) and called == "match_buffer":
            param = self._value(node.value.args[0])
            shape, kind = self._shape_and_type(node.value, 1)
            self.names[target.id] = self._buffer(str(param), target.id, shape, kind)
        elif isinstance(target, ast.Name) and isinstance(node.value, ast.Call) and called == "alloc_buffer":
            self.names[target.id] = self._allocated(target.id, node.value)
        elif isinstance(target, ast.Name):
            self._named(target.id, self._value(node.value))
        else:
            raise self._error(node, "a value is assigned to a name or an element")

    def _annassign(self, node: ast.AnnAssign) -> None:
        if not isinstance(node.target, ast.Name) or node.value is None:
            raise self._error(node, "a value is assigned to a name or an element")
        self._named(node.target.id, self._value(node.value))

    def _named(self, name: str, value: Any) -> None:
        """A name for a value: a variable of the function where it is one that is computed."""
        if isinstance(value, Expr) and not isinstance(value, (Var, IntImm)):
            var = Var(name, value.dtype)
            self.out.append(S.Let(var, value))
            value = var
        elif isinstance(value, _Open):
            value = te.var(name, value.kind)
        self.names[name] = value

    def _augassign(self, node: ast.AugAssign) -> None:
        if not isinstance(node.target, ast.Subscript):
            raise self._error(node, "names are given values once")
        old = ast.copy_location(ast.Subscript(node.target.value, node.target.slice, ast.Load()), node)
        both = ast.copy_location(ast.BinOp(old, node.op, node.value), node)
        self._stored(node.target, self._value(both))

    def _stored(self, target: ast.Subscript, value: Any) -> None:
        cells, at = self._value(target.value), self._value(target.slice)
        if not isinstance(cells, _Cells):
            raise self._error(target, "this is no buffer")
        with self._at(target):
            self.out.append(cells.store(value, *(at if isinstance(at, tuple) else (at,))))

    def _for(self, node: ast.For) -> None:
        call = node.iter
        called = "serial" if isinstance(call, ast.Call) and self._dotted(call.func) == "range" else self._called(call)
        if not isinstance(call, ast.Call) or called not in _LOOPS:
            raise self._error(node.iter, "a loop is over range or one of T." + ", T.".join(_LOOPS))
        given = [as_expr(self._value(a)) for a in call.args]
        if called == "grid":
            ranges = [(_ZERO, e) for e in given]
        else:
            ranges = [(given[0], given[1]) if len(given) > 1 else (_ZERO, given[0])]
        targets = node.target.elts if isinstance(node.target, ast.Tuple) else [node.target]
        kind = _LOOPS[called]
        if called == "thread_binding":
            kind = str({k.arg: self._value(k.value) for k in call.keywords}.get("thread", "")).replace(".", "_")
        if kind not in (*_LOOPS.values(), *S.THREAD_LOOPS) or len(targets) != len(ranges) or not kind:
            raise self._error(node, "this loop has other names than ranges, or a thread that there is not")
        loops = []
        for target, (start, stop) in zip(targets, ranges):
            if not isinstance(target, ast.Name):
                raise self._error(target, "a loop has a name")
            var = Var(target.id, INT32)
            extent = stop if start is _ZERO else as_expr(stop - start)
            self.names[target.id], self.extents[var] = var, (start, extent)
            loops.append((var, start, stop))
        body = self._nested(node.body)
        for var, start, stop in reversed(loops):
            body = (S.For(var, kind, start, stop, _ONE, body),)
        self.out += body

    def _if(self, node: ast.If) -> None:
        test = self._value(node.test)
        if isinstance(test, bool):
            self._body(node.body if test else node.orelse)
            return
        self.out.append(S.IfThenElse(as_expr(test), self._nested(node.body), self._nested(node.orelse)))

    def _with(self, node: ast.With) -> None:
        call = node.items[0].context_expr
        called = self._called(call)
        if called == "init":
            self._block(node).init += self._nested(node.body)
            return
        if called != "block" or not isinstance(call, ast.Call):
            raise self._error(node, "`with` has a T.block or a T.init")
        block = _Block(self.block_names.take(str(self._value(call.args[0])) if call.args else "block"))
        self.blocks.append(block)
        body = self._nested(node.body)
        self.blocks.pop()
        self.out.append(new_block(block.name, block.axes, body, tuple(block.init), block.where))

    def _block(self, node: ast.AST) -> _Block:
        if not self.blocks:
            raise self._error(node, "this stands in a block")
        return self.blocks[-1]

    def _axes(self, node: ast.Assign, called: str) -> None:
        block, call = self._block(node), node.value
        assert isinstance(call, ast.Call)
        target = node.targets[0]
        names = [t.id for t in (target.elts if isinstance(target, ast.Tuple) else [target]) if isinstance(t, ast.Name)]
        given = [self._value(a) for a in call.args]
        if called == "remap":
            kinds, bindings = list(given[0]), list(map(as_expr, given[1]))
            domains = [self.extents.get(b) if isinstance(b, Var) else None for b in bindings]
        else:
            kinds, bindings = [called], [as_expr(given[1])]
            low, high = given[0] if isinstance(given[0], (tuple, list)) else (0, given[0])
            domains = [(as_expr(low), as_expr(high - low))]
        if not len(names) == len(kinds) == len(bindings) or None in domains or not {*kinds} <= {*_KINDS}:
            raise self._error(node, "an axis for each kind (S, R) and each loop")
        for name, kind, binding, domain in zip(names, kinds, bindings, domains):
            assert domain is not None
            var = Var(name, INT32)
            block.axes.append(Axis(var, _KINDS[kind], *domain, binding))
            self.names[name], self.extents[var] = var, domain

    # -- expressions

    def _value(self, node: ast.expr) -> Any:
        with self._at(node):
            code = compile(ast.fix_missing_locations(ast.Expression(node)), self.file, "eval")
            return eval(code, {**self.outside, **self.names})

    def _dotted(self, node: ast.AST | None) -> str:
        """`T.axis.spatial` as `axis.spatial`; other names as they are."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.insert(0, node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return ""
        return ".".join(parts if node.id in self.dialects else [node.id, *parts])

    def _called(self, node: ast.AST | None) -> str:
        return self._dotted(node.func) if isinstance(node, ast.Call) else ""

    @contextmanager
    def _at(self, node: ast.AST) -> Iterator[None]:
        """Errors that have the place of a part of the function."""
        try:
            yield
        except CompassError as error:
            raise self._error(node, error.message, str(error.help or "")) from error
        except Exception as error:
            raise self._error(node, f"{type(error).__name__}: {error}") from error

    def _error(self, node: ast.AST, message: str, help: str = "") -> CompassError:
        return CompassError(message, node_span(node, self.file), code="compat-script", help=help)
