"""Hybrid scripts with tensors: the source of a function becomes the statements of an operation."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from compass_core.errors import CompassError, Span
from compassc.ir import exprs as E
from compassc.ir import stmts as S
from compassc.ir.dtypes import BOOL, INT32, DataType, pointer_type
from compassc.ir.expr_op import ExprOp
from compassc.ir.exprs import Buffer, BufferLoad, Expr, IntImm, Var
from compassc.ir.iter_vars import IterKind, IterVar, Range
from compassc.ir.operators import as_expr, binary, cast, data_type, divide, kind_of
from compassc.ir.stmts import Stmt
from compassc.ir.visit import walk_exprs
from compassc.te import inverse, math
from compassc.te.buffers import View, declared
from compassc.te.construct import shape_of
from compassc.te.hybrid.op import HybridOp
from compassc.te.hybrid.runtime import DTYPES, LOOPS, Value
from compassc.te.reduce import all as all_of
from compassc.te.reduce import any as any_of
from compassc.te.tensor import Tensor


class HybridError(CompassError, ValueError):
    """A hybrid script says something that has no statements."""

    def __init__(self, message: str, span: Span | None = None, help: str = "") -> None:
        super().__init__(message, span, code="te-expression", help=help)


def parse(function: Callable[..., Value], args: Sequence[Value]) -> Tensor | list[Tensor]:
    """The tensors that a script returns for these arguments: outputs of one operation. HybridError, with the line of the
    script, for what cannot be parsed."""
    maker = _Script()
    given = [maker.argument(a) for a in args]
    returned = maker.call(function, given, None)
    outputs = list(returned) if isinstance(returned, tuple) else [returned]
    made = [o for o in outputs if isinstance(o, View) and o.buffer in maker.outputs]
    if not outputs or len(made) != len(outputs):
        raise HybridError(f"'{function.__name__}' returns something else than what output_tensor gave it")
    if {id(o.buffer) for o in made} != {id(b) for b in maker.outputs}:
        raise HybridError(f"'{function.__name__}' does not return all that output_tensor gave it")
    buffers = [maker.inputs[t].buffer for t in maker.inputs]
    name = made[0].name if len(made) == 1 else function.__name__
    op = HybridOp(name, list(maker.inputs), buffers, [o.buffer for o in made], tuple(maker.body), maker.axis)
    return op.outputs if isinstance(returned, tuple) else op.output(0)


class _Script:
    """What is collected over a script and those that it calls."""

    def __init__(self) -> None:
        self.inputs: dict[Tensor, View] = {}
        self.outputs: list[Buffer] = []
        self.axis: list[IterVar] = []
        self.body: list[Stmt] = []
        self.level: list[Stmt] = self.body
        """Where the next statement goes."""
        self.depth = 0
        """How many scripts are being called."""

    def argument(self, given: Value) -> Value:
        """What a parameter stands for."""
        if isinstance(given, Tensor):
            name = given.name.replace(".", "_")
            return self.inputs.setdefault(given, View(declared(name, given.shape, given.dtype)))
        if isinstance(given, (list, tuple)):
            return tuple(map(self.argument, given))
        return _number(given) if isinstance(given, ExprOp) else given

    def call(self, function: Callable[..., Value], args: Sequence[Value], at: Span | None) -> Value:
        """What a script returns; its statements are collected."""
        source = inspect.unwrap(function)
        try:
            lines, first = inspect.getsourcelines(source)
        except OSError:
            raise HybridError(f"the source of '{function.__name__}' is not there to be parsed", at) from None
        tree = ast.parse(textwrap.dedent("".join(lines))).body[0]
        if not isinstance(tree, ast.FunctionDef):
            raise HybridError(f"'{function.__name__}' is no function written with def", at)
        names = [a.arg for a in tree.args.args]
        if len(names) != len(args):
            raise HybridError(f"'{function.__name__}' takes {len(names)} arguments, got {len(args)}", at)
        captured = inspect.getclosurevars(source)
        outer = {**captured.builtins, **captured.globals, **captured.nonlocals}
        file = inspect.getsourcefile(source) or "<script>"
        indent = len(lines[0]) - len(lines[0].lstrip())
        body = _Body(self, dict(zip(names, args)), outer, (file, first - 1, indent))
        body.assigned = _assignments(tree)
        self.depth += 1
        body.remember_parameters(tree)
        body.block(tree.body)
        self.depth -= 1
        return body.returned


def _number(given: ExprOp) -> Value:
    """A Python number for a constant; other expressions as they are."""
    e = as_expr(given)
    return e.value if isinstance(e, IntImm) and e.dtype is INT32 else e


def _is_expr(*values: Value) -> bool:
    return any(isinstance(v, ExprOp) for v in values)


_BINARY: Mapping[type[ast.operator], Callable[[Value, Value], Value]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: divide(a, b) if _is_expr(a, b) else a / b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Mod: lambda a, b: a % b,
    ast.BitAnd: lambda a, b: a & b,
    ast.BitOr: lambda a, b: a | b,
    ast.BitXor: lambda a, b: a ^ b,
    ast.LShift: lambda a, b: a << b,
    ast.RShift: lambda a, b: a >> b,
}
_COMPARED: Mapping[type[ast.cmpop], tuple[str, Callable[[Value, Value], Value]]] = {
    ast.Lt: ("lt", lambda a, b: a < b),
    ast.LtE: ("le", lambda a, b: a <= b),
    ast.Gt: ("gt", lambda a, b: a > b),
    ast.GtE: ("ge", lambda a, b: a >= b),
    ast.Eq: ("eq", lambda a, b: a == b),
    ast.NotEq: ("ne", lambda a, b: a != b),
}
_MATH: Mapping[str, Callable[..., Value]] = {
    **{n: getattr(math, n) for n in "sqrt rsqrt log exp tanh sigmoid power round abs floor ceil".split()},
    **{n: getattr(math, n) for n in ("truncdiv", "truncmod")},
    "popcount": inverse.popcount,
}


class _Body:
    """The statements of one script. `names`: what its parameters and variables stand for; `outer`: what it captures."""

    def __init__(
        self, script: _Script, names: dict[str, Value], outer: Mapping[str, Value], place: tuple[str, int, int]
    ) -> None:
        self.script, self.names, self.outer, self.place = script, names, outer, place
        self.returned: Value = None
        self.assigned: Mapping[str, int] = {}
        """How many statements of the script assign to a name."""
        self.outside: frozenset[str] = frozenset()
        """The names that the block around the loop or condition knows which is being parsed."""

    def remember_parameters(self, script: ast.FunctionDef) -> None:
        """Gives the parameters memory that are numbers and are assigned to."""
        for parameter in script.args.args:
            given = self.names[parameter.arg]
            if parameter.arg in self.assigned and isinstance(given, (bool, int, float, ExprOp)):
                self.variable(parameter, given)

    def error(self, node: ast.AST, message: str, help: str = "") -> HybridError:
        return HybridError(message, self.span(node), help)

    def span(self, node: ast.AST) -> Span:
        file, before, indent = self.place
        line, col = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
        return Span(file, line + before, col + indent + 1)

    # -- statements

    def block(self, statements: Sequence[ast.stmt]) -> None:
        for i, node in enumerate(statements):
            if isinstance(node, ast.Return):
                if i != len(statements) - 1:
                    raise self.error(node, "a script returns at its end")
                self.returned = None if node.value is None else self.value(node.value)
                return
            self.statement(node)

    def statement(self, node: ast.stmt) -> None:
        method = getattr(self, f"on_{type(node).__name__}", None)
        if method is None:
            raise self.error(node, f"a script has no {type(node).__name__.lower()} statements")
        try:
            method(node)
        except CompassError as error:
            if isinstance(error, HybridError):
                raise
            raise self.error(node, error.message, error.help or "") from None

    def on_Pass(self, node: ast.Pass) -> None:
        pass

    def on_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):
            self.value(node.value)

    def inner(self, statements: Sequence[ast.stmt]) -> tuple[Stmt, ...]:
        """The statements of a block of its own, whose new names end with it."""
        before, outside = self.script.level, self.outside
        self.script.level, self.outside = [], frozenset(self.names)
        for node in statements:
            if isinstance(node, ast.Return):
                raise self.error(node, "a script returns at its end, outside of loops and conditions")
            self.statement(node)
        made, self.script.level = tuple(self.script.level), before
        self.names = {name: value for name, value in self.names.items() if name in self.outside}
        self.outside = outside
        return made

    def on_For(self, node: ast.For) -> None:
        if not isinstance(node.target, ast.Name) or not isinstance(node.iter, ast.Call) or node.orelse:
            raise self.error(node, "a loop is `for NAME in range(...)`, or another maker of loops")
        maker = node.iter.func.id if isinstance(node.iter.func, ast.Name) else ""
        args = [self.value(a) for a in node.iter.args]
        if maker == "const_range":
            self.written_out(node, args)
            return
        kind = LOOPS.get(maker, "")
        if maker == "bind" and len(args) == 2 and isinstance(args[0], str):
            kind, args = args[0].replace(".", "_"), args[1:]
        if not kind or kind not in S.LOOP_KINDS or not 1 <= len(args) <= 2:
            known = ", ".join([*LOOPS, "const_range", "bind"])
            raise self.error(node.iter, "this makes no loop", f"loops are made by {known}")
        begin, end = (0, args[0]) if len(args) == 1 else args
        if any(isinstance(a, (float, View, tuple, str)) for a in (begin, end)):
            raise self.error(node.iter, "the ends of a loop are whole numbers")
        start, stop = as_expr(self.held(begin)), as_expr(self.held(end))
        axis = IterVar(Range(start, stop), node.target.id, IterKind.DATA_PARALLEL)
        if not self.script.depth > 1:
            self.script.axis.append(axis)
        self.names[node.target.id] = axis.as_expr()
        body = self.inner(node.body)
        self.names.pop(node.target.id, None)
        one = IntImm(kind_of(axis.as_expr()), 1)
        self.script.level.append(S.For(axis.as_expr(), kind, start, stop, one, body))

    def written_out(self, node: ast.For, args: list[Value]) -> None:
        assert isinstance(node.target, ast.Name)
        if not args or not all(isinstance(a, int) for a in args):
            raise self.error(node.iter, "const_range takes numbers that are known while the script is parsed")
        for turn in range(*args):
            self.names[node.target.id] = turn
            for inner in node.body:
                self.statement(inner)

    def on_If(self, node: ast.If) -> None:
        condition = self.value(node.test)
        if not isinstance(condition, ExprOp):
            for inner in node.body if condition else node.orelse:
                self.statement(inner)
            return
        test = self.truth(node.test, condition)
        then, other = self.inner(node.body), self.inner(node.orelse)
        self.script.level.append(S.IfThenElse(test, then, other))

    def truth(self, node: ast.AST, value: Value) -> Expr:
        e = as_expr(value)
        if e.dtype is not BOOL:
            raise self.error(node, f"a condition is a bool, got {e.dtype}", "compare it with 0")
        return e

    def on_Assert(self, node: ast.Assert) -> None:
        condition = self.value(node.test)
        said = self.value(node.msg) if node.msg is not None else "assertion failed"
        if not isinstance(condition, ExprOp):
            if not condition:
                raise self.error(node, str(said))
            return
        holds = self.truth(node.test, condition)
        self.script.level.append(S.AssertStmt(holds, E.StringImm(str(said)), span=self.span(node)))

    def on_Assign(self, node: ast.Assign) -> None:
        if len(node.targets) != 1:
            raise self.error(node, "a statement assigns to one name")
        target = node.targets[0]
        value = self.value(node.value, target.id if isinstance(target, ast.Name) else "")
        if isinstance(target, ast.Tuple):
            if not isinstance(value, tuple) or len(value) != len(target.elts):
                raise self.error(node, f"{len(target.elts)} names get something else than so many values")
            for one, part in zip(target.elts, self.held(value)):
                self.assign(one, part)
        else:
            self.assign(target, self.held(value) if isinstance(value, tuple) else value)

    def held(self, value: Value) -> Value:
        """A value that stays what it is here: what is read from memory is kept in memory of its own."""
        if isinstance(value, tuple):
            return tuple(map(self.held, value))
        if not isinstance(value, ExprOp) or not any(isinstance(x, BufferLoad) for x in walk_exprs(as_expr(value))):
            return value
        kept = self.allocated("held", (1,), kind_of(as_expr(value)))
        self.script.level.append(kept.store(as_expr(value), 0))
        return kept[0]

    def on_AugAssign(self, node: ast.AugAssign) -> None:
        old = ast.copy_location(ast.BinOp(_loaded(node.target), node.op, node.value), node)
        self.assign(node.target, self.value(old))

    def assign(self, target: ast.expr, value: Value) -> None:
        if isinstance(target, ast.Subscript):
            view, indices = self.element(target)
            stored = cast(as_expr(value), view.dtype)
            self.script.level.append(S.BufferStore(view.buffer, view._indices(indices), stored, None))
            return
        if not isinstance(target, ast.Name):
            raise self.error(target, "a statement assigns to a name or to an element")
        known = self.names.get(target.id)
        if isinstance(known, Var):
            raise self.error(target, f"'{target.id}' is the variable of a loop, which cannot be assigned to")
        constant = self.assigned[target.id] == 1 and not isinstance(value, ExprOp) and not isinstance(known, _Scalar)
        if constant or isinstance(value, (View, tuple, str)):
            if target.id in self.outside:
                raise self.error(
                    target,
                    f"'{target.id}' would stand for something else behind this loop or condition",
                    "use another name",
                )
            self.names[target.id] = value
        else:
            self.variable(target, value)

    def variable(self, target: ast.Name | ast.arg, value: Value) -> None:
        """Writes a number to the memory of a name, which it gets with its first value and of the type of that."""
        name, e = target.arg if isinstance(target, ast.arg) else target.id, as_expr(value)
        known = self.names.get(name)
        if not isinstance(known, _Scalar):
            known = self.names[name] = _Scalar(self.allocated(name, (1,), kind_of(e)))
        view = known.view
        if not _holds(data_type(view.dtype), kind_of(e)):
            raise self.error(
                target,
                f"'{name}' is {view.dtype} by its first value, and gets {e.dtype} here",
                "begin with one of that type",
            )
        self.script.level.append(view.store(cast(e, view.dtype), 0))

    def allocated(self, name: str, shape: Value, dtype: DataType) -> View:
        sizes = shape_of(shape)
        buffer = Buffer(Var(name, pointer_type(dtype, "private")), dtype, sizes or (IntImm(INT32, 1),))
        self.script.level.append(S.Alloc(buffer))
        return View(buffer)

    # -- values

    def value(self, node: ast.expr, name: str = "") -> Value:
        """What an expression is. `name`: that it is assigned to."""
        method = getattr(self, f"of_{type(node).__name__}", None)
        if method is None:
            raise self.error(node, f"a script has no {type(node).__name__} expressions")
        if isinstance(node, ast.Call):
            return self.of_Call(node, name)
        found = method(node)
        return found.view[0] if isinstance(found, _Scalar) else found

    def of_Constant(self, node: ast.Constant) -> Value:
        return node.value

    def of_Tuple(self, node: ast.Tuple | ast.List) -> Value:
        return tuple(self.value(x) for x in node.elts)

    of_List = of_Tuple

    def of_Name(self, node: ast.Name) -> Value:
        if node.id in self.names:
            return self.names[node.id]
        if node.id in self.outer and node.id not in self.assigned:
            found = self.outer[node.id]
            if isinstance(found, ExprOp):
                return _number(found)
            if isinstance(found, (bool, int, float, str, list, tuple)) or callable(found):
                return tuple(found) if isinstance(found, list) else found
        if node.id in DTYPES:
            return node.id
        raise self.error(
            node, f"'{node.id}' has no value here", "names end with the loop or condition that they begin in"
        )

    def of_Attribute(self, node: ast.Attribute) -> Value:
        base = self.value(node.value)
        if isinstance(base, View) and node.attr == "shape":
            return tuple(map(_number, base.shape))
        if isinstance(base, (View, Expr)) and node.attr == "dtype":
            return str(base.dtype)
        raise self.error(node, f"there is no '{node.attr}' of this", "of tensors there are shape and dtype")

    def of_Subscript(self, node: ast.Subscript) -> Value:
        base = self.value(node.value)
        if isinstance(base, (tuple, list)):
            index = self.value(node.slice)
            found: Value = base
            for one in index if isinstance(index, tuple) else (index,):
                if (
                    not isinstance(found, (tuple, list))
                    or not isinstance(one, int)
                    or not -len(found) <= one < len(found)
                ):
                    raise self.error(node, "the index into values is not known to be that of one of them")
                found = found[one]
            return tuple(found) if isinstance(found, list) else found
        view, indices = self.element(node)
        return view[indices]

    def element(self, node: ast.Subscript) -> tuple[View, tuple[Value, ...]]:
        """A view and the indices of one of its elements: `a[i, j]` or `a[i][j]`."""
        indices: tuple[Value, ...] = ()
        base: ast.expr = node
        while isinstance(base, ast.Subscript):
            index = self.value(base.slice)
            indices = (*(index if isinstance(index, tuple) else (index,)), *indices)
            base = base.value
            found = self.value(base) if not isinstance(base, ast.Subscript) else None
            if isinstance(found, (tuple, list)):  # of several tensors one
                first, *indices_left = indices
                found = found[first] if isinstance(first, int) and -len(found) <= first < len(found) else None
                indices = tuple(indices_left)
            if isinstance(found, View):
                for index, size in zip(indices, map(_number, found.shape)):
                    if isinstance(index, int) and (index < 0 or (isinstance(size, int) and index >= size)):
                        raise self.error(node, f"the element {index} is outside of a size of {size}", "count from 0")
                return found, indices
        raise self.error(node, "this is no element of a tensor")

    def of_BinOp(self, node: ast.BinOp) -> Value:
        apply = _BINARY.get(type(node.op))
        a, b = self.value(node.left), self.value(node.right)
        if apply is None or any(isinstance(x, (View, tuple, str)) for x in (a, b)):
            raise self.error(node, f"there is no {type(node.op).__name__} of these")
        return apply(a, b)

    def of_UnaryOp(self, node: ast.UnaryOp) -> Value:
        operand = self.value(node.operand)
        if isinstance(node.op, ast.Not):
            return ~self.truth(node, operand) if isinstance(operand, ExprOp) else not operand
        if isinstance(node.op, ast.USub):
            return -operand
        if isinstance(node.op, ast.UAdd):
            return operand
        return ~operand

    def of_BoolOp(self, node: ast.BoolOp) -> Value:
        values = [self.value(v) for v in node.values]
        exprs = [v for v in values if isinstance(v, ExprOp)]
        is_and = isinstance(node.op, ast.And)
        decided = [v for v in values if not isinstance(v, ExprOp) and bool(v) is not is_and]
        if decided:
            return decided[0]
        if not exprs:
            return values[-1]
        return (all_of if is_and else any_of)(*(self.truth(node, e) for e in exprs))

    def of_Compare(self, node: ast.Compare) -> Value:
        sides = [self.value(x) for x in (node.left, *node.comparators)]
        found: list[Value] = []
        for op, a, b in zip(node.ops, sides, sides[1:]):
            name, apply = _COMPARED.get(type(op), ("", None))
            if apply is None:
                raise self.error(node, f"there is no {type(op).__name__} of these")
            found.append(binary(name, a, b) if _is_expr(a, b) else apply(a, b))
        if len(found) == 1:
            return found[0]
        return all_of(*map(as_expr, found)) if _is_expr(*found) else all(found)

    def of_IfExp(self, node: ast.IfExp) -> Value:
        condition = self.value(node.test)
        if not isinstance(condition, ExprOp):
            return self.value(node.body if condition else node.orelse)
        return math.Select(self.truth(node.test, condition), self.value(node.body), self.value(node.orelse))

    def of_Call(self, node: ast.Call, name: str = "") -> Value:
        options = {k.arg: self.value(k.value) for k in node.keywords if k.arg}
        if isinstance(node.func, ast.Attribute) and node.func.attr == "astype":
            return cast(as_expr(self.value(node.func.value)), self.value(node.args[0]))
        if not isinstance(node.func, ast.Name):
            raise self.error(node, "a script calls functions by their names")
        called, args = node.func.id, [self.value(a) for a in node.args]
        special = getattr(self, f"call_{called}", None)
        if special is not None:
            return special(node, name, *args, **options)
        if called in DTYPES:
            return cast(as_expr(args[0]), called)
        if called in _MATH:
            return _MATH[called](*args)
        if called in ("min", "max"):
            found = args[0]
            for other in args[1:]:
                found = (
                    binary(called, found, other)
                    if _is_expr(found, other)
                    else (min if called == "min" else max)(found, other)
                )
            return found
        function = self.outer.get(called)
        if callable(function) and hasattr(function, "__wrapped__"):
            return self.script.call(function, args, self.span(node))
        raise self.error(
            node, f"a script cannot call '{called}'", "it calls what hybrid scripts know, and other scripts"
        )

    def call_output_tensor(self, node: ast.Call, name: str, shape: Value, dtype: Value = "float32") -> View:
        """The memory of a result; of a script that is called, memory of the one that calls it."""
        sizes = shape if isinstance(shape, tuple) else (shape,)
        if self.script.depth > 1:
            return self.allocated(name or "output", sizes, data_type(dtype))
        if self.script.level is not self.script.body:
            raise self.error(node, "output_tensor is called outside of loops and conditions")
        view = View(declared(name or "output", shape_of(sizes), data_type(dtype)))
        self.script.outputs.append(view.buffer)
        return view

    def call_allocate(self, node: ast.Call, name: str, shape: Value, dtype: Value = "float32", scope: str = "") -> View:
        """Memory of the statements. The scope changes nothing: they run on one thread."""
        return self.allocated(name or "buffer", shape if isinstance(shape, tuple) else (shape,), data_type(dtype))

    def call_len(self, node: ast.Call, name: str, given: Value) -> Value:
        return _number(given.shape[0]) if isinstance(given, View) else len(given)

    def call_likely(self, node: ast.Call, name: str, condition: Value) -> Value:
        return condition

    def call_ceil_div(self, node: ast.Call, name: str, a: Value, b: Value) -> Value:
        return (a + b - 1) // b

    def call_max_num_threads(self, node: ast.Call, name: str, allow_none: Value = True) -> int:
        raise self.error(node, "how many threads there are is not known to a script", "give the number")


class _Scalar:
    """A variable of a script: memory of one element."""

    def __init__(self, view: View) -> None:
        self.view = view


def _assignments(tree: ast.AST) -> Mapping[str, int]:
    """How many statements of a script assign to each name; loops do, to their variables."""
    return Counter(n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))


def _holds(memory: DataType, value: DataType) -> bool:
    """Whether memory of a type keeps all of a value of another: whole numbers may become floats."""
    if memory.is_float:
        return not value.is_float or value.bits <= memory.bits
    return not value.is_float and value.bits <= memory.bits


def _loaded(target: ast.expr) -> ast.expr:
    """What a statement assigns to, as a value."""
    copied = ast.parse(ast.unparse(target), mode="eval").body
    for part in ast.walk(copied):
        ast.copy_location(part, target)
    return copied
