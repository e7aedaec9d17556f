"""Assignments and loop variables in PySim as compiled code has them.

Python's `x = e` binds a name to an object; a kernel's defines a typed variable: `n = 5` is an int32, `y = x` copies a
vector, an array becomes a constant table, `for i in range(n)` counts in the type of n. A kernel is therefore recompiled
with the right sides of its assignments passed through `bound`, and what its loops iterate through `counted`. Calls of
operations go to their Python side without asking again whether PySim runs. Lines, columns, file and names stay those of
the source, and what is added are constants of the code, so that tracebacks, debuggers and coverage see the user's
kernel and nothing else.
"""

from __future__ import annotations

import ast
import itertools
import threading
import types
import warnings
import weakref
from collections.abc import Callable, Iterator

from compass_core.errors import CompassError
from compass_core.reading import pyast
from compassc.ir.dtypes import DataType
from compassc.ops.core import Op

from ..language import api
from ..language.functions import Macro, captured
from ..language.source import SET_TRACE, definition
from .address_arithmetic import SHORT, moved
from .bools import OPERATORS, PREFIXES, Bools, calculate
from .code import KERNEL_CODE, MACRO_CODE, GeneratedCode, Kept
from .contents import assigned, bound, chosen, copied, fresh, is_none, known, loop, named, shown, sides
from .debug import stop
from .impl import pysim_impl
from .paste import addressed, pasted

_MARK = "\0compassc constant "
_POINTERS = frozenset(("ptr", "dst", "src"))
"""Parameters of operations that take pointers."""
_ALLOCATIONS = frozenset(("alloc", "alloc_buffer", "alloc_const"))
_PACKAGE = __name__.partition(".")[0] + "."
_FACTORY = "__factory"
_KERNEL = "__kernel"


