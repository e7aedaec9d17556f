"""The framework's script dialect of blocks: decorated Python functions are read, never run, and become functions of the IR.

`@T.prim_func` functions, alone or in an `@ir_module` class, with `T.match_buffer`, `T.Buffer`, `T.alloc_buffer`, loops,
`T.block` with axes, `T.init` and `T.where`. What blocks read and write is found, not taken from `T.reads` and
`T.writes`, but of blocks that take addresses.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from compass_core.errors import CompassError, Span
from compass_core.reading import pyast

from .. import te
from ..analysis.conditions import TRUE
from ..ir import PrimFunc
from ..ir import exprs as E
from ..ir import stmts as S
from ..ir.dtypes import INT32, VOID
from ..ir.exprs import Expr, IntImm, Var
from ..ir.names import NamePool
from ..ir.operators import as_expr
from ..ir.stmts import EXPRESSIONS
from ..ir.visit import all_exprs, walk_stmts
from ..language.source import definition, file_of, node_span
from ..te.lowering import IMPLIED_SIZES
from ..tir.addresses import takes_address
from ..tir.blocks import Axis, new_block
from ..tir.canonical import EXPLICIT, ONLY, canonical
from ..tir.roots import ROOT
from .framework import IRModule as made
from .script_buffers import Declarations
from .script_macros import Macro, known
from .script_values import OPERATORS, TYPES, Cells, Open, Operators, Values

handle = "handle"


def Buffer(shape: object, dtype: str = "float32", **_: object) -> str:
    """The annotation of a parameter, which is read from the text of the function."""
    return f"Buffer({shape}, {dtype})"


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
_AROUND = ("Assert", "attr", "realize")
"""Statements around the rest of a body."""
_TOLD = ("reads", "writes", "func_attr", "block_attr", "evaluate", "where")
"""Statements that are calls. What blocks read and write is found without them."""
_DECLARED = ("Buffer", "alloc_buffer", "allocate", "allocate_const", "decl_buffer")


def prim_func(function: Callable[..., object] | None = None, private: bool = False) -> Any:
    """The function of the IR that a decorated function is the text of. CompassError for what is none."""
    if function is None:
        return prim_func
    return _Reader(function).read()


def ir_module(cls: type) -> Any:
    """The module of the functions in a class; its entry is `main`, or the only one."""
    functions = {name: f for name, f in vars(cls).items() if isinstance(f, PrimFunc)}
    if len(functions) > 1 and "main" not in functions:  # none is to be called before others
        return S.IRModule(tuple(functions.values()), min(functions), "")
    return type(made).__call__(made, functions)


def __getattr__(name: str) -> object:
    if name in ("Buffer", "match_buffer", "alloc_buffer", "block", "axis", "init", "parallel", *_TOLD):
        return lambda *args, **options: name
    raise AttributeError(name)


def from_source(source: str | type | Callable[..., object], extra_vars: Mapping[str, object] | None = None) -> Any:
    """The function or module of a text, or of a function or class. `extra_vars`: its names, `T`, `I`, `tir`, `ir` and `tvm`
    where none are given. CompassError for text that is none."""
    import linecache

    if not isinstance(source, str):
        return ir_module(source) if isinstance(source, type) else prim_func(source)
    tvm = importlib.import_module("tvm")
    script = importlib.import_module("tvm.script")
    names = {"tvm": tvm, "T": script.tir, "I": script.ir, "tir": script.tir, "ir": script.ir, **(extra_vars or {})}
    file = f"<script {hashlib.sha256(source.encode()).hexdigest()[:16]}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    before = {**names, "__name__": file}
    try:
        code = compile(source, file, "exec")
    except SyntaxError as error:
        raise CompassError(str(error.msg), Span(file, error.lineno or 1), code="compat-script") from None
    exec(code, before)  # noqa: S102 - the text of a script is a program of the user's
    found = [v for k, v in before.items() if k not in names and isinstance(v, (PrimFunc, S.IRModule))]
    if not found:
        raise CompassError("the text defines no function or module", Span(file, 1), code="compat-script")
    return found[-1]


def _or_text(given: object) -> Expr:
    """A value, or a text, which is an expression in the places of statements that nothing computes."""
    return E.StringImm(given) if isinstance(given, str) else as_expr(given)


class _Block:
    """A block that is being read."""

    def __init__(self, name: str) -> None:
        self.name, self.axes, self.init = name, list[Axis](), list[S.Stmt]()
        self.where: E.Expr = TRUE
        self.notes: dict[str, object] = {}
        self.regions: dict[str, list[ast.expr]] = {}


class _Reader(Declarations):
    """Reads one function."""

    def __init__(self, function: Callable[..., object]) -> None:
        self.node, self.file = definition(function), file_of(function)
        self._stand_in(known(function))
        self.names: dict[str, Any] = {}
        self.params: dict[str, Var] = {}
        self.handles: list[str] = []
        self.declared: list[S.Stmt] = []
        self.layout: list[Var] = []
        self.extents: dict[Var, tuple[E.Expr, E.Expr]] = {}
        self.out: list[S.Stmt] = []
        self.blocks: list[_Block] = []
        self.expanded: list[Macro] = []
        self.block_names = NamePool()
        self.name = function.__name__
        self.depth = 0
        self.threads: dict[str, str] = {}
        self.lowered = False
        """Whether it is a function that a schedule was lowered to."""

    def _stand_in(self, names: dict[str, object]) -> None:
        """Have names mean what they mean in a place of the program."""
        script = sys.modules.get("tvm.script.tir")
        self.dialects = {name for name, value in names.items() if value is script and script is not None}
        self.outside = {**names, **dict.fromkeys(self.dialects, Values())}

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
        used = {e for e in all_exprs(tuple(self.out)) if isinstance(e, Var)} if self.layout else ()
        sizes += [v for v in self.layout if v in used]
        attrs = ((IMPLIED_SIZES, len(sizes)),) if sizes else ()
        body = (*self._declarations(), *self.out)
        if self.lowered:
            open_ = any(
                not isinstance(e, IntImm) for s in walk_stmts(body) if isinstance(s, S.Alloc) for e in s.buffer.shape
            )
            attrs = (*attrs, (S.OPEN_MEMORY, 1)) if open_ else attrs
            return PrimFunc(self.name, (*variables, *sizes), body, VOID, attrs)
        attrs = ((EXPRESSIONS, True), *attrs)
        return canonical(PrimFunc(self.name, (*variables, *sizes), body, VOID, attrs))

    def _declarations(self) -> list[S.Stmt]:
        """The buffers of parameters in their order, then those that the function allocates, wherever the text has them."""
        places = {self.params[a.arg]: i for i, a in enumerate(self.node.args.args)}

        def place(s: S.Stmt) -> int:
            return places.get(s.buffer.data, len(places)) if isinstance(s, S.DeclBuffer) else len(places)

        return self.declared if self.lowered else sorted(self.declared, key=place)

    # -- statements

    def _body(self, nodes: Sequence[ast.stmt]) -> None:
        for place, node in enumerate(nodes):
            if (launched := self._launched(node)) is not None:
                self._threads(node, *launched, nodes[place + 1 :])
                return
            if isinstance(node, ast.Expr) and self._called(node.value) in _AROUND:
                self._around(node.value, nodes[place + 1 :])
                return
            form: Callable[[object], None] | None = getattr(self, f"_{type(node).__name__.lower()}", None)
            if form is None:
                raise self._error(node, f"a function of blocks has no {type(node).__name__}")
            form(node)

    def _launched(self, node: ast.stmt) -> tuple[str, object] | None:
        """The name and extent of `x = T.launch_thread(tag, n)`, or of `T.launch_thread(x, n)` after `x = T.env_thread(tag)`."""
        value = getattr(node, "value", None)
        if not isinstance(node, (ast.Assign, ast.Expr)) or self._called(value) != "launch_thread":
            return None
        assert isinstance(value, ast.Call)
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            self.threads[node.targets[0].id] = str(self._value(value.args[0]))
            return node.targets[0].id, self._value(value.args[1])
        if isinstance(value.args[0], ast.Name) and value.args[0].id in self.threads:
            return value.args[0].id, self._value(value.args[1])
        raise self._error(node, "T.launch_thread has a thread and its extent")

    def _threads(self, node: ast.AST, name: str, extent: object, rest: Sequence[ast.stmt]) -> None:
        """The rest of a body in a loop over threads."""
        if name not in self.threads:
            raise self._error(node, "a thread has a name by T.env_thread, or by `as`")
        known, stop = self.names.get(name), as_expr(extent)
        kind = {"vthread": "vthread_x"}.get(self.threads[name], self.threads[name].replace(".", "_"))
        var = known if isinstance(known, Var) and known not in self.extents else Var(name, INT32)
        if kind not in (*S.THREAD_LOOPS, *S.VIRTUAL_LOOPS):
            raise self._error(node, f"there is no thread {self.threads[name]}")
        self.names[name], self.extents[var] = var, (_ZERO, stop)
        self.out.append(S.For(var, kind, _ZERO, stop, _ONE, self._nested(rest)))

    def _around(self, call: ast.expr, rest: Sequence[ast.stmt]) -> None:
        """The rest of a body in an attribute, under an assertion, or with memory."""
        called, given = self._called(call), [self._value(a) for a in getattr(call, "args", ())]
        if called == "realize":
            self._realized(call, rest)
        elif called == "attr" and given[1] == "thread_extent":
            self._threads(call, self._thread(call, given[0]), given[2], rest)
        elif called == "attr":
            node, key, value = given
            whose = node.data if isinstance(node, Cells) else _or_text(getattr(node, "var", node))
            self.out.append(S.AttrStmt(whose, str(key), _or_text(value), self._nested(rest)))
        else:
            condition, message = given
            self.out.append(S.AssertStmt(as_expr(condition), _or_text(message)))
            self._body(rest)

    def _thread(self, call: ast.expr, thread: object) -> str:
        """The name of what `thread_extent` is about: `T.iter_var(x, ...)` with a tag, or the variable of a thread."""
        found = getattr(thread, "var", thread)
        name = next((k for k, v in self.names.items() if v is found), "")
        tag = getattr(thread, "thread_tag", "") or self.threads.get(name, "")
        if not name or not tag:
            raise self._error(call, "a thread is T.iter_var(x, range, kind, tag), or has T.env_thread(tag)")
        self.threads[name] = tag
        return name

    def _realized(self, call: ast.expr, rest: Sequence[ast.stmt]) -> None:
        """`T.realize(A[0:4], scope)`: memory for all of a buffer that is declared."""
        assert isinstance(call, ast.Call)
        region = self._region(call.args[0])
        assert isinstance(region, E.BufferRegion) and isinstance(call.args[0], ast.Subscript)
        buffer = self._value(call.args[0].value).buffer
        sizes = [[getattr(e, "value", e) for e in side] for side in (buffer.shape, region.extents)]
        if sizes[0] != sizes[1] or any(getattr(e, "value", e) != 0 for e in region.starts):
            raise self._error(call, f"memory is for all of '{buffer.data.name}', of {sizes[0]} elements from 0 on")
        self.out.append(S.Alloc(buffer))
        self._body(rest)

    def _assert(self, node: ast.Assert) -> None:
        message = "" if node.msg is None else self._value(node.msg)
        self.out.append(S.AssertStmt(as_expr(self._value(node.test)), _or_text(message)))

    def _while(self, node: ast.While) -> None:
        self.out.append(S.While(as_expr(self._value(node.test)), self._nested(node.body)))

    def _nested(self, nodes: Sequence[ast.stmt]) -> tuple[S.Stmt, ...]:
        outer, self.out = self.out, []
        self.depth += 1
        try:
            self._body(nodes)
            return tuple(self.out)
        finally:
            self.out = outer
            self.depth -= 1

    def _pass(self, node: ast.Pass) -> None:
        """Nothing."""

    def _expr(self, node: ast.Expr) -> None:
        called = self._called(node.value)
        if isinstance(node.value, ast.Constant):
            return
        if isinstance(found := self.names.get(called, self.outside.get(called)), Macro):
            assert isinstance(node.value, ast.Call)
            self._expanded(found, node.value)
            return
        if called not in _TOLD:
            self._evaluated(node, self._value(node.value))
            return
        assert isinstance(node.value, ast.Call)
        if called == "where":
            self._block(node).where = as_expr(self._value(node.value.args[0]))
        elif called in EXPLICIT:
            lists = [a.elts if isinstance(a, (ast.List, ast.Tuple)) else [a] for a in node.value.args]
            self._block(node).regions[called] = [region for listed in lists for region in listed]
        elif called == "block_attr":
            self._block(node).notes.update(self._value(node.value.args[0]))
        elif called == "evaluate":
            self._evaluated(node, self._value(node.value.args[0]))
        elif called == "func_attr":
            attrs = self._value(node.value.args[0])
            self.name = str(attrs.get("global_symbol", self.name))
            self.lowered = bool(attrs.get("from_legacy_te_schedule"))
            for cells in (c for c in self.names.values() if isinstance(c, Cells)):
                cells.shaped = self.lowered

    def _evaluated(self, node: ast.Expr, value: object) -> None:
        """A value as a statement; numbers and texts are none."""
        if isinstance(value, (int, str)):
            return
        if not isinstance(value, Expr):
            raise self._error(node, "an expression is no statement of a function of blocks")
        self.out.append(S.Evaluate(value))

    def _expanded(self, macro: Macro, call: ast.Call) -> None:
        """The statements of a macro, with its parameters the values that a call gives."""
        with self._at(call):
            if any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords):
                raise CompassError("arguments of a macro are written one by one")
            given = macro.signature.bind(
                *map(self._value, call.args), **{str(k.arg): self._value(k.value) for k in call.keywords}
            )
        given.apply_defaults()
        if macro in self.expanded:
            raise self._error(call, f"the macro '{macro.node.name}' expands itself")
        before = self.names, self.outside, self.dialects, self.file
        self.expanded.append(macro)
        self.names = {**({} if macro.hygienic else self.names), **given.arguments}
        self.file = macro.file
        if macro.hygienic:
            self._stand_in(macro.known)
        try:
            self._body(macro.node.body)
        finally:
            self.names, self.outside, self.dialects, self.file = before
            self.expanded.pop()

    def _assign(self, node: ast.Assign) -> None:
        target, called = node.targets[0], self._called(node.value)
        if (
            isinstance(target, ast.Tuple)
            and isinstance(node.value, ast.Tuple)
            and len(target.elts) == len(node.value.elts)
        ):
            for one, value in zip(target.elts, node.value.elts):
                self._assign(ast.copy_location(ast.Assign([one], value), node))
        elif isinstance(target, ast.Subscript):
            self._stored(target, self._value(node.value))
        elif called.startswith("axis."):
            self._axes(node, called.removeprefix("axis."))
        elif isinstance(target, ast.Name) and isinstance(node.value, ast.Call) and called == "match_buffer":
            if isinstance(node.value.args[0], ast.Subscript):
                self.names[target.id] = self._part(node.value)
                return
            param = self._value(node.value.args[0])
            if param not in self.handles:
                raise self._error(node, f"{param} is no parameter that is a T.handle")
            self.names[target.id] = self._buffer(str(param), target.id, node.value, 1)
        elif isinstance(target, ast.Name) and isinstance(node.value, ast.Call) and called in _DECLARED:
            self.names[target.id] = self._declared(called, target.id, node.value)
        elif isinstance(target, ast.Name) and isinstance(node.value, ast.Call) and called == "env_thread":
            self.threads[target.id] = str(self._value(node.value.args[0]))
            self.names[target.id] = te.var(target.id)
        elif isinstance(target, ast.Name):
            self._named(target.id, self._value(node.value))
        else:
            raise self._error(node, "a value is assigned to a name or an element")

    def _declared(self, called: str, name: str, call: ast.Call) -> object:
        """The buffer that a statement declares."""
        if called == "allocate_const":
            return self._table(name, call)
        if called == "allocate":
            return self._allocated(name, call, "shape dtype scope condition annotations")
        viewed = called == "Buffer" or (called == "decl_buffer" and any(k.arg == "data" for k in call.keywords))
        return self._alias(name, call) if viewed else self._allocated(name, call)

    def _annassign(self, node: ast.AnnAssign) -> None:
        if not isinstance(node.target, ast.Name) or node.value is None:
            raise self._error(node, "a value is assigned to a name or an element")
        value, kind = self._value(node.value), self._dotted(node.annotation)
        self._named(node.target.id, te.cast(as_expr(value), kind) if kind in TYPES else value, True)

    def _named(self, name: str, value: object, typed: bool = False) -> None:
        """A name for a value: a variable of the function where it is one that is computed, or has a type in the text."""
        if isinstance(value, Expr) and (typed or not isinstance(value, (Var, IntImm))):
            var = Var(name, value.dtype)
            self.out.append(S.Let(var, value))
            value = var
        elif isinstance(value, Open):
            value = te.var(name, value.kind)
        self.names[name] = value

    def _augassign(self, node: ast.AugAssign) -> None:
        if not isinstance(node.target, ast.Subscript):
            raise self._error(node, "names are given values once")
        old = ast.copy_location(ast.Subscript(node.target.value, node.target.slice, ast.Load()), node)
        both = ast.copy_location(ast.BinOp(old, node.op, node.value), node)
        self._stored(node.target, self._value(both))

    def _stored(self, target: ast.Subscript, value: object) -> None:
        cells, at = self._value(target.value), self._value(target.slice)
        if not isinstance(cells, Cells):
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
        turns, options = _LOOPS[called], {k.arg: self._value(k.value) for k in call.keywords}
        if called == "thread_binding":
            turns = str(options.get("thread", "")).replace(".", "_")
        notes = tuple((options.get("annotations") or {}).items())
        known = (*_LOOPS.values(), *S.THREAD_LOOPS, *S.VIRTUAL_LOOPS)
        if turns not in known or len(targets) != len(ranges) or not turns:
            raise self._error(node, "this loop has other names than ranges, or a thread that there is not")
        loops = []
        for target, (start, stop) in zip(targets, ranges):
            if not isinstance(target, ast.Name):
                raise self._error(target, "a loop has a name")
            kind = stop.dtype if start is _ZERO else as_expr(stop - start).dtype
            start, stop = te.cast(start, str(kind)), te.cast(stop, str(kind))
            var = Var(target.id, kind, self.lowered and len(given) == len(ranges))
            extent = stop if isinstance(start, IntImm) and not start.value else as_expr(stop - start)
            self.names[target.id], self.extents[var] = var, (start, extent)
            loops.append((var, start, stop))
        body = self._nested(node.body)
        for var, start, stop in reversed(loops):
            body = (S.For(var, turns, start, stop, IntImm(var.data_type, 1), body, notes),)
        self.out += body

    def _if(self, node: ast.If) -> None:
        test = self._value(node.test)
        if isinstance(test, bool):
            self._body(node.body if test else node.orelse)
            return
        self.out.append(S.IfThenElse(as_expr(test), self._nested(node.body), self._nested(node.orelse)))

    def _let(self, call: ast.Call, named: ast.expr | None) -> None:
        """`with T.LetStmt(value) as x`, `with T.LetStmt(value, var=x)` or `with T.let(x, value)`."""
        if isinstance(named, ast.Name):
            self._named(named.id, self._value(call.args[0]), True)
            return
        given = [self._value(a) for a in (*call.args, *(k.value for k in call.keywords))]
        var, value = given if self._called(call) == "let" else reversed(given)
        if not isinstance(var, Var):
            raise self._error(call, "a value is given to a variable of the function")
        self.out.append(S.Let(var, te.cast(as_expr(value), str(var.dtype))))

    def _with(self, node: ast.With) -> None:
        call = node.items[0].context_expr
        called = self._called(call)
        if called == "init":
            self._block(node).init += self._nested(node.body)
            return
        named = node.items[0].optional_vars
        if called in ("LetStmt", "let") and isinstance(call, ast.Call):
            self._let(call, named)
            self._body(node.body)
            return
        if called == "launch_thread" and isinstance(call, ast.Call):
            if isinstance(named, ast.Name):
                self.threads[named.id] = str(self._value(call.args[0]))
            name = named.id if isinstance(named, ast.Name) else getattr(call.args[0], "id", "")
            self._threads(node, name, self._value(call.args[1]), node.body)
            return
        if called in _AROUND:
            self._around(call, node.body)
            return
        if called != "block" or not isinstance(call, ast.Call):
            raise self._error(node, "`with` has a T.block or a T.init")
        name = str(self._value(call.args[0])) if call.args else ""
        inner = (x.items[0].context_expr for s in node.body for x in ast.walk(s) if isinstance(x, ast.With))
        if name == ROOT and not self.depth and any(self._called(x) == "block" for x in inner):  # what the function is
            self.blocks.append(_Block(name))
            self._body(node.body)
            self.blocks.pop()
            return
        block = _Block(self.block_names.take(name or "block"))
        self.blocks.append(block)
        body = self._nested(node.body)
        self.blocks.pop()
        made = new_block(block.name, block.axes, body, tuple(block.init), block.where)
        if set(EXPLICIT) <= {*block.regions} and any(takes_address(s) for s in walk_stmts((*made.init, *made.body))):
            for note in EXPLICIT.values():  # of what lies at an address it is known what the program says alone
                block.notes.setdefault(note, [ONLY])
        sides = {side: block.regions.get(side, ()) for side in EXPLICIT if EXPLICIT[side] in block.notes}
        given = {side: tuple(map(self._region, nodes)) for side, nodes in sides.items()}
        self.out.append(made.replace(annotations=tuple(block.notes.items()), **given) if block.notes else made)

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
            if isinstance(high, te.Range):
                low, high = high.min, high.min + high.extent
            domains = [(as_expr(low), as_expr(high - low))]
        if not len(names) == len(kinds) == len(bindings) or None in domains or not {*kinds} <= {*_KINDS}:
            raise self._error(node, "an axis for each kind (S, R) and each loop")
        for name, kind, binding, domain in zip(names, kinds, bindings, domains):
            assert domain is not None
            types = (*(e.dtype for e in domain), binding.dtype)
            var = Var(name, max(types, key=lambda t: t.bits))
            first, size, value = (te.cast(e, str(var.dtype)) for e in (*domain, binding))
            block.axes.append(Axis(var, _KINDS[kind], first, size, value))
            self.names[name], self.extents[var] = var, domain

    # -- expressions

    def _value(self, node: ast.expr) -> Any:
        with self._at(node):
            if isinstance(node, ast.Slice):
                ends = (node.lower, node.upper, node.step)
                return slice(*(None if e is None else self._value(e) for e in ends))
            if isinstance(node, ast.Tuple) and any(isinstance(e, ast.Slice) for e in node.elts):
                return tuple(map(self._value, node.elts))
            expression = Operators().visit(pyast.copied(node))
            code = compile(ast.fix_missing_locations(ast.Expression(expression)), self.file, "eval")
            return eval(code, {**self.outside, **self.names, **OPERATORS})

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
