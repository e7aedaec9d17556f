"""Evaluation of expressions at parse time: Python values are computed, run-time values become IR."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from compass_core.errors import CompassError, Note, Span, together
from compass_core.reading import pyast

from ...ir import exprs as E
from ...ir import stmts as S
from ...ir.dtypes import VOID
from ...ir.visit import located
from ...ops.core import get
from ..advice import advice, instead_of
from ..functions import Macro, PyPrimFunc, annotation_type
from ..python_errors import hint
from ..source import header_span, is_user_file, user_line
from ..specs import AllocSpec, MetaVar, no_attribute
from ..tiles.tile import Tile
from . import operators as ops
from .arguments import ArgumentError, wrong_arguments
from .branches import Operand, Statements, chosen, connected
from .constants import added, comprehension, python_number
from .helpers import calls
from .scope import PoisonUsed, Scope
from .syntax import unsupported
from .texts import RuntimeText, format_text, joined, no_text, percent_text, text_of
from .values import BufferValue, PointerValue, Value, is_runtime, kind_name, plain, unknown_here

if TYPE_CHECKING:
    from compassc.language.tiles.tile import Index

_T = TypeVar("_T")
LONGEST_NUMBER = 1000
"""Bits of a whole number that may be computed while a kernel is parsed: those that are real numbers, too, and can be shown."""
_UNARY = {ast.USub: "-", ast.UAdd: "+", ast.Invert: "~", ast.Not: "not"}
_IDENTITY: dict[type, Callable[[object, Any], bool]] = {
    ast.Is: lambda a, b: a is b,
    ast.IsNot: lambda a, b: a is not b,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}
_LEAVES = (ast.Name, ast.Constant, ast.Attribute)
"""Expressions that compute nothing."""
_MOST_TYPES = 5
_LONGEST = 40
_CONVERSIONS: dict[str, Callable[[object], str]] = {"r": repr, "a": ascii, "s": str}
_IS = (ast.Is, ast.IsNot)
_DEPTH = 4
_AS_OPERATOR = (pow,)
"""Functions of Python that are operators on run-time values."""
_OF_LISTS = (len, sum, list, tuple, set, reversed, enumerate, zip, map, filter, iter, next, slice, range)
"""Functions of Python that work on lists of run-time values."""
_INTERNAL = re.compile(r"'?\b(PointerValue|BufferValue|Value|RuntimeText|LoopSpec|AllocSpec|MatchSpec|ConstSpec)\b'?")
_TERMS = {"PointerValue": "a pointer", "BufferValue": "a buffer", "Value": "a run-time value", "LoopSpec": "a loop"}


def type_of(value: object) -> str:
    """The type of a run-time value, as messages show it; an empty string for any other value."""
    if isinstance(value, Value):
        return str(value.dtype)
    if isinstance(value, PointerValue):
        return f"{value.elem}* ({value.scope})"
    if isinstance(value, BufferValue):
        dims = ", ".join(repr(d) for d in value.dims)
        return f"{value.dtype} buffer of shape ({dims}) ({value.scope})"
    return ""


def _first_runtime(x: Any, depth: int = _DEPTH) -> object:
    """The first value of the run in lists and tuples, which lie `depth` deep in each other at most; None: there is none."""
    if is_runtime(x) or depth < 0:
        return x if depth >= 0 else None
    items = x if type(x) in (list, tuple) else (x.start, x.stop, x.step) if type(x) is slice else ()
    return next((found for item in items if (found := _first_runtime(item, depth - 1)) is not None), None)


def _parts(node: ast.expr) -> Iterator[ast.expr]:
    """An expression, and those in it whose values are its own: items and branches."""
    yield node
    branches = [node.body, node.orelse] if isinstance(node, ast.IfExp) else []
    for part in [*branches, *(node.elts if isinstance(node, (ast.Tuple, ast.List)) else ())]:
        yield from _parts(part)


def _may_be(kinds: object) -> bool:
    """Whether the classes that isinstance is asked for are none of numbers, which values of the run stand for."""
    kinds = kinds if isinstance(kinds, tuple) else (kinds,)
    numbers = ("numpy", "numbers", "ml_dtypes")
    return not any(k in (int, float, bool, complex) or getattr(k, "__module__", "") in numbers for k in kinds)


class Evaluator:
    """Evaluates the expressions of one function."""

    def __init__(self, scope: Scope, file: str, chain: list[Note], to: Statements) -> None:
        """`to`: where the statements go that expressions need."""
        self.scope, self.file, self.chain, self.to = scope, file, chain, to
        self.helpers = to.helpers
        self.operands: tuple[ast.expr | None, tuple[tuple[ast.expr, object], ...]] = (None, ())
        self.statement: ast.expr | None = None  # the expression that is a statement of its own
        self.named: frozenset[ast.expr] = frozenset()  # whose values are assigned, where S.meta_var stays one
        self._places: dict[ast.AST, Span] = {}

    def place(self, node: ast.AST) -> Span:
        """The place of a syntax node."""
        found = self._places.get(node)
        if found is None:
            found = self._places[node] = header_span(node, self.file)
        return found

    def eval(self, node: ast.expr) -> Any:
        """The value of an expression; every CompassError gets the position of the innermost node."""
        method = getattr(self, "eval_" + type(node).__name__, None)
        try:
            if method is None:
                raise unsupported(node)
            value = method(node)
            if type(value) is int and value.bit_length() > LONGEST_NUMBER:
                raise CompassError(
                    f"a number of {value.bit_length()} bits", code="literal-range", help="numbers have up to 32 bits"
                )
            if type(node) in _LEAVES:
                return value
            if type(value) in (MetaVar, AllocSpec) and node not in self.named:
                value = self._unnamed(value, node)
            if isinstance(value, Value) and value.expr.dtype is VOID and node is not self.statement:
                return self._made(value, node)
            self.helpers.hold(value)
            return self._placed(value, node) if isinstance(node, (ast.Call, ast.Subscript)) else value
        except CompassError as e:
            self._told(e, node)
            raise

    def _made(self, call: Value, node: ast.expr) -> None:
        """Make a call that has no value, and no statement of its own: like Python's functions without one, it gives None."""
        self.helpers.settle()
        self._placed(call, node)
        self.to.emit(S.Evaluate, call.expr)

    def eval_named(self, node: ast.expr) -> Any:
        """The value of an expression that names are given: what it says to be S.meta_var still is."""
        self.named = frozenset(_parts(node))
        return self.eval(node)

    def _told(self, e: CompassError, node: ast.expr) -> None:
        """Give an error the place of a node, unless it has one."""
        if e.span is None:
            e.span = self.place(node)
            e.notes = (*e.notes, *self._types(node))

    def operand(self, node: ast.expr) -> Operand:
        """The value of an expression that may not be computed."""
        outside = self.helpers.begin()
        try:
            with self.scope.inside():
                return Operand(*self.to.apart(lambda: self.eval(node)))
        finally:
            self.helpers.end(outside)

    def _unnamed(self, value: MetaVar | AllocSpec, node: ast.expr) -> object:
        """What a call gives where no name is given its value: that of S.meta_var, new storage."""
        if isinstance(value, MetaVar):
            return value.value
        return self.to.unnamed(value) if isinstance(node, ast.Call) and node is not self.statement else value

    def _placed(self, value: object, node: ast.expr) -> object:
        """The value with the place of a node for its calls and accesses; those in arguments have one already."""
        if isinstance(value, Value):
            e = value.expr
            if e.flags & E.F_PLACED and not (isinstance(e, E.PlacedExpr) and e.span is not None):
                value.expr = located(e, self.place(node))
        elif isinstance(value, PointerValue):
            if value.base.flags & E.F_PLACED:
                value.base = located(value.base, self.place(node))
        elif type(value) is tuple:
            for item in value:
                self._placed(item, node)
        return value

    def all(self, nodes: Iterable[ast.expr]) -> list[Any]:
        """The values of expressions that do not depend on each other; their mistakes are reported together."""
        return self._each(self.eval, nodes)

    @staticmethod
    def _each(evaluate: Callable[[ast.expr], _T], nodes: Iterable[ast.expr]) -> list[_T]:
        values, errors, poisoned = [], [], False
        for node in nodes:
            try:
                values.append(evaluate(node))
            except CompassError as e:
                errors.append(e)
            except PoisonUsed:
                poisoned = True
        if errors:
            raise together(errors)
        if poisoned:
            raise PoisonUsed
        return values

    def _types(self, node: ast.expr) -> list[Note]:
        """A note with the types of an expression's operands, as they are written; else of the variables in it."""
        if isinstance(node, ast.Name):
            return []
        owner, pairs = self.operands
        if owner is not node:
            names = dict.fromkeys(n.id for n in ast.walk(node) if isinstance(n, ast.Name))
            pairs = tuple((ast.Name(name), self.scope.local(name)) for name in names)
        kinds = {text: kind for n, v in pairs if (kind := type_of(v)) and len(text := ast.unparse(n)) <= _LONGEST}
        shown = [f"{text}: {kind}" for text, kind in kinds.items()]
        return [Note("where " + ", ".join(shown))] if 0 < len(shown) <= _MOST_TYPES else []

    def python(self, what: str, fn: Callable[..., object], *args: object, **kwargs: object) -> Any:
        """Run the user's own Python; whatever it raises is the user's mistake, reported at the expression."""
        try:
            return fn(*args, **kwargs)
        except PoisonUsed:
            raise
        except CompassError as e:
            if e.span is None and (place := user_line(e)) is not None:
                e.notes = (
                    *e.notes,
                    Note("it is asked for here, in Python that runs while the kernel is parsed", place),
                )
            raise
        except (Exception, SystemExit) as e:
            name = type(e).__name__
            place = user_line(e)
            notes = [Note("it runs in Python while the kernel is parsed")]
            if place is not None:
                notes.append(Note(f"{name} is raised here", place))
            said = _INTERNAL.sub(lambda found: _TERMS.get(found[1], "a value of the kernel"), str(e))
            raise CompassError(f"{what} raised {name}: {said}", code="python", notes=tuple(notes), help=hint(e)) from e

    # -- leaves and displays

    def eval_Constant(self, node: ast.Constant) -> object:
        return node.value

    def eval_Name(self, node: ast.Name) -> object:
        value = self.helpers.pasted(self.scope.look_up(node.id))
        self.scope.use(value)
        if self.scope.blocks and isinstance(value, PointerValue):
            raise CompassError(
                f"the pointer {node.id!r} cannot be used in a schedulable block",
                code="pointer-in-block",
                help=f"view it before the loops: b = S.match_buffer({node.id}, (...)), and use b here",
            )
        return self.checked(value)

    @staticmethod
    def checked(value: object) -> object:
        """A value of Python; NumPy's scalars are Python's numbers. CompassError for those that are none."""
        if type(value).__module__ != "numpy" or isinstance(value, type) or not hasattr(value, "dtype"):
            return value
        found = python_number(value)
        if found is value and hasattr(value, "item") and value.shape == () and type(value).__name__ != "ndarray":
            name = type(value).__name__
            raise CompassError(
                f"a NumPy scalar of type {name} is no number of the language",
                code="numpy-scalar",
                help="convert it with int(...), float(...) or bool(...)",
            )
        return found

    def eval_Tuple(self, node: ast.Tuple) -> tuple[object, ...]:
        return tuple(self._items(node.elts))

    def eval_List(self, node: ast.List) -> object:
        return self._items(node.elts)

    def eval_Set(self, node: ast.Set) -> object:
        return set(self._items(node.elts))

    def _items(self, nodes: list[ast.expr]) -> list[Any]:
        out: list[object] = []
        for n, value in zip(nodes, self.all(n.value if isinstance(n, ast.Starred) else n for n in nodes)):
            if isinstance(n, ast.Starred):
                out.extend(value)
            else:
                out.append(value)
        return out

    def eval_Dict(self, node: ast.Dict) -> object:
        out: dict[object, object] = {}
        for key, value in zip(node.keys, node.values):
            if key is None:
                out.update(self.eval(value))
            else:
                out[self.eval(key)] = self.eval(value)
        return out

    def eval_ListComp(self, node: ast.ListComp) -> list[object]:
        return self._comprehension(node.generators, node.elt)

    def eval_GeneratorExp(self, node: ast.GeneratorExp) -> list[object]:
        return self._comprehension(node.generators, node.elt)

    def eval_SetComp(self, node: ast.SetComp) -> set[object]:
        return set(plain(self._comprehension(node.generators, node.elt)))

    def eval_DictComp(self, node: ast.DictComp) -> dict[object, object]:
        return {plain(k): v for k, v in self._comprehension(node.generators, node.key, node.value)}

    def _comprehension(self, clauses: list[ast.comprehension], *items: ast.expr) -> list[Any]:
        def make() -> object:
            return self.eval(items[0]) if len(items) == 1 else tuple(map(self.eval, items))

        return comprehension(self.scope, self.eval, self.to.keep, clauses, make)

    def eval_JoinedStr(self, node: ast.JoinedStr) -> str | RuntimeText:
        return joined([self.eval(v) for v in node.values])

    def eval_FormattedValue(self, node: ast.FormattedValue) -> str | RuntimeText:
        value = self.eval(node.value)
        if is_runtime(value):
            if node.conversion not in (-1, ord("s")):
                raise no_text(value)
            return text_of(value, self.eval(node.format_spec) if node.format_spec else "")
        if node.conversion in (ord("r"), ord("a"), ord("s")):
            value = _CONVERSIONS[chr(node.conversion)](value)
        spec = self.eval(node.format_spec) if node.format_spec else ""
        made: str | RuntimeText = self.python("formatting", format, value, spec)
        return made

    def eval_Lambda(self, node: ast.Lambda) -> object:
        names = [a.arg for a in node.args.args]

        def call(*args: object) -> object:
            with self.scope.hidden_frame():
                for name, value in zip(names, args, strict=True):
                    self.scope.bind(name, self._called(value))
                return self.eval(node.body)

        return call

    # -- operators

    def eval_BinOp(self, node: ast.BinOp) -> object:
        a, b = self.all((node.left, node.right))
        self.operands = node, ((node.left, a), (node.right, b))
        symbol = pyast.BINARY[type(node.op)]
        if symbol == "%" and type(a) is str and any(map(is_runtime, b if type(b) is tuple else (b,))):
            return percent_text(a, b)
        if is_runtime(a) or is_runtime(b):
            return ops.binary(symbol, a, b)
        return self.python(f"`{symbol}`", ops.binary, symbol, a, b)

    def eval_UnaryOp(self, node: ast.UnaryOp) -> object:
        return self.python("the operator", ops.unary, _UNARY[type(node.op)], self.eval(node.operand))

    def eval_BoolOp(self, node: ast.BoolOp) -> object:
        symbol = "and" if isinstance(node.op, ast.And) else "or"
        first = node.values[0]
        operands = self._each(lambda n: Operand(self.eval(n)) if n is first else self.operand(n), node.values)
        if any(x.statements for x in operands):
            self.helpers.settle()
        return connected(self.to, symbol, operands)

    def eval_Compare(self, node: ast.Compare) -> object:
        nodes = (node.left, *node.comparators)
        operands = self._each(lambda n: self.operand(n) if n in nodes[2:] else Operand(self.eval(n)), nodes)
        if len(nodes) > 2 and any(x.statements or calls(x.value) for x in operands[1:]):
            self.helpers.settle()  # those between two comparisons are computed once
            operands[2:-1] = map(self._kept, operands[2:-1])
        found = []
        for op, a, b, left, right in zip(node.ops, nodes, nodes[1:], operands, operands[1:]):
            self.operands = node, ((a, left.value), (b, right.value))
            found.append(Operand(self._compare(op, left.value, right.value), right.statements))
        return connected(self.to, "and", found)

    def _kept(self, operand: Operand) -> Operand:
        """The operand, with a value that is computed once."""
        value, made = self.to.apart(lambda: self.to.keep(operand.value))
        return Operand(value, (*operand.statements, *made))

    def _compare(self, op: ast.cmpop, a: Index | Value, b: object) -> object:
        if (a is None or b is None) and (is_runtime(a) or is_runtime(b)) and isinstance(op, (*_IS, ast.Eq, ast.NotEq)):
            null = ops.is_none(b if a is None else a)
            return ops.unary("not", null) if isinstance(op, (ast.IsNot, ast.NotEq)) else null
        if type(op) in _IDENTITY:
            a, b = plain(a), plain(b)
        if isinstance(op, _IS) and (is_runtime(a) or is_runtime(b)):
            raise CompassError("`is` needs values known when the kernel is compiled", code="runtime-is", help="use ==")
        identity = _IDENTITY.get(type(op))
        if identity is not None:
            if isinstance(op, (ast.In, ast.NotIn)) and (is_runtime(a) or is_runtime(b)):
                raise CompassError(
                    "`in` needs values known when the kernel is compiled",
                    code="runtime-in",
                    help="join comparisons with `or`",
                )
            return identity(a, b)
        return self.python("the comparison", ops.binary, pyast.COMPARISON[type(op)], a, b)

    def eval_IfExp(self, node: ast.IfExp) -> object:
        cond = plain(self.eval(node.test))
        if not is_runtime(cond):
            return self.eval(node.body if cond else node.orelse)
        a, b = self._each(self.operand, (node.body, node.orelse))
        if a.statements or b.statements:
            self.helpers.settle()
        return chosen(self.to, cond, a, b)

    # -- access and calls

    def eval_Attribute(self, node: ast.Attribute) -> object:
        owner = self.eval(node.value)
        try:
            return self.checked(getattr(owner, node.attr))
        except AttributeError as e:
            if kind := type_of(owner):
                raise no_attribute(owner.attributes, kind, node.attr) from None
            what, _, near = (str(e) or f"no attribute {node.attr!r}").partition("; did you mean ")
            said = getattr(e, "help", "") or hint(e)
            raise CompassError(what, code="attribute", help=f"did you mean {near}" if near else said) from None

    def eval_Subscript(self, node: ast.Subscript) -> object:
        owner, index = self.all((node.value, node.slice))
        return self._element(node, owner, index)

    def element(self, node: ast.Subscript) -> tuple[object, object, object]:
        """The owner, the index and the value of `owner[index]`; the first two may be used again."""
        try:
            owner, index = self.all((node.value, node.slice))
            if calls((owner, index)):
                self.helpers.settle()
            return owner, index, self.helpers.hold(self._element(node, owner, index))
        except CompassError as e:
            self._told(e, node)
            raise

    def _element(self, node: ast.Subscript, owner: Any, index: object) -> object:
        self.operands = node, ((node.value, owner), (node.slice, index))
        if is_runtime(owner):
            return owner[index]
        index = plain(index)
        if isinstance(owner, Tile):
            return owner[index]
        if calls(owner):  # those that are not chosen are made, too
            self.helpers.settle()
        if not isinstance(owner, dict) and _first_runtime(index) is not None:
            raise CompassError(
                f"{kind_name(owner)} of Python takes no index that is known only when the kernel runs",
                code="index",
                help='make it a table of the kernel: t = S.alloc_const((3,), "i32", [1, 2, 3])',
            )
        return self.checked(self.python("the subscript", lambda: owner[index]))

    def eval_Slice(self, node: ast.Slice) -> slice:
        parts = [self.eval(part) if part is not None else None for part in (node.lower, node.upper, node.step)]
        if calls(parts):  # two calls give two numbers
            self.helpers.settle()
        return slice(*parts)

    def eval_Call(self, node: ast.Call) -> object:
        func = self.eval(node.func)
        if isinstance(func, Macro) and node is not self.statement:
            raise CompassError(
                f"the macro {func.__name__} has no value: its body is pasted in the place of a statement",
                code="macro-value",
                help="make it a function: decorate it with @S.prim_func, give parameters and result their types",
            )
        given = [*node.args, *(k.value for k in node.keywords)]
        if isinstance(func, Macro):
            values, made = self.to.apart(lambda: self._items(given))
            self._pasted(func, made)
        else:
            values = self._items(given)
        if any(isinstance(v, Value) and v.dtype.is_mask and calls(v) for v in values):
            self.helpers.settle()  # masks are computed before the other operands
        args, named = values[: len(values) - len(node.keywords)], values[len(values) - len(node.keywords) :]
        kwargs: dict[str, object] = {}
        for k, value in zip(node.keywords, named):
            kwargs.update(value if k.arg is None else {k.arg: value})
        positional = zip(node.args, args) if len(args) == len(node.args) else ()
        keywords = ((k.value, kwargs[k.arg]) for k in node.keywords if k.arg is not None)
        self.operands = node, (*positional, *keywords)
        if not isinstance(func, (PyPrimFunc, Macro)):
            return self.call(func, args, kwargs, node.func)
        how = (
            f"in macro {func.__name__}, expanded here"
            if isinstance(func, Macro)
            else f"{func.__name__}() is called here"
        )
        self.chain.append(Note(how, self.place(node)))
        try:
            return func(*args, **kwargs)
        except ArgumentError as e:
            e.span = self.place(e.node(node))
            e.notes = (*e.notes, *self._types(node))
            raise
        finally:
            self.chain.pop()

    def _pasted(self, macro: Macro, made: S.Body) -> None:
        """What the arguments of a macro need beside the statements of its body, which compute them: storage, or it is refused."""
        if not all(type(s) is S.Alloc for s in made):
            raise CompassError(
                f"the arguments of a macro are pasted, each time that {macro.__name__} uses them: one of these takes statements",
                code="macro-statements",
                help="give its value a name before, and the macro the name",
            )
        for s in made:
            self.to.append(s)

    def call(self, func: object, args: list[object], kwargs: dict[str, object], written: ast.expr) -> object:
        """The value of a call of a function that is no kernel function; `written`: how the kernel names it."""
        if not callable(func):
            raise CompassError(
                f"{ast.unparse(written)} is not callable",
                code="not-callable",
                help="call functions and operations; S.TYPE(x) converts",
            )
        if (getattr(func, "__module__", None) or "").startswith("compassc."):
            if args and isinstance(args[0], RuntimeText) and getattr(func, "op", None) is get("printf"):
                args = args[0].printf(args[1:])
            try:
                return func(*args, **kwargs)
            except TypeError as e:
                raise wrong_arguments(func, args, kwargs, ast.unparse(written)) or e from None
        name = ast.unparse(written)
        if not (inspect.isfunction(func) and is_user_file(func.__code__.co_filename)):
            args, kwargs = plain(args), {k: plain(v) for k, v in kwargs.items()}
        self._of_python(func, args, kwargs, name)
        if any(map(is_runtime, (*args, *kwargs.values()))):
            if func is str and len(args) == 1:
                return text_of(args[0])
            if func in (repr, ascii, format):
                raise no_text(next(filter(is_runtime, args)))
            if getattr(func, "__name__", "") == "format" and type(template := getattr(func, "__self__", None)) is str:
                return self.python(f"{name}(...)", format_text, template, args, kwargs)
        self._undecorated(func)
        args, kwargs = [self._called(x) for x in args], {k: self._called(x) for k, x in kwargs.items()}
        with self.helpers.run():
            return self.checked(self.python(f"{name}(...)", added if func is sum else func, *args, **kwargs))

    def _called(self, value: object) -> object:
        """A value that a function of Python may keep: sub-functions in it are called now, and once."""
        return self.to.keep(value) if calls(value) else value

    def _of_python(self, func: object, args: list[object], kwargs: dict[str, object], name: str) -> None:
        """Refuse values of the run for functions of Python that know none, with the operation to write."""
        if func is print:
            raise CompassError("print() has no value in a kernel", code="builtin", help=advice("print"))
        found = _first_runtime([*args, *kwargs.values()], 1 if func in _OF_LISTS else _DEPTH)
        if func is isinstance and is_runtime(args[0]) and not _may_be(args[-1]):
            raise unknown_here(args[0], name, f"ask its type: {ast.unparse(self.operands[1][0][0])}.dtype.is_integer")
        help = "" if found is None else instead_of(func, [ast.unparse(n) for n, _ in self.operands[1]])
        if help and func not in _AS_OPERATOR:
            raise unknown_here(found, name, help)

    @staticmethod
    def _undecorated(func: Callable[..., object]) -> None:
        """A plain function with kernel annotations was probably meant to be a prim_func."""
        for name, annotation in getattr(func, "__annotations__", {}).items():
            if annotation_type(annotation) is not None:
                what = "the return value" if name == "return" else f"parameter {name!r}"
                raise CompassError(
                    f"{what} of {func.__name__} has a kernel type, but the function is not decorated",
                    code="undecorated",
                    help="add @S.prim_func above its definition",
                )