class Rewrite(ast.NodeTransformer):
    """Wraps the right sides of assignments to names and the iterables of loops, resolves operations, pastes macros.

    `seen`: the globals and closed-over values that no variable hides. `variables`: the variables in sight, which a
    pasted macro may assign. `made`: what belongs to the code that is made, common to a kernel and its macros.
    """

    def __init__(
        self, seen: dict[str, object], variables: set[str], made: GeneratedCode, macro: Macro | None = None
    ) -> None:
        self.seen, self.variables, self.made = seen, variables, made
        self.macro = macro  # whose body this is; None for a function
        self.active: tuple[Macro, ...] = ()  # it and those it was pasted by
        self.bools = Bools(self.known, made.bools)
        self.unrolled: set[str] = set()  # variables of the loops S.unroll around
        self.iterables = 0  # of comprehensions, around the present place
        self.computed: set[ast.expr] = set()  # calls of operations that give a value of their own

    def inner(self, seen: dict[str, object], variables: set[str], macro: Macro | None) -> Rewrite:
        """The rewriting of a macro's body in this code."""
        return Rewrite(seen, variables, self.made, macro)

    def statements(self, nodes: list[ast.stmt]) -> list[ast.stmt]:
        """A block of statements, rewritten."""
        found: list[ast.stmt] = []
        for node in nodes:
            new = self.visit(node)
            found += new if isinstance(new, list) else [new]
        return found

    def constant(self, value: object, at: ast.AST) -> ast.expr:
        """An object as a constant of the code, to be called; a marker stands for it until the code is compiled."""
        mark = f"{_MARK}{len(self.made.constants)}"
        self.made.constants[mark] = value
        return ast.copy_location(ast.Constant(mark), at)

    def kept(self, value: object, at: ast.AST) -> ast.expr:
        """A value of Python in the code: Python computes no more with it before the code runs than with a variable's."""
        return ast.copy_location(ast.Attribute(self.constant(Kept(value), at), "value", ast.Load()), at)

    def known(self, node: ast.expr) -> object:
        """The object that a name, or a name of a module, is sure to mean; else None."""
        if isinstance(node, ast.Constant) and type(node.value) is str:
            return self.made.constants.get(node.value)
        if isinstance(node, ast.Name):
            found = self.seen.get(node.id)
            if node.id not in self.variables:
                self.made.assumed[node.id] = _meaning(found)
            return found
        if isinstance(node, ast.Attribute):
            owner = self.known(node.value)
            if isinstance(owner, Kept):
                return owner.value
            if isinstance(owner, types.ModuleType):
                found = getattr(owner, node.attr, None)
                if not _is_ours(owner.__name__):
                    self.made.modules[owner, node.attr] = _meaning(found)
                return found
        return None

    def visit_Expr(self, node: ast.Expr) -> ast.Expr | list[ast.stmt]:
        if isinstance(node.value, ast.Call):
            macro = self.known(node.value.func)
            if isinstance(macro, Macro) and macro not in self.active:
                found = pasted(self, macro, node)
                if found is not None:
                    return found
        self.generic_visit(node)
        return node

    def visit_While(self, node: ast.While) -> ast.While:
        node.orelse = []  # as compiled
        self.generic_visit(node)
        return node

    def visit_For(self, node: ast.For) -> ast.For:
        node.orelse = []
        head = node.iter
        name = node.target.id if isinstance(node.target, ast.Name) else ""
        if isinstance(head, ast.Call) and self.known(head.func) is api.unroll and name not in self.unrolled:
            self.unrolled.add(name)
            self.visit_For(node)
            self.unrolled.discard(name)
            return node
        if isinstance(head, ast.Call):
            if not head.keywords and _is_nest(node.target, head):
                return self.visit_For(_nested(node, head))
            args = [head.func, *head.args]
            node.iter = ast.copy_location(ast.Call(self.constant(loop, head), args, head.keywords), head)
        self.generic_visit(node)
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.Assign | list[ast.stmt]:
        if len(node.targets) > 1:
            return self.in_turn(node, node.targets)
        target = node.targets[0]
        if not isinstance(target, (ast.Tuple, ast.List)) or self.is_plain(target, node.value):
            return self.assignment(node)
        return self.in_turn(node, [target])

    def is_plain(self, target: ast.Tuple | ast.List, value: ast.expr) -> bool:
        """Whether Python's assignment of several values is the kernel's, with each of them bound."""
        single = all(isinstance(e, ast.Name) and e.id not in self.made.addressed for e in target.elts)
        return single and isinstance(value, ast.Tuple)

    def in_turn(self, node: ast.Assign, targets: list[ast.expr]) -> list[ast.stmt]:
        """`x = y = e`, `x, (y, *z) = e`: e is computed once, and each variable gets a copy, from left to right."""
        names: list[str] = []
        target = targets[0]
        pattern = self.hidden(names) if len(targets) > 1 else self.unpacked(target, names)
        name = target.id if isinstance(target, ast.Name) else ""
        found: list[ast.stmt] = [ast.Assign([pattern], self.wrapped(self.visit(node.value), name))]
        pairs = [(t, node.value) for t in targets] if len(targets) > 1 else list(_leaves(target, node.value))
        for (leaf, value), kept in zip(pairs, itertools.cycle(names)):
            statement = self.visit_Assign(ast.Assign([leaf], self.item(ast.Name(kept, ast.Load()), value, node.value)))
            found += statement if isinstance(statement, list) else [statement]
        found.append(ast.Delete([ast.Name(kept, ast.Del()) for kept in names]))
        return [ast.fix_missing_locations(ast.copy_location(s, node)) for s in found]

    def unpacked(self, target: ast.expr, names: list[str]) -> ast.expr:
        """A target of the same form that keeps the values in hidden variables."""
        if isinstance(target, (ast.Tuple, ast.List)):
            return ast.Tuple([self.unpacked(e, names) for e in target.elts], ast.Store())
        if isinstance(target, ast.Starred):
            return ast.Starred(self.unpacked(target.value, names), ast.Store())
        return self.hidden(names)

    def item(self, kept: ast.Name, value: ast.expr, whole: ast.expr) -> ast.expr:
        """A value that was unpacked from one, as what is assigned; `value` is written for it, or for a sequence it is in."""
        if _is_known(value):
            self.made.known_names.add(kept.id)
        elif value is whole and isinstance(value, ast.Call) and value not in self.computed:  # it may give S.meta_var
            return self.call(known, [self.call(bound, [ast.copy_location(kept, value)], value)], value)
        return kept

    def hidden(self, names: list[str]) -> ast.Name:
        """A variable that no kernel can name, which is added to `names`."""
        names.append(f".kept {next(self.made.numbers)}")
        return ast.Name(names[-1], ast.Store())

    def assignment(self, node: ast.Assign) -> ast.Assign:
        """A statement with one target, or with several plain ones."""
        self.generic_visit(node)
        target = node.targets[0]
        if isinstance(target, ast.Name):
            node.value = self.wrapped(node.value, target.id)
            if target.id in self.made.addressed:
                node.value = self.call(assigned, [self.held(target), node.value], node.value)
        elif isinstance(target, (ast.Tuple, ast.List)) and isinstance(node.value, ast.Tuple):
            node.value.elts = [self.wrapped(e, "") for e in node.value.elts]
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AugAssign | ast.Assign | list[ast.stmt]:
        """`x op= e`, written as `x = x op e` where the two differ."""
        target = node.target
        named = isinstance(target, ast.Name) and target.id in self.made.addressed
        if not named and not self.bools.may_be(target):
            self.generic_visit(node)
            return node
        if isinstance(target, ast.Subscript):
            return self.element_changed(node, target)
        own = pyast.copied(target)
        own.ctx = ast.Load()
        value = ast.copy_location(ast.BinOp(own, node.op, node.value), node)
        return self.assignment(ast.copy_location(ast.Assign([target], value), node))

    def element_changed(self, node: ast.AugAssign, target: ast.Subscript) -> list[ast.stmt]:
        """`x[i] op= e` as `x[i] = x[i] op e`, where x and i are computed once."""
        names: list[str] = []
        parts = (target.value, _index_value(target.slice, lambda f: self.constant(f, target)))
        found: list[ast.stmt] = [ast.Assign([self.hidden(names)], self.visit(part)) for part in parts]
        owner, index = (ast.Name(name, ast.Load()) for name in names)
        old = ast.Subscript(owner, index, ast.Load())
        value = self.call(calculate(type(node.op)), [old, self.visit(node.value)], target)
        found.append(ast.Assign([ast.Subscript(owner, index, ast.Store())], value))
        found.append(ast.Delete([ast.Name(name, ast.Del()) for name in names]))
        return [ast.fix_missing_locations(ast.copy_location(s, node)) for s in found]

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        bools = type(node.op) in OPERATORS and (self.bools.may_be(node.left) or self.bools.may_be(node.right))
        self.generic_visit(node)
        return self.call(calculate(type(node.op)), [node.left, node.right], node) if bools else node

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        """`p is None` asks whether a pointer is null."""
        self.generic_visit(node)
        sides = (node.left, *node.comparators)
        others = [e for e in sides if not (isinstance(e, ast.Constant) and e.value is None)]
        if not isinstance(node.ops[0], (ast.Is, ast.IsNot)) or len(sides) != 2 or len(others) != 1:
            return node
        null = self.call(is_none, others, node)
        return null if isinstance(node.ops[0], ast.Is) else ast.copy_location(ast.UnaryOp(ast.Not(), null), node)

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        """`a if c else b`, also of a mask: then both sides are computed."""
        self.generic_visit(node)
        if self.iterables or _is_known(node):  # where no name can be bound, or is not to be
            return node
        name = f".sides {len(self.made.constants)}"

        def side(number: int, e: ast.expr) -> ast.expr:
            wanted = ast.BinOp(ast.Name(name, ast.Load()), ast.BitAnd(), ast.Constant(number))
            return ast.copy_location(ast.IfExp(wanted, e, ast.Constant(None)), e)

        asked = ast.NamedExpr(ast.Name(name, ast.Store()), self.call(sides, [node.test], node))
        found = self.call(chosen, [asked, side(1, node.body), side(2, node.orelse)], node)
        return ast.fix_missing_locations(found)

    def visit_comprehension(self, node: ast.comprehension) -> ast.comprehension:
        self.iterables += 1
        node.iter = self.visit(node.iter)
        self.iterables -= 1
        node.ifs = [self.visit(test) for test in node.ifs]
        return node

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        function = PREFIXES.get(type(node.op))
        bools = function is not None and self.bools.may_be(node.operand)
        self.generic_visit(node)
        return self.call(function, [node.operand], node) if bools and function else node

    def held(self, target: ast.expr) -> ast.expr:
        """The value of a variable before it is assigned, `locals().get("x")`; None if the target is not a name."""
        name = target.id if isinstance(target, ast.Name) else ""
        get = ast.Attribute(self.call(locals, [], target), "get", ast.Load())
        return ast.fix_missing_locations(ast.copy_location(ast.Call(get, [ast.Constant(name)], []), target))

    def call(self, function: Callable[..., object], args: list[ast.expr], at: ast.expr) -> ast.expr:
        return ast.copy_location(ast.Call(self.constant(function, at), args, []), at)

    def wrapped(self, e: ast.expr, name: str) -> ast.expr:
        """`bound(e)`, except for S.meta_var, whose value stays a Python value."""
        if isinstance(e, ast.Starred) or _is_known(e) or (isinstance(e, ast.Name) and e.id in self.made.known_names):
            return e
        if _called(e) in _ALLOCATIONS and name:
            label = ast.copy_location(ast.Constant(name), e)
            return self.call(named, [e, label], e)
        new = isinstance(e, ast.BinOp) or e in self.computed
        return self.call(copied if self.made.addressed else fresh if new else bound, [e], e)

    def visit_Call(self, node: ast.Call) -> ast.Call:
        """`S.vadd(...)` becomes a call of the operation's Python side. Other names may be bound anew until they are
        used, so they are left alone."""
        self.generic_visit(node)
        if self.unrolled:
            node.args = [self.marked(e) for e in node.args]
            for keyword in node.keywords:
                keyword.value = self.marked(keyword.value)
        if (
            isinstance(node.func, ast.Name)
            and node.func.id == "print"
            and not {"print"} & {*self.seen, *self.variables}
        ):
            node.func = self.constant(shown, node.func)
        elif pyast.dotted(node.func) in SET_TRACE:
            node.func = self.constant(stop, node.func)
        elif isinstance(node.func, ast.Attribute):
            op = getattr(self.known(node.func), "op", None)
            if isinstance(op, Op):
                node.func = self.constant(pysim_impl(op), node.func)
                self.move(op, node)
                if not op.special or op.effect == "read":
                    self.computed.add(node)
        return node

    def marked(self, e: ast.expr) -> ast.expr:
        """An argument that is made of variables of unrolled loops and numbers as a value that is known."""
        if isinstance(e, (ast.Tuple, ast.List)):
            e.elts = [self.marked(item) for item in e.elts]
            return e
        parts = [n for n in ast.walk(e) if isinstance(n, ast.expr)]
        leaves = [n for n in parts if not isinstance(n, (ast.BinOp, ast.UnaryOp))]
        names = [n for n in leaves if isinstance(n, ast.Name) and n.id in self.unrolled]
        plain = all(n in names or (isinstance(n, ast.Constant) and type(n.value) is int) for n in leaves)
        return self.call(known, [e], e) if names and plain else e

    def move(self, op: Op, call: ast.Call) -> None:
        """Moves the pointers of an operation in one step each."""
        args = call.args
        whole = op.name in SHORT and len(args) == SHORT[op.name] and not call.keywords
        if whole and (found := moved(args[-1], op.name)):
            call.func, call.args = self.constant(found[0], call.func), [*args[:-1], *found[1]]
            return
        for i, (name, arg) in enumerate(zip(op.signature.parameters, args)):
            found = moved(arg) if name in _POINTERS else None
            if found is not None:
                args[i] = self.call(*found, arg)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        return node  # only the kernel's own statements

    def visit_Lambda(self, node: ast.Lambda) -> ast.Lambda:
        return node


