"""Text to IR: reads what `compassc.ir.printer` writes.

The text is parsed by Python's own grammar; a mistake is a `CompassError` at its line of the file.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Callable, Iterable
from itertools import takewhile
from typing import Any

from compass_core.errors import CompassError, Span
from compass_core.reading import pyast
from compass_core.reading.limits import IR_DEPTH

from . import exprs as E
from . import stmts as S
from .dtypes import BOOL, FLOAT32, INT32, SCOPES, VOID, DataType, PointerType, dtype, pointer_type
from .forms import BY_NAME, Form
from .members import GraphMember
from .node import MANY, Field
from .printer import DIGEST, GRAPH, NAMED, SYMBOLS
from .visit import placed_exprs, with_places

GraphReader = Callable[[str, bytes, str], GraphMember]
"""Makes a graph of its text, its constants and the name of the file: `compassc.graph.read`."""
_NAMES = {symbol: name for name, symbol in SYMBOLS.items()}
_AST_OPS = {cls: _NAMES[symbol] for cls, symbol in pyast.SYMBOLS.items() if symbol in _NAMES}
assert set(_AST_OPS.values()) == set(SYMBOLS)
_NAMED_OPS = {text: op for op, text in NAMED.items()}
_PLACE = r"(?:(.*?):)??(\d+):(\d+)-(?:(\d+):)?(\d+)"
_PLACE_RE = re.compile(_PLACE)
_PLACES_RE = re.compile(rf"#@ {_PLACE}((?: ; .*)?)\s*$")


def parse_module(text: str, filename: str = "<IR>", read_graph: GraphReader | None = None) -> S.IRModule:
    """The module a text stands for; `read_graph` reads the graphs in it. CompassError naming the line that is not IR."""
    tree = parse_python(text, filename)
    reader = _ModuleReader(text.splitlines(), filename, read_graph)
    classes = [n for n in tree.body if isinstance(n, ast.ClassDef)]
    if len(classes) != 1 or len(tree.body) != 1:
        raise CompassError("expected one class with @I.module", Span(filename, 1), code="ir-text")
    try:
        return reader.module(classes[0])
    except CompassError:
        raise
    except Exception as error:  # noqa: BLE001 - the text may call any node with anything
        raise reader.error(reader.at, f"this is no IR ({type(error).__name__}: {error})"[:300]) from None


def parse_python(text: str, filename: str) -> ast.Module:
    """The syntax tree of a file in Python's grammar that nobody runs. CompassError when it is none, or nests too deeply."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)  # such text is refused with a place, or right
            tree: ast.Module = pyast.parse(text)
    except SyntaxError as e:
        raise CompassError(
            f"not IR text: {e.msg}", Span(filename, e.lineno or 1, e.offset or 0), code="ir-text"
        ) from None
    except (RecursionError, MemoryError):  # Python's own limits of nesting
        raise IR_DEPTH.error(filename, found="it nests deeper") from None
    except ValueError as e:
        raise CompassError(f"not IR text: {e}", Span(filename, 1), code="ir-text") from None
    return tree


def digests_of(lines: Iterable[str]) -> frozenset[str]:
    """The digests of sources in the head of a text (`print_module`)."""
    head = takewhile(lambda line: line.startswith("#"), lines)
    return frozenset(line.removeprefix(DIGEST).strip() for line in head if line.startswith(DIGEST))