def _called(e: ast.expr) -> str:
    """The last name of the function that an expression calls; an empty string where it calls none by name."""
    func = e.func if isinstance(e, ast.Call) else None
    return func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")


def _is_known(e: ast.expr) -> bool:
    """Whether an expression is S.meta_var(...), or a choice of two."""
    if isinstance(e, ast.IfExp):
        return _is_known(e.body) and _is_known(e.orelse)
    return _called(e) == "meta_var"


def _leaves(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """The targets in a target that are no tuples, with what is written for their values, or for sequences these are in."""
    if not isinstance(target, (ast.Tuple, ast.List)):
        yield target, value
        return
    items = value.elts if isinstance(value, (ast.Tuple, ast.List)) else []
    each = len(items) == len(target.elts) and not any(isinstance(e, ast.Starred) for e in (*target.elts, *items))
    for e, item in zip(target.elts, items if each else itertools.repeat(value)):
        yield from _leaves(e.value if isinstance(e, ast.Starred) else e, item)


def _index_value(index: ast.expr, constant: Callable[[object], ast.expr]) -> ast.expr:
    """An index as an expression of its own, which slices are not."""
    if isinstance(index, ast.Tuple):
        return ast.Tuple([_index_value(e, constant) for e in index.elts], ast.Load())
    if isinstance(index, ast.Slice):
        parts = [part or ast.Constant(None) for part in (index.lower, index.upper, index.step)]
        return ast.Call(constant(slice), parts, [])
    return index


def _is_nest(target: ast.expr, head: ast.Call) -> bool:
    """Whether a loop is `for i, j in S.grid(a, b)`."""
    return (
        isinstance(target, ast.Tuple)
        and isinstance(head.func, ast.Attribute)
        and head.func.attr == "grid"
        and len(head.args) == len(target.elts) > 1
        and not any(isinstance(e, ast.Starred) for e in (*target.elts, *head.args))
    )


def _nested(node: ast.For, head: ast.Call) -> ast.For:
    """One loop per level, so that `break` leaves the innermost one only."""
    assert isinstance(node.target, ast.Tuple)
    targets = node.target.elts
    body = node.body
    for target, extent in zip(reversed(targets), reversed(head.args)):
        call = ast.copy_location(ast.Call(head.func, [extent], []), head)
        body = [ast.copy_location(ast.For(target, call, body, []), node)]
    return body[0]  # type: ignore[return-value]


_Done = tuple[types.FunctionType, GeneratedCode]
_DONE: weakref.WeakKeyDictionary[types.FunctionType, _Done] = weakref.WeakKeyDictionary()
_LOCK = threading.Lock()


def with_kernel_assignments(func: types.FunctionType) -> types.FunctionType:
    """A kernel function whose assignments behave as compiled. The function itself when its source is not available."""
    done = _DONE.get(func)
    if done is None or not _is_as_assumed(func, done[1]):
        with _LOCK:
            made = GeneratedCode()
            try:
                found = _rebuilt(func, pyast.copied(definition(func)), made)
            except CompassError:
                found = func
            _DONE[func] = done = found, made
            KERNEL_CODE.update(_with_nested(found.__code__))
    return done[0]


def _is_as_assumed(func: types.FunctionType, made: GeneratedCode) -> bool:
    """Whether the names that code was made for stand for the same."""
    return all(_meaning(captured(func, name)) is x for name, x in made.assumed.items()) and all(
        _meaning(getattr(module, name, None)) is x for (module, name), x in made.modules.items()
    )


def _meaning(value: object) -> object:
    """What code depends on that is made of a name: macros, modules, and the language's own functions; None for all else."""
    return value if isinstance(value, (Macro, types.ModuleType)) or _is_ours(getattr(value, "__module__", "")) else None


def _is_ours(module: object) -> bool:
    """Whether a module is one of the compiler."""
    return isinstance(module, str) and module.startswith(_PACKAGE)


def _with_nested(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for c in code.co_consts:
        if isinstance(c, types.CodeType):
            yield from _with_nested(c)


def _visible(func: types.FunctionType) -> dict[str, object]:
    """The outer names visible to a function, except those that it assigns."""
    code = func.__code__
    seen = dict(func.__globals__)
    for name, cell in zip(code.co_freevars, func.__closure__ or ()):
        seen[name] = getattr(cell, "cell_contents", None)
    for name in (*code.co_varnames, *code.co_cellvars):
        seen.pop(name, None)
    return seen


def _resolved(code: types.CodeType, made: GeneratedCode, shift: int = 0) -> types.CodeType:
    """The code with values in the place of their markers and macros in their own files, nested code too.

    `shift`: lines to add, which the line table counts from the first one of a code object.
    """
    of_macro = made.pasted.get(code.co_name)
    if of_macro is not None:
        shift += of_macro.shift
        code = _named(code, of_macro.name).replace(co_filename=of_macro.file)
    constants = []
    for c in code.co_consts:
        if isinstance(c, types.CodeType):
            c = _resolved(c.replace(co_filename=code.co_filename), made, shift)
        constants.append(made.constants.get(c, c) if type(c) is str else c)
    code = code.replace(co_consts=tuple(constants), co_firstlineno=code.co_firstlineno + shift)
    if of_macro is not None:
        MACRO_CODE[code] = of_macro.arguments
    return code


def _named(code: types.CodeType, name: str, qualname: str = "") -> types.CodeType:
    names = {"co_name": name}
    if hasattr(code, "co_qualname"):
        names["co_qualname"] = qualname or name
    return code.replace(**names)  # type: ignore[arg-type]


def _is_bool(func: types.FunctionType, name: str) -> bool:
    """Whether a parameter is annotated as a bool or mask."""
    kind = getattr(func.__annotations__.get(name), "dtype", None)
    return isinstance(kind, DataType) and kind.is_bool


def _rebuilt(func: types.FunctionType, node: ast.FunctionDef, made: GeneratedCode) -> types.FunctionType:
    """The function compiled from its rewritten definition, with the globals, closure and defaults it had."""
    made.addressed |= addressed(node.body)
    own = {*func.__code__.co_varnames, *func.__code__.co_cellvars}
    rewrite = Rewrite(_visible(func), own, made)
    rewrite.bools.learn(node.body, [a.arg for a in node.args.args if _is_bool(func, a.arg)])
    node.body = rewrite.statements(node.body)
    node.decorator_list, node.returns = [], None
    node.args.defaults, node.args.kw_defaults = [], []
    for arg in node.args.args:
        arg.annotation = None
    node.name = _KERNEL
    free = func.__code__.co_freevars
    source = pyast.parse(f"def {_FACTORY}({', '.join(free)}):\n pass\n return {_KERNEL}")
    factory = source.body[0]
    assert isinstance(factory, ast.FunctionDef)
    factory.body[0] = node
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)  # a marker looks like the call of a string
        outer = compile(source, func.__code__.co_filename, "exec", dont_inherit=True).co_consts[0]
    inner = next(c for c in outer.co_consts if isinstance(c, types.CodeType) and c.co_name == _KERNEL)
    original = func.__code__
    code = _named(_resolved(inner, made), original.co_name, getattr(original, "co_qualname", ""))
    cells = dict(zip(free, func.__closure__ or ()))
    closure = tuple(cells[n] for n in code.co_freevars)
    rebuilt = types.FunctionType(code, func.__globals__, func.__name__, func.__defaults__, closure)
    rebuilt.__kwdefaults__, rebuilt.__qualname__, rebuilt.__module__ = (
        func.__kwdefaults__,
        func.__qualname__,
        func.__module__,
    )
    return rebuilt