def _is_graph(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and pyast.dotted(node.func) == GRAPH


class _ModuleReader:
    def __init__(self, lines: list[str], filename: str, read_graph: GraphReader | None) -> None:
        self.lines, self.filename, self.read_graph = lines, filename, read_graph
        self.returns: dict[str, Any] = {}
        self.built = digests_of(lines)
        self.at: ast.AST = ast.Pass(lineno=1, col_offset=0)
        """The statement that is being read, and how many levels deep the part of it is."""
        self.depth = 0

    def error(self, node: ast.AST, message: str) -> CompassError:
        line, col = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
        return CompassError(message, Span(self.filename, line, col + 1), code="ir-text")

    def module(self, node: ast.ClassDef) -> S.IRModule:
        attrs = self.keywords(node.decorator_list[0]) if node.decorator_list else {}
        if not {"target", "entry"} <= set(attrs):
            raise self.error(node, "the module needs @I.module(target=..., entry=...)")
        defs = [d for d in node.body if isinstance(d, ast.FunctionDef)]
        for d in defs:
            self.returns[d.name] = self.type(d.returns) if d.returns else VOID
        functions = tuple(_FunctionReader(self, d).function() for d in defs)
        graphs = tuple(self.graph(d.value) for d in node.body if isinstance(d, ast.Expr) and _is_graph(d.value))
        if attrs["entry"] not in self.returns:
            raise self.error(node, f"the entry {attrs['entry']!r} is not a function of the module")
        return S.IRModule(functions, attrs["entry"], attrs["target"], graphs)

    def graph(self, node: ast.expr) -> GraphMember:
        """`I.graph("Compass IR", "constants in base64")`; errors in it name their lines of the file."""
        from base64 import b64decode

        if self.read_graph is None:
            raise self.error(node, "graphs are read where parse_module is given read_graph=compassc.graph.read")
        parts = [self.literal(a) for a in node.args] if isinstance(node, ast.Call) else []
        if len(parts) != 2 or not all(isinstance(part, str) for part in parts):
            raise self.error(node, f'expected {GRAPH}("text", "constants")')
        at = node.args[0].lineno if isinstance(node, ast.Call) else node.lineno
        try:
            constants = b64decode(parts[1], validate=True)
        except ValueError:
            raise self.error(node, "the constants of the graph are not in base64") from None
        return self.read_graph("\n" * (at - 1) + parts[0], constants, self.filename)

    def keywords(self, node: ast.expr) -> dict[str, Any]:
        if not isinstance(node, ast.Call):
            return {}
        return {k.arg or "": self.literal(k.value) for k in node.keywords}

    def literal(self, node: ast.expr) -> Any:
        try:
            return ast.literal_eval(node)
        except (ValueError, TypeError):
            raise self.error(node, "expected a literal") from None

    def dtype(self, node: ast.expr) -> DataType:
        return self.dtype_named(str(self.literal(node)), node)

    def dtype_named(self, name: str, node: ast.AST) -> DataType:
        try:
            return dtype(name)
        except ValueError as e:
            raise self.error(node, str(e)) from None

    def type(self, node: ast.expr) -> Any:
        """`T.int32`, `T.ptr("int8", "lsram")`, or a string naming a dtype."""
        if isinstance(node, ast.Attribute):
            return self.dtype_named(node.attr, node)
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "ptr" and len(node.args) == 2:
            scope = self.literal(node.args[1])
            if scope not in SCOPES:
                raise self.error(node, f"unknown scope {scope!r}")
            return pointer_type(self.dtype(node.args[0]), scope)
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "size":
            return self.dtype(node.args[0])
        return self.dtype(node)

    def places(self, line: int, file: str) -> list[Span]:
        """The place of the statement at a line of the text, and those of the calls and accesses in it where they are
        given."""
        match = _PLACES_RE.search(self.lines[line - 1])
        if match is None:
            return []
        own = self._place(match, file)
        others = match[6].split(" ; ")[1:]
        found = [(text, _PLACE_RE.fullmatch(text)) for text in others]
        return [own, *[own if text == "." or m is None else self._place(m, file) for text, m in found]]

    def _place(self, match: re.Match[str], file: str) -> Span:
        path, start, col, end, end_col = match.groups()[:5]
        return Span(path or file, int(start), int(col), int(end or start), int(end_col), self.built)


class _FunctionReader:
    def __init__(self, module: _ModuleReader, node: ast.FunctionDef) -> None:
        self.m, self.node = module, node
        self.names: dict[str, E.Var | E.Buffer] = {}
        self.error = module.error
        self.file = ""
        self.place: Span | None = None
        """That of the statement which is read."""

    def function(self) -> S.PrimFunc:
        node, m = self.node, self.m
        span = next(iter(m.places(node.lineno, "")), None)
        self.file = span.file if span else ""
        params = []
        for a in node.args.args:
            if a.annotation is None:
                raise self.error(a, f"parameter {a.arg!r} has no type")
            params.append(self.define(a.arg, m.type(a.annotation), _is_size(a.annotation)))
        m.at = node
        body = self.body(node.body)
        attrs = tuple(m.keywords(node.decorator_list[0]).items()) if node.decorator_list else ()
        return S.PrimFunc(node.name, tuple(params), body, m.returns[node.name], attrs, span)

    def define(self, name: str, kind: Any, nonneg: bool = False) -> E.Var:
        var = E.Var(name, kind, nonneg)
        self.names[name] = var
        return var

    # -- statements

    def body(self, nodes: list[ast.stmt]) -> S.Body:
        return tuple([s for s in [self.stmt(node) for node in nodes] if s is not None])

    def stmt(self, node: ast.stmt) -> S.Stmt | None:
        method = getattr(self, "stmt_" + type(node).__name__, None)
        if method is None:
            raise self.error(node, f"{type(node).__name__} is not an IR statement")
        self.m.at = node
        self.enter(node)
        places = self.m.places(node.lineno, self.file)
        outer, self.place = self.place, places[0] if places else None
        made: S.Stmt | None = method(node, self.place)
        self.place = outer
        self.m.depth -= 1
        if made is not None and len(places) > 1 and sum(1 for _ in placed_exprs(made)) == len(places) - 1:
            return with_places(made, places[1:])
        return made

    def enter(self, node: ast.AST) -> None:
        """One level more, as long as there may be more."""
        self.m.depth += 1
        if self.m.depth > IR_DEPTH.most:
            line, col = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
            raise IR_DEPTH.error(self.m.filename, Span(self.m.filename, line, col + 1), "it nests deeper")

    def stmt_Pass(self, node: ast.Pass, span: Span | None) -> None:
        return None

    def stmt_Break(self, node: ast.Break, span: Span | None) -> S.Stmt:
        return S.Break(span=span)

    def stmt_Continue(self, node: ast.Continue, span: Span | None) -> S.Stmt:
        return S.Continue(span=span)

    def stmt_Return(self, node: ast.Return, span: Span | None) -> S.Stmt:
        return S.Return(self.expr(node.value) if node.value else None, span=span)

    def stmt_AnnAssign(self, node: ast.AnnAssign, span: Span | None) -> S.Stmt:
        if not isinstance(node.target, ast.Name) or node.value is None:
            raise self.error(node, "expected `name: type = value`")
        value = self.expr(node.value)
        var = self.define(node.target.id, self.m.type(node.annotation), _is_size(node.annotation))
        return S.Let(var, value, span=span)

    def stmt_Assign(self, node: ast.Assign, span: Span | None) -> S.Stmt:
        target = node.targets[0]
        if isinstance(target, ast.Subscript):
            return S.BufferStore(
                self.buffer(target.value), self.indices(target.slice), self.expr(node.value), None, span=span
            )
        if not isinstance(target, ast.Name):
            raise self.error(node, "cannot assign to this")
        call = _t_call(node.value)
        if call in ("alloc", "alloc_const", "match_buffer"):
            return self.declare(target.id, call, node.value, span)
        return S.Assign(self.var(target), self.expr(node.value), span=span)

    def separators(self, node: ast.Call, rank: int) -> tuple[int, ...]:
        """The boundaries between the physical dimensions of a buffer that is declared."""
        given: object = next((self.m.literal(k.value) for k in node.keywords if k.arg == "axis_separators"), [])
        if not isinstance(given, list) or any(n not in range(1, rank) for n in given) or given != sorted(set(given)):
            raise self.error(node, f"axis_separators are ascending places between {rank} dimensions")
        return tuple(given)

    def declare(self, name: str, kind: str, node: Any, span: Span | None) -> S.Stmt:
        args = node.args
        separators = self.separators(node, len(self.items(args[kind == "match_buffer"])))
        if kind == "match_buffer":
            buffer = E.Buffer(self.var(args[0]), self.m.dtype(args[2]), self.items(args[1]), separators)
            self.names[name] = buffer
            return S.DeclBuffer(buffer, span=span)
        elem = self.m.dtype(args[1])
        scope = "constant" if kind == "alloc_const" else self.m.literal(args[2])
        data = E.Var(name, pointer_type(elem, scope))
        buffer = E.Buffer(data, elem, self.items(args[0]), separators)
        self.names[name] = buffer
        if kind == "alloc":
            return S.Alloc(buffer, span=span)
        return S.AllocConst(buffer, bytes.fromhex(self.m.literal(args[2])), span=span)

    def stmt_Expr(self, node: ast.Expr, span: Span | None) -> S.Stmt:
        call = _t_call(node.value)
        form = BY_NAME.get(call)
        if form is not None and issubclass(form.node, S.Stmt) and isinstance(node.value, ast.Call):
            return form.node(*self.parts(form, node.value), span=span)
        if call == "store" and isinstance(node.value, ast.Call):
            args, kw = node.value.args, {k.arg: k.value for k in node.value.keywords}
            indices = tuple(map(self.expr, args[1:]))
            return S.BufferStore(
                self.buffer(args[0]), indices, self.expr(kw["value"]), self.expr(kw["mask"]), span=span
            )
        return S.Evaluate(self.expr(node.value), span=span)

    def stmt_If(self, node: ast.If, span: Span | None) -> S.Stmt:
        return S.IfThenElse(self.expr(node.test), self.body(node.body), self.body(node.orelse), span=span)

    def stmt_While(self, node: ast.While, span: Span | None) -> S.Stmt:
        return S.While(self.expr(node.test), self.body(node.body), span=span)

    def stmt_For(self, node: ast.For, span: Span | None) -> S.Stmt:
        kind = _t_call(node.iter)
        if kind not in S.LOOP_KINDS or not isinstance(node.target, ast.Name):
            raise self.error(node, "expected `for name in T.serial(start, stop, step)`")
        call: Any = node.iter
        start, stop, step = map(self.expr, call.args)
        kw = {k.arg: self.m.literal(k.value) for k in call.keywords}
        var = self.define(node.target.id, dtype(kw.get("dtype", "int32")), kw.get("nonneg", False))
        notes = tuple(kw.get("annotations", {}).items())
        return S.For(var, kind, start, stop, step, self.body(node.body), notes, span=span)

    def stmt_With(self, node: ast.With, span: Span | None) -> S.Stmt:
        call: Any = node.items[0].context_expr
        if _t_call(call) == "attr":
            whose, key, value = call.args
            node_of, said = self.expr(whose), self.expr(value)
            return S.AttrStmt(node_of, self.m.literal(key), said, self.body(node.body), span=span)
        if _t_call(call) != "block" or len(node.items) != 1:
            raise self.error(node, 'expected `with T.block("name"):`')
        axes: list[tuple[E.Var, str, E.Expr, E.Expr, E.Expr]] = []
        parts: dict[str, Any] = {"where": E.IntImm(BOOL, 1), "reads": (), "writes": (), "init": ()}
        rest = list(node.body)
        while rest and (axis := _axis(rest[0])):
            axes.append(self.axis(axis, rest.pop(0)))
        for var, *_ in axes:
            self.names[var.name] = var
        while rest and (head := _block_part(rest[0])):
            self.block_part(head, rest.pop(0), parts)
        body = self.body(rest)
        columns: Any = [tuple(column) for column in zip(*axes)] if axes else [()] * 5
        names, kinds, starts, extents, values = columns
        where, reads, writes, init = (parts[name] for name in ("where", "reads", "writes", "init"))
        name, notes = self.m.literal(call.args[0]), parts.get("annotations", ())
        return S.Block(name, names, kinds, starts, extents, values, where, reads, writes, init, body, notes, span=span)

    def axis(self, kind: str, node: Any) -> tuple[E.Var, str, E.Expr, E.Expr, E.Expr]:
        """`v = T.axis.spatial(dom, binding)`; the names of axes are known below all of them only."""
        dom, binding = node.value.args
        start, extent = self.items(dom) if isinstance(dom, ast.Tuple) else (E.IntImm(INT32, 0), self.expr(dom))
        value = self.expr(binding)
        return E.Var(node.targets[0].id, value.dtype), kind, start, extent, value

    def block_part(self, kind: str, node: Any, parts: dict[str, Any]) -> None:
        """A line of a block's head: what it reads and writes, where it does something, how it begins."""
        if kind == "init":
            parts["init"] = self.body(node.body)
            return
        args = node.value.args
        if kind == "where":
            parts["where"] = self.expr(args[0])
        elif kind == "block_attr":
            parts["annotations"] = tuple(self.m.literal(args[0]).items())
        else:
            parts[kind] = tuple([self.region(arg) for arg in args])

    def region(self, node: ast.expr) -> E.BufferRegion:
        """`A[i, 0:4]`."""
        if not isinstance(node, ast.Subscript):
            raise self.error(node, "expected a region, `A[i, 0:4]`")
        items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        ranges = [self.range(item) for item in items]
        return E.BufferRegion(self.buffer(node.value), *(tuple([r[side] for r in ranges]) for side in (0, 1)))

    def range(self, node: ast.expr) -> tuple[E.Expr, E.Expr]:
        if not isinstance(node, ast.Slice):
            return self.expr(node), E.IntImm(INT32, 1)
        if node.lower is None or node.upper is None:
            raise self.error(node, "expected `start:stop`")
        start, stop = self.expr(node.lower), self.expr(node.upper)
        if isinstance(start, E.IntImm) and isinstance(stop, E.IntImm):
            return start, E.IntImm(INT32, stop.value - start.value)
        if isinstance(stop, E.Binary) and stop.op == "add":
            return start, stop.b
        return start, E.Binary("sub", stop, start)

    # -- expressions

    def expr(self, node: ast.expr) -> E.Expr:
        method = getattr(self, "expr_" + type(node).__name__, None)
        if method is None:
            raise self.error(node, f"{type(node).__name__} is not an IR expression")
        self.enter(node)
        made: E.Expr = method(node)
        self.m.depth -= 1
        return made

    def exprs(self, nodes: list[ast.expr]) -> tuple[E.Expr, ...]:
        return tuple([self.expr(n) for n in nodes])

    def items(self, node: ast.expr) -> tuple[E.Expr, ...]:
        return self.exprs(node.elts) if isinstance(node, ast.Tuple) else (self.expr(node),)

    indices = items

    def var(self, node: ast.expr) -> E.Var:
        found = self.names.get(getattr(node, "id", ""))
        if isinstance(found, E.Buffer):
            return found.data
        if found is None:
            raise self.error(node, f"undefined name {ast.unparse(node)!r}")
        return found

    def buffer(self, node: ast.expr) -> E.Buffer:
        if isinstance(node, ast.Call) and _t_call(node) == "view":
            return E.Buffer(self.var(node.args[0]), self.m.dtype(node.args[1]))
        found = self.names.get(getattr(node, "id", ""))
        if isinstance(found, E.Buffer):
            return found if len(found.shape) > 1 else E.Buffer(found.data, found.dtype)
        var = self.var(node)
        if not isinstance(var.dtype, PointerType):
            raise self.error(node, f"{var.name!r} is not a pointer or buffer")
        return E.Buffer(var, var.dtype.elem)

    def expr_Name(self, node: ast.Name) -> E.Expr:
        return self.var(node)

    def expr_Constant(self, node: ast.Constant) -> E.Expr:
        if isinstance(node.value, bool):
            return E.IntImm(BOOL, int(node.value))
        if isinstance(node.value, int):
            return E.IntImm(INT32, node.value)
        if isinstance(node.value, float):
            return E.FloatImm(FLOAT32, node.value)
        return E.StringImm(str(node.value))

    def expr_UnaryOp(self, node: ast.UnaryOp) -> E.Expr:
        if isinstance(node.op, ast.USub):
            return E.IntImm(INT32, -self.m.literal(node.operand))
        return E.Unary("not" if isinstance(node.op, ast.Not) else "bitnot", self.expr(node.operand))

    def expr_BinOp(self, node: ast.BinOp) -> E.Expr:
        return E.Binary(_AST_OPS[type(node.op)], self.expr(node.left), self.expr(node.right))

    def expr_Compare(self, node: ast.Compare) -> E.Expr:
        return E.Binary(_AST_OPS[type(node.ops[0])], self.expr(node.left), self.expr(node.comparators[0]))

    def expr_BoolOp(self, node: ast.BoolOp) -> E.Expr:
        return E.Binary(_AST_OPS[type(node.op)], *self.exprs(node.values))

    def expr_Subscript(self, node: ast.Subscript) -> E.Expr:
        return E.BufferLoad(self.buffer(node.value), self.indices(node.slice), span=self.place)

    def expr_Call(self, node: ast.Call) -> E.Expr:
        func = node.func
        if not isinstance(func, ast.Attribute) or not isinstance(func.value, ast.Name):
            raise self.error(node, "expected T.*, S.* or Module.*")
        if func.value.id == "S":
            return self.op_call(func.attr, node)
        if func.value.id == "Module":
            if func.attr not in self.m.returns:
                raise self.error(node, f"the module has no function {func.attr!r}")
            return E.FuncCall(func.attr, self.exprs(node.args), self.m.returns[func.attr], span=self.place)
        form = BY_NAME.get(func.attr)
        if form is not None and issubclass(form.node, E.Expr):
            return form.node(*self.parts(form, node))
        build: Callable[[ast.Call], E.Expr] | None = getattr(self, "make_" + func.attr, None)
        if build is not None:
            return build(node)
        if func.attr in _NAMED_OPS:
            return E.Binary(_NAMED_OPS[func.attr], *self.exprs(node.args))
        return self.immediate(self.m.dtype_named(func.attr, node), node)

    def parts(self, form: Form, node: ast.Call) -> list[Any]:
        """The constructor arguments from a call of a declared form."""
        single = form.parts[:-1] if form.parts[-1].kind is MANY else form.parts
        if len(node.args) < len(single) or (len(node.args) > len(single) and single is form.parts):
            raise self.error(node, f"T.{form.name} takes {', '.join(part.name for part in form.parts)}")
        found = {part.name: self.part(part, arg) for part, arg in zip(single, node.args)}
        if single is not form.parts:
            found[form.parts[-1].name] = self.exprs(node.args[len(single) :])
        return [found[name] for name in form.node.fields]

    def part(self, part: Field, node: ast.expr) -> Any:
        match part.annotation:
            case "Expr":
                return self.expr(node)
            case "Var":
                return self.var(node)
            case "DataType":
                return self.m.dtype(node)
            case "Type":
                return self.m.type(node)
        return self.m.literal(node)

    def immediate(self, kind: DataType, node: ast.Call) -> E.Expr:
        value = self.m.literal(node.args[0])
        return E.FloatImm(kind, float(value)) if kind.is_floating else E.IntImm(kind, int(value))

    def op_call(self, name: str, node: ast.Call) -> E.Expr:
        fields: dict[str, Any] = {"dtype": VOID, "mask": None, "r": None}
        attrs = []
        for k in node.keywords:
            if k.arg == "dtype":
                fields["dtype"] = self.m.type(k.value)
            elif k.arg in ("mask", "r"):
                fields[k.arg] = self.expr(k.value)
            else:
                attrs.append((k.arg or "", self.m.literal(k.value)))
        return E.Call(name, self.exprs(node.args), attrs=tuple(attrs), span=self.place, **fields)

    def make_isnull(self, node: ast.Call) -> E.Expr:
        return E.Unary("isnull", self.expr(node.args[0]))

    def make_mask(self, node: ast.Call) -> E.Expr:
        runs = re.findall(r"(\d+)([TF])", str(self.m.literal(node.args[0])))
        flat = "".join(letter * int(count) for count, letter in runs)
        return E.ConstMask(sum(1 << i for i, c in enumerate(flat) if c == "T"), len(flat))

    def make_addr(self, node: ast.Call) -> E.Expr:
        base = self.expr(node.args[0])
        if not isinstance(base.dtype, PointerType):
            raise self.error(node, "T.addr needs a pointer")
        elem = self.m.dtype(node.args[2]) if len(node.args) > 2 else base.dtype.elem
        return E.Pointer(elem, base, self.expr(node.args[1]))

    def make_load(self, node: ast.Call) -> E.Expr:
        keywords = {k.arg: k.value for k in node.keywords}
        return E.BufferLoad(
            self.buffer(node.args[0]), self.exprs(node.args[1:]), self.expr(keywords["mask"]), span=self.place
        )


def _t_call(node: ast.AST) -> str:
    """`name` of a `T.name(...)` call, else an empty string."""
    func = getattr(node, "func", None)
    if isinstance(node, ast.Call) and isinstance(func, ast.Attribute) and getattr(func.value, "id", "") == "T":
        return func.attr
    return ""


def _axis(node: ast.stmt) -> str:
    """`spatial` of `v = T.axis.spatial(...)`."""
    value: object = getattr(node, "value", None)
    func = getattr(value, "func", None)
    axis = isinstance(node, ast.Assign) and isinstance(func, ast.Attribute) and pyast.dotted(func.value) == "T.axis"
    return str(func.attr) if axis and func is not None and func.attr in S.AXIS_KINDS else ""


def _block_part(node: ast.stmt) -> str:
    """`reads` of `T.reads(...)`, `init` of `with T.init():`; an empty text for what is no part of a block's head."""
    if isinstance(node, ast.With):
        return "init" if _t_call(node.items[0].context_expr) == "init" else ""
    called = _t_call(node.value) if isinstance(node, ast.Expr) else ""
    return called if called in ("where", "reads", "writes", "block_attr") else ""


def _is_size(node: ast.AST) -> bool:
    return _t_call(node) == "size"
